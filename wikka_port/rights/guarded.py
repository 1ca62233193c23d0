"""The wiki as one visitor may see it: the only interface through which handlers and actions reach pages and lists.

Methods for one page raise NotAllowed if the visitor may not read it; lists (``readable_lists``) leave out what he may
not read, and so do their counts.  A method that ``Wiki`` has and this class lacks cannot be called by a handler: it has
to be added here, with its rule.

Rights of pages in a list are read from the rows of these pages, with one call for up to ROWS_PER_CALL of them, and not
at all if there never was a rule.

An object serves one request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wikka_port.accounts.deactivation import Edits
from wikka_port.editing.kept_drafts import Drafts
from wikka_port.editing.suggestions import Suggestions
from wikka_port.names import normalise
from wikka_port.page_rows import Page, Revision
from wikka_port.pages import Conflict, Saved, StoredPage, StoreUnavailable, Wiki
from wikka_port.rights.judging import BLOCKED_STATUSES, Decision, Guarded, NotAllowed, group_names, may
from wikka_port.rights.moving import GuardedMoves
from wikka_port.rights.readable_lists import ReadableLists
from wikka_port.rights.rules import NO_RIGHTS, PageRights, Privilege
from wikka_port.rights.stored import StoredRights
from wikka_port.texts import N_
from wikka_port.visitors import NOBODY, Visitor

_OPEN: Final = Decision(True, N_("there is no rule"))


@dataclass(frozen=True, slots=True)
class Can:
    """The visitor's possibilities with a page, for the links on it."""

    write: bool
    change_rights: bool
    claim: bool
    suggest: bool = False  # a change, which who may edit the page takes or refuses
    rename: bool = False
    delete: bool = False


_POSSIBLE: Final = (
    *(Privilege.WRITE, Privilege.CHANGE_RIGHTS, Privilege.CLAIM),
    *(Privilege.RENAME, Privilege.DELETE),
)
_ALL_OPEN: Final = Can(True, False, False)
_NOTHING: Final = Can(False, False, False)


class GuardedWiki(ReadableLists):
    __slots__ = ("_can", "_seen", "_wiki", "visitor")

    def __init__(
        self, wiki: Wiki, visitor: Visitor, before_expensive_read: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__(wiki, before_expensive_read)
        self.visitor = visitor
        self._wiki = wiki
        self._can: dict[str, Can] = {}
        self._seen: dict[str, tuple[PageRights, bool]] = {}  # of this request: rights, and whether the page is there

    def for_visitor(self, visitor: Visitor, before_expensive_read: Callable[[], object] | None = None) -> GuardedWiki:
        before = self._before_expensive_read if before_expensive_read is None else before_expensive_read
        return GuardedWiki(self._wiki, visitor, before)

    # --- deciding ----------------------------------------------------------------------------------

    def decision(self, name: str, privilege: Privilege) -> Decision:
        """Call ``judging.may`` on the page as it was read in this request; it is read where it was not."""
        name = normalise(name)
        return self._decide(name, *self._rights_seen(name), privilege)

    def _rights_seen(self, name: str) -> tuple[PageRights, bool]:
        """Return the rights of the page, and whether it is there, as it was read in this request."""
        if name not in self._seen:
            if self._wiki.rights.rules().is_open:
                self.page(name)
            else:
                self._seen[name] = (self._wiki.rights.of([name])[name], True)
        return self._seen[name]

    def require(self, name: str, privilege: Privilege) -> None:
        """Raises NotAllowed."""
        name = normalise(name)
        self._require(name, *self._rights_seen(name), privilege)

    def can(self, name: str) -> Can:
        """As the page was read in this request; nothing while the store is unavailable."""
        found = self._can.get(name)
        if found is None:
            found = self._can[name] = self._found_can(name)
        return found

    def _found_can(self, name: str) -> Can:
        name = normalise(name)
        rights, exists = self._seen.get(name, (NO_RIGHTS, False))
        try:
            if self.visitor.name is None and not rights.lists and self._wiki.rights.rules().is_open:
                return _ALL_OPEN
            guarded = self._guarded(name, rights, exists)
        except StoreUnavailable:
            return _NOTHING
        decided = [may(self.visitor, guarded, one).allowed for one in _POSSIBLE]
        suggests = exists and not decided[0] and self.visitor.status not in BLOCKED_STATUSES
        write, change_rights, claim, rename, delete = decided
        return Can(write, change_rights, claim, suggests, rename, delete)

    def _decide(self, name: str, rights: PageRights, exists: bool, privilege: Privilege) -> Decision:
        rules = self._wiki.rights.rules()
        if rules.is_open and not rights.lists and privilege is Privilege.READ:
            return _OPEN
        return may(self.visitor, self._guarded(name, rights, exists), privilege)

    def _require(self, name: str, rights: PageRights, exists: bool, privilege: Privilege) -> None:
        """Raises NotAllowed."""
        decision = self._decide(name, rights, exists, privilege)
        if not decision:
            raise NotAllowed(name, privilege, decision)

    def _guarded(self, name: str, rights: PageRights, exists: bool) -> Guarded:
        """Raises StoreUnavailable."""
        rules = self._wiki.rights.rules()
        groups = self._wiki.rights.members(group_names(self.visitor, [(name, rights)], rules))
        return Guarded(name, rights, exists, rules, groups)

    def check_readable(self, name: str) -> str:
        """``name`` normalised.  Raises NotAllowed; costs a call only where there are rules."""
        name = normalise(name)
        if name in self._seen or not self._wiki.rights.rules().is_open:
            self.require(name, Privilege.READ)
        return name

    def sees_all(self) -> bool:
        return self._wiki.rights.rules().is_open or (self.visitor.admin and self.visitor.is_active)

    def readable(self, names: Iterable[str]) -> set[str]:
        """Filter ``names``: the visitor may read what is left."""
        wanted = set(names)
        return wanted if not wanted or self.sees_all() else self._may_read(self._wiki.rights.of(wanted))

    def listed(self, names: Iterable[str]) -> set[str]:
        """As ``readable``, of ``names`` that come from an index, without those at which no page is any more.

        An index may not know yet that a page was deleted or has another name, and its rights went with it: nothing
        says who might read it.
        """
        wanted = set(names)
        return wanted if not wanted or self.sees_all() else self._may_read(self._wiki.rights.of_pages(wanted))

    def would_be_group(self, name: str) -> bool:
        """Administrators alone begin a page of a name that lists mean as a group: its text says who is in it."""
        return not (self.visitor.admin and self.visitor.is_active) and self._wiki.rights.means_group(name)

    def _may_read(self, rights: Mapping[str, PageRights]) -> set[str]:
        rules = self._wiki.rights.rules()
        groups = self._wiki.rights.members(group_names(self.visitor, rights.items(), rules))
        return {
            name
            for name, of in rights.items()
            if may(self.visitor, Guarded(name, of, True, rules, groups), Privilege.READ)
        }

    # --- one page ----------------------------------------------------------------------------------

    def page(self, name: str) -> Page | None:
        """Raises NotAllowed."""
        return self.stored_page(name).page

    def stored_page(self, name: str) -> StoredPage:
        """Raises NotAllowed."""
        stored = self._wiki.stored_page(name)
        page = stored.page
        name = normalise(name) if page is None else page.name
        rights = NO_RIGHTS if page is None else page.rights
        self._seen[name] = (rights, page is not None)
        self._can.pop(name, None)
        self._require(name, rights, page is not None, Privilege.READ)
        return stored

    def existing(self, names: Collection[str]) -> frozenset[str]:
        """Names in a text that one may read are not hidden from its reader: no right is checked."""
        return self._wiki.existing(names)

    def revision(self, name: str, number: int, token: str = "") -> Revision | None:
        return self._wiki.revision(self.check_readable(name), number, token)

    def source(self, name: str, number: int | None = None) -> str | None:
        return self._wiki.source(self.check_readable(name), number)

    def revision_at(self, name: str, time_ms: int) -> Revision | None:
        return self._wiki.revision_at(self.check_readable(name), time_ms)

    def revisions(
        self, name: str, *, below: int | None = None, limit: int = 50, bodies: bool = False
    ) -> list[Revision]:
        return self._wiki.revisions(self.check_readable(name), below=below, limit=limit, bodies=bodies)

    def save(self, name: str, body: str, *, author: str, note: str = "", base: int, **given: Any) -> Saved:
        """As ``Wiki.save``, if the visitor may write the page at the moment of the save.

        A page that begins belongs to the visitor, if he is signed in.  Raises NotAllowed, with nothing written; a
        Conflict has the present text only where he may read it.
        """
        normal = normalise(name)

        def allow(rights: PageRights, exists: bool) -> None:
            self._require(normal, rights, exists, Privilege.WRITE)

        if base == 0 and self.visitor.is_active:
            given.setdefault("owner", self.visitor.name)
        try:
            return self._wiki.save(name, body, author=author, note=note, base=base, allow=allow, **given)
        except Conflict as conflict:
            if conflict.current is not None:
                self._seen[normal] = (conflict.current.rights, True)
                self.require(normal, Privilege.READ)
            raise

    def settle(self, sequence: str, timeout_s: float = 2.0) -> bool:
        return self._wiki.settle(sequence, timeout_s)

    def is_up(self) -> bool:
        return self._wiki.is_up()

    @property
    def moves(self) -> GuardedMoves:
        """Rename, delete, bring back: each checks its right."""
        return GuardedMoves(self._wiki, self.visitor, self._decide)

    def drafts(self, name: str) -> Drafts:
        """For who may write the page at this moment.  Raises NotAllowed."""
        self.require(name, Privilege.WRITE)
        return self._wiki.drafts

    def suggestions(self, name: str) -> Suggestions:
        """For who may read the page: who sees which of them is judged by their handler.  Raises NotAllowed."""
        self.require(name, Privilege.READ)
        return self._wiki.suggestions

    def waiting(self, name: str) -> int:
        """Count the suggested changes of a page, for who is signed in and may write it; 0 for others.

        As ``can``, of the page as it was read in this request.  It costs a call of the store, and none where everybody
        may write the page: no suggestion is needed there.  0 while the store is unavailable.
        """
        name = normalise(name)
        if not self.visitor.is_active or not self.can(name).write:
            return 0
        rights, exists = self._seen.get(name, (NO_RIGHTS, False))
        try:
            if not exists or may(NOBODY, self._guarded(name, rights, exists), Privilege.WRITE):
                return 0
            return len(self._wiki.suggestions.of(name))
        except StoreUnavailable:  # the page is there, and it alone was requested
            return 0

    # --- rights ------------------------------------------------------------------------------------

    @property
    def rights(self) -> StoredRights:
        """For handlers that show or change rights, after ``require``."""
        return self._wiki.rights

    @property
    def edits(self) -> Edits:
        """For an account that ends: its edits are renamed wherever they are, also if this visitor may not read them."""
        return self._wiki
