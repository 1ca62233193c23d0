"""(pure) A disk that knows which operations a power cut may undo.

Files and folders are nodes.  A file has the operations on its bytes, a disk the operations on the entries of its
folders, each with the number of the event that made it.

Only the following is certain to survive a cut:
    * of a file the bytes that had been written when its last sync began;
    * of a folder the entries that it had when its last sync began.  The sync of a file says
      nothing about its name; a rename survives wholly or not at all.
Each unsynced operation may survive or not, except as ``AFTER_ALL`` says, and a part of a write may survive.

Real file systems keep more than that: this is the guarantee of POSIX, which all of them keep.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal

from columnar.storage.synced_bound import SYNCED
from tests.crash.cuts.system_calls import (
    Copied,
    Cut,
    Event,
    FolderMade,
    Linked,
    Made,
    Removed,
    Renamed,
    Replaced,
    Sent,
    Synced,
    Written,
)

PAGE_BYTES: Final = 4096
# A file may be longer than what of it was written: pages of zeros in what was not synced.  RocksDB reads over
# that in a log, and refuses a list of files with it (docs/faults.md): there only ends are torn.
WHOLE_PAGES: Final = "MANIFEST-"
# An opening of RocksDB makes files and a list of them, syncs each, renames CURRENT so that it names the list, and only
# then syncs the folder.  It relies on what ext4, XFS, Btrfs and F2FS do: a rename is not there without the names that
# were made before it in its folder (docs/faults.md).
AFTER_ALL: Final = "CURRENT"
# A store's bound is stored to a mapped page, which nobody traces: the servers under trace also write it to a file of
# this name.  A cut may leave any value that was stored; the last asks most of what is left, so each cut leaves that.
NOTED: Final = f"{SYNCED}.noted"
Kind = Literal["lost", "kept", "prefix", "mixed"]


@dataclass(slots=True)
class Node:
    number: int
    is_folder: bool
    # of a file: (event, bytes appended) or (event, size it was cut to)
    operations: list[tuple[int, bytes | int]] = field(default_factory=list)
    synced: int = 0  # how many of the operations
    _whole: tuple[int, bytes] = (0, b"")  # how many operations, and what they make

    def content(self, count: int) -> bytes:
        """Return the content after the first ``count`` operations."""
        done, data = self._whole
        if done > count:
            done, data = 0, b""
        if done == count:
            return data
        held = bytearray(data)
        for _, operation in self.operations[done:count]:
            apply(held, operation)
        self._whole = (count, bytes(held))
        return self._whole[1]


def apply(held: bytearray, operation: bytes | int) -> None:
    if isinstance(operation, bytes):
        held += operation
    elif operation < len(held):
        del held[operation:]
    else:
        held += bytes(operation - len(held))


@dataclass(slots=True)
class Entry:
    """An operation on entries: ``node`` leaves ``away`` and arrives at ``to``, each (folder's number, name)."""

    event: int
    node: int
    away: tuple[int, str] | None
    to: tuple[int, str] | None
    synced: bool = False


Names = dict[int, dict[str, int]]  # folder's number -> name -> node's number


class Disk:
    """The disk: it takes events in order, and ``left`` returns the files that a cut right now would leave."""

    def __init__(self, *, drops_syncs_of: str | tuple[str, ...] = ()) -> None:
        """Take ``drops_syncs_of``: files whose names end so are never synced, as on a disk that lies."""
        self._lies = drops_syncs_of
        self.nodes: list[Node] = [Node(0, True)]
        self._now: Names = {0: {}}
        self._sure: Names = {0: {}}  # what all entries before the first of ``_open`` make, which are synced
        self._open: list[Entry] = []
        self._copied: dict[int, int] = {}  # how far into their sources copies have come
        self.count = 0  # events so far

    # --- what happens --------------------------------------------------------------------------------

    def happen(self, event: Event) -> None:
        self.count += 1
        match event:
            case Made(path, emptied):
                self._make(path, emptied)
            case Written(path, data):
                self._file(path).operations.append((self.count, data))
            case Replaced(path, data):
                self._file(path).operations += [(self.count, 0), (self.count, data)]
            case Copied(path, source, size_bytes):
                self._copy(path, source, size_bytes)
            case Cut(path, size_bytes):
                self._file(path).operations.append((self.count, size_bytes))
            case Synced(path, began):
                self._sync(path, began)
            case FolderMade(path):
                node = self._new_node(True)
                self._now[node.number] = {}
                self._enter(node.number, None, self._place(path))
            case Renamed(path, to):
                self._enter(self._find(path), self._place(path), self._place(to))
            case Linked(path, to):
                self._enter(self._find(path), None, self._place(to))
            case Removed(path):
                self._remove(path)
            case Sent():
                pass

    def _new_node(self, is_folder: bool) -> Node:
        node = Node(len(self.nodes), is_folder)
        self.nodes.append(node)
        return node

    def _place(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rpartition("/")
        return self._find(folder), name

    def _find(self, path: str) -> int:
        number = 0
        for name in filter(None, path.split("/")):
            number = self._now[number][name]
        return number

    def _file(self, path: str) -> Node:
        return self.nodes[self._find(path)]

    def _make(self, path: str, emptied: bool) -> None:
        folder, name = self._place(path)
        number = self._now[folder].get(name)
        if number is None:
            self._enter(self._new_node(False).number, None, (folder, name))
        elif emptied and self.nodes[number].operations:
            self.nodes[number].operations.append((self.count, 0))

    def _copy(self, path: str, source: str, size_bytes: int) -> None:
        node, origin = self._file(path), self._file(source)
        start = self._copied.get(node.number, 0)
        data = origin.content(len(origin.operations))[start : start + size_bytes]
        self._copied[node.number] = start + size_bytes
        node.operations.append((self.count, data))

    def _remove(self, path: str) -> None:
        place = self._place(path)
        number = self._now[place[0]][place[1]]
        self._enter(number, place, None)

    def _enter(self, node: int, away: tuple[int, str] | None, to: tuple[int, str] | None) -> None:
        entry = Entry(self.count, node, away, to)
        _apply_entry(self._now, entry)
        self._open.append(entry)

    def _sync(self, path: str, began: int) -> None:
        if self._lies and path.endswith(self._lies):
            return
        number = self._find(path)
        node = self.nodes[number]
        if not node.is_folder:
            while node.synced < len(node.operations) and node.operations[node.synced][0] <= began:
                node.synced += 1
            return
        for entry in self._open:
            places = (entry.away, entry.to)
            if entry.event <= began and any(place is not None and place[0] == number for place in places):
                entry.synced = True
                if entry.to is None and self.nodes[entry.node].is_folder:
                    self._settle(entry.node)
        while self._open and self._open[0].synced:
            _apply_entry(self._sure, self._open.pop(0))

    def _settle(self, folder: int) -> None:
        """Settle the entries of a folder that is removed for good, because they do not matter any more."""
        for entry in self._open:
            if (entry.away or entry.to or (0, ""))[0] == folder:
                entry.synced = True

    # --- what a cut leaves -----------------------------------------------------------------------------

    def left(self, kind: Kind, rng: Random) -> dict[str, bytes]:
        """Return path -> bytes of every file; an empty folder is given by its path and a slash."""
        until = rng.randrange(self.count + 1) if kind == "prefix" else 0
        names = {number: dict(held) for number, held in self._sure.items()}
        there = [
            entry.synced or kind == "kept" or entry.event <= until or (kind == "mixed" and rng.random() < 0.5)
            for entry in self._open
        ]
        _with_those_before(self._open, there)
        for entry in itertools.compress(self._open, there):
            _apply_entry(names, entry)
        files: dict[str, bytes] = {}
        self._walk(names, 0, "", kind, until, rng, files)
        return files

    def _walk(
        self, names: Names, folder: int, path: str, kind: Kind, until: int, rng: Random, files: dict[str, bytes]
    ) -> None:
        held = names.get(folder, {})
        if not held and path:
            files[path] = b""
        noted = self._now.get(folder, {}).get(NOTED)
        if noted is not None and self.nodes[noted].operations:
            files[path + SYNCED] = self.nodes[noted].content(len(self.nodes[noted].operations))
        for name, number in held.items():
            if name.startswith(SYNCED):
                continue
            node = self.nodes[number]
            if node.is_folder:
                self._walk(names, number, f"{path}{name}/", kind, until, rng, files)
            elif kind == "mixed":
                files[path + name] = _torn(node, rng, holes=not name.startswith(WHOLE_PAGES))
            else:
                files[path + name] = node.content(_kept(node, kind, until))


def _with_those_before(entries: list[Entry], there: list[bool]) -> None:
    """Keep the names made before a rename to ``AFTER_ALL`` in its folder, if the rename is kept."""
    folders: set[int] = set()
    for number in range(len(entries) - 1, -1, -1):
        entry = entries[number]
        if entry.to is None:
            continue
        there[number] |= entry.away is None and entry.to[0] in folders
        if there[number] and entry.away is not None and entry.to[1] == AFTER_ALL:
            folders.add(entry.to[0])


def _kept(node: Node, kind: Kind, until: int) -> int:
    if kind == "kept":
        return len(node.operations)
    count = node.synced
    while count < len(node.operations) and node.operations[count][0] <= until:
        count += 1
    return count


def _torn(node: Node, rng: Random, *, holes: bool) -> bytes:
    """Return the synced bytes and some of the rest: a part of the last write, or its length with pages of zeros."""
    total = len(node.operations)
    if node.synced == total:
        return node.content(total)
    count = rng.randint(node.synced, total)
    data = node.content(count)
    sure = len(node.content(node.synced))
    if count < total and isinstance(node.operations[count][1], bytes) and rng.random() < 0.7:
        part = node.operations[count][1]
        assert isinstance(part, bytes)
        data += part[: rng.randrange(len(part) + 1)]
    if holes and len(data) > sure and rng.random() < 0.3:
        page = rng.randrange(sure, len(data)) // PAGE_BYTES * PAGE_BYTES
        first, last = max(sure, page), min(len(data), page + PAGE_BYTES)
        data = data[:first] + bytes(last - first) + data[last:]
    return data


def _apply_entry(names: Names, entry: Entry) -> None:
    """Apply the operation; if its node is missing, it was lost before, and this operation is lost with it."""
    if entry.away is not None:
        folder, name = entry.away
        held = names.setdefault(folder, {})
        if held.get(name) != entry.node:
            return
        del held[name]
    if entry.to is not None:
        folder, name = entry.to
        names.setdefault(folder, {})[name] = entry.node


def replay(events: Iterable[Event]) -> Disk:
    disk = Disk()
    for event in events:
        disk.happen(event)
    return disk
