"""The storage interface over sorted lists in memory, for tests and for data that may be lost.

The engine holds the state of its stores, by path, so that a store can "crash".  ``MemoryEngine.crash(path)`` undoes
everything after the last ``sync``, as a power cut would (S2).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from columnar.errors import HostError
from columnar.storage.api import DEFAULT_OPTIONS, Batch, FileSpan, SpaceOptions, Store, StoreClosed
from columnar.storage.capture import Capture
from columnar.storage.overlay import within
from columnar.storage.ownership import Ownership

_Operation = tuple[str, str, bytes, bytes]  # verb, space, key or start, value or stop


@dataclass(slots=True)
class _Space:
    """A key space.  A batch changes a copy, so an iterator keeps the list and the dictionary of its beginning (S3)."""

    keys: list[bytes] = field(default_factory=list)
    values: dict[bytes, bytes] = field(default_factory=dict)

    def copy(self) -> _Space:
        return _Space(list(self.keys), dict(self.values))

    def put(self, key: bytes, value: bytes) -> None:
        if key not in self.values:
            self.keys.insert(bisect_left(self.keys, key), key)
        self.values[key] = value

    def delete(self, key: bytes) -> None:
        if self.values.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]

    def delete_range(self, start: bytes, stop: bytes) -> None:
        first, last = bisect_left(self.keys, start), bisect_left(self.keys, stop)
        for key in self.keys[first:last]:
            del self.values[key]
        del self.keys[first:last]


@dataclass(slots=True)
class _Disk:
    """The content of one path: the state, and the state as of the last sync."""

    spaces: dict[str, _Space] = field(default_factory=dict)
    synced: dict[str, _Space] = field(default_factory=dict)
    unsynced: list[MemoryBatch] = field(default_factory=list)
    open: bool = False

    def take(self, spaces: frozenset[str]) -> None:
        """Open the path for writing, with at least these spaces."""
        for name in spaces - self.spaces.keys():
            self.spaces[name] = self.synced[name] = _Space()
        self.open = True

    def release(self) -> None:
        self.open = False

    def sync(self) -> None:
        self.unsynced = []
        self.synced = dict(self.spaces)


class MemoryBatch:
    def __init__(self) -> None:
        self.operations: list[_Operation] = []
        self._size = 0

    def put(self, space: str, key: bytes, value: bytes) -> None:
        self._size += len(key) + len(value)
        self.operations.append(("put", space, key, value))

    def delete(self, space: str, key: bytes) -> None:
        self._size += len(key)
        self.operations.append(("delete", space, key, b""))

    def delete_range(self, space: str, start: bytes, stop: bytes) -> None:
        self._size += len(start) + len(stop)
        self.operations.append(("delete_range", space, start, stop))

    def size_bytes(self) -> int:
        return self._size

    def apply(self, spaces: dict[str, _Space]) -> None:
        for name in {operation[1] for operation in self.operations}:
            spaces[name] = spaces[name].copy()
        for verb, space, key, value in self.operations:
            if verb == "put":
                spaces[space].put(key, value)
            elif verb == "delete":
                spaces[space].delete(key)
            else:
                spaces[space].delete_range(key, value)


class MemoryStore:
    def __init__(
        self,
        engine: MemoryEngine,
        path: str,
        disk: _Disk,
        options: Mapping[str, SpaceOptions],
        *,
        reads_only: bool = False,
    ) -> None:
        self._options = dict(options)
        self._path = path
        self._reads_only = reads_only
        self._disk: _Disk | None = disk
        self.files = MemoryFiles(self, engine)

    def open_disk(self) -> _Disk:
        if self._disk is None:
            raise StoreClosed(f"the store {self._path} is closed")
        return self._disk

    @property
    def spaces(self) -> frozenset[str]:
        return frozenset(self.open_disk().spaces)

    def batch(self, rows: int = 1) -> MemoryBatch:
        return MemoryBatch()

    def get(self, space: str, key: bytes) -> bytes | None:
        return self.open_disk().spaces[space].values.get(key)

    def multi_get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]:
        values = self.open_disk().spaces[space].values
        return [values.get(key) for key in keys]

    def scan(self, space: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        space_data = self.open_disk().spaces[space]
        last = len(space_data.keys) if stop is None else bisect_left(space_data.keys, stop)
        first = bisect_left(space_data.keys, start)
        return ((space_data.keys[i], space_data.values[space_data.keys[i]]) for i in range(first, last))

    def range_within(self, space: str, start: bytes, stop: bytes, cost: int) -> list[tuple[bytes, bytes]] | None:
        return within(self.scan(space, start, stop), cost)

    def scan_reverse(self, space: str, start: bytes, below: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        space_data = self.open_disk().spaces[space]
        last = len(space_data.keys) if below is None else bisect_left(space_data.keys, below)
        first = bisect_left(space_data.keys, start)
        return ((space_data.keys[i], space_data.values[space_data.keys[i]]) for i in range(last - 1, first - 1, -1))

    def write_batch(self, batch: Batch) -> None:
        assert isinstance(batch, MemoryBatch), "a batch belongs to the store that made it"
        disk = self.open_disk()
        if self._reads_only:
            raise HostError(f"the store {self._path} is open for reading")
        batch.apply(disk.spaces)
        disk.unsynced.append(batch)

    def gather(self, batch: Batch) -> None:
        self.write_batch(batch)

    def settle(self) -> None:
        self.open_disk()

    def sync(self) -> None:
        self.open_disk().sync()

    def own(self, region: str, epoch: int) -> None:
        pass

    def begin_capture(self, era: bytes, stamp: Callable[[], int]) -> Capture | None:
        return None

    def add_space(self, name: str, options: SpaceOptions = DEFAULT_OPTIONS) -> None:
        disk = self.open_disk()
        if name not in disk.spaces:
            self._options[name] = options
        disk.spaces.setdefault(name, _Space())
        disk.synced.setdefault(name, _Space())

    def drop_space(self, name: str) -> None:
        disk = self.open_disk()
        disk.spaces.pop(name, None)
        disk.synced.pop(name, None)
        self._options.pop(name, None)

    def options_of(self, name: str) -> SpaceOptions:
        return self._options.get(name, DEFAULT_OPTIONS)

    def set_options(self, name: str, options: SpaceOptions) -> bool:
        self.open_disk()
        self._options[name] = options
        return True  # the store neither compresses, filters nor caches

    def close(self) -> None:
        if self._disk is not None:
            if not self._reads_only:
                self._disk.release()
            self._disk = None


class MemoryFiles:
    """``StoreFiles`` of a store that has no files."""

    def __init__(self, store: MemoryStore, engine: MemoryEngine) -> None:
        self._store = store
        self._engine = engine

    def flush(self) -> None:
        self._store.open_disk()

    def compact(self, *, everything: bool = False) -> None:
        self._store.open_disk()

    def compact_span(self, space: str, start: bytes, stop: bytes | None) -> None:
        self._store.open_disk()

    def checkpoint(self, path: str) -> None:
        spaces = dict(self._store.open_disk().spaces)
        self._engine.disks[path] = _Disk(spaces=spaces, synced=dict(spaces))

    def ingest(self, files: Mapping[str, Sequence[str]]) -> None:
        batch = self._store.batch()
        for space, paths in files.items():
            for path in paths:
                for key, value in self._engine.files.pop(path):
                    batch.put(space, key, value)
        self._store.write_batch(batch)
        self._store.sync()

    def size_bytes(self) -> int:
        spaces = self._store.open_disk().spaces.values()
        return sum(len(key) + len(value) for space in spaces for key, value in space.values.items())

    def spans(self) -> list[FileSpan]:
        return []

    @property
    def is_clean(self) -> bool:
        return True


class MemorySortedFile:
    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs

    def put_pair(self, key: bytes, value: bytes) -> None:
        if self._pairs and self._pairs[-1][0] >= key:
            raise ValueError("keys must rise strictly")
        self._pairs.append((key, value))

    def finish(self) -> None:
        pass


class MemoryEngine:
    """Holds the data of its stores, which lasts as long as the engine object."""

    def __init__(self) -> None:
        self.disks: dict[str, _Disk] = {}
        self.files: dict[str, list[tuple[bytes, bytes]]] = {}

    def open_store(
        self,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions] | None = None,
        ownership: Ownership | None = None,
    ) -> MemoryStore:
        disk = self.disks.setdefault(path, _Disk())
        if disk.open:
            raise HostError(f"the store {path} is open already")
        disk.take(spaces)
        return MemoryStore(self, path, disk, options or {})

    def open_reading(self, path: str) -> MemoryStore:
        if path not in self.disks:
            raise HostError(f"{path} holds no store")
        return MemoryStore(self, path, self.disks[path], {}, reads_only=True)

    def has_unreplayed_writes(self, store: Store, ownership: Ownership) -> bool:
        return False

    def repair_store(self, path: str) -> None:
        """Do nothing: a store in memory cannot lose files."""

    def sorted_file(self, path: str) -> MemorySortedFile:
        return MemorySortedFile(self.files.setdefault(path, []))

    def destroy(self, path: str) -> None:
        self.disks.pop(path, None)

    def make_folders(self, paths: Sequence[str]) -> None:
        """Do nothing: stores in memory have no folders."""

    def has_folder(self, path: str) -> bool:
        return True

    def is_untouched(self, path: str) -> bool:
        return path not in self.disks

    def is_emptied(self, path: str) -> bool:
        return False

    def exists(self, path: str) -> bool:
        return path in self.disks

    def crash(self, path: str, *, keep: int = 0) -> None:
        """Simulate a power cut: unsynced batches are lost, except the ``keep`` oldest."""
        disk = self.disks[path]
        spaces = dict(disk.synced)
        for batch in disk.unsynced[:keep]:
            batch.apply(spaces)
        self.disks[path] = _Disk(spaces=spaces, synced=dict(spaces))
