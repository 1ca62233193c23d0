"""The wiki as one visitor may see it: the only interface through which handlers and actions reach pages and lists.

It has the reading methods of ``pages.Wiki`` under their names.  Methods for one page raise NotAllowed if the visitor
may not read it; lists leave out what he may not read, and so do their counts.  A method that ``Wiki`` has and this
class lacks cannot be called by a handler: it has to be added here, with its rule.

Rights of pages in a list are read from the rows of these pages, with one call for up to ROWS_PER_CALL of them, and not
at all if there never was a rule.  A list continues reading until it has as many names as were requested; past
LISTED_QUICK of them it calls ``before_expensive_read``.

An object serves one request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from wikka_port.accounts.deactivation import Edits
from wikka_port.editing.kept_drafts import Drafts
from wikka_port.editing.suggestions import Suggestions
from wikka_port.limits import LISTED_QUICK, LISTED_STEP, RANDOM_TRIES, SEARCHED_NAMES
from wikka_port.listings import RecentChange
from wikka_port.names import normalise, page_key
from wikka_port.page_rows import Page, Revision
from wikka_port.pages import Conflict, Saved, StoreUnavailable, Wiki
from wikka_port.rights.judging import BLOCKED_STATUSES, Decision, Guarded, NotAllowed, group_names, may
from wikka_port.rights.moving import GuardedMoves
from wikka_port.rights.rules import NO_RIGHTS, PageRights, Privilege
from wikka_port.rights.stored import StoredRights
from wikka_port.schema import folded, name_row
from wikka_port.search import nearest
from wikka_port.search.query import Query
from wikka_port.search.searching import Results
from wikka_port.search.suggesting import HeadingOf
from wikka_port.texts import N_
from wikka_port.visitors import NOBODY, Visitor

T = TypeVar("T")
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


class GuardedWiki:
    __slots__ = ("_before_expensive_read", "_can", "_seen", "_wiki", "visitor")

    def __init__(
        self, wiki: Wiki, visitor: Visitor, before_expensive_read: Callable[[], object] = lambda: None
    ) -> None:
        """``before_expensive_read`` is called before much is read for one list; it may raise."""
        self.visitor = visitor
        self._wiki = wiki
        self._before_expensive_read = before_expensive_read
        self._can: dict[str, Can] = {}
        self._seen: dict[str, tuple[PageRights, bool]] = {}  # of this request: rights, and whether the page is there

    def for_visitor(self, visitor: Visitor, before_expensive_read: Callable[[], object] | None = None) -> GuardedWiki:
        before = self._before_expensive_read if before_expensive_read is None else before_expensive_read
        return GuardedWiki(self._wiki, visitor, before)

    # --- deciding ----------------------------------------------------------------------------------

    def decision(self, name: str, privilege: Privilege) -> Decision:
        """Call ``judging.may`` on the page as it was read in this request; it is read where it was not."""
        name = normalise(name)
        if name not in self._seen:
            self.page(name) if self._wiki.rights.rules().is_open else self._read_rights(name)
        rights, exists = self._seen[name]
        return self._decide(name, rights, exists, privilege)

    def require(self, name: str, privilege: Privilege) -> None:
        """Raises NotAllowed."""
        decision = self.decision(name, privilege)
        if not decision:
            raise NotAllowed(name, privilege, decision)

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

    def _guarded(self, name: str, rights: PageRights, exists: bool) -> Guarded:
        """Raises StoreUnavailable."""
        rules = self._wiki.rights.rules()
        groups = self._wiki.rights.members(group_names(self.visitor, [(name, rights)], rules))
        return Guarded(name, rights, exists, rules, groups)

    def _read_rights(self, name: str) -> None:
        rights = self._wiki.rights.of([name])[name]
        self._seen[name] = (rights, True)

    def _readable(self, name: str) -> str:
        """``name`` normalised.  Raises NotAllowed; costs a call only where there are rules."""
        name = normalise(name)
        if name in self._seen or not self._wiki.rights.rules().is_open:
            self.require(name, Privilege.READ)
        return name

    def readable(self, names: Iterable[str]) -> set[str]:
        """Filter ``names``: the visitor may read what is left."""
        wanted = set(names)
        return wanted if not wanted or self._is_open() else self._may_read(self._wiki.rights.of(wanted))

    def listed(self, names: Iterable[str]) -> set[str]:
        """As ``readable``, of ``names`` that come from an index, without those at which no page is any more.

        An index may not know yet that a page was deleted or has another name, and its rights went with it: nothing
        says who might read it.
        """
        wanted = set(names)
        return wanted if not wanted or self._is_open() else self._may_read(self._wiki.rights.of_pages(wanted))

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
        page = self._wiki.page(name)
        name = normalise(name) if page is None else page.name
        rights = NO_RIGHTS if page is None else page.rights
        self._seen[name] = (rights, page is not None)
        self._can.pop(name, None)
        decision = self._decide(name, rights, page is not None, Privilege.READ)
        if not decision:
            raise NotAllowed(name, Privilege.READ, decision)
        return page

    def existing(self, names: Collection[str]) -> frozenset[str]:
        """Names in a text that one may read are not hidden from its reader: no right is checked."""
        return self._wiki.existing(names)

    def revision(self, name: str, number: int, token: str = "") -> Revision | None:
        return self._wiki.revision(self._readable(name), number, token)

    def source(self, name: str, number: int | None = None) -> str | None:
        return self._wiki.source(self._readable(name), number)

    def revision_at(self, name: str, time_ms: int) -> Revision | None:
        return self._wiki.revision_at(self._readable(name), time_ms)

    def revisions(
        self, name: str, *, below: int | None = None, limit: int = 50, bodies: bool = False
    ) -> list[Revision]:
        return self._wiki.revisions(self._readable(name), below=below, limit=limit, bodies=bodies)

    def save(self, name: str, body: str, *, author: str, note: str = "", base: int, **given: Any) -> Saved:
        """As ``Wiki.save``, if the visitor may write the page at the moment of the save.

        A page that begins belongs to the visitor, if he is signed in.  Raises NotAllowed, with nothing written; a
        Conflict has the present text only where he may read it.
        """
        normal = normalise(name)

        def allow(rights: PageRights, exists: bool) -> None:
            decision = self._decide(normal, rights, exists, Privilege.WRITE)
            if not decision:
                raise NotAllowed(normal, Privilege.WRITE, decision)

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

    # --- lists -------------------------------------------------------------------------------------

    def _is_open(self) -> bool:
        return self._wiki.rights.rules().is_open or (self.visitor.admin and self.visitor.is_active)

    def _gathered(self, fetch: Callable[[T | None, int], list[T]], name_of: Callable[[T], str], limit: int) -> list[T]:
        """Up to ``limit`` items that the visitor may read.  ``fetch(last, n)``: up to n items after ``last``."""
        found: list[T] = []
        last: T | None = None
        looked, step = 0, limit
        while len(found) < limit:
            items = fetch(last, step)
            kept = self.listed(name_of(item) for item in items)
            found += [item for item in items if name_of(item) in kept]
            looked += len(items)
            if len(items) < step:
                break
            last, step = items[-1], LISTED_STEP
            if looked > LISTED_QUICK:
                self._before_expensive_read()
        return found[:limit]

    def names(self, *, start: str = "", prefix: str = "", limit: int = 500) -> list[str]:
        if self._is_open():
            return self._wiki.names(start=start, prefix=prefix, limit=limit)

        def fetch(last: str | None, number: int) -> list[str]:
            if last is None:
                return self._wiki.names(start=start, prefix=prefix, limit=number)
            found = self._wiki.names(start=last, prefix=prefix, limit=number + 1)
            return found[1:] if found[:1] == [last] else found[:number]

        return self._gathered(fetch, str, limit)

    def owned(self, owner: str, *, limit: int) -> list[str]:
        found = self._wiki.owned(owner, limit=limit)
        kept = self.listed(found)
        return [name for name in found if name in kept]

    def orphaned(self, *, after: str = "", limit: int = 200) -> list[str]:
        if self._is_open():
            return self._wiki.orphaned(after=after, limit=limit)
        return self._gathered(lambda last, n: self._wiki.orphaned(after=last or after, limit=n), str, limit)

    def backlinks(self, name: str, *, after: str = "", limit: int = 500) -> list[str]:
        """Raises NotAllowed if the visitor may not read ``name``."""
        name = self._readable(name)
        if self._is_open():
            return self._wiki.backlinks(name, after=after, limit=limit)

        def fetch(last: str | None, number: int) -> list[str]:
            found = self._wiki.backlinks(name, after=last or after, limit=number)
            return sorted(found, key=page_key)  # all that there are come in alphabetical order

        found = self._gathered(fetch, str, limit)
        return found if after or len(found) >= limit else sorted(found, key=name_row)

    def wanted(self, *, after: str = "", limit: int = 200) -> list[tuple[str, int]]:
        """Counted are links from pages that the visitor may read; a name that no such page has is not shown."""
        if self._is_open():
            return self._wiki.wanted(after=after, limit=limit)
        found: list[tuple[str, int]] = []
        looked = 0
        while len(found) < limit:
            items = self._wiki.wanted(after=after, limit=LISTED_STEP)
            linking = self._wiki.linking([name for name, _ in items])
            kept = self.listed(source for sources in linking.values() for source in sources)
            counts = ((name, sum(source in kept for source in linking.get(name, ()))) for name, _ in items)
            found += [(name, count) for name, count in counts if count]
            if len(items) < LISTED_STEP:
                break
            after = items[-1][0]
            looked += sum(map(len, linking.values()))
            if looked > LISTED_QUICK:
                self._before_expensive_read()
        return found[:limit]

    def most_wanted(self, *, limit: int = 200) -> list[tuple[str, int]]:
        if self._is_open():
            return self._wiki.most_wanted(limit=limit)
        return sorted(self.wanted(limit=SEARCHED_NAMES), key=lambda item: (-item[1], name_row(item[0])))[:limit]

    def initials(self, *, limit: int = 200) -> list[str]:
        if self._is_open():
            return self._wiki.initials(limit=limit)
        return sorted({folded(name)[:1] for step in self._all_names() for name in step})[:limit]

    def some_page(self, key: str) -> str | None:
        """A few places are tried; None if no page there may be read."""
        for _ in range(RANDOM_TRIES):
            name = self._wiki.some_page(key)
            if name is None or self._is_open() or self.listed([name]):
                return name
            key = page_key(name).decode() + "0"
        return None

    def search(self, query: Query, *, page: int = 1, pages: int = 0) -> Results:
        """Found, counted and respelled are only pages that the visitor may read."""
        if self._is_open():
            return self._wiki.search(query, page=page, pages=pages)
        found = self._wiki.search(query, page=page, pages=pages, readable=self.listed)
        return found if found.count else replace(found, instead="", has_more=False)

    def languages(self) -> list[str]:
        """Languages of hidden pages count, too: they are not shown."""
        return self._wiki.languages()

    def suggested(self, typed: str, *, most: int = 8) -> list[str]:
        if self._is_open():
            return self._wiki.suggested(typed, most=most)
        found = self._wiki.suggested(typed, most=LISTED_STEP)
        kept = self.listed(found)
        return [name for name in found if name in kept][:most]

    def suggested_headings(self, typed: str, *, most: int) -> list[HeadingOf]:
        readable = None if self._is_open() else self.listed
        return self._wiki.suggested_headings(typed, most=most, readable=readable)

    def nearest(self, name: str, *, pages: int) -> list[str]:
        found = self._wiki.nearest(name, pages=pages)
        kept = set(found) if self._is_open() else self.listed(found)
        return [one for one in found if one in kept][: nearest.MOST]

    def search_titles(self, text: str, *, limit: int = 100) -> list[str]:
        if self._is_open():
            return self._wiki.search_titles(text, limit=limit)
        found = self._wiki.search_titles(text, limit=SEARCHED_NAMES)
        kept = self.listed(found)
        return [name for name in found if name in kept][:limit]

    def count_pages(self) -> int:
        if self._is_open():
            return self._wiki.count_pages()
        return sum(map(len, self._all_names()))

    def count_pages_roughly(self) -> int:
        """Count hidden pages, too: it serves the ranking of what is found, and is not shown."""
        return self._wiki.count_pages_roughly()

    def count_changes(self) -> int:
        if self._is_open():
            return self._wiki.count_changes()
        count, token, kept = 0, "", dict[str, bool]()
        while True:
            items, token = self._wiki.changes(before=token, limit=LISTED_STEP)
            unknown = {item.name for item in items} - kept.keys()
            kept |= dict.fromkeys(unknown, False) | dict.fromkeys(self.listed(unknown), True)
            count += sum(kept[item.name] for item in items)
            if not token:
                return count

    def _all_names(self) -> Iterator[set[str]]:
        """Yield all that the visitor may read, in steps."""
        start = ""
        while names := self._wiki.names(start=start, limit=LISTED_STEP):
            yield self.listed(names[1:] if names[0] == start else names)
            if len(names) < LISTED_STEP:
                return
            start = names[-1]

    def changes(self, *, before: str = "", limit: int = 50) -> tuple[list[RecentChange], str]:
        """The token is that of the last change that is shown: it reveals no other."""
        if self._is_open():
            return self._wiki.changes(before=before, limit=limit)
        found: list[RecentChange] = []
        token, looked, step = before, 0, limit
        while True:
            items, onward = self._wiki.changes(before=token, limit=step)
            kept = self.listed(item.name for item in items)
            shown = [place for place, item in enumerate(items) if item.name in kept]
            missing = limit - len(found)
            if len(shown) > missing or (len(shown) == missing and shown[-1:] != [len(items) - 1]):
                last = shown[missing - 1] + 1
                items, onward = self._wiki.changes(before=token, limit=last)
                return found + [item for item in items if item.name in kept], onward
            found += [items[place] for place in shown]
            if len(found) == limit or not onward:
                return found, onward
            token, step = onward, LISTED_STEP
            looked += len(items)
            if looked > LISTED_QUICK:
                self._before_expensive_read()
