"""Unexpected exceptions of loops: reported, counted, shown while they are recent, and a step that outlives its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from columnar.runtime import faults as module
from columnar.runtime.faults import FAULTS, HEALTH_WINDOW_S, STUCK_S, STUCK_TRIES, Faults, surviving
from columnar.runtime.planned_step import LONGEST_PAUSE_S, PlannedStep, pause_after
from columnar.webui.pages import health_of


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_an_exception_is_in_the_log_and_counted(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    faults = Faults()
    faults.met("sweeps", KeyError("mine"))
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "sweeps met an unexpected exception and goes on")
    assert record.exc_info is not None
    assert record.exc_info[0] is KeyError
    faults.met("builds", ValueError("another"))
    faults.met("sweeps", KeyError("mine"))
    assert faults.counts() == [("builds", 1), ("sweeps", 2)]
    assert len(caplog.records) == 2, "one a second of each loop"
    clock.now_s += module.LOG_INTERVAL_S
    faults.met("sweeps", KeyError("mine"))
    assert caplog.records[-1].getMessage().endswith("goes on (1 more since the last line)")


def test_it_is_shown_for_some_time(clock: Clock) -> None:
    faults = Faults()
    faults.met("sweeps", KeyError("mine"))
    faults.went_well("sweeps")
    clock.now_s += 12
    assert faults.recent() == [
        "sweeps met 1 unexpected exceptions and goes on; the last 12 s ago: KeyError: 'mine' (see the log)"
    ]
    clock.now_s += HEALTH_WINDOW_S
    assert faults.recent() == []
    assert faults.counts() == [("sweeps", 1)]


def test_a_loop_that_fails_again_and_again_is_stuck_until_it_goes_well(clock: Clock) -> None:
    faults = Faults()
    for _ in range(STUCK_TRIES):
        assert faults.stuck() == []
        faults.met("sweeps", KeyError("mine"))
        clock.now_s += STUCK_S
    (text,) = faults.stuck()
    assert text == f"sweeps failed {STUCK_TRIES} times in a row, since {STUCK_S * STUCK_TRIES:.0f} s: KeyError: 'mine'"
    faults.went_well("sweeps")
    assert faults.stuck() == []


def test_what_survives_reports_and_lets_a_cancellation_through(expected_faults: Callable[[], dict[str, int]]) -> None:
    with surviving("mine"):
        raise KeyError("mine")
    with pytest.raises(asyncio.CancelledError), surviving("mine"):
        raise asyncio.CancelledError
    assert expected_faults() == {"mine": 1}
    assert any(one.startswith("mine met 1 unexpected exceptions") for one in FAULTS.recent())


def test_health_names_them(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    faults = Faults()
    monkeypatch.setattr("columnar.webui.pages.FAULTS", faults)
    assert (health_of().status_code, health_of().get_data(as_text=True)) == (200, "ok\n")
    faults.met("sweeps", KeyError("mine"))
    assert health_of().status_code == 200, "it went on"
    assert health_of().get_data(as_text=True).startswith("ok\nsweeps met 1 unexpected exceptions and goes on")
    for _ in range(STUCK_TRIES):
        clock.now_s += STUCK_S
        faults.met("sweeps", KeyError("mine"))
    answer = health_of()
    assert (answer.status_code, answer.get_data(as_text=True)[:34]) == (503, "unhealthy: sweeps failed 4 times i")


def test_a_planned_step_outlives_its_exceptions(expected_faults: Callable[[], dict[str, int]]) -> None:
    async def run() -> None:
        done = asyncio.get_running_loop().create_future()
        left = [3]

        def step() -> None:
            assert not planned.is_planned, "it may plan itself"
            left[0] -= 1
            if left[0]:
                raise KeyError("mine")
            done.set_result(None)

        planned = PlannedStep("mine", step)
        planned.soon()
        planned.after(100.0)
        planned.soon()
        assert planned.is_planned, "once"
        await asyncio.wait_for(done, 10)
        assert not planned.is_planned
        planned.soon()
        planned.cancel()
        await asyncio.sleep(0)
        assert left == [0]

    asyncio.run(run())
    assert expected_faults() == {"mine": 2}
    assert FAULTS.stuck() == []


def test_pauses_grow() -> None:
    assert [pause_after(n) for n in (1, 2, 3)] == [0.01, 0.02, 0.04]
    assert pause_after(1_000_000) == LONGEST_PAUSE_S
