"""The change log of one region: written in the batch of the cells, read by followers from their cursors.

It lives in the region's own store, in the space ``log`` (records, by sequence) and in ``meta``
(the cursors).  Invariants:
    I1. A record is in the same batch as the cells that it describes (design D6): never one without the other.
    I2. Within one opening n rises by one with each mutation of the region; each opening has a new
        epoch, so sequences of one origin only ever grow.
    I3. A record is removed only when every follower that promises delivery has passed it, and, if the table has
        CHANGE_LOG, not before that time, unless the log has more than CHANGE_LOG_BYTES.
    I4. Followers see a record only after an fsync that covers it (``durable``).
    I5. ``kept`` are the records that only a replay may need; every other record in the log is needed by a follower.

The last records are in memory, too, while the log has a follower (``log_tail``).

Knows nothing of kinds of followers: a consumer is the key of a cursor, whose bytes are its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from columnar.regions.log.change_record import Appended, ChangeRecord, Sequence, pack, pack_key, unpack, unpack_key
from columnar.regions.log.log_retention import META_SPACE, TRIMMED, LogRetention
from columnar.regions.log.log_tail import LogTail, LogTails
from columnar.storage.api import Batch, Store
from columnar.storage.layout import END_OF_COLUMN

LOG_SPACE: Final = "log"
EPOCH: Final = b"epoch"
CURSOR: Final = b"cursor/"
NUMBER: Final = b"number/"  # of the consumer's registration, u64; none where an earlier version began the cursor
TRIM_RECORDS: Final = 10_000  # of one call


EVERY: Final = 128
_SLACK: Final = 1_024  # dropped keys that stay in the list: removing one from its front moves the rest


class LogMarks:
    """Every EVERYth key of a part of a change log, in order: counts the records after a place.

    Pages, metrics, imports and merges request a lag amid the store's other work; reading each record would take the
    longer, the further a follower lags.

    Invariants:
        I1. Keys are added in ascending order, and removed from the lowest on (``drop``).
        I2. Every record at or above a key that ``count_after`` returns is in the log.
    """

    __slots__ = ("_first", "_keys", "_missing", "count")

    def __init__(self) -> None:
        self.count = 0  # records that were added
        self._keys: list[bytes] = []
        self._first = 0  # in ``_keys``: those before it are dropped
        self._missing = 0  # keys that were removed from ``_keys``

    def add_mark(self, key: bytes) -> None:
        """Add the key of a record above all earlier ones.  O(1), and memory for one key in EVERY records."""
        if self.count % EVERY == 0:
            self._keys.append(key)
        self.count += 1

    def drop(self, last: bytes) -> None:
        """Remove the keys of all records up to ``last``.  O(log)."""
        self._first = bisect_right(self._keys, last, self._first)
        if self._first > _SLACK:
            del self._keys[: self._first]
            self._missing, self._first = self._missing + self._first, 0

    def count_after(self, key: bytes) -> tuple[int, bytes | None]:
        """Return (count, mark): ``count`` records are at or above ``mark``, which is above ``key`` by EVERY at most.

        (0, None): no more than EVERY records are above ``key``.
        """
        at = bisect_right(self._keys, key, self._first)
        if at == len(self._keys):
            return 0, None
        return self.count - (self._missing + at) * EVERY, self._keys[at]


def cursors_in(store: Store) -> dict[str, bytes]:
    """The last saved state of each consumer of a region's log."""
    found = store.scan(META_SPACE, CURSOR, CURSOR[:-1] + b"0")
    return {key[len(CURSOR) :].decode(): value for key, value in found}


@dataclass(slots=True)
class _Kept:
    """Records that no consumer needs any more and that CHANGE_LOG keeps: those below ``to`` (a key)."""

    to: bytes = b""
    records: int = 0
    size_bytes: int = 0


class ChangeLog:
    def __init__(self, store: Store, origin: int, epoch: int) -> None:
        """``epoch``: above every earlier opening's, and in the store already (``begin_log``)."""
        self._store = store
        self.origin = origin
        self.epoch = epoch
        self.last_n = 0
        self.durable_n = 0
        self.last_logged: Sequence | None = None  # of this opening
        self.records = 0  # in the log; those of earlier openings as far as ``count_step`` has come
        self.size_bytes = 0
        self.retention = LogRetention(store)
        self._tail: LogTail | None = None  # where somebody follows the log
        self._cursor_names: frozenset[str] | None = None  # None: to be read
        self._counted_to = b""  # key: inherited records up to it are in ``records``
        self._is_counted_whole = False
        self._inherited_end = pack_key(Sequence(origin, epoch, 0))
        self._inherited = LogMarks()  # as far as counted
        self._own = LogMarks()
        self._kept = _Kept()
        self._trimmed_to = b""  # key: no record at or below it, so that tombstones are not walked again

    def next(self) -> Sequence:
        self.last_n += 1
        return Sequence(self.origin, self.epoch, self.last_n)

    @property
    def durable(self) -> Sequence:
        """The last sequence that consumers may see."""
        return Sequence(self.origin, self.epoch, self.durable_n)

    @property
    def written_to(self) -> Sequence:
        """Every record that is in the store stands at or below it."""
        return Sequence(self.origin, self.epoch, self.last_n)

    @property
    def last_to_wait_for(self) -> Sequence:
        """A sequence at or above every record of the log; a reader at the end of the log has passed it."""
        return self.last_logged or Sequence(self.origin, self.epoch, 0)

    @property
    def needed(self) -> tuple[int, int]:
        """Number and bytes of the records that a consumer has still to see; of earlier openings as far as counted."""
        return self.records - self._kept.records, self.size_bytes - self._kept.size_bytes

    def append(self, batch: Batch, sequence: Sequence, record: ChangeRecord) -> Appended:
        """Add the record to the batch of its cells (I1); ``written`` must follow when the batch is."""
        data = pack(record)
        batch.put(LOG_SPACE, pack_key(sequence), data)
        return sequence, record, len(data)

    def written(self, appended: list[Appended]) -> None:
        """Count the records: their batch is in the store."""
        self.last_logged = appended[-1][0]
        self.records += len(appended)
        tail = self._tail
        for sequence, record, packed_bytes in appended:
            self.size_bytes += packed_bytes
            self._own.add_mark(pack_key(sequence))
            if tail is not None:
                tail.append(sequence, record, packed_bytes)

    def begin_tail(self, tails: LogTails) -> None:
        """Keep the last records in memory from now on (``log_tail``)."""
        if self._tail is None:
            self._tail = LogTail(tails, self.written_to)

    def end_tail(self) -> None:
        if self._tail is not None:
            self._tail.clear()
            self._tail = None

    def read_records(self, after: Sequence | None) -> Iterator[tuple[Sequence, ChangeRecord]]:
        """Yield the durable records after ``after`` (None: from the oldest), in order."""
        tail = self._tail
        if tail is not None and after is not None and tail.covers(after):
            return tail.read_records(after, self.durable)
        return self._read_store(after)

    def _read_store(self, after: Sequence | None) -> Iterator[tuple[Sequence, ChangeRecord]]:
        start = pack_key(after) + END_OF_COLUMN if after is not None else b""
        last = pack_key(self.durable)
        for key, data in self._store.scan(LOG_SPACE, start, None):
            # Records of other origins were inherited whole: they are durable since the split.
            if key > last and unpack_key(key).origin == self.origin:
                return
            yield unpack_key(key), unpack(data)

    def cursors(self) -> dict[str, bytes]:
        """Return the last saved state of each consumer."""
        return cursors_in(self._store)

    def cursor(self, consumer: str) -> bytes | None:
        return self._store.get(META_SPACE, CURSOR + consumer.encode())

    def cursor_names(self) -> frozenset[str]:
        """Return the names of the consumers that have cursors.  O(1), but for the first call."""
        if self._cursor_names is None:
            self._cursor_names = frozenset(self.cursors())
        return self._cursor_names

    def record_at(self, sequence: Sequence) -> ChangeRecord | None:
        record = self._tail.find(sequence) if self._tail is not None else None
        if record is not None:
            return record
        data = self._store.get(LOG_SPACE, pack_key(sequence))
        return unpack(data) if data is not None else None

    def save_cursor(self, consumer: str, state: bytes) -> None:
        """Save the cursor, without an fsync: after a crash a consumer may see records again, never miss one."""
        batch = self._store.batch()
        batch.put(META_SPACE, CURSOR + consumer.encode(), state)
        self._store.write_batch(batch)
        if self._cursor_names is not None and consumer not in self._cursor_names:
            self._cursor_names = None

    def begin_cursor(self, consumer: str, state: bytes, number: int) -> None:
        """Save the first cursor of a consumer as ``save_cursor`` does, with the number of its registration."""
        batch = self._store.batch()
        batch.put(META_SPACE, CURSOR + consumer.encode(), state)
        batch.put(META_SPACE, NUMBER + consumer.encode(), number.to_bytes(8, "big"))
        self._store.write_batch(batch)
        self._cursor_names = None

    def rewind_cursor(self, consumer: str, state: bytes, marks: Mapping[bytes, bytes]) -> None:
        """Save the cursor as ``save_cursor`` does, with ``marks`` in ``meta``: a crash keeps both or neither."""
        batch = self._store.batch()
        batch.put(META_SPACE, CURSOR + consumer.encode(), state)
        for key, value in marks.items():
            batch.put(META_SPACE, key, value)
        self._store.write_batch(batch)
        self._cursor_names = None

    def number_of(self, consumer: str) -> int:
        """Return the number of the registration that began the cursor; 0: an earlier version did."""
        return int.from_bytes(self._store.get(META_SPACE, NUMBER + consumer.encode()) or b"", "big")

    def drop_cursor(self, consumer: str, *marks: bytes) -> None:
        """Forget the consumer and the ``marks`` that ``Region.log_records`` wrote for it."""
        batch = self._store.batch()
        for key in (CURSOR + consumer.encode(), NUMBER + consumer.encode(), *marks):
            batch.delete(META_SPACE, key)
        self._store.write_batch(batch)
        self._cursor_names = None

    def count_after(self, after: Sequence | None, limit: int) -> int:
        """Return the number of records after ``after``, at most ``limit``.

        Reads 2 * EVERY records (``LogMarks``) at most, and as many as it counts while ``count_step`` is not done.
        """
        tail = self._tail
        if tail is not None and after is not None and tail.covers(after):
            return min(limit, tail.count_after(after))
        key = pack_key(after) if after is not None else b""
        start = key + END_OF_COLUMN if key else b""
        count, stop = self._own.count_after(max(key, self._inherited_end))
        if key < self._inherited_end and self._is_counted_whole:
            inherited, place = self._inherited.count_after(key)
            count += inherited + self._count_records(start, place or self._inherited_end, limit - count - inherited)
            start = self._inherited_end
        return min(limit, count + self._count_records(start, stop, limit - count))

    def _count_records(self, start: bytes, stop: bytes | None, most: int) -> int:
        return sum(1 for _ in islice(self._store.scan(LOG_SPACE, start, stop), most)) if most > 0 else 0

    def before(self, time_ms: int) -> Sequence | None:
        """Return a place before every record written since that time, after which the log is whole, or None."""
        return next((at for ms, at in reversed(self.retention.marks()) if ms <= time_ms and self._is_whole(at)), None)

    def times(self) -> list[int]:
        """Return the times of its marks, ascending."""
        return [ms for ms, _ in self.retention.marks()]

    def earliest_whole_time(self) -> int | None:
        """Return the earliest time for which ``before`` finds a place, or None."""
        return next((ms for ms, at in self.retention.marks() if self._is_whole(at)), None)

    def vouch(self, now_ms: int, keep_s: int) -> None:
        """Mark an empty log as whole from now on, whatever it contained before."""
        if self.earliest_whole_time() is None and not any(
            True for _ in islice(self._store.scan(LOG_SPACE, b"", None), 1)
        ):
            batch = self._store.batch()
            batch.put(META_SPACE, TRIMMED, pack_key(self.written_to))
            self._store.write_batch(batch)
            self.retention.note(self.written_to, now_ms, keep_s)

    def _is_whole(self, after: Sequence) -> bool:
        """Tell whether no record after ``after`` was removed: ``trimmed`` says so, or an older record is there."""
        trimmed = self._store.get(META_SPACE, TRIMMED)
        if trimmed is not None:
            return trimmed <= pack_key(after)
        return any(True for _ in islice(self._store.scan(LOG_SPACE, b"", pack_key(after) + END_OF_COLUMN), 1))

    def last_record(self) -> bytes | None:
        """Return the last record of this region's own, of any opening; inherited records are not read."""
        start = pack_key(Sequence(self.origin, 0, 0))
        return next((data for _, data in self._store.scan_reverse(LOG_SPACE, start, None)), None)

    def keep(self, below: Sequence) -> bool:
        """Mark records below ``below`` as needed by no consumer (I5).

        Reads TRIM_RECORDS at most; True: there are more.
        """
        kept, end, count = self._kept, pack_key(below), 0
        counted_end = self._counted_to + b"\x00" if self._counted_to else b""
        for start, stop in ((kept.to, min(end, counted_end)), (max(kept.to, self._inherited_end), end)):
            if start >= stop:
                continue
            for key, data in islice(self._store.scan(LOG_SPACE, start, stop), TRIM_RECORDS - count):
                kept.records, kept.size_bytes, kept.to = kept.records + 1, kept.size_bytes + len(data), key + b"\x00"
                count += 1
            if count >= TRIM_RECORDS:
                return True
        kept.to = max(kept.to, end)
        if self._tail is not None:
            self._tail.trim(Sequence(below.origin, below.epoch, below.n - 1))
        return False

    def keep_all(self) -> None:
        """Mark every record of the log as needed by no consumer.  O(1)."""
        self._kept = _Kept(pack_key(self.written_to) + b"\x00", self.records, self.size_bytes)

    def trim(self, below: Sequence, mark: bytes, highest: int) -> int:
        """Remove records below ``below``, at most TRIM_RECORDS; the caller upholds I3.  Returns how many.

        The same batch writes ``highest`` to ``meta`` under ``mark``: at or above all stamps of the removed records.
        """
        found = islice(self._store.scan(LOG_SPACE, self._trimmed_to, pack_key(below)), TRIM_RECORDS)
        return self._remove([(key, len(data)) for key, data in found], mark, highest)

    def trim_kept(self, below: Sequence, old: Sequence | None, most_bytes: int, mark: bytes, highest: int) -> int:
        """As ``trim``, for kept records: those below ``old``, and the oldest while more than ``most_bytes`` stay.

        ``below``: a replay still reads the kept records from there on.
        """
        end, stop = pack_key(old) if old is not None else b"", min(self._kept.to, pack_key(below))
        if self._trimmed_to >= stop:
            return 0
        doomed: list[tuple[bytes, int]] = []
        left = self.size_bytes
        for key, data in islice(self._store.scan(LOG_SPACE, self._trimmed_to, stop), TRIM_RECORDS):
            if key >= end and left <= most_bytes:
                break
            doomed.append((key, len(data)))
            left -= len(data) if self._is_counted(key) else 0
        return self._remove(doomed, mark, highest)

    def _remove(self, doomed: list[tuple[bytes, int]], mark: bytes, highest: int) -> int:
        """Remove all records up to the last of ``doomed`` (keys and sizes).  Returns how many."""
        if not doomed:
            return 0
        end, kept = doomed[-1][0] + END_OF_COLUMN, self._kept
        batch = self._store.batch()
        batch.delete_range(LOG_SPACE, self._trimmed_to, end)
        batch.put(META_SPACE, mark, highest.to_bytes(8, "big"))
        batch.put(META_SPACE, TRIMMED, doomed[-1][0])
        self._store.write_batch(batch)
        self._trimmed_to = end
        self._inherited.drop(doomed[-1][0])
        self._own.drop(doomed[-1][0])
        if self._tail is not None:
            self._tail.trim(unpack_key(doomed[-1][0]))
        for key, size in doomed:
            if self._is_counted(key):
                self.records, self.size_bytes = self.records - 1, self.size_bytes - size
                if key < kept.to:
                    kept.records, kept.size_bytes = kept.records - 1, kept.size_bytes - size
        return len(doomed)

    def _is_counted(self, key: bytes) -> bool:
        return key <= self._counted_to or key > self._inherited_end

    def count_step(self, limit: int) -> bool:
        """Count up to ``limit`` records of earlier openings into ``records``; False when all are."""
        start = self._counted_to + END_OF_COLUMN if self._counted_to else b""
        seen = 0
        for key, data in islice(self._store.scan(LOG_SPACE, start, self._inherited_end), limit):
            self._counted_to = key
            self._inherited.add_mark(key)
            self.records, self.size_bytes, seen = self.records + 1, self.size_bytes + len(data), seen + 1
            if key < self._kept.to:
                self._kept.records, self._kept.size_bytes = self._kept.records + 1, self._kept.size_bytes + len(data)
        self._is_counted_whole = seen < limit
        return not self._is_counted_whole


def begin_log(store: Store, origin: int) -> ChangeLog:
    """Return the log of a region that is being opened: reads the epoch of the last opening, writes the next one (I2).

    Without an fsync: every durable write of the new epoch follows the epoch in the same log.
    """
    epoch = int.from_bytes(store.get(META_SPACE, EPOCH) or b"", "big") + 1
    batch = store.batch()
    batch.put(META_SPACE, EPOCH, epoch.to_bytes(4, "big"))
    store.write_batch(batch)
    return ChangeLog(store, origin, epoch)
