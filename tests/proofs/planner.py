"""python -m tests.proofs.planner: the master's planner alone, at the size of a large cluster, in virtual time.

Some minutes of upheaval (deaths, quick and late returns, a server that keeps dying, drains, regions whose popularity
jumps), then 14 minutes in which nothing happens.  Loads are Pareto's, or with --counts those of the pages of a trace
(``wikibench trace info --counts``), each in the region that the MD5 of its name falls into; a jump gives a region the
load of another one.  These bounds hold all the time:

    * a region has an owner again within 0.2 s after its server was fenced
    * 2 moves at once per server (4 from a drained one), 8 in all
    * balance moves a region once in 5 minutes at most
    * no single event takes more than 50 ms of CPU, the plan from nothing 2 s

in the quiet minutes:

    * after 5 minutes only regions are moved that balance moved in these 5 minutes or in the 5 before, because balance
      keeps a region for 5 minutes and knows the last jump two minutes late, so some regions are kept in a wrong place
    * after 9 minutes no region is moved
    * balance moves no region back to the server that it came from

and at the end: the most loaded server has at most 1.25 times the mean, or one region that alone has more, and hardly
any other; every region is served.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import md5
from random import Random
from typing import IO

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from columnar.master.instructions import (
    Decision,
    DrainServer,
    Give,
    NotifyServer,
    Open,
    Output,
    Prefer,
    Reason,
    Renumber,
)
from columnar.master.placement_records import Phase, ServerState
from columnar.model.owner_messages import RegionRates
from columnar.model.region_info import RegionInfo
from columnar.runtime.process_tuning import calm_collector
from tests.support.planned_cluster import PlannedCluster

OWNERLESS_MS = 200
EVENT_S = 0.05
BEGIN_S = 2.0
SETTLED_MS = 5 * 60_000
QUIET_MINUTES = 14
BALANCED_MS = 5 * 60_000  # of the quiet minutes
AT_REST_MS = 9 * 60_000
MOST_TIMES = 1.25
MEAN_LOAD = 3.0  # of a region, in requests per second: as Pareto's
BESIDE_IT = 0.05  # of the mean: so much may stay beside a region that alone is over ``MOST_TIMES``


@dataclass(frozen=True)
class Size:
    servers: int = 1_000
    regions: int = 100_000
    upheaval_minutes: int = 6
    report_every_ms: int = 20_000
    deaths_per_minute: int = 12


@dataclass
class Findings:
    problems: list[str] = field(default_factory=list)
    deaths: int = 0
    moves: int = 0
    balance_moves: int = 0
    longest_ownerless_ms: int = 0
    begin_s: float = 0.0
    slowest_s: float = 0.0
    slowest: str = ""
    events: int = 0
    most_times: float = 0.0
    digest: int = 0  # of all decisions; comparable within a process


class _Decisions(deque[Decision]):
    """The decisions, each passed to ``look`` as it is made."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(maxlen=200)
        self._trial = trial

    def append(self, decision: Decision) -> None:
        super().append(decision)
        self._trial.decided(decision)


def loads_of(lines: Iterable[str], regions: int) -> tuple[float, ...]:
    """Return the loads of so many regions, with a mean of MEAN_LOAD, of lines ``count name``.  Raises ValueError."""
    loads = [0.0] * regions
    for number, line in enumerate(lines, 1):
        count, blank, name = line.rstrip("\n").partition(" ")
        if not blank or not count.isdigit():
            raise ValueError(f"line {number} is not 'count name', as wikibench trace info --counts writes it: {line!r}")
        loads[int.from_bytes(md5(name.encode(), usedforsecurity=False).digest()[:8]) * regions >> 64] += int(count)
    total = sum(loads)
    if not total:
        raise ValueError("no request is in the file of --counts")
    return tuple(load * MEAN_LOAD * regions / total for load in loads)


class Trial:
    def __init__(self, size: Size, seed: int, loads: Sequence[float] = ()) -> None:
        """Take ``loads``, one for each region; else they are Pareto's."""
        self.size = size
        self._loads = loads
        self.findings = Findings()
        self._rng = Random(seed)
        infos = [RegionInfo(f"t{n % 50}", n + 2, b"%06d" % n, b"%06d" % (n + 1)) for n in range(size.regions)]
        self.cluster = PlannedCluster(infos, self._rng, seed=seed, with_data=False)
        self.cluster.after_event = self._look
        self.cluster.state.plans.decisions = _Decisions(self)
        drawn = loads or [self._pareto() for _ in infos]
        self._popularity = {info.region_id: load for info, load in zip(infos, drawn, strict=True)}
        self._lost: dict[int, int] = {}  # region -> when its server was fenced
        self._balanced: dict[int, int] = {}
        self._chosen: set[int] = set()  # by balance, not moved yet
        self._left: set[tuple[int, str]] = set()  # region and server: moved away by balance in the quiet minutes
        self._digest = 0
        self._made: list[object] = []  # decisions of this event; they are summed up outside the time that it takes
        self._quiet_from_ms = 1 << 60
        self._names = [f"s{n}" for n in range(size.servers)]

    def _pareto(self) -> float:
        return min(self._rng.paretovariate(1.5), 3_000.0)

    def _drawn(self) -> float:
        return self._rng.choice(self._loads) if self._loads else self._pareto()

    # --- what is held ------------------------------------------------------------------------------

    def _wrong(self, text: str) -> None:
        if len(self.findings.problems) < 20:
            self.findings.problems.append(f"at {self.cluster.now_ms / 1000:.3f} s: {text}")

    def decided(self, decision: Decision) -> None:
        what, now_ms = decision.what, decision.at_ms
        self._made.append((now_ms, what))
        if isinstance(what, Prefer):
            self._chosen.add(what.region)
        if not isinstance(what, Give):
            return
        place = self.cluster.state.current.places[what.region]
        if place.phase is not Phase.OPEN:
            return
        self.findings.moves += 1
        if now_ms >= self._quiet_from_ms:
            self._look_at_the_move(what, str(place.server), now_ms - self._quiet_from_ms)
        if what.region in self._chosen and what.server == place.ideal and place.why_ideal:
            self._chosen.discard(what.region)
            self.findings.balance_moves += 1
            if now_ms - self._balanced.get(what.region, -SETTLED_MS) < SETTLED_MS:
                self._wrong(f"balance moves region {what.region} twice in 5 minutes: {what.why}")
            self._balanced[what.region] = now_ms

    def _look_at_the_move(self, give: Give, source: str, quiet_ms: int) -> None:
        since_ms = self._balanced.get(give.region, -(1 << 60)) - self._quiet_from_ms
        was_kept = give.reason is Reason.BALANCE and since_ms > -SETTLED_MS
        if quiet_ms > (AT_REST_MS if was_kept else BALANCED_MS):
            self._wrong(f"region {give.region} is moved after {quiet_ms / 1000:.0f} quiet seconds: {give.why}")
        if (give.region, give.server) in self._left:
            self._wrong(f"region {give.region} is moved to and fro: back to {give.server}, {give.why}")
        if give.reason is Reason.BALANCE:
            self._left.add((give.region, source))

    def _look(self, outputs: list[Output]) -> None:
        self._digest = hash((self._digest, *self._made))
        self._made.clear()
        current, now_ms = self.cluster.state.current, self.cluster.now_ms
        for output in outputs:
            if isinstance(output, NotifyServer) and isinstance(output.request, Open | Renumber) and self._lost:
                since_ms = self._lost.pop(output.request.region, None)
                if since_ms is not None:
                    self.findings.longest_ownerless_ms = max(self.findings.longest_ownerless_ms, now_ms - since_ms)
                    if now_ms - since_ms > OWNERLESS_MS:
                        self._wrong(f"region {output.request.region} had no owner for {now_ms - since_ms} ms")
        throttled: dict[str, int] = {}
        count = 0
        for region, names in current.moves.items():
            if "has not opened it yet" not in current.places[region].why:
                count += 1
                for name in names:
                    throttled[name] = throttled.get(name, 0) + 1
        if count > 8:
            self._wrong(f"{count} moves at once")
        drained = self.cluster.state.desired.operator_settings.drained
        for name, moves in throttled.items():
            if moves > (4 if name in drained or name in self._undrained else 2):
                self._wrong(f"{moves} moves at once at {name}")

    # --- what happens ------------------------------------------------------------------------------

    def run(self, tell: object = None) -> Findings:
        cluster, size = self.cluster, self.size
        self._undrained: set[str] = set()
        for name in self._names:
            cluster.start(name)
        cluster.run(100)
        gc.collect()
        gc.freeze()  # as a process does that has started
        cluster.cpu_s.clear()
        cluster.event("begin_planning")
        self.findings.begin_s = cluster.cpu_s[-1][0]
        cluster.run(30_000)
        gc.collect()
        gc.freeze()
        cluster.cpu_s.clear()
        self._report_loads()
        for n, name in enumerate(self._names):
            cluster.later(self._rng.randrange(size.report_every_ms), self._reporting(name, n))
        for minute in range(size.upheaval_minutes):
            self._upheaval(60_000 * minute)
        self._die_again_and_again(self._names[0])
        cluster.run(cluster.now_ms + size.upheaval_minutes * 60_000)
        self._settle()
        self._quiet_from_ms = cluster.now_ms
        cluster.run(cluster.now_ms + QUIET_MINUTES * 60_000)
        self._look_at_the_end()
        return self.findings

    def _report_loads(self) -> None:
        for name in self._names:
            self._report(name)

    def _reporting(self, name: str, number: int) -> object:
        def report() -> None:
            self._report(name)
            self.cluster.later(self.size.report_every_ms, report)

        return report

    def _report(self, name: str) -> None:
        server = self.cluster.state.current.servers[name]
        if server.state is not ServerState.UP or server.incarnation is None:
            return
        popularity = self._popularity
        rates = [RegionRates(region, popularity[region], 0.0, 0.0, 1 << 20, 1 << 34) for region in server.regions]
        self.cluster.event("loads", server.incarnation, rates)

    def _upheaval(self, begins_ms: int) -> None:
        rng, cluster = self._rng, self.cluster
        for _ in range(self.size.deaths_per_minute):
            cluster.later(begins_ms + rng.randrange(60_000), self._kill_one)
        cluster.later(begins_ms + rng.randrange(40_000), self._drain_one)
        cluster.later(begins_ms + rng.randrange(60_000), self._jump)

    def _kill_one(self) -> None:
        up = [name for name in self._names[1:] if self.cluster.state.current.is_up(name)]
        self._kill(self._rng.choice(up), self._rng.choice((300, 300, 300, 5_000, 60_000)))

    def _kill(self, name: str, back_after_ms: int) -> None:
        server = self.cluster.state.current.servers[name]
        if server.incarnation is None or server.incarnation not in self.cluster.servers:
            return
        self.findings.deaths += 1
        incarnation = server.incarnation
        del self.cluster.servers[incarnation]

        def fenced() -> None:
            for region in server.regions:
                owner = self.cluster.state.current.places[region].owner
                if owner is not None and owner.server == incarnation:
                    self._lost[region] = self.cluster.now_ms
            named = {(region, 1) for region in server.regions}
            self.cluster.event("fenced", incarnation, (("00000001.segment", 1),), named)

        self.cluster.later(self._rng.randint(5, 60), fenced)
        self.cluster.later(back_after_ms, lambda: self.cluster.start(name))

    def _die_again_and_again(self, name: str) -> None:
        for n in range(4):
            self.cluster.later(20_000 + 15_000 * n, lambda: self._kill(name, 300))

    def _drain_one(self) -> None:
        name = self._rng.choice(self._names[1:])
        self._undrained.add(name)  # its moves under way when the drain ends were allowed
        self.cluster.ask(DrainServer(name))
        self.cluster.later(15_000, lambda: self.cluster.ask(DrainServer(name, on=False)))

    def _jump(self) -> None:
        """Let some regions get many more, or many fewer, requests from now on."""
        for region in self._rng.sample(sorted(self._popularity), max(1, self.size.regions // 200)):
            self._popularity[region] = self._drawn() * self._rng.choice((0.1, 1.0, 10.0))

    def _settle(self) -> None:
        """Let all servers return, then make a last jump."""
        self.cluster.run(self.cluster.now_ms + 90_000)
        self._jump()

    def _look_at_the_end(self) -> None:
        findings, current = self.findings, self.cluster.state.current
        self.cluster.state.check_invariants()
        not_open = [region for region, place in current.places.items() if place.phase is not Phase.OPEN]
        if not_open or self._lost:
            self._wrong(f"{len(not_open)} regions are not served, {len(self._lost)} were never given away")
        mean = current.load / self.size.servers
        for server in current.servers.values():
            alone = max((current.places[region].load for region in server.regions), default=0.0)
            if alone <= MOST_TIMES * mean:
                findings.most_times = max(findings.most_times, server.load / mean)
                if server.load > MOST_TIMES * mean:
                    self._wrong(f"{server.name} has {server.load / mean:.3f} times the mean, in many regions")
            elif server.load - alone > BESIDE_IT * mean:
                beside = f"{(server.load - alone) / mean:.3f} times the mean beside a region that alone is too much"
                self._wrong(f"{server.name} has {beside}")
        findings.slowest_s, findings.slowest = max(self.cluster.cpu_s)
        findings.events = len(self.cluster.cpu_s)
        if findings.slowest_s > EVENT_S:
            slow = sum(1 for cpu_s, _ in self.cluster.cpu_s if cpu_s > EVENT_S)
            self._wrong(
                f"{findings.slowest} took {1e3 * findings.slowest_s:.1f} ms of CPU; {slow} events over the bound"
            )
        if findings.begin_s > BEGIN_S:
            self._wrong(f"the plan from nothing took {findings.begin_s:.2f} s of CPU")
        findings.digest = self._digest


def tried(size: Size, seed: int, loads: Sequence[float] = ()) -> Findings:
    calm_collector()  # as every process of the store
    return Trial(size, seed, loads).run()


def report(console: Console, rows: list[tuple[int, Findings]]) -> None:
    table = Table(title="planner alone", title_justify="left")
    for name in (
        "seed",
        "deaths",
        "moves",
        "by balance",
        "ownerless ms",
        "most loaded",
        "from nothing s",
        "slowest event",
    ):
        table.add_column(name, justify="right")
    for seed, found in rows:
        slowest = f"{found.slowest} {1e3 * found.slowest_s:.1f} ms"
        counts = (seed, found.deaths, found.moves, found.balance_moves, found.longest_ownerless_ms)
        table.add_row(*map(str, counts), f"{found.most_times:.3f}", f"{found.begin_s:.2f}", slowest)
    console.print(table)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--servers", default=1_000, show_default=True, type=click.IntRange(2))
@click.option("--regions", default=100_000, show_default=True, type=click.IntRange(2))
@click.option("--seeds", default=50, show_default=True, type=click.IntRange(1), help="So many, from --seed on.")
@click.option("--seed", default=1, show_default=True, help="The first seed.")
@click.option("--repeat/--no-repeat", default=True, show_default=True, help="The first seed twice: the same decisions.")
@click.option("--counts", type=click.File(), help="Loads of pages, which wikibench trace info --counts wrote.")
def main(servers: int, regions: int, seeds: int, seed: int, repeat: bool, counts: IO[str] | None) -> None:
    """Show that the planner keeps its promises at the size of a large cluster.  Exit status 0: it does."""
    console = Console(width=140)
    try:
        loads = loads_of(counts, regions) if counts is not None else ()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--counts") from error
    size = Size(servers, regions, deaths_per_minute=max(1, min(12, servers // 10)))
    rows: list[tuple[int, Findings]] = []
    problems = 0
    numbers = [seed] * repeat + list(range(seed, seed + seeds))
    with Progress(console=console, disable=not console.is_terminal) as progress:
        for number in progress.track(numbers, description="seeds"):
            gc.unfreeze()  # what the seed before has left is collected
            found = tried(size, number, loads)
            if rows and number == rows[0][0] and found.digest != rows[0][1].digest:
                found.problems.append("the same seed gave other decisions")
            rows.append((number, found))
            for problem in found.problems:
                console.print(f"WRONG  seed {number} {problem}", markup=False, soft_wrap=True, highlight=False)
            problems += len(found.problems)
            last = (
                f"seed {number}: {found.events:,} events, {found.moves:,} moves, slowest {1e3 * found.slowest_s:.1f} ms"
            )
            console.print(last, highlight=False)
    report(console, rows)
    console.print(f"planner: {'holds' if not problems else 'DOES NOT HOLD'}", style="bold")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
