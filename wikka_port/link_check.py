"""Compare the tables of links, ``backlinks`` and ``wanted``, with the cells that they should have.

From the pages: each link of a text, and each file that it names, needs a cell ``to`` in the source's row and a cell
``from`` in the target's row.  If the target is a page that is not there, ``wanted`` needs a cell of the source, or the
mark that the target was a page.
From the tables: each cell ``from``, and each cell of a source in ``wanted``, needs a source that links there.  This
second check trusts the source's cells ``to``, which were compared with the source's text before; the exceptions are
noted in ``_wrong_to``.  For the second check all cells are sorted by source (``LinkSpool``) and merged with a scan of
the cells ``to``, so that each cell is read once.  Cells of ``wanted`` whose target is a page are spare (``triggers``).

Cost: linear in the cells, except for the sort.  Memory: some ten thousand cells, and the differences.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Final, NamedTuple

from columnar.client import Connection
from wikka_port import schema
from wikka_port.differences import Difference, Kind, Stamped, cell_differences, groups_of
from wikka_port.file_uses import is_of_file
from wikka_port.link_index import targets_of
from wikka_port.page_rows import Cells, is_there, time_of
from wikka_port.store import rows_in_steps

_CACHE_KB: Final = 16_384
_SOURCES_PER_CALL: Final = 50  # rows of ``to`` may be wide


class LinkCell(NamedTuple):
    source: bytes  # key of the page that should link
    target: bytes  # the row
    table: bytes
    value: bytes
    at_ms: int


class LinkSpool:
    """An external sort of cells of the tables of links by their source, for more cells than fit into memory.

    SQLite sorts, in a private temporary file that vanishes with its connection.  Cost: O(n log n) time, a few
    megabytes of memory, about 150 bytes of disk for each cell.  Owned by one thread.  ``add`` all cells, then call
    ``by_source`` once.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        """Take a connection to a database with an empty table ``cells``."""
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


class LinkCheck:
    """A single check of the tables of links: call ``of_pages`` for all pages, then ``of_tables``."""

    def __init__(self, connection: Connection, at: Callable[[int], int]) -> None:
        """Let ``at`` give the timestamp of a repair from the time of the source that the cell follows from."""
        self._at = at
        self._backlinks = connection.table(schema.BACKLINKS)
        self._wanted = connection.table(schema.WANTED)
        self._pages = connection.table(schema.PAGES)
        self._begun: set[bytes] = set()  # rows of ``wanted`` whose page is there
        self._wrong_to: dict[tuple[bytes, bytes], bool] = {}  # source, target -> whether the text links there
        self.links = 0

    # --- from the pages ----------------------------------------------------------------------------

    def of_pages(self, pages: Mapping[bytes, Cells]) -> Iterator[Difference]:
        stored = dict(self._backlinks.rows(list(pages), columns=[b"to"], include_timestamp=True))
        for key, cells in pages.items():
            yield from self._of_page(key, cells, stored.get(key, {}))

    def _of_page(self, key: bytes, page: Cells, stored_to: Stamped) -> Iterator[Difference]:
        targets = targets_of(page)
        pages = [target for target in targets if not is_of_file(target)]
        self.links += len(pages)
        at_ms = self._at(time_of(page))
        to_cells = {schema.TO + target: name.encode() for target, name in targets.items()}
        for difference in cell_differences(schema.BACKLINKS, key, to_cells, stored_to, at_ms):
            target = difference.column[len(schema.TO) :]
            self._wrong_to[key, target] = target in targets
            yield difference
        if not targets:
            return
        column = schema.FROM + key
        source = page.get(schema.NAME, b"")
        stored_from = dict(rows_in_steps(self._backlinks, targets, column, include_timestamp=True))
        there = self._existing(pages)
        missing = [target for target in pages if target not in there]
        stored_wanted = dict(rows_in_steps(self._wanted, missing, column, schema.GONE, include_timestamp=True))
        for target in targets:
            yield from cell_differences(schema.BACKLINKS, target, {column: source}, stored_from.get(target, {}), at_ms)
        for target in missing:
            stored = dict(stored_wanted.get(target, {}))
            if stored.pop(schema.GONE, None) is None or stored:
                yield from cell_differences(schema.WANTED, target, {column: targets[target].encode()}, stored, at_ms)

    def _existing(self, keys: Iterable[bytes]) -> set[bytes]:
        return {row for row, cells in rows_in_steps(self._pages, keys, schema.VERSIONCOUNT) if is_there(cells)}

    # --- from the tables ---------------------------------------------------------------------------

    def of_tables(self) -> Iterator[Difference]:
        """Yield cells ``from`` and of ``wanted`` without a link, cells ``to`` without a page, and spare cells."""
        with LinkSpool.opened() as spool:
            targets = self._backlinks.scan(columns=[b"from"], include_timestamp=True, batch_size=200)
            spool.add(_cells(schema.BACKLINKS, targets))
            for rows in groups_of(self._wanted.scan(include_timestamp=True, batch_size=200)):
                there = self._existing(rows)
                self._begun |= there
                for row in there:
                    if schema.GONE in rows[row]:
                        yield Difference(Kind.SPARE, schema.WANTED, row, schema.GONE, None, *rows[row][schema.GONE])
                spool.add(_cells(schema.WANTED, rows.items()))
            yield from self._against_sources(spool.by_source())

    def _against_sources(self, cells: Iterator[LinkCell]) -> Iterator[Difference]:
        """Compare ``cells`` with the cells ``to``, both sorted by source.  A source with no ``to`` has no links."""
        cell = next(cells, None)
        scanned = self._backlinks.scan(columns=[b"to"], include_timestamp=True, batch_size=_SOURCES_PER_CALL)
        for rows in groups_of(scanned):
            there = self._existing(rows)
            for source, stored in rows.items():
                if source not in there:
                    yield from cell_differences(schema.BACKLINKS, source, {}, stored, 0)
                targets = {column[len(schema.TO) :] for column in stored} if source in there else set()
                while cell is not None and cell.source <= source:
                    yield from self._without_link(cell, targets if cell.source == source else ())
                    cell = next(cells, None)
        while cell is not None:
            yield from self._without_link(cell, ())
            cell = next(cells, None)

    def _without_link(self, cell: LinkCell, targets: Collection[bytes]) -> Iterator[Difference]:
        is_linked = self._wrong_to.get((cell.source, cell.target), cell.target in targets)
        if is_linked and not (cell.table == schema.WANTED and cell.target in self._begun):
            return
        kind = Kind.SPARE if is_linked else Kind.STALE
        yield Difference(kind, cell.table, cell.target, schema.FROM + cell.source, None, cell.value, cell.at_ms)


def _cells(table: bytes, rows: Iterable[tuple[bytes, Stamped]]) -> Iterator[LinkCell]:
    for row, stored in rows:
        for column, (value, at_ms) in stored.items():
            if column != schema.GONE:
                yield LinkCell(column[len(schema.FROM) :], row, table, value, at_ms)
