"""(pure) The rows that are read and written: the same bytes on every endpoint and in every run.

    table           row                     cells
    bench_small     row-00000000 ...        s:n, 20 bytes
    bench_rows      row-00000000 ...        d:c00 to d:c13, together ``ROW_BYTES``
    bench_writes    row-00000000 ...        w:v, 100 bytes, by the put workload; w:count, by increments
    bench_load      load-0000000000 ...     as bench_rows, by the load workload, each row written once

The values are text-like: a compressor makes half of them.

Knows nothing of the wire and of endpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import shake_128
from typing import Final

ROWS: Final = 20_000
CELLS: Final = 14
ROW_BYTES: Final = 8 * 1024
SMALL_BYTES: Final = 20
PUT_BYTES: Final = 100

SMALL_TABLE: Final = b"bench_small"
ROWS_TABLE: Final = b"bench_rows"
WRITES_TABLE: Final = b"bench_writes"
LOAD_TABLE: Final = b"bench_load"
SMALL_COLUMN: Final = b"s:n"
PUT_COLUMN: Final = b"w:v"
COUNT_COLUMN: Final = b"w:count"
PUT_ROWS: Final = 1_000_000  # keys that puts choose from
COUNT_ROW: Final = b"counter"

Cells = list[tuple[bytes, bytes]]  # (column, value)


def row_key(number: int) -> bytes:
    return b"row-%08d" % number


def load_key(number: int) -> bytes:
    return b"load-%010d" % number


def text(seed: bytes, size: int) -> bytes:
    """Return ``size`` bytes that depend on ``seed`` alone: hexadecimal digits, of which half is redundant."""
    return shake_128(seed).hexdigest((size + 1) // 2)[:size].encode()


def small_cells(number: int) -> Cells:
    """Return the cell of a row of ``bench_small``."""
    return [(SMALL_COLUMN, text(b"small %d" % number, SMALL_BYTES))]


def wide_cells(number: int) -> Cells:
    """Return the cells of a row of ``bench_rows``."""
    each = ROW_BYTES // CELLS
    whole = text(b"wide %d" % number, each * CELLS)
    return [(b"d:c%02d" % cell, whole[cell * each : (cell + 1) * each]) for cell in range(CELLS)]


@dataclass(frozen=True, slots=True)
class TableData:
    """A table, and the content of its rows before the first request."""

    name: bytes
    family: bytes
    cells: Callable[[int], Cells] | None = None  # of a row, by its number; None: the table begins empty
    batch_rows: int = 100  # of one call
    key: Callable[[int], bytes] = row_key


TABLES: Final = (
    TableData(SMALL_TABLE, b"s", small_cells, batch_rows=1_000),
    TableData(ROWS_TABLE, b"d", wide_cells),
    TableData(WRITES_TABLE, b"w"),
    TableData(LOAD_TABLE, b"d"),
)
