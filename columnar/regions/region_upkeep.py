"""Work on open regions beside their requests: flushes, compactions, sweeps, and following an altered table.

Owned by the loop; long work is done in threads or in steps.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from columnar.errors import ColumnarError, RegionTooBusy
from columnar.model.schema import Table
from columnar.regions.life.region_state import State
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.region import Region
from columnar.regions.spaces import untuned
from columnar.regions.sweeper import needs_sweep, sweep, sweep_guards
from columnar.regions.write.guards import NeededFrom, nobody_needs, sweepable_before
from columnar.runtime.faults import FAULTS, surviving
from columnar.storage.api import StoreClosed

if TYPE_CHECKING:
    from columnar.regions.server import RegionServer

_log = logging.getLogger(__name__)

SWEEP_EVERY_S: Final = 600.0
LOOP: Final = "sweeps of regions"
FOLLOW_PAUSE_S: Final = 0.005  # between two steps of following an altered table, each some 3 ms on the loop


class RegionUpkeep:
    def __init__(self, server: RegionServer) -> None:
        self._server = server
        self._sweeping: asyncio.Future[None] | None = None
        self._guards_needed_from: NeededFrom = nobody_needs

    def keep_guards(self, needed_from: NeededFrom) -> None:
        """Keep the guards of members that the sender of contributions still needs."""
        self._guards_needed_from = needed_from

    # --- files -------------------------------------------------------------------------------------

    async def compact(self, region: Region) -> None:
        """Compact the region's files; requests are served meanwhile.

        Raises RegionTooBusy while the region is split or merged.
        """
        self._refuse_replaced(region)
        await region.work.run_aside(region.store.files.compact)

    async def major_compact(self, region: Region) -> None:
        """Sweep the region and have the engine rewrite all its files; requests are served meanwhile."""
        self._refuse_replaced(region)
        with region.work.kept_up():
            await _sweep(region)
            await sweep_region_guards(region, await self._guards_before(region, {}))
            await region.work.run_aside(partial(region.store.files.compact, everything=True))

    def _refuse_replaced(self, region: Region) -> None:
        if self._server.hosting.state_of(region) is State.REPLACING:
            raise RegionTooBusy(f"region {region.info.encoded} is being split or merged; compact it afterwards")

    # --- sweeps ------------------------------------------------------------------------------------

    def start_sweeping(self) -> None:
        """Begin to sweep open regions, one after the other.

        A region is swept if it was written to since its last sweep, or if it has guards.
        """
        self._sweeping = asyncio.ensure_future(self._sweep_for_ever())

    def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def _sweep_for_ever(self) -> None:
        swept: dict[int, int] = {}  # region id -> its number of writes when it was swept
        guards: dict[int, int] = {}  # region id -> time before which its guards were swept
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            with surviving(LOOP):
                await self._sweep_all(swept, guards)

    async def _sweep_all(self, swept: dict[int, int], guards: dict[int, int]) -> None:
        before: dict[str, int] = {}
        for region in self._server.all_open():
            try:
                await self._sweep_one(region, swept, guards, before)
            except ColumnarError as error:  # closed meanwhile, or the disk refuses writes: writers get that error
                _log.warning("sweep of region %s stopped: %s", region.info.encoded, error.text)
            except Exception as fault:  # noqa: BLE001 - the next regions are swept
                FAULTS.met(LOOP, fault)

    async def _sweep_one(
        self, region: Region, swept: dict[int, int], guards: dict[int, int], before: dict[str, int]
    ) -> None:
        if self._server.hosting.state_of(region) is not State.OPEN:
            return
        region_id, writes = region.info.region_id, region.writes
        all_of_it = writes != swept.get(region_id, 0) and needs_sweep(region.table)
        with region.work.kept_up():
            before_ms = await self._guards_before(region, before) if region.guards else 0
            if not all_of_it and before_ms <= guards.get(region_id, 0):
                return
            gone = await _sweep(region) if all_of_it else 0
            gone += await sweep_region_guards(region, before_ms)
        swept[region_id], guards[region_id] = writes, before_ms
        _log.debug("sweep of region %s removed %d stored values", region.info.encoded, gone)

    async def _guards_before(self, region: Region, known: dict[str, int]) -> int:
        """Return the time before which guards of the table may be removed.

        ``known`` has the times found in this round, by table: finding a time may need requests to other servers.
        """
        table = region.info.table
        if table not in known:
            known[table] = await sweepable_before(table, region.now_ms, self._guards_needed_from)
        return known[table]

    # --- altered tables ----------------------------------------------------------------------------

    async def follow_schema(self, table: str) -> None:
        """Bring every open region of the table to the table's schema, one after the other."""
        for region in self._server.open_regions_of(table):
            if region.is_open:
                self._server.follow_schema(region)
                await asyncio.sleep(FOLLOW_PAUSE_S)
                with suppress(StoreClosed):  # closed meanwhile: its next opening is by the schema
                    await self._tune(region)

    async def _tune(self, region: Region) -> None:
        """Set the engine's options of the spaces.  Reopens the region for an option that only an opening can set."""
        store = region.store
        changes = untuned(store, region.table)
        if any(store.options_of(name).cache != options.cache for name, options in changes.items()):
            await self.reopen(region)
            return
        for name, options in changes.items():
            store.set_options(name, options)
            await asyncio.sleep(FOLLOW_PAUSE_S)

    async def reopen(self, region: Region) -> None:
        """Close the region and open it again; requests for it wait meanwhile."""
        with suppress(StoreClosed):  # closed meanwhile: its next opening is by the schema
            await region.flush()  # so that the opening finds little in the WAL
        await self._server.hosting.close(region)
        served = self._server.serving(region.info)
        if served is not None:
            await self._server.opened(served, region.info)


async def _sweep(region: Region) -> int:
    """Sweep the region, again if its schema changed meanwhile.  Returns the number of removed values."""
    gone, schema = 0, None
    while schema is not region.table:
        schema = region.table
        is_current = partial(_has_schema, region, schema)
        gone += await sweep(region.store, schema, region.views, region.now_ms, is_current)
    return gone


async def sweep_region_guards(region: Region, before_ms: int) -> int:
    """Remove the guards made before ``before_ms``, and the marks of families that have no guard left."""
    gone, schema = 0, region.table
    views = {view.number: view for view in region.views.values()}
    for family in region.guards.families():
        was_over = region.guards.is_over(family, before_ms)
        if family in views:
            is_current = partial(_has_schema, region, schema)
            gone += await sweep_guards(region.store, views[family], before_ms, is_current)
        if was_over and region.table is schema:
            await retry_until_ready(partial(region.guards.forget_swept, region.store, family, before_ms))
    return gone


def _has_schema(region: Region, schema: Table) -> bool:
    return region.table is schema
