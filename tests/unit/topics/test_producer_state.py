"""Idempotent producers: which batch is taken, which one is a repeat, which one is refused."""

from __future__ import annotations

import random

import pytest

from columnar.errors import DamagedData
from columnar.model.record_batch import BatchHead
from columnar.model.topic import PRODUCERS, TopicError
from columnar.topics.producer_state import (
    RECENT,
    Producer,
    ProducerStates,
    RecentBatch,
    Repeated,
    appended,
    judge,
    pack_producer,
    unpack_producer,
)

LAST = (1 << 31) - 1  # the highest number of a record


def batch(sequence: int, records: int = 1, epoch: int = 0, producer: int = 7) -> BatchHead:
    return BatchHead(0, 100, 0, 0, records, 0, 0, producer, epoch, sequence)


def after(*batches: BatchHead) -> Producer:
    producer, offset = None, 0
    for one in batches:
        assert judge(producer, one) is None
        producer = appended(producer, one, offset, 1_000 + offset)
        offset += one.records
    assert producer is not None
    return producer


def test_the_next_batch_is_taken_and_a_repeat_gets_its_first_answer() -> None:
    producer = after(batch(0, 3), batch(3, 2))
    assert judge(producer, batch(5)) is None
    assert judge(producer, batch(3, 2)) == Repeated(3, 1_003)
    assert judge(producer, batch(0, 3)) == Repeated(0, 1_000)


def test_a_gap_and_an_old_repeat_are_refused() -> None:
    producer = after(*(batch(n) for n in range(RECENT + 2)))
    assert judge(producer, batch(RECENT + 3)) is TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert judge(producer, batch(0)) is TopicError.DUPLICATE_SEQUENCE_NUMBER
    assert judge(producer, batch(RECENT, 2)) is TopicError.DUPLICATE_SEQUENCE_NUMBER


def test_an_older_epoch_is_refused_and_a_newer_one_begins_at_zero() -> None:
    producer = after(batch(0, 3, epoch=4))
    assert judge(producer, batch(3, epoch=3)) is TopicError.INVALID_PRODUCER_EPOCH
    assert judge(producer, batch(3, epoch=5)) is TopicError.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert judge(producer, batch(0, epoch=5)) is None
    assert appended(producer, batch(0, epoch=5), 9, 1).batches == (RecentBatch(0, 0, 9, 1),)


def test_numbers_begin_again_behind_the_highest_one() -> None:
    producer = after(batch(LAST - 1, 2))
    assert judge(producer, batch(0)) is None
    assert judge(after(batch(LAST, 2)), batch(1)) is None
    assert judge(after(batch(LAST, 2)), batch(LAST, 2)) == Repeated(0, 1_000)


def test_a_forgotten_producer_goes_on_with_any_number() -> None:
    states = ProducerStates()
    for number in range(PRODUCERS):
        states.replace({number: after(batch(0, producer=number))}, [])
    states.replace({0: after(batch(0), batch(1))}, [])
    forgotten = states.forgotten_by({PRODUCERS: after(batch(0))})
    assert forgotten == [1], "the least recent one"
    states.replace({PRODUCERS: after(batch(0))}, forgotten)
    assert len(states) == PRODUCERS
    assert states.find_producer(1) is None
    assert judge(states.find_producer(1), batch(1, producer=1)) is None


def test_a_stored_producer_comes_back() -> None:
    producer = after(batch(0, 3), batch(3, 2))
    assert unpack_producer(pack_producer(producer)) == producer
    for broken in (b"", pack_producer(producer)[:-1], b"\x02" + pack_producer(producer)[1:], b"\x01\x00\x00\x00"):
        with pytest.raises(DamagedData, match="producer"):
            unpack_producer(broken)


@pytest.mark.parametrize("seed", range(20))
def test_repeats_in_any_order_append_each_batch_once(seed: int) -> None:
    """A client sends up to five batches, and sends again from the first one without an answer on."""
    rng = random.Random(seed)
    producer: Producer | None = None
    log: list[int] = []
    answered: dict[int, int] = {}
    while len(answered) < 60:
        first = min(set(range(61)) - answered.keys())
        for sequence in range(first, min(first + RECENT, 60)):
            if rng.random() < 0.3:
                break  # lost on its way, and with it all behind it
            verdict = judge(producer, batch(sequence))
            if verdict is None:
                producer = appended(producer, batch(sequence), len(log), 0)
                log.append(sequence)
                offset = len(log) - 1
            else:
                assert isinstance(verdict, Repeated), verdict
                offset = verdict.offset
            if rng.random() < 0.7:
                answered[sequence] = offset
            else:
                break
    assert log == list(range(60)), f"seed {seed}"
    assert answered == {n: n for n in range(60)}
