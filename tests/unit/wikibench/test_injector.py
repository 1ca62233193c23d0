"""The open loop in a time of its own: a stall is charged to whom it met, to the request, whatever this machine does."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any

import pytest

from gauge.histogram import Histogram
from wikibench.http.answer import Answer, NoAnswer
from wikibench.http.pool import Wire
from wikibench.injector import Injector, PlanSource
from wikibench.outcome import Kind, Outcome
from wikibench.pacing import Pace, Planned, plan, planned_seconds, shape_of
from wikibench.run import result_of
from wikibench.summary import Replay
from wikibench.targets.target import parse_target
from wikibench.trace.lines import VIEW, Request
from wikibench.visits import Load

STALL_S = (0.4, 0.9)
RATE = 200
EXACTLY_US = 3_000  # the sleeps of the dispatcher are of a millisecond, and a histogram has three digits


class OwnTime(selectors.BaseSelector):
    """Where a loop would wait, its clock goes on instead."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits, and nothing will happen"
        self.now_s += max(timeout, 0.0)
        return self._real.select(0)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class OwnLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.own = OwnTime()
        super().__init__(self.own)

    def time(self) -> float:
        return self.own.now_s


class StallingWiki(Wire):
    """Answers at once, but for the time of its stall: then at its end.  No network."""

    def __init__(self) -> None:
        self.opened = self.retried = 0

    async def exchange(self, method: str, url: str, **_: Any) -> Answer | NoAnswer:
        now_s = asyncio.get_running_loop().time()
        if STALL_S[0] <= now_s < STALL_S[1]:
            await asyncio.sleep(STALL_S[1] - now_s)
        return Answer(200)

    async def close(self) -> None:
        pass


class HangingWiki(StallingWiki):
    """Never answers, and notes what was under way when it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way = 0
        self.under_way_at_close: int | None = None

    async def exchange(self, method: str, url: str, **_: Any) -> Answer | NoAnswer:
        self.under_way += 1
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            self.under_way -= 1

    async def close(self) -> None:
        self.under_way_at_close = self.under_way


def replay_in_own_time(**load: Any) -> Replay:
    requests = [Request(1_000_000 + n, f"http://w/Page{n}", VIEW) for n in range(2)]
    pace, shape = Pace(rate=RATE, even=True, duration_s=1.2, loop=True), shape_of(requests)
    given = Load(parse_target("http://127.0.0.1:1"), planned_s=planned_seconds(pace, shape), **load)
    with asyncio.Runner(loop_factory=OwnLoop) as runner:
        injector = Injector(given, runner.get_loop().time, lambda _: StallingWiki())
        runner.run(injector.run(PlanSource(plan(lambda: requests, pace, shape))))
    return result_of(injector)


def at_least(histogram: Histogram, milliseconds: int) -> int:
    return sum(count for value, count in histogram.counts.items() if histogram.top_of(value) >= milliseconds * 1000)


def test_a_stall_is_charged_to_everybody_who_came_meanwhile_and_to_nobody_else() -> None:
    result = replay_in_own_time()
    result.recorder.check()
    assert result.recorder.count(Kind.PAGE, [Outcome.OK]) == 240
    response = result.recorder.response()
    # 100 came in the half second; of them those before 0.85 and 0.65 s waited 50 and 250 ms
    assert at_least(response, 5) == pytest.approx(100, abs=1)
    assert at_least(response, 50) == pytest.approx(90, abs=1)
    assert at_least(response, 250) == pytest.approx(50, abs=1)
    assert response.percentile(100) == pytest.approx(500_000, abs=EXACTLY_US)
    assert result.own_lateness.percentile(100) <= EXACTLY_US
    assert result.slot_wait.count == 0


def test_with_four_in_the_air_the_wait_of_the_others_still_counts_and_is_the_wikis() -> None:
    result = replay_in_own_time(open_requests=4)
    assert result.recorder.count(Kind.PAGE, [Outcome.OK]) == 240
    assert result.most_open == 4
    assert at_least(result.recorder.service(), 50) == 4, "a closed loop would show these alone"
    assert at_least(result.recorder.response(), 50) == pytest.approx(90, abs=1)
    assert at_least(result.recorder.response(), 250) == pytest.approx(50, abs=1)
    assert result.slot_wait.percentile(100) == pytest.approx(480_000, abs=EXACTLY_US)
    assert result.own_lateness.percentile(100) <= EXACTLY_US


def test_all_who_had_to_wait_for_a_slot_are_counted_not_those_at_the_head_alone() -> None:
    """All answers come at 0.9 s: of the hundred that came in the stall four are sent, and all others wait."""
    result = replay_in_own_time(open_requests=4)
    assert result.slot_wait.count == pytest.approx(96, abs=1)
    assert at_least(result.slot_wait, 240) == pytest.approx(48, abs=2)


def test_those_that_were_never_sent_have_waited_too() -> None:
    requests = [Request(1_000_000 + n, "http://w/Page", VIEW) for n in range(2)]
    pace, shape = Pace(rate=RATE, even=True, duration_s=0.8, loop=True), shape_of(requests)
    given = Load(parse_target("http://127.0.0.1:1"), planned_s=0.8, open_requests=4, drain_s=0.0, hopeless_s=None)
    with asyncio.Runner(loop_factory=OwnLoop) as runner:
        injector = Injector(given, runner.get_loop().time, lambda _: StallingWiki())
        runner.run(injector.run(PlanSource(plan(lambda: requests, pace, shape))))
    assert injector.figures.slot_wait.count == pytest.approx(76, abs=2), "0.4 s of 200 a second, but for four"


class LateSource(PlanSource):
    """A plan whose requests come when they were dealt."""

    def first(self) -> Planned | None:
        first = super().first()
        return first if first is None or first.dealt_s <= asyncio.get_running_loop().time() else None

    async def changed(self) -> None:
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("open_requests", [1, 512])
def test_the_four_parts_of_a_response_time_add_up(open_requests: int) -> None:
    """The stall, a controller that was late with every third request, and few slots: each has its share, once."""
    rows = [Planned(n / 50, Request(0, f"/{n}"), dealt_s=(n / 50 + 0.05) * (n % 3 == 0)) for n in range(60)]
    given = Load(parse_target("http://127.0.0.1:1"), planned_s=1.2, open_requests=open_requests)
    with asyncio.Runner(loop_factory=OwnLoop) as runner:
        injector = Injector(given, runner.get_loop().time, lambda _: StallingWiki())
        runner.run(injector.run(LateSource(rows)))
    figures = injector.figures
    parts = [figures.dealt_late, figures.slot_wait, figures.own_lateness, figures.recorder.service()]
    sums = [part.mean() * part.count for part in parts]
    response = figures.recorder.response()
    assert figures.dealt_late.count == 20
    assert sum(sums) == pytest.approx(response.mean() * response.count, rel=0.002)


class LateWaking(StallingWiki):
    """Answers whose last byte came 4 ms before the visit wakes, because the loop had others to read."""

    async def exchange(self, method: str, url: str, **_: Any) -> Answer | NoAnswer:
        await asyncio.sleep(0.010)
        return Answer(200, read_s=asyncio.get_running_loop().time() - 0.004)

    def age_s(self, answer: Answer) -> float:
        return asyncio.get_running_loop().time() - answer.read_s


def test_a_request_ends_with_its_last_byte_not_when_the_visit_wakes() -> None:
    rows = [Planned(n / 50, Request(0, f"/{n}")) for n in range(10)]
    with asyncio.Runner(loop_factory=OwnLoop) as runner:
        injector = Injector(
            Load(parse_target("http://127.0.0.1:1"), planned_s=0.2), runner.get_loop().time, lambda _: LateWaking()
        )
        runner.run(injector.run(PlanSource(rows)))
    assert injector.figures.recorder.service().percentile(100) == pytest.approx(6_000, abs=100)


def test_a_cancelled_replay_cuts_its_visits_off_before_it_closes_their_connections() -> None:
    """A connection that a visit makes while all are closed would keep the process for ever."""
    wiki, rows = HangingWiki(), [Planned(n / 100, Request(0, f"/Page{n}")) for n in range(100)]

    async def cancelled() -> None:
        replaying = asyncio.create_task(injector.run(PlanSource(rows)))
        await asyncio.sleep(0.5)
        replaying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await replaying

    with asyncio.Runner(loop_factory=OwnLoop) as runner:
        load = Load(parse_target("http://127.0.0.1:1"), planned_s=1.0)
        injector = Injector(load, runner.get_loop().time, lambda _: wiki)
        runner.run(cancelled())
    assert injector.sent >= 49
    assert wiki.under_way_at_close == 0
    assert injector.finished == injector.sent
