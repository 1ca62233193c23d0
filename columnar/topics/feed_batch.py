"""(pure) A batch of a feed: records of changes or of rows, named so that a topic takes each of them once.

    producer of changes   'f' feed:u64 region:u64 origin:u64         sequence   epoch:u32 n:u64 index:u64
    producer of rows      's' feed:u64 region:u64 origin:u64                                            big-endian

``index`` counts the records of a change: a delete has a tombstone behind it.  The index of a row is a number that rises
(``RowNumbers``), as rows may be read again with no change between.

The key of a record is the row.  Its value is the message as JSON, null for a tombstone; the header ``sequence`` is the
token of the change, or of the last change before the row was read.

Knows nothing of followers and topics.
"""

from __future__ import annotations

import json
from collections.abc import Sequence as Several
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import Any, Final

from columnar.cluster.peer_requests import PushedRecord
from columnar.errors import FeedError, abbreviate
from columnar.model.topic import TOPIC_BATCH_BYTES
from columnar.regions.log.change_record import Sequence
from columnar.topics.feed_progress import FeedProgress
from columnar.topics.pushed_records import size_of

FEED_CHANGES: Final = 500  # of one batch
FEED_BYTES: Final = 1024 * 1024  # of one batch; its last change may exceed it
_MOST_BYTES: Final = TOPIC_BATCH_BYTES - 1024  # of a record
_PRODUCER: Final = Struct(">cQQQ")
_SEQUENCE: Final = Struct(">IQQ")
_HEADER: Final = "sequence"

Part = tuple[bytes, tuple[PushedRecord, ...]]  # a producer and its records, in order

_NUMBERS_BITS: Final = 20  # so many rows are numbered in a millisecond before numbers run ahead of the clock


class RowNumbers:
    """Numbers of rows, which rise, also above those of an earlier process, which had this epoch before a power cut."""

    def __init__(self) -> None:
        self._last = 0

    def next_number(self, now_ms: int) -> int:
        self._last = max(self._last + 1, now_ms << _NUMBERS_BITS)
        return self._last


_row_numbers: Final = RowNumbers()


class FeedBatch:
    def __init__(self, feed: int, region: int, before: FeedProgress) -> None:
        """``feed`` is the feed's number, ``region`` the region's id, ``before`` the progress without this batch."""
        self.before = before  # constant
        self._feed = feed
        self._region = region
        self._records: list[tuple[bytes, PushedRecord]] = []
        self.taken: list[Sequence] = []  # the changes, also those without a record
        self.rows = 0
        self.size_bytes = 0
        self._has_ended = False

    @property
    def is_full(self) -> bool:
        return self._has_ended or len(self.taken) >= FEED_CHANGES or self.size_bytes >= FEED_BYTES

    def end_batch(self) -> None:
        """Take nothing more: the batch is sent as it is."""
        self._has_ended = True

    @property
    def is_empty(self) -> bool:
        return not self.taken and not self.rows

    def add_change(self, sequence: Sequence, row: bytes, values: Several[Any], stamp_ms: int) -> None:
        """Add a change with its messages' values.  Raises FeedError, and then the change is not in the batch."""
        records = [
            self._record(sequence, index, row, value, stamp_ms) for index, value in enumerate(values)
        ]  # fmt: skip
        producer = _PRODUCER.pack(b"f", self._feed, self._region, sequence.origin)
        self._records += [(producer, record) for record in records]
        self.taken.append(sequence)
        self.size_bytes += sum(map(size_of, records))

    def add_row(self, at: Sequence, row: bytes, value: Any, now_ms: int) -> None:
        """Add a row of the snapshot, read as of ``at``.  Raises FeedError."""
        record = self._record(at, _row_numbers.next_number(now_ms), row, value, now_ms)
        self._records.append((_PRODUCER.pack(b"s", self._feed, self._region, at.origin), record))
        self.rows += 1
        self.size_bytes += size_of(record)

    def _record(self, sequence: Sequence, index: int, row: bytes, value: Any, stamp_ms: int) -> PushedRecord:
        body = None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        name = _SEQUENCE.pack(sequence.epoch, sequence.n, index)
        record = PushedRecord(name, row, body, ((_HEADER, sequence.token.encode()),), stamp_ms)
        if size_of(record) > _MOST_BYTES:
            raise FeedError(
                f"the message of row {abbreviate(row)} has {size_of(record)} bytes, and a topic takes {_MOST_BYTES}: "
                "drop the feed, and add it with fewer columns"
            )
        return record

    def producer_parts(self) -> list[Part]:
        """Return the records by producer, in the order in which they are to be appended."""
        return [
            (producer, tuple([record for _, record in group]))
            for producer, group in groupby(self._records, key=itemgetter(0))
        ]
