"""A RocksDB as a ``Store``, through ``rocksdict`` in raw mode: a column family for each space.

Peculiarities of rocksdict 0.3.29, each with our workaround:

    * every error is a bare ``Exception``: only ``rocks_errors`` translates it, by its text;
    * a handle of a column family keeps the database open: ``close`` closes all handles;
    * ``items`` ends at a damaged block as if there were no more pairs: at its end we check an ``iter``,
      which has a status (2.6 us per scan);
    * an iterator does not keep its ``ReadOptions`` alive, whose memory has the upper bound: we keep them
      (otherwise a scan ends at arbitrary freed bytes);
    * ``set_iterate_lower_bound`` is silently ignored: ``scan_reverse`` tests the bound itself;
    * ``write`` keeps the interpreter lock: callers keep batches under ``limits.BATCH_BYTES``;
    * a handle cannot be closed while a thread flushes or compacts it: ``rocks_files`` handles that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import rocksdict

from columnar.errors import ColumnarError
from columnar.storage.api import DEFAULT_OPTIONS, PAIR_COST, Batch, SpaceOptions, StoreBusy, StoreClosed
from columnar.storage.capture import Capture
from columnar.storage.overlay import overlaid, within
from columnar.storage.ownership import COMPLETE, META_SPACE, pack_complete
from columnar.storage.rocks_batch import LARGE_ROWS, LargeBatch, RocksBatch, WriteBuffer, add_mark, fill
from columnar.storage.rocks_errors import engine_call, translated
from columnar.storage.rocks_files import ClosedDatabase, RocksFiles
from columnar.storage.rocks_opening import SyncedBound, changed_options
from columnar.storage.server_log import MARK_SPACE

if TYPE_CHECKING:
    from columnar.storage.rocks import RocksEngine

DROPPED: Final = b"dropped"  # a key of MARK_SPACE that never exists
GATHERED_BYTES: Final = 256 * 1024  # buffered for one write to RocksDB: it keeps the interpreter lock for some 1 ms


class RocksStore:
    """A store over an open RocksDB.  Owned by the loop's thread, except sync, flush and compact."""

    def __init__(
        self,
        engine: RocksEngine,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions],
        database: Any,
        bound: SyncedBound,
    ) -> None:
        """Take the database at ``path``, which ``RocksEngine`` has opened with these spaces."""
        self._path = path
        self._engine = engine
        self._options = dict(options)
        self._db: Any = database
        self._bound = bound
        self._dicts: dict[str, Any] = OpenSpaces(path)
        self._handles: dict[str, Any] = OpenSpaces(path)
        for name in spaces:
            self._attach(name)
        self._write_options = rocksdict.WriteOptions()
        self._write_options.no_slowdown = True  # a stall would freeze every thread (design D3d)
        self._buffer = WriteBuffer(self._handles)
        self._fresh = self._buffer.fresh
        self._failed: ColumnarError | None = None  # of a write or a sync; then the store must be reopened
        self._capture: Capture | None = None
        self._region = ""  # the owned region; empty: no part in the server's log
        self._epoch = 0
        self.files = RocksFiles(path, database, self._dicts, bound, self._buffer, self._settle_files)

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
        # The iterator is made now and not in the generator, so that it sees the present state (S3).
        items = _to_end(family, family.items(from_key=start, read_opt=options), start, options, self._path)
        return overlaid(items, sorted(fresh.items()), operator.lt) if fresh else items

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
        _check_status(iterator, self._path)
        return pairs

    def scan_reverse(self, space: str, start: bytes, below: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        fresh = self._unwritten_in_range(space, start, below)
        family = self._dicts[space]
        items = _down_to(family, family.items(backwards=True, from_key=below), start, below, self._path)
        return overlaid(items, sorted(fresh.items(), reverse=True), operator.gt) if fresh else items

    def _unwritten_in_range(self, space: str, start: bytes, stop: bytes | None) -> dict[bytes, bytes | None]:
        """Write the buffered batches to RocksDB; if it is busy, return the buffered pairs that a scan must see.

        So a read never fails because RocksDB cannot keep up with the writers.
        """
        try:
            self._hand_over()
        except StoreBusy:
            return self._buffer.pairs_within(space, start, stop)
        return {}

    def write_batch(self, batch: Batch) -> None:
        self._hand_over()
        capture = self._capture
        if isinstance(batch, LargeBatch):
            if capture is not None:
                capture.missed()
                add_mark(batch.raw, capture, self._handles)
            self._write_raw(batch.raw)
            if capture is not None:
                capture.batch_written()
            return
        assert isinstance(batch, RocksBatch), "a batch belongs to this engine"
        raw = rocksdict.WriteBatch(raw_mode=True)
        fill(raw, batch, self._handles)
        if capture is not None:
            add_mark(raw, capture, self._handles)
        self._write_raw(raw)
        if capture is not None:
            capture.note(batch.operations, batch.size_bytes())
            capture.batch_written()

    def gather(self, batch: Batch) -> None:
        """Buffer the batch: a write to RocksDB costs 10 us with its system call, and 32 puts of one fsync share it."""
        if not isinstance(batch, RocksBatch) or batch.has_ranges or batch.size_bytes() > GATHERED_BYTES:
            self.write_batch(batch)
            return
        if self._buffer.size_bytes > GATHERED_BYTES:
            self._hand_over()
        self._buffer.add(batch)
        if self._capture is not None:
            self._capture.note(batch.operations, batch.size_bytes())

    def settle(self) -> None:
        if self._failed is not None:
            raise self._failed
        self._hand_over()

    def _hand_over(self) -> None:
        """Write the buffered batches to RocksDB.  If RocksDB is busy, keeps the batches and raises StoreBusy."""
        buffer, capture = self._buffer, self._capture
        if buffer.raw is not None:
            if capture is not None:
                add_mark(buffer.raw, capture, self._handles)
            try:
                self._write_raw(buffer.raw)
            except StoreBusy:
                buffer.fill_again()
                raise
            if capture is not None:
                capture.batch_written()
            buffer.clear()

    def _settle_files(self, syncs: bool) -> None:
        """Write the buffered batches for ``RocksFiles``; with ``syncs`` also sync the store's own log if needed."""
        self._hand_over()
        if syncs:
            self._sync_own_log()

    def _write_raw(self, raw: Any) -> None:
        if self._failed is not None:
            raise self._failed
        try:
            self._db.write(raw, self._write_options)
        except Exception as error:  # rocksdict raises bare exceptions
            failure = translated(error, self._path)
            if not isinstance(failure, (StoreBusy, StoreClosed)):
                self._failed = failure  # any part of the batch may be on disk, so all later writes are refused
                self._buffer.clear()
            raise failure from error

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
            capture.note_synced(covered)

    def own(self, region: str, epoch: int) -> None:
        """Label writes from now on with this region (encoded) and its owner's epoch."""
        self._region, self._epoch = region, epoch
        if self._capture is not None:
            self._capture.renumber(epoch)

    def begin_capture(self, era: bytes, stamp: Callable[[], int]) -> Capture | None:
        if self._capture is None and self._region:
            capture = Capture(self._region, self._epoch, era, stamp)
            # The batch removes marks of other logs, which a copy has; ``complete`` replaces the marks of the log of an
            # owner that closed the region.
            raw = rocksdict.WriteBatch(raw_mode=True)
            add_mark(raw, capture, self._handles)
            if (meta := self._handles.get(META_SPACE)) is not None:
                raw.put(COMPLETE, pack_complete(self._epoch, self._region), meta)
            self._write_raw(raw)
            capture.batch_written()
            self._capture = capture
        return self._capture

    def _sync_own_log(self) -> None:
        """Sync the store if batches are synced only in the server's log, before a later operation becomes durable."""
        if self._capture is not None and self._capture.synced < self._capture.last:
            self.sync()

    def add_space(self, name: str, options: SpaceOptions = DEFAULT_OPTIONS) -> None:
        if self.files.is_dropping(name):
            raise StoreBusy(f"the space {name} is still being dropped; try again")
        if name not in self._handles:
            made = self._engine.space_options(options)
            engine_call(lambda: self._db.create_column_family(name, made), self._path)
            self._options[name] = options
            self._attach(name)
            self._bound.raise_manifest()

    def drop_space(self, name: str) -> None:
        if name not in self._handles:
            return
        self._hand_over()  # buffered batches may write to the space
        self._sync_own_log()
        self._bound.drops(self._db.latest_sequence_number())
        del self._handles[name]
        self._options.pop(name, None)
        family = self._dicts.pop(name)
        if self.files.keeps_space(name, family):
            return
        engine_call(lambda: self._db.drop_column_family(name), self._path)
        self._bound.raise_manifest()
        batch = self.batch()  # an operation that stays: earlier ones may be dropped with the space
        batch.delete(MARK_SPACE, DROPPED)
        with suppress(StoreBusy):  # then the bound stays lower until the next write (``synced_bound``)
            self.write_batch(batch)
            self.sync()
        try:
            family.close()  # after the drop, so that it does not flush dropped data
        except Exception as error:  # rocksdict raises bare exceptions
            if "dropped" not in str(error):
                raise translated(error, self._path) from error

    def options_of(self, name: str) -> SpaceOptions:
        return self._options.get(name, DEFAULT_OPTIONS)

    def set_options(self, name: str, options: SpaceOptions) -> bool:
        had = self.options_of(name)
        changes = changed_options(had, options)
        if changes:
            family = self._dicts[name]
            engine_call(lambda: family.set_options(changes), self._path)
        self._options[name] = options
        return had.cache == options.cache

    def close(self) -> None:
        """Close the store; never fails.  Synced writes are on disk; if the disk fails now, other writes may be lost."""
        if not self._dicts:
            return
        self._engine.closes(self._capture, self._sync_own_log)
        families, self._dicts = self._dicts, OpenSpaces(self._path)
        self._handles.clear()  # in place, because batches share the dictionary
        self.files.close_spaces(is_damaged=self._failed is not None)
        families.clear()
        self._db = ClosedDatabase()
        self._bound.close()


def _to_end(family: Any, items: Any, start: bytes, options: Any, path: str) -> Iterator[tuple[bytes, bytes]]:
    pair = None
    for pair in items:
        yield pair
    iterator = family.iter(read_opt=options)
    iterator.seek(pair[0] + b"\x00" if pair is not None else start)
    _check_status(iterator, path)


def _down_to(family: Any, items: Any, start: bytes, below: bytes | None, path: str) -> Iterator[tuple[bytes, bytes]]:
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
    _check_status(iterator, path)


def _check_status(iterator: Any, path: str) -> None:
    try:
        iterator.status()
    except Exception as error:  # rocksdict raises bare exceptions
        raise translated(error, path) from error


class OpenSpaces(dict[str, Any]):
    """The engine's object for each space; empty once the store is closed."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise StoreClosed(f"the store {self._path} is closed, or has no space {name}")
