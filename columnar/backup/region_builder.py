"""Building sorted files from cells, and a region's store from these files, without a server and in bounded memory.

As in ``regions.row_draft`` the newest version of a column goes into its family's key space, older versions go into
``versions``, and surplus versions are dropped.  A column's versions arrive newest first; of two versions with one
timestamp the first one is kept.

Owned by one thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from columnar.backup.cell_blocks import ExportedCell
from columnar.errors import CallerError, abbreviate
from columnar.model.schema import Table
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.read.family_view import FamilyView, views_of
from columnar.regions.region import CLOCK_MARK, spaces_of
from columnar.regions.spaces import options_of_spaces
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.regions.write.drafting import FUTURE
from columnar.storage.api import Engine, SortedFile
from columnar.storage.layout import cell_key, pack_cell, version_key

FILE_BYTES: Final = 64 * 1024 * 1024  # of one sorted file, about
_SEQUENCE: Final = 0  # of cells that no mutation of a region wrote


class SortedFiles:
    """The sorted files of whole rows in a folder."""

    def __init__(self, engine: Engine, folder: str, table: Table, prefix: str = "") -> None:
        self._engine = engine
        self._folder = folder
        self._prefix = prefix
        self._views = views_of(table)
        self._table = table
        self._open: dict[tuple[str, int], tuple[SortedFile, int]] = {}  # by space and family number: file, its bytes
        self._column: tuple[bytes, bytes, bytes] | None = None
        self._key = b""
        self._kept = 0
        self._last_at = 0
        self.names: dict[str, list[str]] = {}  # by space
        self.highest_timestamp = 0
        self.first_row: bytes | None = None
        self.last_row = b""
        self.rows = 0

    def add_cell(self, cell: ExportedCell) -> None:
        """Add a cell.  Raises CallerError if the table does not have the family, or the cell is out of order."""
        row, family, qualifier, timestamp, ttl_ms, value = cell
        view = self._views.get(family)
        if view is None:
            raise CallerError(
                f"row {abbreviate(row)} has the family {abbreviate(family)}; table {self._table.name} has none such"
            )
        column = (row, family, qualifier)
        if column != self._column:
            self._begin_column(column)
        elif timestamp >= self._last_at:
            if timestamp > self._last_at:
                raise CallerError(
                    f"row {abbreviate(row)}: versions of {abbreviate(family + b':' + qualifier)} out of order"
                )
            return
        elif self._kept >= view.max_versions:
            return
        self._last_at = timestamp
        raw = pack_cell(timestamp, _SEQUENCE, value, ttl_ms)
        if self._kept == 0:
            self._put(view.space, view, self._key, raw)
        else:
            self._put(VERSIONS_SPACE, view, version_key(view.number, self._key, timestamp), raw)
        self._kept += 1
        self.highest_timestamp = max(self.highest_timestamp, timestamp)

    def _begin_column(self, column: tuple[bytes, bytes, bytes]) -> None:
        if self._column is None or column[0] != self._column[0]:
            if self.first_row is None:
                self.first_row = column[0]
            elif column[0] < self.last_row:
                raise CallerError(f"rows out of order: {abbreviate(column[0])} after {abbreviate(self.last_row)}")
            self.last_row = column[0]
            self.rows += 1
        self._column = column
        self._key = cell_key(column[0], column[2])
        self._kept = 0

    def _put(self, space: str, view: FamilyView, key: bytes, raw: bytes) -> None:
        opened = self._open.get((space, view.number))
        if opened is None or opened[1] >= FILE_BYTES:
            if opened is not None:
                opened[0].finish()
            count = sum(map(len, self.names.values()))
            name = f"{self._prefix}{count:05}.sst"
            self.names.setdefault(space, []).append(name)
            opened = (self._engine.sorted_file(os.path.join(self._folder, name)), 0)
        try:
            opened[0].put_pair(key, raw)
        except ValueError:
            row, family, qualifier = self._column or (b"", b"", b"")
            raise CallerError(
                f"row {abbreviate(row)}: {abbreviate(family + b':' + qualifier)} stands out of order"
            ) from None
        self._open[space, view.number] = (opened[0], opened[1] + len(key) + len(raw))

    def finish(self) -> None:
        for file, _ in self._open.values():
            file.finish()
        self._open.clear()

    def paths(self) -> Mapping[str, list[str]]:
        return {space: [os.path.join(self._folder, name) for name in names] for space, names in self.names.items()}


def build_region(engine: Engine, path: str, table: Table, cells: Iterable[ExportedCell], clock_ms: int) -> None:
    """Build a region's store at ``path`` from ``cells``, to which clocks gave no timestamp above ``clock_ms``."""
    folder = path + ".sorted"
    os.makedirs(folder)
    files = SortedFiles(engine, folder, table)
    for cell in cells:
        files.add_cell(cell)
    files.finish()
    store = engine.open_store(path, spaces_of(table), options_of_spaces(table))
    try:
        store.files.ingest(files.paths())
        batch = store.batch()
        batch.put(META_SPACE, FUTURE, files.highest_timestamp.to_bytes(8, "big"))
        batch.put(META_SPACE, CLOCK_MARK, clock_ms.to_bytes(8, "big"))
        store.write_batch(batch)
        store.sync()
    finally:
        store.close()
    os.rmdir(folder)
