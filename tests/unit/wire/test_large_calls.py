"""Large calls: in order, and a rest after one that held the loop."""

from __future__ import annotations

import asyncio
import time
from itertools import count

from columnar.wire.large_calls import HELD_S, REST, REST_BESIDE_OTHERS, LargeCalls


def test_short_ones_follow_each_other() -> None:
    async def scene() -> None:
        calls, done = LargeCalls(lambda: 0), []
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


def hold(seconds: float) -> None:
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        pass


async def rest_after_a_long_one(calls: LargeCalls) -> float:
    over = asyncio.Event()
    moments = []

    def begin() -> None:
        hold(HELD_S * 1.02)
        moments.append(time.perf_counter())

    def end() -> None:
        moments.append(time.perf_counter())
        over.set()

    calls.soon(begin)
    calls.soon(end)
    await asyncio.wait_for(over.wait(), 60)
    return moments[1] - moments[0]


def test_after_one_that_held_the_loop_the_next_waits() -> None:
    rest_s = asyncio.run(rest_after_a_long_one(LargeCalls(lambda: 0)))
    assert REST * HELD_S <= rest_s < REST_BESIDE_OTHERS * HELD_S


def test_while_others_ask_it_waits_a_hundredfold() -> None:
    answered = count(step=2)  # more between two looks than the call's own answer
    assert asyncio.run(rest_after_a_long_one(LargeCalls(lambda: next(answered)))) >= REST_BESIDE_OTHERS * HELD_S


def test_once_others_are_quiet_it_waits_no_longer() -> None:
    answered = iter([0, 5, 9])
    rest_s = asyncio.run(rest_after_a_long_one(LargeCalls(lambda: next(answered, 9))))
    assert 3 * REST * HELD_S <= rest_s < REST_BESIDE_OTHERS * HELD_S
