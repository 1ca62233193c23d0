"""The parts that all stores of one process share: engine, clock, the log of shared fsyncs, and the committer.

    ProcessStores    of a process that owns the whole folder: a standalone, or a supervisor with its catalogue
    ServerStores     of one of several region servers of a folder (``server_stores``)

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from typing import Final

from columnar.clock import ClockFile, StoreClock, system_ms
from columnar.storage.commit import Committer
from columnar.storage.data_folder import REGIONS, DataFolder, newest_write_ms
from columnar.storage.dead_logs import DeadLogs
from columnar.storage.ownership import Ownership
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_log_files import ServerLog, open_server_log

CLOCK_GRAIN_MS: Final = 20  # a file's time may lag the clock at its writing by so much


class StoresOfProcess(ABC):
    """``open`` comes first, ``close`` last."""

    def __init__(self, data: str, clock_folder: str, engine: RocksEngine) -> None:
        """``data``: the folder with the regions of all servers; ``clock_folder``: with the clock's file."""
        self.engine = engine
        self.region_folders = RegionFolders(os.path.join(data, REGIONS), engine)
        self._clock_folder = clock_folder

    def open(self) -> None:
        """Once per process; reads the server's log.  HostError, DamagedData."""
        self._clock_file = ClockFile.opened(self._clock_folder)
        self.clock = StoreClock(system_ms, self._clock_file.keep)
        try:
            self.clock.observe(self._newest_ms(self._clock_file.highest_ms))
            self.server_log, self.dead_logs = self._begin_log()
        except BaseException:
            self._clock_file.close()
            raise
        self.engine.server_log, self.engine.dead_logs = self.server_log, self.dead_logs
        self.committer = Committer(asyncio.get_running_loop(), log=self.server_log)

    @abstractmethod
    def _newest_ms(self, own_ms: int) -> int:
        """Return the highest timestamp given in the folder; ``own_ms``: that of the clock's file, 0: there is none."""

    @abstractmethod
    def _begin_log(self) -> tuple[ServerLog, DeadLogs]:
        """The log that this process writes, and those that are over."""

    def close(self) -> None:
        """When every store is closed.  Blocks until running syncs have ended."""
        self.committer.close()
        self.server_log.close()
        self.clock.settle()
        self._clock_file.close()


class ProcessStores(StoresOfProcess):
    def __init__(self, folder: DataFolder, engine: RocksEngine) -> None:
        super().__init__(folder.path, folder.path, engine)
        self.folder = folder

    def _newest_ms(self, own_ms: int) -> int:
        """Return the highest timestamp of the folder.

        An older program left only the times of its files: they are read before any file is written.
        """
        return own_ms or newest_write_ms(self.folder.path) + CLOCK_GRAIN_MS

    def _begin_log(self) -> tuple[ServerLog, DeadLogs]:
        return open_server_log(self.folder)

    def ownership(self, region: str, epoch: int) -> Ownership:
        """With which a store is opened: this process alone owns regions of the folder."""
        unreplayed_logs = self.dead_logs.unreplayed_parts(region) + self.server_log.unreplayed_parts(region)
        return Ownership(region, epoch, unreplayed_logs, is_sole=True)
