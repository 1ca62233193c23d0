"""The queue of regions whose stores are to be opened: in the order in which they were wanted, one per loop iteration.

An opening takes the engine some 6 ms; requests for open regions are served between two openings.  If other machines
share the folder, a thread prepares it before (``shared_folders``), and the order is that in which folders are ready.

Invariants:
    I1. A region in OPENING is in the queue: it is opened, or its requests fail with the reason, within as many loop
        iterations as regions were ready before it.
    I2. A region in the queue is ready, or its folder is being prepared.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from columnar.clock import Clock
from columnar.errors import DamagedData, DiskFails, HostError, RegionUnavailable
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.life.hosting import Hosting
from columnar.regions.life.opening import opened_again, opened_for_reading, region_of
from columnar.regions.life.read_only_regions import ReadOnlyRegions
from columnar.regions.life.region_state import Event, State
from columnar.regions.life.shared_folders import SharedFolders
from columnar.regions.region import Region, spaces_of
from columnar.regions.spaces import options_of_spaces
from columnar.storage.api import Engine, Store
from columnar.storage.commit import Committer
from columnar.storage.ownership import Ownership
from columnar.storage.region_folders import RegionFolders

PREPARE_PAUSE_S: Final = 0.005  # between two stores that are made, each some 3 ms on the loop
CLOSING_S: Final = 10.0  # how long a stopping server waits until failed stores are closed


class OpeningQueue:
    def __init__(
        self,
        engine: Engine,
        folders: RegionFolders,
        committer: Committer,
        clock: Clock,
        hosting: Hosting,
        read_only: ReadOnlyRegions,
        schema_of: Callable[[RegionInfo], Table],
    ) -> None:
        """``schema_of`` returns the schema to open a region with, or raises NotServingRegion."""
        self.engine = engine
        self.on_opening: Callable[[int], None] = lambda _region_id: None  # before a store is opened ...
        self.on_ended: Callable[[int], None] = lambda _region_id: None  # ... and after it was opened or failed
        # Called when an opening has ended or was cancelled.
        self.on_settled: Callable[[RegionInfo, Exception | None], None] = lambda _info, _failure: None
        self.ownership_at: Callable[[str, int], Ownership] = Ownership  # of (encoded region, epoch)
        self._folders = folders
        self._committer = committer
        self._clock = clock
        self._hosting = hosting
        self._state = hosting.state
        self._read_only = read_only
        self._schema_of = schema_of
        self.shared_folders: SharedFolders | None = None  # of a server of nodes
        self._wanted: dict[int, RegionInfo] = {}  # in OPENING
        self._ready: OrderedDict[int, RegionInfo] = OrderedDict()  # of these, the next to be opened first

    def want(self, info: RegionInfo) -> RegionUnavailable:
        """Queue the opening of a region that is not served; the returned error says when to retry.

        Raises NotServingRegion or RegionUnavailable as ``Hosting.check_may_open`` does.
        """
        self._hosting.check_may_open(info)
        region_id = info.region_id
        self._state.apply_event(region_id, Event.WANTED)
        self._wanted[region_id] = info
        if self.shared_folders is None:
            self._open_soon(info)
        else:
            self.shared_folders.prepare_folder(info, self._state.epoch_of(region_id), self._prepared)
        return RegionUnavailable(info.encoded, self._hosting.gate(region_id), is_opening=True)

    def _open_soon(self, info: RegionInfo) -> None:
        self._ready[info.region_id] = info
        if len(self._ready) == 1:
            asyncio.get_running_loop().call_soon(self.open_next)

    def _prepared(self, info: RegionInfo, failure: Exception | None) -> None:
        if failure is None:
            self._open_soon(info)
            return
        if isinstance(failure, HostError):
            self._read_only.note_fault(info, failure)
        self._leave_queue(info, Event.NOT_OPENED)
        self._hosting.fail(info.region_id, failure)
        self.on_settled(info, failure)

    def _leave_queue(self, info: RegionInfo, event: Event) -> None:
        del self._wanted[info.region_id]
        self._ready.pop(info.region_id, None)
        self._state.apply_event(info.region_id, event)

    def open_in(self, info: RegionInfo, store: Store) -> Region:
        """Serve the region from a store that is open already.

        Raises HostError, DamagedData and the errors of ``want``.
        """
        self._hosting.check_may_open(info)
        self._state.apply_event(info.region_id, Event.WANTED)
        event = Event.NOT_OPENED
        try:
            table = self._schema_of(info)
            region = region_of(store, info, table, self._committer, self._clock)
            event = Event.OPENED
        finally:
            self._state.apply_event(info.region_id, event)
        self._hosting.serve(region)
        return region

    def open_next(self) -> None:
        if not self._ready:
            return
        region_id, info = next(iter(self._ready.items()))
        failure: Exception | None = None
        try:
            self._open(info)
        except Exception as fault:  # noqa: BLE001 - the waiting requests get the fault, whatever it is
            failure = fault
            self._hosting.fail(region_id, fault)
        try:
            self.on_settled(info, failure)
        finally:  # I1: a fault of one region does not delay the other regions
            if self._ready:
                asyncio.get_running_loop().call_soon(self.open_next)

    def _open(self, info: RegionInfo) -> None:
        event = Event.NOT_OPENED
        self.on_opening(info.region_id)
        try:
            region, event = self._opened(info, self._schema_of(info))
        finally:
            self.on_ended(info.region_id)
            self._leave_queue(info, event)
        if self.shared_folders is not None:
            self.shared_folders.clean_up(info)
        self._hosting.serve(region, for_requests=True)
        self._hosting.release(info.region_id)

    def _opened(self, info: RegionInfo, table: Table) -> tuple[Region, Event]:
        path, ownership = self._folders.path(info.encoded), self.ownership(info)
        try:
            region = opened_again(self.engine, path, info, table, self._committer, self._clock, ownership)
        except (DiskFails, DamagedData) as fault:
            self._read_only.note_fault(info, fault)
            raise
        except HostError as cause:
            self._read_only.note_fault(info, cause)
            if ownership.unreplayed_logs and not ownership.is_sole:
                raise  # it is served only once every unreplayed log is on disk, and another server may succeed
            region = opened_for_reading(
                self.engine, path, info, table, self._committer, self._clock, ownership, cause
            )  # fmt: skip
            self._read_only.note_reading(info, cause)
            return region, Event.OPENED_READING
        self._read_only.note_writing(info)
        return region, Event.OPENED

    def call_off(self, is_meant: Callable[[RegionInfo], bool]) -> None:
        """Cancel the queued openings that ``is_meant`` selects.

        Waiting requests locate the region of their row again.  Threads may continue until ``folders_released``.
        """
        for info in [info for info in self._wanted.values() if is_meant(info)]:
            if self.shared_folders is not None:
                self.shared_folders.call_off(info)
            self._leave_queue(info, Event.NOT_OPENED)
            self._hosting.release(info.region_id)
            self.on_settled(info, None)

    async def folders_released(self, is_meant: Callable[[RegionInfo], bool]) -> None:
        """Wait until no thread prepares a folder for an opening that was called off."""
        if self.shared_folders is not None:
            await self.shared_folders.released(is_meant)

    def ownership(self, info: RegionInfo) -> Ownership:
        """Return the ownership to open the region's store with: the owner's epoch and the unreplayed logs."""
        return self.ownership_at(info.encoded, self._state.epoch_of(info.region_id))

    async def prepare(self, table: Table, infos: list[RegionInfo]) -> None:
        """Make the stores of regions that will soon be served: making a store costs some 40 ms, opening it 6.

        A folder that is gone, or in which a store was made, is left alone: the caller may have ended meanwhile, so that
        the regions may have been dropped, or may have owners that serve them.
        """
        for info in infos:
            path = self._folders.path(info.encoded)
            if not self.engine.is_untouched(path):
                continue
            self.engine.open_store(path, spaces_of(table), options_of_spaces(table)).close()
            await asyncio.sleep(PREPARE_PAUSE_S)

    async def stop(self) -> None:
        """Sync and close every region.  No region is opened after this call."""
        self._state.stop()
        self.call_off(lambda _info: True)
        if self.shared_folders is not None:
            await self.shared_folders.close()
        await self._hosting.close_all(list(self._hosting.serving.values()))
        await self._hosting.all_there(CLOSING_S)

    def check_invariants(self) -> None:
        """Assert I1, I2 and the invariants of ``Hosting``."""
        assert set(self._wanted) == set(self._state.in_states(frozenset({State.OPENING}))), "I1"
        for region_id in self._wanted:
            is_preparing = self.shared_folders is not None and self.shared_folders.is_preparing(region_id)
            assert is_preparing != (region_id in self._ready), "I2"
        self._hosting.check_invariants()
