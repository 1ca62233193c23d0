"""Triggers whose region cannot be read for a while: they rest, their neighbours go on, and nothing is paused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from columnar.errors import ColumnarError, DamagedData, HostError
from columnar.flows import delivery_state, region_followers
from columnar.flows.at_hand import AT_HAND_BYTES
from columnar.flows.backpressure import LogBounds
from columnar.model.mutation import Put
from columnar.regions.log.change_log import ChangeLog
from columnar.regions.log.log_cursors import LogCursors
from columnar.triggers.consumer import Consumer
from columnar.triggers.delivery_source import NEVER
from tests.unit.triggers.test_dispatcher import Bench, on_bench


def failing(times: int, error: ColumnarError, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call``, which fails so many times first."""
    left = [times]

    def called(*arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return call(*arguments)

    return called


def break_log(bench: Bench, what: str, times: int, error: ColumnarError) -> None:
    log = bench.region(b"00").log
    setattr(log, what, failing(times, error, getattr(log, what)))


@pytest.mark.parametrize("what", [ChangeLog.read_records.__name__, ChangeLog.record_at.__name__])
def test_a_region_that_cannot_be_read_for_a_while_is_read_again(what: str) -> None:
    @on_bench(regions=2)
    async def run(bench: Bench) -> None:
        await bench.add("t", attempts=1)
        break_log(bench, what, 2, HostError("the disk is full"))
        if what == "record_at":  # the record is not at hand, so it is read for its delivery
            await bench.apply(b"00", Put(b"f", b"a", bytes(AT_HAND_BYTES + 1)))
            await bench.put(b"01")
        else:
            await bench.put(b"00", b"01")
        assert [row for _, _, row in bench.main.take()] == [b"01"], "its neighbour goes on"
        (status,) = bench.keeper.trigger_statuses()
        assert status.state == "running"
        assert "the disk is full" in status.last_error
        await bench.main.until(lambda: bench.main.sent)
        ((call_id, _, row),) = bench.main.take()
        assert row == b"00"
        bench.main.answer(call_id)
        assert await bench.keeper.dead_letters("t", 10) == [], "that was no attempt"

    run()


def test_a_region_that_cannot_be_read_is_a_line_when_that_begins_changes_and_ends(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at each retry: a trigger whose owner lost a right retries for days."""
    monkeypatch.setattr(delivery_state, "pause_s", lambda _failures: 0.001)

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t")
        log = bench.region(b"00").log
        read = log.read_records
        for reason, times in (("the disk is slow", 5), ("the disk is full", 5)):
            read = failing(times, HostError(reason), read)
        monkeypatch.setattr(log, "read_records", read)
        for _ in range(2):
            await bench.put(b"00")
            await bench.main.until(lambda: bench.main.sent)
            ((call_id, _, _),) = bench.main.take()
            bench.main.answer(call_id)
            assert await bench.keeper.wait_delivered("t", "", 5.0)
        await bench.put(b"00")

    with caplog.at_level(logging.INFO, "columnar.triggers.consumer"):
        run()
    begun, changed, ended = [record.getMessage() for record in caplog.records if "region" in record.getMessage()]
    assert begun.startswith("trigger t cannot read region ")
    assert "pauses: the disk is full" in begun
    assert "pauses: the disk is slow" in changed
    assert ended.endswith("again")


@on_bench()
async def test_a_consumer_that_goes_while_it_rests_takes_its_timer_with_it(bench: Bench) -> None:
    await bench.add("t")
    break_log(bench, "read_records", 99, HostError("the disk is full"))
    await bench.put(b"00")
    assert bench.dispatcher.state.timers.next_s() != NEVER
    await bench.triggers.remove("t")
    assert bench.dispatcher.state.timers.next_s() == NEVER


@on_bench()
async def test_nothing_is_read_for_a_consumer_that_went_while_it_rested(bench: Bench) -> None:
    """Its time comes when the trigger is gone, and when another of its name is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery_state, "pause_s", lambda _failures: 0.01)
        for again in (False, True):
            await bench.add("t")
            break_log(bench, "read_records", 1, HostError("the disk is full"))
            await bench.put(b"00")
            await bench.triggers.remove("t")
            if again:
                await bench.add("t")
            await asyncio.sleep(0.03)


@on_bench()
async def test_a_damaged_log_pauses_its_trigger(bench: Bench) -> None:
    await bench.add("t")
    break_log(bench, "read_records", 1, DamagedData("a record's sum is wrong"))
    await bench.put(b"00")
    (status,) = bench.keeper.trigger_statuses()
    assert status.state == "paused"
    assert "sum is wrong" in status.last_error


# --- regions that open ---------------------------------------------------------------------------------


def damage_cursor(bench: Bench) -> bytes:
    """The first region is closed, with a cursor of ``t`` that nobody can read; the cursor as it was."""
    region = bench.region(b"00")
    bench.hub.upkeep.save(region)
    saved = region.log.cursors.cursor("t")
    assert saved is not None
    region.log.cursors.save_cursor("t", b"?")
    bench.server.eviction.evict(region)
    return saved


@on_bench(regions=2)
async def test_a_cursor_that_cannot_be_read_keeps_neither_its_region_nor_others_back(bench: Bench) -> None:
    await bench.add("t")
    await bench.add("other")
    saved = damage_cursor(bench)
    await bench.put(b"00", b"01")
    calls = bench.main.take()
    assert sorted((name, row) for _, name, row in calls) == [("other", b"00"), ("other", b"01"), ("t", b"01")]
    for call_id, _, _ in calls:
        bench.main.answer(call_id)
    errors = {one.name: one.last_error for one in bench.keeper.trigger_statuses()}
    assert "trigger cursor" in errors["t"]
    assert errors["other"] == ""
    assert not await bench.keeper.wait_delivered("t", "", 0.0), "a change of it is not delivered"
    assert await bench.keeper.wait_delivered("other", "", 5.0)
    bench.region(b"00").log.cursors.save_cursor("t", saved)
    await bench.main.until(lambda: bench.main.sent)
    ((call_id, name, row),) = bench.main.take()
    assert (name, row) == ("t", b"00"), "it was tried again"
    bench.main.answer(call_id)
    assert await bench.keeper.wait_delivered("t", "", 5.0)
    assert [one.last_error for one in bench.keeper.trigger_statuses()] == ["", ""]


@on_bench()
async def test_the_log_keeps_all_for_a_cursor_that_cannot_be_read_and_writers_hear_why(bench: Bench) -> None:
    await bench.add("t")
    damage_cursor(bench)
    bench.hub.upkeep._bounds = LogBounds(records=3)
    await bench.put(b"a", b"b", b"c")
    region = bench.region(b"a")
    bench.hub.upkeep.save(region)
    assert region.log.count_after(None, 9) == 3
    assert region.refuses_writes
    assert "trigger t cannot follow region" in region.log_obstacle
    assert "trigger cursor" in region.log_obstacle


@on_bench()
async def test_the_next_try_goes_with_its_region_or_its_trigger(bench: Bench) -> None:
    await bench.add("t")
    damage_cursor(bench)
    listener = bench.hub.listener
    region = bench.region(b"00")
    assert listener._tries
    bench.server.eviction.evict(region)
    assert not listener._tries
    region = bench.region(b"00")
    (subscription,) = bench.hub._subscriptions.of_table("t")
    await bench.triggers.remove("t")
    listener._begin_again(subscription, region, 2)  # as its timer does
    assert not listener._tries
    assert not bench.hub.followers.missing(subscription.name)


@on_bench()
async def test_the_cursor_of_a_removed_trigger_that_cannot_go_keeps_no_region_back(bench: Bench) -> None:
    await bench.add("t")
    await bench.add("other")
    bench.server.eviction.evict(bench.region(b"00"))
    await bench.triggers.remove("t")
    with pytest.MonkeyPatch.context() as patch:
        drop = failing(1, HostError("the disk is full"), LogCursors.drop_cursor)
        patch.setattr(LogCursors, "drop_cursor", drop)
        await bench.put(b"00")
    assert [name for _, name, _ in bench.main.take()] == ["other"]
    assert set(bench.region(b"00").log.cursors.all_cursors()) == {"t", "other"}
    bench.server.eviction.evict(bench.region(b"00"))
    assert set(bench.region(b"00").log.cursors.all_cursors()) == {"other"}


@on_bench(regions=2)
async def test_a_trigger_that_is_added_while_a_region_cannot_be_read_begins_there_later(bench: Bench) -> None:
    """Regions behind it begin at once, and the next change of a trigger finds nothing half done."""
    for row in (b"00", b"01"):  # in the order in which they are begun with
        bench.region(row)
    once = failing(1, HostError("the disk is full"), region_followers.restored)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_followers, "restored", once)
        await bench.add("t")
    await bench.put(b"00", b"01")
    (status,) = bench.keeper.trigger_statuses()
    assert "the disk is full" in status.last_error
    assert [row for _, _, row in bench.main.take()] == [b"01"], "its neighbour goes on"
    await bench.main.until(lambda: bench.main.sent)
    assert [row for _, _, row in bench.main.take()] == [b"00"], "it was tried again"
    (status,) = bench.keeper.trigger_statuses()
    assert status.last_error == ""


def test_a_backfill_that_fails_for_a_while_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """As where the engine is behind for longer than a write waits; the region stays open, and nobody writes."""

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.put(b"00")
        with pytest.MonkeyPatch.context() as patch:
            step, failed = Consumer.backfill_step, list[int]()

            def fails(self: Consumer) -> Any:
                if len(failed) < 2:
                    failed.append(1)
                    raise HostError("the disk is full")
                return step(self)

            patch.setattr(Consumer, "backfill_step", fails)
            await bench.add("t", from_where="beginning")
            await bench.main.until(lambda: bench.main.sent)
        ((call_id, _, row),) = bench.main.take()
        assert (row, len(failed)) == (b"00", 2)
        (status,) = bench.keeper.trigger_statuses()
        assert "the disk is full" in status.last_error
        bench.main.answer(call_id)
        assert await bench.keeper.wait_delivered("t", "", 5.0)

    with caplog.at_level(logging.INFO, "columnar.triggers.consumer"):
        run()
    begun, ended, logged = [one.getMessage() for one in caplog.records if "backfill of" in one.getMessage()]
    assert "pauses: the disk is full" in begun, "one line for both failures"
    assert ended.endswith("goes on")
    assert logged.endswith("is logged")
