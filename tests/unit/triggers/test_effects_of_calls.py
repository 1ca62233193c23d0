"""Effects of calls: on disk before the change is done, in slices with checkpoints, and what becomes of failures."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from columnar.flows import applier as appliers
from columnar.flows.fair_share import FairShare
from columnar.model.mutation import Put
from columnar.model.read import ReadSpec, projection
from columnar.model.trigger_registration import DEFAULT_SIDE_BY_SIDE
from columnar.regions.read.region_reads import get_row
from columnar.triggers import dispatcher, retry_state
from columnar.triggers import worker_state as lanes
from columnar.triggers.retry_state import IN_SERIES
from columnar.triggers.worker_state import RESTING
from tests.support.fake_links import runs
from tests.support.openings import region_at_once
from tests.unit.triggers.test_dispatcher import Bench, on_bench

USED_US = 5_000


def put(row: bytes, value: bytes = b"1", table: bytes = b"out") -> list[Any]:
    return [1, table, row, {b"f:a": value}]


def did(bench: Bench, call_id: int, what: str = "done", *effects: Any, error: Any = None, state: Any = None) -> None:
    bench.main.listener.take_frame(["did", [[call_id, what, list(effects), error, "", state, USED_US, 0]]])


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
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    assert consumer.state.in_flight_count == 1
    assert bench.dispatcher.calls_in_flight() == 1
    assert await bench.keeper.wait_delivered("t", "", 0.0) is False
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert out(bench, b"x") == {b"f:a": (b"1", stamp)}
    assert out(bench, b"y") == {b"f:a": (b"2", stamp)}
    assert bench.dispatcher.calls_in_flight() == 0


@on_bench()
async def test_effects_that_the_store_cannot_write_now_blame_nobody(bench: Bench) -> None:
    """The log of the target is full behind another trigger, or its region is away: the change itself is good."""
    region = region_at_once(bench.server, bench.out, b"x")
    await bench.add("t", attempts=1)
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appliers, "RETRY_TIMEOUT_S", 0.05)
        patch.setattr(retry_state, "LONGEST_BLOCK_PAUSE_S", 0.05)
        region.refuses_writes = True
        did(bench, call_id, "done", put(b"x"))
        await bench.main.until(lambda: runs(*bench.main.sent))
    ((call_id, _, row),) = bench.main.take()
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    assert row == b"a"
    assert "effects cannot be written" in consumer.state.last_error
    region.refuses_writes = False
    did(bench, call_id, "done", put(b"x"))
    assert await bench.keeper.wait_delivered("t", "", 10.0)
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
        while bench.keeper.trigger_statuses()[0].state == "running":  # noqa: ASYNC110 - tries are iterations of the loop
            await asyncio.sleep(0)
        assert "effects cannot be written: RegionTooBusy" in bench.keeper.trigger_statuses()[0].last_error
        region.refuses_writes = False
        assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert bench.keeper.trigger_statuses()[0].state == "running"


@on_bench()
async def test_a_blocked_trigger_takes_no_turn_after_some_calls_in_vain(bench: Bench) -> None:
    """Thousands of changes would be called for nothing; the first call that works lets it go on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry_state, "LONGEST_BLOCK_PAUSE_S", 0.05)
        await bench.add("t", attempts=1)
        await bench.add("other")
        await bench.put(*(b"%02d" % n for n in range(40)))
        called = 0
        while calls := [call_id for call_id, name, _ in bench.main.take() if name == "t"]:
            called += len(calls)
            for call_id in calls:
                did(bench, call_id, "blocked", error="no such module")
        assert called < IN_SERIES + DEFAULT_SIDE_BY_SIDE
        shown = {one.name: (one.state, one.last_error) for one in bench.keeper.trigger_statuses()}
        assert shown == {"t": ("blocked", "no such module"), "other": ("running", "")}
        await bench.main.until(lambda: [one for one in runs(*bench.main.sent) if one[1] == "t"])
        (call_id, *_), *_ = [call for call in bench.main.take() if call[1] == "t"]
        did(bench, call_id)
        assert bench.keeper.trigger_statuses()[1].state == "running"
        (consumer,) = bench.dispatcher.intake.consumers_of("t")
        assert max(consumer.state.attempts_of(one) for one, _ in consumer.state.cursor().open) == 0


@on_bench()
async def test_a_blocked_trigger_that_is_removed_leaves_nothing(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(*(b"%02d" % n for n in range(20)))
    for call_id, _, _ in bench.main.take():
        did(bench, call_id, "blocked", error="no such module")
    await bench.triggers.remove("t")
    await bench.add("t")
    assert bench.keeper.trigger_statuses()[0].state == "running"
    await bench.put(b"a")
    assert [row for _, _, row in bench.main.take()] == [b"a"]


@on_bench()
async def test_a_place_in_the_worker_is_free_while_effects_are_written(bench: Bench) -> None:
    bench.dispatcher.common.fair = FairShare(1)
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
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    assert consumer.state.cursor().progress == ((bench.region(b"a").log.last_logged, b"half", 0),)
    did(bench, call_id, "done", put(b"y"))
    assert await bench.keeper.wait_delivered("t", "", 10.0)
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
    ((_, _, _, _, (change,), progress, _, _),) = frame[1]
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
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    assert not consumer.source.suspects
    bench.main.start()
    ((_, calls),) = await until_sent(bench, "run")
    assert (calls[0][4][0][1], calls[0][4][0][7], calls[0][5]) == (b"a", 1, [b"half", 0])
    assert bench.dispatcher.calls_in_flight() == 1
    did(bench, calls[0][0], "done", put(b"z"))
    assert await bench.keeper.wait_delivered("t", "", 10.0)


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
    assert await bench.keeper.wait_delivered("t", "", 10.0)
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
    assert await bench.keeper.wait_delivered("t", "", 10.0)
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
    assert bench.dispatcher.common.main.calls, "it has its place until the worker says that it has ended"
    did(bench, call_id)
    assert bench.dispatcher.calls_in_flight() == 0
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
    assert bench.dispatcher.calls_in_flight() == 0
    assert bench.keeper.dispatcher.state.retries.full == set()
    target.refuses_writes = False
    while bench.hub.background._tasks:  # noqa: ASYNC110 - until nobody tries any more
        await asyncio.sleep(0.001)
    assert [out(bench, row) for row in (b"x2", b"y", b"z")] == [{}, {}, {}]
    assert bench.dispatcher.common.fair.running_count == 0


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
        assert await bench.keeper.wait_delivered("full", "", 10.0)


@on_bench()
async def test_a_silent_worker_is_ended_and_its_calls_run_alone(bench: Bench) -> None:
    loop = asyncio.get_running_loop()
    now_s = [loop.time()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "SILENCE_S", 0.01)
        patch.setattr(lanes, "IMPORT_S", 0.01)
        patch.setattr(loop, "time", lambda: now_s[0])  # a machine that pauses is no silent worker
        await bench.add("t", timeout_ms=10)
        await bench.put(b"warm")
        ((call_id, _, _),) = bench.main.take()
        did(bench, call_id)
        await bench.put(b"a", b"b")
        assert len(bench.main.take()) == 2
        for _ in range(15):
            now_s[0] += 0.01
            await asyncio.sleep(0)
        assert bench.main.kills == 1
    bench.main.die()
    bench.main.start()
    await bench.ward.until(lambda: bench.ward.sent)
    ((_, _, row),) = bench.ward.take()
    assert row == b"a"
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
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
            bench.main.listener.take_frame(["alive", 0])
        assert bench.main.kills == 0
        assert bench.dispatcher.calls_in_flight() == 1, "it has not begun: its time does not run"
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
                bench.main.listener.take_frame(["did", [outcome]])
            return [record.getMessage() for record in caplog.records if "printed" in record.getMessage()]

        with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.INFO):
            patch.setattr(dispatcher, "PRINTED_BYTES", 20)
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
            running = [call for call in bench.dispatcher.common.main.calls.values() if call.stage != RESTING]
            assert 0 < len(running) <= 4, "a slice that goes on is not held up"
            for call_id, row in [(call_id, row) for call_id, _, row in bench.main.take()]:
                seen.append(row)
                did(bench, call_id)
            for call_id in [one.number for one in running if one.number in resting]:
                seen.append(resting.pop(call_id))
                did(bench, call_id)
        assert sorted(seen) == rows
        assert await bench.keeper.wait_delivered("t", "", 10.0)
        assert bench.dispatcher.common.main.running_bytes == 0


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
            bench.dispatcher.intake.upkeep.pause_saving()  # so that the next slice has no turn
            did(bench, call_id, "more", put(b"x"))
            await pass_s(rests_s)
            bench.dispatcher.intake.upkeep.release()
            bench.dispatcher.deliver()
            assert await until_sent(bench, "go") == [("go", call_id)]
            await pass_s(0.8)
            assert bench.main.kills == 0, "it had no time to say something"
            did(bench, call_id)
            assert await bench.keeper.wait_delivered("t", "", 10.0)
            bench.main.sent.clear()
        call_id = await call_of(b"a")
        bench.dispatcher.common.fair.suspend_trigger("t")
        await bench.add("u", timeout_ms=20)
        did(bench, call_id, "more", put(b"x"))
        await pass_s(0.9)
        other_id = await call_of(b"b")
        await pass_s(0.8)
        assert bench.main.kills == 0, "nor had it for another call"
        did(bench, other_id)
        await bench.triggers.remove("u")
        bench.let_go("t")
        await bench.main.until(lambda: {kind for kind, *_ in bench.main.sent} == {"go", "run"})
        for one in list(bench.dispatcher.common.main.calls):
            did(bench, one)
        assert await bench.keeper.wait_delivered("t", "", 10.0)
        bench.main.sent.clear()
        call_id = await call_of(b"a")
        bench.dispatcher.intake.upkeep.pause_saving()
        did(bench, call_id, "more", put(b"x"))
        await pass_s(3.0)
        bench.dispatcher.intake.upkeep.release()
        bench.dispatcher.deliver()
        await until_sent(bench, "go")
        await pass_s(1.5)
        assert bench.main.kills == 1
