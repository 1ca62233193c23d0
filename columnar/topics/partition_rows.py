"""Reads the row of one partition in its region: by ranges of columns, never the row as a whole.  Owned by the loop.

Cost: a get or a seek for each call, however many batches the row has; a deleted batch is not walked over, because
readers begin at the first offset that is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from columnar.errors import DamagedData
from columnar.model.read import ReadSpec, projection
from columnar.model.record_batch import BatchFault, BatchHead, read_head, records_of
from columnar.model.topic import BATCHES, HEADS, PRODUCERS, FoundOffset, TopicError
from columnar.regions.read.region_reads import get_column, get_slice
from columnar.regions.read.row_reader import newest_seen
from columnar.regions.region import Region
from columnar.storage.layout import cell_key, range_start, row_end, split_cell_key
from columnar.topics import partition_bytes
from columnar.topics.partition_bytes import MARK_BYTES
from columnar.topics.producer_state import Producer, unpack_producer
from columnar.topics.retention import is_due


class BatchCell(NamedTuple):
    offset: int
    data: bytes
    append_ms: int


class PartitionRows:
    def __init__(self, region: Region, key: bytes) -> None:
        self._region = region
        self._key = key
        self._spec = ReadSpec(projection(region.table, ()))

    def head(self, qualifier: bytes) -> bytes | None:
        found = get_column(self._region, self._key, HEADS, qualifier, self._spec)
        return found[0][0] if found else None

    def producers(self) -> dict[int, Producer]:
        skip = len(HEADS) + 1
        first = partition_bytes.PRODUCER
        cells = get_slice(
            self._region, self._key, HEADS, first, partition_bytes.MARK, 2 * PRODUCERS, reverse=False
        )  # fmt: skip
        return {partition_bytes.producer_of(column[skip:]): unpack_producer(value) for column, value, _ in cells}

    def mark_before(self, time_ms: int) -> int | None:
        """Return the offset of the last mark of a time below ``time_ms``."""
        return self._mark(partition_bytes.MARK, partition_bytes.mark_qualifier(time_ms), reverse=True)

    def mark_from(self, time_ms: int) -> int | None:
        """Return the offset of the first mark of ``time_ms`` or later."""
        return self._mark(partition_bytes.mark_qualifier(time_ms), partition_bytes.AFTER_MARKS, reverse=False)

    def _mark(self, start: bytes, stop: bytes, *, reverse: bool) -> int | None:
        cells = get_slice(self._region, self._key, HEADS, start, stop, 1, reverse=reverse)
        return partition_bytes.offset_of(cells[0][1]) if cells else None

    def marks(self, most: int) -> list[tuple[bytes, int]]:
        """Return qualifier and offset of the first marks of time."""
        stop = partition_bytes.AFTER_MARKS
        cells = get_slice(self._region, self._key, HEADS, partition_bytes.MARK, stop, most, reverse=False)
        return [(column[len(HEADS) + 1 :], partition_bytes.offset_of(value)) for column, value, _ in cells]

    def base_before(self, offset: int) -> int | None:
        """Return the first offset of the last batch that begins at ``offset`` or before."""
        stop = partition_bytes.batch_qualifier(offset + 1)
        cells = get_slice(self._region, self._key, BATCHES, b"", stop, 1, reverse=True)
        return partition_bytes.offset_of(cells[0][0][len(BATCHES) + 1 :]) if cells else None

    def batches(self, start: int) -> Iterator[BatchCell]:
        """Yield the batches from the one that begins at ``start`` or later; no write may come between two."""
        region, key = self._region, self._key
        region.count_read()
        view, now_ms = region.views[BATCHES], region.now_ms
        low = cell_key(key, partition_bytes.batch_qualifier(start))
        for name, raw in region.store.scan(view.space, low, row_end(key)):
            qualifier = split_cell_key(name)[1]
            seen = newest_seen(region.store, view, key, qualifier, raw, now_ms)
            if seen is not None:
                yield BatchCell(partition_bytes.offset_of(qualifier), *seen)

    def batches_with(self, offset: int) -> Iterator[BatchCell]:
        """Return the batches from the one that has ``offset``."""
        cells = self.batches(offset)
        first = next(cells, None)
        if first is not None and first.offset == offset:  # as nearly always: readers go from batch to batch
            return chain((first,), cells)
        base = self.base_before(offset)
        return self.batches(offset if base is None else base)

    def find_time(self, timestamp_ms: int, first: int, end: int) -> FoundOffset:
        """Return the first offset from ``first`` and below ``end`` whose record has this time or a later one.

        The batches between two marks of time, MARK_BYTES of them, are read; behind them no batch is later than the
        first mark, until the second one.
        """
        before = self.mark_before(max(0, timestamp_ms))
        size = 0
        for cell in self.batches(max(before or 0, first)):
            if size >= MARK_BYTES or cell.offset >= end:
                break
            if (found := _first_since(cell, timestamp_ms)) is not None:
                return found
            size += len(cell.data)
        mark = self.mark_from(max(0, timestamp_ms))
        marked = next(self.batches(mark), None) if mark is not None else None
        if marked is not None and marked.offset < end and (found := _first_since(marked, timestamp_ms)) is not None:
            return found
        return FoundOffset(TopicError.NONE, -1, -1)

    def pushed(self, producer: bytes) -> bytes | None:
        """Return the last sequence that was appended for a producer within the store."""
        found = self.head(partition_bytes.pushed_qualifier(producer))
        return None if found is None else partition_bytes.unpack_pushed(found)

    def least_recent_pushed(self, most: int) -> list[bytes]:
        """Return the qualifiers of the producers within the store that are forgotten so that ``most`` - 1 are left."""
        start, stop = partition_bytes.PUSHED, partition_bytes.AFTER_PUSHED
        cells = get_slice(self._region, self._key, HEADS, start, stop, 2 * most, reverse=False)
        surplus = sorted((stamp, column) for column, _, stamp in cells)[: max(0, len(cells) - most + 1)]
        return [column[len(HEADS) + 1 :] for _, column in surplus]

    def is_retention_due(self) -> bool:
        """Tell whether retention may delete batches of the partition, if there is one."""
        settings, tail = self.head(partition_bytes.SETTINGS), self.head(partition_bytes.TAIL)
        if settings is None or tail is None:
            return False
        known = partition_bytes.unpack_tail(tail)
        oldest = next(self.batches(known.first), None)
        if oldest is None:
            return False
        now_ms = self._region.now_ms
        return is_due(partition_bytes.unpack_settings(settings), known.size_bytes, oldest.append_ms, now_ms)


def first_row(region: Region, start: bytes) -> bytes | None:
    """Return the first row of the region from ``start`` on that has a head, without a look at its other cells."""
    for name, _ in region.store.scan(region.views[HEADS].space, range_start(start), None):
        return split_cell_key(name)[0]
    return None


def head_of(cell: BatchCell) -> BatchHead:
    """Return the head of a stored batch.  Raises DamagedData."""
    head = read_head(cell.data)
    if isinstance(head, BatchFault):
        raise DamagedData(f"the batch of a topic at offset {cell.offset}: {head.value}")
    return head


def _first_since(cell: BatchCell, timestamp_ms: int) -> FoundOffset | None:
    head = head_of(cell)
    if head.max_timestamp_ms < timestamp_ms:
        return None
    if head.is_compressed:
        return FoundOffset(TopicError.NONE, head.base_offset, head.base_timestamp_ms)
    for record in records_of(cell.data, head):
        if record.timestamp_ms >= timestamp_ms:
            return FoundOffset(TopicError.NONE, record.offset, record.timestamp_ms)
    return None
