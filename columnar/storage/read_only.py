"""A store that can only be read, because its disk is full or mounted read-only, or no descriptors are left.

RocksDB's read-only opening reads the log into memory and writes nothing, so every acknowledged write is found.  Other
writes of an opening (counts, removal of leftovers) are left for the next opening that can write.

rocksdict writes a small file at every opening.  So a folder with links to the store's files is opened instead, in a
file system in memory if there is one.  A killed process leaves that folder behind, which has only links.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from columnar.errors import ColumnarError
from columnar.storage.api import DEFAULT_OPTIONS, Batch, Engine, FileSpan, SpaceOptions, Store, StoreFiles
from columnar.storage.capture import Capture
from columnar.storage.durable_files import sync_logs
from columnar.storage.file_copies import files_of, remove_tree

ENGINES_OWN: Final = "rocksdict-config.json"
IN_MEMORY: Final = "/dev/shm"  # noqa: S108 - mkdtemp makes our own folder in it, or in the system's temporary folder


def open_read_only(engine: Engine, path: str, cause: ColumnarError) -> ReadOnlyStore:
    """Open the store at ``path``, which cannot be opened for writing because of ``cause``.

    Raises ColumnarError, OSError.
    """
    from tempfile import mkdtemp  # rarely needed

    sync_logs(path)  # otherwise readers would see writes that a power cut can lose
    links = mkdtemp(prefix="columnar-reading-", dir=IN_MEMORY if os.path.isdir(IN_MEMORY) else None)
    try:
        for name in files_of(path, with_bound=True):
            os.symlink(os.path.abspath(os.path.join(path, name)), os.path.join(links, name))
        own = os.path.join(links, ENGINES_OWN)
        if os.path.lexists(own):
            os.unlink(own)
        return ReadOnlyStore(engine.open_reading(links), cause, links)
    except BaseException:
        remove_tree(links, missing_ok=True)
        raise


class ReadOnlyStore:
    """A wrapper of ``store``, which is open for reading.  After ``refuse_writes`` every write raises ``cause``."""

    def __init__(self, store: Store, cause: ColumnarError, links: str) -> None:
        self._store = store
        self._links = links
        self._cause = cause
        self.files = ReadOnlyFiles(store.files, self._refuse)
        self._is_opening = True

    def refuse_writes(self) -> None:
        """Raise ``cause`` for every write from now on, because the opening of the region has ended."""
        self._is_opening = False

    @property
    def spaces(self) -> frozenset[str]:
        return self._store.spaces

    def batch(self, rows: int = 1) -> Batch:
        return self._store.batch()

    def get(self, space: str, key: bytes) -> bytes | None:
        return self._store.get(space, key)

    def multi_get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._store.multi_get(space, keys)

    def scan(self, space: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        return self._store.scan(space, start, stop)

    def range_within(self, space: str, start: bytes, stop: bytes, cost: int) -> list[tuple[bytes, bytes]] | None:
        return self._store.range_within(space, start, stop, cost)

    def scan_reverse(self, space: str, start: bytes, below: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        return self._store.scan_reverse(space, start, below)

    def write_batch(self, batch: Batch) -> None:
        self._refuse()

    def gather(self, batch: Batch) -> None:
        self._refuse()

    def settle(self) -> None:
        pass  # there are no buffered batches

    def sync(self) -> None:
        pass  # the store has only what is on disk

    def own(self, region: str, epoch: int) -> None:
        pass

    def begin_capture(self, era: bytes, stamp: Callable[[], int]) -> Capture | None:
        return None  # the store takes no writes

    def add_space(self, name: str, options: SpaceOptions = DEFAULT_OPTIONS) -> None:
        self._refuse()

    def drop_space(self, name: str) -> None:
        self._refuse()

    def options_of(self, name: str) -> SpaceOptions:
        return self._store.options_of(name)

    def set_options(self, name: str, options: SpaceOptions) -> bool:
        return True

    def close(self) -> None:
        self._store.close()
        remove_tree(self._links, missing_ok=True)

    def _refuse(self) -> None:
        if not self._is_opening:
            raise self._cause


class ReadOnlyFiles:
    """``StoreFiles`` of a ``ReadOnlyStore``."""

    def __init__(self, files: StoreFiles, refuse: Callable[[], None]) -> None:
        self._files = files
        self._refuse = refuse

    def flush(self) -> None:
        self._refuse()

    def compact(self, *, everything: bool = False) -> None:
        self._refuse()

    def compact_span(self, space: str, start: bytes, stop: bytes | None) -> None:
        self._refuse()

    def checkpoint(self, path: str) -> None:
        self._refuse()

    def ingest(self, files: Mapping[str, Sequence[str]]) -> None:
        self._refuse()

    def size_bytes(self) -> int:
        return self._files.size_bytes()

    def spans(self) -> list[FileSpan]:
        return self._files.spans()

    @property
    def is_clean(self) -> bool:
        return True
