"""Records that were read are delivered without another look at the log, and are a bounded number."""

from __future__ import annotations

import pytest

from columnar.flows import at_hand
from columnar.flows import follower as followers
from columnar.flows.at_hand import AllAtHand, AtHand, value_bytes
from columnar.regions.log.change_record import ChangeRecord, Entry, Kind, Sequence
from columnar.triggers import consumer as consumers
from columnar.triggers.consumer import Consumer
from tests.unit.triggers.test_dispatcher import Bench, on_bench

ROWS = [b"r%02d" % n for n in range(20)]


def paused(bench: Bench) -> Consumer:
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    return consumer


@on_bench()
async def test_a_first_delivery_reads_the_log_once_and_a_repeated_one_again(bench: Bench) -> None:
    await bench.add("t")
    bench.dispatcher.pause("t")
    await bench.put(b"a")
    consumer = paused(bench)
    consumer.fill()
    (sequence,) = consumer.at_hand._records
    held = consumer.at_hand._records[sequence]
    assert consumer.record_at(sequence) is held
    assert (consumer.at_hand._records, consumer.at_hand._size_bytes) == ({}, 0)
    assert consumer.record_at(sequence) == held, "from the log"
    bench.dispatcher.resume("t")
    ((number, _, row),) = bench.main.take()
    assert row == b"a"
    bench.main.answer(number)


@on_bench()
async def test_records_at_hand_are_bounded_in_number_and_bytes(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_hand, "AT_HAND", 5)
        await bench.add("t")
        bench.dispatcher.pause("t")
        await bench.put(*ROWS)
        consumer = paused(bench)
        consumer.fill()
        kept = consumer.at_hand
        assert len(kept._records) == 5
        assert kept._size_bytes == kept._all.size_bytes == sum(map(value_bytes, kept._records.values())) == 5
        patch.setattr(at_hand, "AT_HAND", 100)
        patch.setattr(at_hand, "AT_HAND_BYTES", 7)
        await bench.put(*ROWS)
        consumer.fill()
        assert kept._size_bytes == 7
        bench.dispatcher.resume("t")
        seen = []
        while calls := bench.main.take():
            seen += [row for _, _, row in calls]
            for number, _, _ in calls:
                bench.main.answer(number)
        assert sorted(seen) == sorted(ROWS * 2)


def test_all_followers_share_a_bound_and_give_back() -> None:
    def record(size: int) -> ChangeRecord:
        return ChangeRecord(b"row", 1, (Entry(Kind.PUT, b"f", b"q", 1, bytes(size)),), ())

    together = AllAtHand(10)
    one, other = AtHand(), AtHand()
    one.share(together)
    other.share(together)
    one.keep(Sequence(1, 1, 1), record(6))
    other.keep(Sequence(1, 1, 1), record(5))
    assert other.take_record(Sequence(1, 1, 1)) is None, "no room: it is read from the log"
    other.keep(Sequence(1, 1, 2), record(4))
    assert together.size_bytes == 10
    assert one.take_record(Sequence(1, 1, 1)) == record(6)
    assert one.take_record(Sequence(1, 1, 1)) is None
    one.keep(Sequence(1, 1, 3), record(5))
    other.clear()
    assert together.size_bytes == 5


@on_bench()
async def test_a_trigger_that_is_removed_gives_its_room_back(bench: Bench) -> None:
    await bench.add("t")
    bench.dispatcher.pause("t")
    await bench.put(*ROWS)
    consumer = paused(bench)
    consumer.fill()
    together = consumer.at_hand._all
    assert together.size_bytes == len(ROWS)
    await bench.triggers.remove("t")
    assert together.size_bytes == 0


@on_bench()
async def test_a_trigger_reads_no_further_while_enough_can_be_delivered(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consumers, "READY_ROWS", 8)
        patch.setattr(followers, "FILL_RECORDS", 4)
        await bench.add("t", side_by_side=1)
        bench.dispatcher.pause("t")
        await bench.put(*ROWS)
        consumer = paused(bench)
        for _ in range(10):
            assert consumer.fill()
        assert consumer.state.open_count == 8
        bench.dispatcher.resume("t")
        seen = []
        while calls := bench.main.take():
            seen += [row for _, _, row in calls]
            assert consumer.state.open_count <= 12
            for number, _, _ in calls:
                bench.main.answer(number)
        assert seen == ROWS
        assert await bench.keeper.wait_delivered("t", "", 0.0)
