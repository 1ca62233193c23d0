"""The folders of incarnations: where each keeps its log and its clock.

    servers/NAME.NUMBER/log      what its regions wrote under shared fsyncs
    servers/NAME.NUMBER/clock    the highest timestamp that it gave
    server-log                   the log of a standalone, whose incarnation is called ``standalone.NUMBER``

An incarnation is text here, as ``s2.17``.  A folder goes when no row of the catalogue names its incarnation any more,
and a process of the store has observed its clock.  Functions that touch the disk block.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from columnar import clock
from columnar.storage.data_folder import SERVER_LOG, SERVERS
from columnar.storage.dead_logs import SUFFIX, DeadLog, Sealed, Segment, measure, sealed_at
from columnar.storage.durable_files import sync_folder_if_any
from columnar.storage.rocks_errors import refused

_GONE: Final = ".deleted"
LOG: Final = "log"
STANDALONE: Final = "standalone"  # the name of the incarnations that a standalone's log belongs to


def folder_of(data: str, incarnation: str) -> str:
    return os.path.join(data, SERVERS, incarnation)


def log_of(data: str, incarnation: str) -> str:
    """The folder of the log that the incarnation writes, or wrote."""
    if incarnation.rpartition(".")[0] == STANDALONE:
        return os.path.join(data, SERVER_LOG)
    return os.path.join(folder_of(data, incarnation), LOG)


def clock_of(data: str, incarnation: str) -> int:
    """The highest timestamp that the incarnation may have given; 0: nothing is known.  Milliseconds.  HostError."""
    is_standalone = incarnation.rpartition(".")[0] == STANDALONE
    return clock.read(data if is_standalone else folder_of(data, incarnation))


def newest_clock(data: str) -> int:
    """The highest timestamp that any process gave in the data folder, by clocks' files.  Milliseconds.  HostError."""
    newest_ms = clock.read(data)
    with suppress(FileNotFoundError), os.scandir(os.path.join(data, SERVERS)) as found:
        for folder in found:
            newest_ms = max(newest_ms, clock.read(folder.path))
    return newest_ms


# --- incarnations that are over ------------------------------------------------------------------------


def incarnations(data: str) -> list[str]:
    """The names of all that have a folder; half removed ones are removed first.  HostError."""
    root = os.path.join(data, SERVERS)
    try:
        names = sorted(os.listdir(root))
        for name in [name for name in names if name.endswith(_GONE)]:
            _remove(os.path.join(root, name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise refused(error, f"cannot use {root}") from error
    return [name for name in names if not name.endswith(_GONE)]


def has_incarnations(data: str) -> bool:
    return os.path.isdir(os.path.join(data, SERVERS)) and bool(incarnations(data))


def have_logs(data: str) -> bool:
    """Whether a server was killed, so that its log may hold what stores lack."""
    logs = (log_of(data, name) for name in incarnations(data))
    return any(name.endswith(SUFFIX) for log in logs if os.path.isdir(log) for name in os.listdir(log))


def sealed_log(data: str, incarnation: str, lengths: tuple[tuple[str, int], ...] | None) -> DeadLog:
    """The log of an incarnation that is over, read.  ``lengths``: as they were sealed before; None: now.

    HostError, DamagedData.
    """
    folder = log_of(data, incarnation)
    sealed = measure(folder) if lengths is None else sealed_at(folder, lengths)
    return DeadLog(folder, sealed).load()


def lengths_as_found(data: str, incarnation: str) -> Sealed:
    """The segments of a log that is damaged, so that whoever needs it meets the damage."""
    folder = log_of(data, incarnation)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))
        sizes = [Segment(name, os.path.getsize(os.path.join(folder, name))) for name in names]
    except OSError as error:
        raise refused(error, f"cannot read the server's log {folder}") from error
    return Sealed(tuple(sizes))


def remove(data: str, incarnation: str) -> None:
    """Nothing of the folder is left, or its rest goes at the next start.  HostError."""
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
    import shutil  # 0.3 MB that a process without such folders needs not

    shutil.rmtree(path)
