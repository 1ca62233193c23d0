"""The parts that all stores of one process share: engine, clock, the log of shared fsyncs, and the committer.

    ProcessStores    of a process that owns the whole folder: a standalone, or a supervisor with its catalogue
    ServerStores     of one of several region servers of a folder, whose supervisor has the folder's lock

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from columnar.clock import ClockFile, StoreClock, system_ms
from columnar.errors import HostError
from columnar.storage.cluster_file import NODES
from columnar.storage.commit import Committer
from columnar.storage.data_folder import REGIONS, DataFolder, check_place, newest_write_ms
from columnar.storage.dead_logs import DeadLog, DeadLogs, Sealed, sealed_at
from columnar.storage.durable_files import make_lasting, sync_folder
from columnar.storage.file_copies import remove_tree
from columnar.storage.opening_notes import OpeningNotes
from columnar.storage.ownership import Ownership
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_errors import refused
from columnar.storage.segment_bounds import SyncedNotes
from columnar.storage.server_folders import LOG, clock_of, folder_of, is_spent, log_of, newest_clock, note_log
from columnar.storage.server_log_files import ServerLog, begin_run, open_server_log

LEADER_PREFIX: Final = "leader-"
CLOCK_GRAIN_MS: Final = 20  # a file's time may be older than the clock at its writing, by up to this


class StoresOfProcess(ABC):
    """The shared parts of a process's stores.  Call ``open`` first, ``close`` last."""

    def __init__(self, data: str, clock_folder: str, engine: RocksEngine) -> None:
        """Take the data folder, which has the regions of all servers, and the folder of this process's clock file."""
        self.engine = engine
        self.region_folders = RegionFolders(os.path.join(data, REGIONS), engine)
        self._clock_folder = clock_folder
        self.clock = StoreClock(self._now_ms, self._keep_clock)  # gives timestamps only when the stores are open

    def open(self) -> None:
        """Open the clock and the server's log, which is read.  Call this once.  Raises HostError, DamagedData."""
        self.open_files()
        self.begin_commits()

    def open_files(self) -> None:
        """Do the part of ``open`` that uses files.  For any thread; raises HostError, DamagedData."""
        self._clock_file = ClockFile.opened(self._clock_folder)
        try:
            self.clock.observe(self._newest_ms(self._clock_file.highest_ms))
            self.server_log, self.dead_logs = self._begin_log()
        except BaseException:
            self._clock_file.close()
            raise
        self.engine.use_logs(self.dead_logs, self.server_log)

    def begin_commits(self) -> None:
        """Do the rest of ``open``, on the loop."""
        self.committer = Committer(asyncio.get_running_loop(), log=self.server_log)

    @property
    def _now_ms(self) -> Callable[[], int]:
        return system_ms

    def _keep_clock(self, moment_ms: int) -> None:
        self._clock_file.keep(moment_ms)

    @abstractmethod
    def _newest_ms(self, own_ms: int) -> int:
        """Return the highest timestamp given in the folder; ``own_ms`` is that of the clock file, 0 without a file."""

    @abstractmethod
    def _begin_log(self) -> tuple[ServerLog, DeadLogs]:
        """Return the log that this process writes, and the dead logs."""

    def close(self) -> None:
        """Close the shared parts, after every store.  Blocks until running syncs have ended."""
        self.committer.close()
        self.close_files()

    def close_files(self) -> None:
        """Close what ``open_files`` has opened."""
        self.server_log.close()
        self.clock.settle()
        self._clock_file.close()


class FolderStores(StoresOfProcess):
    """The stores of a process that has the catalogue open."""

    folder: DataFolder

    @abstractmethod
    def ownership(self, region: str, epoch: int) -> Ownership:
        """Return the ownership for opening a store."""


class ProcessStores(FolderStores):
    def __init__(self, folder: DataFolder, engine: RocksEngine) -> None:
        super().__init__(folder.path, folder.path, engine)
        self.folder = folder

    def _newest_ms(self, own_ms: int) -> int:
        """Return the highest timestamp of the folder.

        Older programs wrote no clock file.  In such a folder the times of the logs are read instead, before any file
        is written.
        """
        return own_ms or newest_write_ms(self.folder.path) + CLOCK_GRAIN_MS

    def _begin_log(self) -> tuple[ServerLog, DeadLogs]:
        return open_server_log(self.folder)

    def ownership(self, region: str, epoch: int) -> Ownership:
        """Return the ownership for opening a store; this process alone owns regions of the folder."""
        unreplayed_logs = self.dead_logs.unreplayed_parts(region) + self.server_log.unreplayed_parts(region)
        return Ownership(region, epoch, unreplayed_logs, is_sole=True)


class ReadingsPage(SyncedNotes, Protocol):
    """A page of ``coordination.server_page``."""

    def raise_clock(self, highest_ms: int) -> None: ...


class ServerStores(StoresOfProcess):
    """The stores of an incarnation, whose log has no earlier run, since it starts once; other servers read the log."""

    def __init__(self, data: str, incarnation: str, engine: RocksEngine, page: ReadingsPage | None = None) -> None:
        """Take the data folder and the incarnation's text, such as ``s2.17``.

        ``page`` gets the synced lengths of the log and the clock, for a node; None: no process reads them.
        """
        self._page = page
        self._data = data
        self._folder = folder_of(data, incarnation)
        super().__init__(data, self._folder, engine)

    def open_files(self) -> None:
        """Make the incarnation's folder and open the files of the shared parts.

        Raises HostError, also if the incarnation was started before, and DamagedData.
        """
        if os.path.exists(self._folder):
            raise HostError(f"{self._folder} is there already: each start of a server has a number of its own")
        check_place(self._data)  # otherwise a new data folder would be made there
        try:
            make_lasting(self._folder)  # a power cut that removes the folder would remove the log in it
        except OSError as error:
            raise HostError(f"cannot make the server's folder {self._folder}: {error.strerror}") from error
        self.opening_notes = OpeningNotes.begun(self._folder)
        try:
            super().open_files()
            self._sync_folder()
        except BaseException:
            self.opening_notes.close()
            raise

    def _sync_folder(self) -> None:
        """Sync the folder, so that it is not empty after a power cut: an empty folder counts as damage.

        Raises HostError.
        """
        try:
            sync_folder(self._folder)
        except OSError as error:
            raise refused(error, f"cannot sync the server's folder {self._folder}") from error

    def close_files(self) -> None:
        super().close_files()
        self.opening_notes.close()

    def _keep_clock(self, moment_ms: int) -> None:
        if self._page is not None:
            self._page.raise_clock(moment_ms)
        super()._keep_clock(moment_ms)

    def _newest_ms(self, own_ms: int) -> int:
        return max(own_ms, newest_clock(self._data))

    def _begin_log(self) -> tuple[ServerLog, DeadLogs]:
        name = os.path.basename(self._folder)
        return begin_run(
            os.path.join(self._folder, LOG), has_begun=lambda: note_log(self._data, name), notes=self._page
        )

    def dead_log(self, incarnation: str, lengths: tuple[tuple[str, int], ...]) -> DeadLog:
        """Return the log of an incarnation that is fenced, or of one that lives, as sealed at ``lengths``.

        From now on this process gives no timestamp below those of the incarnation.  In the log of a dead incarnation
        everything that the seal lists must be found; a live server may have removed segments since.  Raises HostError.
        """
        self.clock.observe(clock_of(self._data, incarnation))
        folder = log_of(self._data, incarnation)
        return DeadLog(folder, Sealed() if is_spent(self._data, incarnation) else sealed_at(lengths))


class LeaderStores(FolderStores):
    """The stores of the leader of a cluster of nodes, which has the catalogue alone.

    The shared parts are in a folder of this leadership, DATA/nodes/NAME/leader-N, which no other process reads: the
    catalogue has a generation of its own for each leader.
    """

    def __init__(
        self, folder: DataFolder, node: str, number: int, engine: RocksEngine, now_ms: Callable[[], int] = system_ms
    ) -> None:
        """Take the data folder, the node's name, a number that was never given before, and the cluster's time."""
        self._cluster_ms = now_ms
        self._folders = os.path.join(folder.path, NODES, node)
        self._own = os.path.join(self._folders, f"{LEADER_PREFIX}{number}")
        super().__init__(folder.path, self._own, engine)
        self.folder = folder

    def open_files(self) -> None:
        """Make the folder of this leadership, remove those of earlier ones, and open the files of the shared parts.

        Raises HostError, DamagedData.
        """
        check_place(self.folder.path)
        try:
            for name in os.listdir(self._folders) if os.path.isdir(self._folders) else ():
                if name.startswith(LEADER_PREFIX):
                    remove_tree(os.path.join(self._folders, name), missing_ok=True)
            make_lasting(self._own)
        except OSError as error:
            raise refused(error, f"cannot make the leader's folder {self._own}") from error
        super().open_files()

    @property
    def _now_ms(self) -> Callable[[], int]:
        return self._cluster_ms

    def _newest_ms(self, own_ms: int) -> int:
        return max(own_ms, newest_clock(self.folder.path))

    def _begin_log(self) -> tuple[ServerLog, DeadLogs]:
        return begin_run(os.path.join(self._own, LOG))

    def ownership(self, region: str, epoch: int) -> Ownership:
        """Return the ownership for opening the catalogue, which no log but its own has records of."""
        return Ownership(region, epoch, is_sole=True)

    def close_files(self) -> None:
        super().close_files()
        with suppress(OSError):  # the next leadership of this node removes it
            remove_tree(self._own, missing_ok=True)
