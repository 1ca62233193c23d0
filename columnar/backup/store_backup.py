"""Backups of a whole store in one folder: each backup is a list of files, and a shared file is stored once.

    FOLDER/FORMAT               ``columnar-backup 1``
    FOLDER/files/SHA256         a file's bytes, under their checksum
    FOLDER/backups/NAME.json    one backup: {"format": "columnar-backup 1", "taken_ms": ..., "clock_ms": ...,
                                 "version": ..., "tables": [NAME], "files": [{"path", "bytes", "sha256", "mtime_ns"}]}

``path`` is the file's place in the data folder.  NAME is the time in UTC, so names sort by age.  A table file that the
last backup has with the same path, size and time is not read again, because the engine never changes a table file.

Invariants:
    I1. A manifest is written after every file that it names is on disk.
    I2. A file in ``files`` is whole: it is renamed to its checksum after its fsync.

Format versions, append only: 1 as above.  The page: docs/formats/backups.md.  Blocks; for a command.

A copy of a region has all writes that its server's log had.  The catalogue of a backup still names the servers, and the
folder of each named server must exist (``storage.server_folders``).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from columnar import clock
from columnar.backup.region_reader import read_rows
from columnar.errors import CallerError, DamagedData, HostError
from columnar.storage.data_folder import META, REGIONS
from columnar.storage.durable_files import make_lasting, make_private, rename_durably, sync_folder, write_durably
from columnar.storage.file_copies import TABLE_FILE, files_of
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_opening import begin_opening
from columnar.storage.server_folders import STANDALONE, make_spent
from columnar.version import VERSION

FORMAT: Final = "columnar-backup 1"
COPY_BYTES: Final = 1024 * 1024  # at a time
_NAME: Final = re.compile(r"\d{8}T\d{6}\.\d{3}Z")


@dataclass(frozen=True, slots=True)
class SavedFile:
    path: str  # in the data folder
    bytes: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Backup:
    name: str
    taken_ms: int
    tables: tuple[str, ...]
    files: tuple[SavedFile, ...]
    clock_ms: int  # the highest timestamp that the store had given; of older backups ``taken_ms``

    @property
    def size_bytes(self) -> int:
        return sum(file.bytes for file in self.files)


class BackupFolder:
    """A folder of backups.  Only one process at a time may call ``save`` and ``keep``, which ``locked`` ensures."""

    def __init__(self, path: str) -> None:
        """Take the path without a check; ``opened`` and ``made`` check the folder."""
        self.path = path
        self._files = os.path.join(path, "files")
        self._backups = os.path.join(path, "backups")

    @classmethod
    def made(cls, path: str) -> BackupFolder:
        """Return the folder, and prepare it if it was empty or missing.  Raises CallerError if it has other files."""
        if not os.path.isdir(path) or not os.listdir(path):
            fresh = cls(path)
            make_private(path)  # it has all that the data folder has
            make_lasting(fresh._files)
            make_lasting(fresh._backups)
            write_durably(os.path.join(path, "FORMAT"), FORMAT.encode() + b"\n")
        return cls.opened(path)

    @classmethod
    def opened(cls, path: str) -> BackupFolder:
        """Return the folder.  Raises CallerError if it is no folder of backups that this version knows."""
        try:
            with open(os.path.join(path, "FORMAT"), encoding="utf-8") as file:
                text = file.read().strip()
        except OSError:
            raise CallerError(f"{path} is no folder of backups: it has no FORMAT; choose another") from None
        if text != FORMAT:
            raise CallerError(f"{path} is of format '{text[:40]}'; this version knows '{FORMAT}'")
        return cls(path)

    @contextmanager
    def locked(self) -> Iterator[BackupFolder]:
        """Lock the folder for one backup.  Raises CallerError while another backup into this folder runs."""
        with open(os.path.join(self.path, "LOCK"), "ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CallerError(f"another backup into {self.path} is running; wait until it has ended") from None
            yield self

    # --- saving ------------------------------------------------------------------------------------

    def save(
        self, copy: str, data: str, tables: Iterable[str], taken_ms: int, progress: Callable[[int], None]
    ) -> tuple[Backup, Counter[str]]:
        """Save a backup: ``regions`` from ``copy``, everything else from the data folder ``data``.

        Raises DamagedData if a region of the copy lost synced data.
        """
        known = {(file.path, file.bytes, file.mtime_ns): file for file in self._last_files()}
        done = Counter[str]()
        files = [
            self._saved(os.path.join(data, name), name, known, done, progress) for name in ("FORMAT", "cluster-id")
        ]
        for region in sorted(os.listdir(os.path.join(copy, REGIONS))):
            folder = os.path.join(copy, REGIONS, region)
            begin_opening(folder, reads_only=True)  # it may not have been opened since it was damaged
            for name in files_of(folder):
                place = f"{REGIONS}/{region}/{name}"
                files.append(self._saved(os.path.join(folder, name), place, known, done, progress))
        sync_folder(self._files)
        moment = datetime.fromtimestamp(taken_ms / 1_000, UTC)
        name = f"{moment:%Y%m%dT%H%M%S}.{taken_ms % 1_000:03}Z"
        clock_ms = clock.read(data) or taken_ms  # after the copies were made
        backup = Backup(name, taken_ms, tuple(sorted(tables)), tuple(files), clock_ms)
        write_durably(os.path.join(self._backups, f"{name}.json"), _to_json(backup))
        return backup, done

    def _last_files(self) -> tuple[SavedFile, ...]:
        names = self.names()
        return self.read(names[-1]).files if names else ()

    def _saved(
        self,
        source: str,
        place: str,
        known: dict[tuple[str, int, int], SavedFile],
        done: Counter[str],
        progress: Callable[[int], None],
    ) -> SavedFile:
        facts = os.stat(source)
        checksum = known.get((place, facts.st_size, facts.st_mtime_ns)) if place.endswith(TABLE_FILE) else None
        if checksum is not None and os.path.exists(self._stored(checksum.sha256)):
            done["reused_files"] += 1
            progress(facts.st_size)
            return checksum
        half = os.path.join(self._files, "half")
        sha256, size = _copy_checked(source, half, progress)
        os.replace(half, self._stored(sha256))
        done["copied_files"] += 1
        done["copied_bytes"] += size
        return SavedFile(place, size, sha256, facts.st_mtime_ns)

    # --- checking ----------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of the backups, the oldest first."""
        found = (name.removesuffix(".json") for name in os.listdir(self._backups) if name.endswith(".json"))
        return sorted(name for name in found if _NAME.fullmatch(name))

    def read(self, name: str) -> Backup:
        path = os.path.join(self._backups, f"{name}.json")
        if not _NAME.fullmatch(name) or not os.path.exists(path):
            raise CallerError(f"{self.path} has no backup {name}; there are {', '.join(self.names()) or 'none'}")
        with open(path, "rb") as file:
            return _from_json(file.read(), path)

    # --- restoring ---------------------------------------------------------------------------------

    def restore(self, backup: Backup, data: str, progress: Callable[[int], None]) -> None:
        """Restore a data folder to ``data``, whole or not at all; every byte is compared with its checksum.

        Raises CallerError if ``data`` is not empty.
        """
        data = os.path.abspath(data)
        if os.path.isdir(data) and os.listdir(data):
            raise CallerError(f"{data} is not empty: a backup is restored into a new folder; choose another --data")
        half = data + ".restoring"
        shutil.rmtree(half, ignore_errors=True)
        try:
            self._restore_into(half, backup, progress)
            if os.path.isdir(data):
                os.rmdir(data)
            rename_durably(half, data)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)  # remains on a full disk
            raise

    def _restore_into(self, half: str, backup: Backup, progress: Callable[[int], None]) -> None:
        make_private(half)
        for file in backup.files:
            target = os.path.join(half, *file.path.split("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            stored = self._stored(file.sha256)
            try:
                found, _ = _copy_checked(stored, target, progress)
            except OSError as error:
                raise HostError(f"cannot restore {error.filename or target}: {error.strerror}") from error
            if found != file.sha256:
                raise DamagedData(
                    f"{stored}, which is {file.path} of backup {backup.name}, is damaged; try an older one"
                )
        write_durably(os.path.join(half, clock.NAME), clock.packed(backup.clock_ms))
        make_folders_of_servers(half)
        for folder, _, _ in os.walk(half):
            sync_folder(folder)

    # --- forgetting --------------------------------------------------------------------------------

    def keep(self, newest: int) -> int:
        """Remove all but the ``newest`` backups, and unneeded files; return the number of removed backups."""
        names = self.names()
        doomed = names[: max(0, len(names) - newest)]
        for name in doomed:
            os.remove(os.path.join(self._backups, f"{name}.json"))
        sync_folder(self._backups)  # else a power cut brings back the list of a backup whose files are gone
        needed = {file.sha256 for name in self.names() for file in self.read(name).files}
        for name in os.listdir(self._files):
            if name not in needed:
                os.remove(os.path.join(self._files, name))
        return len(doomed)

    def _stored(self, sha256: str) -> str:
        return os.path.join(self._files, sha256)


def _copy_checked(source: str, target: str, progress: Callable[[int], None]) -> tuple[str, int]:
    """Copy and sync a file; return its SHA-256 in hex and its size in bytes."""
    found, size = hashlib.sha256(), 0
    with open(source, "rb") as reading, open(target, "wb") as writing:
        while data := reading.read(COPY_BYTES):
            found.update(data)
            writing.write(data)
            size += len(data)
            progress(len(data))
        writing.flush()
        os.fsync(writing.fileno())
    return found.hexdigest(), size


def _to_json(backup: Backup) -> bytes:
    plain = {
        "format": FORMAT,
        "taken_ms": backup.taken_ms,
        "clock_ms": backup.clock_ms,
        "version": VERSION,
        "tables": list(backup.tables),
        "files": [asdict(file) for file in backup.files],
    }
    return json.dumps(plain, indent=1, sort_keys=True).encode() + b"\n"


def _from_json(data: bytes, path: str) -> Backup:
    try:
        plain: dict[str, Any] = json.loads(data)
        if plain["format"] != FORMAT:
            raise CallerError(f"{path} is of format '{plain['format']}'; this version knows '{FORMAT}'")
        files = tuple(SavedFile(**file) for file in plain["files"])
        name = os.path.basename(path).removesuffix(".json")
        if any(".." in file.path.split("/") or file.path.startswith("/") for file in files):
            raise ValueError("a path leads out of the data folder")
        taken_ms = plain["taken_ms"]
        return Backup(name, taken_ms, tuple(plain["tables"]), files, plain.get("clock_ms", taken_ms))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedData(f"{path} is no list of a backup's files: {error}") from error


if TYPE_CHECKING:
    from columnar.model.mutation import RowMutation


def make_folders_of_servers(data: str) -> None:
    """Make the folders of the servers that the catalogue names.  Blocks.  Raises HostError or DamagedData."""
    from columnar.master.catalogue import META_SCHEMA, Catalogue, strays
    from columnar.master.dead_servers import named_in

    path = os.path.join(data, REGIONS, META)
    engine = RocksEngine()
    if not engine.exists(path):
        return  # a backup of nothing
    _, rows = strays(read_rows(engine, path, META_SCHEMA))
    named = [str(one) for one in sorted(named_in(Catalogue(rows, _no_writes), data)) if one.name != STANDALONE]
    try:
        make_spent(data, named)
    except OSError as error:
        raise HostError(f"cannot make folders in {data}: {error.strerror}") from error


async def _no_writes(_mutations: list[RowMutation]) -> None:
    raise AssertionError("the catalogue is only read")
