"""Effects of calls: on disk before the change is done, in slices with checkpoints, and what becomes of failures."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from columnar.flows import applier as appliers
from columnar.flows import log_upkeep
from columnar.flows.delivery_state import Cursor, Progress, pack_cursor, unpack_cursor
from columnar.flows.fair_share import FairShare
from columnar.model.effect import Tally
from columnar.model.mutation import Put
from columnar.model.read import ReadSpec, projection
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.model.trigger_registration import DEFAULT_SIDE_BY_SIDE
from columnar.regions.change_record import Sequence
from columnar.regions.region_reads import get_row
from columnar.regions.tables import ServedTable
from columnar.triggers import lane as lanes
from columnar.triggers import outcomes
from columnar.triggers.blocks import IN_SERIES
from tests.support.fake_links import runs
from tests.support.openings import region_at_once
from tests.unit.triggers.test_feeder import Bench, on_bench

USED_US = 5_000


def put(row: bytes, value: bytes = b"1", table: bytes = b"out") -> list[Any]:
    return [1, table, row, {b"f:a": value}]


def did(bench: Bench, call_id: int, what: str = "done", *effects: Any, error: Any = None, state: Any = None) -> None:
    bench.main.listener.answered(["did", [[call_id, what, list(effects), error, "", state, USED_US, 0]]])


def out(bench: Bench, row: bytes) -> dict[bytes, tuple[bytes, int]]:
    region = region_at_once(bench.server, bench.out, row)
    spec = ReadSpec(projection(bench.out.schema, []))
    return {column: (value, at) for column, value, at in get_row(region, row, spec)}


def stamp_of(bench: Bench, row: bytes) -> int:
    last = bench.region(row).log.last_logged
    assert last is not None
    record = bench.region(row).log.record_at(last)
    assert record is not None
    return record.stamp


async def until_sent(bench: Bench, *kinds: str) -> list[tuple[Any, ...]]:
    await bench.main.until(lambda: any(parts[0] in kinds for parts in bench.main.sent))
    found = [parts for parts in bench.main.sent if parts[0] in kinds]
    bench.main.sent.clear()
    return found


@on_bench()
async def test_a_change_is_done_when_its_effects_are_on_disk(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(b"a")
    stamp = stamp_of(bench, b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "done", put(b"x"), put(b"y", b"2"))
    (consumer,) = bench.feeder.consumers_of("t")
    assert consumer.state.in_flight_count == 1
    assert bench.feeder.calls_in_flight() == 1
    assert await bench.keeper.wait("t", "", 0.0) is False
    assert await bench.keeper.wait("t", "", 10.0)
    assert out(bench, b"x") == {b"f:a": (b"1", stamp)}
    assert out(bench, b"y") == {b"f:a": (b"2", stamp)}
    assert bench.feeder.calls_in_flight() == 0


@on_bench()
async def test_effects_that_the_store_cannot_write_now_blame_nobody(bench: Bench) -> None:
    """The log of the target is full behind another trigger, or its region is away: the change itself is good."""
    region = region_at_once(bench.server, bench.out, b"x")
    await bench.add("t", attempts=1)
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appliers, "PATIENCE_S", 0.05)
        patch.setattr(outcomes, "AWAY_S", 0.05)
        region.refuses_writes = True
        did(bench, call_id, "done", put(b"x"))
        await bench.main.until(lambda: runs(*bench.main.sent))
    ((call_id, _, row),) = bench.main.take()
    (consumer,) = bench.feeder.consumers_of("t")
    assert row == b"a"
    assert "effects cannot be written" in consumer.state.last_error
    region.refuses_writes = False
    did(bench, call_id, "done", put(b"x"))
    assert await bench.keeper.wait("t", "", 10.0)
    assert out(bench, b"x") == {b"f:a": (b"1", stamp_of(bench, b"a"))}
    assert await bench.keeper.dead_letters("t", 10) == []


@on_bench()
async def test_a_trigger_whose_effects_wait_for_long_says_why(bench: Bench) -> None:
    region = region_at_once(bench.server, bench.out, b"x")
    await bench.add("t")
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appliers, "pause_s", lambda _tries: 0.001)
        region.refuses_writes = True
        did(bench, call_id, "done", put(b"x"))
        while bench.keeper.summaries()[0].state == "running":  # noqa: ASYNC110 - tries are iterations of the loop
            await asyncio.sleep(0)
        assert "effects cannot be written: RegionTooBusy" in bench.keeper.summaries()[0].error
        region.refuses_writes = False
        assert await bench.keeper.wait("t", "", 10.0)
    assert bench.keeper.summaries()[0].state == "running"


@on_bench()
async def test_a_blocked_trigger_takes_no_turn_after_some_calls_in_vain(bench: Bench) -> None:
    """Thousands of changes would be called for nothing; the first call that works lets it go on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcomes, "AWAY_S", 0.05)
        await bench.add("t", attempts=1)
        await bench.add("other")
        await bench.put(*(b"%02d" % n for n in range(40)))
        called = 0
        while calls := [call_id for call_id, name, _ in bench.main.take() if name == "t"]:
            called += len(calls)
            for call_id in calls:
                did(bench, call_id, "blocked", error="no such module")
        assert called < IN_SERIES + DEFAULT_SIDE_BY_SIDE
        shown = {one.name: (one.state, one.error) for one in bench.keeper.summaries()}
        assert shown == {"t": ("blocked", "no such module"), "other": ("running", "")}
        await bench.main.until(lambda: [one for one in runs(*bench.main.sent) if one[1] == "t"])
        (call_id, *_), *_ = [call for call in bench.main.take() if call[1] == "t"]
        did(bench, call_id)
        assert bench.keeper.summaries()[1].state == "running"
        (consumer,) = bench.feeder.consumers_of("t")
        assert max(consumer.state.attempts_of(one) for one, _ in consumer.state.cursor().open) == 0


@on_bench()
async def test_a_blocked_trigger_that_is_removed_leaves_nothing(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(*(b"%02d" % n for n in range(20)))
    for call_id, _, _ in bench.main.take():
        did(bench, call_id, "blocked", error="no such module")
    await bench.triggers.remove("t")
    await bench.add("t")
    assert bench.keeper.summaries()[0].state == "running"
    await bench.put(b"a")
    assert [row for _, _, row in bench.main.take()] == [b"a"]


@on_bench()
async def test_a_place_in_the_worker_is_free_while_effects_are_written(bench: Bench) -> None:
    bench.feeder.common.fair = FairShare(1)
    await bench.add("t")
    await bench.put(b"a", b"b")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "done", put(b"x"))
    assert [row for _, _, row in bench.main.take()] == [b"b"]


@on_bench()
async def test_a_slice_is_on_disk_before_the_next_is_asked_for(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "more", put(b"x"), state=[b"half", 0])
    assert bench.main.sent == []
    assert await until_sent(bench, "go") == [("go", call_id)]
    assert out(bench, b"x")
    (consumer,) = bench.feeder.consumers_of("t")
    assert consumer.state.cursor().progress == ((bench.region(b"a").log.last_logged, b"half", 0),)
    did(bench, call_id, "done", put(b"y"))
    assert await bench.keeper.wait("t", "", 10.0)
    assert consumer.state.cursor().progress == ()
    assert out(bench, b"y")


@on_bench()
async def test_a_change_goes_on_behind_its_checkpoint_after_a_restart(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "more", put(b"x"), state=[b"half", 0])
    await until_sent(bench, "go")
    await bench.restart()
    bench.region(b"a")
    ((frame),) = await until_sent(bench, "run")
    ((_, _, _, _, (change,), progress, _),) = frame[1]
    assert (change[1], change[7], progress) == (b"a", 1, [b"half", 0]), "nor is that an attempt"


@on_bench()
async def test_a_worker_that_dies_between_two_slices_blames_nobody(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(b"a", b"b")
    (first, _, _), (other, _, _) = bench.main.take()
    did(bench, other)
    did(bench, first, "more", put(b"x"), state=[b"half", 0])
    await until_sent(bench, "go")
    did(bench, first, "more", put(b"y"), state=[b"later", 0])
    bench.main.die()  # while the effects of a slice are being written
    (consumer,) = bench.feeder.consumers_of("t")
    assert not consumer.suspects
    bench.main.start()
    ((_, calls),) = await until_sent(bench, "run")
    assert (calls[0][4][0][1], calls[0][4][0][7], calls[0][5]) == (b"a", 1, [b"half", 0])
    assert bench.feeder.calls_in_flight() == 1
    did(bench, calls[0][0], "done", put(b"z"))
    assert await bench.keeper.wait("t", "", 10.0)


@on_bench()
async def test_a_change_that_is_put_off_comes_again_without_blame(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "later", error=0.02)
    assert bench.main.take() == []
    ((_, calls),) = await until_sent(bench, "run")
    assert (calls[0][4][0][1], calls[0][4][0][7]) == (b"a", 1)
    did(bench, calls[0][0])
    assert await bench.keeper.wait("t", "", 10.0)
    assert await bench.keeper.dead_letters("t", 10) == []


@on_bench()
async def test_what_a_failed_run_had_checked_is_written_and_kept(bench: Bench) -> None:
    await bench.add("t", attempts=2)
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "failed", put(b"x"), error="Error: no", state=[b"half", 0])
    ((_, calls),) = await until_sent(bench, "run")
    assert (calls[0][4][0][7], calls[0][5]) == (2, [b"half", 0])
    assert out(bench, b"x")
    did(bench, calls[0][0], "later", put(b"y"), error=0.01, state=[b"most", 0])
    ((_, calls),) = await until_sent(bench, "run")
    assert (calls[0][4][0][7], calls[0][5]) == (2, [b"most", 0])
    assert out(bench, b"y")


@on_bench()
async def test_effects_that_cannot_be_written_fail_the_change_that_yielded_them(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    await bench.put(b"a", b"b", b"c")
    calls = {row: call_id for call_id, _, row in bench.main.take()}
    did(bench, calls[b"a"], "done", put(b"x", table=b"nowhere"))
    did(bench, calls[b"b"], "done", put(b"x"))
    did(bench, calls[b"c"], "done", [9, b"what", b"is", b"this"])
    assert await bench.keeper.wait("t", "", 10.0)
    letters = {letter.row: letter.error for letter in await bench.keeper.dead_letters("t", 10)}
    assert sorted(letters) == [b"a", b"c"]
    assert letters[b"a"] == "its effects cannot be written: TableNotFoundException: nowhere"
    assert "an effect that is none" in letters[b"c"]


@on_bench()
async def test_a_call_whose_slice_cannot_be_written_is_ended(bench: Bench) -> None:
    await bench.add("t", attempts=2)
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "more", put(b"x", table=b"nowhere"))
    assert await until_sent(bench, "drop") == [("drop", call_id)]
    assert bench.feeder.common.main.calls, "it has its place until the worker says that it has ended"
    did(bench, call_id)
    assert bench.feeder.calls_in_flight() == 0
    ((_, calls),) = await until_sent(bench, "run")
    assert calls[0][4][0][7] == 2, "the second attempt"


@on_bench()
async def test_nothing_is_written_for_a_trigger_that_was_removed(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(b"a", b"b", b"c")
    (writing, _, _), (resting, _, _), (running, _, _) = bench.main.take()
    did(bench, resting, "more", put(b"x"))
    assert await until_sent(bench, "go") == [("go", resting)]
    target = region_at_once(bench.server, bench.out, b"x")
    target.refuses_writes = True  # both go on trying
    did(bench, resting, "more", put(b"x2"))
    did(bench, writing, "done", put(b"y"))
    await bench.triggers.remove("t")
    await asyncio.sleep(0)
    assert [parts for parts in bench.main.sent if parts[0] == "drop"] == [("drop", resting)]
    did(bench, running, "more", put(b"z"))
    assert ("drop", running) in bench.main.sent
    for call_id in (resting, running):
        did(bench, call_id)
    assert bench.feeder.calls_in_flight() == 0
    assert bench.keeper.feeder.outcomes.has_room
    target.refuses_writes = False
    while bench.hub.background._tasks:  # noqa: ASYNC110 - until nobody tries any more
        await asyncio.sleep(0.001)
    assert [out(bench, row) for row in (b"x2", b"y", b"z")] == [{}, {}, {}]
    assert bench.feeder.common.fair.running_count == 0


@on_bench()
async def test_a_trigger_whose_effects_have_no_room_holds_up_no_other(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appliers, "WAITING_BYTES", 1_000)
        await bench.add("full", side_by_side=1)
        await bench.add("other", side_by_side=1)
        await bench.put(b"a", b"b")
        calls = {name: number for number, name, _ in bench.main.take()}
        target = region_at_once(bench.server, bench.out, b"x")
        target.refuses_writes = True
        did(bench, calls["full"], "done", put(b"x", bytes(500)))
        assert bench.main.take() == [], "it has half of the room, and waits"
        did(bench, calls["other"])
        ((number, name, _),) = bench.main.take()
        assert name == "other"
        did(bench, number)
        target.refuses_writes = False
        await bench.main.until(lambda: bench.main.sent)
        ((number, name, _),) = bench.main.take()
        assert name == "full", "its effects are written"
        did(bench, number)
        assert await bench.keeper.wait("full", "", 10.0)


@on_bench()
async def test_a_silent_worker_is_ended_and_its_calls_run_alone(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "SILENCE_S", 0.01)
        patch.setattr(lanes, "IMPORT_S", 0.01)
        await bench.add("t", timeout_ms=10)
        await bench.put(b"warm")
        ((call_id, _, _),) = bench.main.take()
        did(bench, call_id)
        await bench.put(b"a", b"b")
        assert len(bench.main.take()) == 2
        await bench.main.until(lambda: bench.main.kills)
    bench.main.die()
    bench.main.start()
    await bench.ward.until(lambda: bench.ward.sent)
    ((_, _, row),) = bench.ward.take()
    assert row == b"a"
    (consumer,) = bench.feeder.consumers_of("t")
    assert consumer.state.last_error == "", "nobody knows yet which it was"


@on_bench()
async def test_a_worker_that_says_something_is_not_silent(bench: Bench) -> None:
    loop = asyncio.get_running_loop()
    now_s = [loop.time()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "SILENCE_S", 0.05)
        patch.setattr(loop, "time", lambda: now_s[0])  # a machine that pauses is no silent worker
        await bench.add("t", timeout_ms=20)
        await bench.put(b"warm")
        ((call_id, _, _),) = bench.main.take()
        did(bench, call_id)
        await bench.put(b"a")
        for _ in range(15):
            now_s[0] += 0.01
            await asyncio.sleep(0)
            bench.main.listener.answered(["alive", 0])
        assert bench.main.kills == 0
        assert bench.feeder.calls_in_flight() == 1, "it has not begun: its time does not run"
        for _ in range(15):
            now_s[0] += 0.01
            await asyncio.sleep(0)
        assert bench.main.kills == 1, "and now it says nothing"


def test_the_log_takes_so_much_of_what_a_trigger_prints(caplog: pytest.LogCaptureFixture) -> None:
    @on_bench()
    async def run(bench: Bench) -> None:
        loop = asyncio.get_running_loop()
        now_s = [loop.time()]

        async def prints(rows: int) -> list[str]:
            caplog.clear()
            for number in range(rows):
                await bench.put(b"%d" % number)
                await bench.main.until(lambda: bench.main.sent)
                ((call_id, _, _),) = bench.main.take()
                outcome = [call_id, "done", [], None, "text\n", None, USED_US, 0]
                bench.main.listener.answered(["did", [outcome]])
            return [record.getMessage() for record in caplog.records if "printed" in record.getMessage()]

        with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.INFO):
            patch.setattr(outcomes, "PRINTED_BYTES", 20)
            patch.setattr(loop, "time", lambda: now_s[0])
            await bench.add("t")
            assert await prints(10) == 4 * ["trigger t printed: text"]
            now_s[0] += 1.0
            first, *others = await prints(10)
            assert first == "trigger t printed (6 other calls printed since the last line): text"
            assert others == 3 * ["trigger t printed: text"]

    run()


@on_bench()
async def test_changes_that_run_have_a_bound_of_bytes(bench: Bench) -> None:
    """64 changes of 10 MB, with their images, would be two gigabytes here and two in the worker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "RUNNING_BYTES", 30_000)
        await bench.add("t", row=False)
        rows = [b"%02d" % number for number in range(20)]
        for row in rows:
            await bench.apply(row, Put(b"f", b"a", bytes(10_000)))
        seen, resting = list[bytes](), dict[int, bytes]()
        calls = bench.main.take()
        assert len(calls) == 3
        for call_id, _, row in calls:  # those that rest do not count
            did(bench, call_id, "more", put(b"x"))
            resting[call_id] = row
        while len(seen) < len(rows):
            await bench.main.until(lambda: bench.main.sent)
            running = [call for call in bench.feeder.common.main.calls.values() if not call.rests]
            assert 0 < len(running) <= 4, "a slice that goes on is not held up"
            for call_id, row in [(call_id, row) for call_id, _, row in bench.main.take()]:
                seen.append(row)
                did(bench, call_id)
            for call_id in [one.number for one in running if one.number in resting]:
                seen.append(resting.pop(call_id))
                did(bench, call_id)
        assert sorted(seen) == rows
        assert await bench.keeper.wait("t", "", 10.0)
        assert bench.feeder.common.main._running_bytes == 0


@on_bench()
async def test_a_worker_that_is_silent_after_a_rest_is_ended(bench: Bench) -> None:
    """While all its calls rest it has nothing to say, and afterwards somebody listens again."""
    loop = asyncio.get_running_loop()
    now_s = [loop.time()]

    async def pass_s(seconds: float) -> None:
        for _ in range(round(seconds * 100)):
            now_s[0] += 0.01
            await asyncio.sleep(0)

    async def call_of(row: bytes) -> int:
        await bench.put(row)
        await bench.main.until(lambda: bench.main.sent)
        ((call_id, _, _),) = bench.main.take()
        return call_id

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "SILENCE_S", 1.0)
        patch.setattr(lanes, "IMPORT_S", 1.0)
        patch.setattr(loop, "time", lambda: now_s[0])
        await bench.add("t", timeout_ms=20)
        did(bench, await call_of(b"warm"))
        for rests_s in (0.9, 3.0):
            call_id = await call_of(b"a")
            bench.feeder.upkeep.hold()  # so that the next slice has no turn
            did(bench, call_id, "more", put(b"x"))
            await pass_s(rests_s)
            bench.feeder.upkeep.release()
            bench.feeder.deliver()
            assert await until_sent(bench, "go") == [("go", call_id)]
            await pass_s(0.8)
            assert bench.main.kills == 0, "it had no time to say something"
            did(bench, call_id)
            assert await bench.keeper.wait("t", "", 10.0)
            bench.main.sent.clear()
        call_id = await call_of(b"a")
        bench.feeder.hold_back("t")
        await bench.add("u", timeout_ms=20)
        did(bench, call_id, "more", put(b"x"))
        await pass_s(0.9)
        other_id = await call_of(b"b")
        await pass_s(0.8)
        assert bench.main.kills == 0, "nor had it for another call"
        did(bench, other_id)
        await bench.triggers.remove("u")
        bench.feeder.let_go("t")
        await bench.main.until(lambda: {kind for kind, *_ in bench.main.sent} == {"go", "run"})
        for one in list(bench.feeder.common.main.calls):
            did(bench, one)
        assert await bench.keeper.wait("t", "", 10.0)
        bench.main.sent.clear()
        call_id = await call_of(b"a")
        bench.feeder.upkeep.hold()
        did(bench, call_id, "more", put(b"x"))
        await pass_s(3.0)
        bench.feeder.upkeep.release()
        bench.feeder.deliver()
        await until_sent(bench, "go")
        await pass_s(1.5)
        assert bench.main.kills == 1


@on_bench()
async def test_a_store_copy_waits_for_effects(bench: Bench) -> None:
    """``RegionOwner._hold_deliveries``: nothing may be written while the store is copied."""
    await bench.add("t")
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "done", put(b"x"))
    bench.feeder.upkeep.hold()
    assert bench.feeder.calls_in_flight() == 1
    while bench.feeder.calls_in_flight():  # noqa: ASYNC110 - as the owner does
        await asyncio.sleep(0.001)
    assert out(bench, b"x")
    bench.feeder.upkeep.release()


@on_bench()
async def test_a_letter_says_that_its_change_gave_before(bench: Bench) -> None:
    totals = ServedTable(make_table("totals", [Family("n"), Family("m")]), True, [RegionInfo("totals", 99)])
    bench.server.tables.install(totals)
    await bench.add("t", attempts=1)
    await bench.put(b"a", b"b")
    calls = {row: call_id for call_id, _, row in bench.main.take()}
    did(bench, calls[b"a"], "more", list(Tally("totals", b"x", {b"n:edits": 1})))  # before a barrier
    await until_sent(bench, "go")
    did(bench, calls[b"a"], "failed", error="Error: no")
    did(bench, calls[b"b"], "failed", error="Error: no")
    assert await bench.keeper.wait("t", "", 10.0)
    letters = {one.row: one.error for one in await bench.keeper.dead_letters("t", 10)}
    assert letters[b"b"] == "Error: no"
    assert letters[b"a"].splitlines()[-1] == "Error: no"
    assert "adds its tallies again" in letters[b"a"]


@on_bench()
async def test_what_is_given_behind_a_checkpoint_counts_after_a_restart(bench: Bench) -> None:
    """The member bears the change's sequence already: without the part the second gift would be lost in silence."""
    totals = ServedTable(make_table("totals", [Family("n"), Family("m")]), True, [RegionInfo("totals", 99)])
    bench.server.tables.install(totals)
    await bench.add("t")
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    tally = Tally("totals", b"x", {b"n:edits": 1})
    did(bench, call_id, "more", list(tally), state=[b"half", 1])
    await until_sent(bench, "go")
    await bench.restart()
    bench.region(b"a")
    ((_, calls),) = await until_sent(bench, "run")
    assert calls[0][5] == [b"half", 1]
    did(bench, calls[0][0], "done", list(tally.in_part(1)))
    assert await bench.keeper.wait("t", "", 10.0)
    assert await bench.keeper.dead_letters("t", 10) == []
    region = region_at_once(bench.server, totals, b"x")
    cells = {column: value for column, value, _ in get_row(region, b"x", ReadSpec(projection(totals.schema, [])))}
    assert cells[b"n:edits"] == (2).to_bytes(8, "big")


@on_bench()
async def test_a_checkpoint_is_on_disk_while_its_call_goes_on(bench: Bench) -> None:
    """A kill in the middle of a long call: the next run begins behind the last checkpoint, not at the beginning."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_upkeep, "SAVE_S", 0.0)
        await bench.add("t")
        await bench.put(b"a", b"b")
        (call_id, _, _), (other, _, _) = bench.main.take()
        did(bench, other)  # what is done beside it saves the cursor as well, before
        log = bench.region(b"a").log
        for at, state in enumerate([b"half", b"later"]):
            for _ in range(10):
                await asyncio.sleep(0.001)
            (consumer,) = bench.feeder.consumers_of("t")
            assert not consumer.dirty
            did(bench, call_id, "more", put(b"x%d" % at), state=[state, at])
            assert await until_sent(bench, "go") == [("go", call_id)]
            async with asyncio.timeout(5):
                while [one[1:] for one in saved_progress(bench)] != [(state, at)]:  # noqa: ASYNC110 - a timer saves it
                    await asyncio.sleep(0.001)
        assert bench.feeder.calls_in_flight() == 1
        did(bench, call_id)
        assert await bench.keeper.wait("t", "", 10.0)
        assert log.cursor("t") is not None


def saved_progress(bench: Bench) -> tuple[tuple[Any, bytes, int], ...]:
    saved = bench.region(b"a").log.cursor("t")
    return unpack_cursor(saved).progress if saved is not None else ()


@on_bench()
async def test_a_call_that_waits_for_no_import_any_more_has_no_time_until_it_begins(bench: Bench) -> None:
    """It was sent before its module was imported; the time for that ends with the import, not later."""
    loop = asyncio.get_running_loop()
    now_s = [loop.time()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "IMPORT_S", 3.0)
        patch.setattr(loop, "time", lambda: now_s[0])
        await bench.add("t", timeout_ms=50)
        await bench.put(b"a", b"b", b"c")
        (first, _, _), (second, _, _), (third, _, _) = bench.main.take()

        async def pass_s(seconds: float) -> None:
            for _ in range(round(seconds * 10)):
                now_s[0] += 0.1
                bench.main.listener.answered(["alive", 0])
                await asyncio.sleep(0)
                await asyncio.sleep(0)

        await pass_s(lanes.IMPORT_S - 1)
        assert bench.main.kills == 0
        did(bench, first)
        await pass_s(lanes.IMPORT_S)
        assert bench.main.kills == 0, "both wait for a thread, and their time does not run"
        assert bench.feeder.calls_in_flight() == 2
        did(bench, second)
        bench.main.listener.answered(["began", [third]])
        await pass_s(0.2)
        assert bench.main.kills == 1, "its time has run since it began"


@on_bench()
async def test_a_call_whose_module_is_not_imported_in_time_is_ended(bench: Bench) -> None:
    loop = asyncio.get_running_loop()
    now_s = [loop.time()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "IMPORT_S", 3.0)
        patch.setattr(loop, "time", lambda: now_s[0])
        await bench.add("t", timeout_ms=50)
        await bench.put(b"a")
        assert len(bench.main.take()) == 1
        for _ in range(round(lanes.IMPORT_S * 10) + 2):
            assert bench.main.kills == 0
            now_s[0] += 0.1
            bench.main.listener.answered(["alive", 0])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if bench.main.kills:
                break
        assert bench.main.kills == 1


@on_bench()
async def test_a_change_that_asked_to_come_again_later_is_not_called_before_after_a_restart(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    await bench.put(b"a", b"b")
    calls = {row: call_id for call_id, _, row in bench.main.take()}
    did(bench, calls[b"a"], "later", error=3_600.0)
    did(bench, calls[b"b"])
    for _ in range(3):
        await bench.restart()
        bench.region(b"a")
        await bench.put(b"c")
        ((call_id, _, row),) = bench.main.take()
        assert row == b"c", "the row that waits is not called"
        did(bench, call_id)
        await bench.settle()
        (consumer,) = bench.feeder.consumers_of("t")
        assert consumer.state.parked_count == 1
        due_s = consumer.state.next_due_s()
        assert due_s is not None
        assert 3_500 < due_s - asyncio.get_running_loop().time() <= 3_600
        consumer.state.check()


@on_bench()
async def test_a_change_whose_time_has_come_while_the_store_was_down_is_called_at_once(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "later", error=3_600.0)
    with pytest.MonkeyPatch.context() as patch:
        now_s = time.time()
        patch.setattr(time, "time", lambda: now_s + 4_000)
        await bench.restart()
        bench.region(b"a")
        ((frame),) = await until_sent(bench, "run")
    assert (frame[1][0][4][0][1], frame[1][0][4][0][7]) == (b"a", 1), "nor was that an attempt"
    did(bench, frame[1][0][0])
    assert await bench.keeper.wait("t", "", 10.0)


def test_cursors_keep_when_changes_come_again() -> None:
    one, two = Sequence(7, 2, 299), Sequence(7, 2, 300)
    cursor = Cursor(two, ((one, 1), (two, 0)), (Progress(one, b"half", 3),), b"kept", ((one, 1_800_000_000_000),))
    assert unpack_cursor(pack_cursor(cursor)) == cursor


@on_bench()
async def test_the_time_of_a_call_in_quarantine_runs_anew_when_it_begins(bench: Bench) -> None:
    """What is left of the time for its import is no bound any more."""
    loop = asyncio.get_running_loop()
    now_s = [loop.time()]

    async def pass_s(seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            now_s[0] += 0.1
            bench.ward.listener.answered(["alive", 0])
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    await bench.add("t", timeout_ms=2_000)
    await bench.put(b"a", b"b")
    assert len(bench.main.take()) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "IMPORT_S", 3.0)
        patch.setattr(loop, "time", lambda: now_s[0])
        bench.main.die()
        bench.main.start()
        await bench.ward.until(lambda: bench.ward.sent)
        ((call_id, _, _),) = bench.ward.take()
        await pass_s(2.5)
        bench.ward.listener.answered(["began", [call_id]])
        await pass_s(1.5)
        assert bench.ward.kills == 0, "it has begun, and its own two seconds are not over"
        await pass_s(1.0)
        assert bench.ward.kills == 1
