"""Loading many sorted cells into a table that serves: by ingestion if that is allowed, else as ordinary writes.

By ingestion a region gets its new rows at once, all or none.  Ingestion is allowed only if no trigger or CHANGE_LOG
follows the table, the table keeps no delete markers, and the region has no row between the first and the last new row.
Otherwise each row is an ordinary write with the cells' own timestamps: logged, compared with the stored cells, and
slower.  A load that was cut off can be repeated: the same cells with the same timestamps change nothing.

Blocks; for a command on the server's machine.
"""

from __future__ import annotations

import os
import shutil
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

from columnar.backup.cell_blocks import ExportedCell
from columnar.backup.region_builder import SortedFiles
from columnar.backup.region_reader import cells_of
from columnar.client import Connection
from columnar.client.errors import IOError, hbase_class
from columnar.client.snapshots import StagedFolder
from columnar.model import schema
from columnar.model.schema import Table
from columnar.regions.read.family_view import views_of
from columnar.regions.region import spaces_of
from columnar.regions.spaces import options_of_spaces
from columnar.storage.api import Engine
from columnar.wire.idl import columnar

CALL_BYTES: Final = 1024 * 1024  # of rows that one call writes
BUSY_S: Final = 0.2  # pause when the server requests one
BUSY_TRIES: Final = 600
_PUT: Final = 0  # OperationKind.PUT


@dataclass(slots=True)
class Loaded:
    rows: int = 0
    cells: int = 0
    ingested_regions: int = 0
    written_regions: int = 0  # by ordinary writes


class BulkLoad:
    """A load of one table; owned by one thread."""

    def __init__(
        self, connection: Connection, engine: Engine, table: bytes, staged: StagedFolder, target: columnar.LoadTarget
    ) -> None:
        """Take ``target``, the server's answer about the table."""
        text = target.schemaJson
        self._connection = connection
        self._engine = engine
        self._name = table
        self._staged = staged
        self._schema: Table = schema.from_json(text if isinstance(text, bytes) else text.encode())
        self._starts: list[bytes] = list(target.starts)
        self.obstacles = [one.decode() if isinstance(one, bytes) else one for one in target.obstacles]
        self.done = Loaded()

    @classmethod
    def begun(cls, connection: Connection, engine: Engine, table: bytes, staged: StagedFolder) -> BulkLoad:
        """Begin a load: ask the server how the table is to be loaded."""
        return cls(connection, engine, table, staged, connection.call("columnarLoadTarget", table))

    def run(self, cells: Iterable[ExportedCell], progress: Callable[[int], None]) -> Loaded:
        """Load ``cells``, which must be in the order of their keys."""
        known = {family.bytes_name for family in self._schema.families}
        checked = self._with_known_families(cells, known)
        for number, (_, group) in enumerate(groupby(checked, key=lambda cell: bisect_right(self._starts, cell.row))):
            counted = self._counted(group, progress)
            if self.obstacles or not self._ingested(counted, f"r{number}-"):
                self.done.written_regions += 1
                self._write(counted if self.obstacles else self._read_rejected_cells(f"r{number}-"))
            else:
                self.done.ingested_regions += 1
        return self.done

    def _with_known_families(self, cells: Iterable[ExportedCell], known: set[bytes]) -> Iterator[ExportedCell]:
        for cell in cells:
            if cell.family not in known:
                self._schema.family(cell.family)  # raises an error for an unknown family
            yield cell

    def _counted(self, cells: Iterable[ExportedCell], progress: Callable[[int], None]) -> Iterator[ExportedCell]:
        row = None
        for cell in cells:
            self.done.cells += 1
            if cell.row != row:
                row = cell.row
                self.done.rows += 1
            progress(len(cell.value))
            yield cell

    # --- by ingestion ------------------------------------------------------------------------------

    def _ingested(self, cells: Iterable[ExportedCell], prefix: str) -> bool:
        files = self._files = SortedFiles(self._engine, self._staged.path, self._schema, prefix)
        for cell in cells:
            files.add_cell(cell)
        files.finish()
        request = columnar.SortedFiles(
            firstRow=files.first_row,
            lastRow=files.last_row,
            highestTimestamp=files.highest_timestamp,
            rows=files.rows,
            files=dict(files.names),
        )
        return bool(self._call_with_retries("columnarIngest", self._staged.token, request))

    def _read_rejected_cells(self, prefix: str) -> Iterator[ExportedCell]:
        """Yield the cells of the sorted files that the server refused to ingest."""
        path = os.path.join(self._staged.path, f"{prefix}store")
        store = self._engine.open_store(path, spaces_of(self._schema), options_of_spaces(self._schema))
        try:
            store.files.ingest(self._files.paths())
            yield from cells_of(store, views_of(self._schema), 0)
        finally:
            store.close()
            shutil.rmtree(path, ignore_errors=True)

    # --- by ordinary writes ------------------------------------------------------------------------

    def _write(self, cells: Iterable[ExportedCell]) -> None:
        rows, size = [], 0
        for row, group in groupby(cells, key=attrgetter("row")):
            operations = []
            for cell in reversed(list(group)):  # the oldest first: each is the newest when it comes
                column = cell.family + b":" + cell.qualifier
                size += len(column) + len(cell.value) + 40
                operations.append(
                    columnar.RowOperation(
                        kind=_PUT, column=column, value=cell.value, timestamp=cell.timestamp, ttlMs=cell.ttl_ms
                    )
                )
            rows.append(columnar.LoadedRow(row=row, operations=operations))
            if size >= CALL_BYTES:
                self._call_with_retries("columnarLoadRows", rows)
                rows, size = [], 0
        if rows:
            self._call_with_retries("columnarLoadRows", rows)

    def _call_with_retries(self, method: str, *arguments: object) -> object:
        """Call ``method``, and retry while the server answers that it is too busy."""
        for _ in range(BUSY_TRIES):
            try:
                return self._connection.call(method, self._name, *arguments)
            except IOError as error:
                if hbase_class(error) not in ("RegionTooBusyException", "NotServingRegionException"):
                    raise
                time.sleep(BUSY_S)
        return self._connection.call(method, self._name, *arguments)
