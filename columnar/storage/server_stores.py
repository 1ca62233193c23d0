"""The stores of a region server that shares its data folder with other servers.

    servers/NAME.NUMBER/log      what its regions write under shared fsyncs
    servers/NAME.NUMBER/clock    the highest timestamp that it gave

The supervisor of the servers holds the folder's lock, and every server inherits it.  An incarnation is text here, as
``s2.17``; the log of a standalone, ``server-log``, is that of an incarnation called ``standalone.NUMBER``.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from columnar import clock
from columnar.errors import HostError
from columnar.storage.data_folder import SERVER_LOG
from columnar.storage.dead_logs import DeadLog, DeadLogs, sealed_at
from columnar.storage.folders import make_lasting
from columnar.storage.process_stores import StoresOfProcess
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_log_files import ServerLog, begin_run

SERVERS: Final = "servers"
LOG: Final = "log"
STANDALONE: Final = "standalone"


class ServerStores(StoresOfProcess):
    """Nothing is left of an earlier run: an incarnation is started once, and what it leaves is read by others."""

    def __init__(self, data: str, incarnation: str, engine: RocksEngine) -> None:
        self._data = data
        self._folder = _folder_of(data, incarnation)
        super().__init__(data, self._folder, engine)

    def open(self) -> None:
        """HostError; also where the incarnation was started before."""
        if os.path.exists(self._folder):
            raise HostError(f"{self._folder} is there already: each start of a server has a number of its own")
        try:
            make_lasting(self._folder)  # else a power cut would take the log within
        except OSError as error:
            raise HostError(f"cannot make the server's folder {self._folder}: {error.strerror}") from error
        super().open()

    def _newest_ms(self, own_ms: int) -> int:
        """By the clocks of all incarnations, and of the process that had the folder for itself."""
        newest_ms = max(own_ms, clock.read(self._data))
        with suppress(FileNotFoundError), os.scandir(os.path.join(self._data, SERVERS)) as found:
            for folder in found:
                newest_ms = max(newest_ms, clock.read(folder.path))
        return newest_ms

    def _begin_log(self) -> tuple[ServerLog, DeadLogs]:
        return begin_run(os.path.join(self._folder, LOG))

    def dead_log(self, incarnation: str, lengths: tuple[tuple[str, int], ...]) -> DeadLog:
        """The log of an incarnation that is fenced, as it was sealed.  From now on no timestamp is given below its.

        HostError.
        """
        if incarnation.rpartition(".")[0] == STANDALONE:
            folder, log = self._data, os.path.join(self._data, SERVER_LOG)
        else:
            folder = _folder_of(self._data, incarnation)
            log = os.path.join(folder, LOG)
        self.clock.observe(clock.read(folder))
        return DeadLog(log, sealed_at(log, lengths))


def _folder_of(data: str, incarnation: str) -> str:
    return os.path.join(data, SERVERS, incarnation)
