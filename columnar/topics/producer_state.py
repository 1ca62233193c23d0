"""(pure) What a partition remembers of idempotent producers: which batch is new, which one comes again.

Follows Kafka's broker (ProducerStateManager, KIP-98).  A producer numbers its records of a partition; a batch is taken
if it begins with the number after the last one's.  The last RECENT batches of each producer
are remembered, because a client has at most five requests on their way.

Invariants:
    I1. A batch that is remembered is not taken again: its answer is its first one.
    I2. At most PRODUCERS producers are remembered; the least recent one is forgotten.  A forgotten producer may go on
        with any number.

Knows nothing of rows and time.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice
from struct import Struct, error
from typing import Final, NamedTuple

from columnar.errors import DamagedData
from columnar.model.record_batch import BatchHead
from columnar.model.topic import PRODUCERS, TopicError

RECENT: Final = 5
_SEQUENCES: Final = 1 << 31  # after the last number comes 0
_VERSION: Final = 1
_ENTRY: Final = Struct(">BhB")  # version, epoch, count
_BATCH: Final = Struct(">iiqq")
assert (_ENTRY.size, _BATCH.size) == (4, 24), "on disk: a new layout needs a new version"


class RecentBatch(NamedTuple):
    first: int  # sequence of the first record
    last: int
    offset: int
    append_ms: int


class Producer(NamedTuple):
    """The last batches of a producer, oldest first."""

    epoch: int
    batches: tuple[RecentBatch, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A batch that was appended before."""

    offset: int
    append_ms: int


def judge(producer: Producer | None, head: BatchHead) -> TopicError | Repeated | None:
    """Return None if the batch of an idempotent producer is the next one, else why it is not appended."""
    if producer is None:
        return None
    if head.epoch < producer.epoch:
        return TopicError.INVALID_PRODUCER_EPOCH
    if head.epoch > producer.epoch:
        return None if head.base_sequence == 0 else TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER
    last = sequence_after(head.base_sequence, head.records - 1)
    for known in producer.batches:
        if known.first == head.base_sequence and known.last == last:
            return Repeated(known.offset, known.append_ms)
    newest = producer.batches[-1].last
    if head.base_sequence == sequence_after(newest, 1):
        return None
    if 0 <= newest - head.base_sequence < _SEQUENCES // 2:
        return TopicError.DUPLICATE_SEQUENCE_NUMBER
    return TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER


def sequence_after(sequence: int, count: int) -> int:
    return (sequence + count) % _SEQUENCES


def appended(producer: Producer | None, head: BatchHead, offset: int, append_ms: int) -> Producer:
    """Return what is remembered of the producer after its batch was appended."""
    batch = RecentBatch(head.base_sequence, sequence_after(head.base_sequence, head.records - 1), offset, append_ms)
    earlier = producer.batches if producer is not None and producer.epoch == head.epoch else ()
    return Producer(head.epoch, (*earlier, batch)[-RECENT:])


class ProducerStates:
    """The producers of a partition, least recent first."""

    def __init__(self) -> None:
        self._producers: OrderedDict[int, Producer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._producers)

    def load_producers(self, producers: dict[int, Producer]) -> None:
        """Take the producers that were stored, in the order of their last batches."""
        self._producers = OrderedDict(sorted(producers.items(), key=lambda one: one[1].batches[-1].offset))

    def find_producer(self, number: int) -> Producer | None:
        return self._producers.get(number)

    def forgotten_by(self, changed: dict[int, Producer]) -> list[int]:
        """Return the producers that are forgotten when these are remembered."""
        surplus = len(self._producers) + sum(number not in self._producers for number in changed) - PRODUCERS
        if surplus <= 0:
            return []
        return list(islice((number for number in self._producers if number not in changed), surplus))

    def replace(self, changed: dict[int, Producer], forgotten: list[int]) -> None:
        for number, producer in changed.items():
            self._producers[number] = producer
            self._producers.move_to_end(number)
        for number in forgotten:
            del self._producers[number]


def pack_producer(producer: Producer) -> bytes:
    packed = _ENTRY.pack(_VERSION, producer.epoch, len(producer.batches))
    return packed + b"".join([_BATCH.pack(*batch) for batch in producer.batches])


def unpack_producer(data: bytes) -> Producer:
    try:
        version, epoch, count = _ENTRY.unpack_from(data)
        batches = tuple([RecentBatch(*_BATCH.unpack_from(data, _ENTRY.size + n * _BATCH.size)) for n in range(count)])
    except error as fault:
        raise DamagedData(f"the cell of a producer: {fault}") from None
    if version != _VERSION or not batches:
        raise DamagedData(f"the cell of a producer has version {version} and {count} batches")
    return Producer(epoch, batches)
