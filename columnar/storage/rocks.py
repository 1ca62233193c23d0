"""The storage interface over RocksDB, through ``rocksdict`` in raw mode.

One RocksDB database per store, one RocksDB column family per space.  All stores of an engine
share a block cache and a write-buffer budget, so memory does not grow with the number of
regions (limits: ``CACHE_BYTES``, ``WRITE_BUFFERS_BYTES``).

Known habits of rocksdict 0.3.29, each with what we do about it:
    * every error is a bare ``Exception``: ``rocks_errors`` translates it, by its text, and nobody else;
    * a handle of a column family keeps the database open: ``close`` closes each of them;
    * ``items`` ends at a damaged block as if there were no more: at its end we ask an ``iter``,
      which has a status (2.6 us a scan);
    * an iterator does not keep its ``ReadOptions`` alive, whose memory holds the upper bound: we do
      (else a scan ends wherever the freed bytes happen to say);
    * ``set_iterate_lower_bound`` is silently ignored: ``scan_back`` tests the bound itself;
    * ``write`` holds the interpreter lock: callers keep batches under ``limits.BATCH_BYTES``;
    * a handle cannot be closed while a thread flushes or compacts it ("Already borrowed"): ``close``
      cancels the engine's work and waits for the thread, ``drop_space`` leaves the rest to the next opening.
"""

from __future__ import annotations

import logging
import operator
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import rocksdict

from columnar.errors import ColumnarError, HostError
from columnar.limits import MIB
from columnar.storage.api import DEFAULT_OPTIONS, Batch, FileSpan, SpaceOptions, StoreBusy, StoreClosed
from columnar.storage.file_copies import HALF, HALF_CHECKPOINT, remove_tree
from columnar.storage.folders import make_lasting, sync_entries
from columnar.storage.overlay import overlaid
from columnar.storage.rocks_batch import LARGE_ROWS, LargeBatch, RocksBatch
from columnar.storage.rocks_beginning import remove_begun
from columnar.storage.rocks_errors import refused, translated
from columnar.storage.rocks_options import Caches, changed_options, space_options
from columnar.storage.rocks_sorted_file import RocksSortedFile

_log = logging.getLogger(__name__)

CACHE_BYTES: Final = 64 * MIB
IN_MEMORY_CACHE_BYTES: Final = 32 * MIB  # beside it, for spaces whose cache is "reserved"
WRITE_BUFFERS_BYTES: Final = 64 * MIB  # of all regions together; over it the fullest is flushed
WAL_BYTES: Final = 64 * MIB  # of one region; over it the oldest spaces are flushed
BACKGROUND_JOBS: Final = 3  # of all stores: one flush and two compactions
LOG_FILES_KEPT: Final = 3
SYNCED_BYTES: Final = 512 * 1024  # of a new file at a time: else its one large fsync holds up those of the log
GATHERED_BYTES: Final = 256 * 1024  # of writes that wait for one handing over: some 1 ms of the interpreter lock


class _Spaces(dict[str, Any]):
    """What stands for each space, by name; empty once the store is closed."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise StoreClosed(f"the store {self._path} is closed, or has no space {name}")


class RocksStore:
    """Owned by the loop's thread but for sync, flush and compact."""

    def __init__(
        self,
        engine: RocksEngine,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions],
        *,
        reads_only: bool = False,
    ) -> None:
        self._path = path
        self._engine = engine
        self._options = dict(options)
        self._at_work = threading.Condition()  # guards the next two
        self._workers = 0  # threads in ``flush`` or ``compact``
        self._closing = False
        self._dropping: dict[str, Any] = {}  # spaces that a thread worked on when they were dropped
        access = rocksdict.AccessType.read_only() if reads_only else rocksdict.AccessType.read_write()
        try:
            existing = frozenset(rocksdict.Rdict.list_cf(path)) if engine.exists(path) else frozenset()
            names = spaces | existing | {"default"}
            families = {name: engine.space_options(self.options_of(name)) for name in names}
            self._db: Any = rocksdict.Rdict(path, engine.database_options(), families, access)
        except Exception as error:  # rocksdict raises nothing narrower
            raise translated(error, path) from error
        self._dicts: dict[str, Any] = _Spaces(path)
        self._handles: dict[str, Any] = _Spaces(path)
        for name in names:
            self._attach(name)
        self._write_options = rocksdict.WriteOptions()
        self._write_options.no_slowdown = True  # a stall would freeze every thread (design D3d)
        self._gathered: Any = None  # the engine's batch of what ``gather`` took since it was last handed over
        self._gathered_bytes = 0
        self._failed: ColumnarError | None = None  # of a write or a sync: the store is to be opened anew
        self._fresh: dict[tuple[str, bytes], bytes | None] = {}  # the same as reads want it; None: deleted

    def _attach(self, name: str) -> None:
        self._dicts[name] = self._db.get_column_family(name)
        self._handles[name] = self._db.get_column_family_handle(name)

    @property
    def spaces(self) -> frozenset[str]:
        return frozenset(self._handles)

    def batch(self, rows: int = 1) -> RocksBatch | LargeBatch:
        return RocksBatch() if rows < LARGE_ROWS else LargeBatch(self._handles)

    def get(self, space: str, key: bytes) -> bytes | None:
        if self._fresh and (space, key) in self._fresh:
            return self._fresh[space, key]
        try:
            value: bytes | None = self._dicts[space].get(key)
        except StoreClosed:
            raise
        except Exception as error:  # rocksdict raises nothing narrower
            raise translated(error, self._path) from error
        return value

    def multi_get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]:
        try:
            values: list[bytes | None] = self._dicts[space].get(list(keys))
        except StoreClosed:
            raise
        except Exception as error:  # rocksdict raises nothing narrower
            raise translated(error, self._path) from error
        fresh = self._fresh
        if fresh:
            return [fresh.get((space, key), value) for key, value in zip(keys, values, strict=True)]
        return values

    def scan(self, space: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        held, options = self._dicts[space], None
        if stop is not None:
            options = rocksdict.ReadOptions()
            options.set_iterate_upper_bound(stop)
        fresh = self._not_handed_over(space, start, stop)
        # The iterator is made here and not in the generator: what it sees is settled now (S3).
        items = self._to_end(held, held.items(from_key=start, read_opt=options), start, options)
        return overlaid(items, sorted(fresh.items()), operator.lt) if fresh else items

    def _to_end(self, held: Any, items: Any, start: bytes, options: Any) -> Iterator[tuple[bytes, bytes]]:
        pair = None
        for pair in items:
            yield pair
        look = held.iter(read_opt=options)
        look.seek(pair[0] + b"\x00" if pair is not None else start)
        self._check_status(look)

    def range(self, space: str, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        if self._fresh and self._not_handed_over(space, start, stop):
            return list(self.scan(space, start, stop))
        options = rocksdict.ReadOptions()
        options.set_iterate_upper_bound(stop)
        pairs: list[tuple[bytes, bytes]] = []
        look = self._dicts[space].iter(read_opt=options)
        look.seek(start)
        while (key := look.key()) is not None:
            pairs.append((key, look.value()))
            look.next()
        self._check_status(look)
        return pairs

    def _check_status(self, look: Any) -> None:
        try:
            look.status()
        except Exception as error:  # rocksdict raises nothing narrower
            raise translated(error, self._path) from error

    def scan_back(self, space: str, start: bytes, below: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        fresh = self._not_handed_over(space, start, below)
        held = self._dicts[space]
        items = self._down_to(held, held.items(backwards=True, from_key=below), start, below)
        return overlaid(items, sorted(fresh.items(), reverse=True), operator.gt) if fresh else items

    def _not_handed_over(self, space: str, start: bytes, stop: bytes | None) -> dict[bytes, bytes | None]:
        """Hand over what was gathered; where the engine is too busy for it, what of it a scan must see.

        A read never fails because writers are ahead of the engine.
        """
        try:
            self._hand_over()
        except StoreBusy:
            return {
                key: value
                for (name, key), value in self._fresh.items()
                if name == space and start <= key and (stop is None or key < stop)
            }
        return {}

    def _down_to(self, held: Any, items: Any, start: bytes, below: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        pair = None
        for pair in items:
            if pair[0] < start:
                return
            if pair[0] != below:  # from_key is inclusive, ``below`` is not
                yield pair
        look = held.iter()
        if pair is not None:
            look.seek_for_prev(pair[0])
            if look.valid():
                look.prev()
        elif below is not None:
            look.seek_for_prev(below)
        else:
            look.seek_to_last()
        self._check_status(look)

    def write(self, batch: Batch) -> None:
        self._hand_over()
        if isinstance(batch, LargeBatch):
            self._write_raw(batch.raw)
            return
        assert isinstance(batch, RocksBatch), "a batch belongs to this engine"
        raw = rocksdict.WriteBatch(raw_mode=True)
        self._add(raw, batch)
        self._write_raw(raw)

    def gather(self, batch: Batch) -> None:
        """One write of the engine, with its system call, costs 10 us; 32 puts that share one fsync share it too."""
        if not isinstance(batch, RocksBatch) or batch.has_ranges or batch.size_bytes() > GATHERED_BYTES:
            self.write(batch)
            return
        if self._gathered_bytes > GATHERED_BYTES:
            self._hand_over()
        if self._gathered is None:
            self._gathered = rocksdict.WriteBatch(raw_mode=True)
        self._add(self._gathered, batch)
        self._gathered_bytes += batch.size_bytes()
        fresh = self._fresh
        for space, key, value, _ in batch.operations:
            fresh[space, key] = value

    def settle(self) -> None:
        if self._failed is not None:
            raise self._failed
        self._hand_over()

    def _hand_over(self) -> None:
        """What was gathered, to the engine; kept where the engine is busy."""
        if self._gathered is not None:
            self._write_raw(self._gathered)
            self._gathered = None
            self._gathered_bytes = 0
            self._fresh.clear()

    def _add(self, raw: Any, batch: RocksBatch) -> None:
        handles = self._handles
        for space, key, value, stop in batch.operations:
            if value is not None:
                raw.put(key, value, handles[space])
            elif stop is None:
                raw.delete(key, handles[space])
            else:
                raw.delete_range(key, stop, handles[space])

    def _write_raw(self, raw: Any) -> None:
        if self._failed is not None:
            raise self._failed
        try:
            self._db.write(raw, self._write_options)
        except Exception as error:  # rocksdict raises nothing narrower
            failure = translated(error, self._path)
            if not isinstance(failure, (StoreBusy, StoreClosed)):
                self._fail(failure)
            raise failure from error

    def _fail(self, failure: ColumnarError) -> None:
        """Nobody knows what of the write is on disk: no other is taken, and what was gathered is lost with it."""
        self._failed = failure
        self._gathered = None
        self._gathered_bytes = 0
        self._fresh.clear()

    def sync(self) -> None:
        if self._failed is not None:
            raise self._failed
        try:
            self._db.flush_wal(True)
        except Exception as error:  # rocksdict raises nothing narrower
            self._failed = translated(error, self._path)
            raise self._failed from error

    def add_space(self, name: str, options: SpaceOptions = DEFAULT_OPTIONS) -> None:
        if name in self._dropping:
            raise StoreBusy(f"the space {name} is still being dropped; try again")
        if name not in self._handles:
            self._call(lambda: self._db.create_column_family(name, self._engine.space_options(options)))
            self._options[name] = options
            self._attach(name)

    def drop_space(self, name: str) -> None:
        if name not in self._handles:
            return
        self._hand_over()  # what was gathered may be for it
        del self._handles[name]
        self._options.pop(name, None)
        held = self._dicts.pop(name)
        with self._at_work:
            if self._workers:
                self._dropping[name] = held
                return
        self._call(lambda: self._db.drop_column_family(name))
        try:
            held.close()  # in this order it need not write to a file what will be gone
        except Exception as error:  # rocksdict raises nothing narrower
            if "dropped" not in str(error):
                raise translated(error, self._path) from error

    def options_of(self, name: str) -> SpaceOptions:
        return self._options.get(name, DEFAULT_OPTIONS)

    def set_options(self, name: str, options: SpaceOptions) -> bool:
        had = self.options_of(name)
        changes = changed_options(had, options)
        if changes:
            self._call(lambda: self._dicts[name].set_options(changes))
        self._options[name] = options
        return had.cache == options.cache

    def _call(self, what: Callable[[], Any]) -> Any:
        try:
            return what()
        except StoreClosed:
            raise
        except Exception as error:  # rocksdict raises nothing narrower
            raise translated(error, self._path) from error

    @contextmanager
    def _working(self) -> Iterator[list[tuple[str, Any]]]:
        """In a thread: the spaces as they are now; meanwhile nobody closes them."""
        with self._at_work:
            if not self._dicts:
                raise StoreClosed(f"the store {self._path} is closed")
            self._workers += 1
            spaces = list(self._dicts.items())
        try:
            yield spaces
        except Exception as error:  # rocksdict raises nothing narrower
            if self._closing:
                raise StoreClosed(f"the store {self._path} was closed meanwhile") from error
            raise translated(error, self._path) from error
        finally:
            with self._at_work:
                self._workers -= 1
                self._at_work.notify_all()

    def flush(self) -> None:
        with self._working() as spaces:
            for name, held in spaces:
                if name not in self._dropping:
                    held.flush(True)

    def compact(self, *, everything: bool = False) -> None:
        options = rocksdict.CompactOptions()
        if everything:
            options.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
        with self._working() as spaces:
            for name, held in spaces:
                if name not in self._dropping and not self._closing:
                    held.compact_range(None, None, options)

    def compact_span(self, space: str, start: bytes, stop: bytes | None) -> None:
        with self._working() as spaces:
            held = dict(spaces).get(space)
            if held is not None and space not in self._dropping and not self._closing:
                held.compact_range(start or None, stop)

    def _run(self, step: Callable[..., None], *arguments: Any) -> None:
        try:
            step(*arguments)
        except Exception as error:  # rocksdict raises nothing narrower
            raise translated(error, self._path) from error

    def checkpoint(self, path: str) -> None:
        self._hand_over()
        self.flush()  # a full memtable would hold the interpreter lock for tens of milliseconds
        self._run(rocksdict.Checkpoint(self._db).create_checkpoint, path)

    def ingest(self, files: Mapping[str, Sequence[str]]) -> None:
        self._hand_over()
        options = rocksdict.IngestExternalFileOptions()
        options.set_move_files(True)
        for space, paths in files.items():
            self._run(self._dicts[space].ingest_external_file, list(paths), options)

    def size_bytes(self) -> int:
        total = 0
        for held in self._dicts.values():
            total += held.property_int_value("rocksdb.live-sst-files-size") or 0
            total += held.property_int_value("rocksdb.cur-size-all-mem-tables") or 0
        return total

    def files(self) -> list[FileSpan]:
        return [FileSpan(file["start_key"], file["end_key"], file["size"]) for file in self._db.live_files()]

    def close(self) -> None:
        """Never fails: what was synced is on disk, and of the rest a disk that fails now keeps what it can."""
        if not self._dicts:
            return
        dicts, self._dicts = self._dicts, _Spaces(self._path)
        self._handles.clear()  # in place: a batch that somebody still holds shares them
        with self._at_work:
            self._closing = cancelled = self._workers > 0
            if cancelled:
                with suppress(Exception):  # it says so again below
                    self._db.flush_wal(True)  # what is in memory stays in the log: nothing can be flushed any more
                self._db.cancel_all_background(False)
                self._at_work.wait_for(lambda: self._workers == 0)
        for held in [*dicts.values(), *self._dropping.values(), self._db]:
            try:
                held.close()
            except Exception as error:  # noqa: BLE001 - rocksdict raises nothing narrower
                if not cancelled or "Shutdown" not in str(error):
                    _log.warning("while closing: %s", translated(error, self._path).text)


class RocksEngine:
    def __init__(self, *, cache_bytes: int = CACHE_BYTES, write_buffers_bytes: int = WRITE_BUFFERS_BYTES) -> None:
        self._caches = Caches(rocksdict.Cache(cache_bytes), rocksdict.Cache(IN_MEMORY_CACHE_BYTES))
        self._env = rocksdict.Env()
        self._env.lower_thread_pool_cpu_priority()  # of compactions: neither the loop nor an fsync waits for their turn
        # allow_stall would freeze the loop: over the budget RocksDB flushes instead.
        self._write_buffers = rocksdict.WriteBufferManager(write_buffers_bytes, False)

    def database_options(self) -> Any:
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_write_buffer_manager(self._write_buffers)
        options.set_env(self._env)
        options.set_max_background_jobs(BACKGROUND_JOBS)
        options.set_max_open_files(64)
        # Of its own 64 shards each would hold a single file: two that meet in one throw each other out at each get.
        options.set_table_cache_num_shard_bits(0)
        options.set_bytes_per_sync(SYNCED_BYTES)
        options.set_max_total_wal_size(WAL_BYTES)
        # Logs are not written anew (recycle_log_file_num), though fsyncs were quicker: after a power cut between a
        # flush and the next fsync RocksDB 9.8 calls the files "ahead of WALs" and opens the store no more.
        options.set_wal_recovery_mode(rocksdict.DBRecoveryMode.point_in_time())  # S2: a prefix, never a hole
        options.set_keep_log_file_num(LOG_FILES_KEPT)
        options.set_max_log_file_size(1 * MIB)
        options.set_stats_dump_period_sec(0)
        options.set_stats_persist_period_sec(0)
        options.set_skip_stats_update_on_db_open(True)
        return options

    def space_options(self, options: SpaceOptions) -> Any:
        return space_options(options, self._caches)

    def open(self, path: str, spaces: frozenset[str], options: Mapping[str, SpaceOptions] | None = None) -> RocksStore:
        try:
            make_lasting(path)
            remove_begun(path)
        except OSError as error:
            raise refused(error, f"cannot make the store {path}") from error
        return RocksStore(self, path, spaces, options or {})

    def open_reading(self, path: str) -> RocksStore:
        if not self.exists(path):
            raise HostError(f"{path} holds no store")
        return RocksStore(self, path, frozenset(), {}, reads_only=True)

    def mend(self, path: str) -> None:
        try:
            rocksdict.Rdict.repair(path, self.database_options())
        except Exception as error:  # rocksdict raises nothing narrower
            raise translated(error, path) from error

    def sorted_file(self, path: str) -> RocksSortedFile:
        return RocksSortedFile(path, self.space_options(DEFAULT_OPTIONS))

    def exists(self, path: str) -> bool:
        return os.path.exists(os.path.join(path, "CURRENT"))

    def destroy(self, path: str) -> None:
        """Remove the folder: first renamed, so that a crash half-way leaves no half region under its name."""
        try:
            doomed = f"{path}.deleted"
            if os.path.exists(doomed):
                remove_tree(doomed)  # a crash came between the next two lines
            for half in (path + HALF, path + HALF_CHECKPOINT):  # or while it was made of copies
                remove_tree(half, missing_ok=True)
            if os.path.exists(path):
                os.rename(path, doomed)
                remove_tree(doomed)
            sync_entries(os.path.dirname(path))  # else a power cut brings it back, when nobody knows it any more
        except OSError as error:
            raise refused(error, f"cannot remove the folder {path}") from error
