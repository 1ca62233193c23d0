"""Records that were read are delivered without another look at the log, and are a bounded number."""

from __future__ import annotations

import pytest

from columnar.flows import follower as followers
from columnar.flows.follower import value_bytes
from columnar.triggers import consumer as consumers
from columnar.triggers.consumer import Consumer
from tests.unit.triggers.test_feeder import Bench, on_bench

ROWS = [b"r%02d" % n for n in range(20)]


def paused(bench: Bench) -> Consumer:
    (consumer,) = bench.feeder.consumers_of("t")
    return consumer


@on_bench()
async def test_a_first_delivery_reads_the_log_once_and_a_repeated_one_again(bench: Bench) -> None:
    await bench.add("t")
    bench.feeder.pause("t")
    await bench.put(b"a")
    consumer = paused(bench)
    consumer.fill()
    (sequence,) = consumer._at_hand
    held = consumer._at_hand[sequence]
    assert consumer.record_at(sequence) is held
    assert (consumer._at_hand, consumer._at_hand_bytes) == ({}, 0)
    assert consumer.record_at(sequence) == held, "from the log"
    bench.feeder.resume("t")
    ((number, _, row),) = bench.main.take()
    assert row == b"a"
    bench.main.answer(number)


@on_bench()
async def test_records_at_hand_are_bounded_in_number_and_bytes(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(followers, "AT_HAND", 5)
        await bench.add("t")
        bench.feeder.pause("t")
        await bench.put(*ROWS)
        consumer = paused(bench)
        consumer.fill()
        assert len(consumer._at_hand) == 5
        assert consumer._at_hand_bytes == sum(map(value_bytes, consumer._at_hand.values())) == 5
        patch.setattr(followers, "AT_HAND", 100)
        patch.setattr(followers, "AT_HAND_BYTES", 7)
        await bench.put(*ROWS)
        consumer.fill()
        assert consumer._at_hand_bytes == 7
        bench.feeder.resume("t")
        seen = []
        while calls := bench.main.take():
            seen += [row for _, _, row in calls]
            for number, _, _ in calls:
                bench.main.answer(number)
        assert sorted(seen) == sorted(ROWS * 2)


@on_bench()
async def test_a_trigger_reads_no_further_while_enough_can_be_delivered(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consumers, "READY_ROWS", 8)
        patch.setattr(followers, "FILL_RECORDS", 4)
        await bench.add("t", side_by_side=1)
        bench.feeder.pause("t")
        await bench.put(*ROWS)
        consumer = paused(bench)
        for _ in range(10):
            assert consumer.fill()
        assert consumer.state.open_count == 8
        bench.feeder.resume("t")
        seen = []
        while calls := bench.main.take():
            seen += [row for _, _, row in calls]
            assert consumer.state.open_count <= 12
            for number, _, _ in calls:
                bench.main.answer(number)
        assert seen == ROWS
        assert await bench.keeper.wait("t", "", 0.0)
