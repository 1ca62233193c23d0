"""The stores of a region server that shares its data folder with other servers.

The supervisor of the servers has the folder's lock, and every server inherits it.
"""

from __future__ import annotations

import os

from columnar.errors import HostError
from columnar.storage.data_folder import check_place
from columnar.storage.dead_logs import DeadLog, DeadLogs, Sealed, sealed_at
from columnar.storage.durable_files import sync_folder
from columnar.storage.folders import make_lasting
from columnar.storage.opening_notes import OpeningNotes
from columnar.storage.process_stores import StoresOfProcess
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_errors import refused
from columnar.storage.server_folders import LOG, clock_of, folder_of, is_spent, log_of, newest_clock, note_log
from columnar.storage.server_log_files import ServerLog, begin_run


class ServerStores(StoresOfProcess):
    """The stores of one incarnation.  It is started once, so it has no earlier run; other servers read its logs."""

    def __init__(self, data: str, incarnation: str, engine: RocksEngine) -> None:
        """``incarnation``: as ``s2.17``."""
        self._data = data
        self._folder = folder_of(data, incarnation)
        super().__init__(data, self._folder, engine)

    def open(self) -> None:
        """HostError; also where the incarnation was started before."""
        if os.path.exists(self._folder):
            raise HostError(f"{self._folder} is there already: each start of a server has a number of its own")
        check_place(self._data)  # else a new one would grow there
        try:
            make_lasting(self._folder)  # with it a power cut would take the log within
        except OSError as error:
            raise HostError(f"cannot make the server's folder {self._folder}: {error.strerror}") from error
        self.opening_notes = OpeningNotes.begun(self._folder)
        try:
            super().open()
            self._sync_folder()
        except BaseException:
            self.opening_notes.close()
            raise

    def _sync_folder(self) -> None:
        """Sync the folder, so that it is not empty after a power cut: an empty one has lost its log.  HostError."""
        try:
            sync_folder(self._folder)
        except OSError as error:
            raise refused(error, f"cannot sync the server's folder {self._folder}") from error

    def close(self) -> None:
        super().close()
        self.opening_notes.close()

    def _newest_ms(self, own_ms: int) -> int:
        return max(own_ms, newest_clock(self._data))

    def _begin_log(self) -> tuple[ServerLog, DeadLogs]:
        name = os.path.basename(self._folder)
        return begin_run(os.path.join(self._folder, LOG), has_begun=lambda: note_log(self._data, name))

    def dead_log(self, incarnation: str, lengths: tuple[tuple[str, int], ...]) -> DeadLog:
        """The log of an incarnation that is fenced, as it was sealed.  From now on no timestamp is given below its.

        All that the seal lists must be there; of a server that lives, what it has not removed since.

        HostError.
        """
        self.clock.observe(clock_of(self._data, incarnation))
        folder = log_of(self._data, incarnation)
        return DeadLog(folder, Sealed() if is_spent(self._data, incarnation) else sealed_at(lengths))
