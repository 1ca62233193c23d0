"""The parsers of text files with cells: tab-separated, comma-separated, or JSON lines.

    row <TAB> family:qualifier <TAB> value [<TAB> timestamp_ms [<TAB> ttl_ms]]
    {"row": ..., "column": "family:qualifier", "value": ..., "timestamp": ms, "ttl": ms}

Bytes that are not text are written as ``\\xNN`` in all three forms (a backslash as ``\\x5C``), as the shell prints
them; ``typed`` turns such text into bytes.  In CSV fields may be quoted, as spreadsheets do.  A cell without a
timestamp gets the timestamp of the whole load.

``sorted_cells`` sorts cells in bounded memory: runs of RUN_BYTES on disk, then merged.  Order: row, family, qualifier,
then the newest first; of two with one timestamp the one that came last comes first, for it replaces the other.
"""

from __future__ import annotations

import csv
import heapq
import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from columnar.backup.cell_blocks import MAGIC, ExportedCell, plain_block, read_cells, unpacked_blocks
from columnar.errors import CallerError, ColumnarError, IllegalArgument
from columnar.limits import CELL_BYTES, ROW_KEY_BYTES
from columnar.storage.layout import TIMESTAMP_MAX

Typed = Callable[[str], bytes]
FORMATS: Final = ("tsv", "csv", "json")


def cells_in(lines: Iterable[str], form: str, name: str, typed: Typed, default_ms: int) -> Iterator[ExportedCell]:
    """Yield the cells of ``lines``.  Raises CallerError, which names file and line."""
    counted = _Counted(lines)
    try:
        for fields in _fields(counted, form):
            if fields:
                yield _cell(fields, typed, default_ms)
    except (ValueError, csv.Error, ColumnarError) as error:
        raise CallerError(f"{name}, line {counted.number}: {error}") from None


class _Counted:
    """An iterator of lines that counts the lines taken, because a row of CSV may have several lines."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        return line


def _fields(lines: Iterable[str], form: str) -> Iterator[list[str]]:
    """Yield the fields of each line; an empty list for an empty line."""
    if form == "csv":
        yield from csv.reader(lines, strict=True)
    elif form == "tsv":
        for line in lines:
            bare = line.rstrip("\r\n")
            yield bare.split("\t") if bare else []
    else:
        for line in lines:
            yield _of_object(json.loads(line)) if line.strip() else []


def _of_object(plain: Any) -> list[str]:
    if not isinstance(plain, dict) or not {"row", "column", "value"} <= plain.keys():
        raise ValueError("a line is an object with row, column and value")
    unknown = plain.keys() - {"row", "column", "value", "timestamp", "ttl"}
    if unknown:
        raise ValueError(f"'{min(unknown)}' is none of row, column, value, timestamp, ttl")
    texts = [plain["row"], plain["column"], plain["value"]]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("row, column and value are texts")
    return [*texts, *(str(plain.get(name) or "") for name in ("timestamp", "ttl"))]


def _cell(fields: list[str], typed: Typed, default_ms: int) -> ExportedCell:
    if not 3 <= len(fields) <= 5:
        raise ValueError(f"{len(fields)} fields; row, family:qualifier, value, and at most timestamp and ttl")
    row, column, value = map(typed, fields[:3])
    family, colon, qualifier = column.partition(b":")
    if not colon:
        raise ValueError(f"'{fields[1]}' is no column: write family:qualifier")
    timestamp = _number(fields, 3, "timestamp")
    ttl_ms = _number(fields, 4, "ttl")
    if ttl_ms == 0:
        raise ValueError("a time to live is positive")
    return checked(ExportedCell(row, family, qualifier, default_ms if timestamp is None else timestamp, ttl_ms, value))


def _number(fields: list[str], place: int, what: str) -> int | None:
    text = fields[place] if len(fields) > place else ""
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError(f"'{text}' is no {what}: a whole number of milliseconds")
    return int(text) if text else None


def checked(cell: ExportedCell) -> ExportedCell:
    """Return the cell.  Raises IllegalArgument with the reason if a put of the cell would be refused."""
    if not 1 <= len(cell.row) <= ROW_KEY_BYTES:
        raise IllegalArgument(f"a row key has 1 to {ROW_KEY_BYTES} bytes, not {len(cell.row)}")
    if cell.timestamp > TIMESTAMP_MAX:
        raise IllegalArgument(f"timestamp {cell.timestamp} is too large")
    size = len(cell.family) + len(cell.qualifier) + len(cell.value)
    if size > CELL_BYTES:
        raise IllegalArgument(f"a cell has at most {CELL_BYTES} bytes, not {size}")
    return cell


RUN_BYTES: Final = 64 * 1024 * 1024  # of keys and values; Python's objects take some three times that
_CELL_BYTES: Final = 100  # memory of a cell in addition to its bytes

_Order = tuple[bytes, bytes, bytes, int]


def order_of(cell: ExportedCell) -> _Order:
    return cell.row, cell.family, cell.qualifier, -cell.timestamp


def sorted_cells(cells: Iterable[ExportedCell], folder: str, *, run_bytes: int = RUN_BYTES) -> Iterator[ExportedCell]:
    """Yield the cells in order.

    Sorted runs are written to ``folder``, which must exist, and removed once they are read.
    """
    runs: list[str] = []
    buffered: list[ExportedCell] = []
    size = 0
    for cell in cells:
        buffered.append(cell)
        size += len(cell.row) + len(cell.qualifier) + len(cell.value) + _CELL_BYTES
        if size >= run_bytes:
            runs.append(_spilled(_ordered(buffered), os.path.join(folder, f"run-{len(runs):05}.cells")))
            buffered, size = [], 0
    last = _ordered(buffered)
    # The source that merges earlier wins a tie: the newest run first.
    yield from heapq.merge(last, *(_read(run) for run in reversed(runs)), key=order_of)
    for run in runs:
        os.remove(run)


def _ordered(cells: list[ExportedCell]) -> list[ExportedCell]:
    cells.reverse()  # sorting keeps the order of equals: the last one comes first
    cells.sort(key=order_of)
    return cells


def _spilled(cells: list[ExportedCell], path: str) -> str:
    with open(path, "wb") as file:
        file.write(MAGIC)
        for cells_of_block in unpacked_blocks(cells):
            file.write(plain_block(cells_of_block))
    return path


def _read(path: str) -> Iterator[ExportedCell]:
    with open(path, "rb") as file:
        yield from read_cells(file, path)
