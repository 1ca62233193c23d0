"""The file operations of a probe at one mount of a folder, called by name.

Two mounts stand for two machines: an operation changes files at one of them, and the other must see it.  A call comes
from the same process or through a socket (``columnar.shell.probe_link``), so arguments and results are plain values.

All operations but two work in the probe's own folder ``DIR/.columnar-probe-TOKEN``.  Names are checked: a peer reaches
no other file than those and the record of passes (``probe_record``).  Contents are not sent, they follow from a seed; a
reader answers with size, length and checksum.

Invariants:
    M1. The mount that made the probe's folder removes it when it is closed: after the last call, or if its peer ends.
    M2. Folders that killed probes left are removed by the next probe, LEFTOVER_S later.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from mmap import mmap
from typing import Any, Final, Protocol
from zlib import crc32

from columnar.errors import HostError
from columnar.runtime.machine_boot import boot_id
from columnar.storage.data_folder import PROBES
from columnar.storage.file_systems import mount_of, verdict_on
from columnar.storage.probe_record import forget_passed, note_passed

FILE_BYTES: Final = 1024 * 1024  # of one file of the probe
LEFTOVER_S: Final = 3_600.0
_NAME: Final = re.compile(r"[a-z0-9]{1,40}(?:/[a-z0-9]{1,40})?")
_TOKEN: Final = re.compile(r"[0-9a-f]{8,32}")


class MountUnavailable(HostError):
    """The mount gives no answers, and is not called again."""


class MountStalls(MountUnavailable):
    """The mount has not answered within the time limit."""

    def __init__(self, place: str, seconds: float) -> None:
        super().__init__(f"{place} has not answered for {seconds:g} s")


class ProbedMount(Protocol):
    """A mount as the prober calls it."""

    @property
    def place(self) -> str:
        """The path of the folder, and of a remote mount its machine too."""

    def run_operation(self, name: str, *arguments: Any) -> Any:
        """Run the operation.  Blocks up to a time limit; raises OSError as the operation does, and MountUnavailable."""


def contents(seed: int, count: int) -> bytes:
    """Return ``count`` bytes that follow from the seed; each prefix is the contents of a smaller count."""
    word = f"{seed:08x} of a probe. ".encode()
    return (word * (count // len(word) + 1))[:count]


class MountOperations:
    """The operations at one mount, in this process.  Only one thread may call them; they block, and raise OSError."""

    def __init__(self, folder: str, token: str) -> None:
        """Take the probed folder and the probe's token.  Raises ValueError for a token of another form."""
        if not _TOKEN.fullmatch(token):
            raise ValueError(f"not a probe's token: {token!r}")
        self.place = folder
        self._path = os.path.join(folder, PROBES + token)
        self._has_made = False
        self._open: dict[str, int] = {}  # descriptors of files that are locked or written, by name
        self._locked: set[str] = set()  # names of those that are locked
        self._operations: dict[str, Callable[..., Any]] = {
            "make": self._make,
            "is_there": self._is_there,
            "verdict": self._verdict,
            "write": self._write,
            "append": self._append,
            "read": self._read,
            "exists": self._exists,
            "names": self._names,
            "mkdir": self._mkdir,
            "rename": self._rename,
            "link": self._link,
            "links": self._links,
            "remove": self._remove,
            "lock": self._lock,
            "map": self._map,
            "sync_names": self._sync_names,
            "release": self._release,
            "clock": self._clock,
            "identity": self._identity,
            "note_passed": self._note_passed,
            "forget_passed": self._forget_passed,
        }

    def run_operation(self, name: str, *arguments: Any) -> Any:
        if name not in self._operations:
            raise OSError(errno.ENOSYS, f"the probe has no operation {name!r:.40}")
        try:
            return self._operations[name](*arguments)
        except (TypeError, ValueError) as error:  # a peer of another version
            raise OSError(errno.EINVAL, f"{name}: {error}") from error

    def close(self) -> None:
        """Close the files, and remove the probe's folder if this mount made it."""
        for name in list(self._open):
            self._release(name)
        if self._has_made:
            shutil.rmtree(self._path)
            self._has_made = False

    # --- the folder of the probe ---------------------------------------------------------------------------

    def _make(self) -> None:
        os.mkdir(self._path, 0o700)
        self._has_made = True
        made_s = os.stat(self._path).st_mtime  # by the file system's clock, as the times of the others
        for name in os.listdir(self.place):
            path = os.path.join(self.place, name)
            with suppress(FileNotFoundError):  # its own probe removed it
                if name.startswith(PROBES) and made_s - os.stat(path).st_mtime > LEFTOVER_S:
                    shutil.rmtree(path)

    def _is_there(self) -> bool:
        return os.path.isdir(self._path)

    def _verdict(self) -> dict[str, Any]:
        os.stat(self.place)  # a missing folder is an error, and not on its parent's mount
        mount = mount_of(self.place)
        found = verdict_on(mount)
        return {
            "kind": mount.kind,
            "refusal": found.refusal,
            "repair": found.repair,
            "remarks": list(found.remarks),
            "is_local": found.is_local,
            "needs_proof": found.needs_proof,
        }

    def _identity(self) -> str:
        """Return a text that no other mount has, on this machine or another one."""
        return f"{boot_id()} {os.stat(self.place).st_dev}"

    def _note_passed(self, kinds: list[str]) -> None:
        note_passed(self.place, [str(kind) for kind in kinds])

    def _forget_passed(self) -> bool:
        return forget_passed(self.place)

    # --- files ---------------------------------------------------------------------------------------------

    def _write(self, name: str, seed: int, count: int) -> None:
        """Write a file from its beginning, make it if it is missing, and sync it."""
        file = os.open(self._file(name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _write_all(file, contents(seed, _counted(count)))
            os.fsync(file)
        finally:
            os.close(file)

    def _append(self, name: str, seed: int, begin: int, count: int) -> float:
        """Continue a file's contents at byte ``begin`` through a descriptor that stays open; return the sync's ms."""
        if name not in self._open:
            self._open[name] = os.open(self._file(name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        file = self._open[name]
        os.lseek(file, begin, os.SEEK_SET)
        _write_all(file, contents(seed, _counted(begin + count))[begin:])
        begun_s = time.monotonic()
        os.fdatasync(file)
        return (time.monotonic() - begun_s) * 1_000

    def _read(self, name: str) -> list[int]:
        """Return a file's size as its attributes say, the number of bytes that were read, and their checksum."""
        file = os.open(self._file(name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(file).st_size
            length = checksum = 0
            while length <= FILE_BYTES and (piece := os.read(file, FILE_BYTES)):
                length += len(piece)
                checksum = crc32(piece, checksum)
        finally:
            os.close(file)
        return [size, length, checksum]

    def _exists(self, name: str) -> bool:
        return os.path.exists(self._file(name))

    def _names(self, name: str) -> list[str]:
        return sorted(os.listdir(self._file(name)))

    def _mkdir(self, name: str) -> None:
        os.mkdir(self._file(name))

    def _rename(self, name: str, target: str) -> None:
        os.rename(self._file(name), self._file(target))

    def _link(self, name: str, target: str) -> None:
        os.link(self._file(name), self._file(target))

    def _links(self, name: str) -> int:
        return os.stat(self._file(name)).st_nlink

    def _remove(self, name: str) -> None:
        os.unlink(self._file(name))

    def _sync_names(self) -> None:
        file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    # --- locks, mappings, clock ----------------------------------------------------------------------------

    def _lock(self, name: str, is_shared: bool) -> bool:
        """Lock the file and keep it open; False if another lock is in the way."""
        if name not in self._open:
            self._open[name] = os.open(self._file(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self._open[name], kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._locked.add(name)
        return True

    def _map(self, name: str, seed: int, count: int) -> bool:
        """Write an existing file through a shared mapping and sync it; False if the mount refuses mappings."""
        file = os.open(self._file(name), os.O_RDWR | os.O_CLOEXEC)
        try:
            mapping = mmap(file, _counted(count))
        except OSError:
            os.pwrite(file, contents(seed, count), 0)
            os.fdatasync(file)
            return False
        finally:
            os.close(file)
        with mapping:
            mapping[:count] = contents(seed, count)
            mapping.flush()
        return True

    def _release(self, name: str) -> None:
        """Close the file and give up its lock, if it has one."""
        file = self._open.pop(name, -1)
        if file >= 0:
            if name in self._locked:
                self._locked.remove(name)
                fcntl.flock(file, fcntl.LOCK_UN)  # FUSE gives up the lock of a closed file a moment later
            os.close(file)

    def _clock(self) -> float:
        """Return this machine's time of day, in ms."""
        return time.time() * 1_000

    def _file(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(f"no name of the probe: {name!r:.80}")
        return os.path.join(self._path, name)


def _counted(count: int) -> int:
    if not 0 <= count <= FILE_BYTES:
        raise ValueError(f"{count} bytes are more than a file of the probe has")
    return count


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
