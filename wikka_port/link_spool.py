"""Cells of the tables of links put aside and given back by their source: a sort that may outgrow the memory.

The tables are kept by target, and what a source links to is kept by source; to compare the two in one walk over
each, one of them is sorted anew.  SQLite does it, in a private file of the temporary folder that vanishes with it.

Cost: O(n log n) time, a few megabytes of memory, about 150 bytes of disk for each cell.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Final, NamedTuple

_CACHE_KB: Final = 16_384


class LinkCell(NamedTuple):
    source: bytes  # key of the page that should link
    target: bytes  # the row
    table: bytes
    value: bytes
    at_ms: int


class LinkSpool:
    """Owned by one thread.  ``add`` all, then ``by_source`` once."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """``database`` has the table ``cells``, empty."""
        self._database = database

    @classmethod
    def opened(cls) -> LinkSpool:
        database = sqlite3.connect("", isolation_level=None)
        database.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
        database.execute("PRAGMA journal_mode=OFF")
        database.execute("CREATE TABLE cells(source BLOB, target BLOB, tab BLOB, value BLOB, at_ms INTEGER)")
        return cls(database)

    def __enter__(self) -> LinkSpool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._database.close()

    def add(self, cells: Iterable[LinkCell]) -> None:
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO cells VALUES (?, ?, ?, ?, ?)", cells)
        self._database.execute("COMMIT")

    def by_source(self) -> Iterator[LinkCell]:
        return map(LinkCell._make, self._database.execute("SELECT * FROM cells ORDER BY source, target, tab"))
