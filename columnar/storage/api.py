"""The storage interface: an ordered store of bytes per region.

A ``Store`` has named key spaces ("spaces"); each maps bytes to bytes in plain byte order.

Promises, each attacked by tests/contracts/test_storage_contract.py over every implementation:
    S1. ``write`` applies a batch wholly or not at all, over all spaces, in the order of its
        operations, and every later read sees it.
    S2. Batches written before a ``sync`` that returned survive any crash; after a crash the
        store contains a prefix of the batches in the order in which they were written.
    S3. An iterator sees the store as it was when the iterator was made, whatever is written meanwhile;
        iterators made with no write between them see one and the same state.
    S4. ``checkpoint`` makes a copy, at another path, of the state at the time of the call.
    S5. A folder is open in one store at a time; stores that only read do not count.
    S6. The options of a space define how its bytes are stored, never their content: every read
        returns the same with any options.
    S7. ``ingest`` takes sorted files in as if their pairs had been written after all earlier
        batches; space by space, so a crash between two spaces leaves the first ones in.

Threads: all methods but ``sync``, ``flush``, ``compact`` and ``compact_span`` belong to the loop's thread
and keep the interpreter lock; those four may run in any thread and release it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from columnar.errors import HostError, RetryLater
from columnar.limits import STEP_BYTES, STEP_CELLS
from columnar.storage.capture import Capture
from columnar.storage.ownership import Ownership


class StoreBusy(RetryLater):
    """The engine would have to stall: retry the write later; it had no effect."""

    hbase_class = "RegionTooBusyException"

    def __init__(self, text: str, store: str = "") -> None:
        """``store``: the folder of the busy store; writers that wait for the same store form a queue."""
        super().__init__(text)
        self.store = store


class StoreClosed(HostError):
    """The store was closed meanwhile."""


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """How a space is stored.  A hint to the engine (S6); an engine without files may ignore it."""

    compression: Literal["none", "snappy", "lz4", "zstd"] = "lz4"
    bloom: bool = True  # whether a get of an absent key can be answered without reading a block
    block_bytes: int | None = None  # read from disk and kept in memory at a time; None: the engine's own choice
    cache: Literal["shared", "reserved", "none"] = "shared"  # reserved: a cache that only such spaces share


DEFAULT_OPTIONS: Final = SpaceOptions()
PAIR_COST: Final = STEP_BYTES // STEP_CELLS  # of a pair without a value, in bytes of values that cost as much to read


class Batch(Protocol):
    """Operations that ``Store.write`` applies as one; order counts."""

    def put(self, space: str, key: bytes, value: bytes) -> None: ...

    def delete(self, space: str, key: bytes) -> None: ...

    def delete_range(self, space: str, start: bytes, stop: bytes) -> None:
        """Delete the half-open range.  Makes later reads of that range expensive: meant for many keys."""

    def size_bytes(self) -> int: ...


class FileSpan(NamedTuple):
    """A file of a store: its keys are between ``first`` and ``last``, inclusive; they may be deletes."""

    first: bytes
    last: bytes
    size_bytes: int


class Store(Protocol):
    @property
    def spaces(self) -> frozenset[str]: ...

    def batch(self, rows: int = 1) -> Batch:
        """Return an empty batch for roughly so many rows."""

    def get(self, space: str, key: bytes) -> bytes | None: ...

    def multi_get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def scan(self, space: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield pairs ascending over ``start <= key < stop``; None: to the end.  S3."""

    def range_within(self, space: str, start: bytes, stop: bytes, cost: int) -> list[tuple[bytes, bytes]] | None:
        """Return the pairs of ``scan`` as a list: for few pairs, at two thirds of the cost.

        None above ``cost``: the sum over the pairs of PAIR_COST and the value's bytes.
        """

    def scan_reverse(self, space: str, start: bytes, below: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield pairs descending over ``start <= key < below``; None: from the end.  S3."""

    def write_batch(self, batch: Batch) -> None:
        """Write the batch (S1), unsynced.  StoreBusy when the engine would stall; HostError when the disk refuses."""

    def gather(self, batch: Batch) -> None:
        """Buffer the batch: the engine may get it later, together with further batches in one write.

        Reads see it at once.  A ``sync`` covers it only after ``settle``: the caller ensures
        that ``settle`` follows before the ``sync``.
        """

    def settle(self) -> None:
        """Write the buffered batches to the engine.  StoreBusy: they are kept, retry; HostError: they are lost."""

    def sync(self) -> None:
        """Sync the store (S2).  Blocks.  After an error the store takes no more writes: it must be reopened."""

    def own(self, region: str, epoch: int) -> None:
        """Label writes from now on with this region (encoded) and its owner's epoch, for the log of the server."""

    def begin_capture(self, era: bytes, stamp: Callable[[], int]) -> Capture | None:
        """Return the capture of later writes for the log of the server; None: the store has no part in that log.

        Call after ``settle``; a ``sync`` of the store follows.  StoreBusy: not begun, retry; HostError.
        """

    def add_space(self, name: str, options: SpaceOptions = DEFAULT_OPTIONS) -> None:
        """Add an empty space, unless it is there already.  StoreBusy: one of this name is still being dropped."""

    def drop_space(self, name: str) -> None:
        """Drop the space.  Its bytes are freed at once, or at the next opening if a thread works on it."""

    def options_of(self, name: str) -> SpaceOptions:
        """Return the options that the space was opened or made with, or that were set since."""

    def set_options(self, name: str, options: SpaceOptions) -> bool:
        """Set the options.  True: they apply to all later writes; False: some of them only from the next opening on.

        Compaction rewrites present files by them (``compact(everything=True)``: all files).
        """

    @property
    def files(self) -> StoreFiles: ...

    def close(self) -> None: ...


class StoreFiles(Protocol):
    """The files of an open store: how memory becomes files, how files are merged, copied and taken in."""

    def flush(self) -> None:
        """Write the memtables to files.  StoreClosed: the store was closed meanwhile."""

    def compact(self, *, everything: bool = False) -> None:
        """Merge files; ``everything``: also files without superfluous pairs.  StoreClosed as ``flush``."""

    def compact_span(self, space: str, start: bytes, stop: bytes | None) -> None:
        """Reclaim the space of deleted pairs in ``start <= key < stop``; files outside the range are left alone."""

    def checkpoint(self, path: str) -> None: ...

    def ingest(self, files: Mapping[str, Sequence[str]]) -> None:
        """Ingest finished files (S7), by space; files of one space must not overlap.  They are moved, not copied.

        StoreBusy: not begun, retry.
        """

    def size_bytes(self) -> int:
        """Return the approximate bytes on disk and in memory; cheap."""

    def spans(self) -> list[FileSpan]:
        """Return the files of all spaces; cheap.  Pairs that are only in memory are in none."""

    @property
    def is_clean(self) -> bool:
        """Whether every write is in files, so that closing the store writes nothing; 10 us."""


class SortedFile(Protocol):
    """A file of sorted pairs for ``Store.ingest``; belongs to one thread, any one."""

    def put_pair(self, key: bytes, value: bytes) -> None:
        """Add a pair.  ValueError unless keys rise strictly."""

    def finish(self) -> None:
        """Sync and close the file, which must have at least one pair."""


class Engine(Protocol):
    """Opens stores; what stores share (cache, write buffers) belongs to it."""

    def open_store(
        self,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions] | None = None,
        ownership: Ownership | None = None,
    ) -> Store:
        """Create or open; missing spaces are made.  HostError: in use, unreadable, no descriptors.

        A space that ``options`` does not name has DEFAULT_OPTIONS.  A server of the region passes ``ownership``:
        every write that earlier owners acknowledged is in the store, and on disk, when this returns.  Without
        ``ownership`` (copies) the store is opened as it is, and has no part in the server's log.
        """

    def open_reading(self, path: str) -> Store:
        """Open the folder for reading only: no file is touched, every write is a HostError."""

    def has_unreplayed_writes(self, store: Store, ownership: Ownership) -> bool:
        """Tell whether acknowledged writes of the region are missing in ``store``, which is open for reading."""

    def repair_store(self, path: str) -> None:
        """Make the folder's undamaged files readable again if the list of files is damaged or a file is missing.

        Pairs that were only in missing files are lost, so older values may become visible.  For copies.
        """

    def sorted_file(self, path: str) -> SortedFile: ...

    def make_folders(self, paths: Sequence[str]) -> None:
        """Make the folders of stores, of one parent folder; they survive a power cut.  HostError.

        ``open`` makes a missing folder.  A caller that knows that the folder must exist checks ``has_folder`` first: a
        missing folder means that every write to the store is lost.
        """

    def has_folder(self, path: str) -> bool: ...

    def is_untouched(self, path: str) -> bool:
        """Tell whether the folder is there and empty: no store was ever opened in it."""

    def is_emptied(self, path: str) -> bool:
        """Tell whether the folder is empty although a store was opened in it: ``open`` raises DamagedData."""

    def destroy(self, path: str) -> None:
        """Remove store and folder, if there are any."""

    def exists(self, path: str) -> bool:
        """Tell whether there is a store in the folder."""
