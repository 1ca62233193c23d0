"""The order of measurements: runs of load on one endpoint, or on several in turn.

The endpoints take turns within each workload (A B, then B A, and so on), so that other load of the machine affects all
endpoints alike; the median of the rounds counts.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeVar

from columnar.bench.address import Endpoint
from columnar.bench.generator import LoadRun, Outcome, run
from columnar.bench.workloads import Workload
from gauge.rounds import zigzag_rounds

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Plan:
    workloads: tuple[Workload, ...]
    connections: tuple[int, ...]
    rounds: int
    duration_s: float  # of one run
    generators: int  # processes
    rows: int  # of the data set

    def as_json(self) -> dict[str, Any]:
        return {
            "workloads": [workload.name for workload in self.workloads],
            "connections": self.connections,
            "rounds": self.rounds,
            "duration_s": self.duration_s,
            "generators": self.generators,
            "data": {"rows": self.rows},
        }


@dataclass(frozen=True, slots=True)
class Line:
    """The outcomes of a workload at one number of connections, for each endpoint, round by round."""

    workload: Workload
    connections: int
    outcomes: tuple[list[Outcome], ...]


class Generators:
    """The generator processes, which live for the whole measurement."""

    def __init__(self, count: int, pool: ProcessPoolExecutor) -> None:
        self._count = count
        self._pool = pool

    def run_load(
        self, endpoint: Endpoint, workload: Workload, connections: int, plan: Plan, pids: tuple[int, ...], seed: int
    ) -> Outcome:
        """Make a run of load, shared among the processes, and return the outcome.  Raises EndpointFailed.

        ``pids`` are the server's processes, whose processor time the first generator reads.
        """
        first, *others = self.load_runs(endpoint, workload, connections, plan, seed)
        return summed(self.run_each(run, [replace(first, server_pids=pids), *others]))

    def run_each(self, function: Callable[[Any], R], load_runs: Sequence[Any]) -> list[R]:
        """Run the function for each of ``load_runs`` in a process of its own."""
        return list(self._pool.map(function, load_runs))

    def load_runs(
        self, endpoint: Endpoint, workload: Workload, connections: int, plan: Plan, seed: int
    ) -> list[LoadRun]:
        """Return each process's share of the load."""
        return [
            LoadRun(endpoint, workload, share, plan.duration_s, plan.rows, seed * 1_000 + number)
            for number, share in enumerate(_shares(connections, self._count))
        ]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@contextmanager
def generators(count: int) -> Iterator[Generators]:
    made = Generators(count, ProcessPoolExecutor(count, mp_context=get_context("spawn")))
    try:
        yield made
    finally:
        made.close()


def _shares(connections: int, processes: int) -> list[int]:
    """Deal ``connections`` out evenly; return no process without connections."""
    each, more = divmod(connections, processes)
    return [share for share in [each + (number < more) for number in range(processes)] if share]


def summed(outcomes: list[Outcome]) -> Outcome:
    """Return one outcome for generators that ran side by side; the first one has the server's processor time."""
    total = Outcome(units=sum(o.units for o in outcomes), wall_s=max(o.wall_s for o in outcomes))
    for outcome in outcomes:
        total.latencies_us.update(outcome.latencies_us)
    cpu_s = sum(outcome.cpu_s for outcome in outcomes)
    return Outcome(total.latencies_us, total.units, total.wall_s, cpu_s, outcomes[0].servers_cpu_s)


def measure(
    endpoints: Sequence[Endpoint],
    plan: Plan,
    pool: Generators,
    began: Callable[[str], None],
    servers: Sequence[tuple[int, ...]] = (),
) -> Iterator[Line]:
    """Yield a line for every workload at every number of connections; ``began`` is called with the title of each run.

    ``servers`` has the processes of each endpoint, if their processor time is wanted.

    Raises EndpointFailed after it has yielded the lines that were measured before.
    """
    for number, (workload, connections) in enumerate(itertools.product(plan.workloads, plan.connections)):
        loads = [
            partial(pool.run_load, endpoint, workload, connections, plan, pids)
            for endpoint, pids in zip(endpoints, servers or [()] * len(endpoints), strict=True)
        ]
        title = f"{workload.name} at {connections}"
        yield Line(workload, connections, in_rounds(endpoints, plan.rounds, number, title, began, loads))


def in_rounds(
    endpoints: Sequence[Endpoint],
    rounds: int,
    line: int,
    title: str,
    began: Callable[[str], None],
    loads: Sequence[Callable[[int], R]],
) -> tuple[list[R], ...]:
    """Run the load of each endpoint in each round; return the outcomes of each.

    A load gets the round's seed, which differs from ``line`` to ``line``.  Dirty pages of the previous run are written
    to the disk first: they belong to the other endpoint, and would else be written during this endpoint's fsyncs.
    """
    found: tuple[list[R], ...] = tuple([] for _ in endpoints)
    for number, place in zigzag_rounds(rounds, len(endpoints)):
        began(f"{title}, {endpoints[place]}")
        os.sync()
        found[place].append(loads[place](line * rounds + number))
    return found
