"""The check of comments: every fault between pages, comments and lists, and its repair.

    table           fault                                                          kind
    pages, deleted  ``comment:head`` is no head, or counts other comments          different
                    ``comment:head`` in a row that is no page                      stale
    comments        a number up to the head's has no comment                       lost
                    a staged change, older than GRACE_MS (``comment_rows``)        stale
                    a row of no page, or above the page's newest number            stale
    comment_lists   a row, or the name of a page, that follows is not there        missing
                    a row that does not follow                                     stale

Memory: some hundred bytes for each page with comments, and some hundred comments without their texts' HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Final, TypeVar

from wikka_port import schema
from wikka_port.accounts.rows import Cells, Rows
from wikka_port.comments.comment_lists import (
    LISTED,
    LISTS,
    PAGE,
    comment_row_of_list,
    number_of_thread_row,
    page_row,
    rows_of_comment,
)
from wikka_port.comments.comment_rows import (
    COMMENT_FAMILY,
    COMMENTS,
    COMMENTS_HEAD,
    GRACE_MS,
    NO_COMMENTS,
    STAGED,
    Comment,
    CommentsHead,
    comment_of,
    comment_row,
    committed_cells,
    op_ms,
    parse_comment_row,
    parse_comments_head,
)
from wikka_port.comments.stored_comments import StoredComments
from wikka_port.differences import Difference, Kind
from wikka_port.moving.journal import DELETED
from wikka_port.page_rows import head_of, is_there
from wikka_port.schema import KEY_BYTES

_STEP: Final = 200
T = TypeVar("T")


def is_of_comments(one: Difference) -> bool:
    """Return whether ``CommentCheck.repair`` repairs it; faults of lists are repaired as those of all lists."""
    return one.table == COMMENTS or one.column == COMMENTS_HEAD


@dataclass(frozen=True, slots=True)
class _Place:
    """The row of a page with comments."""

    table: bytes
    key: bytes
    cell: bytes
    name: bytes
    head: CommentsHead


class CommentCheck:
    """A check of all comments.  Every method may raise StoreUnavailable."""

    def __init__(
        self, rows: Rows, comments: StoredComments, now_ms: int, at: Callable[[int], int] = lambda source_ms: source_ms
    ) -> None:
        """Take ``at``, which returns the time of a repair of a list from that of its source."""
        self._rows = rows
        self._comments = comments
        self._now = now_ms
        self._at = at
        self._places: dict[bytes, _Place] = {}  # by history

    def differences(self) -> Iterator[Difference]:
        """Yield all faults.  O(comments and pages with comments)."""
        yield from self._find_places()
        left = dict(self._places)
        for history, group in groupby(self._rows.scan(COMMENTS), key=lambda one: one[0][:KEY_BYTES]):
            yield from self._of_page(history, left.pop(history, None), group)
        for history, place in left.items():
            yield from self._of_page(history, place, ())
        yield from self._of_lists()

    def _find_places(self) -> Iterator[Difference]:
        columns = [COMMENT_FAMILY, schema.VERSIONCOUNT, schema.NAME]
        for table in (schema.PAGES, DELETED):
            for key, cells in self._rows.scan(table, columns=columns):
                cell = cells.get(COMMENTS_HEAD)
                if cell is None:
                    continue
                if not is_there(cells):
                    yield Difference(Kind.STALE, table, key, COMMENTS_HEAD, None, cell, self._now)
                    continue
                place = _Place(table, key, cell, cells.get(schema.NAME, b""), _head_in(cell))
                self._places[head_of(cells).place(key)] = place

    # --- one page ----------------------------------------------------------------------------------

    def _of_page(
        self, history: bytes, place: _Place | None, group: Iterable[tuple[bytes, Cells]]
    ) -> Iterator[Difference]:
        head = place.head if place is not None else NO_COMMENTS
        numbers, count, highest = set[int](), 0, 0
        for step in _in_steps(group):
            found = list[Comment]()
            for row, cells in step:
                yield from self._staged(row, cells)
                number = parse_comment_row(row)[1]
                committed = committed_cells(number, cells, head)
                if not committed:
                    continue
                if place is None or number > head.number:
                    if self._is_old(op_ms(committed.get(b"c:op", b""))):
                        yield Difference(Kind.STALE, COMMENTS, row, b"", None, committed.get(b"c:author"), self._now)
                    continue
                found.append(comment_of(number, committed))
            numbers |= {one.number for one in found}
            count += sum(one.is_visible for one in found)
            highest = max([highest, *(one.number for one in found)])
            yield from self._missing_rows(history, found)
        if place is None:
            return
        for number in range(1, head.number + 1):
            if number not in numbers:
                yield Difference(Kind.LOST, COMMENTS, comment_row(history, number), b"", None, b"a comment", self._now)
        expected = replace(head, count=count, number=max(head.number, highest)).pack()
        if expected != place.cell:
            yield Difference(Kind.DIFFERENT, place.table, place.key, COMMENTS_HEAD, expected, place.cell, self._now)

    def _staged(self, row: bytes, cells: Cells) -> Iterator[Difference]:
        for column in cells:
            at_ms = op_ms(column.removeprefix(STAGED)) if column.startswith(STAGED) else self._now
            if self._is_old(at_ms):
                yield Difference(Kind.STALE, COMMENTS, row, column, None, b"a staged change", at_ms)

    def _is_old(self, time_ms: int) -> bool:
        return self._now - time_ms > GRACE_MS

    # --- lists -------------------------------------------------------------------------------------

    def _missing_rows(self, history: bytes, found: Collection[Comment]) -> Iterator[Difference]:
        wanted = {row: op_ms(one.op) for one in found for row in rows_of_comment(history, one)}
        there = self._rows.rows(LISTS, list(wanted)).keys()
        for row in sorted(wanted.keys() - there):
            yield Difference(Kind.MISSING, LISTS, row, LISTED, b"1", None, self._at(wanted[row]))

    def _of_lists(self) -> Iterator[Difference]:
        for step in _in_steps(self._rows.scan(LISTS)):
            named = {row: comment for row, _ in step if (comment := self._named_comment(row)) is not None}
            stored = self._rows.rows(COMMENTS, sorted(set(named.values())))
            for row, cells in step:
                if row.startswith(b"p"):
                    yield from self._of_name(row, cells)
                elif not self._follows(row, named.get(row), stored):
                    yield from (
                        Difference(Kind.STALE, LISTS, row, c, None, v, self._at(self._now)) for c, v in cells.items()
                    )
        wanted = {page_row(history): one for history, one in self._places.items() if one.table == schema.PAGES}
        for rows in _in_steps(sorted(wanted)):
            there = self._rows.rows(LISTS, rows)
            for row in rows:
                column, name = PAGE + wanted[row].key, wanted[row].name
                found = there.get(row, {}).get(column)
                if found != name:
                    kind = Kind.MISSING if found is None else Kind.DIFFERENT
                    at_ms = self._at(wanted[row].head.at_ms)
                    yield Difference(kind, LISTS, row, column, name, found, at_ms)

    def _named_comment(self, row: bytes) -> bytes | None:
        """Return the row in ``comments`` that a row of a list names, or None if it names none."""
        if row[:1] == b"t" and row[-7:].isdigit() and len(row) > KEY_BYTES:
            return comment_row(row[1 : 1 + KEY_BYTES], number_of_thread_row(row))
        return comment_row_of_list(row) if row[:1] in (b"r", b"u") else None

    def _follows(self, row: bytes, named: bytes | None, stored: Mapping[bytes, Cells]) -> bool:
        """Return whether a row of a list follows from its comment."""
        if named is None or named not in stored:
            return False
        history, number = parse_comment_row(named)
        place = self._places.get(history)
        cells = committed_cells(number, stored[named], NO_COMMENTS if place is None else place.head)
        return bool(cells) and row in rows_of_comment(history, comment_of(number, cells))

    def _of_name(self, row: bytes, cells: Cells) -> Iterator[Difference]:
        place = self._places.get(row[1:])
        own = PAGE + place.key if place is not None and place.table == schema.PAGES else b""
        yield from self._stale(row, {column: value for column, value in cells.items() if column != own})

    def _stale(self, row: bytes, cells: Cells) -> Iterator[Difference]:
        for column, value in cells.items():
            yield Difference(Kind.STALE, LISTS, row, column, None, value, self._at(self._now))

    # --- repair ------------------------------------------------------------------------------------

    def repair(self, found: Collection[Difference]) -> None:
        """Repair what can be: finish staged changes, then correct heads, then remove rows of no page."""
        staged = [(one.row, one.column) for one in found if one.table == COMMENTS and one.column]
        self._comments.finish_staged(staged)
        for one in found:
            if one.column == COMMENTS_HEAD and one.kind is Kind.STALE:
                self._rows.delete(one.table, one.row, [COMMENTS_HEAD])
            elif one.column == COMMENTS_HEAD and one.expected is not None:
                self._rows.change(one.table, one.row, {one.column: one.found}, {one.column: one.expected})
            elif one.kind is Kind.STALE and not one.column:
                self._rows.delete(COMMENTS, one.row)


def _head_in(cell: bytes) -> CommentsHead:
    try:
        return parse_comments_head(cell)
    except ValueError:
        return NO_COMMENTS


def _in_steps(found: Iterable[T]) -> Iterator[list[T]]:
    left = iter(found)
    while step := list(islice(left, _STEP)):
        yield step
