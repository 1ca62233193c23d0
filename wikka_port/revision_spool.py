"""A sort by time of one page's revisions in a dump, for more revisions than fit into memory.

A dump may have revisions in any order: newest first, or in the order in which its site imported them.  A few are sorted
in memory; SQLite sorts more, in a private temporary file that vanishes with its connection, as in ``link_check``.

Revisions of one second are ordered by their ids, as MediaWiki lists them; without ids they keep the dump's order.

Cost: O(n log n) time, a few megabytes of memory, disk for the texts.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from types import TracebackType
from typing import Final

from wikka_port.dump import Revision

_CACHE_KB: Final = 4_096


class RevisionSpool:
    """Sorts the revisions of one page after another: ``add`` a page's revisions, then call ``in_order`` once.

    ``in_order`` empties the spool for the next page.  Owned by one thread.
    """

    def __init__(self, memory_revisions: int, memory_chars: int) -> None:
        """Keep up to ``memory_revisions`` revisions and about ``memory_chars`` characters in memory."""
        self._most, self._most_chars = memory_revisions, memory_chars
        self._kept: list[Revision] = []
        self._kept_chars = 0
        self._database: sqlite3.Connection | None = None
        self._added = 0
        self.chars = 0

    def __enter__(self) -> RevisionSpool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()

    def __len__(self) -> int:
        return self._added

    def add(self, revision: Revision) -> None:
        if self._kept and (len(self._kept) >= self._most or self._kept_chars >= self._most_chars):
            self._put_aside()
        self._kept.append(revision)
        size = len(revision.text or "") + len(revision.comment)
        self._kept_chars += size
        self.chars += size
        self._added += 1

    def in_order(self) -> Iterator[Revision]:
        """Yield all added revisions by time, then empty the spool."""
        if self._database is None:
            yield from sorted(self._kept, key=_place)
        else:
            self._put_aside()
            found = self._database.execute("SELECT revision FROM revisions ORDER BY time_ms, id, number")
            for (packed,) in found:
                yield Revision(**json.loads(packed))
        self.clear()

    def clear(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
        self._kept, self._kept_chars, self._added, self.chars = [], 0, 0, 0

    def _put_aside(self) -> None:
        if self._database is None:
            self._database = _opened()
        rows = ((*_place(revision), json.dumps(asdict(revision))) for revision in self._kept)
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO revisions(time_ms, id, revision) VALUES (?, ?, ?)", rows)
        self._database.execute("COMMIT")
        self._kept, self._kept_chars = [], 0


def _place(revision: Revision) -> tuple[int, int]:
    return revision.timestamp_ms, revision.revision_id or 0


def _opened() -> sqlite3.Connection:
    database = sqlite3.connect("", isolation_level=None)
    database.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
    database.execute("PRAGMA journal_mode=OFF")
    database.execute("CREATE TABLE revisions(number INTEGER PRIMARY KEY, time_ms INTEGER, id INTEGER, revision TEXT)")
    return database
