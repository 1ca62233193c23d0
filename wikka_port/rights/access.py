"""Access of one visitor to pages: decisions from a page's rights and the wiki's rules and groups.

Rights of pages in a list are read from the rows of these pages, with one call for up to ROWS_PER_CALL of them, and not
at all if the wiki never had a rule.

An object serves one request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wikka_port.names import normalise
from wikka_port.page_rows import Page
from wikka_port.pages import StoreUnavailable, Wiki
from wikka_port.rights.judging import BLOCKED_STATUSES, Decision, Guarded, NotAllowed, group_names, may
from wikka_port.rights.rules import LISTED, NO_RIGHTS, PageRights, Privilege
from wikka_port.texts import N_
from wikka_port.visitors import NOBODY, Visitor

_OPEN: Final = Decision(True, N_("there is no rule"))


@dataclass(frozen=True, slots=True)
class Can:
    """The visitor's possibilities with a page, for the links on it."""

    write: bool
    change_rights: bool
    claim: bool
    suggest: bool = False  # suggest a change, which a writer of the page takes or refuses
    rename: bool = False
    delete: bool = False


_READING: Final = (Privilege.READ, Privilege.COMMENT_READ)
_POSSIBLE: Final = (
    *(Privilege.WRITE, Privilege.CHANGE_RIGHTS, Privilege.CLAIM),
    *(Privilege.RENAME, Privilege.DELETE),
)
_ALL_OPEN: Final = Can(True, False, False)
_NOTHING: Final = Can(False, False, False)


class PageAccess:
    """The visitor's rights to pages, as they were read in this request."""

    __slots__ = ("_can", "_seen", "_wiki", "visitor")

    def __init__(self, wiki: Wiki, visitor: Visitor) -> None:
        self.visitor = visitor
        self._wiki = wiki
        self._can: dict[str, Can] = {}
        self._seen: dict[str, tuple[PageRights, bool]] = {}  # rights, and whether the page exists

    def record_page(self, name: str, page: Page | None) -> None:
        """Remember the rights of a page just read, or that there is none.  Raises NotAllowed if it may not be read."""
        name = normalise(name) if page is None else page.name
        rights = NO_RIGHTS if page is None else page.rights
        self._seen[name] = (rights, page is not None)
        self._can.pop(name, None)
        self.require_of(name, rights, page is not None, Privilege.READ)

    def decision(self, name: str, privilege: Privilege) -> Decision:
        """Return the decision of ``judging.may`` on the page, which is read at most once in a request."""
        name = normalise(name)
        return self.decide(name, *self._rights_seen(name), privilege)

    def _rights_seen(self, name: str) -> tuple[PageRights, bool]:
        """Return the page's rights, and whether it exists, as read once in this request."""
        if name not in self._seen:
            if self._wiki.rights.rules().is_open:
                self.record_page(name, self._wiki.stored_page(name).page)
            else:
                self._seen[name] = (self._wiki.rights.of([name])[name], True)
        return self._seen[name]

    def require(self, name: str, privilege: Privilege) -> None:
        """Check ``privilege`` on the page as ``decision`` does.  Raises NotAllowed."""
        name = normalise(name)
        self.require_of(name, *self._rights_seen(name), privilege)

    def can(self, name: str) -> Can:
        """Return what the visitor may do with the page as read in this request; nothing if the store is unavailable."""
        found = self._can.get(name)
        if found is None:
            found = self._can[name] = self._found_can(name)
        return found

    def _found_can(self, name: str) -> Can:
        name = normalise(name)
        rights, exists = self._seen.get(name, (NO_RIGHTS, False))
        try:
            rules = self._wiki.rights.rules()
            if self.visitor.name is None and not rights.lists and rules.is_open and not rules.blocks:
                return _ALL_OPEN
            guarded = self._guarded(name, rights, exists)
        except StoreUnavailable:
            return _NOTHING
        decided = [may(self.visitor, guarded, one).allowed for one in _POSSIBLE]
        is_blocked = self.visitor.status in BLOCKED_STATUSES or rules.blocks.of(self.visitor) is not None
        suggests = exists and not decided[0] and not is_blocked
        write, change_rights, claim, rename, delete = decided
        return Can(write, change_rights, claim, suggests, rename, delete)

    def decide(self, name: str, rights: PageRights, exists: bool, privilege: Privilege) -> Decision:
        """Return the decision of ``judging.may`` on a page of these rights."""
        rules = self._wiki.rights.rules()
        if rules.is_open and not rights.lists:
            is_free = self.visitor.status not in BLOCKED_STATUSES and not rules.blocks
            if privilege in _READING or (privilege in LISTED and is_free):
                return _OPEN
        return may(self.visitor, self._guarded(name, rights, exists), privilege)

    def require_of(self, name: str, rights: PageRights, exists: bool, privilege: Privilege) -> None:
        """Raise NotAllowed if the visitor lacks ``privilege`` on a page of these rights."""
        decision = self.decide(name, rights, exists, privilege)
        if not decision:
            raise NotAllowed(name, privilege, decision)

    def _guarded(self, name: str, rights: PageRights, exists: bool) -> Guarded:
        """Return the page with the groups that a decision needs.  Raises StoreUnavailable."""
        rules = self._wiki.rights.rules()
        groups = self._wiki.rights.members(group_names(self.visitor, [(name, rights)], rules))
        return Guarded(name, rights, exists, rules, groups)

    def check_readable(self, name: str) -> str:
        """Return ``name`` normalised.  Raises NotAllowed; costs a call only if the wiki has rules."""
        name = normalise(name)
        if name in self._seen or not self._wiki.rights.rules().is_open:
            self.require(name, Privilege.READ)
        return name

    def is_open(self) -> bool:
        """Return whether everybody may read every page."""
        return self._wiki.rights.rules().is_open

    def sees_all(self) -> bool:
        """Return whether the visitor may read every page."""
        return self._wiki.rights.rules().is_open or (self.visitor.admin and self.visitor.is_active)

    def readable(self, names: Iterable[str]) -> set[str]:
        """Return those of the ``names`` whose pages the visitor may read."""
        wanted = set(names)
        return wanted if not wanted or self.sees_all() else self._may_read(self._wiki.rights.of(wanted))

    def readable_of(self, rights: Mapping[str, PageRights], privilege: Privilege = Privilege.READ) -> set[str]:
        """Return the readable ones of pages whose rights were just read, by name.

        ``privilege`` may be that of reading comments.
        """
        return set(rights) if self.sees_all() else self._may_read(rights, privilege)

    def listed(self, names: Iterable[str], privilege: Privilege = Privilege.READ) -> set[str]:
        """Return the readable ones of ``names`` from an index, without names that no page has any more.

        ``privilege`` may be that of reading comments.

        The index may lag behind a deletion or a rename.  The rights left the name together with the page, so it is
        unknown who may read such a name.
        """
        wanted = set(names)
        if not wanted or self.sees_all():
            return wanted
        return self._may_read(self._wiki.rights.of_pages(wanted), privilege)

    def everybody_may(self, name: str, privilege: Privilege) -> bool:
        """Return whether the page, as read in this request, exists and lets visitors without an account do this.

        Raises StoreUnavailable.
        """
        rights, exists = self._seen.get(name, (NO_RIGHTS, False))
        return exists and bool(may(NOBODY, self._guarded(name, rights, exists), privilege))

    def is_there(self, name: str) -> bool:
        """Return whether the page existed when it was read in this request."""
        return self._seen.get(name, (NO_RIGHTS, False))[1]

    def would_be_group(self, name: str) -> bool:
        """Return whether lists mean a group by the name, so that only an administrator may create its page.

        The text of a group page names the members of the group.
        """
        return not (self.visitor.admin and self.visitor.is_active) and self._wiki.rights.means_group(name)

    def _may_read(self, rights: Mapping[str, PageRights], privilege: Privilege = Privilege.READ) -> set[str]:
        rules = self._wiki.rights.rules()
        groups = self._wiki.rights.members(group_names(self.visitor, rights.items(), rules))
        return {
            name for name, of in rights.items() if may(self.visitor, Guarded(name, of, True, rules, groups), privilege)
        }
