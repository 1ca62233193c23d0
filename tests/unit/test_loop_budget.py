"""Dear work shares a round of the loop; what is asked for in between does not wait for all of it."""

from __future__ import annotations

import asyncio
import time

from columnar.runtime.loop_budget import LoopBudget


def burn(seconds: float) -> None:
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        pass


def test_a_round_does_no_more_than_its_share() -> None:
    async def scene() -> None:
        turns, done = LoopBudget(share_s=0.001), []
        for number in range(6):
            turns.soon(lambda number=number: (burn(0.0006), done.append(number)))
        seen = []
        while len(turns):
            await asyncio.sleep(0)
            seen.append(len(done))
        assert done == list(range(6))
        assert all(after - before <= 2 for before, after in zip([0, *seen], seen, strict=False)), seen

    asyncio.run(scene())


def test_what_was_spent_at_once_leaves_no_room_in_this_round() -> None:
    async def scene() -> None:
        turns = LoopBudget(share_s=0.001)
        assert turns.has_room
        turns.spend(0.0005)
        assert turns.has_room
        turns.spend(0.0006)
        assert not turns.has_room
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert turns.has_room

    asyncio.run(scene())


def test_nobody_overtakes_those_who_wait() -> None:
    async def scene() -> None:
        turns, done = LoopBudget(), []
        turns.soon(lambda: done.append("first"))
        assert not turns.has_room
        await turns.wait_for_budget()
        assert done == ["first"]
        assert len(turns) == 0

    asyncio.run(scene())


def test_who_is_most_likely_cheap_goes_ahead() -> None:
    async def scene() -> None:
        turns, done = LoopBudget(), []
        turns.soon(lambda: done.append("dear"))
        turns.soon(lambda: done.append("new"), ahead=True)
        await turns.wait_for_budget()
        assert done == ["new", "dear"]

    asyncio.run(scene())


def test_what_fails_holds_up_nobody() -> None:
    async def scene() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        turns = LoopBudget()
        turns.soon(lambda: 1 / 0)
        await asyncio.wait_for(turns.wait_for_budget(), 10)

    asyncio.run(scene())


def test_one_that_is_given_up_before_its_turn_holds_up_nobody() -> None:
    async def scene() -> None:
        turns = LoopBudget()
        gone, there = asyncio.ensure_future(turns.wait_for_budget()), asyncio.ensure_future(turns.wait_for_budget())
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait_for(there, 10)
        assert gone.cancelled()

    asyncio.run(scene())
