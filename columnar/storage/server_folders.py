"""The folders of incarnations, each with the incarnation's log and clock.

    servers/NAME.NUMBER/log      batches of the incarnation's regions under shared fsyncs
    servers/NAME.NUMBER/log.ended    the log of one that ended by time, out of reach of its process (``log_takeover``)
    servers/NAME.NUMBER/logged   a note that the log was begun: from then on the log must be found
    servers/NAME.NUMBER/spent    an empty file: no region lacks a record of the log, whatever a seal says
    servers/NAME.NUMBER/clock    the highest timestamp that the incarnation gave
    servers/NAME.NUMBER/openings the regions that the incarnation opened last (``opening_notes``)
    server-log                   the log of a standalone, whose incarnation is called ``standalone.NUMBER``

Here an incarnation is its text, such as ``s2.17``.  A folder is removed when no row of the catalogue names its
incarnation, and a process of the store has observed its clock.  Functions block while they use the disk.

    logged := NAME.NUMBER " " log " " crc32 "\\n"    log: the log's own name, in hexadecimal; crc32: the checksum of the
                                                     text before it.  Older programs left the file empty: it says only
                                                     that there is a log

A server is given regions only when its folder is on disk, with files in it.  So the folder of an incarnation that a row
names must exist and not be empty (``dead_log``); the log in it must exist only if ``logged`` says so.  A backup leaves
these folders out, because its regions have all their records.  A restore makes the folders again (``make_spent``), with
a file ``spent`` instead of a log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from columnar import clock
from columnar.errors import DamagedData
from columnar.storage.data_folder import SERVER_LOG, SERVERS, check_place
from columnar.storage.dead_logs import (
    NO_LENGTHS,
    RUN,
    SUFFIX,
    DeadLog,
    Sealed,
    identity_of,
    measure,
    remedy,
    sealed_at,
    sealed_by_older,
    segment_name,
    segment_number,
)
from columnar.storage.durable_files import (
    make_all_lasting,
    read_first,
    sync_file,
    sync_folder,
    sync_folder_if_any,
    write_durably,
)
from columnar.storage.rocks_errors import refused
from columnar.storage.segment_bounds import SegmentBounds
from columnar.storage.synced_bound import SYNCED

_GONE: Final = ".deleted"
LOG: Final = "log"
ENDED_LOG: Final = "log.ended"
LOGGED: Final = "logged"
_LOGGED_BYTES: Final = 1_024
SPENT: Final = "spent"
STANDALONE: Final = "standalone"  # the name of the incarnations that a standalone's log belongs to


def folder_of(data: str, incarnation: str) -> str:
    return os.path.join(data, SERVERS, incarnation)


def log_of(data: str, incarnation: str) -> str:
    """Return the folder of the log that the incarnation writes, or wrote."""
    if incarnation.rpartition(".")[0] == STANDALONE:
        return os.path.join(data, SERVER_LOG)
    ended = os.path.join(folder_of(data, incarnation), ENDED_LOG)
    return ended if os.path.isdir(ended) else os.path.join(folder_of(data, incarnation), LOG)


def clock_of(data: str, incarnation: str) -> int:
    """Return the highest timestamp that the incarnation may have given, in ms; 0 if unknown.  Raises HostError."""
    is_standalone = incarnation.rpartition(".")[0] == STANDALONE
    return clock.read(data if is_standalone else folder_of(data, incarnation))


def newest_clock(data: str) -> int:
    """Return the highest timestamp in the clock files of the data folder, in ms.  Raises HostError."""
    newest_ms = clock.read(data)
    with suppress(FileNotFoundError), os.scandir(os.path.join(data, SERVERS)) as found:
        for folder in found:
            newest_ms = max(newest_ms, clock.read(folder.path))
    return newest_ms


# --- incarnations that are over ------------------------------------------------------------------------


def incarnations(data: str) -> list[str]:
    """Return the incarnations that have a folder; removes half-removed folders first.  Raises HostError."""
    root = os.path.join(data, SERVERS)
    try:
        names = sorted(os.listdir(root))
        for name in [name for name in names if name.endswith(_GONE)]:
            with suppress(FileNotFoundError):  # an earlier leader's thread removes it, too
                _remove(os.path.join(root, name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise refused(error, f"cannot use {root}") from error
    return [name for name in names if not name.endswith(_GONE)]


def has_incarnations(data: str) -> bool:
    return os.path.isdir(os.path.join(data, SERVERS)) and bool(incarnations(data))


def have_logs(data: str) -> bool:
    """Tell whether a server was killed, so that its log may have records that stores lack."""
    logs = (log_of(data, name) for name in incarnations(data))
    return any(name.endswith(SUFFIX) for log in logs if os.path.isdir(log) for name in os.listdir(log))


def note_log(data: str, incarnation: str) -> None:
    """Note that the incarnation's log is begun: the log's folder has ``run`` and ``SYNCED``.  Raises OSError."""
    folder = log_of(data, incarnation)
    sync_folder(folder)  # the files' entries, before the note that they must exist
    identity = identity_of(folder)
    assert identity is not None, "its run has begun"
    write_durably(os.path.join(folder_of(data, incarnation), LOGGED), _logged(f"{incarnation} {identity[0].hex()}"))


def _logged(said: str) -> bytes:
    return f"{said} {crc32(said.encode()):08x}\n".encode()


def _said_by(path: str) -> tuple[str, str] | None:
    """Return the incarnation and the log that a file ``logged`` names, or None if it names none.  Raises OSError."""
    data = read_first(path, _LOGGED_BYTES)
    said, _, _ = data.decode(errors="replace").rpartition(" ")
    if not said or _logged(said) != data:
        return None
    incarnation, _, log = said.partition(" ")
    return incarnation, log


def highest_number(data: str) -> int:
    """Return the highest number of an incarnation that has a folder, or 0.  Lists ``servers``.  Raises HostError."""
    try:
        names = os.listdir(os.path.join(data, SERVERS))
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise refused(error, f"cannot list {data}/{SERVERS}") from error
    numbers = (name.removesuffix(_GONE).rpartition(".")[2] for name in names)
    return max((int(number) for number in numbers if number.isdigit()), default=0)


def make_spent(data: str, incarnations: list[str]) -> None:
    """Make the folders of incarnations whose logs no region needs.  Raises OSError."""
    make_all_lasting([folder_of(data, one) for one in incarnations])
    for one in incarnations:
        write_durably(os.path.join(folder_of(data, one), SPENT), b"")


def is_spent(data: str, incarnation: str) -> bool:
    """Tell whether no region lacks a record of the incarnation's log, whatever its seal says."""
    return os.path.exists(os.path.join(folder_of(data, incarnation), SPENT))


@dataclass(frozen=True, slots=True)
class Seal:
    """The lengths of a log's segments, as the catalogue stores them."""

    lengths: tuple[tuple[str, int], ...]
    is_of_files: bool = False  # by an older program: lengths of files, not ends of synced complete frames


def dead_log(
    data: str, incarnation: str, seal: Seal | None, synced: Mapping[int, int] = NO_LENGTHS, *, is_named: bool
) -> DeadLog:
    """Read the log of a dead incarnation; ``seal`` is its earlier seal, or None if it was not sealed.

    ``synced`` has the lengths that the incarnation had synced by its node's record (``dead_logs.measure``).
    ``is_named`` says that a row of the catalogue names the incarnation, so that its folder must exist.
    Raises HostError, and DamagedData if a file or a record is missing that must exist.
    """
    folder = log_of(data, incarnation)
    if incarnation.rpartition(".")[0] != STANDALONE:
        _check_folder(data, incarnation, is_named=is_named)
        if is_spent(data, incarnation):
            return DeadLog(folder, Sealed()).load()
    if seal is not None and not seal.is_of_files:
        _check_seal(folder, seal, synced)
        log = DeadLog(folder, sealed_at(seal.lengths)).load()
        if log.extent != seal.lengths:  # as if its writer were alive and had removed segments
            raise DamagedData(f"{folder} has not all segments that it had at the end; {remedy(folder)}")
        return log
    return DeadLog(folder, measure(folder, synced) if seal is None else sealed_by_older(folder, seal.lengths)).load()


def _check_seal(folder: str, seal: Seal, synced: Mapping[int, int]) -> None:
    """Raise DamagedData if a segment's synced part is longer than the seal says.  Raises HostError."""
    lengths = {segment_number(name): length for name, length in seal.lengths}
    try:
        stored_bounds = SegmentBounds(folder)
        bounds = stored_bounds.read()
        for number, length in synced.items():
            if number in lengths or not stored_bounds.has_removed(number):
                bounds[number] = max(length, bounds.get(number, 0))
    except OSError as error:
        raise refused(error, f"cannot read the server's log {folder}") from error
    for number, bound in bounds.items():
        if lengths.get(number, 0) < bound:
            text = f"its seal in the catalogue ends at byte {lengths.get(number, 0)}, and {bound} were synced"
            raise DamagedData(f"{folder}/{segment_name(number)}: {text}; {remedy(folder)}")


def sync_extent(log: DeadLog) -> None:
    """Sync the part of the log that was read, so that its extent may be stored as its seal.  Raises HostError."""
    certain = {segment.name: segment.synced_bytes for segment in log.sealed.segments}
    for name, whole_bytes in log.extent:
        if whole_bytes > certain[name]:
            try:
                sync_file(os.path.join(log.folder, name))
            except OSError as error:
                raise refused(error, f"cannot sync the server's log {log.folder}") from error


def _check_folder(data: str, incarnation: str, *, is_named: bool) -> None:
    """Check that the incarnation's folder and log exist if they must.  Raises HostError, DamagedData."""
    path, folder = folder_of(data, incarnation), log_of(data, incarnation)
    try:
        if is_named and not _is_there(path):
            check_place(data)
            raise DamagedData(f"{path}, with the log of the server, is missing; {remedy(folder)}")
        if is_named and not os.listdir(path):
            raise DamagedData(f"{path} is empty, and the log of the server was in it; {remedy(folder)}")
        if _is_there(os.path.join(path, LOGGED)):
            for one in (folder, os.path.join(folder, RUN), os.path.join(folder, SYNCED)):
                if not _is_there(one):
                    check_place(data)
                    raise DamagedData(f"{one} is missing; {remedy(folder)}")
            _check_identity(incarnation, folder, _said_by(os.path.join(path, LOGGED)))
    except OSError as error:
        raise refused(error, f"cannot read {path}") from error


def _check_identity(incarnation: str, folder: str, said: tuple[str, str] | None) -> None:
    """Check that the log is the one that ``logged`` names.  Raises HostError, DamagedData."""
    if said is None:
        return
    if said[0] != incarnation:
        raise DamagedData(f"{folder} is that of server {said[0]}, and not of {incarnation}; {remedy(folder)}")
    identity = identity_of(folder)
    if identity is not None and identity[0].hex() != said[1]:
        raise DamagedData(f"{folder} is not the log of server {incarnation}, but another one; {remedy(folder)}")


def _is_there(path: str) -> bool:
    """Tell whether the path exists.  Raises OSError if that cannot be known."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def remove(data: str, incarnation: str) -> None:
    """Remove the folder; the next start completes a removal that was cut off.  Raises HostError."""
    path = folder_of(data, incarnation)
    try:
        os.rename(path, path + _GONE)
        sync_folder_if_any(os.path.join(data, SERVERS))
        _remove(path + _GONE)
    except FileNotFoundError:
        return
    except OSError as error:
        raise refused(error, f"cannot remove {path}") from error


def _remove(path: str) -> None:
    import shutil  # 0.3 MB, which a process without such folders does not need

    shutil.rmtree(path)
