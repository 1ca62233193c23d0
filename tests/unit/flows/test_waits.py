"""Waits for several changes: True means that each of them is in, in whatever order followers have them."""

from __future__ import annotations

import asyncio

from columnar.client.sessions import Session
from tests.support.changing_house import Worker
from tests.support.memory_house import House, housed
from tests.unit.triggers.test_dispatcher import Bench, on_bench


async def tokens_of(bench: Bench, *rows: bytes) -> list[str]:
    """Put the rows, one after the other; return the token of each."""
    found = []
    for row in rows:
        await bench.put(row)
        last = bench.region(row).log.last_logged
        assert last is not None
        found.append(last.token)
    return found


def session_of(*tokens: str) -> str:
    session = Session(None)  # type: ignore[arg-type]
    for token in tokens:
        session.add(token)
    return session.token


@on_bench()
async def test_a_later_change_that_is_in_says_nothing_of_an_earlier_one(bench: Bench) -> None:
    await bench.add("t")
    tokens = await tokens_of(bench, b"0", b"1", b"2")
    others, first, last = [call_id for call_id, _, _ in bench.main.take()]
    bench.main.answer(last)
    assert await bench.keeper.wait_delivered("t", tokens[2], 0.0)
    for token in (session_of(*tokens[1:]), ",".join(tokens[1:]), ",".join(reversed(tokens[1:]))):
        assert not await bench.keeper.wait_delivered("t", token, 0.0), token
    bench.main.answer(first)
    assert await bench.keeper.wait_delivered("t", session_of(*tokens[1:]), 0.0), "a change before them is not theirs"
    assert not await bench.keeper.wait_delivered("t", session_of(session_of(*tokens[1:]), tokens[0]), 0.0)
    bench.main.answer(others)
    assert await bench.keeper.wait_delivered("t", session_of(*tokens), 0.0)


@housed(triggers=1)
async def test_after_a_split_both_halves_are_waited_for(house: House) -> None:
    house.keeper.dispatcher.pause("trigger-0")
    tokens = [await house.put(b"10"), await house.put(b"90")]
    await house.regions.split(house.infos[0], b"50")
    token = session_of(*tokens)
    house.keeper.dispatcher.resume("trigger-0")
    assert await house.keeper.wait_delivered("trigger-0", token, 5)
    assert sorted(row for row, _ in house.told) == [b"10", b"90"]


@housed(triggers=1)
async def test_the_half_without_the_last_change_may_be_the_late_one(house: House) -> None:
    house.keeper.dispatcher.pause("trigger-0")
    tokens = [await house.put(b"10"), await house.put(b"90")]
    await house.regions.split(house.infos[0], b"50")
    held = _held_calls(house.workers[0], b"10")
    house.keeper.dispatcher.resume("trigger-0")
    assert await house.keeper.wait_delivered("trigger-0", tokens[1], 5)
    assert not await house.keeper.wait_delivered("trigger-0", session_of(*tokens), 0.02)
    assert not await house.keeper.wait_delivered("", session_of(*tokens), 0.02)
    house.workers[0].answer(held.pop())
    assert await house.keeper.wait_delivered("trigger-0", session_of(*tokens), 5)
    await house.regions.merge(*house.infos)
    assert await house.keeper.wait_delivered("trigger-0", session_of(*tokens), 5)


def _held_calls(worker: Worker, row: bytes) -> list[int]:
    """Have the worker answer no call for the row; return the list of these calls."""
    held: list[int] = []
    later = worker._later

    def later_unless_held(call_id: int, turns: int) -> None:
        if worker._told[-1][0] == row and turns >= 0 and call_id not in passed:
            held.append(call_id)
        else:
            passed.add(call_id)
            later(call_id, turns)

    passed: set[int] = set()
    worker._later = later_unless_held  # type: ignore[method-assign]
    return held


@on_bench()
async def test_a_region_that_does_not_open_in_time_is_not_in(bench: Bench) -> None:
    await bench.add("t")
    (token,) = await tokens_of(bench, b"0")
    assert len(bench.main.take()) == 1
    region = bench.region(b"0")
    await bench.server.hosting.close(region)
    opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    bench.hub._openings._again[region.info.region_id] = asyncio.ensure_future(asyncio.wait_for(opened, 10.0))
    assert not await bench.keeper.wait_delivered("t", token, 0.01)
    waiting = asyncio.ensure_future(bench.keeper.wait_delivered("t", token, 10.0))
    bench.region(b"0")
    opened.set_result(None)
    await bench.main.until(lambda: bench.main.sent)
    for again, _, _ in bench.main.take():
        assert not waiting.done()
        bench.main.answer(again)
    assert await waiting
