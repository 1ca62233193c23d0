"""The facts of a data folder, gathered without touching what is in it.

Nothing is locked and no file of a store is opened for writing.  Fsyncs are measured in a file of a new folder
``.columnar-probe-TOKEN`` (``storage.data_folder``), which is removed at once; one that a kill leaves does not hinder a
start, and the next ``columnar probe-root`` removes it.

The functions block.  A folder that stalls blocks its thread, so ``gather_folder`` waits FOLDER_S at most.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, perf_counter
from typing import Final, TypeVar

from columnar import clock
from columnar.diagnosis.facts import FolderFacts, LockFacts, Rights, Room, Syncs
from columnar.diagnosis.process_facts import holders_of, is_alive
from columnar.diagnosis.time_limit import within
from columnar.errors import ColumnarError, DamagedData, HostError
from columnar.storage import data_folder
from columnar.storage.cluster_file import SECRET, read_cluster
from columnar.storage.file_systems import UNKNOWN, Verdict, mount_of, verdict_on
from columnar.storage.probe_record import read_passed
from columnar.storage.region_entries import entry_of

T = TypeVar("T")
FOLDER_S: Final = 30.0  # a folder that has not answered by then stalls
SYNCS: Final = 30
SYNCS_S: Final = 2.0  # no further fsync begins after it
SYNCED_S: Final = 60.0  # an fsync that has not returned by then is an error
SYNCED_BYTES: Final = 4_096
COUNTED_FILES: Final = 200_000  # for the folder's size: some seconds of a local disk
COUNTED_S: Final = 3.0  # a shared folder answers some thousand questions a second, and does not stall by that
LOCKS: Final = "/proc/locks"
_OWNER_PID: Final = re.compile(r"process (\d{1,10})")


def gather_folder(path: str, user: int) -> tuple[FolderFacts, LockFacts, Syncs | None]:
    """Return the facts of the folder, of its lock, and of fsyncs in it; of the last None where nobody may write."""
    found = within(FOLDER_S, lambda: _gather(os.path.abspath(path), user))
    if found is None:
        return FolderFacts(os.path.abspath(path), "stalled"), LockFacts(), None
    facts, lock, place = found
    return facts, lock, measure_syncs(place) if place else None


def _gather(path: str, user: int) -> tuple[FolderFacts, LockFacts, str]:
    """Return the facts of folder and lock, and the folder in which fsyncs may be measured; empty if none is."""
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return _gather_missing(path, user)
    except OSError as error:
        return FolderFacts(path, "unreadable", error=error.strerror or str(error)), LockFacts(), ""
    if not stat.S_ISDIR(state.st_mode):
        return FolderFacts(path, "file"), LockFacts(), ""
    rights = _rights_of(path, user)
    mount = _or(UNKNOWN, lambda: mount_of(path))
    verdict = _or(Verdict(), lambda: verdict_on(mount))
    if not rights.may_use:
        return FolderFacts(path, "folder", rights=rights, mount=mount, verdict=verdict), LockFacts(), ""
    refusal, coordination = _content_of(path)
    facts = FolderFacts(
        path,
        "folder",
        rights=rights,
        refusal=refusal,
        format=_or(None, lambda: data_folder.format_of(path)),
        coordination=coordination,
        mount=mount,
        verdict=verdict,
        passed=_or(frozenset(), lambda: read_passed(path)),
        room=room_of(path),
        regions=_regions_in(path),
        unreplayed=tuple(_unreplayed_in(path)),
        clock_ms=_or(0, lambda: clock.read(path)) or None,
    )
    return facts, lock_facts(path), path


def _gather_missing(path: str, user: int) -> tuple[FolderFacts, LockFacts, str]:
    """Return the facts of the folder that exists above it, in which a start would make it."""
    above = os.path.dirname(path)
    while not os.path.isdir(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    rights = _rights_of(above, user)
    mount = _or(UNKNOWN, lambda: mount_of(above))
    verdict = _or(Verdict(), lambda: verdict_on(mount))
    facts = FolderFacts(path, "missing", rights=rights, mount=mount, verdict=verdict, room=room_of(above, counts=False))
    return facts, LockFacts(is_locked=False), above if rights.may_use else ""


def _or(otherwise: T, call: Callable[[], T]) -> T:
    try:
        return call()
    except (OSError, ColumnarError):
        return otherwise


def _rights_of(path: str, user: int) -> Rights:
    found = os.stat(path)
    secret: int | None = None
    with suppress(OSError):
        secret = stat.S_IMODE(os.stat(os.path.join(path, SECRET)).st_mode)
    may_use = os.access(path, os.R_OK | os.W_OK | os.X_OK)
    return Rights(found.st_uid, stat.S_IMODE(found.st_mode), user, may_use, secret)


def _content_of(path: str) -> tuple[str, str]:
    """Return the sentence with which a start refuses the content, and the service of the folder's nodes."""
    refusal, coordination = "", ""
    try:
        data_folder.check_content(path)
        cluster = read_cluster(path)
        coordination = cluster.coordination if cluster is not None else ""
    except (HostError, DamagedData) as error:
        refusal = error.text
    except OSError as error:
        refusal = f"{error.filename or path}: {error.strerror}"
    return refusal, coordination


def room_of(path: str, *, counts: bool = True) -> Room | None:
    """Return the room on the disk, and with ``counts`` the size of the folder."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    data_bytes, is_whole = size_of_tree(path) if counts else (0, True)
    files = found.f_favail if found.f_files else None
    return Room(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize, files, data_bytes, is_whole)


def size_of_tree(path: str) -> tuple[int, bool]:
    """Return the bytes on disk of all files below, and whether that is all: COUNTED_FILES in COUNTED_S at most."""
    until_s = monotonic() + COUNTED_S
    total, left, waiting = 0, COUNTED_FILES, [path]
    seen: set[tuple[int, int]] = set()  # snapshots are links to files of regions
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                left -= 1
                if left < 0 or monotonic() >= until_s:
                    return total, False
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        continue
                    found = entry.stat(follow_symlinks=False)
                    if found.st_nlink == 1 or (found.st_dev, found.st_ino) not in seen:
                        total += found.st_blocks * 512
                    if found.st_nlink > 1:
                        seen.add((found.st_dev, found.st_ino))
    return total, True


def _regions_in(path: str) -> int:
    try:
        names = os.listdir(os.path.join(path, data_folder.REGIONS))
    except OSError:
        return 0
    return len({entry.encoded for name in names if (entry := entry_of(name)).is_complete})


def _unreplayed_in(path: str) -> list[str]:
    """Return the logs that the next start replays: segments of the server log, and folders of ended servers."""
    found = []
    with suppress(OSError):
        log = os.path.join(path, data_folder.SERVER_LOG)
        if any(os.path.getsize(os.path.join(log, name)) for name in os.listdir(log) if name.endswith(".segment")):
            found.append(data_folder.SERVER_LOG)
    with suppress(OSError):
        servers = os.path.join(path, data_folder.SERVERS)
        found += [f"{data_folder.SERVERS}/{name}" for name in sorted(os.listdir(servers))]
    return found


def lock_facts(path: str) -> LockFacts:
    """Return who holds the folder's lock, as the kernel's list and the file tell it."""
    file = os.path.join(path, "LOCK")
    try:
        found = os.stat(file)
        with open(file, encoding="utf-8", errors="replace") as opened:
            owner = opened.readline().strip()[:80]
    except FileNotFoundError:
        return LockFacts(is_locked=False)
    except OSError:
        return LockFacts()
    pid = _OWNER_PID.fullmatch(owner)
    lives = is_alive(int(pid[1])) if pid is not None else None
    holders = holders_of(file)
    try:
        with open(LOCKS, encoding="ascii", errors="replace") as opened:
            is_locked: bool | None = is_flocked(opened.read(), found.st_dev, found.st_ino) or bool(holders)
    except OSError:  # not Linux: the file's word is all that there is
        is_locked = lives or None
    return LockFacts(is_locked, owner, lives, holders)


def is_flocked(locks: str, device: int, inode: int) -> bool:
    """Tell whether the text of ``/proc/locks`` has a lock of the file.

    Some file systems (btrfs, overlayfs) report another device there than ``stat`` does, so a lock of the same inode on
    a device without a name of its own (major 0) counts.
    """
    own = f"{os.major(device):02x}:{os.minor(device):02x}:{inode}"
    for line in locks.splitlines():
        words = line.split()
        if len(words) >= 8 and words[1] == "FLOCK":
            place = words[5]
            if place == own or (place.startswith("00:") and place.rpartition(":")[2] == str(inode)):
                return True
    return False


def measure_syncs(path: str) -> Syncs:
    """Measure SYNCS fsyncs, or fewer of a slow disk, in a file of their own, and remove it; SYNCED_S at most."""
    found = within(SYNCED_S, lambda: _measure(path))
    return found if found is not None else Syncs((), f"an fsync has not returned within {SYNCED_S:.0f} s", path)


def _measure(path: str) -> Syncs:
    own = os.path.join(path, data_folder.PROBES + secrets.token_hex(8))
    seconds: list[float] = []
    try:
        os.mkdir(own, 0o700)
        try:
            file = os.open(os.path.join(own, "fsync"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                until_s = monotonic() + SYNCS_S
                while len(seconds) < SYNCS and monotonic() < until_s:
                    if os.write(file, bytes(SYNCED_BYTES)) < SYNCED_BYTES:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    begun_s = perf_counter()
                    os.fsync(file)
                    seconds.append(perf_counter() - begun_s)
            finally:
                os.close(file)
        finally:
            shutil.rmtree(own, ignore_errors=True)
    except OSError as error:
        return Syncs(tuple(seconds), error.strerror or str(error), path)
    return Syncs(tuple(seconds), "", path)
