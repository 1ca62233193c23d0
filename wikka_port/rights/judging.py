"""(pure) The decision on each action of a visitor: one function for everything.

``may`` applies these rules in order, and the first that applies decides:
    1. a suspended, banned or deleted user writes nothing, and reads like a visitor who is not signed in; who is
       blocked, by name or by network, writes nothing either (``blocks``)
    2. only a signed-in user can claim a page, and only a page without an owner
    3. administrators may do everything
    4. only administrators may do work on the whole site
    5. the owner of a page may do everything with it
    6. no other user may change its rights or delete it; a user who may edit it may claim and rename it
    7. the list that counts decides: the page's own, else that of the longest prefix of its name, else the site's

Comments are part of their page, and editing shows the page's text: writing the page and reading its comments both
require the right to read the page, and posting a comment requires the right to read comments.

Knows nothing of the store; ``stored`` reads the fields of a Guarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wikka_port.rights.acl import Groups, verdict
from wikka_port.rights.blocks import BLOCKED, Block
from wikka_port.rights.rules import (
    LISTED,
    NO_OWNERS,
    NO_RIGHTS,
    NO_RULES,
    PUBLIC,
    PageRights,
    Privilege,
    Rules,
    effective,
)
from wikka_port.schema import folded
from wikka_port.texts import N_, _
from wikka_port.visitors import Visitor

BLOCKED_STATUSES: Final = frozenset({"suspended", "banned", "deleted"})
_WRITING: Final = frozenset(
    {
        *(Privilege.WRITE, Privilege.COMMENT_POST, Privilege.CHANGE_RIGHTS, Privilege.CLAIM),
        *(Privilege.RENAME, Privilege.DELETE),
    }
)
_READING: Final = frozenset({Privilege.READ, Privilege.COMMENT_READ})
_NEEDS: Final[Mapping[Privilege, Privilege]] = {
    Privilege.WRITE: Privilege.READ,
    Privilege.COMMENT_READ: Privilege.READ,
    Privilege.COMMENT_POST: Privilege.COMMENT_READ,
    Privilege.CLAIM: Privilege.WRITE,
    Privilege.RENAME: Privilege.WRITE,
}
_OWNERS: Final[Mapping[Privilege, str]] = {
    Privilege.CHANGE_RIGHTS: N_("only the owner and administrators change the rights of a page"),
    Privilege.DELETE: N_("only the owner and administrators delete a page"),
}
_BLOCKED_REASONS: Final[Mapping[str, str]] = {
    "suspended": N_("{who} is suspended"),
    "banned": N_("{who} is banned"),
    "deleted": N_("{who} is deleted"),
}


@dataclass(frozen=True, slots=True)
class Guarded:
    """The properties of a page on which a decision depends."""

    name: str
    rights: PageRights = NO_RIGHTS
    exists: bool = True
    rules: Rules = NO_RULES
    groups: Groups = field(default_factory=dict)  # the groups that ``group_names`` names


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    text: str  # of ``reason``
    values: Mapping[str, object] = field(default_factory=dict)  # filled into the text
    block: Block | None = None  # the block that decided, which the visitor may see

    @property
    def reason(self) -> str:
        """The reason in words; it quotes an entry of a list, so it is only for people who may see the lists."""
        return _(self.text, **self.values)

    def __bool__(self) -> bool:
        return self.allowed


class NotAllowed(Exception):
    """The visitor may not do it; nothing was written, and the exception has nothing of the page's content."""

    def __init__(self, name: str, privilege: Privilege, decision: Decision) -> None:
        super().__init__(f"{privilege} {name}: {decision.reason}")
        self.name = name
        self.privilege = privilege
        self.decision = decision


def may(visitor: Visitor, page: Guarded, privilege: Privilege) -> Decision:
    if (
        visitor.name is not None
        and visitor.status in BLOCKED_STATUSES
        and (privilege in _WRITING or privilege is Privilege.ADMINISTER)
    ):
        return Decision(False, _BLOCKED_REASONS[visitor.status], {"who": visitor.name})
    block = page.rules.blocks.of(visitor) if privilege not in _READING else None
    if block is not None:
        return Decision(False, BLOCKED, {"who": block.target}, block)
    if privilege is Privilege.CLAIM and (obstacle := _obstacle_to_claim(visitor, page)):
        return Decision(False, obstacle)
    if visitor.admin and visitor.is_active:
        return Decision(True, N_("{who} is an administrator"), {"who": visitor.name})
    if privilege is Privilege.ADMINISTER:
        if visitor.name is None:
            return Decision(False, N_("a visitor who is not signed in is no administrator"))
        return Decision(False, N_("{who} is no administrator"), {"who": visitor.name})
    if is_owner(visitor, page.rights):
        return Decision(True, N_("{who} owns the page"), {"who": visitor.name})
    if privilege in _OWNERS:
        return Decision(False, _OWNERS[privilege])
    if privilege is Privilege.RENAME and not visitor.is_active:
        return Decision(False, N_("only a user who is signed in can rename a page"))
    needed = _NEEDS.get(privilege)
    if needed is not None:
        before = may(visitor, page, needed)
        if not before or privilege in (Privilege.CLAIM, Privilege.RENAME):
            return before
    return _by_list(visitor, page, privilege)


def is_owner(visitor: Visitor, rights: PageRights) -> bool:
    if visitor.name is None or not visitor.is_active or rights.owner in NO_OWNERS or rights.owner == PUBLIC:
        return False
    return folded(visitor.name) == folded(rights.owner)


def _obstacle_to_claim(visitor: Visitor, page: Guarded) -> str:
    if not visitor.is_active:
        return N_("only a user who is signed in can claim a page")
    if not page.exists:
        return N_("there is no page of this name")
    return "" if page.rights.owner in NO_OWNERS else N_("the page has an owner")


def _by_list(visitor: Visitor, page: Guarded, privilege: Privilege) -> Decision:
    access, source = effective(page.name, page.rights, page.rules, privilege)
    found = verdict(access, visitor.name if visitor.is_active else None, page.groups)
    if found.entry is None:
        if visitor.name is None:
            return Decision(False, N_("{list} has no entry for a visitor who is not signed in"), {"list": source})
        return Decision(False, N_("{list} has no entry for {who}"), {"list": source, "who": visitor.name})
    values = {"line": found.entry.line, "list": source, "entry": found.entry.text}
    return Decision(found.allowed, N_("line {line} of {list}: {entry}"), values)


def group_names(visitor: Visitor, pages: Iterable[tuple[str, PageRights]], rules: Rules) -> set[str]:
    """Return the names of the groups on which a decision on these pages may depend.

    For administrators, and for visitors who are not signed in, no group matters.
    """
    if not visitor.is_active or visitor.name is None or visitor.admin:
        return set()
    mine = folded(visitor.name)
    found: set[str] = set()
    for name, rights in pages:
        for privilege in LISTED:
            found.update(effective(name, rights, rules, privilege)[0].names)
    return {name for name in found if folded(name) != mine}
