"""A RocksDB as a ``Store``, through ``rocksdict`` in raw mode: a column family for each space.

Known habits of rocksdict 0.3.29, each with our workaround:
    * every error is a bare ``Exception``: only ``rocks_errors`` translates it, by its text;
    * a handle of a column family keeps the database open: ``close`` closes each of them;
    * ``items`` ends at a damaged block as if there were no more pairs: at its end we check an ``iter``,
      which has a status (2.6 us a scan);
    * an iterator does not keep its ``ReadOptions`` alive, whose memory has the upper bound: we do
      (else a scan ends at arbitrary freed bytes);
    * ``set_iterate_lower_bound`` is silently ignored: ``scan_reverse`` tests the bound itself;
    * ``write`` keeps the interpreter lock: callers keep batches under ``limits.BATCH_BYTES``;
    * a handle cannot be closed while a thread flushes or compacts it ("Already borrowed"): ``close``
      cancels the engine's work and waits for the thread, ``drop_space`` leaves the rest to the next opening.
"""

from __future__ import annotations

import logging
import operator
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import rocksdict

from columnar.errors import ColumnarError
from columnar.storage.api import DEFAULT_OPTIONS, PAIR_COST, Batch, FileSpan, SpaceOptions, StoreBusy, StoreClosed
from columnar.storage.capture import Capture
from columnar.storage.open_spaces import OpenSpaces
from columnar.storage.overlay import NO_BOUND, overlaid, within
from columnar.storage.ownership import COMPLETE, META_SPACE, pack_complete
from columnar.storage.rocks_batch import LARGE_ROWS, LargeBatch, RocksBatch
from columnar.storage.rocks_closing import ClosedDatabase, close_each, stands_in_files
from columnar.storage.rocks_errors import translated
from columnar.storage.rocks_opening import SyncedBound
from columnar.storage.rocks_options import changed_options
from columnar.storage.server_log import MARK_SPACE

if TYPE_CHECKING:
    from columnar.storage.rocks import RocksEngine

_log = logging.getLogger(__name__)

DROPPED: Final = b"dropped"  # a key of MARK_SPACE that is never there
GATHERED_BYTES: Final = 256 * 1024  # of writes buffered for one engine write: some 1 ms of the interpreter lock


class RocksStore:
    """Owned by the loop's thread but for sync, flush and compact."""

    def __init__(
        self,
        engine: RocksEngine,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions],
        database: Any,
        bound: SyncedBound,
    ) -> None:
        """``database``: RocksDB's at ``path``, open, with these spaces (``RocksEngine.open``)."""
        self._path = path
        self._engine = engine
        self._options = dict(options)
        self._at_work = threading.Condition()  # guards the next two
        self._workers = 0  # threads in ``flush`` or ``compact``
        self._closing = False
        self._dropping: dict[str, Any] = {}  # spaces that a thread worked on when they were dropped
        self._db: Any = database
        self._bound = bound
        self._dicts: dict[str, Any] = OpenSpaces(path)
        self._handles: dict[str, Any] = OpenSpaces(path)
        for name in spaces:
            self._attach(name)
        self._write_options = rocksdict.WriteOptions()
        self._write_options.no_slowdown = True  # a stall would freeze every thread (design D3d)
        self._gathered: Any = None  # the engine's batch with what ``gather`` buffered
        self._gathered_from: list[RocksBatch] = []  # what it is made of
        self._gathered_bytes = 0
        self._failed: ColumnarError | None = None  # of a write or a sync: the store must be reopened
        self._fresh: dict[tuple[str, bytes], bytes | None] = {}  # the same as reads want it; None: deleted
        self._capture: Capture | None = None
        self._region = ""  # that it is owned for; none: it has no part in the server's log
        self._epoch = 0

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
        except Exception as error:  # rocksdict raises bare exceptions
            raise translated(error, self._path) from error
        return value

    def multi_get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]:
        try:
            values: list[bytes | None] = self._dicts[space].get(list(keys))
        except StoreClosed:
            raise
        except Exception as error:  # rocksdict raises bare exceptions
            raise translated(error, self._path) from error
        fresh = self._fresh
        if fresh:
            return [fresh.get((space, key), value) for key, value in zip(keys, values, strict=True)]
        return values

    def scan(self, space: str, start: bytes, stop: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        family, options = self._dicts[space], None
        if stop is not None:
            options = rocksdict.ReadOptions()
            options.set_iterate_upper_bound(stop)
        fresh = self._unwritten_in_range(space, start, stop)
        # The iterator is made now and not in the generator: it sees the present state (S3).
        items = self._to_end(family, family.items(from_key=start, read_opt=options), start, options)
        return overlaid(items, sorted(fresh.items()), operator.lt) if fresh else items

    def _to_end(self, family: Any, items: Any, start: bytes, options: Any) -> Iterator[tuple[bytes, bytes]]:
        pair = None
        for pair in items:
            yield pair
        iterator = family.iter(read_opt=options)
        iterator.seek(pair[0] + b"\x00" if pair is not None else start)
        self._check_status(iterator)

    def range(self, space: str, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        return self.range_within(space, start, stop, NO_BOUND) or []

    def range_within(self, space: str, start: bytes, stop: bytes, cost: int) -> list[tuple[bytes, bytes]] | None:
        if self._fresh and self._unwritten_in_range(space, start, stop):
            return within(self.scan(space, start, stop), cost)
        options = rocksdict.ReadOptions()
        options.set_iterate_upper_bound(stop)
        pairs: list[tuple[bytes, bytes]] = []
        iterator = self._dicts[space].iter(read_opt=options)
        iterator.seek(start)
        while (key := iterator.key()) is not None:
            if cost < 0:
                return None
            value = iterator.value()
            pairs.append((key, value))
            cost -= PAIR_COST + len(value)
            iterator.next()
        self._check_status(iterator)
        return pairs

    def _check_status(self, iterator: Any) -> None:
        try:
            iterator.status()
        except Exception as error:  # rocksdict raises bare exceptions
            raise translated(error, self._path) from error

    def scan_reverse(self, space: str, start: bytes, below: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        fresh = self._unwritten_in_range(space, start, below)
        family = self._dicts[space]
        items = self._down_to(family, family.items(backwards=True, from_key=below), start, below)
        return overlaid(items, sorted(fresh.items(), reverse=True), operator.gt) if fresh else items

    def _unwritten_in_range(self, space: str, start: bytes, stop: bytes | None) -> dict[bytes, bytes | None]:
        """Write the buffered batches to the engine; if it is busy, return the buffered pairs that a scan must see.

        So a read never fails because writers are ahead of the engine.
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

    def _down_to(self, family: Any, items: Any, start: bytes, below: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        pair = None
        for pair in items:
            if pair[0] < start:
                return
            if pair[0] != below:  # from_key is inclusive, ``below`` is not
                yield pair
        iterator = family.iter()
        if pair is not None:
            iterator.seek_for_prev(pair[0])
            if iterator.valid():
                iterator.prev()
        elif below is not None:
            iterator.seek_for_prev(below)
        else:
            iterator.seek_to_last()
        self._check_status(iterator)

    def write(self, batch: Batch) -> None:
        self._hand_over()
        capture = self._capture
        if isinstance(batch, LargeBatch):
            if capture is not None:
                capture.missed()
                self._mark(batch.raw, capture)
            self._write_raw(batch.raw)
            if capture is not None:
                capture.batch_written()
            return
        assert isinstance(batch, RocksBatch), "a batch belongs to this engine"
        raw = rocksdict.WriteBatch(raw_mode=True)
        self._add(raw, batch)
        if capture is not None:
            self._mark(raw, capture)
        self._write_raw(raw)
        if capture is not None:
            capture.note(batch.operations, batch.size_bytes())
            capture.batch_written()

    def gather(self, batch: Batch) -> None:
        """Buffer the batch: an engine write, with its system call, costs 10 us, and 32 puts of one fsync share it."""
        if not isinstance(batch, RocksBatch) or batch.has_ranges or batch.size_bytes() > GATHERED_BYTES:
            self.write(batch)
            return
        if self._gathered_bytes > GATHERED_BYTES:
            self._hand_over()
        if self._gathered is None:
            self._gathered = rocksdict.WriteBatch(raw_mode=True)
        self._add(self._gathered, batch)
        self._gathered_from.append(batch)
        self._gathered_bytes += batch.size_bytes()
        if self._capture is not None:
            self._capture.note(batch.operations, batch.size_bytes())
        fresh = self._fresh
        for space, key, value, _ in batch.operations:
            fresh[space, key] = value

    def settle(self) -> None:
        if self._failed is not None:
            raise self._failed
        self._hand_over()

    def _hand_over(self) -> None:
        """Write the buffered batches to RocksDB.  Keeps them if the engine is busy."""
        if self._gathered is not None:
            capture = self._capture
            if capture is not None:
                self._mark(self._gathered, capture)
            try:
                self._write_raw(self._gathered)
            except StoreBusy:  # a try uses the engine's batch up, and its mark with it
                self._gathered = rocksdict.WriteBatch(raw_mode=True)
                for batch in self._gathered_from:
                    self._add(self._gathered, batch)
                raise
            if capture is not None:
                capture.batch_written()
            self._drop_gathered()

    def _drop_gathered(self) -> None:
        self._gathered = None
        self._gathered_from.clear()
        self._gathered_bytes = 0
        self._fresh.clear()

    def _mark(self, raw: Any, capture: Capture) -> None:
        handle = self._handles[MARK_SPACE]
        key, floor = capture.mark()
        keys, span = capture.outdated()
        for old in keys:
            raw.delete(old, handle)
        if span is not None:
            raw.delete_range(span[0], span[1], handle)
        raw.put(key, floor, handle)

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
        except Exception as error:  # rocksdict raises bare exceptions
            failure = translated(error, self._path)
            if not isinstance(failure, (StoreBusy, StoreClosed)):
                self._fail(failure)
            raise failure from error

    def _fail(self, failure: ColumnarError) -> None:
        """Refuse all later writes after a failed one, of which any part may be on disk; buffered batches are lost."""
        self._failed = failure
        self._drop_gathered()

    def sync(self) -> None:
        if self._failed is not None:
            raise self._failed
        capture = self._capture
        covered = capture.last if capture is not None else 0
        try:
            sequence = self._db.latest_sequence_number()
            self._db.flush_wal(True)
        except Exception as error:  # rocksdict raises bare exceptions
            self._failed = translated(error, self._path)
            raise self._failed from error
        self._bound.raise_to(sequence)
        if capture is not None:
            capture.synced = max(capture.synced, covered)

    def own(self, region: str, epoch: int) -> None:
        """Label writes from now on with this region (encoded) and its owner's epoch."""
        self._region, self._epoch = region, epoch
        if self._capture is not None:
            self._capture.renumber(epoch)

    def begin_capture(self, era: bytes, stamp: Callable[[], int]) -> Capture | None:
        if self._capture is None and self._region:
            capture = Capture(self._region, self._epoch, era, stamp)
            # Marks of other logs, which a copy has, are removed; ``complete`` replaces marks of a closed owner's log.
            raw = rocksdict.WriteBatch(raw_mode=True)
            self._mark(raw, capture)
            if (meta := self._handles.get(META_SPACE)) is not None:
                raw.put(COMPLETE, pack_complete(self._epoch, self._region), meta)
            self._write_raw(raw)
            capture.batch_written()
            self._capture = capture
        return self._capture

    def _sync_own_log(self) -> None:
        """Sync batches that are only in the server's log, before a later operation becomes durable."""
        if self._capture is not None and self._capture.synced < self._capture.last:
            self.sync()

    def add_space(self, name: str, options: SpaceOptions = DEFAULT_OPTIONS) -> None:
        if name in self._dropping:
            raise StoreBusy(f"the space {name} is still being dropped; try again")
        if name not in self._handles:
            self._call(lambda: self._db.create_column_family(name, self._engine.space_options(options)))
            self._options[name] = options
            self._attach(name)
            self._bound.raise_manifest()

    def drop_space(self, name: str) -> None:
        if name not in self._handles:
            return
        self._hand_over()  # buffered batches may write to it
        self._sync_own_log()
        self._bound.drops(self._db.latest_sequence_number())
        del self._handles[name]
        self._options.pop(name, None)
        family = self._dicts.pop(name)
        with self._at_work:
            if self._workers:
                self._dropping[name] = family
                return
        self._call(lambda: self._db.drop_column_family(name))
        self._bound.raise_manifest()
        self._number_after_drop()
        try:
            family.close()  # in this order it need not write to a file what will be gone
        except Exception as error:  # rocksdict raises bare exceptions
            if "dropped" not in str(error):
                raise translated(error, self._path) from error

    def _number_after_drop(self) -> None:
        """Write one more operation, which stays: the last ones may be dropped with the space (``synced_bound``)."""
        batch = self.batch()
        batch.delete(MARK_SPACE, DROPPED)
        with suppress(StoreBusy):  # then the bound says less until the next write
            self.write(batch)
            self.sync()

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
        except Exception as error:  # rocksdict raises bare exceptions
            raise translated(error, self._path) from error

    @contextmanager
    def _working(self) -> Iterator[list[tuple[str, Any]]]:
        """Yield the present spaces to a thread; they are not closed meanwhile."""
        with self._at_work:
            if not self._dicts:
                raise StoreClosed(f"the store {self._path} is closed")
            self._workers += 1
            spaces = list(self._dicts.items())
        try:
            yield spaces
        except Exception as error:  # rocksdict raises bare exceptions
            if self._closing:
                raise StoreClosed(f"the store {self._path} was closed meanwhile") from error
            raise translated(error, self._path) from error
        finally:
            with self._at_work:
                self._workers -= 1
                self._at_work.notify_all()

    def flush(self) -> None:
        with self._working() as spaces:
            for name, family in spaces:
                if name not in self._dropping:
                    family.flush(True)
            self._bound.raise_manifest()

    def compact(self, *, everything: bool = False) -> None:
        options = rocksdict.CompactOptions()
        if everything:
            options.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
        with self._working() as spaces:
            for name, family in spaces:
                if name not in self._dropping and not self._closing:
                    family.compact_range(None, None, options)
            self._bound.raise_manifest()

    def compact_span(self, space: str, start: bytes, stop: bytes | None) -> None:
        with self._working() as spaces:
            family = dict(spaces).get(space)
            if family is not None and space not in self._dropping and not self._closing:
                family.compact_range(start or None, stop)
            self._bound.raise_manifest()

    def checkpoint(self, path: str) -> None:
        self._hand_over()
        self.flush()  # a full memtable would block the interpreter lock for tens of milliseconds
        self._call(partial(rocksdict.Checkpoint(self._db).create_checkpoint, path))

    def ingest(self, files: Mapping[str, Sequence[str]]) -> None:
        self._hand_over()
        self._sync_own_log()
        options = rocksdict.IngestExternalFileOptions()
        options.set_move_files(True)
        for space, paths in files.items():
            with self._bound.pause_bound():
                self._call(partial(self._dicts[space].ingest_external_file, list(paths), options))
            self._bound.raise_manifest()

    def size_bytes(self) -> int:
        total = 0
        for family in self._dicts.values():
            total += family.property_int_value("rocksdb.live-sst-files-size") or 0
            total += family.property_int_value("rocksdb.cur-size-all-mem-tables") or 0
        return total

    def files(self) -> list[FileSpan]:
        return [FileSpan(file["start_key"], file["end_key"], file["size"]) for file in self._db.live_files()]

    @property
    def is_clean(self) -> bool:
        return self._gathered is None and stands_in_files(self._dicts.values())

    def close(self) -> None:
        """Never fails: what was synced is on disk, and of the rest a disk that fails now keeps what it can."""
        if not self._dicts:
            return
        self._engine.closes(self._capture, self._sync_own_log)
        dicts, self._dicts = self._dicts, OpenSpaces(self._path)
        self._handles.clear()  # in place: a batch that is still referenced shares them
        with self._at_work:
            self._closing = cancelled = self._workers > 0
            if cancelled:
                with suppress(Exception):  # it says so again below
                    self._db.flush_wal(True)  # the memtables stay in the log: no flush is possible any more
                self._db.cancel_all_background(False)
                self._at_work.wait_for(lambda: self._workers == 0)
        if cancelled or self._failed is not None or self._dropping or not stands_in_files(dicts.values()):
            close_each([*dicts.values(), *self._dropping.values(), self._db], self._path, was_cancelled=cancelled)
        dicts.clear()
        self._db = ClosedDatabase()
        self._bound.close()
