"""(pure) Filters over filters: AND, OR, SKIP, WHILE.

A return code says whether a cell is included and how far to move on.  AND includes the cells that all its filters
include and takes the longest step that any filter requests.  OR includes the cells that at least one filter includes
and takes the shortest requested step.  Both follow HBase 2.6 (``FilterListWithAND``, ``FilterListWithOR``).  AND stops
calling filters at the first one that drops the cell, so the order of its filters matters to filters that count.  OR
remembers for each filter the cells that the filter has finished with, because the list may take shorter steps than
the filter requested.

Knows nothing of the single filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Self

from columnar.limits import FILTER_LEVELS, FILTER_RANGES, FILTER_RANGES_DEEP
from columnar.model.cell import Cell
from columnar.model.filters import Filter, ReturnCode
from columnar.model.row_ranges import RowRanges, intersection, union

_HINT: Final = ReturnCode.SEEK_NEXT_USING_HINT
_CODES: Final = {(code.included, code.step): code for code in ReturnCode}


def _both(a: ReturnCode, b: ReturnCode) -> ReturnCode:
    if _HINT in (a, b):
        return _HINT
    return _CODES[a.included and b.included, max(a.step, b.step)]


def _either(a: ReturnCode, b: ReturnCode) -> ReturnCode:
    if a is b:
        return a
    # The distance of a hint is not known at this point, so in combination with another code it counts as one cell.
    steps = (0 if code is _HINT else code.step for code in (a, b))
    return _CODES[a.included or b.included, min(steps)]


def _table(merge: Callable[[ReturnCode, ReturnCode], ReturnCode]) -> list[list[ReturnCode]]:
    by_number = sorted(ReturnCode, key=lambda code: code.number)
    return [[merge(a, b) for b in by_number] for a in by_number]


_BOTH: Final = _table(_both)
_EITHER: Final = _table(_either)
assert [code.number for code in sorted(ReturnCode, key=lambda code: code.number)] == list(range(len(ReturnCode)))


class FilterList(Filter):
    """Base of AND and OR."""

    keyword: bytes

    def __init__(self, filters: Iterable[Filter]) -> None:
        self.filters: Final = tuple(filters)
        self.has_filter_row = any(f.has_filter_row for f in self.filters)
        self.ends_at_cells = any(f.ends_at_cells for f in self.filters)
        self.tests = any(f.tests_values for f in self.filters)
        self.is_range = all(f.is_row_range for f in self.filters)
        self.list_levels = 1 + max((f.list_levels for f in self.filters), default=0)
        self.hides = False

    def reset_row(self) -> None:
        for f in self.filters:
            f.reset_row()

    def filter_row_cells(self, cells: list[Cell]) -> list[Cell]:
        for f in self.filters:
            cells = f.filter_row_cells(cells)
        return cells

    @property
    def tests_values(self) -> bool:
        return self.tests

    @property
    def hides_values(self) -> bool:
        return self.hides

    @property
    def is_row_range(self) -> bool:
        return self.is_range

    @property
    def _most_ranges(self) -> int:
        """The bound on ranges per list, which bounds the cost for a tree of lists, O(levels x ranges)."""
        return FILTER_RANGES if self.list_levels <= FILTER_LEVELS else FILTER_RANGES_DEEP

    def _ranges(self) -> list[RowRanges]:
        found: list[RowRanges] = []
        for f in self.filters:  # a loop, as in ``clone``
            found.append(f.row_ranges)
        return found

    def set_reversed(self, backwards: bool) -> None:
        self.reversed = backwards
        for f in self.filters:
            f.set_reversed(backwards)

    def clone(self) -> Self:
        copies: list[Filter] = []
        for f in self.filters:  # a loop: comprehensions would double the frames of a deep tree
            copies.append(f.clone())
        fresh = type(self)(copies)
        fresh.take_direction(self)
        return fresh

    @property
    def text(self) -> bytes:
        written: list[bytes] = []
        for f in self.filters:
            text = f.text
            written.append(b"(" + text + b")" if isinstance(f, FilterList) else text)
        return self.keyword.join(written)


class AndList(FilterList):
    keyword = b" AND "

    def __init__(self, filters: Iterable[Filter]) -> None:
        super().__init__(filters)
        self.hides = any(f.hides_values for f in self.filters)
        if not self.has_filter_row and not self.ends_at_cells:
            self.completes_rows = any(f.completes_rows for f in self.filters)
        self._hinting: list[Filter] = []

    def reset_row(self) -> None:
        super().reset_row()
        self._hinting.clear()

    def filter_all_remaining(self) -> bool:
        return any(f.filter_all_remaining() for f in self.filters)

    def filter_row_key(self, row: bytes) -> bool:
        dropped = False
        for f in self.filters:  # call every filter: prefix and stop filters learn the row by this call
            if f.filter_all_remaining() or f.filter_row_key(row):
                dropped = True
        return dropped

    def filter_cell(self, cell: Cell) -> ReturnCode:
        self._hinting.clear()
        code = ReturnCode.INCLUDE
        asking: Iterator[Filter] = iter(self.filters)
        for f in asking:
            if f.filter_all_remaining():
                code = ReturnCode.NEXT_ROW
                break
            local = f.filter_cell(cell)
            if local is _HINT:
                self._hinting.append(f)
            code = _BOTH[code.number][local.number]
            if not code.included:
                break
        for f in asking:  # the cell is dropped, but later filters may give a hint
            if f.hinting and f.filter_cell(cell) is _HINT:
                self._hinting.append(f)
        return _HINT if self._hinting else code

    def next_qualifier(self, cell: Cell) -> bytes | None:
        furthest: bytes | None = None
        for f in self._hinting:
            hint = f.next_qualifier(cell)
            if hint is not None and (furthest is None or hint > furthest):
                furthest = hint
        return furthest

    def transform(self, cell: Cell) -> Cell:
        for f in self.filters:
            cell = f.transform(cell)
        return cell

    def filter_row(self) -> bool:
        return any(f.filter_row() for f in self.filters)

    @property
    def row_ranges(self) -> RowRanges:
        return intersection(self._ranges(), self._most_ranges)

    @property
    def row_complete(self) -> bool:
        return self.completes_rows and any(f.row_complete for f in self.filters)


class OrList(FilterList):
    keyword = b" OR "

    def __init__(self, filters: Iterable[Filter]) -> None:
        super().__init__(filters)
        self.hides = all(f.hides_values for f in self.filters)
        self._forget()

    def _forget(self) -> None:
        self._codes: list[ReturnCode | None] = [None] * len(self.filters)
        self._previous: list[Cell | None] = [None] * len(self.filters)
        self._included = [False] * len(self.filters)

    def reset_row(self) -> None:
        super().reset_row()
        self._forget()

    def filter_all_remaining(self) -> bool:
        return all(f.filter_all_remaining() for f in self.filters)

    def filter_row_key(self, row: bytes) -> bool:
        dropped = True
        for f in self.filters:
            if not f.filter_all_remaining() and not f.filter_row_key(row):
                dropped = False
        return dropped

    def _settled(self, index: int, cell: Cell) -> ReturnCode | None:
        """Return the filter's code for ``cell`` if the filter's last step passes over the cell, otherwise None."""
        code, previous = self._codes[index], self._previous[index]
        if code is None or previous is None or cell.family != previous.family:
            return None
        if code is _HINT:
            hint = self.filters[index].next_qualifier(previous)
            return _HINT if hint is not None and cell.qualifier < hint else None
        if code.step == 1:
            return ReturnCode.NEXT_COL if cell.qualifier == previous.qualifier else None
        return ReturnCode.NEXT_ROW

    def filter_cell(self, cell: Cell) -> ReturnCode:
        merged: ReturnCode | None = None
        for index, f in enumerate(self.filters):
            self._included[index] = False
            if f.filter_all_remaining():
                continue
            code = self._settled(index, cell) or f.filter_cell(cell)
            self._codes[index] = code
            self._previous[index] = None if code in (ReturnCode.INCLUDE, ReturnCode.SKIP) else cell
            self._included[index] = code.included
            merged = code if merged is None else _EITHER[merged.number][code.number]
        return merged or ReturnCode.SKIP

    def next_qualifier(self, cell: Cell) -> bytes | None:
        nearest: bytes | None = None
        for f in self.filters:
            if f.filter_all_remaining():
                continue
            hint = f.next_qualifier(cell)
            if hint is None:
                return None
            if nearest is None or hint < nearest:
                nearest = hint
        return nearest

    def transform(self, cell: Cell) -> Cell:
        for f, included in zip(self.filters, self._included, strict=True):
            if included:
                cell = f.transform(cell)
        return cell

    def filter_row(self) -> bool:
        return all(f.filter_row() for f in self.filters)

    @property
    def row_ranges(self) -> RowRanges:
        return union(self._ranges(), self._most_ranges)


class _Wrapper(Filter):
    """Base of SKIP and WHILE."""

    has_filter_row = True
    keyword: bytes

    def __init__(self, inner: Filter) -> None:
        self.inner: Final = inner
        self.list_levels = inner.list_levels

    def reset_row(self) -> None:
        self.inner.reset_row()

    def transform(self, cell: Cell) -> Cell:
        return self.inner.transform(cell)

    @property
    def tests_values(self) -> bool:
        return self.inner.tests_values

    @property
    def hides_values(self) -> bool:
        return self.inner.hides_values

    def set_reversed(self, backwards: bool) -> None:
        self.reversed = backwards
        self.inner.set_reversed(backwards)

    def clone(self) -> Self:
        fresh = type(self)(self.inner.clone())
        fresh.take_direction(self)
        return fresh

    @property
    def text(self) -> bytes:
        text = self.inner.text
        return self.keyword + (b"(" + text + b")" if isinstance(self.inner, FilterList) else text)


class SkipFilter(_Wrapper):
    """``SKIP f``: drops a row if ``f`` returns a code other than INCLUDE for any of its cells."""

    keyword = b"SKIP "

    def __init__(self, inner: Filter) -> None:
        super().__init__(inner)
        self._dropped = False

    @property
    def ends_at_cells(self) -> bool:  # type: ignore[override]
        return self.inner.ends_at_cells

    def reset_row(self) -> None:
        super().reset_row()
        self._dropped = False

    def filter_cell(self, cell: Cell) -> ReturnCode:
        code = self.inner.filter_cell(cell)
        self._dropped = self._dropped or code is not ReturnCode.INCLUDE
        return code

    def filter_row(self) -> bool:
        return self._dropped


class WhileMatchFilter(_Wrapper):
    """``WHILE f``: ends the scan at the first row that ``f`` drops, or the first cell without the code INCLUDE."""

    ends_at_cells = True
    keyword = b"WHILE "

    def __init__(self, inner: Filter) -> None:
        super().__init__(inner)
        self._ended = False

    def filter_all_remaining(self) -> bool:
        return self._ended or self.inner.filter_all_remaining()

    def filter_row_key(self, row: bytes) -> bool:
        if self.filter_all_remaining():
            return True
        dropped = self.inner.filter_row_key(row)
        self._ended = self._ended or dropped
        return dropped

    def filter_cell(self, cell: Cell) -> ReturnCode:
        code = self.inner.filter_cell(cell)
        self._ended = self._ended or code is not ReturnCode.INCLUDE
        return code

    def filter_row(self) -> bool:
        dropped = self.inner.filter_row()
        self._ended = self._ended or dropped
        return dropped

    @property
    def row_ranges(self) -> RowRanges:
        return self.inner.row_ranges
