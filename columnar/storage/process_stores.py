"""Shared by all stores of one process: engine, clock, the log of shared fsyncs, and the committer.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final

from columnar.clock import ClockFile, StoreClock, system_ms
from columnar.storage.commit import Committer
from columnar.storage.data_folder import REGIONS, DataFolder, newest_write_ms
from columnar.storage.ownership import Ownership
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_log_files import open_server_log

CLOCK_GRAIN_MS: Final = 20  # a file's time may be so much behind the clock by which it was written


class ProcessStores:
    """``open`` comes first, ``close`` last."""

    def __init__(self, folder: DataFolder, engine: RocksEngine) -> None:
        self.folder = folder
        self.engine = engine
        self.region_folders = RegionFolders(os.path.join(folder.path, REGIONS), engine)

    def open(self) -> None:
        """Once per process; reads the server's log.  HostError, DamagedData."""
        self._clock_file = ClockFile.opened(self.folder.path)
        self.clock = StoreClock(system_ms, self._clock_file.keep)
        self.clock.observe(self._newest_ms())  # it may look at the times of files: before any is written
        try:
            self.server_log, self.dead_logs = open_server_log(self.folder)
        except BaseException:
            self._clock_file.close()
            raise
        self.engine.server_log, self.engine.dead_logs = self.server_log, self.dead_logs
        self.committer = Committer(asyncio.get_running_loop(), log=self.server_log)

    def _newest_ms(self) -> int:
        """The highest timestamp that was given in this folder; an older program's left the times of its files only."""
        return self._clock_file.highest_ms or newest_write_ms(self.folder.path) + CLOCK_GRAIN_MS

    def ownership(self, region: str, epoch: int) -> Ownership:
        """With which a store is opened: this process alone owns regions of the folder."""
        behind = self.dead_logs.behind(region) + self.server_log.behind(region)
        return Ownership(region, epoch, behind, is_sole=True)

    def close(self) -> None:
        """When every store is closed.  Blocks until running syncs have ended."""
        self.committer.close()
        self.server_log.close()
        self.clock.settle()
        self._clock_file.close()
