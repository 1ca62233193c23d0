"""Prepares a region's folder, on a file system that several machines share, in a thread before the engine opens it.

    read the logs that the region lacks  ->  take the folder over (``region_takeover``)  ->  warm it  ->  the opening

After the opening the folders of older generations are removed, in a thread too.  An operation on a network folder may
take minutes; so at most AT_ONCE regions are prepared at the same time, and the others wait.

Invariants:
    F1. At most one thread prepares a region, because a thread cannot be cancelled; requests keep their order.
    F2. A region counts as closed only when its thread has ended (``released``): the next owner, maybe at the same
        generation, works on the same folders.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from columnar.errors import HostError
from columnar.model.region_info import RegionInfo
from columnar.runtime.background import Background
from columnar.storage.region_folders import RegionFolders
from columnar.storage.warming import warm

_log = logging.getLogger(__name__)

WORK: Final = "preparation of regions' folders"
AT_ONCE: Final = 4

Prepared = Callable[[RegionInfo, Exception | None], None]


class SharedFolders:
    """The folders of the regions that one server of a cluster of nodes owns."""

    def __init__(
        self,
        folders: RegionFolders,
        generation_of: Callable[[str], int],
        load_logs: Callable[[int], Awaitable[None]],
    ) -> None:
        """Take the generation of a region's folder by encoded name, and the reading of the logs that a region lacks."""
        self.on_preparing: Callable[[int], None] = lambda _region_id: None  # before a thread works on a folder ...
        self.on_ended: Callable[[int], None] = lambda _region_id: None  # ... and after it
        self._folders = folders
        self._generation_of = generation_of
        self._load_logs = load_logs
        self._work = Background(WORK)
        self._preparing: dict[int, asyncio.Task[None]] = {}  # the last one of each region (F1)
        self._called_off: dict[int, RegionInfo] = {}  # of these
        self._permits = asyncio.Semaphore(AT_ONCE)

    def prepare_folder(self, info: RegionInfo, epoch: int, on_prepared: Prepared) -> None:
        """Prepare the folder for the region's owner at ``epoch``, then call ``on_prepared``, unless ``call_off`` came.

        ``on_prepared`` gets the error if the preparation failed: FolderTakenOver, HostError or a fault of the program.
        """
        before = self._preparing.get(info.region_id)
        work = self._prepare(info, self._generation_of(info.encoded), epoch, before)
        task = self._preparing[info.region_id] = asyncio.ensure_future(work)
        self._called_off.pop(info.region_id, None)
        task.add_done_callback(partial(self._prepared, info, on_prepared))

    def call_off(self, info: RegionInfo) -> None:
        """Report the preparation under way to nobody.  Its thread continues, and a later preparation waits for it."""
        if info.region_id in self._preparing:
            self._called_off[info.region_id] = info

    async def released(self, is_meant: Callable[[RegionInfo], bool]) -> None:
        """Wait until no thread works on a folder of the regions that ``is_meant`` selects for a called-off opening."""
        while tasks := [self._preparing[one] for one, info in self._called_off.items() if is_meant(info)]:
            await asyncio.wait(tasks)

    def is_preparing(self, region_id: int) -> bool:
        return region_id in self._preparing and region_id not in self._called_off

    def _prepared(self, info: RegionInfo, on_prepared: Prepared, task: asyncio.Task[None]) -> None:
        if task.cancelled():  # the loop ends
            return
        failure = task.exception()
        if self._preparing[info.region_id] is not task:
            return  # it was called off, and wanted again
        del self._preparing[info.region_id]
        if self._called_off.pop(info.region_id, None) is not None:
            return
        assert failure is None or isinstance(failure, Exception)
        on_prepared(info, failure)

    async def _prepare(self, info: RegionInfo, generation: int, epoch: int, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        await self._load_logs(info.region_id)
        async with self._permits:
            self.on_preparing(info.region_id)
            try:
                await asyncio.to_thread(self._take_and_warm, info.encoded, generation, epoch)
            finally:
                self.on_ended(info.region_id)

    def _take_and_warm(self, encoded: str, generation: int, epoch: int) -> None:
        if generation:
            self._folders.take_over(encoded, generation, epoch)
        warm(self._folders.path(encoded, generation))

    def clean_up(self, info: RegionInfo) -> None:
        """Remove, in the background, what the region's generation, which was opened, has replaced."""
        generation = self._generation_of(info.encoded)
        if generation:
            self._work.spawn(self._remove_older(info, generation))

    async def _remove_older(self, info: RegionInfo, generation: int) -> None:
        try:
            async with self._permits:
                await asyncio.to_thread(self._folders.remove_older, info.encoded, generation)
        except HostError as error:
            _log.warning("region %s: %s; the next opening removes them", info.encoded, error.text)

    async def close(self) -> None:
        """Wait until every thread has ended."""
        await self._work.ended()
        if self._preparing:
            await asyncio.wait(list(self._preparing.values()))
