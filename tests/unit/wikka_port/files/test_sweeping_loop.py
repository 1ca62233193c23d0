"""The loop of the sweep: when it sweeps, and when it gives pages the files that wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from wikka_port.files.sweeping import EVERY_S, TICK_S, Swept, start_sweeping
from wikka_port.store import NotPrepared, StoreUnavailable


class Ticks(threading.Event):
    """The end of a loop after a number of ticks, each of which first does what it is to."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        super().__init__()
        self.acts = iter(acts)
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        act = next(self.acts, None)
        if act is not None:
            act()
        return act is None


class SweepOfAnHour:
    def __init__(self, *found: Swept | Exception | None) -> None:
        self.found = iter(found)

    def run_if_due(self) -> Swept | None:
        one = next(self.found)
        if isinstance(one, Exception):
            raise one
        return one


def test_the_loop_adopts_soon_after_its_beginning_after_a_failure_and_each_hour(
    caplog: pytest.LogCaptureFixture,
) -> None:
    away, older = StoreUnavailable("memory", "it is away"), NotPrepared("memory", "uploads")
    failures, adoptions, unfinished = list[Exception](), list[int](), threading.Event()
    unfinished.set()

    def adopt() -> int:
        adoptions.append(len(ticks.waited))
        if failures:
            raise failures.pop()
        return 0

    def nothing() -> None:
        """Let the tick pass."""

    def failing(problem: Exception) -> Callable[[], None]:
        def act() -> None:
            failures.append(problem)
            unfinished.set()

        return act

    acts = [nothing, nothing, failing(away), nothing, nothing, failing(older), failing(ValueError("a mistake"))]
    ticks = Ticks(*acts, *[nothing] * 114)
    sweep: Any = SweepOfAnHour(None, Swept(), away)
    start_sweeping(sweep, adopt, unfinished, ticks).join(20)
    assert adoptions == [1, 3, 4, 6, 7, 61]
    assert set(ticks.waited) == {TICK_S}
    assert EVERY_S == 60 * TICK_S
    assert "a mistake" in caplog.text


def test_a_save_that_fails_while_files_are_adopted_gets_its_own_within_a_minute() -> None:
    adoptions, unfinished = list[int](), threading.Event()
    unfinished.set()

    def adopt() -> int:
        adoptions.append(len(ticks.waited))
        if len(adoptions) == 1:
            unfinished.set()  # by a save for whose page the files were looked up before
        return 0

    def nothing() -> None:
        """Let the tick pass."""

    ticks = Ticks(*[nothing] * 4)
    sweep: Any = SweepOfAnHour(None)
    start_sweeping(sweep, adopt, unfinished, ticks).join(20)
    assert adoptions == [1, 2]
