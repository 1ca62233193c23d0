"""The workloads of the ETH experiment, over all variants in turn.

    W1   saturating: closed loop; the rate counts until everything is spread
    W2   open loop at shares of the reference's saturation (``sync``, where it is among the variants)
    W3   burst: 0.46, 2.0 and 0.46 times that saturation
    W4   faults, each in a run of its own: kill -9 of each part and of all at once, SIGSTOP of the store;
         with ``kills``: that many times all at once, within one load
    W5   a celebrity tweets beside W2 at the first of its shares
    W6   the same W2, with poison tweets; the variants in which the application itself spreads have none
    W7   the same W2, while the regions of the timeline are split and merged

Each run begins with an empty backlog and ends when everything is spread.  W3 and W4 apart, workloads have rounds, there
and back over the variants (``zigzag_rounds``), and a run of warm-up before the first of each variant.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from random import Random
from typing import Any, Final

from benchmarks.flows_app import ALL_ANSWERED, BEGUN, END, serve
from benchmarks.flows_figures import BESIDE, FlowRun, FlowRuns
from benchmarks.flows_oracle import Verdict, judged
from benchmarks.flows_plan import (
    CALM,
    Load,
    Marked,
    Phase,
    Profile,
    Sent,
    Tweets,
    burst,
    celebrity_times,
    change_times,
    graph_of,
    poison_every,
)
from benchmarks.flows_variants import PARTS, Site, thaw
from columnar.bench.address import EndpointFailed
from gauge.rounds import zigzag_rounds

WORKLOADS: Final = ("W1", "W2", "W3", "W4", *BESIDE)
ANSWER_TIMEOUT_S: Final = 60.0  # for answers, and for the drain, after a load
WARM_UP_SHARE: Final = 0.3  # of a run
FROZEN_SHARE: Final = 0.2  # of a run: how long SIGSTOP lasts
CYCLE_S: Final = 4.0  # of the mode with many kills; shorter for short runs
MAX_CYCLE_RUNS: Final = 4  # a cycle is at most as long as this number of runs
ALIVE_SHARE: Final = 0.3
ALL: Final = "all"
FREEZE: Final = "SIGSTOP"


@dataclass(frozen=True, slots=True)
class FlowsPlan:
    variants: tuple[str, ...]
    workloads: tuple[str, ...]
    profile: Profile
    seconds: float  # of one run; of the burst in W3
    rounds: int
    connections: int
    shares: tuple[float, ...]  # of the saturation, for W2
    saturation: float | None  # tweets per second; None: measured
    kills: int  # 0: each fault once
    seed: int
    attempts: int  # after which a poison tweet is given up


class ApplicationProcess:
    def __init__(self, pipe: Any) -> None:
        """Take the pipe to a process that runs ``flows_app.serve``."""
        self._pipe = pipe

    def begin(self, load: Load) -> None:
        """Send the load, and block until it begins.  Raises EndpointFailed."""
        self._pipe.send(load)
        self._await(BEGUN)

    def is_answered(self, wait_s: float) -> bool:
        """Return whether every tweet is answered, or the load has failed, within ``wait_s``."""
        return bool(self._pipe.poll(max(0.0, wait_s)))

    def answered(self) -> None:
        """Wait until every tweet is answered.  Raises EndpointFailed."""
        self._await(ALL_ANSWERED)

    def end(self) -> Sent:
        """End the load and return its outcome.  Raises EndpointFailed."""
        self._pipe.send(END)
        sent = self._receive()
        assert isinstance(sent, Sent), sent
        return sent

    def _await(self, what: str) -> None:
        said = self._receive()
        assert said == what, said

    def _receive(self) -> Any:
        try:
            said = self._pipe.recv()
        except EOFError:
            raise EndpointFailed("the application's process ended; it says why above") from None
        if isinstance(said, EndpointFailed):
            raise said
        return said


@contextmanager
def application() -> Iterator[ApplicationProcess]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ApplicationProcess(ours)
    finally:
        ours.close()
        process.join(1)
        process.kill()
        process.join()


Act = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Beside:
    """Acts and marked tweets beside the load of one run."""

    acts: Sequence[tuple[float, Act]] = ()  # and the seconds after the start at which each happens
    rest_s: float = 0.0  # between two acts, at least
    replaces: bool = False  # the acts replace processes, so there are no processor times
    celebrity_s: tuple[float, ...] = ()
    poison_every: int = 0


NOTHING: Final = Beside()
Run = Callable[[Site, str, tuple[Phase, ...], Beside], FlowRun]


class Experiment:
    def __init__(
        self, plan: FlowsPlan, sites: dict[str, Site], app: ApplicationProcess, began: Callable[[str], None]
    ) -> None:
        """Take the started and filled sites; ``began`` is called at each run."""
        self._plan = plan
        self._sites = sites
        self._app = app
        self._began = began
        self._acknowledged = {variant: bytearray() for variant in sites}  # by the tweet's number
        self._marked = dict.fromkeys(sites, Marked())
        self._given_up = {variant: Counter[bytes]() for variant in sites}
        self._warm: set[str] = set()

    # --- workloads ------------------------------------------------------------------------------------

    def saturating(self) -> list[FlowRuns]:
        return self._rounds("W1", "closed loop", [Phase(self._plan.seconds, None)])

    def at_shares(self, saturation: float, shares: Sequence[float]) -> list[FlowRuns]:
        found = []
        for share in shares:
            phases = [Phase(self._plan.seconds, share * saturation)]
            found += self._rounds("W2", f"{share:.0%} of {saturation:,.0f}/s", phases)
        return found

    def beside_load(self, workload: str, saturation: float) -> list[FlowRuns]:
        """Run W5, W6 or W7, at the first share of W2."""
        plan, share = self._plan, self._plan.shares[0]
        title, phases = f"{share:.0%} of {saturation:,.0f}/s", [Phase(plan.seconds, share * saturation)]
        if workload == "W5":
            beside = Beside(celebrity_s=celebrity_times(plan.seconds))
            return self._rounds(workload, title, phases, beside=beside)
        if workload == "W6":
            spread_by_others = [variant for variant in self._sites if len(PARTS[variant]) > 1]
            beside = Beside(poison_every=poison_every(share * saturation * plan.seconds))
            return self._rounds(workload, title, phases, beside=beside, variants=spread_by_others)
        return self._rounds(workload, title, phases, run=self._run_with_changes)

    def bursting(self, saturation: float) -> list[FlowRuns]:
        phases = burst(saturation, self._plan.seconds)
        return self._rounds("W3", f"burst of {self._plan.seconds:g} s", phases, rounds=1)

    def faults(self, saturation: float) -> list[FlowRuns]:
        plan, found = self._plan, []
        for variant, site in self._sites.items():
            if plan.kills:
                found.append(self._killed_often(site, CALM * saturation))
                continue
            parts = PARTS[variant]
            whole = () if len(parts) == 1 else (ALL,)
            for fault in (*parts, *whole, FREEZE):
                phases = (Phase(plan.seconds, CALM * saturation),)
                faults = [(plan.seconds / 3, self._fault(site, fault))]
                title = fault if fault == FREEZE else f"kill -9 {fault}"
                found.append(
                    FlowRuns("W4", title, variant, (self._run_load(site, title, phases, self._faults(faults)),))
                )
        return found

    def verdict(self, variant: str) -> Verdict:
        """Return the oracle's verdict on all tweets of the site's life.  Raises EndpointFailed."""
        tweets = Tweets(graph_of(self._plan.profile), self._plan.seed, self._marked[variant])
        self._given_up[variant] += self._sites[variant].take_given_up()
        timelines = self._sites[variant].timelines()
        return judged(tweets, bytes(self._acknowledged[variant]), timelines, self._given_up[variant])

    # --- runs ------------------------------------------------------------------------------------------

    def _rounds(
        self,
        workload: str,
        title: str,
        phases: Sequence[Phase],
        *,
        rounds: int = 0,
        beside: Beside = NOTHING,
        variants: Sequence[str] | None = None,
        run: Run | None = None,
    ) -> list[FlowRuns]:
        names = list(self._sites if variants is None else variants)
        runs: dict[str, list[FlowRun]] = {variant: [] for variant in names}
        for _, place in zigzag_rounds(rounds or self._plan.rounds, len(names)):
            variant = names[place]
            if variant not in self._warm:
                self._warm.add(variant)
                warm_up = (Phase(self._plan.seconds * WARM_UP_SHARE, None),)
                self._run_load(self._sites[variant], f"{workload}, warm-up", warm_up)
            one = (run or self._run_load)(self._sites[variant], f"{workload}, {title}", tuple(phases), beside)
            runs[variant].append(one)
        return [FlowRuns(workload, title, variant, tuple(found)) for variant, found in runs.items()]

    def _run_load(self, site: Site, what: str, phases: tuple[Phase, ...], beside: Beside = NOTHING) -> FlowRun:
        """Run one load, and what happens beside it."""
        self._began(f"{site.variant}: {what}")
        os.sync()  # writes of other variants are on disk before this variant's fsyncs are timed
        acknowledged = self._acknowledged[site.variant]
        load = Load(
            site.variant, site.endpoint, site.queue, site.profile, self._plan.seed, len(acknowledged),
            self._plan.connections, phases, site.executions, ANSWER_TIMEOUT_S, beside.celebrity_s, beside.poison_every,
        )  # fmt: skip
        executed, cpu_s = site.executed(), {} if beside.replaces else site.cpu_s()
        self._app.begin(load)
        kills = self._carry_out(beside)
        self._app.answered()
        is_drained, drained = site.drained(ANSWER_TIMEOUT_S), time.perf_counter_ns()
        used_s = {} if beside.replaces else {part: after - cpu_s[part] for part, after in site.cpu_s().items()}
        sent = self._app.end()
        acknowledged.extend(map(bool, sent.acknowledged_ns))
        self._marked[site.variant] |= sent.marked
        end = site.executed()
        given_up = site.take_given_up() if beside.poison_every else Counter[bytes]()
        self._given_up[site.variant] += given_up
        return FlowRun(
            site.variant, phases, sent, drained, is_drained, end - executed, executed, used_s, site.resident_mb(),
            kills, given_up.total(), site.executed_in_vain(executed, end),
        )  # fmt: skip

    def _run_with_changes(self, site: Site, what: str, phases: tuple[Phase, ...], _beside: Beside) -> FlowRun:
        """Run one load while the timeline's regions are split and merged."""
        changes, failures = list[tuple[str, float]](), Counter[str]()

        def change() -> None:
            begun = time.perf_counter_ns()
            try:
                changes.append((site.change_regions(), (time.perf_counter_ns() - begun) / 1e6))
            except EndpointFailed as failure:  # reported; the next change is the same one again
                failures[str(failure)] += 1

        acts = [(at_s, change) for at_s in change_times(sum(phase.seconds for phase in phases))]
        flow_run = self._run_load(site, what, phases, Beside(acts))
        return replace(flow_run, changes=tuple(changes), failures=dict(failures))

    def _carry_out(self, beside: Beside) -> tuple[int, ...]:
        """Carry out the acts, and return the time of each in nanoseconds."""
        started, found, earliest = time.monotonic(), list[int](), 0.0
        for at_s, act in beside.acts:
            if self._app.is_answered(max(started + at_s, earliest) - time.monotonic()):
                break  # the load is over
            found.append(time.perf_counter_ns())
            act()
            earliest = time.monotonic() + beside.rest_s
        return tuple(found)

    def _faults(self, faults: Sequence[tuple[float, Act]]) -> Beside:
        """Return faults between which all parts are up for at least ALIVE_SHARE of a cycle."""
        return Beside(faults, ALIVE_SHARE * self._cycle_s, replaces=True)

    def _fault(self, site: Site, fault: str) -> Act:
        if fault == FREEZE:
            return partial(self._freeze, site)
        return partial(self._kill, site, PARTS[site.variant] if fault == ALL else (fault,))

    def _kill(self, site: Site, parts: tuple[str, ...]) -> None:
        site.kill(parts)
        site.start()
        site.start_worker()

    def _freeze(self, site: Site) -> None:
        pid = site.freeze()
        try:
            self._app.is_answered(self._plan.seconds * FROZEN_SHARE)
        finally:
            thaw(pid)

    @property
    def _cycle_s(self) -> float:
        return min(CYCLE_S, MAX_CYCLE_RUNS * self._plan.seconds)

    def _killed_often(self, site: Site, rate: float) -> FlowRuns:
        """Kill all parts in each cycle, at a moment in its middle.

        If restarts take longer than cycles, a load ends before its last kill; a further load then makes the missing
        kills.
        """
        rng, kill, runs = Random(self._plan.seed), self._fault(site, ALL), list[FlowRun]()
        title, left = f"all killed {self._plan.kills} times", self._plan.kills
        while left:
            kills = [(self._cycle_s * (cycle + 0.2 + 0.6 * rng.random()), kill) for cycle in range(left)]
            runs.append(self._run_load(site, title, (Phase(left * self._cycle_s, rate),), self._faults(kills)))
            if not runs[-1].kills_ns:
                raise EndpointFailed(f"a load of {left * self._cycle_s:g} s was over before its first kill")
            left -= len(runs[-1].kills_ns)
        return FlowRuns("W4", title, site.variant, tuple(runs))
