"""The load generator in open loop: operations arrive at a fixed rate, independently of the answers.

The generator is a process with an epoll loop, as in ``generator``; ``arrivals`` says which operations are due and keeps
the times.  Between arrivals the process sleeps in ``select`` (whose timer has microseconds, where epoll's has
milliseconds) until ``SPIN_NS`` before the next arrival.  Then it reads the clock in a loop, so as not to be late by a
wake-up.
"""

from __future__ import annotations

import select
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from statistics import median
from typing import Final

from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.connections import SILENCE_S, Connection
from columnar.bench.generator import LoadRun, Outcome, connected, sessions_of
from columnar.bench.measuring import Generators, Line, Plan, in_rounds
from columnar.bench.workloads import MORE_CALLS
from gauge.arrivals import Arrivals, poisson

SPIN_NS: Final = 80_000  # a wake-up by timer is late by so much: 50 us of the kernel's slack, and the switch
DRAIN_S: Final = 5.0  # after the last arrival; then unanswered calls count with the time that they have waited
BACKLOG_S: Final = 0.1  # the rate was kept if at most this time's arrivals wait at the end
_SEEDS: Final = 500_000  # seeds of open loop begin here
_SCHEDULE_SEED: Final = 0x0A11  # separate from the seeds of the calls


@dataclass(frozen=True, slots=True)
class OpenLoadRun:
    """A run in which operations arrive at a given rate."""

    load_run: LoadRun
    rate: float


@dataclass(frozen=True, slots=True)
class OpenOutcome:
    """The outcome of a generator's run in open loop."""

    rate: float  # requested
    latencies_us: Counter[int] = field(default_factory=Counter)  # since the operation was due
    late_us: Counter[int] = field(default_factory=Counter)  # of the generator itself
    backlog: int = 0  # due and not begun when the last one arrived
    unanswered: int = 0  # when the run was given up
    connections: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def kept(self) -> bool:
        """Whether the endpoint kept up with the rate."""
        return not self.unanswered and self.backlog <= max(self.connections, self.rate * BACKLOG_S)


def measure_open(
    endpoints: Sequence[Endpoint],
    plan: Plan,
    pool: Generators,
    began: Callable[[str], None],
    line: Line,
    number: int,
    share: float,
) -> tuple[list[OpenOutcome], ...]:
    """Measure in open loop what ``line``, the ``number``-th, measured in closed loop; return each endpoint's outcomes.

    The rate is a share of the endpoint's own rate in closed loop, so both endpoints are equally busy, whatever their
    speed.  Raises EndpointFailed.
    """

    def run_load(endpoint: Endpoint, rate: float, seed: int) -> OpenOutcome:
        load_runs = pool.load_runs(endpoint, line.workload, line.connections, plan, seed + _SEEDS)
        open_runs = [OpenLoadRun(one, rate * one.connections / line.connections) for one in load_runs]
        return summed_open(pool.run_each(run_open, open_runs))

    rates = [share * rate_of(outcomes) for outcomes in line.outcomes]
    loads = [partial(run_load, endpoint, rate) for endpoint, rate in zip(endpoints, rates, strict=True)]
    title = f"{line.workload.name}, open at {line.connections}"
    return in_rounds(endpoints, plan.rounds, number, title, began, loads)


def rate_of(outcomes: Sequence[Outcome]) -> float:
    """Return the operations per second, the median of the rounds."""
    return median(outcome.calls / outcome.wall_s for outcome in outcomes)


def run_open(open_run: OpenLoadRun) -> OpenOutcome:
    """Drive one run in this process.  Raises EndpointFailed."""
    load_run = open_run.load_run
    due = poisson(Random(load_run.seed ^ _SCHEDULE_SEED), open_run.rate, load_run.warm_up_s + load_run.duration_s)
    sessions = sessions_of(load_run)
    # The epoll comes first: ``select`` takes descriptors under 1,024 only.
    with select.epoll() as epoll, connected(load_run.endpoint, sessions) as lines:
        return _Loop(epoll, lines, due, open_run).drive()


def summed_open(outcomes: list[OpenOutcome]) -> OpenOutcome:
    """Return one outcome for generators that ran side by side."""
    latencies: Counter[int] = Counter()
    late: Counter[int] = Counter()
    for outcome in outcomes:
        latencies.update(outcome.latencies_us)
        late.update(outcome.late_us)
    return OpenOutcome(
        sum(o.rate for o in outcomes),
        latencies,
        late,
        sum(o.backlog for o in outcomes),
        sum(o.unanswered for o in outcomes),
        sum(o.connections for o in outcomes),
        max(o.wall_s for o in outcomes),
        sum(o.cpu_s for o in outcomes),
    )


class _Loop:
    """A run: the connections and the call that each sends next."""

    def __init__(
        self, epoll: select.epoll, lines: list[Connection], offsets_ns: array[int], open_run: OpenLoadRun
    ) -> None:
        self._by_fd = {line.sock.fileno(): line for line in lines}
        self._next = {line: line.session.first() for line in lines}
        self._epoll = epoll
        started = time.perf_counter_ns()
        warm_up_ns = int(open_run.load_run.warm_up_s * 1e9)
        due = array("q", (started + offset for offset in offsets_ns))
        self._arrivals = Arrivals(due, lines, started + warm_up_ns)
        self._until_ns = started + warm_up_ns + int(open_run.load_run.duration_s * 1e9)
        self._rate = open_run.rate

    def drive(self) -> OpenOutcome:
        started, cpu = time.perf_counter_ns(), time.process_time()
        for fd in self._by_fd:
            self._epoll.register(fd, select.EPOLLIN)
        self._until(self._until_ns)
        backlog = self._arrivals.waiting(self._until_ns)
        self._until(self._until_ns + int(DRAIN_S * 1e9))
        unanswered = self._arrivals.give_up(time.perf_counter_ns())
        return OpenOutcome(
            self._rate,
            Counter(taken // 1_000 for taken in self._arrivals.latencies_ns),
            Counter(late // 1_000 for late in self._arrivals.late_ns),
            backlog,
            unanswered,
            len(self._by_fd),
            (time.perf_counter_ns() - started) / 1e9,
            time.process_time() - cpu,
        )

    def _until(self, until_ns: int) -> None:
        """Begin due calls and take answers until ``until_ns``, or until every call is answered."""
        clock = time.perf_counter_ns
        heard_ns = clock()
        while (now := clock()) < until_ns and not self._arrivals.done():
            self._begin_due(now)
            now = clock()
            events = self._wait(now, min(until_ns, now + int(SILENCE_S * 1e9)))
            if events or not self._arrivals.in_flight_count():
                heard_ns = now
            elif now - heard_ns > SILENCE_S * 1e9:
                raise EndpointFailed(f"no answer within {SILENCE_S:.0f} s")
            for fd, event in events:
                self._heard(fd, event)
                self._begin_due(clock())  # many answers at once make no arrival late

    def _wait(self, now: int, until_ns: int) -> list[tuple[int, int]]:
        """Return answers as soon as there are any; return none shortly before the next call is due."""
        wait_ns = self._arrivals.wait_ns(now)
        sleep_ns = (until_ns - now if wait_ns is None else min(wait_ns, until_ns - now)) - SPIN_NS
        if sleep_ns > 0:
            select.select([self._epoll], [], [], sleep_ns / 1e9)
        return self._epoll.poll(0)

    def _begin_due(self, now: int) -> None:
        while (line := self._arrivals.begin(now)) is not None:
            self._send(line)
            now = time.perf_counter_ns()

    def _send(self, line: Connection) -> None:
        if not line.send(self._next[line]):
            self._epoll.modify(line.sock.fileno(), select.EPOLLOUT)

    def _heard(self, fd: int, event: int) -> None:
        line = self._by_fd[fd]
        if event & select.EPOLLOUT:
            if line.send_on():
                self._epoll.modify(fd, select.EPOLLIN)
            return
        reply = line.receive()
        if reply is None:
            return
        now = time.perf_counter_ns()
        self._next[line], worth = line.session.take_reply(reply)
        if worth == MORE_CALLS or self._arrivals.answered(line, now):
            self._send(line)
