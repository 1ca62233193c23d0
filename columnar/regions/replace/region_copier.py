"""Copies regions' data into the stores of their successors while the regions keep serving.

    begin    each successor's store is a checkpoint of the base region, cut to the successor's range; the rows of the
             other source region are copied into it
    round    copies the rows that were written and the changes that were logged since the last round
    finish   copies the last rows and changes, and ``meta``, while writes are paused; then syncs the stores

Each step reads and writes without an await in between, so the copy of a row is the row as it was at one
moment; a row that changes later is in ``SyncGroups.touched`` for the next round.

Invariant I1: after ``finish`` the successors together contain exactly the rows of the sources.  Each successor contains
the rows of its range, and all log records of its sources that any consumer may still want.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Final

from columnar.errors import RegionNotLocal, RegionTooBusy, TableNotFound
from columnar.limits import KIB
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.life.region_state import State
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.log.change_record import pack_key
from columnar.regions.log.log_retention import LOG_SPACE, META_SPACE
from columnar.regions.read.family_view import views_of
from columnar.regions.region import Region, spaces_of
from columnar.regions.server import RegionServer
from columnar.regions.spaces import Span, clip, options_of_spaces, row_spans
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.regions.write.guards import GUARDS
from columnar.regions.write.ingestion import undo_cut_off
from columnar.storage.api import Batch, Engine, Store, StoreClosed
from columnar.storage.file_copies import link_closed
from columnar.storage.layout import END_OF_COLUMN, row_end, row_prefix, row_versions_range
from columnar.storage.rocks_errors import refused

COPY_CELLS: Final = 1_000  # of one step: some 2 ms
COPY_BYTES: Final = 512 * KIB
COPY_ROWS: Final = 100  # touched rows of one step
TOUCHED_ROWS: Final = 100_000  # waiting for the next round; above this bound the copying fails
FEW: Final = 500  # touched rows, or log records, that are copied while requests wait: some 20 ms
ROUNDS: Final = 20  # the copying fails if more than FEW are left after these rounds


class RegionCopier:
    """Owned by the loop.  ``stop`` must be called in any case."""

    def __init__(
        self, server: RegionServer, base: Region, others: Sequence[Region], fresh: Sequence[RegionInfo],
        check: Callable[[], None],
    ) -> None:  # fmt: skip
        """``check`` is called before each step, and raises if the copying must end."""
        self._server = server
        self._base = base
        self._sources = [base, *others]
        self.fresh = fresh
        self._check = check
        self.stores: list[Store] = []  # of ``fresh``
        self._log_place: dict[int, bytes] = {}  # region id -> key: log records up to it are copied

    async def begin_copy(self) -> None:
        base = self._base
        for source in self._sources:
            source.syncs.take_touched()
        await base.work.run_aside(base.store.files.flush)  # else the checkpoint would block the loop for the flush
        self._check()
        self._log_place[base.info.region_id] = pack_key(base.log.written_to)
        for info in self.fresh:  # all checkpoints of one moment: no await between them
            base.store.files.checkpoint(self._server.folder_of(info))
        for info in self.fresh:
            await asyncio.sleep(0)  # an opening takes the loop some 10 ms
            path, openings = self._server.folder_of(info), self._server.openings
            spaces, options = spaces_of(base.table), options_of_spaces(base.table)
            store = openings.engine.open_store(path, spaces, options, openings.ownership(info))
            self.stores.append(store)
            clip(store, base.views, info)
        for source in self._sources[1:]:
            for span in row_spans(source.views, source.info.start, source.info.end):
                await self._span(source, span)

    def stop(self) -> None:
        for source in self._sources:
            source.syncs.end_touched()

    def abandon(self) -> None:
        """Close the stores that were made; they will not be served."""
        for store in self.stores:
            store.close()
        self.stores.clear()

    async def catch_up(self) -> None:
        """Copy in rounds until few rows and records are left.  Raises RegionTooBusy if writers are faster."""
        for _ in range(ROUNDS):
            if await self.round() <= FEW:
                return
        raise RegionTooBusy(
            f"region {self._base.info.encoded} is written to faster than it can be copied; "
            "split or merge it when there is less to do"
        )

    async def round(self) -> int:
        """Copy the rows and records written since the last round.  Returns the number copied."""
        count = 0
        for source in self._sources:
            rows = source.syncs.take_touched()
            for first in range(0, len(rows), COPY_ROWS):
                self._check_bound()
                await retry_until_ready(partial(self._rows_step, source, rows[first : first + COPY_ROWS]))
                await asyncio.sleep(0)
            count += len(rows)
            while (carried := await retry_until_ready(partial(self._log_step, source))) > 0:
                self._check_bound()
                await asyncio.sleep(0)
                count += carried
        return count

    # --- steps -------------------------------------------------------------------------------------

    def _check_bound(self) -> None:
        self._check()
        waiting = sum(len(source.syncs.touched or ()) for source in self._sources)
        if waiting > TOUCHED_ROWS:
            raise RegionTooBusy(
                f"region {self._base.info.encoded} is written to faster than it can be copied ({waiting} rows wait); "
                "split or merge it when there is less to do"
            )

    async def _span(self, source: Region, span: Span) -> None:
        """Copy all of a source's keys in the span into the only successor."""
        place: bytes | None = span[1]
        while place is not None:
            self._check_bound()
            place = await retry_until_ready(partial(self._span_step, source, span, place))
            await asyncio.sleep(0)

    def _span_step(self, source: Region, span: Span, place: bytes) -> bytes | None:
        (target,), (space, _, stop) = self.stores, span
        batch, last = target.batch(), b""
        for key, raw in islice(source.store.scan(space, place, stop), COPY_CELLS):
            batch.put(space, key, raw)
            last = key
            if batch.size_bytes() >= COPY_BYTES:
                break
        if not last:
            return None
        target.write_batch(batch)
        return last + b"\x00"

    def _rows_step(self, source: Region, rows: list[bytes]) -> None:
        for info, target in zip(self.fresh, self.stores, strict=True):
            batch = target.batch()
            for row in rows:
                if info.contains_row(row):
                    self._row(source, target, batch, row)
            target.write_batch(batch)

    def _row(self, source: Region, target: Store, batch: Batch, row: bytes) -> None:
        for view in source.views.values():
            _even_out(source.store, target, batch, (view.space, row_prefix(row), row_end(row)))
            _even_out(source.store, target, batch, (VERSIONS_SPACE, *row_versions_range(view.number, row)))

    def _log_step(self, source: Region) -> int:
        """Copy the next log records into each successor, as daughters of a split inherit all.

        Returns the number copied.
        """
        place = self._log_place.get(source.info.region_id)
        start = place + END_OF_COLUMN if place is not None else b""
        found, size = [], 0
        for key, data in islice(source.store.scan(LOG_SPACE, start, None), COPY_CELLS):
            found.append((key, data))
            size += len(data)
            if size >= COPY_BYTES:
                break
        if found:
            for target in self.stores:
                batch = target.batch()
                for key, data in found:
                    batch.put(LOG_SPACE, key, data)
                target.write_batch(batch)
            self._log_place[source.info.region_id] = found[-1][0]
        return len(found)

    async def sync(self) -> None:
        """Sync the stores and their folders' names.  Called before a catalogue may name the stores."""
        loop = asyncio.get_running_loop()
        work: list[Callable[[], None]] = [*(store.sync for store in self.stores), self._server.folders.sync]
        await asyncio.gather(*(loop.run_in_executor(None, step) for step in work))


def _even_out(source: Store, target: Store, batch: Batch, span: Span) -> None:
    space, start, stop = span
    wanted = dict(source.scan(space, start, stop))
    found = dict(target.scan(space, start, stop))
    for key, raw in wanted.items():
        if found.get(key) != raw:
            batch.put(space, key, raw)
    for key in found.keys() - wanted.keys():
        batch.delete(space, key)


# Keys of ``meta`` that stay in a copy without change log and consumers: sequences and timestamps of the new region
# continue from those of the old region and never decrease.
KEPT: Final = (b"epoch", b"future", b"reached", b"stamp")


async def copy_region(server: RegionServer, info: RegionInfo, path: str) -> None:
    """Copy the region's store as it is now to ``path``.  Linking files blocks the loop some 5 ms; threads do the rest.

    A closed region whose store has every acknowledged write stays closed: no other code runs while its files are
    linked, so it cannot be opened meanwhile.
    """
    folder, engine = server.folder_of(info), server.openings.engine
    if not server.hosting.state.owns(info.region_id):
        raise RegionNotLocal(info.table, info.encoded)  # its owner may have the store open
    is_closed = server.hosting.state.state(info.region_id) is State.NONE  # else a thread may still be closing it
    if is_closed and engine.exists(folder) and not server.openings.ownership(info).unreplayed_logs:
        try:
            link_closed(folder, path)
        except OSError as error:
            raise refused(error, f"cannot copy the files of {folder}") from error
        return
    served = server.tables.find(info.table.encode())
    if served is None:
        raise TableNotFound(info.table)
    while True:
        try:
            await copy_open_region(await server.opened(served, info), path)
            break
        except StoreClosed:  # it was evicted as the least used region; open it again
            continue
    if not served.enabled:
        await server.close_table(info.table)


async def copy_open_region(region: Region, path: str) -> None:
    """Copy an open region's store.  Waits for pending fsyncs, so no write in the copy can be lost by a crash now."""
    region.logging.note_end()
    await region.work.run_aside(region.store.files.flush)
    waiting = region.syncs.sync_async_writes() or region.syncs.barrier_any()
    if waiting is not None:
        await asyncio.wait([waiting])
    await retry_until_ready(partial(region.store.files.checkpoint, path))


def forget_log_at(engine: Engine, path: str, table: Table) -> None:
    """Remove change log and cursors from the copy at ``path``.  Blocks.

    The copied region may not have been opened since a crash, so the copy is repaired as at each opening.
    """
    store = engine.open_store(path, spaces_of(table), options_of_spaces(table))
    try:
        undo_cut_off(store, views_of(table))
        forget_log(store)
    finally:
        store.close()


def forget_log(store: Store) -> None:
    """Remove change log and cursors from the store.  The store is synced on return."""
    if LOG_SPACE in store.spaces:
        store.drop_space(LOG_SPACE)
    store.add_space(LOG_SPACE)
    batch = store.batch()
    for key, _ in store.scan(META_SPACE, b"", None):
        if key not in KEPT and not key.startswith(GUARDS):
            batch.delete(META_SPACE, key)
    store.write_batch(batch)
    store.sync()
