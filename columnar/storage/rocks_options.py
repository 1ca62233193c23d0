"""``SpaceOptions`` in RocksDB's own words: at the opening of a column family, and while it is open.

Compression, block size and bloom filter can be changed while a column family is open
(``changed_options``, what RocksDB calls SetOptions): files written from then on have them.  The cache
is an object that is shared by all stores; RocksDB takes it at the opening only.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import rocksdict

from columnar.limits import MIB
from columnar.storage.api import SpaceOptions

WRITE_BUFFER_BYTES: Final = 16 * MIB  # of one space
# A memtable takes memory in such pieces, and they count as write buffers: of the engine's own 1 MiB some 60 regions
# that are written to would fill these, and be flushed nearly empty again and again.
ARENA_BLOCK_BYTES: Final = 64 * 1024
# Files of memtables that are there before they are merged into the first level, which is as large as they are:
# less is written again and again under a steady load than with the engine's own four files and 256 MiB.
MERGED_FILES: Final = 8
FIRST_LEVEL_BYTES: Final = MERGED_FILES * WRITE_BUFFER_BYTES
BLOCK_BYTES: Final = 16 * 1024
BLOOM_BITS_PER_KEY: Final = 10
# Index and filter of a file are kept in pieces of this size.  As one block the filter of a million keys is larger than
# a shard of the cache, which then never keeps it: each get would read all of it from the file.
METADATA_BLOCK_BYTES: Final = 4 * 1024
_COMPRESSIONS: Final = {
    "none": "kNoCompression",
    "snappy": "kSnappyCompression",
    "lz4": "kLZ4Compression",
    "zstd": "kZSTD",
}


class Caches(NamedTuple):
    shared: Any
    reserved: Any  # of spaces that reads of other spaces must not evict


def space_options(options: SpaceOptions, caches: Caches) -> Any:
    """The options of one column family."""
    table = rocksdict.BlockBasedOptions()
    if options.cache == "none":
        table.disable_cache()  # index and filters then stay in memory with their files
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
    # Files full of tombstones are compacted soon: a queue-like table must not slow its readers.
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
