"""The storage interface: an ordered store of bytes per region.

A ``Store`` has named key spaces ("spaces"); each maps bytes to bytes in plain byte order.
Promises, which tests/contracts/test_storage_contract.py tests for every implementation:
    S1. ``write_batch`` applies a batch wholly or not at all, over all spaces, in the order of its
        operations, and every later read sees it.
    S2. Batches written before a ``sync`` that returned survive any crash; after a crash the
        store contains a prefix of the batches in the order in which they were written.
    S3. An iterator sees the store as it was when the iterator was made, whatever is written meanwhile;
        iterators made with no write between them see the same state.
    S4. ``checkpoint`` makes a copy, at another path, of the state at the time of the call.
    S5. A folder is open in one store at a time; stores that only read do not count.
    S6. The options of a space define how its bytes are stored, never their content: every read
        returns the same with any options.
    S7. ``ingest`` adds sorted files as if their pairs had been written after all earlier batches.  Files are
        added space by space, so after a crash between two spaces the first spaces have their files.

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
    """The engine would have to stall.  The write had no effect; retry it later."""

    hbase_class = "RegionTooBusyException"

    def __init__(self, text: str, store: str = "") -> None:
        """Take the message and the folder of the busy store; writers that wait for the same store form a queue."""
        super().__init__(text)
        self.store = store


class StoreClosed(HostError):
    """The store was closed meanwhile."""


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """The options by which a space is stored: hints to the engine (S6), which an engine without files may ignore."""

    compression: Literal["none", "snappy", "lz4", "zstd"] = "lz4"
    bloom: bool = True  # whether a get of an absent key can be answered without reading a block
    block_bytes: int | None = None  # unit of reading and caching; None: the engine's choice
    cache: Literal["shared", "reserved", "none"] = "shared"  # reserved: a cache for such spaces only


DEFAULT_OPTIONS: Final = SpaceOptions()
PAIR_COST: Final = STEP_BYTES // STEP_CELLS  # reading a pair costs as much as so many bytes of its value


class Batch(Protocol):
    """Operations that ``Store.write_batch`` applies as one, in their order."""

    def put(self, space: str, key: bytes, value: bytes) -> None: ...

    def delete(self, space: str, key: bytes) -> None: ...

    def delete_range(self, space: str, start: bytes, stop: bytes) -> None:
        """Delete the half-open range.  Use this for many keys only: later reads of the range become expensive."""

    def size_bytes(self) -> int: ...


class FileSpan(NamedTuple):
    """A file of a store.  Its keys are between ``first`` and ``last``, inclusive; some may be deletions."""

    first: bytes
    last: bytes
    size_bytes: int


class Store(Protocol):
    @property
    def spaces(self) -> frozenset[str]: ...

    def batch(self, rows: int = 1) -> Batch:
        """Return an empty batch for roughly ``rows`` rows."""

    def get(self, space: str, key: bytes) -> bytes | None: ...

    def multi_get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def scan(self, space: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with ``start <= key < stop``, ascending; a ``stop`` of None is the end.  S3."""

    def range_within(self, space: str, start: bytes, stop: bytes, cost: int) -> list[tuple[bytes, bytes]] | None:
        """Return the pairs of ``scan`` as a list, for few pairs at two thirds of the cost of ``scan``.

        Returns None if reading the pairs costs more than ``cost``.  A pair costs PAIR_COST and the bytes of its value.
        """

    def scan_reverse(self, space: str, start: bytes, below: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs with ``start <= key < below``, descending; a ``below`` of None is the end.  S3."""

    def write_batch(self, batch: Batch) -> None:
        """Write the batch (S1) without a sync.

        Raises StoreBusy if the engine would stall, HostError if the disk refuses the write.
        """

    def gather(self, batch: Batch) -> None:
        """Buffer the batch: the store may write it to the engine later, together with further batches.

        Reads see the batch at once.  A ``sync`` covers it only after ``settle``, so the caller must call ``settle``
        before the ``sync``.
        """

    def settle(self) -> None:
        """Write the buffered batches to the engine.

        Raises StoreBusy and keeps the batches, for a retry; raises HostError if they are lost.
        """

    def sync(self) -> None:
        """Sync the store (S2).  Blocks.  After an error the store refuses all writes and must be reopened."""

    def own(self, region: str, epoch: int) -> None:
        """Label writes from now on with this region (encoded) and its owner's epoch, for the log of the server."""

    def begin_capture(self, era: bytes, stamp: Callable[[], int]) -> Capture | None:
        """Return the capture of later writes for the log of the server, or None if the store has no part in that log.

        Call this after ``settle``, and ``sync`` the store afterwards.  Raises StoreBusy if the capture did not begin
        and the call should be retried; raises HostError.
        """

    def add_space(self, name: str, options: SpaceOptions = DEFAULT_OPTIONS) -> None:
        """Add an empty space, unless it exists.  Raises StoreBusy while a space of this name is being dropped."""

    def drop_space(self, name: str) -> None:
        """Drop the space.  Its bytes are freed at once, or at the next opening if a thread works on the space."""

    def options_of(self, name: str) -> SpaceOptions:
        """Return the present options of the space: those last set, or those of its opening or creation."""

    def set_options(self, name: str, options: SpaceOptions) -> bool:
        """Set the options of a space.

        Returns True if the options apply to all later writes, False if some apply only from the next opening on.
        Compaction rewrites existing files with the new options; ``compact(everything=True)`` rewrites all files.
        """

    @property
    def files(self) -> StoreFiles: ...

    def close(self) -> None: ...


class StoreFiles(Protocol):
    """The files of an open store: writes memory to files, compacts, copies and ingests files."""

    def flush(self) -> None:
        """Write the memtables to files.  Raises StoreClosed if the store was closed meanwhile."""

    def compact(self, *, everything: bool = False) -> None:
        """Compact files; with ``everything`` also files without obsolete pairs.  Raises StoreClosed as ``flush``."""

    def compact_span(self, space: str, start: bytes, stop: bytes | None) -> None:
        """Reclaim the bytes of deleted pairs in ``start <= key < stop``; files outside the range are not rewritten."""

    def checkpoint(self, path: str) -> None: ...

    def ingest(self, files: Mapping[str, Sequence[str]]) -> None:
        """Ingest finished files (S7), by space; files of one space must not overlap.  Files are moved, not copied.

        Raises StoreBusy if the ingestion did not begin and should be retried.
        """

    def size_bytes(self) -> int:
        """Return the approximate size on disk and in memory; cheap."""

    def spans(self) -> list[FileSpan]:
        """Return the files of all spaces; cheap.  No file has the pairs that are only in memory."""

    @property
    def is_clean(self) -> bool:
        """Whether every write is in files, so that closing the store writes nothing.  Takes 10 us."""


class SortedFile(Protocol):
    """A file of sorted pairs for ``StoreFiles.ingest``.  A file belongs to a single thread, which may be any."""

    def put_pair(self, key: bytes, value: bytes) -> None:
        """Add a pair.  Raises ValueError unless the key is above the last one."""

    def finish(self) -> None:
        """Sync and close the file, which must have at least one pair."""


class Engine(Protocol):
    """Opens stores, and owns the cache and the write buffers that they share."""

    def open_store(
        self,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions] | None = None,
        ownership: Ownership | None = None,
    ) -> Store:
        """Create or open a store; missing spaces are made.

        A space that ``options`` does not name has DEFAULT_OPTIONS.  A server of the region passes ``ownership``; then
        every write that earlier owners acknowledged is in the store, and on disk, when the call returns.  Without
        ``ownership`` (copies) the store is opened as it is, and has no part in the server's log.  Raises HostError if
        the folder is in use or unreadable, or if no descriptors are left.
        """

    def open_reading(self, path: str) -> Store:
        """Open the folder for reading only: no file is changed, and every write raises HostError."""

    def has_unreplayed_writes(self, store: Store, ownership: Ownership) -> bool:
        """Tell whether acknowledged writes of the region are missing in ``store``, which is open for reading."""

    def repair_store(self, path: str) -> None:
        """Make the folder's undamaged files readable again if the MANIFEST is damaged or a file is missing.

        Pairs that were only in missing files are lost, so older values may become visible.  Use this on copies only.
        """

    def sorted_file(self, path: str) -> SortedFile: ...

    def make_folders(self, paths: Sequence[str]) -> None:
        """Make the folders of stores, all in the same parent folder; they survive a power cut.  Raises HostError.

        ``open_store`` makes a missing folder.  A caller that knows that the folder must exist checks ``has_folder``
        first: a missing folder means that every write to the store is lost.
        """

    def has_folder(self, path: str) -> bool: ...

    def is_untouched(self, path: str) -> bool:
        """Tell whether the folder exists and is empty because no store was ever opened in it."""

    def is_emptied(self, path: str) -> bool:
        """Tell whether the folder is empty although a store was opened in it; ``open_store`` raises DamagedData."""

    def destroy(self, path: str) -> None:
        """Remove the store and its folder, if they exist."""

    def exists(self, path: str) -> bool:
        """Tell whether there is a store in the folder."""
