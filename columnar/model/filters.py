"""(pure) The protocol of filters, and their application to the cells of a row.

The protocol is that of HBase 2.6 (``Filter``, ``UserScanQueryMatcher``, ``RegionScannerImpl``), so that
lists, SKIP, WHILE and paging end in the same answers.  For each row of a scan, in this order:

    filter_all_remaining    true: the scan is at its end
    filter_row_key          true: the row is dropped, its cells are normally not even read
    filter_cell             for each cell until the row, its family or its column needs no more
    transform               for each cell that is to be returned
    filter_row_cells        over the list of those, if ``has_filter_row``
    filter_row              true: the row is dropped; called only while cells are left
    reset                   before the next row

A filter is stateful (a page counts rows): it belongs to one scan.  ``clone()`` gives a fresh one.

Invariants:
    I1. Cells come sorted by family, qualifier, newest first, with the older versions that the
        family keeps: filters see them (``ValueFilter`` may return an old version).
    I2. A code is about one family: NEXT_ROW ends the cells of that family, and the filter is called again for the next
        family, as HBase reads each family by a scanner of its own.
    I3. Each column has at most ``max_versions`` of its accepted cells returned, the newest first.
    I4. A row that is dropped by its key changes the filter's state only in this: a prefix or a stop is past, which
        drops all later rows anyway.  So the row need not be read.  Only a filter that ``ends_at_cells`` learns from
        such a row; it needs all rows up to the last that may pass.

Knows nothing of strings (``columnar.model.filter_language``), of storage, and of the rows that a scan visits.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

from columnar.model.bounded_search import SEARCHES
from columnar.model.cell import Cell
from columnar.model.comparators import Comparator, Operator
from columnar.model.row_ranges import EVERY_ROW, RowRanges


class ReturnCode(enum.Enum):
    """The decision on a cell, and the distance to the next cell to check.

    The value is (is the cell included, how far to go: 0 next cell, 1 next column, 2 next family).
    """

    INCLUDE = (True, 0)
    INCLUDE_AND_NEXT_COL = (True, 1)
    INCLUDE_AND_SEEK_NEXT_ROW = (True, 2)
    SKIP = (False, 0)
    NEXT_COL = (False, 1)
    NEXT_ROW = (False, 2)
    SEEK_NEXT_USING_HINT = (False, 3)  # ``next_qualifier`` says where to

    def __init__(self, included: bool, step: int) -> None:
        self.included = included
        self.step = step
        self.number = 4 * included + step  # for tables: hashing a member is a call in Python


class RowAnswer(NamedTuple):
    cells: list[Cell]  # of this row, to be returned by the scan; may be empty
    done: bool  # the scan is at its end


class Filter:
    """Base of all filters: passes everything.  Subclasses are dataclasses whose init fields are the arguments."""

    reversed: bool = False  # the scan goes from high rows to low ones
    has_filter_row: bool = False  # filters whole rows: cannot be used with a scan that cuts rows (batchSize)
    hinting: bool = False  # may answer SEEK_NEXT_USING_HINT (HBase: HintingFilter)
    ends_at_cells: bool = False  # a cell may end the scan, even one of a row that another filter dropped by its key
    completes_rows: bool = False  # ``row_complete`` may become true
    list_levels: int = 0  # how deep lists are nested in it, itself included

    # --- the protocol -------------------------------------------------------------------------
    def reset_row(self) -> None:
        """Forget the row."""

    def filter_all_remaining(self) -> bool:
        return False

    def filter_row_key(self, row: bytes) -> bool:
        return False

    def filter_cell(self, cell: Cell) -> ReturnCode:
        return ReturnCode.INCLUDE

    def next_qualifier(self, cell: Cell) -> bytes | None:
        """Return the first qualifier of the family worth checking, after SEEK_NEXT_USING_HINT on ``cell``."""
        return None

    def transform(self, cell: Cell) -> Cell:
        return cell

    def filter_row_cells(self, cells: list[Cell]) -> list[Cell]:
        return cells

    def filter_row(self) -> bool:
        return False

    # --- hints: what a region may leave unread ---------------------------------------------------
    @property
    def row_ranges(self) -> RowRanges:
        """``filter_row_key`` drops every row outside these ranges, whatever the filter has seen."""
        return EVERY_ROW

    @property
    def is_row_range(self) -> bool:
        """Whether each row passes whole that lies in ``row_ranges``, if these are exact."""
        return False

    @property
    def scan_ranges(self) -> RowRanges:
        """A scan that reads no row outside these ranges has the same answer (I4); call after ``set_reversed``."""
        found = self.row_ranges
        if self.ends_at_cells:
            return found.from_first() if self.reversed else found.before_last()
        return found

    @property
    def tests_values(self) -> bool:
        """Whether ``filter_cell`` reads values."""
        return False

    @property
    def hides_values(self) -> bool:
        """Whether every returned value is replaced by an empty one."""
        return False

    @property
    def needs_values(self) -> bool:
        """False: a region may hand in cells with empty values and the answer is the same."""
        return self.tests_values or not self.hides_values

    @property
    def row_complete(self) -> bool:
        """No further cell of this row can be accepted, nor change what the filter does later."""
        return False

    # --- the tree -----------------------------------------------------------------------------
    def take_direction(self, other: Filter) -> None:
        """Take the direction of ``other``, of which this is a clone; its parts have theirs already."""
        self.reversed = other.reversed

    def set_reversed(self, backwards: bool) -> None:
        """Called once by the scan that goes from high rows to low ones."""
        self.reversed = backwards

    def clone(self) -> Self:
        """The same filter as it was before its first row, direction included."""
        fresh = dataclasses.replace(self)  # type: ignore[type-var]  # every concrete filter is a dataclass
        fresh.set_reversed(self.reversed)
        return fresh

    @property
    def text(self) -> bytes:
        """The filter as a string of the language; parsing it gives the same filter."""
        arguments: list[bytes] = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            if field.init:
                value = getattr(self, field.name)
                arguments += [written(one) for one in value] if isinstance(value, tuple) else [written(value)]
        return type(self).__name__.encode() + b"(" + b", ".join(a for a in arguments if a) + b")"


def written(value: object) -> bytes:
    """Return an argument as the language writes it; an absent optional one is empty."""
    match value:
        case None:
            return b""
        case bool():
            return b"true" if value else b"false"
        case int():
            return b"%d" % value
        case bytes():
            return b"'" + value.replace(b"'", b"''") + b"'"
        case Operator():
            return value.value
        case Comparator():
            return written(value.text)
    raise TypeError(value)


@dataclass(slots=True)
class _Position:
    """Up to where the cells of the row are passed over."""

    family: bytes | None = None  # all of this family
    column: tuple[bytes, bytes] | None = None  # all of this column
    before: tuple[bytes, bytes] | None = None  # this family's columns below the qualifier

    def passes_over(self, cell: Cell) -> bool:
        if cell[0] == self.family or cell[:2] == self.column:
            return True
        return self.before is not None and cell[0] == self.before[0] and cell[1] < self.before[1]

    def move(self, cell: Cell, step: int, flt: Filter) -> None:
        if step == 1:
            self.column = cell[:2]
        elif step == 2:
            self.family = cell.family
        else:
            hint = flt.next_qualifier(cell)
            self.before = None if hint is None else (cell.family, hint)


def apply(flt: Filter, row: bytes, cells: Iterable[Cell], max_versions: int = 1) -> RowAnswer:
    """Run ``flt`` over one row and leave it ready for the next.  PatternTimeout: the row takes too long.

    ``cells`` may be lazy: no cell is taken from it if the row's key decides, and otherwise no more cells than
    needed.  Rows without cells must not be passed.
    """
    filtered = FilteredRow(flt, row, max_versions)
    if filtered.wants_cells:
        filtered.take_cells(cells)
    return filtered.answer()


class FilteredRow:
    """A filter's run over one row whose cells come in pieces: ``take_cells`` while it ``wants_cells``, then ``answer``.

    PatternTimeout of each, which has a bound of its own.
    """

    __slots__ = (
        "_count",
        "_family",
        "_filter",
        "_has_ended",
        "_is_dropped",
        "_kept",
        "_most",
        "_position",
        "_qualifier",
        "wants_cells",
    )

    def __init__(self, flt: Filter, row: bytes, max_versions: int = 1) -> None:
        SEARCHES.begin_row()
        self._filter = flt
        self._most = max_versions
        self._kept: list[Cell] = []
        self._position: _Position | None = None
        self._family: bytes | None = None  # of the last cell that was included, as are the next two
        self._qualifier: bytes | None = None
        self._count = 0
        self._has_ended = flt.filter_all_remaining()
        self._is_dropped = not self._has_ended and flt.filter_row_key(row)
        self.wants_cells = not self._has_ended
        if self._is_dropped:  # HBase walks through the dropped row; only WHILE and the like see that
            self.wants_cells = flt.ends_at_cells and not flt.filter_all_remaining()

    def take_cells(self, cells: Iterable[Cell]) -> int:
        """Apply the filter to further cells; returns the number of cells kept of the row so far.

        Some hundred nanoseconds a cell and filter: every row of a scan calls it.
        """
        flt, kept, most, position = self._filter, self._kept, self._most, self._position
        family, qualifier, count = self._family, self._qualifier, self._count
        ask, ends, completes = flt.filter_cell, flt.ends_at_cells, flt.completes_rows
        for cell in cells:
            if position is not None and position.passes_over(cell):
                continue
            if ends and flt.filter_all_remaining():
                self.wants_cells = False
                break
            code = ask(cell)
            step = code.step
            if code.included:
                if cell[1] != qualifier or cell[0] != family:
                    family, qualifier, count = cell[0], cell[1], 0
                count += 1
                if count <= most:
                    kept.append(flt.transform(cell))
                else:  # by now HBase, too, has called the filter once more than it returns
                    step = max(step, 1)
            if step:
                position = position or _Position()
                position.move(cell, step, flt)
            if completes and flt.row_complete:
                self.wants_cells = False
                break
        self._position, self._family, self._qualifier, self._count = position, family, qualifier, count
        return len(kept)

    def answer(self) -> RowAnswer:
        """Leave the filter ready for the next row."""
        flt, kept = self._filter, self._kept
        if self._has_ended:
            return RowAnswer([], True)
        if self._is_dropped:
            kept = []
        else:
            if flt.has_filter_row:
                kept = flt.filter_row_cells(kept)
            if kept and flt.filter_row():
                kept = []
        flt.reset_row()
        return RowAnswer(kept, flt.filter_all_remaining())
