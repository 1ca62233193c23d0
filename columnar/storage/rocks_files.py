"""The files of a RocksDB: flushes and compactions by threads, copies, ingestion, sorted files, and the closing.

A handle of a column family cannot be closed while a thread flushes or compacts it ("Already borrowed").  So
``close_spaces`` cancels RocksDB's background work and waits for the threads, and ``keeps_space`` leaves a dropped space
to the next opening.

rocksdict's ``close`` of each column family syncs the log and flushes the family, even if there is nothing to flush.
For a store of five families this makes 7 fsyncs, some 6 ms on a busy disk, with the interpreter locked.  A store whose
memtables are empty does not need these fsyncs, because the flush has synced its files and its MANIFEST.  RocksDB closes
by itself when the last reference to it is dropped.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import rocksdict

from columnar.storage.api import FileSpan, StoreClosed
from columnar.storage.rocks_batch import WriteBuffer
from columnar.storage.rocks_errors import engine_call, translated
from columnar.storage.rocks_opening import SyncedBound

_log = logging.getLogger(__name__)

_UNWRITTEN: Final = ("rocksdb.num-entries-active-mem-table", "rocksdb.num-immutable-mem-table")


class RocksFiles:
    """``StoreFiles`` of a RocksDB.  Owned by the loop's thread, except flush and compact."""

    def __init__(
        self,
        path: str,
        database: Any,
        families: dict[str, Any],
        bound: SyncedBound,
        buffer: WriteBuffer,
        settle: Callable[[bool], None],
    ) -> None:
        """Take the store's column families by space, its buffer of batches and its function ``settle``.

        ``settle`` writes the buffered batches to RocksDB, and syncs the store's own log if its argument is true.
        """
        self._path = path
        self._db = database
        self._families = families
        self._bound = bound
        self._buffer = buffer
        self._settle = settle
        self._at_work = threading.Condition()  # guards the next three
        self._workers = 0  # threads in ``flush`` or ``compact``
        self._closing = False
        self._dropping: dict[str, Any] = {}  # spaces that were dropped while a thread worked

    # --- by threads ------------------------------------------------------------------------------------

    @contextmanager
    def _working(self) -> Iterator[list[tuple[str, Any]]]:
        """Yield the present spaces to a thread; within the block they are not closed."""
        with self._at_work:
            if not self._families:
                raise StoreClosed(f"the store {self._path} is closed")
            self._workers += 1
            spaces = list(self._families.items())
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

    # --- copies, ingestion -------------------------------------------------------------------------------

    def checkpoint(self, path: str) -> None:
        self._settle(False)
        self.flush()  # a full memtable would block the interpreter lock for tens of milliseconds
        engine_call(lambda: rocksdict.Checkpoint(self._db).create_checkpoint(path), self._path)

    def ingest(self, files: Mapping[str, Sequence[str]]) -> None:
        self._settle(True)
        options = rocksdict.IngestExternalFileOptions()
        options.set_move_files(True)
        for space, paths in files.items():
            family = self._families[space]
            with self._bound.pause_bound():
                engine_call(lambda: family.ingest_external_file(list(paths), options), self._path)  # noqa: B023
            self._bound.raise_manifest()

    # --- status ------------------------------------------------------------------------------------------

    def size_bytes(self) -> int:
        total = 0
        for family in self._families.values():
            total += family.property_int_value("rocksdb.live-sst-files-size") or 0
            total += family.property_int_value("rocksdb.cur-size-all-mem-tables") or 0
        return total

    def spans(self) -> list[FileSpan]:
        return [FileSpan(file["start_key"], file["end_key"], file["size"]) for file in self._db.live_files()]

    @property
    def is_clean(self) -> bool:
        return self._buffer.raw is None and stands_in_files(self._families.values())

    # --- spaces that go ----------------------------------------------------------------------------------

    def is_dropping(self, space: str) -> bool:
        return space in self._dropping

    def keeps_space(self, space: str, family: Any) -> bool:
        """Keep the dropped space for the next opening if a thread works on the files; tells whether it was kept."""
        with self._at_work:
            if self._workers:
                self._dropping[space] = family
            return self._workers > 0

    def close_spaces(self, *, is_damaged: bool) -> None:
        """Close the families that do not close by themselves.  ``is_damaged`` says that a write or a sync failed."""
        families, self._families = self._families, {}
        with self._at_work:
            self._closing = cancelled = self._workers > 0
            if cancelled:
                with suppress(Exception):  # the closing below reports the error again
                    self._db.flush_wal(True)  # the log keeps the memtables' data: no flush is possible any more
                self._db.cancel_all_background(False)
                self._at_work.wait_for(lambda: self._workers == 0)
        if cancelled or is_damaged or self._dropping or not stands_in_files(families.values()):
            _close_each([*families.values(), *self._dropping.values(), self._db], self._path, was_cancelled=cancelled)
        self._dropping.clear()
        self._db = ClosedDatabase()


def stands_in_files(families: Iterable[Any]) -> bool:
    """Tell whether no column family has unflushed data in memory.  Takes 8 us for five families."""
    try:
        return all(family.property_int_value(name) == 0 for family in families for name in _UNWRITTEN)
    except Exception:  # noqa: BLE001 - rocksdict raises bare exceptions; closing each family says what is wrong
        return False


def _close_each(families: Iterable[Any], path: str, *, was_cancelled: bool) -> None:
    """Flush and close the families, then the database.  After a cancellation errors of flushes are expected."""
    for one in families:
        try:
            one.close()
        except Exception as error:  # noqa: BLE001 - rocksdict raises bare exceptions
            if not was_cancelled or "Shutdown" not in str(error):
                _log.warning("while closing: %s", translated(error, path).text)


class ClosedDatabase:
    """The replacement of a released database: every call raises the error that the database is closed."""

    def __getattr__(self, name: str) -> Any:
        raise rocksdict.DbClosedError(f"{name} of a database that is closed")


class RocksSortedFile:
    """An SST file in the making."""

    def __init__(self, path: str, writer: Any) -> None:
        """Take RocksDB's writer, which writes to ``path``."""
        self._path = path
        self._writer = writer

    @classmethod
    def begun(cls, path: str, options: Any) -> RocksSortedFile:
        """Make an empty file."""
        writer = rocksdict.SstFileWriter(options)
        writer.open(path)
        return cls(path, writer)

    def put_pair(self, key: bytes, value: bytes) -> None:
        try:
            self._writer[key] = value
        except Exception as error:  # rocksdict raises bare exceptions
            if "ascending" in str(error):
                raise ValueError(f"{self._path}: keys must rise strictly") from None
            raise translated(error, self._path) from error

    def finish(self) -> None:
        try:
            self._writer.finish()
        except Exception as error:  # rocksdict raises bare exceptions
            raise translated(error, self._path) from error
