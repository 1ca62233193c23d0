"""Batches and process labels over the dispatcher: what is sent together, what comes again after failures and deaths."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.model.mutation import Put
from columnar.triggers import consumer as consumers
from columnar.triggers.frames import BATCH_BYTES, STEP_BYTES, size_of
from tests.support.fake_links import FakeLink, runs
from tests.unit.triggers.test_dispatcher import Bench, on_bench
from tests.unit.triggers.test_effects_of_calls import did, out, put, stamp_of

ROWS = [b"a", b"b", b"c", b"d"]


def batches(link: FakeLink) -> list[tuple[int, list[bytes]]]:
    """Number and rows of the calls that were sent since the last look."""
    found = [(call[0], [change[1] for change in call[4]]) for call in runs(*link.sent)]
    link.sent.clear()
    return found


@on_bench()
async def test_a_full_batch_is_one_call_and_each_effect_bears_its_own_stamp(bench: Bench) -> None:
    await bench.add("t", batch=4, within_ms=60_000)
    await bench.put(*ROWS[:3])
    assert batches(bench.main) == [], "it waits for more"
    stamps = [stamp_of(bench, row) for row in ROWS[2:3]]
    await bench.put(ROWS[3])
    stamps.append(stamp_of(bench, ROWS[3]))
    ((number, rows),) = batches(bench.main)
    assert rows == ROWS
    did(bench, number, "done", [2, put(b"x")], [3, put(b"y")])
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert [out(bench, row)[b"f:a"][1] for row in (b"x", b"y")] == stamps


@on_bench()
async def test_a_batch_is_cut_where_its_changes_are_large(bench: Bench) -> None:
    """A worker takes no frame over 256 MiB, and the server packs a frame as a whole."""
    await bench.add("t", batch=100, within_ms=60_000, side_by_side=1, row=False)
    rows = [b"a", b"b", b"a", b"c", b"a", b"d"]
    for number, row in enumerate(rows):
        await bench.apply(row, Put(b"f", b"a", b"%d" % number * (BATCH_BYTES // 2)))
    bench.dispatcher.intake.consumers_of("t")[0].source.make_due()
    bench.dispatcher.advance_consumer(bench.dispatcher.intake.consumers_of("t")[0])
    seen: list[bytes] = []
    while calls := [(call[0], [change[4][0][3][:1] for change in call[4]]) for call in runs(*bench.main.sent)]:
        bench.main.sent.clear()
        ((number, values),) = calls
        assert len(values) == 2
        seen += values
        did(bench, number)
    assert sorted(seen) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert [value for value in seen if value in (b"0", b"2", b"4")] == [b"0", b"2", b"4"], "they are of one row"
    assert await bench.keeper.wait_delivered("t", "", 10.0)


@on_bench()
async def test_changes_of_many_steps_make_a_batch_large(bench: Bench) -> None:
    await bench.add("t", batch=3, within_ms=60_000, side_by_side=1, row=False)
    steps = [Put(b"f", b"%d" % number, b"") for number in range(BATCH_BYTES // STEP_BYTES // 4)]
    for row in ROWS[:3]:
        await bench.apply(row, *steps, *steps)
    sizes = []
    while calls := batches(bench.main):
        for number, rows in calls:
            sizes.append(len(rows))
            did(bench, number)
    assert sizes == [2, 1]


def test_a_batch_is_over_with_the_change_that_fills_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t", batch=4, within_ms=60_000)
        await bench.put(*ROWS)
        (call,) = runs(*bench.main.sent)
        (size_bytes,) = {size_of(change) for change in call[4]}
        monkeypatch.setattr(consumers, "BATCH_BYTES", 2 * size_bytes)
        bench.main.sent.clear()
        did(bench, call[0])
        await bench.put(*ROWS)
        assert [rows for _, rows in batches(bench.main)] == [ROWS[:2], ROWS[2:]]

    run()


@on_bench()
async def test_a_batch_that_fails_is_halved_until_one_change_is_alone(bench: Bench) -> None:
    await bench.add("t", batch=4, attempts=1)
    await bench.put(*ROWS)
    sizes, seen = [], set[bytes]()
    while calls := batches(bench.main):
        for number, rows in calls:
            sizes.append(len(rows))
            if b"b" in rows:
                did(bench, number, "failed", error="Error: b")
            else:
                seen.update(rows)
                did(bench, number)
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert seen == {b"a", b"c", b"d"}
    assert sizes.count(1) >= 2
    letters = await bench.keeper.dead_letters("t", 10)
    assert [(letter.row, letter.attempts) for letter in letters] == [(b"b", 1)]


@on_bench()
async def test_named_changes_fail_at_once_and_the_others_come_again(bench: Bench) -> None:
    await bench.add("t", batch=4, within_ms=60_000, attempts=1)
    await bench.put(*ROWS)
    ((number, _),) = batches(bench.main)
    did(bench, number, "named", error=[[1, "no b"]])
    ((number, rows),) = batches(bench.main)
    assert rows == [b"a", b"c", b"d"]
    did(bench, number)
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert [letter.error for letter in await bench.keeper.dead_letters("t", 10)] == ["no b"]


@on_bench()
async def test_an_effect_that_names_no_change_of_the_batch_fails_it(bench: Bench) -> None:
    await bench.add("t", batch=1, attempts=1)
    for effect in ([1, put(b"x")], put(b"x")):
        await bench.put(b"a")
        ((number, _),) = batches(bench.main)
        did(bench, number, "done", effect)
        assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert len(await bench.keeper.dead_letters("t", 10)) == 2
    assert out(bench, b"x") == {}


@on_bench()
async def test_a_label_has_processes_of_its_own_and_its_death_is_its_own(bench: Bench) -> None:
    await bench.add("common")
    await bench.add("apart", process="hog")
    own: Any = bench.links[2]
    await bench.put(b"a")
    assert [name for _, name, _ in bench.main.take()] == ["common"]
    ((_, name, _),) = own.take()
    assert name == "apart"
    own.die()
    (common,), (apart,) = bench.dispatcher.intake.consumers_of("common"), bench.dispatcher.intake.consumers_of("apart")
    assert common.state.in_flight_count == 1, "its call goes on"
    assert "the worker process went" in apart.state.last_error
    assert bench.main.is_up


@on_bench()
async def test_a_pause_that_ends_while_turns_are_taken_keeps_nobody_in_line(bench: Bench) -> None:
    """The turns of a round are taken as of its beginning: a row that is due since then waits for the next round."""
    await bench.add("t")
    await bench.put(b"a")
    ((number, _),) = batches(bench.main)
    did(bench, number, "failed", error="Error: no")
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    due_s, pool = consumer.source.due_s(), bench.dispatcher.common
    assert due_s is not None
    while asyncio.get_running_loop().time() <= due_s:
        pass  # the timer of the loop must not come first
    bench.dispatcher.intake.line_up_again(consumer.source, due_s - 0.001)
    assert not pool.fair.waits(due_s - 0.001)
    await bench.main.until(lambda: bench.main.sent)
    assert [rows for _, rows in batches(bench.main)] == [[b"a"]]


@pytest.mark.parametrize("batch", [0, 3])
def test_a_change_that_no_frame_holds_is_a_failure_of_its_own(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """The worker would end at the frame, and the trigger would wait for ever for a module that is good."""
    monkeypatch.setattr(consumers, "CHANGE_BYTES", 1_000)

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t", attempts=1, batch=batch, images=True)
        await bench.apply(b"large", Put(b"f", b"a", bytes(1_000)))
        await bench.put(b"small")
        await bench.main.until(lambda: bench.main.sent)
        ((call_id, _, row),) = bench.main.take()
        assert row == b"small"
        bench.main.answer(call_id)
        assert await bench.keeper.wait_delivered("t", "", 5.0)
        (letter,) = await bench.keeper.dead_letters("t", 10)
        assert letter.row == b"large"
        assert "bytes with its images, at most" in letter.error

    run()
