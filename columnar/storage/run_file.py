"""The file by which a command on this machine finds the process that serves a data folder with several servers.

    DATA/run.json               {"pid", "cluster_id", "socket"}, readable only for its user; ``socket`` is a path to
                                connect to
    DATA/nodes/NAME/run.json    of a node beside others, which may run on a different machine
    RUN/run.json                a copy beside the socket, with ``data``, the folder's path; it is found while the data
                                folder does not answer

The file is written when the private socket listens, and removed at a stop.  After a kill the file stays, without a
listener at the socket; so does that of a node of a different machine, seen from here.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from glob import glob
from typing import Final

from columnar.errors import HostError
from columnar.storage.cluster_file import NODES

NAME: Final = "run.json"
RUN_PREFIX: Final = "columnar-"  # of the folders of sockets, in the system's temporary folder
SERVICE_RUN: Final = "/run/columnar"  # the temporary folder of the packaged service


@dataclass(frozen=True, slots=True)
class RunFile:
    pid: int
    cluster_id: str
    socket: str
    data: str = ""  # the absolute path of the data folder; only in the copy beside the socket


def write(data: str, run: RunFile) -> None:
    """Write the file, without an fsync, because the file is of no use after a power cut.  Raises HostError."""
    path = os.path.join(data, NAME)
    half = f"{path}.new"
    try:
        with suppress(FileNotFoundError):
            os.unlink(half)
        with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as new:
            json.dump({name: value for name, value in asdict(run).items() if value != ""}, new)
        os.replace(half, path)
    except OSError as error:
        raise HostError(f"cannot write {path}: {error.strerror}") from error


def read(data: str) -> RunFile | None:
    """Return the content of the file, or None if it is missing.

    Raises HostError if the file is unreadable or damaged, or belongs to a different user.
    """
    path = os.path.join(data, NAME)
    try:
        with open(path, encoding="utf-8") as found:
            said = json.load(found)
        return RunFile(int(said["pid"]), str(said["cluster_id"]), str(said["socket"]), str(said.get("data", "")))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}; only the store's own user may") from error
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"{path} is damaged; a restart of the store writes it anew") from error


def find_copy(data: str) -> RunFile | None:
    """Return the newest copy beside a socket of this user whose process serves ``data`` and listens; None without one.

    The data folder is not touched.  Looks in the system's temporary folder and in that of the packaged service.
    """
    wanted = os.path.abspath(data)
    found: list[tuple[float, RunFile]] = []
    for path in {path for base in (tempfile.gettempdir(), SERVICE_RUN) for path in glob(f"{base}/{RUN_PREFIX}*")}:
        with suppress(OSError, HostError):
            made = os.stat(path)
            if made.st_uid == os.geteuid() and (copy := read(path)) is not None and copy.data == wanted:
                found.append((made.st_mtime, copy))
    living = (copy for _, copy in sorted(found, key=lambda one: one[0], reverse=True) if _listens(copy.socket))
    return next(living, None)


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
        tried.setblocking(False)
        try:
            tried.connect(path)
        except BlockingIOError:  # its queue is full
            return True
        except OSError:
            return False
        return True


def read_local(data: str) -> RunFile | None:
    """Return the file of the process of this machine that serves the folder: the only one, or a node.

    A process that listens comes before files that killed ones left, and before files that cannot be read: those of
    nodes of other machines lie beside it, and one that a power cut emptied stays until that node starts again.  If none
    listens: the file of a process that served the folder alone, else None.  Raises HostError as ``read`` does, for the
    first of several files, if none listens and no process alone left a file.
    """
    alone, refusal = _read_if_good(data)
    if alone is not None and _listens(alone.socket):
        return alone
    nodes = os.path.join(data, NODES)
    try:
        names = sorted(os.listdir(nodes))
    except FileNotFoundError:
        names = []
    except OSError as error:
        raise HostError(f"cannot read {nodes}: {error.strerror}") from error
    for name in names:
        one, why = _read_if_good(os.path.join(nodes, name))
        if one is not None and _listens(one.socket):
            return one
        refusal = refusal or why
    if alone is None and refusal is not None:
        raise refusal
    return alone


def _read_if_good(folder: str) -> tuple[RunFile | None, HostError | None]:
    """Return the content of the file, or why it cannot be read; neither if it is missing."""
    try:
        return read(folder), None
    except HostError as error:
        return None, error


def remove(data: str) -> None:
    with suppress(OSError):
        os.unlink(os.path.join(data, NAME))
