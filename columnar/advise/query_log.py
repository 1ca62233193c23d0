"""Statements out of the lines of a log (pure): MySQL's and MariaDB's general log, or a plain file of statements.

    general log   TIME? SPACE ID SPACE COMMAND (TAB ARGUMENT)?, and further lines of the argument

        090515 10:51:21<TAB>    1 Query<TAB>SELECT ...          MySQL to 5.6, MariaDB; no time within the same second
        <TAB><TAB>    1 Query<TAB>SELECT ...
        2024-01-05T10:51:21.123456Z<TAB>   12 Query<TAB>...     MySQL 5.7 and later

    plain file    statements that end with ``;`` at the end of a line; without any such line, one statement a line

The first ``SNIFF_LINES`` lines decide which of them it is.  Execute counts as Query does.  Prepare counts nothing but
names its shape, so a statement that was prepared and never run still has its line.

Bounds: a statement has ``STATEMENT_CHARS`` at most; the rest of a longer one is dropped, and its shape says so.

Invariant L1: each statement of the lines is yielded once, in the order of the lines.

Knows nothing of files and of SQL beyond texts, comments and ``;``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, Literal

SNIFF_LINES: Final = 200
STATEMENT_CHARS: Final = 1_048_576

_ENTRY: Final = re.compile(
    r"(?:\d{6}\s+\d{1,2}:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))?\s+(\d+)\s"
    r"(Query|Execute|Prepare|Connect|Quit|Init DB|Field List|Statistics|Ping|Close stmt|Reset stmt|Change user"
    r"|Create DB|Drop DB|Refresh|Shutdown|Processlist|Kill|Debug|Set option|Fetch|Daemon|Binlog Dump\w*|Sleep"
    r"|Long Data|Register Slave|Table Dump|Delayed insert|Error|Reset connection)(?:\t(.*))?$",
    re.S,
)
_HEADER: Final = re.compile(r"\S+, Version: .*started with:|Tcp port: |Time\s+Id\s+Command\s+Argument")
_STATEMENT_END: Final = re.compile(r";\s*$")
_PIECE: Final = re.compile(
    r"""'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+"|`[^`]*`|/\*.*?\*/|(?:--\s|\#)[^\n]*|(;)|(['"`])""", re.S
)


@dataclass(frozen=True, slots=True)
class Entry:
    kind: Literal["run", "prepared", "other"]
    connection: str
    text: str


def entries(lines: Iterable[str]) -> Iterator[Entry]:
    """Yield what the lines of a log have, in memory that does not grow with them."""
    rest = iter(lines)
    first = list(islice(rest, SNIFF_LINES))
    every = chain(first, rest)
    if any(_ENTRY.match(line.rstrip("\r\n")) for line in first):
        return _of_general_log(every)
    if any(_STATEMENT_END.search(line) for line in first):
        return _of_statements(every)
    return (Entry("run", "", line[:STATEMENT_CHARS]) for line in every if line.strip())


def _of_general_log(lines: Iterable[str]) -> Iterator[Entry]:
    kind: Literal["run", "prepared", "other"] = "other"
    connection, parts, size = "", [""], 0
    is_open = False
    for line in lines:
        text = line.rstrip("\r\n")
        found = _ENTRY.match(text)
        if found is None:
            if not is_open and text.strip() and not _HEADER.match(text):
                yield Entry("other", "", text)  # before the first entry, or after a restart
            elif _HEADER.match(text):
                if is_open:
                    yield Entry(kind, connection, "\n".join(parts))
                is_open = False
            elif is_open and size < STATEMENT_CHARS:
                parts.append(text[: STATEMENT_CHARS - size])
                size += len(text)
            continue
        if is_open:
            yield Entry(kind, connection, "\n".join(parts))
        is_open, connection = True, found[1]
        kind = "run" if found[2] in ("Query", "Execute") else "prepared" if found[2] == "Prepare" else "other"
        parts = [(found[3] or "")[:STATEMENT_CHARS]]
        size = len(parts[0])
    if is_open:
        yield Entry(kind, connection, "\n".join(parts))


def _of_statements(lines: Iterable[str]) -> Iterator[Entry]:
    parts: list[str] = []
    size = 0
    for line in lines:
        if size < STATEMENT_CHARS:
            parts.append(line[: STATEMENT_CHARS - size])
        size += len(line)
        if _STATEMENT_END.search(line):
            whole, open_from = split_statements("".join(parts))
            if open_from is None or size >= STATEMENT_CHARS:
                yield from (Entry("run", "", one) for one in whole)
                parts, size = [], 0
    whole, _ = split_statements("".join(parts))
    yield from (Entry("run", "", one) for one in whole)


def split_statements(text: str) -> tuple[list[str], int | None]:
    """Return the statements between semicolons, and where a text begins that does not end, if there is one."""
    found, begin, open_from = [], 0, None
    for piece in _PIECE.finditer(text):
        if piece[2]:
            open_from = piece.start()
            break
        if piece[1]:
            found.append(text[begin : piece.start()])
            begin = piece.end()
    found.append(text[begin:])
    return [one.strip() for one in found if one.strip()], open_from
