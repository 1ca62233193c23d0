"""(pure) Filters that decide by a cell: its family, qualifier, timestamp or value.

Each filter follows the HBase class of the same name.

Knows nothing of how filters are combined.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from columnar.model.cell import Cell
from columnar.model.comparators import Comparator, Operator, predicate
from columnar.model.filters import Filter, ReturnCode


@dataclass(eq=False)
class KeyOnlyFilter(Filter):
    """Replaces every value by an empty one, or by its length as four bytes, big-endian."""

    length_as_value: bool | None = None

    def transform(self, cell: Cell) -> Cell:
        value = len(cell.value).to_bytes(4, "big") if self.length_as_value else b""
        return Cell(cell.family, cell.qualifier, cell.timestamp, value)

    @property
    def hides_values(self) -> bool:
        return not self.length_as_value

    @property
    def tests_values(self) -> bool:
        return bool(self.length_as_value)


@dataclass(eq=False)
class _Comparison(Filter):
    op: Operator
    right: Comparator
    _passes: Callable[[bytes], bool] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._passes = predicate(self.op, self.right)


@dataclass(eq=False)
class FamilyFilter(_Comparison):
    def filter_cell(self, cell: Cell) -> ReturnCode:
        return ReturnCode.INCLUDE if self._passes(cell.family) else ReturnCode.NEXT_ROW


@dataclass(eq=False)
class QualifierFilter(_Comparison):
    def filter_cell(self, cell: Cell) -> ReturnCode:
        return ReturnCode.INCLUDE if self._passes(cell.qualifier) else ReturnCode.SKIP


@dataclass(eq=False)
class ValueFilter(_Comparison):
    def filter_cell(self, cell: Cell) -> ReturnCode:
        return ReturnCode.INCLUDE if self._passes(cell.value) else ReturnCode.SKIP

    @property
    def tests_values(self) -> bool:
        return True


@dataclass(eq=False)
class ColumnPrefixFilter(Filter):
    hinting = True

    prefix: bytes

    def filter_cell(self, cell: Cell) -> ReturnCode:
        if cell.qualifier.startswith(self.prefix):
            return ReturnCode.INCLUDE
        return ReturnCode.SEEK_NEXT_USING_HINT if cell.qualifier < self.prefix else ReturnCode.NEXT_ROW

    def next_qualifier(self, cell: Cell) -> bytes | None:
        return self.prefix


@dataclass(eq=False)
class MultipleColumnPrefixFilter(Filter):
    """Passes columns that begin with one of the prefixes; without prefixes it passes all columns.

    As in HBase a qualifier is compared only with the greatest prefix that is not above it in byte order.  With the
    prefixes 's' and 'sa', the qualifier 'sab' passes by 'sa'; 'sb' does not pass, because it is compared with 'sa'.
    """

    hinting = True

    prefixes: tuple[bytes, ...]
    _sorted: list[bytes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._sorted = sorted(self.prefixes)

    def filter_cell(self, cell: Cell) -> ReturnCode:
        if not self._sorted:
            return ReturnCode.INCLUDE
        below = bisect_right(self._sorted, cell.qualifier)
        if below and cell.qualifier.startswith(self._sorted[below - 1]):
            return ReturnCode.INCLUDE
        return ReturnCode.NEXT_ROW if below == len(self._sorted) else ReturnCode.SEEK_NEXT_USING_HINT

    def next_qualifier(self, cell: Cell) -> bytes | None:
        above = bisect_right(self._sorted, cell.qualifier)
        return self._sorted[above] if above < len(self._sorted) else None


@dataclass(eq=False)
class ColumnRangeFilter(Filter):
    """Passes columns between two qualifiers; an empty qualifier means no bound on that side."""

    hinting = True

    low: bytes
    low_inclusive: bool
    high: bytes
    high_inclusive: bool

    def filter_cell(self, cell: Cell) -> ReturnCode:
        qualifier = cell.qualifier
        if self.low:
            if qualifier < self.low:
                return ReturnCode.SEEK_NEXT_USING_HINT
            if qualifier == self.low and not self.low_inclusive:
                return ReturnCode.NEXT_COL
        if not self.high or qualifier < self.high or (self.high_inclusive and qualifier == self.high):
            return ReturnCode.INCLUDE
        return ReturnCode.NEXT_ROW

    def next_qualifier(self, cell: Cell) -> bytes | None:
        return self.low


@dataclass(eq=False)
class TimestampsFilter(Filter):
    timestamps: tuple[int, ...]
    _wanted: frozenset[int] = field(init=False, repr=False)
    _lowest: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._wanted = frozenset(self.timestamps)
        self._lowest = min(self.timestamps, default=2**63 - 1)

    def filter_cell(self, cell: Cell) -> ReturnCode:
        if cell.timestamp in self._wanted:
            return ReturnCode.INCLUDE
        return ReturnCode.NEXT_COL if cell.timestamp < self._lowest else ReturnCode.SKIP


@dataclass(eq=False)
class _OneColumn(Filter):
    family: bytes
    qualifier: bytes

    def is_column(self, cell: Cell) -> bool:
        return cell.qualifier == self.qualifier and cell.family == self.family

    @property
    def tests_values(self) -> bool:
        return True


@dataclass(eq=False)
class ColumnValueFilter(_OneColumn):
    """Passes only one column of a row, if its value passes."""

    op: Operator
    right: Comparator
    _passes: Callable[[bytes], bool] = field(init=False, repr=False)
    _found: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._passes = predicate(self.op, self.right)

    def reset_row(self) -> None:
        self._found = False

    def filter_cell(self, cell: Cell) -> ReturnCode:
        if not self.is_column(cell):
            return ReturnCode.NEXT_ROW if self._found else ReturnCode.NEXT_COL
        self._found = True
        return ReturnCode.INCLUDE if self._passes(cell.value) else ReturnCode.SKIP


@dataclass(eq=False)
class SingleColumnValueFilter(_OneColumn):
    """Passes whole rows in which the value of one column passes.

    The scan must fetch the column: a column that is not fetched counts as missing.
    """

    has_filter_row = True

    op: Operator
    right: Comparator
    if_missing: bool | None = None  # drop rows without the column (default: keep them)
    latest_only: bool | None = None  # test the newest version alone (the default)
    _passes: Callable[[bytes], bool] = field(init=False, repr=False)
    _found: bool = field(init=False, default=False)
    _matched: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._passes = predicate(self.op, self.right)

    def reset_row(self) -> None:
        self._found = self._matched = False

    def filter_cell(self, cell: Cell) -> ReturnCode:
        if self._matched:
            return ReturnCode.INCLUDE
        latest_only = self.latest_only is not False
        if latest_only and self._found:
            return ReturnCode.NEXT_ROW
        if not self.is_column(cell):
            return ReturnCode.INCLUDE
        self._found = True
        self._matched = self._passes(cell.value)
        return ReturnCode.NEXT_ROW if latest_only and not self._matched else ReturnCode.INCLUDE

    def filter_row(self) -> bool:
        return not self._matched if self._found else bool(self.if_missing)


@dataclass(eq=False)
class SingleColumnValueExcludeFilter(SingleColumnValueFilter):
    """Passes the same rows as ``SingleColumnValueFilter``, without the tested column."""

    def filter_row_cells(self, cells: list[Cell]) -> list[Cell]:
        return [cell for cell in cells if not self.is_column(cell)]


@dataclass(eq=False)
class DependentColumnFilter(_OneColumn):
    """Passes the cells whose timestamp is that of a passing cell in the named column, within the same row."""

    has_filter_row = True

    drop: bool | None = None  # leave out the column itself
    op: Operator | None = None
    right: Comparator | None = None
    _passes: Callable[[bytes], bool] | None = field(init=False, repr=False, default=None)
    _timestamps: set[int] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        if self.op is not None and self.right is not None:
            self._passes = predicate(self.op, self.right)

    def reset_row(self) -> None:
        self._timestamps.clear()

    def filter_cell(self, cell: Cell) -> ReturnCode:
        if not self.is_column(cell):
            return ReturnCode.INCLUDE
        if self._passes is not None and not self._passes(cell.value):
            return ReturnCode.SKIP
        self._timestamps.add(cell.timestamp)
        return ReturnCode.SKIP if self.drop else ReturnCode.INCLUDE

    def filter_row_cells(self, cells: list[Cell]) -> list[Cell]:
        return [cell for cell in cells if cell.timestamp in self._timestamps]
