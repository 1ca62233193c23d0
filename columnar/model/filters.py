"""(pure) The protocol of filters, and their application to the cells of a row.

The protocol is that of HBase 2.6 (``Filter``, ``UserScanQueryMatcher``, ``RegionScannerImpl``), so that
lists, SKIP, WHILE and paging give the same answers.  The scan calls for each row, in this order:

    filter_all_remaining    true: the scan ends
    filter_row_key          true: the row is dropped, its cells are normally not even read
    filter_cell             for each cell until the row, its family or its column needs no more
    transform               for each accepted cell
    filter_row_cells        with the list of the accepted cells, if ``has_filter_row``
    filter_row              true: the row is dropped; called only if cells are left
    reset                   before the next row

A filter is stateful (a page counts rows): it belongs to one scan.  ``clone()`` returns one in the initial state.

Invariants:
    I1. Cells come sorted by family and qualifier, the newest version first, with the older versions that the
        family keeps.  Filters see the older versions too, so ``ValueFilter`` may return an old one.
    I2. A code is about one family: NEXT_ROW ends the cells of that family only.  The filter is called again for the
        next family, because HBase reads each family by its own scanner.
    I3. At most ``max_versions`` of a column's accepted cells are returned, the newest first.
    I4. A row that is dropped by its key changes the filter's state in one case only: if the scan has passed a prefix or
        a stop row, all later rows are dropped too.  So a row that is dropped by its key need not be read.  The
        exception is a filter that ``ends_at_cells``: it must see all rows up to the last row that may pass.

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
    """The decision on a cell, and the step to the next cell to check.

    The value is (whether the cell is included, step); the steps are 0 next cell, 1 next column, 2 next family, 3 to the
    filter's hint.
    """

    INCLUDE = (True, 0)
    INCLUDE_AND_NEXT_COL = (True, 1)
    INCLUDE_AND_SEEK_NEXT_ROW = (True, 2)
    SKIP = (False, 0)
    NEXT_COL = (False, 1)
    NEXT_ROW = (False, 2)
    SEEK_NEXT_USING_HINT = (False, 3)  # to the qualifier that ``next_qualifier`` returns

    def __init__(self, included: bool, step: int) -> None:
        self.included = included
        self.step = step
        self.number = 4 * included + step  # index of tables, since hashing a member is a slow call


class RowAnswer(NamedTuple):
    cells: list[Cell]  # the cells of this row that the scan returns; may be empty
    done: bool  # the scan ends


class Filter:
    """Base of all filters; passes everything.  Subclasses are dataclasses: their init fields are the arguments."""

    reversed: bool = False  # the scan goes from high rows to low ones
    has_filter_row: bool = False  # filters whole rows, so not for a scan that cuts rows (batchSize)
    hinting: bool = False  # may return SEEK_NEXT_USING_HINT (HBase: HintingFilter)
    ends_at_cells: bool = False  # a cell may end the scan, even if another filter dropped its row by the key
    completes_rows: bool = False  # ``row_complete`` may become true
    list_levels: int = 0  # how deep lists are nested in the filter, counting the filter itself

    # --- the protocol -------------------------------------------------------------------------
    def reset_row(self) -> None:
        """Forget the current row."""

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
        """The ranges outside of which ``filter_row_key`` drops every row, in any state of the filter."""
        return EVERY_ROW

    @property
    def is_row_range(self) -> bool:
        """Whether every row in ``row_ranges`` passes with all its cells, provided that the ranges are exact."""
        return False

    @property
    def scan_ranges(self) -> RowRanges:
        """The ranges that a scan must read for a correct answer (I4).  Read the property after ``set_reversed``."""
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
        """Whether values matter; if not, cells with empty values give the same answer."""
        return self.tests_values or not self.hides_values

    @property
    def row_complete(self) -> bool:
        """Whether the row's further cells can neither be accepted nor change the filter's later decisions."""
        return False

    # --- the tree -----------------------------------------------------------------------------
    def take_direction(self, other: Filter) -> None:
        """Take the direction of ``other``, the original of this clone.  The inner filters already have it."""
        self.reversed = other.reversed

    def set_reversed(self, backwards: bool) -> None:
        """Set the direction.  A scan from high rows to low rows calls it once with True."""
        self.reversed = backwards

    def clone(self) -> Self:
        """Return the filter in its state before the first row, with the same direction."""
        fresh = dataclasses.replace(self)  # type: ignore[type-var]  # every concrete filter is a dataclass
        fresh.set_reversed(self.reversed)
        return fresh

    @property
    def text(self) -> bytes:
        """The filter as a string of the filter language; parsing the string gives an equal filter."""
        arguments: list[bytes] = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            if field.init:
                value = getattr(self, field.name)
                arguments += [written(one) for one in value] if isinstance(value, tuple) else [written(value)]
        return type(self).__name__.encode() + b"(" + b", ".join(a for a in arguments if a) + b")"


def written(value: object) -> bytes:
    """Return an argument as the filter language writes it; for a missing optional argument an empty text."""
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
    """The cells of the current row that are skipped."""

    family: bytes | None = None  # skip all cells of this family
    column: tuple[bytes, bytes] | None = None  # skip all cells of this column
    before: tuple[bytes, bytes] | None = None  # skip this family's columns below the qualifier

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
    """Run ``flt`` over one row and leave the filter ready for the next row.

    ``cells`` may be lazy: no cell is taken from it if the row's key decides, and otherwise no more cells than
    needed.  Callers must not pass rows without cells.  Raises PatternTimeout if the row takes too long.
    """
    filtered = FilteredRow(flt, row, max_versions)
    if filtered.wants_cells:
        filtered.take_cells(cells)
    return filtered.answer()


class FilteredRow:
    """A filter's run over one row whose cells come in pieces.

    Call ``take_cells`` while ``wants_cells`` is true, then ``answer``.  Each row has its own time bound, beyond which
    these calls raise PatternTimeout.
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
        self._family: bytes | None = None  # of the last included cell; so are the next two fields
        self._qualifier: bytes | None = None
        self._count = 0
        self._has_ended = flt.filter_all_remaining()
        self._is_dropped = not self._has_ended and flt.filter_row_key(row)
        self.wants_cells = not self._has_ended
        if self._is_dropped:  # HBase reads the dropped row's cells; only filters as WHILE notice
            self.wants_cells = flt.ends_at_cells and not flt.filter_all_remaining()

    def take_cells(self, cells: Iterable[Cell]) -> int:
        """Apply the filter to further cells; returns the number of cells kept of the row so far.

        The call takes some hundred nanoseconds per cell and filter; every row of a scan makes it.
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
                else:  # HBase too calls the filter for one cell more than it returns
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
        """Return the answer for the row, and leave the filter ready for the next row."""
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
