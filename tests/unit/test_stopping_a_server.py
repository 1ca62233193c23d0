"""A server that is stopped alone: it hands its clients over first, and is killed where it does not answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from columnar.limits import OPEN_REGIONS
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import HandOver, HandoverResult
from columnar.roles import server_processes
from columnar.roles.server_processes import Server, ServerProcesses

S1 = Incarnation("s1", 1)


class Process:
    """A child and its link; what was done to it in order."""

    def __init__(self, processes: ServerProcesses, answers: bool) -> None:
        self.done: list[object] = []
        self._answers = answers
        self._ended = asyncio.get_running_loop().create_future()
        processes.living[S1] = Server(S1, cast(Any, self), cast(Any, self))
        processes._ends[S1] = self._ended
        processes._events = cast(Any, self)

    async def send_request(self, message: HandOver) -> HandoverResult:
        self.done.append(message)
        if not self._answers:
            await asyncio.get_running_loop().create_future()
        return HandoverResult(3, 0, 0, 0)

    def handover_ended(self, server: Incarnation, told: HandoverResult) -> None:
        self.done.append((server, told))

    def request_stop(self) -> None:
        self.done.append("stop")
        self._ended.set_result(None)

    async def fence(self) -> int:
        self.done.append("fence")
        if not self._ended.done():
            self._ended.set_result(None)
        return 0


def stopped(*, answers: bool) -> list[object]:
    async def scenario() -> list[object]:
        processes = ServerProcesses([], {}, -1, lambda _: {})
        process = Process(processes, answers)
        await asyncio.wait_for(processes.stop_one(S1, 0.01), 20)
        assert processes.living[S1].is_stopping, "it gets no connection any more"
        return process.done

    return asyncio.run(scenario())


def test_clients_are_handed_over_before_it_stops() -> None:
    assert stopped(answers=True) == [HandOver(10), (S1, HandoverResult(3, 0, 0, 0)), "stop", "fence"]


def test_one_that_does_not_answer_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_processes, "ANSWER_S", 0.01)
    assert stopped(answers=False) == [HandOver(10), "fence"]


@pytest.mark.parametrize(
    ("regions", "most_s"), [(0, 30.0), (1_000, 50.0), (OPEN_REGIONS, 70.0), (10 * OPEN_REGIONS, 70.0)]
)
def test_a_server_of_many_open_regions_has_longer_for_its_stopping(regions: int, most_s: float) -> None:
    """No more than OPEN_REGIONS can be open; and systemd kills the whole store after 90 s."""
    processes = ServerProcesses([], {}, -1, lambda _: {})
    processes.regions_of = {"s1": regions}.__getitem__
    assert processes.stop_s("s1") == pytest.approx(most_s)
    assert processes.stop_s("s1") < 90


def test_a_server_is_killed_after_the_time_that_its_regions_take(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float | None] = []

    async def wait(_futures: object, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's own name
        waited.append(timeout)

    async def scenario() -> list[object]:
        processes = ServerProcesses([], {}, -1, lambda _: {})
        processes.regions_of = lambda _name: 100
        process = Process(processes, answers=True)
        process.request_stop = lambda: process.done.append("stop")  # type: ignore[method-assign]
        monkeypatch.setattr(asyncio, "wait", wait)
        await processes._stop(processes.living[S1], 0.01)
        return process.done

    assert asyncio.run(scenario())[-2:] == ["stop", "fence"]
    assert waited == [pytest.approx(32.0)]
