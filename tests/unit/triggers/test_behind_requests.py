"""A backlog of a trigger goes in the governor's steps while requests are answered, and at once without them."""

from __future__ import annotations

import pytest

from columnar.triggers import dispatcher as feeders
from tests.unit.triggers.test_dispatcher import Bench, on_bench

ROWS = [b"r%02d" % n for n in range(20)]


async def all_of(bench: Bench, seen: list[bytes]) -> None:
    while len(seen) < len(ROWS):
        await bench.main.until(lambda: bench.main.sent)
        for number, _, row in bench.main.take():
            seen.append(row)
            bench.main.answer(number)


@on_bench()
async def test_while_requests_come_a_step_ends_in_time_and_the_rest_follows(bench: Bench) -> None:
    answered = 0

    def one_more() -> int:
        nonlocal answered
        answered += 1
        return answered

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feeders, "STEP_S", 0.0)  # a change is a step
        await bench.add("t")
        bench.dispatcher.pause("t")
        await bench.put(*ROWS)
        bench.keeper.governor.answered = one_more
        bench.dispatcher.resume("t")
        assert bench.main.take() == [], "after what else waits"
        await bench.main.until(lambda: bench.main.sent)
        first = bench.main.take()
        assert len(first) == 1
        seen = [row for _, _, row in first]
        for number, _, _ in first:
            bench.main.answer(number)
        await all_of(bench, seen)
        assert seen == ROWS
        assert await bench.keeper.wait_delivered("t", "", 10.0)


@on_bench()
async def test_without_requests_changes_are_sent_at_once(bench: Bench) -> None:
    await bench.add("t", side_by_side=8)
    bench.dispatcher.pause("t")
    await bench.put(*ROWS)
    bench.dispatcher.resume("t")
    assert len(bench.main.take()) == 8
