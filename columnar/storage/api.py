"""The storage interface: one ordered store of bytes per region.

A ``Store`` holds named key spaces ("spaces"); each maps bytes to bytes in plain byte order.

Promises, each attacked by tests/contracts/test_storage_contract.py over every implementation:
    S1. ``write`` applies a batch wholly or not at all, over all spaces, in the order of its
        operations, and every later read sees it.
    S2. What was written before a ``sync`` that returned survives any crash; after a crash the
        store holds a prefix of the batches in the order in which they were written.
    S3. An iterator sees the store as it was when it was made, whatever is written meanwhile;
        iterators made with no write between them see one and the same state.
    S4. ``checkpoint`` makes a copy, at another path, of the state at the time of the call.
    S5. A folder is open in one store at a time; stores that only read do not count.
    S6. The options of a space say how its bytes are kept, never what they are: with any of them
        every read answers the same.
    S7. ``ingest`` takes sorted files in as if their pairs had been written after all that was written
        before; space by space, so a crash between two spaces leaves the first ones in.

Threads: all methods but ``sync``, ``flush``, ``compact`` and ``compact_span`` belong to the loop's thread
and hold the interpreter lock; those four may run in any thread and release it.
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
    """The engine would have to stall: write again later; nothing was written."""

    hbase_class = "RegionTooBusyException"
    store = ""  # the folder of the one whose engine it is; those who wait for the same take turns


class StoreClosed(HostError):
    """The store was closed meanwhile."""


@dataclass(frozen=True, slots=True)
class SpaceOptions:
    """How one space is kept.  A hint to the engine (S6); one without files may do nothing with it."""

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
        """Half open.  Dear to later reads of that range: meant for many keys."""

    def size_bytes(self) -> int: ...


class FileSpan(NamedTuple):
    """A file of a store: its keys stand between ``first`` and ``last``, both there or deleted."""

    first: bytes
    last: bytes
    size_bytes: int


class Store(Protocol):
    @property
    def spaces(self) -> frozenset[str]: ...

    def batch(self, rows: int = 1) -> Batch:
        """Empty; for so many rows, roughly."""

    def get(self, space: str, key: bytes) -> bytes | None: ...

    def multi_get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]: ...

    def scan(self, space: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Ascending over ``start <= key < stop``; None: to the end.  Lazy; S3."""

    def range(self, space: str, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        """As ``scan``, at once: for few pairs, which then cost two thirds of it."""

    def range_within(self, space: str, start: bytes, stop: bytes, cost: int) -> list[tuple[bytes, bytes]] | None:
        """As ``range``; None: it costs more than ``cost``, of which each pair has PAIR_COST and its value's bytes."""

    def scan_reverse(self, space: str, start: bytes, below: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """Descending over ``start <= key < below``; None: from the end.  Lazy; S3."""

    def write(self, batch: Batch) -> None:
        """S1; unsynced.  StoreBusy when the engine would stall; HostError when the disk refuses."""

    def gather(self, batch: Batch) -> None:
        """As ``write``, but the engine may get the batch later, with others, in one write of its own.

        Reads see it at once.  It is on its way to the disk only after ``settle``: the caller sees
        that one follows, before the ``sync`` that he wants.
        """

    def settle(self) -> None:
        """Hand what was gathered to the engine.  StoreBusy: it is kept, try again; HostError: it is lost."""

    def sync(self) -> None:
        """S2.  Blocks.  After an error the store takes no more writes: it must be opened anew."""

    def own(self, region: str, epoch: int) -> None:
        """Writes from now on are of this region, encoded, at its owner's epoch: for the log of the server."""

    def begin_capture(self, era: bytes, stamp: Callable[[], int]) -> Capture | None:
        """What is written from now on, for the log of the server; None: it has no part in it.

        After ``settle``, and a ``sync`` of the store follows.  StoreBusy: nothing has begun, try again; HostError.
        """

    def add_space(self, name: str, options: SpaceOptions = DEFAULT_OPTIONS) -> None:
        """An empty space; nothing happens where it is there.  StoreBusy: one of this name is still being dropped."""

    def drop_space(self, name: str) -> None:
        """From now on it is not there; its bytes go at once, or at the next opening where a thread works on it."""

    def options_of(self, name: str) -> SpaceOptions:
        """What the space was opened or made with, or was told since."""

    def set_options(self, name: str, options: SpaceOptions) -> bool:
        """True: they hold for all that is written from now on; False: some of them from the next opening.

        What stands in files is rewritten by compaction (``compact(everything=True)``: all of it).
        """

    def flush(self) -> None:
        """What is in memory, to files.  StoreClosed: the store was closed meanwhile."""

    def compact(self, *, everything: bool = False) -> None:
        """Merge files; ``everything``: also those that hold nothing superfluous.  StoreClosed as ``flush``."""

    def compact_span(self, space: str, start: bytes, stop: bytes | None) -> None:
        """Give back what was deleted in ``start <= key < stop``; files that hold none of it are left alone."""

    def checkpoint(self, path: str) -> None: ...

    def ingest(self, files: Mapping[str, Sequence[str]]) -> None:
        """S7.  Finished files by space; those of one space must not overlap.  They are moved, not copied.

        StoreBusy: nothing has begun, try again.
        """

    def size_bytes(self) -> int:
        """Bytes on disk and in memory, roughly; cheap."""

    def files(self) -> list[FileSpan]:
        """Of all spaces together; cheap.  What is in memory only is in none."""

    @property
    def is_clean(self) -> bool:
        """Whether all that was written stands in files, so that closing it writes nothing; 10 us."""

    def close(self) -> None: ...


class SortedFile(Protocol):
    """A file of sorted pairs on its way to ``Store.ingest``; belongs to one thread, any one."""

    def put(self, key: bytes, value: bytes) -> None:
        """Keys rise strictly: ValueError."""

    def finish(self) -> None:
        """The file is on disk; at least one pair."""


class Engine(Protocol):
    """Opens stores; what stores share (cache, write buffers) belongs to it."""

    def open(
        self,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions] | None = None,
        ownership: Ownership | None = None,
    ) -> Store:
        """Create or open; missing spaces are made.  HostError: in use, unreadable, no descriptors.

        A space that ``options`` does not name has DEFAULT_OPTIONS.  Whoever serves the region gives ``ownership``:
        what earlier owners acknowledged is in the store, and on disk, when this returns.  A store that nobody owns, as
        a copy, has what its folder has, and no part in the server's log.
        """

    def open_reading(self, path: str) -> Store:
        """What stands in the folder, changed by nobody: no file is touched, every write is a HostError."""

    def has_unreplayed_writes(self, store: Store, ownership: Ownership) -> bool:
        """Whether acknowledged writes of the region are missing in ``store``, which only reads."""

    def repair_store(self, path: str) -> None:
        """Make what the folder's whole files hold readable again where the list of them is damaged or one is missing.

        What was only in the missing files is lost: older values of theirs may show.  For copies.
        """

    def sorted_file(self, path: str) -> SortedFile: ...

    def make_folders(self, paths: Sequence[str]) -> None:
        """Where stores will be opened, side by side; they are there after a power cut too.  HostError.

        ``open`` makes a missing folder.  Who knows that there must be one asks ``has_folder`` first: with its folder
        everything is lost that was written to a store.
        """

    def has_folder(self, path: str) -> bool: ...

    def is_untouched(self, path: str) -> bool:
        """The folder is there, and empty: no store was ever opened in it."""

    def is_emptied(self, path: str) -> bool:
        """The folder is there, and empty, though a store was opened in it: ``open`` is a DamagedData."""

    def destroy(self, path: str) -> None:
        """Store and folder, if there are any."""

    def exists(self, path: str) -> bool:
        """Whether the folder holds a store."""
