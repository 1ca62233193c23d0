"""Calls over restarts: what letters, checkpoints and puts-off of the run before are worth; and copies of a store."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from columnar.flows import log_upkeep
from columnar.flows.delivery_cursor import Cursor, Progress, pack_cursor, unpack_cursor
from columnar.model.effect import Tally
from columnar.model.read import ReadSpec, projection
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.regions.log.change_record import Sequence
from columnar.regions.read.region_reads import get_row
from columnar.regions.tables import ServedTable
from columnar.triggers import worker_state as lanes
from tests.support.openings import region_at_once
from tests.unit.triggers.test_dispatcher import Bench, on_bench
from tests.unit.triggers.test_effects_of_calls import did, out, put, until_sent

USED_US = 5_000


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
    assert await bench.keeper.wait_delivered("t", "", 10.0)
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
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert await bench.keeper.dead_letters("t", 10) == []
    region = region_at_once(bench.server, totals, b"x")
    cells = {column: value for column, value, _ in get_row(region, b"x", ReadSpec(projection(totals.schema, [])))}
    assert cells[b"n:edits"] == (2).to_bytes(8, "big")


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
        (consumer,) = bench.dispatcher.intake.consumers_of("t")
        assert consumer.state.parked_count == 1
        due_s = consumer.state.next_due_s()
        assert due_s is not None
        assert 3_500 < due_s - asyncio.get_running_loop().time() <= 3_600
        consumer.state.check_invariants()


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
    assert await bench.keeper.wait_delivered("t", "", 10.0)


def test_cursors_keep_when_changes_come_again() -> None:
    one, two = Sequence(7, 2, 299), Sequence(7, 2, 300)
    cursor = Cursor(two, ((one, 1), (two, 0)), (Progress(one, b"half", 3),), b"kept", ((one, 1_800_000_000_000),))
    assert unpack_cursor(pack_cursor(cursor)) == cursor


@on_bench()
async def test_a_store_copy_waits_for_effects(bench: Bench) -> None:
    """``RegionOwner._pause_deliveries``: nothing may be written while the store is copied."""
    await bench.add("t")
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "done", put(b"x"))
    bench.dispatcher.intake.upkeep.pause_saving()
    assert bench.dispatcher.calls_in_flight() == 1
    while bench.dispatcher.calls_in_flight():  # noqa: ASYNC110 - as the owner does
        await asyncio.sleep(0.001)
    assert out(bench, b"x")
    bench.dispatcher.intake.upkeep.release()


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
            (consumer,) = bench.dispatcher.intake.consumers_of("t")
            assert not consumer.dirty
            did(bench, call_id, "more", put(b"x%d" % at), state=[state, at])
            assert await until_sent(bench, "go") == [("go", call_id)]
            async with asyncio.timeout(5):
                while [one[1:] for one in saved_progress(bench)] != [(state, at)]:  # noqa: ASYNC110 - a timer saves it
                    await asyncio.sleep(0.001)
        assert bench.dispatcher.calls_in_flight() == 1
        did(bench, call_id)
        assert await bench.keeper.wait_delivered("t", "", 10.0)
        assert log.cursors.cursor("t") is not None


def saved_progress(bench: Bench) -> tuple[tuple[Any, bytes, int], ...]:
    saved = bench.region(b"a").log.cursors.cursor("t")
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
                bench.main.listener.take_frame(["alive", 0])
                await asyncio.sleep(0)
                await asyncio.sleep(0)

        await pass_s(lanes.IMPORT_S - 1)
        assert bench.main.kills == 0
        did(bench, first)
        await pass_s(lanes.IMPORT_S)
        assert bench.main.kills == 0, "both wait for a thread, and their time does not run"
        assert bench.dispatcher.calls_in_flight() == 2
        did(bench, second)
        bench.main.listener.take_frame(["began", [third]])
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
            bench.main.listener.take_frame(["alive", 0])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if bench.main.kills:
                break
        assert bench.main.kills == 1


@on_bench()
async def test_the_time_of_a_call_in_quarantine_runs_anew_when_it_begins(bench: Bench) -> None:
    """What is left of the time for its import is no bound any more."""
    loop = asyncio.get_running_loop()
    now_s = [loop.time()]

    async def pass_s(seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            now_s[0] += 0.1
            bench.ward.listener.take_frame(["alive", 0])
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
        bench.ward.listener.take_frame(["began", [call_id]])
        await pass_s(1.5)
        assert bench.ward.kills == 0, "it has begun, and its own two seconds are not over"
        await pass_s(1.0)
        assert bench.ward.kills == 1
