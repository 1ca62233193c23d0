"""The order of measurements: runs of load on one endpoint, or on several in turn.

The endpoints take turns within each workload (A B, then B A, and so on), so that whatever else the
machine does meets all of them alike; of the rounds the median counts.

In open loop as many rounds follow, at a share of what the endpoint itself answered in closed loop: each
endpoint is as busy as the other, whatever its speed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from statistics import median
from typing import Final

from columnar.bench.address import Endpoint
from columnar.bench.dataset import DataSet
from columnar.bench.generator import LoadRun, Outcome, run
from columnar.bench.open_loop import OpenLoadRun, OpenOutcome, run_open, summed_open
from columnar.bench.workloads import WORKLOADS

_OPEN_SEEDS: Final = 500_000  # seeds of open loop begin here


@dataclass(frozen=True, slots=True)
class Plan:
    workloads: tuple[str, ...]
    connections: tuple[int, ...]
    rounds: int
    duration_s: float  # of one run
    generators: int  # processes
    data: DataSet
    open_share: float | None = None  # of the closed loop's rate, for open loop; None: closed loop only

    def opens(self, workload: str) -> bool:
        return self.open_share is not None and WORKLOADS[workload].open_loop


@dataclass(frozen=True, slots=True)
class Line:
    """A workload at one number of connections: the outcomes of each endpoint, round by round."""

    workload: str
    connections: int
    outcomes: tuple[list[Outcome], ...] = field(default=())
    opened: tuple[list[OpenOutcome], ...] = field(default=())  # the same in open loop, where it was requested


class Generators:
    """The generator processes; they stay for the whole measurement."""

    def __init__(self, count: int, pool: ProcessPoolExecutor) -> None:
        self._count = count
        self._pool = pool

    def run_load(
        self, endpoint: Endpoint, workload: str, connections: int, plan: Plan, seed: int, pids: tuple[int, ...] = ()
    ) -> Outcome:
        """Return a stretch of load, shared among the processes; EndpointFailed.

        ``pids``: the server's processes; the first generator reads their processor time.
        """
        first, *others = self._load_runs(endpoint, workload, connections, plan, seed)
        return summed(list(self._pool.map(run, [replace(first, server_pids=pids), *others])))

    def run_open_load(
        self, endpoint: Endpoint, workload: str, connections: int, plan: Plan, seed: int, rate: float
    ) -> OpenOutcome:
        """Return the same in open loop: so many operations arrive per second, over all processes."""
        load_runs = self._load_runs(endpoint, workload, connections, plan, seed + _OPEN_SEEDS)
        open_runs = [OpenLoadRun(load_run, rate * load_run.connections / connections) for load_run in load_runs]
        return summed_open(list(self._pool.map(run_open, open_runs)))

    def _load_runs(self, endpoint: Endpoint, workload: str, connections: int, plan: Plan, seed: int) -> list[LoadRun]:
        shares = _shares(connections, self._count)
        return [
            LoadRun(
                endpoint,
                workload,
                share,
                plan.duration_s,
                plan.data,
                seed * 1_000 + number,
            )
            for number, share in enumerate(shares)
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
    """``connections`` dealt out evenly; no process without any."""
    each, more = divmod(connections, processes)
    return [share for share in [each + (number < more) for number in range(processes)] if share]


def summed(outcomes: list[Outcome]) -> Outcome:
    """Generators that ran side by side, as one; the server's processor time is what the first one read."""
    total = Outcome(units=sum(o.units for o in outcomes), wall_s=max(o.wall_s for o in outcomes))
    for outcome in outcomes:
        total.latencies_us.update(outcome.latencies_us)
    cpu_s = sum(outcome.cpu_s for outcome in outcomes)
    return Outcome(total.latencies_us, total.units, total.wall_s, cpu_s, outcomes[0].servers_cpu_s)


def count_runs(plan: Plan, endpoints: int) -> int:
    kinds = sum(1 + plan.opens(workload) for workload in plan.workloads)
    return kinds * len(plan.connections) * plan.rounds * endpoints


def measure(
    endpoints: list[Endpoint],
    plan: Plan,
    pool: Generators,
    began: Callable[[str, int, Endpoint], None],
    lines: list[Line],
    servers: Sequence[tuple[int, ...]] = (),
) -> None:
    """Every workload at every number of connections, into ``lines``; ``began`` is called at each run.

    ``servers``: the processes of each endpoint, if their processor time is wanted.

    EndpointFailed: ``lines`` has what was measured before.
    """
    for workload in plan.workloads:
        for connections in plan.connections:
            first_seed = len(lines) * plan.rounds
            closed: tuple[list[Outcome], ...] = tuple([] for _ in endpoints)
            pids = servers or [()] * len(endpoints)
            for number, place in zigzag_rounds(plan.rounds, len(endpoints)):
                began(workload, connections, endpoints[place])
                _sync_disks()
                seed = first_seed + number
                closed[place].append(pool.run_load(endpoints[place], workload, connections, plan, seed, pids[place]))
            opened: tuple[list[OpenOutcome], ...] = ()
            if plan.open_share is not None and plan.opens(workload):
                rates = [plan.open_share * rate_of(outcomes) for outcomes in closed]
                opened = tuple([] for _ in endpoints)
                for number, place in zigzag_rounds(plan.rounds, len(endpoints)):
                    began(f"{workload}, open", connections, endpoints[place])
                    _sync_disks()
                    opened[place].append(
                        pool.run_open_load(
                            endpoints[place], workload, connections, plan, first_seed + number, rates[place]
                        )
                    )
            lines.append(Line(workload, connections, closed, opened))


def _sync_disks() -> None:
    """Dirty pages of the run before are written to the disk now: it is that endpoint's, and would else be
    written beside this one's fsyncs.  Blocks until it is there; not timed.
    """
    os.sync()


def zigzag_rounds(rounds: int, endpoints: int) -> Iterator[tuple[int, int]]:
    """(round, endpoint): A B, then B A, and so on."""
    for number in range(rounds):
        order = range(endpoints)
        for place in order if number % 2 == 0 else reversed(order):
            yield number, place


def rate_of(outcomes: list[Outcome]) -> float:
    """Operations per second, the median of the rounds."""
    return median(outcome.calls / outcome.wall_s for outcome in outcomes)
