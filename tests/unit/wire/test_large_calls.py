"""Large calls: light ones as they come, and a rest after one that held the loop, which its own kind waits for."""

from __future__ import annotations

import asyncio
import time
from itertools import count

import pytest

from columnar.wire import large_calls
from columnar.wire.large_calls import LIGHT_BYTES, LONG_CALL_S, REST, REST_BESIDE_OTHERS, LargeCaller, LargeCalls

SMALL, LARGE = LIGHT_BYTES, LIGHT_BYTES + 1
SHORT_CALL_S = LONG_CALL_S / 5


def nobody() -> bool:
    return False


def test_short_ones_follow_each_other() -> None:
    async def scene() -> None:
        calls, done = LargeCalls(lambda: 0, nobody), []
        last = asyncio.Event()
        for number in range(5):
            calls.soon(LargeCaller(), SMALL, lambda number=number: done.append(number))
        calls.soon(LargeCaller(), SMALL, last.set)
        await asyncio.wait_for(last.wait(), 10)
        assert done == list(range(5))
        again = asyncio.Event()
        calls.soon(LargeCaller(), SMALL, again.set)
        await asyncio.wait_for(again.wait(), 10)

    asyncio.run(scene())


def hold(seconds: float) -> None:
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        pass


@pytest.fixture
def short_calls_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the longest rest, which is 5 s after a call of the usual length."""
    monkeypatch.setattr(large_calls, "LONG_CALL_S", SHORT_CALL_S)


async def rest_after_a_long_one(calls: LargeCalls, long_call_s: float = LONG_CALL_S) -> float:
    over = asyncio.Event()
    moments = []

    def begin() -> None:
        hold(long_call_s * 1.02)
        moments.append(time.perf_counter())

    def end() -> None:
        moments.append(time.perf_counter())
        over.set()

    calls.soon(LargeCaller(), LARGE, begin)
    calls.soon(LargeCaller(), LARGE, end)
    await asyncio.wait_for(over.wait(), 60)
    return moments[1] - moments[0]


def test_after_one_that_held_the_loop_the_next_waits() -> None:
    rest_s = asyncio.run(rest_after_a_long_one(LargeCalls(lambda: 0, nobody)))
    assert REST * LONG_CALL_S <= rest_s < REST_BESIDE_OTHERS * LONG_CALL_S


@pytest.mark.usefixtures("short_calls_are_long")
def test_while_others_ask_it_waits_a_hundredfold() -> None:
    answered = count(step=2)  # more between two looks than the call's own answer
    calls = LargeCalls(lambda: next(answered), nobody)
    assert asyncio.run(rest_after_a_long_one(calls, SHORT_CALL_S)) >= REST_BESIDE_OTHERS * SHORT_CALL_S


@pytest.mark.usefixtures("short_calls_are_long")
def test_whose_request_waits_for_the_engine_asks_too() -> None:
    """A loader that stands behind a large write of the same region is answered seldom: it asks all the same."""
    calls = LargeCalls(lambda: 0, lambda: True)
    assert asyncio.run(rest_after_a_long_one(calls, SHORT_CALL_S)) >= REST_BESIDE_OTHERS * SHORT_CALL_S


@pytest.mark.usefixtures("short_calls_are_long")
def test_of_the_heavy_ones_each_pays_for_its_own() -> None:
    """One that costs a quarter of the other's is made four times as often, however many wait."""

    async def scene() -> None:
        calls, made, over = LargeCalls(lambda: 0, nobody), [], asyncio.Event()
        clients = {"dear": (LargeCaller(), 4 * SHORT_CALL_S * 1.02), "less dear": (LargeCaller(), SHORT_CALL_S * 1.02)}

        def ask(name: str) -> None:
            caller, cost = clients[name]

            def call() -> None:
                made.append(name)
                hold(cost)
                if len(made) < 11:
                    asyncio.get_running_loop().call_soon(ask, name)
                else:
                    over.set()

            calls.soon(caller, LARGE, call)

        ask("dear")
        ask("less dear")
        await asyncio.wait_for(over.wait(), 60)
        assert made.count("dear") in (2, 3), made

    asyncio.run(scene())


def test_once_others_are_quiet_it_waits_no_longer() -> None:
    answered = iter([0, 5, 9])
    rest_s = asyncio.run(rest_after_a_long_one(LargeCalls(lambda: next(answered, 9), nobody)))
    assert 3 * REST * LONG_CALL_S <= rest_s < REST_BESIDE_OTHERS * LONG_CALL_S


def test_a_light_one_waits_for_nobodys_rest() -> None:
    """And the client that made others rest does not come back as a light one."""

    async def scene() -> None:
        calls, made = LargeCalls(lambda: 0, nobody), []
        writer, loader, over = LargeCaller(), LargeCaller(), asyncio.Event()

        def write(number: int) -> None:
            made.append(f"write {number}")
            hold(LONG_CALL_S * 1.02)
            if number == 0:
                loop = asyncio.get_running_loop()
                loop.call_soon(calls.soon, writer, SMALL, lambda: write(1))  # small or not: its client is heavy now
                loop.call_soon(calls.soon, loader, SMALL, lambda: load(20))
            else:
                over.set()

        def load(left: int) -> None:
            made.append("load")
            if left:
                calls.soon(loader, SMALL, lambda: load(left - 1))

        calls.soon(writer, LARGE, lambda: write(0))
        await asyncio.wait_for(over.wait(), 60)
        assert made == ["write 0", *["load"] * 21, "write 1"]

    asyncio.run(scene())


def test_a_client_with_large_messages_is_light_once_its_calls_were_short() -> None:
    caller = LargeCaller()
    assert not caller.is_light(LARGE, 0.0)
    caller.paid(LONG_CALL_S / 2, 0.0, 0.0)
    assert caller.is_light(LARGE, 0.0)
    caller.paid(1.0, 10.0, 0.0)
    caller.paid(LONG_CALL_S / 2, 11.0, 0.0)
    assert not caller.is_light(SMALL, 10.0 + REST_BESIDE_OTHERS - 1)
    assert caller.is_light(LARGE, 10.0 + REST_BESIDE_OTHERS)


def test_the_call_of_a_client_that_has_gone_is_forgotten() -> None:
    async def scene() -> None:
        calls, made = LargeCalls(lambda: 0, nobody), []
        light, heavy, last = LargeCaller(), LargeCaller(), asyncio.Event()
        calls.soon(light, SMALL, lambda: made.append("light"))
        calls.soon(heavy, LARGE, lambda: made.append("heavy"))
        assert calls.forget(light)
        assert calls.forget(heavy)
        assert not calls.forget(heavy)
        calls.soon(LargeCaller(), LARGE, last.set)
        await asyncio.wait_for(last.wait(), 10)
        assert made == []

    asyncio.run(scene())
