"""The root folder of a store: its lock, its format, its identity, and the names of its files and folders.

The folder contains:

    FORMAT              ``columnar-data 6``, or less if an older program made it, 7 once servers (``--servers N``)
                        served it, 8 once it had a view, 9 while it belongs to nodes; a program refuses numbers that it
                        does not know
    LOCK                names the process that serves the folder and locks the file; its servers inherit the lock.
                        A start waits for servers whose supervisor has ended, because they are ending, too.  The nodes
                        of a cluster share the lock
    CLUSTER, secret     of a folder that belongs to the nodes of a cluster (``columnar.storage.cluster_file``)
    cluster-id
    clock               the highest timestamp that was given (``columnar.clock``)
    regions/ENCODED     a RocksDB for each region; ``regions/meta`` is that of the catalogue.  Each has a file
                        ``SYNCED``, the bound of its synced part (``columnar.storage.synced_bound``).  Nodes have
                        generations of them (``columnar.storage.region_takeover``)
    opened/             the regions whose folders had a store (``note_opened``)
    server-log/         batches of several regions under one fsync (``columnar.storage.server_log``)
    servers/NAME.NUMBER log and clock of one start of a server of ``--servers N`` (``columnar.storage.server_folders``)
    snapshots/NAME      a snapshot of a table (``columnar.master.snapshots``)
    staging/TOKEN       files that pass between the store and a command on this machine (``columnar.master.staging``)
    lost+found/         files that a repair moved aside (``columnar.checking.repair``)
    PROBED              what ``columnar probe-root`` has shown of the file system (``columnar.storage.probe_record``)
    .columnar-probe-*   while ``columnar probe-root`` tries the file system (``columnar.storage.probe_mount``)
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from shlex import quote
from time import monotonic, sleep
from typing import IO, Final

from columnar.errors import FolderInUse, HostError
from columnar.storage.cluster_file import CLUSTER, NODES, SECRET, check_without_nodes
from columnar.storage.durable_files import HALF, create_durably, make_lasting, make_private, write_durably
from columnar.storage.probe_record import PROBED
from columnar.storage.region_entries import entries_by_region, entry_of, newest_of

FORMAT_VERSIONS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9)  # append only; one line each in docs/formats/folder.md
OF_ONE_PROCESS: Final = 6  # only ever served by one process; older programs may continue to serve it
SERVERS_SINCE: Final = 7  # several servers wrote to it: a program that does not know their logs would lose writes
VIEWS_SINCE: Final = 8  # it has had a view: a program that does not know views would not update it
NODES_SINCE: Final = 9  # it belongs to nodes: a program that does not know generations would read old folders
SERVER_LOG_SINCE: Final = 5  # since then in the present format
ALL_FOLDERS_SINCE: Final = 3  # every region that the catalogue names has its folder
FORMAT: Final = "FORMAT"
_FORMAT_WORD: Final = "columnar-data"
REGIONS: Final = "regions"
SERVER_LOG: Final = "server-log"
SERVERS: Final = "servers"
OPENED: Final = "opened"
RESTORE_ADVICE: Final = "put it back, or restore the store from a backup into a new folder ('columnar restore-backup')"
LOG_ENDS: Final = (".log", ".segment")  # suffixes of a region's log, and of the server's
META: Final = "meta"  # in ``regions``: the folder of the catalogue
SNAPSHOTS: Final = "snapshots"
STAGING: Final = "staging"
LOST_AND_FOUND: Final = "lost+found"
PROBES: Final = ".columnar-probe-"  # begins the names of folders of probes, which a new folder may have
ENDING_S: Final = 10.0  # servers end with their supervisor, on a busy machine up to this time after it
_OURS: Final = frozenset(
    (REGIONS, OPENED, SERVER_LOG, SERVERS, SNAPSHOTS, STAGING, "cluster-id", "clock", CLUSTER, SECRET, NODES)
)
_POLL_S: Final = 0.01
_OWNER: Final = "process "
_NODES: Final = "nodes of a cluster"  # in LOCK; nodes hold it, each of them writes this text


class DataFolder:
    """The root folder, locked for this process, or for this process and other nodes of a cluster."""

    def __init__(
        self, path: str, lock: IO[str], format_number: int, cluster_id: str, *, is_shared: bool = False
    ) -> None:
        """Take the folder's path and contents; ``lock`` is its file LOCK, which is locked."""
        self.path = path
        self.is_shared = is_shared
        self.format = format_number
        self.cluster_id = cluster_id
        self._lock = lock

    @classmethod
    def locked(
        cls, path: str, *, repairs_format: bool = False, is_shared: bool = False, is_of_nodes: bool = False
    ) -> DataFolder:
        """Lock the folder, which is made if it is missing, and read its format.

        With ``is_shared``, for a node, other nodes may lock the folder too, and several nodes may make it at the same
        time.  With ``is_of_nodes``, for checks and repairs, the folder may belong to nodes, of which none runs;
        otherwise such a folder is refused.  With ``repairs_format`` a store's ``FORMAT`` is rewritten if it is missing
        or unreadable.  Raises HostError if the folder cannot be used; then the folder is not locked.
        """
        try:
            make_private(path, {PROBED})
            if not repairs_format:
                _check_new(path)
            lock = _take_lock(path, is_shared=is_shared)
        except OSError as error:
            raise _unusable(path, error) from error
        try:
            if not (is_shared or is_of_nodes):
                check_without_nodes(path)
            if repairs_format and lost_format(path):
                write_durably(os.path.join(path, FORMAT), f"{_FORMAT_WORD} {FORMAT_VERSIONS[-1]}\n".encode())
            if not os.path.exists(os.path.join(path, FORMAT)):
                make_lasting(os.path.join(path, REGIONS))  # before FORMAT: a folder with FORMAT once had ``regions``
            make = create_durably if is_shared else write_durably
            number = _known_format(path, make)
            _check_regions(path)
            return cls(path, lock, number, _cluster_id(path, make), is_shared=is_shared)
        except OSError as error:
            lock.close()
            raise _unusable(path, error) from error
        except HostError:
            lock.close()
            raise

    def raise_format(self, wanted: int) -> None:
        """Raise the format to at least ``wanted``, before the folder gets content that older programs do not know.

        Raises HostError.
        """
        if self.format < wanted:
            self._write_format(wanted)

    def lower_format(self, wanted: int) -> None:
        """Lower the format to at most ``wanted``, after the content that needs a higher format is gone.

        Raises HostError.
        """
        if self.format > wanted:
            self._write_format(wanted)

    def _write_format(self, number: int) -> None:
        text = f"{_FORMAT_WORD} {number}\n".encode()
        try:
            write_durably(os.path.join(self.path, FORMAT), text, is_shared=self.is_shared)
        except OSError as error:
            raise _unusable(self.path, error) from error
        self.format = number

    @property
    def lock_descriptor(self) -> int:
        """The lock's descriptor, which servers inherit; the folder is free once this process and they have ended."""
        return self._lock.fileno()

    def close(self) -> None:
        self._lock.close()


def _unusable(path: str, error: OSError) -> HostError:
    why = f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return HostError(f"cannot use the data folder {path}: {why}; mend it or choose another with --data")


def _take_lock(path: str, *, is_shared: bool) -> IO[str]:
    lock = open(os.path.join(path, "LOCK"), "a+", encoding="utf-8")  # noqa: SIM115 - open until close
    until_s = monotonic() + ENDING_S
    while not _is_taken(lock, is_shared=is_shared):
        owner = _owner_in(lock) or "another process"
        has_ended = _has_ended(owner)
        if not has_ended or monotonic() >= until_s:
            lock.close()
            raise FolderInUse(path, f"children of {owner}, which has ended" if has_ended else owner)
        sleep(_POLL_S)  # the kernel has no wait for a lock with a time limit
    owner = _NODES if is_shared else f"{_OWNER}{os.getpid()}"
    if not is_shared or _owner_in(lock) != owner:
        lock.truncate(0)
        lock.write(f"{owner}\n")
        lock.flush()
    return lock


def _owner_in(lock: IO[str]) -> str:
    """Return the first line: two nodes that start at the same moment may both write it."""
    lock.seek(0)
    return lock.readline().strip()


def _is_taken(lock: IO[str], *, is_shared: bool) -> bool:
    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _has_ended(owner: str) -> bool:
    """Tell whether the process that took the lock has ended; processes that inherited the lock are then ending, too."""
    number = owner.removeprefix(_OWNER)
    if number == owner or not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):  # it belongs to a different user, or is no process number
        return False
    return _is_zombie(int(number))


def _is_zombie(pid: int) -> bool:
    """Tell whether the process only waits for its parent to reap it; outside Linux this is unknown, and False."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def _known_format(path: str, make: Callable[[str, bytes], None]) -> int:
    """Return the number in FORMAT, which is written if missing.  Raises HostError for an unknown number."""
    text = _read_or_write(path, FORMAT, f"{_FORMAT_WORD} {OF_ONE_PROCESS}", make)
    number = _number_in(text)
    if number is None and _has_store(path):
        raise HostError(
            f"{path}/{FORMAT} says '{text[:40]}', and not which format the store beside it has; {_repair_advice(path)}"
        )
    if number is None:
        raise HostError(f"{path} is no data folder of ours: its FORMAT says '{text[:40]}'; choose another with --data")
    if int(number) not in FORMAT_VERSIONS:
        raise HostError(f"{path} has format {number}; this version knows up to {FORMAT_VERSIONS[-1]}: upgrade")
    return int(number)


def check_content(path: str) -> None:
    """Raise the HostError with which a start refuses what the folder holds.  Only reads, without the lock.

    ``check_without_nodes`` is a further check of a start.  Raises OSError too.
    """
    _check_new(path)
    if os.path.exists(os.path.join(path, FORMAT)):
        _known_format(path, _leave_missing)
        _check_regions(path)


def _leave_missing(_path: str, _data: bytes) -> None:
    pass  # it was removed a moment ago: opening it raises OSError


def is_new(path: str) -> bool:
    """Return whether a start would begin a store there: the folder is missing, or has what ``_check_new`` allows.

    Raises HostError if the folder cannot be read.
    """
    try:
        return all(_is_of_a_start(name) or _is_hollow(path, name) for name in os.listdir(path))
    except FileNotFoundError:
        return True
    except OSError as error:
        raise _unusable(path, error) from error


def format_of(path: str) -> int | None:
    """Return the number in FORMAT, whether this version knows it or not; None if there is none.  Raises OSError."""
    try:
        with open(os.path.join(path, FORMAT), encoding="utf-8", errors="replace") as file:
            number = _number_in(file.read().strip())
    except FileNotFoundError:
        return None
    return int(number) if number is not None else None


def _number_in(text: str) -> str | None:
    """Return the format's number as text, or None if the text is not that of our FORMAT."""
    word, _, number = text.partition(" ")
    return number if word == _FORMAT_WORD and number.isascii() and number.isdigit() else None


def lost_format(path: str) -> str:
    """Return how a store's folder lost its ``FORMAT``, or an empty text if the folder has a ``FORMAT`` or no store.

    A folder has a store if it has a catalogue.  Raises HostError if the files cannot be read.
    """
    try:
        if not _has_store(path):
            return ""
        with open(os.path.join(path, FORMAT), encoding="utf-8", errors="replace") as file:
            text = file.read().strip()
    except FileNotFoundError:
        return "it was missing"
    except OSError as error:
        raise _unusable(path, error) from error
    return "" if _number_in(text) is not None else f"it said '{text[:40]}'"


def _has_store(path: str) -> bool:
    """Tell whether the folder has a catalogue: ``regions/meta``, or a generation of it.  Raises OSError."""
    regions = os.path.join(path, REGIONS)
    try:
        names = os.listdir(regions)
    except (FileNotFoundError, NotADirectoryError):
        return False
    newest = newest_of(entries_by_region(names).get(META, ()))
    return newest is not None and os.path.exists(os.path.join(regions, newest.name, "CURRENT"))


def _repair_advice(path: str) -> str:
    return f"put the file back from a copy, or run 'columnar repair --data {quote(path)}', which writes it anew"


def _check_new(path: str) -> None:
    """Raise HostError if the folder has no FORMAT, but entries that no start of ours left.  Raises OSError too.

    Allowed are ``lost+found``, which a file system's root has, an empty ``regions``, left by a start that was cut off,
    and what probes leave.
    """
    if os.path.exists(os.path.join(path, FORMAT)):
        return
    found = sorted(name for name in os.listdir(path) if not _is_of_a_start(name) and not _is_hollow(path, name))
    if not found or os.path.exists(os.path.join(path, FORMAT)):  # another node has made it meanwhile
        return
    if _has_store(path):
        raise HostError(f"{path}/{FORMAT} is missing, and a store is beside it; {_repair_advice(path)}")
    if not _OURS.isdisjoint(found):
        raise HostError(f"{path}/{FORMAT} is missing, and of the store beside it the catalogue; {RESTORE_ADVICE}")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    raise HostError(
        f"{path} is no data folder of ours, and not empty: it holds {found[0]}{more}; choose an empty or a new folder "
        "with --data"
    )


def _is_of_a_start(name: str) -> bool:
    """Tell whether a start may leave the file if it is cut off before FORMAT, or a probe before the first start."""
    is_half = name.startswith((f"{FORMAT}.", f"{PROBED}.")) and name.endswith(HALF)
    return is_half or name in ("LOCK", PROBED)


def _is_hollow(path: str, name: str) -> bool:
    """Tell whether the entry is an empty folder made by a file system or by a start that was cut off, or a probe's."""
    if name.startswith(PROBES):
        return True
    if name not in (REGIONS, LOST_AND_FOUND):
        return False
    try:
        return not os.listdir(os.path.join(path, name))
    except PermissionError:  # only root may read a file system's ``lost+found``
        return name == LOST_AND_FOUND


def _check_regions(path: str) -> None:
    regions = os.path.join(path, REGIONS)
    if not os.path.isdir(regions):
        raise HostError(f"{regions} is missing, with all that was written; {RESTORE_ADVICE}")


def _cluster_id(path: str, make: Callable[[str, bytes], None]) -> str:
    if not os.path.exists(os.path.join(path, "cluster-id")):
        from uuid import uuid4  # needed once in a folder's life

        return _read_or_write(path, "cluster-id", str(uuid4()), make)
    return _read_or_write(path, "cluster-id", "", make)


def _read_or_write(folder: str, name: str, text: str, make: Callable[[str, bytes], None]) -> str:
    """Return the file's text; a missing file is first made with ``text``, atomically."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        make(path, f"{text}\n".encode())
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def check_place(data: str) -> None:
    """Raise HostError if the data folder is not at its place, so that missing files do not count as lost."""
    if not os.path.isdir(os.path.join(data, REGIONS)):
        raise HostError(
            f"the data folder {data} is not at its place: it was moved, or its disk is not mounted; put it back, and "
            "what failed meanwhile is tried again"
        )


def newest_write_ms(data: str) -> int:
    """Return the time of the last write to a log in the data folder, in ms of the system's clock then; 0 if none.

    This is for folders that have no ``clock`` yet, and takes some 20 us per store.
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


_log = logging.getLogger(__name__)

_ENTRY: Final = 0o600


# --- opened/ENCODED ----------------------------------------------------------------------------------
# An empty file for each region whose folder had a store.  A region's folder is empty until its first use.  If a folder
# is noted here and empty, its files were lost; a new store in it would wrongly answer that the region has no rows.
#     F1. A note is made when the store's CURRENT and MANIFEST are on disk: no power cut leaves a noted folder empty.
#     F2. A note is never synced, and a refused note is no error: without a note an emptied folder counts as unused.
#     F3. The note is removed when a region's folder is made or removed on purpose.
# All generations of a region's folder have one note.  Stores outside ``regions`` (copies, staging) have none.  Costs an
# opening 3 us.


def note_opened(path: str) -> None:
    """Note that the region's folder ``path`` has a store.  A refusal by the disk is only logged (F2)."""
    place = _place(path)
    if place is None or os.path.exists(place):
        return
    try:
        with suppress(FileExistsError):
            os.mkdir(os.path.dirname(place))
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _ENTRY))
    except OSError as error:
        _log.info("%s is not noted as opened: %s", path, error.strerror)


def was_opened(path: str) -> bool:
    place = _place(path)
    return place is not None and os.path.exists(place)


def forget_opened(path: str) -> None:
    """Remove the note, because the folder is removed or empty on purpose.  Raises OSError."""
    place = _place(path)
    if place is not None:
        with suppress(FileNotFoundError):
            os.unlink(place)


def _place(path: str) -> str | None:
    regions, name = os.path.split(os.path.abspath(path))
    data, folder = os.path.split(regions)
    entry = entry_of(name)
    is_regions = entry.is_complete or entry.is_source
    return os.path.join(data, OPENED, entry.encoded if is_regions else name) if folder == REGIONS else None
