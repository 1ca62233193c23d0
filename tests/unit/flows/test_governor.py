"""Background steps: in turn, at once where nobody asks, with pauses where somebody does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from columnar.flows import governor
from columnar.flows.governor import (
    BUSY_PER_S,
    FOREGROUND_S,
    LONGEST_S,
    PAUSE,
    RATED_S,
    STEP_S,
    TICK_S,
    GovernedStep,
    Governor,
)


def test_steps_take_turns_until_they_have_no_more() -> None:
    async def run() -> None:
        done: list[str] = []
        held = Governor()

        def step(name: str, times: int) -> None:
            left = [times]

            def work() -> bool:
                done.append(name)
                left[0] -= 1
                return left[0] > 0

            held.soon(work)

        step("a", 3)
        step("b", 1)
        while len(done) < 4:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert done == ["a", "b", "a", "a"]
        step("c", 1)
        await asyncio.sleep(0)
        assert done[-1] == "c"

    asyncio.run(run())


def test_a_step_may_ask_for_another() -> None:
    async def run() -> None:
        done: list[str] = []
        held = Governor()

        def first() -> bool:
            done.append("first")
            held.soon(lambda: bool(done.append("second")))
            return False

        held.soon(first)
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
        for _ in range(5):
            await asyncio.sleep(0)
        assert done == ["first", "second"]
        assert faults == [], "each is done once"

    asyncio.run(run())


def paced(answered: list[int], steps: int) -> list[float]:
    """The looks during pauses, ``answered[1]`` answers apart, after steps that take 10 ms by the test's clock."""
    now = [0.0]
    pauses: list[float] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        held = Governor(lambda: answered[0])
        left = [steps]

        def work() -> bool:
            now[0] += 0.010
            answered[0] += answered[1]
            left[0] -= 1
            return left[0] > 0

        later = loop.call_later

        def noted(delay: float, *call: object) -> asyncio.TimerHandle:
            pauses.append(delay)
            now[0] += delay
            answered[0] += answered[1]
            return later(0, *call)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "call_later", noted)
            patch.setattr(governor, "perf_counter", lambda: now[0])
            held.soon(work)
            while left[0]:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)

    asyncio.run(run())
    return pauses


def test_while_requests_are_answered_a_pause_follows_each_step() -> None:
    looks = paced([0, 1], 4)
    assert max(looks) <= FOREGROUND_S
    assert sum(looks) == pytest.approx(3 * PAUSE * LONGEST_S), "more of a step is not the step's"


def test_without_requests_there_is_no_pause() -> None:
    assert paced([0, 0], 4) == []


def test_the_last_request_is_soon_forgotten() -> None:
    assert sum(paced([1, 0], 4)) <= 2 * FOREGROUND_S


def _sum_of(pauses: list[float]) -> float:
    """Since the last call."""
    total = sum(pauses)
    pauses.clear()
    return total


def test_a_step_that_is_asked_for_later_waits_for_the_pause_too_and_pays_for_work_outside_steps() -> None:
    async def run() -> None:
        loop, now, answered = asyncio.get_running_loop(), [0.0], [0]
        pauses: list[float] = []
        held = Governor(lambda: answered[0])
        later = loop.call_later

        def step() -> bool:
            now[0] += 0.0002
            answered[0] += 1
            return False

        def noted(delay: float, *call: object) -> asyncio.TimerHandle:
            pauses.append(delay)
            now[0] += delay
            answered[0] += 1
            return later(0, *call)  # type: ignore[arg-type]

        async def asked() -> None:
            held.soon(step)
            while held._next is not None:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "call_later", noted)
            patch.setattr(governor, "perf_counter", lambda: now[0])
            assert not held.requests_come()
            await asked()
            assert held.requests_come()
            await asked()
            assert _sum_of(pauses) == pytest.approx(PAUSE * 0.0002, abs=TICK_S / 2)
            held.spend(0.0001)
            now[0] += PAUSE * 0.0002
            await asked()
            assert _sum_of(pauses) == 0, "it came after the pause"
            held.spend(1.0)
            await asked()
            assert _sum_of(pauses) == pytest.approx(PAUSE * 0.0003, abs=TICK_S / 2)
            await asked()
            assert _sum_of(pauses) == pytest.approx(PAUSE * (0.0002 + STEP_S), abs=TICK_S / 2), (
                "no more than a step is paid for"
            )
            now[0] += 1.0
            assert not held.requests_come()
            held.spend(1.0)
            await asked()
            assert _sum_of(pauses) == 0

    asyncio.run(run())


def test_a_step_that_fails_does_not_hold_up_the_others(
    caplog: pytest.LogCaptureFixture, expected_faults: Callable[[], dict[str, int]]
) -> None:
    async def run() -> None:
        held, done = Governor(), []

        def fails() -> bool:
            raise KeyError("a fault")

        held.soon(fails)
        held.soon(lambda: bool(done.append(1)))  # type: ignore[func-returns-value]
        begun_s = time.monotonic()
        while not done and time.monotonic() < begun_s + 10:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        assert done == [1]
        assert expected_faults() == {"the governor of background work": 1}

    asyncio.run(run())
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is KeyError


def test_a_request_that_waits_for_a_disk_keeps_the_pause() -> None:
    async def run() -> None:
        done: list[float] = []
        waits = [True]
        held = Governor(has_waiting=lambda: waits[0])

        def step() -> bool:
            done.append(time.perf_counter())
            end = done[-1] + LONGEST_S
            while time.perf_counter() < end:
                pass
            return len(done) < 3

        held.soon(step)
        while len(done) < 2:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        assert done[1] - done[0] >= PAUSE * LONGEST_S, "nobody was answered meanwhile, and somebody waits"
        assert held.requests_come()
        waits[0] = False
        while len(done) < 3:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        held.close()

    asyncio.run(run())


@pytest.mark.parametrize(("per_s", "is_long"), [(2 * BUSY_PER_S, True), (BUSY_PER_S / 20, False)])
def test_few_requests_take_short_pauses(per_s: float, is_long: bool) -> None:
    async def run() -> None:
        begun = time.perf_counter()
        done: list[tuple[float, float]] = []
        held = Governor(lambda: int((time.perf_counter() - begun) * per_s), lambda: True)

        def step() -> bool:
            started = time.perf_counter()
            while time.perf_counter() < started + LONGEST_S:
                pass
            done.append((started, time.perf_counter()))
            return time.perf_counter() < begun + 6 * RATED_S

        held.soon(step)
        await asyncio.sleep(7 * RATED_S)  # it measures by the clock
        held.close()
        rests = [later[0] - earlier[1] for earlier, later in pairwise(done) if earlier[0] > begun + 2 * RATED_S]
        assert rests
        assert (min(rests) >= 0.9 * PAUSE * LONGEST_S) == is_long

    asyncio.run(run())


def test_a_step_that_plans_the_next_one_itself_is_heard() -> None:
    """A view that has ended a piece asks for the next one within its step, which has no more to do by itself."""
    runs: list[int] = []

    async def main() -> None:
        governor = Governor()
        step: GovernedStep

        def work() -> bool:
            runs.append(len(runs))
            if len(runs) < 3:
                step.soon()
            return len(runs) in (1, 4)  # whether it says so, too, changes nothing

        step = GovernedStep(governor, "test", work)
        step.soon()
        async with asyncio.timeout(20):
            while len(runs) < 3 or step.is_planned:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        governor.close()

    asyncio.run(main())
    assert runs == [0, 1, 2], "once for each time that it was asked for"


def test_a_step_that_plans_the_next_one_and_raises_comes_once(expected_faults: Callable[[], dict[str, int]]) -> None:
    runs: list[int] = []

    async def main() -> None:
        governor = Governor()
        step: GovernedStep

        def work() -> bool:
            runs.append(len(runs))
            if len(runs) == 1:
                step.soon()
                raise KeyError("mine")
            return False

        step = GovernedStep(governor, "test", work)
        step.soon()
        async with asyncio.timeout(20):
            while len(runs) < 2 or step.is_planned:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
        await asyncio.sleep(0.05)  # a second plan, after the pause, would run by then
        governor.close()

    asyncio.run(main())
    assert runs == [0, 1]
    assert expected_faults() == {"test": 1}


def test_a_fault_in_what_follows_a_step_ends_no_other_step(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Callable[[], dict[str, int]]
) -> None:
    monkeypatch.setattr(governor, "RATED_S", 0.0)
    monkeypatch.setattr(governor, "FOREGROUND_S", 0.001)

    async def run() -> None:
        done = asyncio.Event()
        held = Governor(answered=lambda: "no number")  # type: ignore[arg-type, return-value]
        held.soon(lambda: False)
        held.soon(lambda: bool(done.set()))
        async with asyncio.timeout(10):
            await done.wait()
        held.close()

    asyncio.run(run())
    assert sum(expected_faults().values()) > 0
