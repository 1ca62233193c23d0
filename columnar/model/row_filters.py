"""(pure) Filters that decide by the row's key, by the number of rows, or by the number of columns in the row.

Each filter follows the HBase class of the same name.

Knows nothing of values or of how filters are combined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from columnar.model.cell import Cell
from columnar.model.comparators import Comparator, Operator, predicate
from columnar.model.filters import Filter, ReturnCode
from columnar.model.row_ranges import EVERY_ROW, RowRange, RowRanges, below, of_prefix, of_row


@dataclass(eq=False)
class RowFilter(Filter):
    op: Operator
    right: Comparator
    _passes: Callable[[bytes], bool] = field(init=False, repr=False)
    _dropped: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._passes = predicate(self.op, self.right)

    def reset_row(self) -> None:
        self._dropped = False

    def filter_row_key(self, row: bytes) -> bool:
        self._dropped = not self._passes(row)
        return self._dropped

    def filter_cell(self, cell: Cell) -> ReturnCode:
        return ReturnCode.NEXT_ROW if self._dropped else ReturnCode.INCLUDE

    def filter_row(self) -> bool:
        return self._dropped

    @property
    def is_row_range(self) -> bool:
        return self.right.ordered

    @property
    def row_ranges(self) -> RowRanges:
        if not self.right.ordered:
            return EVERY_ROW
        operand = self.right.operand
        equal = of_row(operand) if self.right.kind == b"binary" else of_prefix(operand)
        if self.op is Operator.EQUAL:  # tested first: a filter may hold thousands of them
            return RowRanges([equal])
        greater = [] if equal.stop is None else [RowRange(equal.stop, None)]
        return RowRanges.of(
            {
                Operator.LESS: [below(equal.start)],
                Operator.LESS_OR_EQUAL: [below(equal.stop)],
                Operator.NOT_EQUAL: [below(equal.start), *greater],
                Operator.GREATER_OR_EQUAL: [RowRange(equal.start, None)],
                Operator.GREATER: greater,
            }[self.op]
        )


@dataclass(eq=False)
class PrefixFilter(Filter):
    prefix: bytes
    _dropped: bool = field(init=False, default=True)
    _passed: bool = field(init=False, default=False)  # the scan is beyond the rows of the prefix

    def reset_row(self) -> None:
        self._dropped = True

    def filter_all_remaining(self) -> bool:
        return self._passed

    def filter_row_key(self, row: bytes) -> bool:
        if self._passed or len(row) < len(self.prefix):
            return True
        head = row[: len(self.prefix)]
        self._passed = head < self.prefix if self.reversed else head > self.prefix
        self._dropped = head != self.prefix
        return self._dropped

    def filter_cell(self, cell: Cell) -> ReturnCode:
        return ReturnCode.NEXT_ROW if self._dropped else ReturnCode.INCLUDE

    def filter_row(self) -> bool:
        return self._dropped

    @property
    def is_row_range(self) -> bool:
        return True

    @property
    def row_ranges(self) -> RowRanges:
        return RowRanges.of([of_prefix(self.prefix)])


@dataclass(eq=False)
class InclusiveStopFilter(Filter):
    """Ends the scan after the row ``stop``, which is still returned."""

    stop: bytes
    _done: bool = field(init=False, default=False)

    def filter_all_remaining(self) -> bool:
        return self._done

    def filter_row_key(self, row: bytes) -> bool:
        self._done = self._done or (row < self.stop if self.reversed else row > self.stop)
        return self._done

    def filter_cell(self, cell: Cell) -> ReturnCode:
        return ReturnCode.NEXT_ROW if self._done else ReturnCode.INCLUDE

    @property
    def is_row_range(self) -> bool:
        return True

    @property
    def row_ranges(self) -> RowRanges:
        return RowRanges.of([RowRange(self.stop, None) if self.reversed else below(self.stop + b"\0")])


@dataclass(eq=False)
class PageFilter(Filter):
    """Ends the scan after ``rows`` rows.  HBase restarts the count in each region; we count over the whole scan."""

    has_filter_row = True

    rows: int
    _accepted: int = field(init=False, default=0)

    def filter_all_remaining(self) -> bool:
        return self._accepted >= self.rows

    def filter_row(self) -> bool:
        self._accepted += 1
        return self._accepted > self.rows


@dataclass(eq=False)
class FirstKeyOnlyFilter(Filter):
    """Passes only the first cell of each row, which is enough for counting rows."""

    completes_rows = True

    _found: bool = field(init=False, default=False)

    def reset_row(self) -> None:
        self._found = False

    def filter_cell(self, cell: Cell) -> ReturnCode:
        if self._found:
            return ReturnCode.NEXT_ROW
        self._found = True
        return ReturnCode.INCLUDE

    @property
    def row_complete(self) -> bool:
        return self._found


@dataclass(eq=False)
class ColumnCountGetFilter(Filter):
    """Passes the first ``columns`` columns of a row; the scan ends in the first row that has more.

    HBase instead continues with the next row, but without the families that it had not reached in that row.
    """

    ends_at_cells = True

    columns: int
    _seen: int = field(init=False, default=0)
    _ended: bool = field(init=False, default=False)

    def reset_row(self) -> None:
        self._seen = 0

    def filter_all_remaining(self) -> bool:
        return self._ended

    def filter_cell(self, cell: Cell) -> ReturnCode:
        self._seen += 1
        self._ended = self._ended or self._seen > self.columns
        return ReturnCode.NEXT_COL if self._ended else ReturnCode.INCLUDE_AND_NEXT_COL


@dataclass(eq=False)
class ColumnPaginationFilter(Filter):
    """Passes ``limit`` columns of each row after the first ``offset``, counted over all families."""

    completes_rows = True

    limit: int
    offset: int
    _seen: int = field(init=False, default=0)

    def reset_row(self) -> None:
        self._seen = 0

    def filter_cell(self, cell: Cell) -> ReturnCode:
        if self._seen >= self.offset + self.limit:
            return ReturnCode.NEXT_ROW
        self._seen += 1
        return ReturnCode.NEXT_COL if self._seen <= self.offset else ReturnCode.INCLUDE_AND_NEXT_COL

    @property
    def row_complete(self) -> bool:
        return self._seen >= self.offset + self.limit
