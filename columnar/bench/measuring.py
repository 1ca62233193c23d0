"""Who is asked what, when: turns of load on one endpoint, or on several in turn.

The endpoints take turns within each workload (A B, then B A, and so on), so that whatever else the
machine does meets all of them alike; of the rounds the median counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context

from columnar.bench.dataset import DataSet
from columnar.bench.endpoint import Endpoint
from columnar.bench.generator import Outcome, Turn, run


@dataclass(frozen=True, slots=True)
class Plan:
    workloads: tuple[str, ...]
    connections: tuple[int, ...]
    rounds: int
    duration_s: float  # of one turn
    generators: int  # processes
    data: DataSet


@dataclass(frozen=True, slots=True)
class Line:
    """One workload at one number of connections: the outcomes of each endpoint, round by round."""

    workload: str
    connections: int
    outcomes: tuple[list[Outcome], ...] = field(default=())


class Generators:
    """The generator processes; they stay for the whole measurement."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"))

    def turn(self, endpoint: Endpoint, workload: str, connections: int, plan: Plan, seed: int) -> Outcome:
        """One stretch of load, shared among the processes; EndpointFailed."""
        shares = _shares(connections, self._count)
        turns = [
            Turn(endpoint.host, endpoint.port, workload, share, plan.duration_s, plan.data, seed * 1_000 + number)
            for number, share in enumerate(shares)
        ]
        return summed(list(self._pool.map(run, turns)))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@contextmanager
def generators(count: int) -> Iterator[Generators]:
    held = Generators(count)
    try:
        yield held
    finally:
        held.close()


def _shares(connections: int, processes: int) -> list[int]:
    """``connections`` dealt out evenly; no process without any."""
    each, more = divmod(connections, processes)
    return [share for share in [each + (number < more) for number in range(processes)] if share]


def summed(outcomes: list[Outcome]) -> Outcome:
    """Generators that ran side by side, as one."""
    total = Outcome(units=sum(o.units for o in outcomes), wall_s=max(o.wall_s for o in outcomes))
    for outcome in outcomes:
        total.latencies_us.update(outcome.latencies_us)
    cpu_s = sum(outcome.cpu_s for outcome in outcomes)
    return Outcome(total.latencies_us, total.units, total.wall_s, cpu_s)


def turns_of(plan: Plan, endpoints: int) -> int:
    return len(plan.workloads) * len(plan.connections) * plan.rounds * endpoints


def measure(
    endpoints: list[Endpoint], plan: Plan, pool: Generators, began: Callable[[str, int, Endpoint], None]
) -> list[Line]:
    """Every workload at every number of connections; ``began`` hears of each turn.  EndpointFailed."""
    lines: list[Line] = []
    for workload in plan.workloads:
        for connections in plan.connections:
            line = Line(workload, connections, tuple([] for _ in endpoints))
            for number in range(plan.rounds):
                order = list(range(len(endpoints)))
                for place in order if number % 2 == 0 else order[::-1]:
                    began(workload, connections, endpoints[place])
                    outcome = pool.turn(
                        endpoints[place], workload, connections, plan, len(lines) * plan.rounds + number
                    )
                    line.outcomes[place].append(outcome)
            lines.append(line)
    return lines
