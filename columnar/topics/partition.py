"""A partition of a topic, at the server that owns its row: appends batches, and reads them.

    append     batch, tail, mark of time and the producer's last batches: one mutation, acknowledged after its fsync
    read       whole batches, up to the last one that is on disk
    retention  deletes the oldest batches in bounded steps, and moves the first offset

The state that appends need is in memory, made of the row when a call first needs it, and forgotten when the region
closes; nothing is lost with it.

Invariants:
    I1. Offsets have no gap: each batch begins where the one before it ended.
    I2. Readers see batches after their fsync only.
    I3. A change in memory comes after the mutation was taken by the store.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from columnar.cluster.peer_requests import PushedRecord
from columnar.model.mutation import Delete, Operation, Put, RowMutation
from columnar.model.record_batch import BatchFault, BatchHead, checked_heads, placed
from columnar.model.topic import (
    BATCHES,
    EARLIEST,
    FETCH_BYTES,
    HEADS,
    LATEST,
    TOPIC_BATCH_BYTES,
    Fetched,
    FoundOffset,
    PartitionState,
    Produced,
    TopicError,
    TopicSettings,
    Waited,
)
from columnar.regions.region import Region
from columnar.regions.write.applied import Applied
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.topics import partition_bytes
from columnar.topics.partition_bytes import Tail
from columnar.topics.partition_rows import BatchCell, PartitionRows, head_of
from columnar.topics.producer_state import Producer, ProducerStates, Repeated, appended, judge, pack_producer
from columnar.topics.pushed_records import PUSH_PRODUCERS, batches_after
from columnar.topics.retention import RETENTION_BATCHES, RETENTION_BYTES, StoredBatch, batches_to_delete, is_due

FETCH_BATCHES: Final = 1_000  # of one reply, so that small ones hold the loop for some milliseconds at most
PARTITION_BYTES: Final = 4_000  # of memory, without producers
PRODUCER_BYTES: Final = 1_500  # of memory, with its last batches

_FAULTS: Final = {
    BatchFault.SHORT: TopicError.CORRUPT_MESSAGE,
    BatchFault.CHECKSUM: TopicError.CORRUPT_MESSAGE,
    BatchFault.OLD: TopicError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    BatchFault.WRONG: TopicError.INVALID_RECORD,
}


class _Draft:
    """The mutation that appends the batches of a call, and the state behind it."""

    def __init__(self, tail: Tail) -> None:
        self.tail = tail
        self.operations: list[Operation] = []
        self.producers: dict[int, Producer] = {}
        self.first: tuple[int, int] | None = None  # offset and time of the answer

    def add_batch(self, data: bytes, head: BatchHead, now_ms: int) -> None:
        offset = self.tail.next
        self.tail, mark = self.tail.with_batch(head.records, head.size_bytes, now_ms, head.max_timestamp_ms)
        self.operations.append(Put(BATCHES, partition_bytes.batch_qualifier(offset), placed(data, head, offset)))
        if mark is not None:
            value = partition_bytes.pack_offset(offset)
            self.operations.append(Put(HEADS, partition_bytes.mark_qualifier(mark), value))
        self.note_answer(offset, now_ms)

    def note_answer(self, offset: int, append_ms: int) -> None:
        """Note where a batch is; the answer to the call names the first one's place."""
        self.first = self.first or (offset, append_ms)


class Partition:
    def __init__(
        self,
        region: Region,
        key: bytes,
        acknowledge: Callable[[Region, Applied], Any],
        on_change: Callable[[], None],
    ) -> None:
        """``on_change`` is called when readers can see more, or the partition is dropped.

        ``acknowledge`` returns the future for which the answer to a write waits, or None."""
        self.region = region
        self.key = key
        self._acknowledge = acknowledge
        self._on_change = on_change
        self._rows = PartitionRows(region, key)
        self._settings: TopicSettings | None = None  # None: there is no such partition
        self._tail = Tail()
        self._producers = ProducerStates()
        self._high_watermark = 0
        self._oldest_ms = 0  # when the oldest batch was appended
        self._pending = 0  # appends whose fsync is under way
        self._is_broken = False
        self.appended = 0  # records, since this object was made

    @property
    def size_bytes(self) -> int:
        """The memory of the partition, about."""
        return PARTITION_BYTES + PRODUCER_BYTES * len(self._producers)

    @property
    def is_usable(self) -> bool:
        return self.region.is_open and not self._is_broken

    @property
    def is_idle(self) -> bool:
        return not self._pending

    async def load_rows(self) -> None:
        """Read what the partition's row says, when all of it is on disk."""
        barrier = self.region.syncs.barrier(self.key)
        if barrier is not None:
            await asyncio.shield(barrier)
        if not self.region.is_open:
            return
        settings = self._rows.head(partition_bytes.SETTINGS)
        self._settings = None if settings is None else partition_bytes.unpack_settings(settings)
        tail = self._rows.head(partition_bytes.TAIL)
        if tail is not None:
            self._tail = partition_bytes.unpack_tail(tail)
        self._producers.load_producers(self._rows.producers())
        self._high_watermark = self._tail.next
        self._note_oldest()

    def _note_oldest(self) -> None:
        oldest = next(self._rows.batches(self._tail.first), None)
        self._oldest_ms = oldest.append_ms if oldest is not None else 0

    # --- appends -----------------------------------------------------------------------------------------

    def produce(self, data: bytes) -> tuple[Produced, Any]:
        """Append batches; return the answer, and the future of the fsync for which it waits."""
        self.region.check_writable()
        if self._settings is None:
            return Produced(TopicError.UNKNOWN_TOPIC_OR_PARTITION), None
        heads = checked_heads(data)
        if isinstance(heads, BatchFault):
            return self._refused(_FAULTS[heads]), None
        draft = self._draft(data, heads)
        if isinstance(draft, TopicError):
            return self._refused(draft), None
        assert draft.first is not None, "at least one batch"
        answer = Produced(TopicError.NONE, *draft.first, self._tail.first)
        if not draft.operations:  # the first one may be on its way to the disk
            return answer, self.region.syncs.barrier(self.key)
        return answer, self._append(draft)

    def push(self, producer: bytes, records: Sequence[PushedRecord]) -> tuple[TopicError, Any]:
        """Append the records behind the last one of a producer within the store, which are in order.

        Returns an error, and the future of the fsync for which the answer waits.
        """
        self.region.check_writable()
        if self._settings is None:
            return TopicError.UNKNOWN_TOPIC_OR_PARTITION, None
        last = self._rows.pushed(producer)
        batches = batches_after(last, records)
        if isinstance(batches, TopicError):
            return batches, None
        if not batches:  # the last one may be on its way to the disk
            return TopicError.NONE, self.region.syncs.barrier(self.key)
        draft, now_ms = _Draft(self._tail), self.region.now_ms
        for data in batches:
            draft.add_batch(data, head_of(BatchCell(0, data, now_ms)), now_ms)
        if last is None:
            forgotten = self._rows.least_recent_pushed(PUSH_PRODUCERS)
            draft.operations.extend([Delete(HEADS, qualifier) for qualifier in forgotten])
        pushed = partition_bytes.pack_pushed(records[-1].sequence)
        draft.operations.append(Put(HEADS, partition_bytes.pushed_qualifier(producer), pushed))
        return TopicError.NONE, self._append(draft)

    def _refused(self, error: TopicError) -> Produced:
        return Produced(error, log_start=self._tail.first)

    def _draft(self, data: bytes, heads: list[BatchHead]) -> _Draft | TopicError:
        draft, now_ms = _Draft(self._tail), self.region.now_ms
        for head in heads:
            if head.size_bytes > TOPIC_BATCH_BYTES:
                return TopicError.MESSAGE_TOO_LARGE
            if head.producer < 0:
                draft.add_batch(data, head, now_ms)
                continue
            producer = draft.producers.get(head.producer) or self._producers.find_producer(head.producer)
            verdict = judge(producer, head)
            if isinstance(verdict, TopicError):
                return verdict
            if isinstance(verdict, Repeated):
                draft.note_answer(verdict.offset, verdict.append_ms)
                continue
            draft.producers[head.producer] = appended(producer, head, draft.tail.next, now_ms)
            draft.add_batch(data, head, now_ms)
        return draft

    def _append(self, draft: _Draft) -> Any:
        forgotten = self._producers.forgotten_by(draft.producers)
        operations = draft.operations
        for number, producer in draft.producers.items():
            operations.append(Put(HEADS, partition_bytes.producer_qualifier(number), pack_producer(producer)))
        operations += [Delete(HEADS, partition_bytes.producer_qualifier(number)) for number in forgotten]
        operations.append(Put(HEADS, partition_bytes.TAIL, partition_bytes.pack_tail(draft.tail)))
        waiting = self._write(operations)
        if self._tail.size_bytes == 0:
            self._oldest_ms = draft.tail.append_ms
        self.appended += draft.tail.next - self._tail.next
        self._tail = draft.tail
        self._producers.replace(draft.producers, forgotten)
        self._when_durable(waiting, draft.tail.next)
        return waiting

    def _write(self, operations: list[Operation]) -> Any:
        applied = self.region.apply(RowMutation(self.key, tuple(operations)))
        return self._acknowledge(self.region, applied)

    def _when_durable(self, waiting: Any, offset: int) -> None:
        """Let readers see the batches before ``offset`` after the fsync."""
        if waiting is None:
            self._show(offset)
            return
        self._pending += 1

        def ended(done: asyncio.Future[Any]) -> None:
            self._pending -= 1
            if done.cancelled() or done.exception() is not None:
                self._is_broken = True  # the region closes, and opens again from what is on disk
                self._on_change()
            else:
                self._show(offset)

        if isinstance(waiting, ImmediateFuture):  # before the answer leaves
            waiting.add_callback(ended)
        else:
            waiting.add_done_callback(ended)

    def _show(self, offset: int) -> None:
        self._high_watermark = max(self._high_watermark, offset)
        self._on_change()

    # --- reads -------------------------------------------------------------------------------------------

    def fetch(self, offset: int, max_bytes: int) -> Fetched:
        """Return whole batches from the one that has ``offset``: at most ``max_bytes``, but at least one.

        There may be fewer than fit, as FETCH_BATCHES is a bound, too.
        """
        error = self._offset_error(offset)
        found: list[bytes] = []
        if error is TopicError.NONE and offset < self._high_watermark:
            size, most = 0, min(max_bytes, FETCH_BYTES)
            for cell in self._rows.batches_with(offset):
                size += len(cell.data)
                if cell.offset >= self._high_watermark or (found and size > most):
                    break
                found.append(cell.data)
                if size >= most or len(found) == FETCH_BATCHES:
                    break
        return Fetched(error, b"".join(found), self._high_watermark, self._tail.first)

    def _offset_error(self, offset: int) -> TopicError:
        if self._settings is None:
            return TopicError.UNKNOWN_TOPIC_OR_PARTITION
        if not self._tail.first <= offset <= self._high_watermark:
            return TopicError.OFFSET_OUT_OF_RANGE
        return TopicError.NONE

    def waited(self, offset: int, least_bytes: int) -> Waited:
        """Return how many bytes a reader at ``offset`` can get, counted up to ``least_bytes``."""
        error, size = self._offset_error(offset), 0
        if error is TopicError.NONE and offset < self._high_watermark:
            if least_bytes <= 1:
                return Waited(error, 1, self._high_watermark)
            for count, cell in enumerate(self._rows.batches_with(offset)):
                if count == FETCH_BATCHES:  # a read gets no more
                    size = max(size, least_bytes)
                if cell.offset >= self._high_watermark or size >= least_bytes:
                    break
                size += len(cell.data)
        return Waited(error, size, self._high_watermark)

    def offset_at(self, timestamp_ms: int) -> FoundOffset:
        """Return the first offset whose record has this time or a later one; that of its batch, if it is compressed."""
        if self._settings is None:
            return FoundOffset(TopicError.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
        if timestamp_ms in (EARLIEST, LATEST):
            offset = self._tail.first if timestamp_ms == EARLIEST else self._high_watermark
            return FoundOffset(TopicError.NONE, offset, -1)
        return self._rows.find_time(timestamp_ms, self._tail.first, self._high_watermark)

    def state(self) -> PartitionState:
        error = TopicError.NONE if self._settings is not None else TopicError.UNKNOWN_TOPIC_OR_PARTITION
        tail = self._tail
        return PartitionState(
            error, tail.first, self._high_watermark, tail.size_bytes, len(self._producers), tail.append_ms
        )  # fmt: skip

    # --- administration ----------------------------------------------------------------------------------

    def configure(self, settings: TopicSettings) -> Any:
        """Make the partition, or change its settings; return the future of the fsync."""
        self.region.check_writable()
        waiting = self._write([Put(HEADS, partition_bytes.SETTINGS, partition_bytes.pack_settings(settings))])
        self._settings = settings
        return waiting

    def end_partition(self) -> Any:
        """Take nothing more, and show nothing more; ``delete_some`` deletes the row.  Returns the fsync."""
        self.region.check_writable()
        waiting = self._write([Delete(HEADS, partition_bytes.SETTINGS)])
        self._settings = None
        self._on_change()
        return waiting

    def delete_some(self) -> tuple[bool, Any]:
        """Do a step of the deletion of the row; return whether it was the last one, and the future of the fsync."""
        self.region.check_writable()
        if self.region.can_delete_at_once(self.region.now_ms):
            return True, self.region.delete_at_once(self.key, self.key + b"\x00")
        oldest, end = self._oldest_batches()
        if oldest:
            return False, self._delete(oldest, end)
        return True, self._write([Delete(HEADS, None), Delete(BATCHES, None)])

    def delete_expired(self) -> int:
        """Do a step of retention; return how many batches were deleted."""
        settings, tail, now_ms = self._settings, self._tail, self.region.now_ms
        if settings is None or not tail.size_bytes or not is_due(settings, tail.size_bytes, self._oldest_ms, now_ms):
            return 0
        self.region.check_writable()
        oldest, end = self._oldest_batches()
        is_all = end == self._high_watermark
        count = batches_to_delete(oldest, tail.size_bytes, settings, now_ms, oldest[-1].offset if is_all else end)
        if count:
            self._delete(oldest[:count], oldest[count].offset if count < len(oldest) else end)
        return count

    def _oldest_batches(self) -> tuple[list[StoredBatch], int]:
        """Return the batches that a step of retention looks at, and the offset behind them."""
        oldest: list[StoredBatch] = []
        size, end = 0, self._tail.first
        for cell in self._rows.batches(end):
            if cell.offset >= self._high_watermark or len(oldest) == RETENTION_BATCHES or size >= RETENTION_BYTES:
                break
            oldest.append(StoredBatch(cell.offset, len(cell.data), cell.append_ms))
            size += len(cell.data)
            end = head_of(cell).next_offset
        return oldest, end

    def _delete(self, batches: list[StoredBatch], first: int) -> Any:
        """Delete the oldest batches; ``first`` is the offset that follows them.  Returns the future of the fsync."""
        size = self._tail.size_bytes - sum(batch.size_bytes for batch in batches)
        operations: list[Operation] = [
            Delete(BATCHES, partition_bytes.batch_qualifier(batch.offset)) for batch in batches
        ]
        marks = self._rows.marks(len(batches))
        operations += [Delete(HEADS, qualifier) for qualifier, offset in marks if offset < first]
        tail = replace(self._tail, first=first, size_bytes=size)
        operations.append(Put(HEADS, partition_bytes.TAIL, partition_bytes.pack_tail(tail)))
        waiting = self._write(operations)
        self._tail = tail
        self._note_oldest()
        return waiting
