"""(pure) Lines of text to cells: tab-separated, comma-separated, or JSON lines.

    row <TAB> family:qualifier <TAB> value [<TAB> timestamp_ms [<TAB> ttl_ms]]
    {"row": ..., "column": "family:qualifier", "value": ..., "timestamp": ms, "ttl": ms}

Bytes that are no text are written ``\\xNN`` in all three (a backslash as ``\\x5C``), as the shell prints them;
``typed`` turns such text into bytes.  In CSV fields may be quoted, as spreadsheets do.  Without a timestamp a
cell has the one that is given for the whole load.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from columnar.backup.cell_blocks import ExportedCell
from columnar.errors import CallerError, ColumnarError, IllegalArgument
from columnar.limits import CELL_BYTES, ROW_KEY_BYTES
from columnar.storage.layout import TIMESTAMP_MAX

Typed = Callable[[str], bytes]
FORMATS: Final = ("tsv", "csv", "json")


def cells_in(lines: Iterable[str], form: str, name: str, typed: Typed, default_ms: int) -> Iterator[ExportedCell]:
    """CallerError names file and line."""
    counted = _Counted(lines)
    try:
        for fields in _fields(counted, form):
            if fields:
                yield _cell(fields, typed, default_ms)
    except (ValueError, csv.Error, ColumnarError) as error:
        raise CallerError(f"{name}, line {counted.number}: {error}") from None


class _Counted:
    """Lines, and how many were taken: one row of CSV may have several."""

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
    """Return the fields of a line; none for an empty line."""
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
    """Raises IllegalArgument with the reason for which a put of this cell would be refused."""
    if not 1 <= len(cell.row) <= ROW_KEY_BYTES:
        raise IllegalArgument(f"a row key has 1 to {ROW_KEY_BYTES} bytes, not {len(cell.row)}")
    if cell.timestamp > TIMESTAMP_MAX:
        raise IllegalArgument(f"timestamp {cell.timestamp} is too large")
    size = len(cell.family) + len(cell.qualifier) + len(cell.value)
    if size > CELL_BYTES:
        raise IllegalArgument(f"a cell has at most {CELL_BYTES} bytes, not {size}")
    return cell
