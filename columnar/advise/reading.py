"""The files of the adviser: a schema, and a log that is read line by line, in memory that does not grow with it.

Files whose names end with ``.gz`` are unpacked.  Bytes that are no UTF-8 are replaced: they stand in literals, which no
shape has.

Invariant A1, first half: each statement of the log is counted in a shape, in ``beyond``, or in ``other_lines``.

Knows nothing of designs.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final

from columnar.advise.parsing import read_tables
from columnar.advise.query_log import STATEMENT_CHARS, entries
from columnar.advise.query_parsing import read_query
from columnar.advise.schema import Schema, Shape, Workload
from columnar.advise.shapes import ShapeCounts
from columnar.errors import HostError

SCHEMA_BYTES: Final = 16 * 1024 * 1024  # of a file of CREATE TABLE statements; a dump with its data is no schema
NO_LOG: Final = Workload(is_given=False)


class UnusableInput(HostError):
    """A file cannot be read, or has nothing that the adviser needs."""


def read_schema(path: Path, dialect: str) -> Schema:
    """Return the tables of a file.  Raises UnusableInput if it cannot be read, or has no table."""
    try:
        with _opened(path) as file:
            text = file.read(SCHEMA_BYTES + 1)
    except (OSError, EOFError) as error:
        raise UnusableInput(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if len(text) > SCHEMA_BYTES:
        raise UnusableInput(
            f"{path} has more than {SCHEMA_BYTES} bytes; give the tables alone: mysqldump --no-data DATABASE"
        )
    schema = read_tables(text, dialect)
    if not schema.tables:
        unread = f"; not read: {schema.unread[0]}" if schema.unread else ""
        raise UnusableInput(f"{path} has no CREATE TABLE that can be read as {dialect}{unread}; see --dialect")
    return schema


def read_workload(path: Path, schema: Schema, dialect: str) -> Workload:
    """Return the shapes of a log and their counts.  Raises UnusableInput if it cannot be read, or has no statement."""
    counts = ShapeCounts(dialect=dialect)
    try:
        with _opened(path) as file:
            other = count_statements(_lines(file), counts)
    except (OSError, EOFError) as error:
        raise UnusableInput(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not counts.shapes():
        raise UnusableInput(f"{path} has no statement; expected MySQL's general log, or statements that end with ;")
    return workload_of(counts, other, schema, dialect)


def count_statements(lines: Iterable[str], counts: ShapeCounts) -> int:
    """Count every statement of the lines; return how many entries are none."""
    other = 0
    for entry in entries(lines):
        if entry.kind == "other":
            other += 1
        else:
            counts.add_statement(entry.text, connection=entry.connection, weight=int(entry.kind == "run"))
    return other + counts.empty


def workload_of(counts: ShapeCounts, other: int, schema: Schema, dialect: str) -> Workload:
    """Read each shape once."""
    shapes = tuple(Shape(text, count, read_query(text, schema, dialect)) for text, count in counts.shapes())
    return Workload(shapes, counts.beyond, other, tuple(counts.transactions()))


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path, "rb"), encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace", newline=None)


def _lines(file: IO[str]) -> Iterator[str]:
    """The lines, each of ``STATEMENT_CHARS`` at most: a file without line ends is not read into memory."""
    while line := file.readline(STATEMENT_CHARS):
        yield line
