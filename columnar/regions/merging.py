"""Two neighbours become one: the smaller is copied into the larger while both serve, the rest while they are shut.

The larger one's store is the base.  The smaller one's rows are none of its own while it serves, so no
reader sees them there, and the mark for clipping removes them should the merge be called off or the
process end (``row_range``).  While both are shut the last touched rows are copied, a checkpoint of the base
is made, and into that go the smaller one's change log and the marks and cursors of both:

    log        records of both; sequences carry the origin in which they were given, so none clash
    cursor/    everything up to the new region's first sequence is read; what either had still to deliver is open
    future, stamp    the higher
    time/      everything is as old as the merge
    backfill/  both are at their end (``merge_obstacle``)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from collections.abc import Sequence as ListOf
from itertools import islice
from typing import Final

from columnar.errors import RegionTooBusy
from columnar.limits import MIB
from columnar.model.region_info import RegionInfo
from columnar.regions import log_retention
from columnar.regions.change_log import CURSOR, LOG_SPACE
from columnar.regions.change_record import Sequence
from columnar.regions.log_retention import META_SPACE
from columnar.regions.region import HIGHEST_MARKS, spaces_of
from columnar.regions.replacing import HOLD_PATIENCE_S, Replacement
from columnar.regions.row_copying import RowCopy
from columnar.regions.row_range import clip, mark_for_clipping
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.storage.api import Store

FEW_ROWS: Final = 500  # touched rows that are copied while requests wait: some 20 ms
ROUNDS: Final = 10  # of copying what was touched; a region that does not calm down by then is left alone
CARRIED_RECORDS: Final = 10_000  # of the smaller one's log, written while requests wait: some 50 ms
CARRIED_BYTES: Final = 16 * MIB


class Merging(Replacement):
    """Of two neighbours; see ``Replacement``."""

    def __init__(self, server: RegionServer, served: ServedTable, infos: ListOf[RegionInfo]) -> None:
        super().__init__(server, served, infos)
        self._small, self._base = sorted(self.regions, key=lambda region: region.store.size_bytes())
        self._copy: RowCopy | None = None

    async def middle(self) -> bytes | None:
        return None

    async def prepare(self) -> None:
        """While both serve: all of the smaller one into the larger; RegionTooBusy where that never ends."""
        await self.wait_for_upkeep()
        for region in self.regions:
            obstacle = await self.server.listener.merge_obstacle(region, HOLD_PATIENCE_S)
            if obstacle:
                raise RegionTooBusy(f"region {region.info.encoded} cannot be merged now: {obstacle}")
        self._check_log()
        mark_for_clipping(self._base.store)
        self._copy = RowCopy(self._small, self._base, self.check_open)
        await self._copy.everything()
        for _ in range(ROUNDS):
            if self._copy.waiting <= FEW_ROWS:
                break
            await self._copy.touched()
        await self._base.aside(self._base.store.flush)

    def _check_log(self) -> None:
        log = self._small.log
        records = log.count_after(None, CARRIED_RECORDS + 1)
        if records > CARRIED_RECORDS or log.size_bytes > CARRIED_BYTES:
            raise RegionTooBusy(
                f"the change log of region {self._small.info.encoded} is too long to be carried over at once "
                f"(at most {CARRIED_RECORDS} changes); merge when its triggers have caught up or CHANGE_LOG lets go"
            )

    async def make(self, fresh: ListOf[RegionInfo]) -> None:
        """While both are shut.  The folder is on disk when this returns."""
        (merged,), copy = fresh, self._copy
        assert copy is not None, "prepared before"
        if copy.waiting > FEW_ROWS * 4:
            raise RegionTooBusy(
                f"region {self._small.info.encoded} is written to too fast; merge when there is less to do"
            )
        await copy.touched()
        self._check_log()
        await self._base.aside(self._base.store.flush)
        self.check_pause()
        folder = self.server.folder_of(merged)
        self._base.store.checkpoint(folder)
        store = self.server.engine.open(folder, spaces_of(self._base.table))
        self.server.adopt(merged, store)
        self._carry_over(store, merged)
        await asyncio.get_running_loop().run_in_executor(None, store.sync)
        self.check_pause()

    def _carry_over(self, store: Store, merged: RegionInfo) -> None:
        small, base = self._small.store, self._base.store
        records = small.scan(LOG_SPACE, b"", None)
        while chunk := list(islice(records, 1_000)):
            batch = store.batch()
            for key, data in chunk:
                batch.put(LOG_SPACE, key, data)
            store.write(batch)
        read_to = Sequence(merged.region_id, 0, 0)
        batch = store.batch()
        for key in [*_under(base, CURSOR), *log_retention.marks_of(base)]:
            batch.delete(META_SPACE, key)
        cursors = self.server.listener.merged_cursors(self.regions, read_to)
        for name, state in cursors.items():
            batch.put(META_SPACE, CURSOR + name.encode(), state)
        for key in HIGHEST_MARKS:
            held = [raw for raw in (small.get(META_SPACE, key), base.get(META_SPACE, key)) if raw is not None]
            if held:
                batch.put(META_SPACE, key, max(held))
        if self._base.table.change_log_s is not None:
            batch.put(META_SPACE, *log_retention.mark(self._base.now_ms, read_to))
        store.write(batch)

    def leave(self) -> None:
        """As ``Replacement.leave``; no more rows are noted, and a base that serves on is rid of what it was given."""
        if self._copy is not None:
            self._copy.stop()
            if self._base.is_open:
                clip(self._base.store, self._base.views, self._base.info)
        super().leave()


def _under(store: Store, prefix: bytes) -> Iterator[bytes]:
    for key, _ in store.scan(META_SPACE, prefix, prefix[:-1] + bytes([prefix[-1] + 1])):
        yield key
