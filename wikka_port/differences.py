"""(pure) Differences between a stored table and the cells that it should have, each with its repair.

Knows nothing of which cells a table should have (``consistency`` and ``link_check`` do).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from wikka_port.page_rows import Cells

ROWS_TOGETHER: Final = 200
CELLS_TOGETHER: Final = 20_000
Stamped = Mapping[bytes, tuple[bytes, int]]  # column -> value, timestamp


class Kind(Enum):
    MISSING = "missing"  # a cell that should be there
    STALE = "stale"  # a cell or a row that should not be there
    DIFFERENT = "different"  # a cell with another value
    SPARE = "spare"  # a cell that no reader needs and that may be there: counted separately, removed by a repair
    LOST = "lost"  # a revision or a file that is gone and cannot be made again


@dataclass(frozen=True, slots=True)
class Difference:
    kind: Kind
    table: bytes
    row: bytes
    column: bytes  # b"" for a whole row
    expected: bytes | None
    found: bytes | None
    at_ms: int = field(compare=False)  # the time at which a repair writes or deletes

    def text(self) -> str:
        """Describe the difference to a person, in one line."""
        where = f"{_format_bytes(self.table)} {_format_bytes(self.row)}" + (
            f" {_format_bytes(self.column)}" if self.column else ""
        )
        if self.kind is Kind.MISSING:
            return f"{where}: missing, should be {_format_bytes(self.expected)}"
        if self.kind is Kind.DIFFERENT:
            return f"{where}: is {_format_bytes(self.found)}, should be {_format_bytes(self.expected)}"
        if self.kind in (Kind.STALE, Kind.SPARE):
            return f"{where}: should not be there ({_format_bytes(self.found)})"
        if self.found:
            return f"{where}: lost ({_format_bytes(self.found)})"
        return f"{where}: the row of this revision is gone"


def _format_bytes(data: bytes | None) -> str:
    text = (data or b"").decode(errors="backslashreplace").replace("\x00", "|")
    return text if len(text) <= 80 else text[:77] + "..."


def cell_differences(table: bytes, row: bytes, expected: Cells, stored: Stamped, at_ms: int) -> Iterator[Difference]:
    """Yield the differences between the stored cells of a row and the expected ones."""
    for column, value in expected.items():
        found = stored.get(column)
        if found is None:
            yield Difference(Kind.MISSING, table, row, column, value, None, at_ms)
        elif found[0] != value:
            yield Difference(Kind.DIFFERENT, table, row, column, value, found[0], max(at_ms, found[1]))
    for column, (value, stamp) in stored.items():
        if column not in expected:
            yield Difference(Kind.STALE, table, row, column, None, value, stamp)


def groups_of(rows: Iterable[tuple[bytes, Stamped]]) -> Iterator[dict[bytes, Stamped]]:
    """Yield the rows in groups, in the order given: up to ROWS_TOGETHER rows and about CELLS_TOGETHER cells each."""
    group: dict[bytes, Stamped] = {}
    cells_together = 0
    for row, cells in rows:
        group[row] = cells
        cells_together += len(cells)
        if len(group) >= ROWS_TOGETHER or cells_together >= CELLS_TOGETHER:
            yield group
            group, cells_together = {}, 0
    if group:
        yield group
