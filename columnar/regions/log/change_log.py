"""The change log of one region: written in the batch of the cells, read by followers from their cursors.

The log lives in the region's own store: the space ``log`` has the records, by sequence, and the space ``meta`` has the
cursors (``log_cursors``) and the marks of time (``log_retention``).  Invariants:
    I1. A record is in the same batch as the cells that it describes (design D6): never one without the other.
    I2. Within one opening n rises by one with each mutation of the region; each opening has a new
        epoch, so sequences of one origin only ever grow.
    I3. A record is removed only when every follower that promises delivery has passed it.  If the table has
        CHANGE_LOG, the record stays that long, too, unless the log has more than CHANGE_LOG_BYTES.
    I4. Followers see a record only after an fsync that covers it (``durable``).
    I5. Records that no follower needs any more, and only a replay or a change stream may read, are marked as kept
        (``log_counts``).

The last records are in memory, too, while the log has a follower (``log_tail``).

Knows nothing of kinds of followers: a consumer is the key of a cursor, whose bytes only the consumer can interpret.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from columnar.regions.log.change_record import Appended, ChangeRecord, Sequence, pack, pack_key, unpack, unpack_key
from columnar.regions.log.log_counts import LogCounts
from columnar.regions.log.log_coverage import LogCoverage
from columnar.regions.log.log_cursors import LogCursors
from columnar.regions.log.log_retention import LOG_SPACE, META_SPACE, TRIMMED, LogRetention
from columnar.regions.log.log_tail import LogTail, LogTails
from columnar.regions.log.lost_changes import END, EPOCH, LostSpan, spans_in
from columnar.storage.api import Batch, Store
from columnar.storage.layout import END_OF_COLUMN

NONE_LEFT: Final = Sequence((1 << 64) - 1, (1 << 32) - 1, (1 << 64) - 1)  # above every change
TRIM_RECORDS: Final = 10_000  # at most in one call
_CELL_EPOCHS: Final = (1 << 22) - 1  # a cell has the low bits of the epoch above 40 bits of n; nothing compares them


class ChangeLog:
    def __init__(self, store: Store, origin: int, epoch: int) -> None:
        """``epoch`` is above the epoch of every earlier opening, and already in the store (``begin_log``)."""
        self._store = store
        self.origin = origin
        self.epoch = epoch
        self.cell_epoch = (epoch & _CELL_EPOCHS) << 40  # with n the sequence that cells have (``storage.layout``)
        self.last_n = 0
        self.durable_n = 0
        self.last_logged: Sequence | None = None  # of this opening
        self.retention = LogRetention(store)
        self.coverage = LogCoverage(store)
        self.cursors = LogCursors(store)
        self.counts = LogCounts(store, pack_key(Sequence(origin, epoch, 0)))
        self._tail: LogTail | None = None  # while the log has a follower
        self._lost: tuple[LostSpan, ...] | None = None  # None: not read yet
        self._trimmed_to = b""  # key: scans begin here, above the tombstones of trimmed records

    def next(self) -> Sequence:
        self.last_n += 1
        return Sequence(self.origin, self.epoch, self.last_n)

    @property
    def durable(self) -> Sequence:
        """The last sequence that consumers may see."""
        return Sequence(self.origin, self.epoch, self.durable_n)

    @property
    def written_to(self) -> Sequence:
        """A sequence at or above every record in the store."""
        return Sequence(self.origin, self.epoch, self.last_n)

    @property
    def last_to_wait_for(self) -> Sequence:
        """A sequence at or above every record of the log; a reader at the end of the log has passed it."""
        return self.last_logged or Sequence(self.origin, self.epoch, 0)

    @property
    def lost_spans(self) -> tuple[LostSpan, ...]:
        """The sequences that only a former timeline of the store gave.  Raises DamagedData."""
        if self._lost is None:
            self._lost = spans_in(self._store)
        return self._lost

    def is_lost(self, sequence: Sequence) -> bool:
        """Return whether only a former timeline of the store gave the sequence (``lost_changes``)."""
        return any(span.has(sequence) for span in self.lost_spans)

    def note_end(self) -> None:
        """Write the log's end to the store before it is copied, if no record tells the end."""
        if self.written_to > self.last_to_wait_for:
            batch = self._store.batch()
            batch.put(META_SPACE, END, pack_key(self.written_to))
            self._store.write_batch(batch)

    def note_durable(self, n: int) -> None:
        """Note that records of this opening up to ``n`` are durable."""
        self.durable_n = n

    def append(self, batch: Batch, sequence: Sequence, record: ChangeRecord) -> Appended:
        """Add the record to the batch of its cells (I1).  Call ``written`` when the batch is in the store."""
        data = pack(record)
        batch.put(LOG_SPACE, pack_key(sequence), data)
        return sequence, record, len(data)

    def written(self, appended: list[Appended]) -> None:
        """Count the records after their batch was written to the store."""
        self.last_logged = appended[-1][0]
        counts, tail = self.counts, self._tail
        for sequence, record, packed_bytes in appended:
            counts.add_record(pack_key(sequence), packed_bytes)
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
        """Yield the durable records after ``after`` in order; if ``after`` is None, from the oldest on."""
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

    def first_from(self, sequence: Sequence) -> Sequence:
        """Return the oldest logged change from ``sequence`` on, or NONE_LEFT."""
        start = max(pack_key(sequence), self._trimmed_to)
        found = next(iter(self._store.scan(LOG_SPACE, start, None)), None)
        return NONE_LEFT if found is None else unpack_key(found[0])

    def record_at(self, sequence: Sequence) -> ChangeRecord | None:
        record = self._tail.find(sequence) if self._tail is not None else None
        if record is not None:
            return record
        data = self._store.get(LOG_SPACE, pack_key(sequence))
        return unpack(data) if data is not None else None

    def count_after(self, after: Sequence | None, limit: int) -> int:
        """Return the number of records after ``after``, or of all records if it is None; at most ``limit``.

        The cost is that of ``LogCounts.count_after``.
        """
        tail = self._tail
        if tail is not None and after is not None and tail.covers(after):
            return min(limit, tail.count_after(after))
        return self.counts.count_after(pack_key(after) if after is not None else b"", limit)

    def last_record(self) -> bytes | None:
        """Return the last record that this region wrote, in any opening; inherited records are not read."""
        start = pack_key(Sequence(self.origin, 0, 0))
        return next((data for _, data in self._store.scan_reverse(LOG_SPACE, start, None)), None)

    def keep(self, below: Sequence) -> bool:
        """Mark records below ``below`` as needed by no consumer (I5).

        Reads at most TRIM_RECORDS records.  Returns True if more may be left.
        """
        more = self.counts.keep_below(pack_key(below), TRIM_RECORDS)
        if not more and self._tail is not None:
            self._tail.trim(Sequence(below.origin, below.epoch, below.n - 1))
        return more

    def keep_all(self) -> None:
        """Mark every record of the log as needed by no consumer.  O(1)."""
        self.counts.keep_all(pack_key(self.written_to) + b"\x00")

    def trim(self, below: Sequence, mark: bytes, highest: int) -> int:
        """Remove records below ``below``, at most TRIM_RECORDS; the caller upholds I3.  Returns the number removed.

        The same batch writes ``highest``, which is at or above all stamps of the removed records, to ``meta`` under
        ``mark``.
        """
        found = islice(self._store.scan(LOG_SPACE, self._trimmed_to, pack_key(below)), TRIM_RECORDS)
        return self._remove([(key, len(data)) for key, data in found], mark, highest)

    def trim_kept(self, below: Sequence, old: Sequence | None, most_bytes: int, mark: bytes, highest: int) -> int:
        """Remove kept records as ``trim`` does: all below ``old``, and the oldest while more than ``most_bytes`` stay.

        A replay still reads the kept records from ``below`` on.
        """
        end, stop = pack_key(old) if old is not None else b"", min(self.counts.kept_end, pack_key(below))
        if self._trimmed_to >= stop:
            return 0
        doomed: list[tuple[bytes, int]] = []
        left = self.counts.size_bytes
        for key, data in islice(self._store.scan(LOG_SPACE, self._trimmed_to, stop), TRIM_RECORDS):
            if key >= end and left <= most_bytes:
                break
            doomed.append((key, len(data)))
            left -= len(data) if self.counts.is_counted(key) else 0
        return self._remove(doomed, mark, highest)

    def end_replays(self, after: Sequence) -> None:
        """Note that no reader can make the rows from the log alone, unless it has read up to ``after`` or further."""
        batch = self._store.batch()
        self.coverage.raise_to(batch, after)
        if batch.size_bytes():
            self._store.write_batch(batch)
            self.retention.forget_marks()

    def _remove(self, doomed: list[tuple[bytes, int]], mark: bytes, highest: int) -> int:
        """Remove all records up to the last of ``doomed`` (keys and sizes).  Returns the number removed."""
        if not doomed:
            return 0
        end = doomed[-1][0] + END_OF_COLUMN
        batch = self._store.batch()
        batch.delete_range(LOG_SPACE, self._trimmed_to, end)
        batch.put(META_SPACE, mark, highest.to_bytes(8, "big"))
        batch.put(META_SPACE, TRIMMED, doomed[-1][0])
        self.coverage.raise_to(batch, unpack_key(doomed[-1][0]))
        self._store.write_batch(batch)
        self._trimmed_to = end
        self.counts.remove_records(doomed)
        if self._tail is not None:
            self._tail.trim(unpack_key(doomed[-1][0]))
        return len(doomed)


def begin_log(store: Store, origin: int) -> ChangeLog:
    """Return the log of a region that is being opened: reads the epoch of the last opening, writes the next one (I2).

    No fsync is needed: every durable write of the new epoch follows the epoch itself in the store's WAL.
    """
    epoch = int.from_bytes(store.get(META_SPACE, EPOCH) or b"", "big") + 1
    batch = store.batch()
    batch.put(META_SPACE, EPOCH, epoch.to_bytes(4, "big"))
    store.write_batch(batch)
    return ChangeLog(store, origin, epoch)
