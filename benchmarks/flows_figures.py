"""(pure) Figures of one run of the ETH experiment, computed from the application's notes.

    response      the time to the acknowledgement, in open loop from when the tweet was due, in closed loop from when it
                  was begun; a tweet that was never acknowledged counts with the time it had waited; the celebrity's
                  tweets do not count
    propagation   from the acknowledgement to the last follower's timeline, of the tweets that were probed
    rate          acknowledged tweets over the time until all of them were spread; where the application writes
                  everything, the tweets acknowledged within the load, over the load's time: the last tweet may be of a
                  user with very many followers, and its time says nothing of the rate

Knows nothing of processes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, sqrt
from statistics import median
from typing import Any, Final

from benchmarks.flows_plan import Phase, Sent

SHARES: Final = (50.0, 90.0, 95.0, 99.0, 99.9)
REFERENCE: Final = "sync"
BESIDE: Final = ("W5", "W6", "W7")  # workloads whose figures stand beside those of W2 at the same rate
BACKLOG_S: Final = 0.1  # a burst counts as drained when at most this time's arrivals are under way


@dataclass(frozen=True, slots=True)
class FlowRun:
    """A load, and the measurements taken beside it."""

    variant: str
    phases: tuple[Phase, ...]
    sent: Sent
    drained_ns: int  # when all acknowledged tweets were spread
    is_drained: bool  # in the time that there was
    executions: int  # of this run; 0: the application itself wrote everything
    executed_before: int
    cpu_s: dict[str, float] = field(default_factory=dict)  # of each part; empty if processes were replaced
    resident_mb: dict[str, float] = field(default_factory=dict)
    kills_ns: tuple[int, ...] = ()
    given_up: int = 0  # tweets
    executed_in_vain: int = 0  # executions of poison tweets
    changes: tuple[tuple[str, float], ...] = ()  # of regions: "split" or "merge", and its milliseconds
    failures: dict[str, int] = field(default_factory=dict)  # changes that failed, by the reason


@dataclass(frozen=True, slots=True)
class FlowRuns:
    """All runs of one variant under one load."""

    workload: str
    title: str
    variant: str
    runs: tuple[FlowRun, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run; times are in milliseconds unless the name ends in ``_s`` or ``_us``."""

    tweets: int  # acknowledged
    unanswered: int
    backlog: int  # tweets without acknowledgement when the last phase ended
    rate: float
    response_ms: dict[str, float]
    propagation_ms: dict[str, float]
    drain_s: float  # after the last acknowledgement
    is_drained: bool
    cpu_us: dict[str, float]  # for each tweet, of each part and the application
    resident_mb: dict[str, float]
    app_bytes: float  # for each tweet, sent and received by the application
    executions: float  # for each tweet
    refusals: dict[str, int]  # by the store's words
    breaks: int
    gap_ms: float  # the longest time without an acknowledgement
    session_reads: int
    session_misses: int
    not_arrived: int
    late_p99_ms: float  # of the application itself


def figures_of(flow_run: FlowRun) -> Figures:
    sent = flow_run.sent
    tweets = sum(1 for when in sent.acknowledged_ns if when)
    each = 1 / tweets if tweets else 0.0
    last = max(sent.acknowledged_ns, default=sent.start_ns)
    within = tweets - late_answers(flow_run)
    cpu = {"app": sent.cpu_s, **flow_run.cpu_s} if flow_run.cpu_s else {}
    late = sorted(us for us, count in sent.late_us.items() for _ in range(count))
    return Figures(
        tweets,
        len(sent.acknowledged_ns) - tweets,
        len(sent.acknowledged_ns) - within,
        rate_of(flow_run, tweets if flow_run.executions else within),
        spread_of(responses_ms(sent)),
        spread_of(lag / 1e6 for _, lag in sent.probes.propagated),
        max(0.0, (flow_run.drained_ns - last) / 1e9) if flow_run.executions else 0.0,
        flow_run.is_drained,
        {part: cpu_s * each * 1e6 for part, cpu_s in cpu.items()},
        flow_run.resident_mb,
        sent.bytes * each,
        flow_run.executions * each,
        dict(sent.refusals),
        sent.breaks,
        gap_ms(sent),
        sent.probes.session_reads,
        sent.probes.session_misses,
        sent.probes.not_arrived,
        at_share(late, 99.0) / 1e3 if late else 0.0,
    )


def extras_of(workload: str, flow_run: FlowRun) -> dict[str, Any]:
    """Return the figures that only this workload has, by what they are of."""
    sent = flow_run.sent
    if workload == "W3":
        return {"burst": {"drained_after_s": drained_after_s(flow_run)}}
    if workload == "W4":
        return {"faults": {"count": len(flow_run.kills_ns), "pause_ms": spread_of(pauses_ms(flow_run))}}
    if workload == "W5":
        return {"celebrity": {"tweets": len(sent.marked.celebrity), "completion_ms": spread_of(completions_ms(sent))}}
    if workload == "W6":
        poison = sum(1 for number in sent.marked.poison if acknowledged_at(sent, number))
        each = flow_run.executed_in_vain / poison if poison else 0.0
        return {"poison": {"tweets": poison, "given_up": flow_run.given_up, "executions": each}}
    if workload == "W7":
        kinds = Counter(kind for kind, _ in flow_run.changes)
        times = spread_of(ms for _, ms in flow_run.changes)
        failed = sum(flow_run.failures.values())
        return {"changes": {"splits": kinds["split"], "merges": kinds["merge"], "failed": failed, "ms": times}}
    return {}


def completions_ms(sent: Sent) -> list[float]:
    """Return the time from when each of the celebrity's tweets was due until all timelines had it.

    A tweet that was not everywhere when the load ended is left out.
    """
    return [(done - sent.due_ns[number - sent.first]) / 1e6 for number, done in sorted(sent.probes.completed.items())]


def acknowledged_at(sent: Sent, number: int) -> int:
    """Return when the tweet was acknowledged; 0 if it never was, or was never begun."""
    at = number - sent.first
    return sent.acknowledged_ns[at] if at < len(sent.acknowledged_ns) else 0


def late_answers(flow_run: FlowRun) -> int:
    """Return the number of tweets that were acknowledged after the last phase."""
    end = flow_run.sent.start_ns + int(sum(phase.seconds for phase in flow_run.phases) * 1e9)
    return sum(1 for when in flow_run.sent.acknowledged_ns if when > end)


def rate_of(flow_run: FlowRun, tweets: int) -> float:
    """Return ``tweets`` divided by the time of the load and of its drain, if it has one."""
    end = flow_run.sent.start_ns + int(sum(phase.seconds for phase in flow_run.phases) * 1e9)
    return tweets / ((max(flow_run.drained_ns, end) if flow_run.executions else end) - flow_run.sent.start_ns) * 1e9


def responses_ms(sent: Sent, begin_ns: int = 0, end_ns: int | None = None) -> list[float]:
    """Return the responses of the tweets that were due from ``begin_ns`` on and before ``end_ns``."""
    return [
        ((acknowledged or sent.end_ns) - due) / 1e6
        for number, (due, acknowledged) in enumerate(zip(sent.due_ns, sent.acknowledged_ns, strict=True), sent.first)
        if number not in sent.marked.celebrity
        if due >= begin_ns and (end_ns is None or due < end_ns)
    ]


def spread_of(values: Iterable[float]) -> dict[str, float]:
    """Return p50 ... p99.9, max and stddev by name; an empty dict without values."""
    ascending = sorted(values)
    if not ascending:
        return {}
    mean = sum(ascending) / len(ascending)
    deviation = sqrt(sum((value - mean) ** 2 for value in ascending) / len(ascending))
    return {f"p{share:g}": at_share(ascending, share) for share in SHARES} | {"max": ascending[-1], "stddev": deviation}


def at_share(ascending: Sequence[float], share: float) -> float:
    """Return the percentile of sorted values: the least value that ``share`` % of them do not exceed."""
    return ascending[max(0, ceil(len(ascending) * share / 100) - 1)]


def gap_ms(sent: Sent) -> float:
    """Return the longest time without an acknowledgement, from the start to the last acknowledgement."""
    times = [sent.start_ns, *sorted(when for when in sent.acknowledged_ns if when)]
    return max((after - before for before, after in pairwise(times)), default=0) / 1e6


def pauses_ms(flow_run: FlowRun) -> list[float]:
    """Return the longest time without an acknowledgement between each fault and the next."""
    times = sorted(when for when in flow_run.sent.acknowledged_ns if when)
    ends = [bisect_right(times, kill) for kill in flow_run.kills_ns] + [len(times)]
    return [
        max(after - before for before, after in pairwise([kill, *times[begin:end]])) / 1e6
        for kill, begin, end in zip(flow_run.kills_ns, ends, ends[1:], strict=False)
        if end > begin
    ]


def phases_ms(flow_run: FlowRun) -> list[dict[str, float]]:
    """Return the spread of the responses in each phase."""
    found, begin = [], flow_run.sent.start_ns
    for phase in flow_run.phases:
        end = begin + int(phase.seconds * 1e9)
        found.append(spread_of(responses_ms(flow_run.sent, begin, end)))
        begin = end
    return found


def drained_after_s(flow_run: FlowRun) -> float | None:
    """Return the time from the end of the burst (phase 2) until its backlog was done; None if it never was.

    A tweet counts as done when somebody began to spread it or, where the application writes everything, when it is
    acknowledged.
    """
    sent = flow_run.sent
    ends = sent.start_ns + int((flow_run.phases[0].seconds + flow_run.phases[1].seconds) * 1e9)
    acknowledged = sorted(when for when in sent.acknowledged_ns if when)
    slack = BACKLOG_S * (flow_run.phases[2].rate or 0.0)
    for when, executed in sent.samples:
        done = bisect_right(acknowledged, when)
        if flow_run.executions:
            done = min(done, executed - flow_run.executed_before)
        if when >= ends and bisect_right(sent.due_ns, when) - done <= slack:
            return (when - ends) / 1e9
    return None


def saturation_of(found: Sequence[FlowRuns]) -> float:
    """Return the median rate of the reference in W1, or of the first variant if the reference did not run."""
    by_variant = {one.variant: one for one in found}
    one = by_variant.get(REFERENCE, found[0])
    return median(figures_of(flow_run).rate for flow_run in one.runs)
