"""The facts of processes: who lives, who holds a file, who listens on a port, what a running store was given.

All come from ``/proc``.  A process of another user shows its command, and neither its files nor its sockets unless root
looks.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from columnar.diagnosis.facts import Limits, LockFacts, PortFacts, Process, RunningStore
from columnar.diagnosis.time_limit import is_same_folder

PROC: Final = "/proc"
STORE: Final = "columnar.roles.store_process"
NAME_CHARACTERS: Final = 200  # of a command, which may be long
_LISTENS: Final = "0A"
_ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not listened on


def pids() -> Iterator[int]:
    with suppress(OSError):
        yield from (int(name) for name in os.listdir(PROC) if name.isdigit())


def is_alive(pid: int) -> bool | None:
    """Return whether the process works: a zombie does not.  None if that cannot be told."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return _stat_of(pid)[:1] != ["Z"]


def _stat_of(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` behind the name: state, parent ..."""
    try:
        with open(f"{PROC}/{pid}/stat", encoding="latin-1") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def words_of(pid: int) -> list[str]:
    try:
        with open(f"{PROC}/{pid}/cmdline", "rb") as file:
            return [word.decode("utf-8", "replace") for word in file.read().split(b"\0")[:-1]]
    except OSError:
        return []


def process_of(pid: int) -> Process:
    """Return the process with a short name, without its arguments, which may be secrets; of a store with its folder."""
    words = words_of(pid)
    settings = _settings_in(words)
    if settings:
        name = f"columnar, folder {settings.get('data', '')}"
    else:
        module = words[words.index("-m") + 1 :][:1] if "-m" in words else []
        name = " ".join([*(os.path.basename(word) for word in words[:1]), *module])
    user = -1
    with suppress(OSError):
        user = os.stat(f"{PROC}/{pid}").st_uid
    return Process(pid, "".join(one if one.isprintable() else "?" for one in name[:NAME_CHARACTERS]), user)


def holders_of(path: str) -> tuple[Process, ...]:
    """Return the processes that have the file open, as far as this user may see them, without this process."""
    try:
        wanted = os.stat(path)
    except OSError:
        return ()
    return tuple(
        process_of(pid)
        for pid in pids()
        if pid != os.getpid() and any((one.st_dev, one.st_ino) == (wanted.st_dev, wanted.st_ino) for one in _files(pid))
    )


def _files(pid: int) -> Iterator[os.stat_result]:
    with suppress(OSError):
        for name in os.listdir(f"{PROC}/{pid}/fd"):
            with suppress(OSError):
                yield os.stat(f"{PROC}/{pid}/fd/{name}")


def _settings_in(words: list[str]) -> dict[str, Any]:
    """Return the settings of a store's command line; empty if it is none."""
    if STORE in words:
        with suppress(ValueError):
            found = json.loads(words[-1])
            if isinstance(found, dict):
                return found
    return {}


def running_store(data: str, lock: LockFacts) -> RunningStore | None:
    """Return the process that serves the folder, with its children; None if none is seen."""
    candidates = {one.pid for one in lock.holders} or set(pids())
    for pid in sorted(candidates):
        settings = _settings_in(words_of(pid))
        if settings and is_same_folder(str(settings.get("data", "")), data):
            return RunningStore(process_of(pid), frozenset({pid, *_children_of(pid)}), settings)
    return None


def served_by(lock: LockFacts) -> RunningStore | None:
    """Return the process that LOCK names, without settings; None if it names none."""
    number = lock.owner.removeprefix("process ")
    if not number.isdigit():
        return None
    pid = int(number)
    return RunningStore(process_of(pid), frozenset({pid, *_children_of(pid)}))


def _children_of(pid: int) -> set[int]:
    parents = {one: int(fields[1]) for one in pids() if len(fields := _stat_of(one)) > 1}
    found, added = {pid}, {pid}
    while added:
        added = {one for one, parent in parents.items() if parent in added} - found
        found |= added
    return found - {pid}


def limits_of(running: RunningStore | None) -> Limits:
    """Return the limits of the running store, or of this process."""
    if running is not None:
        with suppress(OSError, ValueError, IndexError), open(f"{PROC}/{running.process.pid}/limits") as file:
            for line in file:
                if line.startswith("Max open files"):
                    hard = line.removeprefix("Max open files").split()[1]
                    return Limits(None if hard == "unlimited" else int(hard), running.process)
    try:
        import resource
    except ImportError:
        return Limits()
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Limits(None if hard_limit == resource.RLIM_INFINITY else hard_limit)


def port_facts(option: str, host: str, port: int, running: RunningStore | None) -> PortFacts:
    """Return who listens on the port, or why the address cannot be used."""
    error = _address_error(host)
    if error:
        return PortFacts(option, host, port, error=error)
    sockets = listening_sockets(host, port)
    owners = owners_of(sockets)
    is_own = running is not None and any(pid in running.pids for pid in owners.values())
    known = tuple(process_of(pid) for pid in sorted(set(owners.values())))
    strangers = (Process(0),) if sockets - owners.keys() else ()
    return PortFacts(option, host, port, known + strangers, is_own)


def _address_error(host: str) -> str:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.bind(address)  # at a free port: whether the address is this machine's
    except OSError as error:
        return error.strerror or str(error)
    return ""


def listening_sockets(host: str, port: int) -> set[int]:
    """Return the inodes of sockets that listen on the port, at an address that ``host`` would share with them."""
    own: set[str] = set()
    with suppress(OSError):
        own = {str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    found = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with suppress(OSError), open(f"{PROC}/net/{name}", encoding="ascii") as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                if len(fields) > 9 and fields[3] == _LISTENS:
                    address, _, number = fields[1].partition(":")
                    if int(number, 16) == port and shares_address(own, address_of(address, family)):
                        found.add(int(fields[9]))
    return found


def address_of(text: str, family: socket.AddressFamily) -> str:
    """Return the address of ``/proc/net/tcp``, which has each four bytes in the machine's order."""
    words = (bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8))
    address = socket.inet_ntop(family, b"".join(words))
    return address.removeprefix("::ffff:") if "." in address else address


def shares_address(own: set[str], other: str) -> bool:
    """Tell whether a socket at ``other`` hinders one at any of ``own``; a wildcard of IPv6 takes IPv4 too."""
    return other in _ANY or other in own or not own.isdisjoint(_ANY)


def owners_of(sockets: set[int]) -> Mapping[int, int]:
    """Return the process by socket, of those that this user may see."""
    if not sockets:
        return {}
    wanted = {f"socket:[{inode}]": inode for inode in sockets}
    found: dict[int, int] = {}
    for pid in sorted(pids()):
        with suppress(OSError):
            for name in os.listdir(f"{PROC}/{pid}/fd"):
                with suppress(OSError):
                    inode = wanted.get(os.readlink(f"{PROC}/{pid}/fd/{name}"))
                    if inode is not None:
                        found.setdefault(inode, pid)
    return found
