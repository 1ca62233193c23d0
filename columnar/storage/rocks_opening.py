"""The steps around RocksDB's opening of a store: verifies the folder before (``rocks_verified``), keeps its bound
after.

``SpaceOptions`` are converted to RocksDB's options.  Compression, block size and bloom filter can be changed while a
column family is open (``changed_options``, RocksDB's SetOptions): files written afterwards have them.  The cache is an
object that all stores share; RocksDB takes it only at the opening.

A store accepts no write before ``CURRENT``, the MANIFEST that it names, and both directory entries are on disk.  So a
folder in which one of the two is missing contains either

    * the remains, without data, of a store that was being made at a power cut.  RocksDB would not create a store beside
      them, so they are removed;
    * or a store that lost the file.  RocksDB would create a new store, and remove the table files unknown to it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import rocksdict

from columnar.errors import DamagedData
from columnar.limits import MIB
from columnar.storage.api import SpaceOptions
from columnar.storage.file_copies import LOG_FILE, TABLE_FILE
from columnar.storage.rocks_errors import refused, repair_advice
from columnar.storage.rocks_verified import Verified, verified
from columnar.storage.synced_bound import BoundFile, read_bound

WRITE_BUFFER_BYTES: Final = 16 * MIB  # of one space
# A memtable allocates memory in blocks of this size, which count as write buffers.  With RocksDB's default of 1 MiB
# some 60 written regions would exhaust the write buffers, and be flushed nearly empty again and again.
ARENA_BLOCK_BYTES: Final = 64 * 1024
# So many flushed files are merged into the first level, which has their total size.  Under a steady load this rewrites
# less than RocksDB's defaults of four files and 256 MiB.
MERGED_FILES: Final = 8
FIRST_LEVEL_BYTES: Final = MERGED_FILES * WRITE_BUFFER_BYTES
BLOCK_BYTES: Final = 16 * 1024
BLOOM_BITS_PER_KEY: Final = 10
# Index and filter of a file are stored in pieces of this size.  As one block the filter of a million keys would be
# larger than a shard of the cache, which would then never keep it, so each get would read the whole filter from disk.
METADATA_BLOCK_BYTES: Final = 4 * 1024
_COMPRESSIONS: Final = {
    "none": "kNoCompression",
    "snappy": "kSnappyCompression",
    "lz4": "kLZ4Compression",
    "zstd": "kZSTD",
}


class Caches(NamedTuple):
    shared: Any
    reserved: Any  # for spaces that reads of other spaces must not evict


def space_options(options: SpaceOptions, caches: Caches) -> Any:
    """Return RocksDB's options of a column family."""
    table = rocksdict.BlockBasedOptions()
    if options.cache == "none":
        table.disable_cache()  # then index and filters stay in memory while the file is open
    else:
        table.set_block_cache(caches.reserved if options.cache == "reserved" else caches.shared)
        table.set_cache_index_and_filter_blocks(True)
        table.set_pin_l0_filter_and_index_blocks_in_cache(True)
        table.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
        table.set_partition_filters(True)
        table.set_metadata_block_size(METADATA_BLOCK_BYTES)
        table.set_pin_top_level_index_and_filter(True)
    table.set_block_size(options.block_bytes or BLOCK_BYTES)
    if options.bloom:
        table.set_bloom_filter(BLOOM_BITS_PER_KEY, False)
    made = rocksdict.Options(raw_mode=True)
    made.set_block_based_table_factory(table)
    made.set_write_buffer_size(WRITE_BUFFER_BYTES)
    made.set_arena_block_size(ARENA_BLOCK_BYTES)
    made.set_level_zero_file_num_compaction_trigger(MERGED_FILES)
    made.set_max_bytes_for_level_base(FIRST_LEVEL_BYTES)
    made.set_compression_type(getattr(rocksdict.DBCompressionType, options.compression)())
    # Files full of tombstones are compacted soon, so that a table used as a queue does not slow its readers.
    made.add_compact_on_deletion_collector_factory(1024, 256, 0.5)
    return made


def changed_options(had: SpaceOptions, wanted: SpaceOptions) -> dict[str, str]:
    """Return the options to set on an open column family; the cache cannot be changed."""
    changes = {}
    if had.compression != wanted.compression:
        changes["compression"] = _COMPRESSIONS[wanted.compression]
    table = []
    if had.block_bytes != wanted.block_bytes:
        table.append(f"block_size={wanted.block_bytes or BLOCK_BYTES}")
    if had.bloom != wanted.bloom:
        table.append(
            f"filter_policy=bloomfilter:{BLOOM_BITS_PER_KEY}:false" if wanted.bloom else "filter_policy=nullptr"
        )
    if table:
        changes["block_based_table_factory"] = "{" + ";".join(table) + "}"
    return changes


_log = logging.getLogger(__name__)

OPTIONS: Final = "OPTIONS-"  # and a number
_NEW: Final = Verified(frozenset(), 0)


def begin_opening(path: str, *, reads_only: bool) -> Verified:
    """Verify the folder before the opening.  Raises DamagedData if synced data is missing; raises HostError."""
    if not os.path.exists(os.path.join(path, "CURRENT")):
        return _NEW
    try:
        found = verified(path)
        if not reads_only:
            _remove_options(path)
        return found
    except OSError as error:
        raise refused(error, f"cannot read the store {path}") from error


def _remove_options(path: str) -> None:
    """Remove the option files of earlier openings.

    Each opening passes all options, so the files are not needed; but rocksdict reads those that it finds, which takes
    a fifth of an opening's time.
    """
    for name in os.listdir(path):
        if name.startswith(OPTIONS):
            os.unlink(os.path.join(path, name))


def end_opening(path: str, database: Any, found: Verified, *, reads_only: bool) -> SyncedBound:
    """Begin and return the store's bound after the opening.  On DamagedData or HostError the database is closed."""
    bound = SyncedBound(path)
    try:
        last_sequence = database.latest_sequence_number()
        if last_sequence < found.sequence:
            text = f"{path}: RocksDB read operations up to {last_sequence}, and {found.sequence} were synced"
            raise DamagedData(f"{text}; {repair_advice(path)}")
        if not reads_only:
            bound.begin_bound(last_sequence)
    except BaseException:
        bound.give_up()
        database.close()
        raise
    return bound


class SyncedBound:
    """The store's bound in ``SYNCED``.  If the disk refuses a change, the bound stays as it is: weaker, but correct."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BoundFile | None = None
        self._is_paused = False  # set by the loop
        self._refusal = ""  # the last one that was logged

    def begin_bound(self, sequence: int) -> None:
        """Begin the bound at ``sequence``, up to which the opening synced everything.

        Raises HostError if the disk has no room for the file.
        """
        try:
            self._file = BoundFile.opened(self._path)
            self._file.begin_bound(sequence)
        except OSError as error:
            raise refused(error, f"cannot write {self._path}/SYNCED") from error
        self.raise_manifest()

    @contextmanager
    def pause_bound(self) -> Iterator[None]:
        """Keep the bound unchanged within the block.

        RocksDB numbers the operations of an ingestion before the MANIFEST names its tables.
        """
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def raise_to(self, sequence: int) -> None:
        if self._file is not None and not self._is_paused:
            try:
                self._file.raise_to(sequence)
            except OSError as error:
                self._note_refusal(error)

    def drops(self, sequence: int) -> None:
        """Note, before a family is dropped, that operations up to ``sequence`` may disappear with it.

        Raises HostError if this was not noted; then the family must not be dropped.
        """
        if self._file is None:
            return
        try:
            self._file.drops(sequence)
        except OSError as error:
            raise refused(error, f"cannot write {self._path}/SYNCED") from error

    def raise_manifest(self, *, sync: bool = True) -> None:
        if self._file is None:
            return
        try:
            self._file.raise_manifest(sync=sync)
        except (OSError, ValueError) as error:
            self._note_refusal(error)

    def _note_refusal(self, error: Exception) -> None:
        if self._refusal != str(error):
            self._refusal = str(error)
            _log.warning("%s: how much of it is synced is not noted: %s", self._path, error)

    def close(self) -> None:
        """Raise and release the bound of a closed database, whose MANIFEST has no unsynced writes."""
        self.raise_manifest(sync=False)
        self.give_up()

    def give_up(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


CURRENT: Final = "CURRENT"


def remove_begun(path: str) -> None:
    """Empty the folder if it has no ``CURRENT`` or no MANIFEST.

    Raises DamagedData if the folder has data; raises OSError.
    """
    for entry in begun(path):
        os.unlink(entry.path)


def begun(path: str) -> list[os.DirEntry[str]]:
    """Return the files, which have no data, of a store without ``CURRENT`` or MANIFEST; none if it has both.

    Raises DamagedData if the files have data; raises OSError.
    """
    missing = _missing(path)
    if missing is None:
        return []
    with os.scandir(path) as found:
        files = [entry for entry in found if entry.is_file()]
    bound = read_bound(path)
    if bound is not None and bound.certain:
        raise DamagedData(f"{path}: the file {missing} is missing, and something was written; {repair_advice(path)}")
    for entry in files:
        if entry.name.endswith(TABLE_FILE) or (entry.name.endswith(LOG_FILE) and entry.stat().st_size):
            raise DamagedData(f"{path}: the file {missing} is missing, and others are there; {repair_advice(path)}")
    return files


def has_store(path: str) -> bool:
    """Return whether the folder has a store, or any data.  Raises OSError.

    A folder without one is what an opening left that was cut off, for example of a node that was frozen in it while
    others took its regions.
    """
    if _missing(path) is None:
        return True
    try:
        begun(path)
    except DamagedData:
        return True
    with os.scandir(path) as found:
        return any(entry.is_dir() for entry in found)


def _missing(path: str) -> str | None:
    try:
        with open(os.path.join(path, CURRENT), encoding="ascii", errors="replace") as file:
            name = file.read(100).strip()
    except FileNotFoundError:
        return CURRENT
    return None if name and os.path.exists(os.path.join(path, name)) else name or CURRENT
