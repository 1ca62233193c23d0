"""What calls gather together has a bound, and the bound stops nobody for ever."""

from __future__ import annotations

import asyncio
import random

import pytest

from columnar.errors import ClientGone
from columnar.regions.read.reply_memory import ReplyMemoryBudget

STEP = 10


async def gather(gathering: ReplyMemoryBudget, steps: int, peak: list[int]) -> None:
    ticket = gathering.begin_call()
    try:
        for number in range(steps):
            await gathering.reserve_step(ticket, number * STEP)
            peak[0] = max(peak[0], gathering.total_bytes)
    finally:
        gathering.end(ticket)


@pytest.mark.parametrize("seed", range(5))
def test_many_calls_end_and_hold_little_more_than_the_bound(seed: int) -> None:
    rng = random.Random(seed)
    calls = [rng.randrange(1, 40) for _ in range(60)]

    async def main() -> int:
        gathering, peak = ReplyMemoryBudget(100, STEP), [0]
        async with asyncio.timeout(20):
            await asyncio.gather(*(gather(gathering, steps, peak) for steps in calls))
        assert (gathering.total_bytes, gathering.waiting) == (0, 0)
        return peak[0]

    # The bound, and the reply of the oldest.
    assert 100 <= asyncio.run(main()) <= 100 + max(calls) * STEP


def test_the_oldest_goes_on_over_the_bound() -> None:
    async def main() -> None:
        gathering = ReplyMemoryBudget(5, 1)
        first, second = gathering.begin_call(), gathering.begin_call()
        await gathering.reserve_step(first, 100)
        waiting = asyncio.ensure_future(gathering.reserve_step(second, 1))
        await gathering.reserve_step(first, 200)
        assert not waiting.done()
        gathering.end(first)
        await waiting
        gathering.end(second)

    asyncio.run(main())


def test_one_that_is_given_up_while_it_waits_lets_the_next_go_on() -> None:
    async def main() -> None:
        gathering = ReplyMemoryBudget(5, 1)
        first, second, third = gathering.begin_call(), gathering.begin_call(), gathering.begin_call()
        await gathering.reserve_step(first, 3)
        waiting = [asyncio.ensure_future(gathering.reserve_step(ticket, 3)) for ticket in (second, third)]
        await asyncio.sleep(0)
        assert gathering.waiting == 2
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
        gathering.end(second)
        gathering.end(first)
        await waiting[1]
        gathering.end(third)
        assert gathering.total_bytes == 0

    asyncio.run(main())


def test_a_call_whose_client_has_gone_takes_no_further_step() -> None:
    async def main() -> None:
        gathering, gone = ReplyMemoryBudget(5, 1), [False]
        ticket = gathering.begin_call(0, lambda: gone[0])
        await gathering.reserve_step(ticket, 1)
        gone[0] = True
        with pytest.raises(ClientGone):
            await gathering.reserve_step(ticket, 2)
        gathering.end(ticket)
        assert gathering.calls == gathering.total_bytes == 0

    asyncio.run(main())
