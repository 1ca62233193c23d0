"""Splits and merges as the owner of the regions carries them out; the master decides on them (``RegionChange``).

    begin     the successors' stores are made and nearly filled while the old regions serve
    finish    quiesce followers -> pause requests -> make -> COMMIT, by a request to the master -> successors serve

Invariants:
    I1. A failure before the commit has no effect: the old regions continue to serve.
    I2. While the outcome of the commit is unknown, neither old nor new regions are served until ``settle``:
        otherwise writes of the meantime could be lost.
    I3. Only the owner of all old regions carries it out; the highest of their epochs is the change's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from columnar.errors import NotServingRegion, OutcomeUnknown, RegionTooBusy
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionChange, RegionLoad
from columnar.regions.life.region_state import State
from columnar.regions.replace.middle_row import middle_row
from columnar.regions.replace.region_replacement import Merging, Replacement, Splitting, clean_up
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.storage.api import StoreClosed

TRIES: Final = 5  # to make the new ones within a pause; between two of them requests are served


def _nothing(_step: str) -> None:
    pass


@contextmanager
def _closed_as_not_serving(info: RegionInfo) -> Iterator[None]:
    """Raise NotServingRegion if the store is closed during the work, for example by a disable of the table."""
    try:
        yield
    except StoreClosed as closed:
        raise NotServingRegion(f"region {info.encoded} was closed meanwhile; try again") from closed


def _nobody(_change: RegionChange) -> None:
    pass


class ChangingRegions:
    """Owned by the loop."""

    def __init__(
        self, server: RegionServer, commit: Callable[[RegionChange], Awaitable[None]], region_bytes: int
    ) -> None:  # fmt: skip
        """``commit`` returns when the catalogue names the successors.  ``region_bytes``: the bound of most tables."""
        self._server = server
        self._commit = commit
        self._region_bytes = region_bytes
        self._in_progress: dict[RegionChange, Replacement] = {}
        self._unsure: dict[RegionChange, Replacement] = {}  # until ``settle``
        self.at: Callable[[str], None] = _nothing  # called when a step is over: tests die there
        self.on_committed: Callable[[RegionChange], None] = _nobody  # before its successors are opened

    async def middle(self, info: RegionInfo) -> bytes | None:
        region = await self._server.opened(self._served(info.table), info)
        with region.kept_up(), _closed_as_not_serving(info):
            await region.aside(region.store.flush)  # the engine's size estimates cover files only
            return await middle_row(region)

    async def begin(self, change: RegionChange) -> None:
        hosting = self._server.hosting.state
        for info in change.gone:
            if not hosting.owns(info.region_id):
                raise NotServingRegion(f"region {info.encoded} is not owned here; ask again")
        if max(hosting.epoch_of(info.region_id) for info in change.gone) != change.epoch:
            raise NotServingRegion(f"region {change.gone[0].encoded} is not owned at epoch {change.epoch}; ask again")
        kind = Splitting if len(change.gone) == 1 else Merging
        work = kind(self._server, self._served(change.gone[0].table), change)
        with _closed_as_not_serving(change.gone[0]):
            await work.begin()
        self._in_progress[change] = work
        try:
            with _closed_as_not_serving(change.gone[0]):
                await work.prepare()
        except BaseException:
            self.call_off(change)
            raise

    async def finish(self, change: RegionChange) -> float:
        """Carry out the pause, the commit and the takeover.  Returns how long requests waited at most, in seconds."""
        work = self._in_progress[change]
        try:
            async with self._server.listener.changing():
                with _closed_as_not_serving(change.gone[0]):
                    await self._make(work)
                self.at("made")
                await self._committed(change, work)
                work.succeed()
                self.at("succeeded")
        except BaseException:
            self.call_off(change)
            raise
        return work.paused_s

    async def _make(self, work: Replacement) -> None:
        for _ in range(TRIES):
            await work.quiesce_followers()
            self.at("held")
            await work.pause_requests()
            self.at("shut")
            if await work.make():
                return
            work.let_in()
        raise RegionTooBusy(
            f"a split or merge of {work.change.gone[0].table} was called off: {TRIES} times requests would have waited "
            "for too long; the disk is slow or busy, try again"
        )

    async def _committed(self, change: RegionChange, work: Replacement) -> None:
        try:
            await self._commit(change)
        except (OutcomeUnknown, asyncio.CancelledError) as error:
            self._unsure[change] = self._in_progress.pop(change)
            work.suspend(f"what became of its split or merge is known when the disk takes writes again ({error})")
            raise
        del self._in_progress[change]
        self.on_committed(change)

    def call_off(self, change: RegionChange) -> None:
        work = self._in_progress.pop(change, None)
        if work is not None:
            work.leave()

    def settle(self, change: RegionChange) -> None:
        work = self._unsure.pop(change, None)
        if work is not None:
            work.resume()

    def settle_for(self, info: RegionInfo) -> None:
        """``settle`` each change that keeps the region blocked: the catalogue names the region."""
        for change in [change for change in self._unsure if info in change.gone]:
            self.settle(change)

    def regions_of(self, table: str, named: list[RegionInfo]) -> list[RegionInfo]:
        """Return the table's regions as this server serves them, given the regions ``named`` in the catalogue.

        A change whose commit the master has not answered yet continues: until then the old regions are the served ones.
        """
        served = named
        for change in self._in_progress:
            if change.gone[0].table == table and all(info in served for info in change.fresh):
                kept = [info for info in served if info not in change.fresh]
                served = sorted([*kept, *change.gone], key=lambda info: info.start)
        return served

    async def reclaim_space(self, info: RegionInfo) -> None:
        await clean_up(await self._server.opened(self._served(info.table), info))

    def loads(self) -> tuple[RegionLoad, ...]:
        """Return the size and the size bound of each open region.  Costs some 10 us a region."""
        return tuple(
            RegionLoad(region.info, region.store.size_bytes(), region.table.max_filesize or self._region_bytes)
            for region in self._server.all_open()
            if not region.table.is_system and self._server.hosting.state_of(region) is State.OPEN
        )

    def _served(self, table: str) -> ServedTable:
        served = self._server.tables.find(table.encode())
        if served is None:
            raise NotServingRegion(f"table {table} was dropped meanwhile")
        return served
