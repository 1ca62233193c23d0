"""(pure) The system calls of a process tree, read from strace's output as events of a disk and of connections.

strace runs with ``-f -ttt -xx -yy``: every string is in hex, and every descriptor has the path or the two addresses for
which it stands, so descriptors need not be followed from ``open`` to ``dup`` to ``close``.  A call that other calls
interrupt has two lines, ``<unfinished ...>`` and ``<... name resumed>``.

When an event counts:
    * a change of a file or a folder: when its call has returned;
    * a sync: from its return on it covers the calls that had returned before it began (``began``);
    * a reply: when its call begins, for its bytes may be under way from then on.

Files are append-only, except the clock's file: no store writes into the middle of a file.  The comparison of a
recording's outcome with the real folder (``recording.differences``) would show it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

TRACED: Final = (
    "openat,creat,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,sync_file_range,syncfs,rename,renameat,"
    "renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,ftruncate,truncate,fallocate,sendto,sendmsg,sendfile,"
    "copy_file_range"
)
CLOCK: Final = "/clock"
_LINE: Final = re.compile(r"(\d+) +(\d+\.\d+) (.*)")
_RESUMED: Final = re.compile(r"<\.\.\. (\w+) resumed>(.*)")
_DONE: Final = re.compile(r"\s*\) += (-?\d+)")
_HEX: Final = r'"((?:\\x[0-9a-f]{2})*)"'
_STRING: Final = re.compile(_HEX + r"(\.\.\.)?")
_HELD: Final = re.compile(r"\d+<((?:\\x[0-9a-f]{2})+|TCP:\[[^\]]*\]|TCPv6:\[[^\]]*\])(?:\(deleted\))?>")
_FOLDER: Final = re.compile(r"(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2})+)>, " + _HEX)
_PEER: Final = re.compile(r"->.*:(\d+)\]")


class NotUnderstood(Exception):
    """A call for which the model has no rule, so that it would judge an unknown disk."""


@dataclass(frozen=True, slots=True)
class Made:
    """A file exists under ``path``; it is empty if it is new or ``emptied``."""

    path: str
    emptied: bool


@dataclass(frozen=True, slots=True)
class Written:
    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy of ``size_bytes`` of ``source``, from the place where the last copy into ``path`` ended."""

    path: str
    source: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Cut:
    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """The replacement of all bytes of a file by one write at its beginning."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Synced:
    """The sync of a file or a folder; ``began`` is the number of events before the call began."""

    path: str
    began: int


@dataclass(frozen=True, slots=True)
class FolderMade:
    path: str


@dataclass(frozen=True, slots=True)
class Renamed:
    path: str
    to: str


@dataclass(frozen=True, slots=True)
class Linked:
    path: str
    to: str


@dataclass(frozen=True, slots=True)
class Removed:
    path: str


@dataclass(frozen=True, slots=True)
class Sent:
    """Bytes sent to the client at ``port``."""

    port: int
    data: bytes


Event = Made | Written | Replaced | Copied | Cut | Synced | FolderMade | Renamed | Linked | Removed | Sent


def events_of(lines: Iterable[str], root: str) -> Iterator[Event]:
    """Yield the events under ``root`` and on TCP connections, in order."""
    reader = _Reader(root)
    for line in lines:
        yield from reader.line(line)


@dataclass(slots=True)
class _Open:
    """A call that began and has not returned."""

    text: str
    began: int


class _Reader:
    def __init__(self, root: str) -> None:
        self._root = root
        self._open: dict[str, _Open] = {}  # by thread
        self._count = 0

    def line(self, line: str) -> Iterator[Event]:
        found = _LINE.match(line)
        if found is None:
            return
        thread, text = found[1], found[3]
        if text.startswith(("+++", "---")):
            return
        if text.endswith("<unfinished ...>"):
            begun = self._open[thread] = _Open(text.removesuffix("<unfinished ...>").rstrip(), self._count)
            yield from self._counted(self._sent(begun.text))
            return
        resumed = _RESUMED.match(text)
        if resumed is not None:
            begun = self._open.pop(thread)
            yield from self._counted(self._done(begun.text + resumed[2], begun.began))
            return
        yield from self._counted(self._sent(text))
        yield from self._counted(self._done(text, self._count))

    def _counted(self, event: Event | None) -> Iterator[Event]:
        if event is not None:
            self._count += 1
            yield event

    def _sent(self, text: str) -> Event | None:
        """Return a reply, dated by the beginning of its call."""
        name, _, rest = text.partition("(")
        if name not in ("write", "sendto", "writev", "sendmsg"):
            return None
        held = _HELD.match(rest)
        if held is None or not held[1].startswith("TCP"):
            return None
        peer = _PEER.search(held[1])
        return Sent(int(peer[1]), _strings(rest[held.end() :])) if peer is not None else None

    def _done(self, text: str, began: int) -> Event | None:
        name, _, rest = text.partition("(")
        result = _DONE.search(rest[rest.rfind(")") :])
        if result is None or result[1].startswith("-"):
            return None
        returned = int(result[1])
        if name in ("openat", "creat", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat"):
            return self._named(name, rest)
        if name.startswith(("rename", "link")):
            return self._moved(name, rest)
        held = _HELD.match(rest)
        if held is None or held[1].startswith("TCP"):
            return None
        path = self._inside(_unhex(held[1]).decode())
        if path is None or "(deleted)" in path:
            return None
        return _on_file(name, path, rest[held.end() :], returned, began, self._inside)

    def _named(self, name: str, rest: str) -> Event | None:
        path = self._paths(rest)[0]
        if path is None:
            return None
        if name in ("mkdir", "mkdirat"):
            return FolderMade(path)
        if name in ("rmdir", "unlink", "unlinkat"):
            return Removed(path)
        if name == "creat":
            return Made(path, True)
        return Made(path, "O_TRUNC" in rest) if "O_CREAT" in rest else None

    def _moved(self, name: str, rest: str) -> Event | None:
        old, new = self._paths(rest)
        if old is None and new is None:
            return None
        if old is None or new is None:
            raise NotUnderstood(f"a {name} across the border of the folder: {rest[:300]}")
        return Renamed(old, new) if name.startswith("rename") else Linked(old, new)

    def _paths(self, rest: str) -> list[str | None]:
        """Return the paths that a call names, relative to the root; None for a path outside."""
        found = [(_unhex(folder).decode(), _unhex(name).decode()) for folder, name in _FOLDER.findall(rest)]
        if found:
            return [self._inside(name if name.startswith("/") else f"{folder}/{name}") for folder, name in found]
        return [self._inside(_unhex(name).decode()) for name, _ in _STRING.findall(rest)]

    def _inside(self, path: str) -> str | None:
        if path == self._root:
            return ""
        return path[len(self._root) + 1 :] if path.startswith(self._root + "/") else None


def _on_file(
    name: str, path: str, rest: str, returned: int, began: int, inside: Callable[[str], str | None]
) -> Event | None:
    if name in ("fsync", "fdatasync"):
        return Synced(path, began)
    if name in ("write", "writev"):
        return Written(path, _strings(rest)[:returned])
    if name == "pwrite64" and path.endswith(CLOCK) and rest.endswith(f"0) = {returned}"):
        return Replaced(path, _strings(rest)[:returned])
    if name in ("ftruncate",):
        return Cut(path, int(rest.strip(" ,").partition(")")[0]))
    if name == "sendfile":
        source = _HELD.search(rest)
        there = inside(_unhex(source[1]).decode()) if source is not None else None
        if there is None:
            raise NotUnderstood(f"a copy from outside of the folder: {rest[:300]}")
        return Copied(path, there, returned) if returned else None
    if name in ("fallocate", "sync_file_range"):
        return None  # room without length; a hint that promises nothing
    raise NotUnderstood(f"{name} on {path}: {rest[:300]}")


def _unhex(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _strings(text: str) -> bytes:
    data = b""
    for piece, cut_off in _STRING.findall(text):
        if cut_off:
            raise NotUnderstood("strace was told to keep too little of a write")
        data += _unhex(piece)
    return data
