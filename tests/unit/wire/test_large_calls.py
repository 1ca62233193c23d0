"""Large calls: in order, and a rest after one that held the loop."""

from __future__ import annotations

import asyncio
import time

from columnar.wire.large_calls import HELD_S, REST, LargeCalls


def test_short_ones_follow_each_other() -> None:
    async def scene() -> None:
        calls, done = LargeCalls(), []
        last = asyncio.Event()
        for number in range(5):
            calls.soon(lambda number=number: done.append(number))
        calls.soon(last.set)
        await asyncio.wait_for(last.wait(), 10)
        assert done == list(range(5))
        again = asyncio.Event()
        calls.soon(again.set)
        await asyncio.wait_for(again.wait(), 10)

    asyncio.run(scene())


def test_after_one_that_held_the_loop_the_next_waits() -> None:
    async def scene() -> None:
        calls, over = LargeCalls(), asyncio.Event()
        moments = []

        def hold() -> None:
            ends = time.perf_counter() + HELD_S * 1.1
            while time.perf_counter() < ends:
                pass
            moments.append(time.perf_counter())

        def end() -> None:
            moments.append(time.perf_counter())
            over.set()

        calls.soon(hold)
        calls.soon(end)
        await asyncio.wait_for(over.wait(), 10)
        assert moments[1] - moments[0] >= REST * HELD_S

    asyncio.run(scene())
