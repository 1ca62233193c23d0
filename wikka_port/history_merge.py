"""Insert revisions of a dump into a stored history, ordered by time, as MediaWiki merges an import.

A revision that is stored already (``Place.is_of``) is left alone.  Every other revision is inserted after all stored
revisions that are not later.  The order determines the numbers, and each revision names its predecessor; so all
revisions above the first new one are staged again, with new numbers and tokens and unchanged texts.

    1. read the history, without texts
    2. stage the new chain upwards, from the first new revision on
    3. commit: the page's row names the newest revision of the new chain, by one conditional put of
       ``meta:versioncount``
    4. (when the triggers have seen the commit) remove the rows that are on no chain any more

An aborted merge, too, keeps its staged rows until step 4: a concurrent import may have staged the same rows, and its
chain needs them.  A crash before 3 leaves staged rows that are on no chain; a crash after 3 leaves rows of the old
chain.  No reader sees either, and ``wikka check --repair`` removes them.  The page's cells get a timestamp above all
that the row has had (``meta:stamp``), since the time of the newest revision may be older.  In the list of hidden
revisions, old numbers are replaced by new ones.

Memory: some 200 bytes for each revision of the page; texts in batches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from columnar.client import Connection, Expect, Put
from columnar.client.row_operations import Operation
from columnar.triggers.api import Change, ChangedCell
from wikka_port import history, schema
from wikka_port.application_indexes import run_indexes
from wikka_port.import_plan import ImportedRevision, Order, Origin, comes_before
from wikka_port.limits import MERGED_CHARS, MERGED_ROWS
from wikka_port.markup.formats import WIKKA
from wikka_port.next_revision import PageTooBig
from wikka_port.page_languages import ENGLISH
from wikka_port.page_rows import (
    Cells,
    head_of,
    hidden_in,
    number_in,
    page_cells_of_revision,
    stamp_of,
    text_in,
    time_of,
)
from wikka_port.pages import Conflict, Wiki
from wikka_port.schema import Head, revision_token
from wikka_port.store import check_and_put

Draw = Callable[[ImportedRevision, Cells, Head | None], "Staged"]
_SAME_SECOND_MS: Final = 1_000
# A page's revisions have these cells as soon as an earlier one has them (``schema``); the value is the absent cell's.
_KEPT_FROM_NOW_ON: Final = {schema.FORMAT: WIKKA.encode(), schema.LANGUAGE: ENGLISH.encode(), schema.MINOR: b"no"}


@dataclass(frozen=True, slots=True)
class Place:
    """The fields of a stored revision that decide its place in the history."""

    head: Head
    time_ms: int  # in this wiki
    origin: Origin | None
    author: str
    note: str
    is_imported: bool  # False: written in this wiki

    @property
    def order(self) -> Order:
        return self.origin.order if self.origin else (self.time_ms, 0)

    def is_of(self, revision: ImportedRevision) -> bool:
        """Return whether ``revision`` is this stored one.

        A revision without an origin comes from an export of a wiki like this one, where it was written: time, author
        and note decide.  Older versions of the import kept no origin; for their revisions author, note and second
        decide.
        """
        if self.origin is not None:
            return revision.origin is not None and self.origin.is_of(revision.origin)
        if revision.origin is None:
            return (self.time_ms, self.author, self.note) == (revision.time_ms, revision.author, revision.note)
        alike = self.is_imported and (self.author, self.note) == (revision.author, revision.note)
        return alike and 0 <= self.time_ms - revision.time_ms < _SAME_SECOND_MS

    def is_before(self, revision: ImportedRevision) -> bool:
        """Return whether ``revision`` comes after this one.  At equal times ids decide, if both have one."""
        return comes_before(self.order, revision.order)


@dataclass(frozen=True, slots=True)
class Staged:
    """A revision of the new chain."""

    head: Head
    cells: Cells  # of its row

    def row(self, key: bytes) -> bytes:
        return schema.revision_row(key, self.head)


@dataclass(slots=True)
class _NewNumbers:
    by_old: dict[int, int] = field(default_factory=dict)  # of revisions that are staged again
    hidden: set[int] = field(default_factory=set)  # of new revisions


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome of a merge."""

    new: int
    already: int
    too_big: tuple[str, ...]
    covers: bool  # an imported text now covers the newest text, which was written in this wiki
    stays: bool  # the newest text was written in this wiki, and stays the newest
    sequence: str  # for ``Wiki.settle``


def places(connection: Connection, key: bytes, newest: Head) -> list[Place]:
    """Return the history, oldest first.  O(revisions), without texts."""
    found = history.chain(connection, key, newest, newest.number, bodies=False, further=(schema.ORIGIN,))
    return [_place(head, cells) for head, cells in found][::-1]


def _place(head: Head, cells: Cells) -> Place:
    origin = Origin.parse(cells.get(schema.ORIGIN))
    is_quiet = not cells.get(schema.SIGNED) and cells.get(schema.AUTOLINK) == b"no"
    return Place(
        head,
        time_of(cells),
        origin,
        text_in(cells, schema.REVISION_AUTHOR),
        text_in(cells, schema.REVISION_NOTE),
        origin is not None or (is_quiet and bool(cells.get(schema.ATTRIBUTION))),
    )


def remove_left(wiki: Wiki, key: bytes, rows: Sequence[bytes]) -> None:
    """Remove those of the ``rows`` of a page's merges that are not on its chain now.

    If the page was deleted meanwhile, all rows stay: undeleting the page needs its chain.
    """

    def on_chain(connection: Connection) -> set[bytes] | None:
        newest = head_of(connection.table(schema.PAGES).row(key, columns=[schema.VERSIONCOUNT]))
        if not newest.number:
            return None
        found = history.chain(connection, key, newest, newest.number, bodies=False)
        return {schema.revision_row(key, head) for head, _ in found}

    kept = wiki.store.run(on_chain)
    if kept is not None:
        wiki.remove_rows([row for row in rows if row not in kept])


class HistoryMerge:
    """The merge of one page: ``add`` its revisions in the order of their times, then ``finish``.

    ``row`` is the page's row as it was read; ``draw`` makes the cells of a new revision from those of its predecessor.
    After ``finish``, ``left`` has the rows that ``remove_left`` should remove.
    """

    def __init__(self, wiki: Wiki, name: str, key: bytes, row: Cells, there: list[Place], draw: Draw) -> None:
        self._wiki = wiki
        self._name = name
        self._row = row
        self._there = there
        self._draw = draw
        self.key = key
        self.left: tuple[bytes, ...] = ()
        self._unmatched = _by_second(there)
        self._next = 0  # index in ``there``: all before it are on the new chain
        self._changed_at: int | None = None  # index in ``there`` of the first that is staged again
        self._last: Staged | None = None  # the newest of the new chain, once it differs from the old
        self._last_place: Place | None = None
        self._waiting: list[Staged] = []
        self._waiting_chars = 0
        self._staged: list[bytes] = []
        self._numbers = _NewNumbers()
        self._new = self._already = 0
        self._too_big: list[str] = []
        self._last_order: Order = (-1, -1)
        self._ends_with_new = False

    def takes(self, revisions: Sequence[ImportedRevision]) -> bool:
        """Return whether ``revisions`` come after all added ones."""
        return not revisions or revisions[0].order >= self._last_order

    def add(self, revisions: Sequence[ImportedRevision]) -> None:
        """Insert the revisions that are not stored yet.  Raises StoreUnavailable."""
        for revision in revisions:
            self._last_order = revision.order
            if self._is_there(revision):
                self._already += 1
                continue
            while self._next < len(self._there) and self._there[self._next].is_before(revision):
                self._pass_on()
            self._insert(revision)

    def _is_there(self, revision: ImportedRevision) -> bool:
        """Return whether the revision is stored.  Each stored revision matches only one of the dump."""
        second = revision.order[0] // _SAME_SECOND_MS
        for near in (second, second + 1):
            candidates = self._unmatched.get(near, [])
            found = next((place for place in candidates if place.is_of(revision)), None)
            if found is not None:
                candidates.remove(found)
                return True
        return False

    # --- the new chain -----------------------------------------------------------------------------

    def _pass_on(self) -> None:
        """Append the next stored revision to the new chain."""
        place = self._there[self._next]
        if self._changed_at is None:
            self._last_place = place
        else:
            self._put_stored(place, self._cells_of(place.head))
        self._ends_with_new = False
        self._next += 1

    def _put_stored(self, place: Place, cells: Cells) -> None:
        before = self._last
        at = max(place.origin.time_ms if place.origin else place.time_ms, time_of(before.cells) + 1 if before else 0)
        created = before.cells.get(schema.CREATED, b"%d" % at) if before else b"%d" % at
        previous = before.head.token if before else b""
        again = {**cells, schema.TIME: b"%d" % at, schema.CREATED: created, schema.PREVIOUS: previous}
        for column, value in _KEPT_FROM_NOW_ON.items():
            if before and column in before.cells and column not in again:
                again[column] = value
        again[schema.GROWN] = _grown(again, before.cells if before else {})
        number = before.head.number + 1 if before else self._there[0].head.number
        head = Head(number, _token(number, again), place.head.history)
        self._numbers.by_old[place.head.number] = number
        self._put(Staged(head, again))

    def _insert(self, revision: ImportedRevision) -> None:
        if revision.hidden and self._next == len(self._there):
            self._too_big.append(f"{self._name}: a hidden revision that would be the newest")
            return
        if self._changed_at is None and self._last_place is not None:
            self._last = Staged(self._last_place.head, self._cells_of(self._last_place.head))
        before = self._last
        try:
            if before is not None:
                row = {**page_cells_of_revision(before.head, before.cells), schema.VERSIONCOUNT: before.head.pack()}
                made = self._draw(revision, row, None)
            else:
                made = self._draw(revision, {}, self._there[0].head if self._there else None)
        except PageTooBig as big:
            self._too_big.append(f"{self._name}: {big}")
            return
        if self._changed_at is None:
            self._changed_at = self._next
        self._new += 1
        if revision.hidden:
            self._numbers.hidden.add(made.head.number)
        self._ends_with_new = True
        self._put(made)

    def _put(self, made: Staged) -> None:
        self._last = made
        self._waiting.append(made)
        self._waiting_chars += sum(map(len, made.cells.values()))
        if len(self._waiting) >= MERGED_ROWS or self._waiting_chars >= MERGED_CHARS:
            self._stage()

    def _stage(self) -> None:
        made = {one.row(self.key): one.cells for one in self._waiting}
        self._staged += made
        if made:
            self._wiki.stage_rows(made)
        self._waiting, self._waiting_chars = [], 0

    def _cells_of(self, head: Head) -> Cells:
        row = schema.revision_row(self.key, head)
        return self._wiki.store.run(lambda c: dict(c.table(schema.REVISIONS).row(row)))

    # --- the end -----------------------------------------------------------------------------------

    def finish(self) -> Merged:
        """Commit the new chain.  Raises Conflict if the page was changed meanwhile."""
        while self._next < len(self._there):
            self._pass_on()
        sequence = ""
        if self._changed_at is not None and self._last is not None:
            self._stage()
            sequence = self._commit(self._last)
            self.left = tuple(schema.revision_row(self.key, place.head) for place in self._there[self._changed_at :])
        written_here = [place for place in self._there if not place.is_imported]
        newest_is_ours = bool(self._there) and not self._there[-1].is_imported
        return Merged(
            self._new,
            self._already,
            tuple(self._too_big),
            covers=bool(written_here) and newest_is_ours and self._ends_with_new,
            stays=newest_is_ours and not self._ends_with_new,
            sequence=sequence,
        )

    def _commit(self, last: Staged) -> str:
        row, key = self._row, self.key
        at_ms = min(max(time_of(last.cells), stamp_of(row) + 1), schema.TIME_MAX_MS)
        cells = dict(page_cells_of_revision(last.head, last.cells))
        cells[schema.NAME] = row.get(schema.NAME, cells[schema.NAME])  # the revisions have the old name
        cells[schema.VERSIONCOUNT] = last.head.pack()
        cells[schema.STAMP] = b"%d" % at_ms
        hidden = self._hidden()
        put = self._wiki.store.run(lambda c: _commit(c, key, row, cells, hidden, at_ms, self._wiki.store.is_columnar))
        if put is None and self._wiki.head(self._name) != last.head:
            self.left = tuple(self._staged)
            raise Conflict(self._name, self._wiki.page(self._name))
        if self._wiki.indexes == "application":
            steps = tuple(ChangedCell("put", column, at_ms, value) for column, value in cells.items())
            if hidden is not None:
                steps = (*steps, ChangedCell("put", schema.HIDDEN, at_ms, hidden))
            now = {**row, **cells, **({schema.HIDDEN: hidden} if hidden is not None else {})}
            change = Change(schema.PAGES, key, at_ms, "", steps, now, dict(row), attempt=2)
            self._wiki.store.run(lambda c: run_indexes(c, change))
            return ""
        return put or ""

    def _hidden(self) -> bytes | None:
        """Return ``meta:hidden`` with the new numbers, or None if it stays as it is."""
        stored = hidden_in(self._row)
        now = {self._numbers.by_old.get(number, number) for number in stored} | self._numbers.hidden
        return b",".join(b"%d" % number for number in sorted(now)) if now != stored else None


def _grown(cells: Cells, before: Cells) -> bytes:
    return b"%d" % (len(text_in(cells, schema.REVISION_BODY)) - len(text_in(before, schema.REVISION_BODY)))


def _by_second(there: Sequence[Place]) -> dict[int, list[Place]]:
    found: dict[int, list[Place]] = defaultdict(list)
    for place in there:
        found[place.order[0] // _SAME_SECOND_MS].append(place)
    return found


def _token(number: int, cells: Cells) -> bytes:
    return revision_token(
        text_in(cells, schema.NAME),
        number,
        number_in(cells, schema.TIME),
        text_in(cells, schema.REVISION_AUTHOR),
        text_in(cells, schema.REVISION_NOTE),
        text_in(cells, schema.REVISION_BODY),
        cells.get(schema.PREVIOUS, b""),
        text_in(cells, schema.FORMAT),
        text_in(cells, schema.LANGUAGE),
    )


def _commit(
    connection: Connection, key: bytes, row: Cells, cells: Cells, hidden: bytes | None, at_ms: int, is_columnar: bool
) -> str | None:
    """Commit the chain; return the sequence of the change, or None if the page has a different newest revision."""
    expected = row[schema.VERSIONCOUNT]
    if not is_columnar:
        table = connection.table(schema.PAGES)
        if not check_and_put(connection, schema.PAGES, key, schema.VERSIONCOUNT, expected, cells[schema.VERSIONCOUNT]):
            return None
        table.put(key, {c: v for c, v in cells.items() if c != schema.VERSIONCOUNT}, timestamp=at_ms)
        if hidden is not None:
            table.put(key, {schema.HIDDEN: hidden})
        return ""
    stored = row.get(schema.HIDDEN)
    conditions = [
        Expect(schema.VERSIONCOUNT, expected),
        Expect.absent(schema.HIDDEN) if not stored else Expect(schema.HIDDEN, stored),
    ]
    puts: list[Operation] = [Put(column, value, at_ms) for column, value in cells.items()]
    if hidden is not None:
        puts.append(Put(schema.HIDDEN, hidden))
    result = connection.table(schema.PAGES).check_and_mutate(key, conditions, puts)
    return result.sequence if result.applied else None
