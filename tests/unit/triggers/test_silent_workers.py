"""A worker that says nothing is ended in time, whatever the store sends it meanwhile."""

from __future__ import annotations

import asyncio

from columnar.triggers.worker_state import BEGAN_S, SILENCE_S
from tests.unit.triggers.test_dispatcher import Bench, on_bench


class Clock:
    """The time of the running loop, which its timers go by."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._now_s = loop.time()
        loop.time = lambda: self._now_s  # type: ignore[method-assign]

    async def passes(self, seconds: float) -> None:
        self._now_s += seconds
        for _ in range(5):  # timers, and what they plan
            await asyncio.sleep(0)


async def until_killed(bench: Bench, clock: Clock, every_s: float, most_s: float) -> tuple[float, int]:
    """Changes of another trigger trickle in: after how many seconds, and changes, the worker is ended."""
    passed_s, changes = 0.0, 0
    while not bench.main.kills and passed_s < most_s:
        await bench.put(b"trickle-%03d" % changes)
        changes += 1
        await clock.passes(every_s)
        passed_s += every_s
    return passed_s, changes


async def a_silent_worker(bench: Bench, **trickling: int) -> Clock:
    """It has a call of ``hangs``, which may take 2 s; changes of ``trickles`` may come."""
    await bench.add("hangs", timeout_ms=2_000)
    bench.dispatcher.common.main.imported("m")
    await bench.put(b"hangs")
    bench.dispatcher.pause("hangs")
    await bench.add("trickles", side_by_side=64, **trickling)
    return Clock()


@on_bench()
async def test_sends_do_not_wind_up_the_clock_of_a_silent_worker(bench: Bench) -> None:
    clock = await a_silent_worker(bench, timeout_ms=2_000)
    passed_s, changes = await until_killed(bench, clock, 0.5, 12.0)
    assert (passed_s, bench.main.kills) == (SILENCE_S, 1)
    assert changes > 5


@on_bench()
async def test_calls_that_came_to_a_silent_worker_do_not_lengthen_its_time(bench: Bench) -> None:
    clock = await a_silent_worker(bench, timeout_ms=300_000)
    await clock.passes(2 * BEGAN_S)
    passed_s, _ = await until_killed(bench, clock, 0.5, 12.0)
    assert passed_s == SILENCE_S - 2 * BEGAN_S


@on_bench()
async def test_calls_that_came_to_a_silent_worker_are_no_suspects(bench: Bench) -> None:
    clock = await a_silent_worker(bench, timeout_ms=2_000)
    await clock.passes(2 * BEGAN_S)
    await until_killed(bench, clock, 0.5, 12.0)
    consumers_of = bench.dispatcher.intake.consumers_of
    (trickles,), (hangs,) = consumers_of("trickles"), consumers_of("hangs")
    assert trickles.source.suspects == set()
    bench.main.die()
    assert trickles.source.suspects == set()
    assert hangs.state.attempts_of(next(iter(hangs.source.suspects))) == 1, "it was alone with the worker"
    assert "it had said nothing for 5 s" in hangs.state.last_error


@on_bench()
async def test_a_worker_that_had_nothing_to_do_has_all_its_time(bench: Bench) -> None:
    await bench.add("t", timeout_ms=2_000)
    bench.dispatcher.common.main.imported("m")
    clock = Clock()
    await bench.put(b"1")
    ((number, _, _),) = bench.main.take()
    bench.dispatcher.common.fair.suspend_trigger("t")
    bench.main.listener.take_frame(["did", [[number, "more", [], None, "", None, 10, 10]]])
    await clock.passes(2 * SILENCE_S)  # the call rests
    assert bench.main.kills == 0
    bench.let_go("t")
    await clock.passes(0.0)
    await clock.passes(SILENCE_S / 2)
    assert bench.main.kills == 0
    await clock.passes(SILENCE_S / 2)
    assert bench.main.kills == 1


@on_bench()
async def test_each_word_of_a_worker_winds_up_its_clock(bench: Bench) -> None:
    clock = await a_silent_worker(bench, timeout_ms=2_000)
    for _ in range(2):
        await clock.passes(SILENCE_S - 0.5)
        bench.main.listener.take_frame(["alive", 0])
    assert bench.main.kills == 0
    await clock.passes(SILENCE_S)
    assert bench.main.kills == 1
