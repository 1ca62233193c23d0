"""The decision on who may do what (pure): one function for everything.

``may`` checks these in order, and the first that says something decides:
    1. a user who is suspended, banned or deleted writes nothing, and reads as one who is not signed in
    2. a page is claimed only where it has no owner, by a user who is signed in
    3. administrators may do everything
    4. administrators alone may do what belongs to the whole site
    5. the owner of a page may do everything with it
    6. its rights are changed and it is deleted by no other user; a user who may edit it may claim and rename it
    7. the list that counts: the page's own, that of the longest prefix of its name, the site's

Comments are part of their page and editing shows its text: to write or to read comments, one must be allowed to read
the page, and to post a comment, to read them.

Knows nothing of the store; ``stored`` brings together the fields of a Guarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wikka_port.rights.acl import Groups, verdict
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
    """A page as the decision sees it."""

    name: str
    rights: PageRights = NO_RIGHTS
    exists: bool = True
    rules: Rules = NO_RULES
    groups: Groups = field(default_factory=dict)  # all that ``group_names`` gives


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    text: str  # of ``reason``
    values: Mapping[str, object] = field(default_factory=dict)  # in it

    @property
    def reason(self) -> str:
        """For those who may see the lists: it names an entry of them.  Few decisions ever need it."""
        return _(self.text, **self.values)

    def __bool__(self) -> bool:
        return self.allowed


class NotAllowed(Exception):
    """The visitor may not; nothing was written, and nothing of the page is in here."""

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
    """Return the groups that a decision on these pages may hang on; none for who needs no list, or is in no group."""
    if not visitor.is_active or visitor.name is None or visitor.admin:
        return set()
    mine = folded(visitor.name)
    found: set[str] = set()
    for name, rights in pages:
        for privilege in LISTED:
            found.update(effective(name, rights, rules, privilege)[0].names)
    return {name for name in found if folded(name) != mine}
