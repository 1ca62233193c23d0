"""The rows that are read and written: (pure), the same bytes on every endpoint and in every run.

    table           row                     cells
    bench_small     row-00000000 ...        s:n, 20 bytes
    bench_rows      row-00000000 ...        d:c00 to d:c13, together ``ROW_BYTES``
    bench_writes    row-00000000 ...        w:v, 100 bytes, by the put workload; w:count, by increments
    bench_load      load-0000000000 ...     as bench_rows, by the load workload, each row written once
    bench_ycsb      user, 20 digits         f:field0 to f:field9, 100 bytes each

The values are text-like: a compressor makes half of them.

Knows nothing of the wire nor of who is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import shake_128
from typing import Final

from columnar.bench.zipf import fnv64

ROWS: Final = 20_000
CELLS: Final = 14
ROW_BYTES: Final = 8 * 1024
SMALL_BYTES: Final = 20
PUT_BYTES: Final = 100

SMALL_TABLE: Final = b"bench_small"
ROWS_TABLE: Final = b"bench_rows"
WRITES_TABLE: Final = b"bench_writes"
LOAD_TABLE: Final = b"bench_load"
FAMILIES: Final = {SMALL_TABLE: b"s", ROWS_TABLE: b"d", WRITES_TABLE: b"w", LOAD_TABLE: b"d"}
SMALL_COLUMN: Final = b"s:n"
PUT_COLUMN: Final = b"w:v"
COUNT_COLUMN: Final = b"w:count"
PUT_ROWS: Final = 1_000_000  # keys that puts choose from
COUNT_ROW: Final = b"counter"

YCSB_TABLE: Final = b"bench_ycsb"
YCSB_FAMILY: Final = b"f"
YCSB_FIELDS: Final = 10
YCSB_FIELD_BYTES: Final = 100


@dataclass(frozen=True, slots=True)
class DataSet:
    rows: int = ROWS

    def small_cells(self, number: int) -> list[tuple[bytes, bytes]]:
        """(column, value) of a row of ``bench_small``."""
        return [(SMALL_COLUMN, text(b"small %d" % number, SMALL_BYTES))]

    def wide_cells(self, number: int) -> list[tuple[bytes, bytes]]:
        """(column, value) of a row of ``bench_rows``."""
        each = ROW_BYTES // CELLS
        whole = text(b"wide %d" % number, each * CELLS)
        return [(b"d:c%02d" % cell, whole[cell * each : (cell + 1) * each]) for cell in range(CELLS)]


def ycsb_column(field: int) -> bytes:
    return b"f:field%d" % field


def ycsb_cells(number: int) -> list[tuple[bytes, bytes]]:
    """(column, value) of a row of ``bench_ycsb``."""
    whole = text(b"ycsb %d" % number, YCSB_FIELDS * YCSB_FIELD_BYTES)
    places = range(0, len(whole), YCSB_FIELD_BYTES)
    return [(ycsb_column(field), whole[at : at + YCSB_FIELD_BYTES]) for field, at in enumerate(places)]


def ycsb_key(number: int) -> bytes:
    """Neighbours in number are strangers in the table, as YCSB has it by default."""
    return b"user%020d" % fnv64(number)


def row_key(number: int) -> bytes:
    return b"row-%08d" % number


def load_key(number: int) -> bytes:
    return b"load-%010d" % number


def text(seed: bytes, size: int) -> bytes:
    """``size`` bytes that depend on ``seed`` alone: hexadecimal digits, so half of it is redundant."""
    return shake_128(seed).hexdigest((size + 1) // 2)[:size].encode()
