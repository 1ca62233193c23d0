"""The root folder of a store: its lock, its format, its name, and the names of what is in it.

FORMAT              ``columnar-data 4``, or less where an older program made it: a newer number is refused
LOCK                held by the process that serves the folder; says which
cluster-id
clock               the highest timestamp that was given (``columnar.clock``)
regions/ENCODED     one RocksDB of each region; ``regions/meta`` is the catalogue's; in each how much of it was synced
                    (``SYNCED``, ``columnar.storage.synced_bound``)
server-log/         what several regions wrote under one fsync (``columnar.storage.server_log``)
snapshots/NAME      a snapshot of a table (``columnar.master.snapshots``)
staging/TOKEN       what a command of this machine reads or brings (``columnar.master.staging``)
lost+found/         what a repair moved aside (``columnar.checking.repair``)
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import IO, Final

from columnar.errors import FolderInUse, HostError
from columnar.storage.durable_files import write_durably
from columnar.storage.folders import make_lasting

FORMAT_VERSIONS: Final = (1, 2, 3, 4)  # append only; one line each in docs/formats/folder.md
SERVER_LOG_SINCE: Final = 2
ALL_FOLDERS_SINCE: Final = 3  # every region that the catalogue names has its folder
_FORMAT_WORD: Final = "columnar-data"
REGIONS: Final = "regions"
SERVER_LOG: Final = "server-log"
BACK: Final = "put it back, or restore the store from a backup into a new folder ('columnar restore-backup')"
LOG_ENDS: Final = (".log", ".segment")  # of a region's log, and of the server's
META: Final = "meta"  # in ``regions``: the catalogue's
SNAPSHOTS: Final = "snapshots"
STAGING: Final = "staging"
LOST_AND_FOUND: Final = "lost+found"


class DataFolder:
    """The root folder, locked for this process."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            make_lasting(path)
            self._lock = self._take_lock()
        except OSError as error:
            raise self._unusable(error) from error
        try:
            if not os.path.exists(os.path.join(path, "FORMAT")):
                make_lasting(os.path.join(path, REGIONS))  # first: where the one is the other was
            self._check_format()
            self._check_regions()
            self.cluster_id = self._cluster_id()
        except OSError as error:
            self.close()
            raise self._unusable(error) from error
        except HostError:
            self.close()
            raise

    def _unusable(self, error: OSError) -> HostError:
        why = f"{error.strerror} ({error.filename})" if error.filename else error.strerror
        return HostError(f"cannot use the data folder {self.path}: {why}; mend it or choose another with --data")

    def _take_lock(self) -> IO[str]:
        lock = open(os.path.join(self.path, "LOCK"), "a+", encoding="utf-8")  # noqa: SIM115 - held until close
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            owner = lock.read().strip() or "another process"
            lock.close()
            raise FolderInUse(self.path, owner) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()}\n")
        lock.flush()
        return lock

    def _check_format(self) -> None:
        text = self._read_or_write("FORMAT", f"{_FORMAT_WORD} {FORMAT_VERSIONS[-1]}")
        word, _, number = text.partition(" ")
        if word != _FORMAT_WORD or not number.isdigit():
            raise HostError(f"{self.path} is no data folder of ours: its FORMAT says '{text[:40]}'")
        if int(number) not in FORMAT_VERSIONS:
            raise HostError(f"{self.path} has format {number}; this version knows up to {FORMAT_VERSIONS[-1]}: upgrade")
        self.format = int(number)

    def _check_regions(self) -> None:
        regions = os.path.join(self.path, REGIONS)
        if not os.path.isdir(regions):
            raise HostError(f"{regions} is missing, with all that was written; {BACK}")

    def raise_format(self, wanted: int) -> None:
        """At least to that, before the folder gets what an older program would not know of.  HostError."""
        if self.format >= wanted:
            return
        try:
            write_durably(os.path.join(self.path, "FORMAT"), f"{_FORMAT_WORD} {wanted}\n".encode())
        except OSError as error:
            raise self._unusable(error) from error
        self.format = wanted

    def _cluster_id(self) -> str:
        if not os.path.exists(os.path.join(self.path, "cluster-id")):
            from uuid import uuid4  # needed once in a folder's life

            return self._read_or_write("cluster-id", str(uuid4()))
        return self._read_or_write("cluster-id", "")

    def _read_or_write(self, name: str, text: str) -> str:
        """The file's text; made with ``text``, whole or not at all, when it is not there."""
        path = os.path.join(self.path, name)
        if not os.path.exists(path):
            write_durably(path, f"{text}\n".encode())
        with open(path, encoding="utf-8", errors="replace") as held:
            return held.read().strip()

    def close(self) -> None:
        self._lock.close()


def newest_write_ms(data: str) -> int:
    """When, by the system's clock of that time, a log in the data folder was written last; 0: never.  Milliseconds.

    For folders that have no ``clock`` yet.  Some 20 us a store.
    """
    newest_ns = 0
    with os.scandir(os.path.join(data, REGIONS)) as found:
        folders = [folder.path for folder in found if folder.is_dir()]
    for folder in (*folders, os.path.join(data, SERVER_LOG)):
        with suppress(FileNotFoundError), os.scandir(folder) as files:
            for file in files:
                if file.name.endswith(LOG_ENDS):
                    newest_ns = max(newest_ns, file.stat().st_mtime_ns)
    return newest_ns // 1_000_000
