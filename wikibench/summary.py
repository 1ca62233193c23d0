"""The figures of a replay, ready for JSON, with the unit in every key (pure).

Knows nothing of display and files; facts of the outside world (dates, the machine) are arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gauge.histogram import Histogram
from gauge.processes import RoleUse

from .latency import PERCENTILES, Figures, Interval, Recorder, Sample
from .limits import (
    CLOCK_MS,
    CPU_JUDGED_S,
    CPU_LIMIT_SHARE,
    CPU_WARNING_SHARE,
    OTHERS_CPU,
    OWN_LATENESS_WARNING_MS,
    ROLE_LIMIT_SHARE,
)
from .outcome import FAILED, Kind, Outcome
from .requirements import Requirement, Verdict, judge

FORMAT: Final = "wikibench-report-2"
WAITED: Final = "for {:.0%} of the time some program waited for a core (pressure)"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Crew:
    """The processes of a replay."""

    workers: int = 1
    lost: int = 0  # workers that died, or were not heard of any more
    busiest_cpu_s: float | None = None  # of the busiest worker, if there are several
    controller_cpu_s: float = 0.0
    planned: int | None = None  # requests of the trace that were due; an edit is one of them, and its save none
    lost_requests: int = 0  # of lost workers: due, and nobody knows their end
    starved: int = 0  # requests that were due before their worker had them
    clock_ms: float = 0.0  # how far starts of different workers may be from one clock


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of one replay."""

    figures: Figures
    ending: str
    planned_s: float
    warm_up_s: float
    elapsed_s: float
    cpu_s: float
    sent: int
    most_open: int
    open_limit: int
    connections: int
    retried: int
    crew: Crew = Crew()

    @property
    def recorder(self) -> Recorder:
        return self.figures.recorder

    @property
    def warm_up(self) -> Recorder:
        return self.figures.warm_up

    @property
    def own_lateness(self) -> Histogram:
        return self.figures.own_lateness

    @property
    def slot_wait(self) -> Histogram:
        return self.figures.slot_wait

    @property
    def measured_s(self) -> float:
        """The seconds in which the counted requests were sent and answered."""
        return max(self.elapsed_s - self.warm_up_s, 1e-9)

    @property
    def requested_rate(self) -> float:
        planned_s = self.planned_s if self.ending == "complete" else min(self.planned_s, self.elapsed_s)
        return self.recorder.count() / max(planned_s - self.warm_up_s, 1e-9)

    @property
    def rate_got(self) -> float:
        """The successful answers per second of the measured time, drain included."""
        return self._good(None) / self.measured_s

    @property
    def page_views_per_s(self) -> float:
        return (self._good(Kind.PAGE) + self._good(Kind.MISSING)) / self.measured_s

    @property
    def cpu_share(self) -> float:
        """The share of a core that the generator used, or its busiest worker."""
        return (self.cpu_s if self.crew.busiest_cpu_s is None else self.crew.busiest_cpu_s) / max(self.elapsed_s, 1e-9)

    def _good(self, kind: Kind | None) -> int:
        return self.recorder.count(kind, set(Outcome) - FAILED - {Outcome.INTERRUPTED})


def judge_all(requirements: Sequence[Requirement], replay: Replay) -> list[Verdict]:
    """Return every requirement compared with the replay."""
    return [judge(requirement, lambda wanted: _measure(wanted, replay)) for requirement in requirements]


def summarize(replay: Replay, verdicts: Sequence[Verdict], about: Json, not_valid: Sequence[str] = ()) -> Json:
    """Return the whole report as JSON; ``about`` (target, trace, seed, command line, environment) stands at its top.

    ``not_valid`` has the reasons for which the figures say nothing of the wiki.
    """
    recorder = replay.recorder
    return {
        "format": FORMAT,
        "ending": replay.ending,
        "valid": not not_valid,
        "not_valid_because": list(not_valid),
        **about,
        "requirements": [_verdict(verdict) for verdict in verdicts],
        "duration_s": _rounded(replay.elapsed_s),
        "warm_up": {
            "duration_s": replay.warm_up_s,
            "requests": replay.warm_up.count(),
            "failed": replay.warm_up.failed(),
        },
        "requests": {
            "planned": replay.crew.planned,
            "counted": recorder.count(),
            "failed": recorder.failed(),
            "conflicts": recorder.count(outcomes=[Outcome.CONFLICT]),
            "interrupted": recorder.count(outcomes=[Outcome.INTERRUPTED]),
            "lost": replay.crew.lost_requests,
            "received_bytes": recorder.received_bytes,
        },
        "rate": {
            "asked_per_s": _rounded(replay.requested_rate),
            "got_per_s": _rounded(replay.rate_got),
            "page_views_per_s": _rounded(replay.page_views_per_s),
        },
        "response_time": times(recorder.response()),
        "service_time": times(recorder.service()),
        "by_kind": [_of_kind(recorder, kind) for kind in Kind if recorder.count(kind)],
        "by_kind_and_outcome": _of_pairs(recorder),
        "generator": generator(replay),
        "failures": [_failure(sample) for sample in recorder.failures],
        "interval_s": recorder.interval_s,
        "intervals": [
            _interval(index * recorder.interval_s, interval) for index, interval in enumerate(recorder.intervals)
        ],
    }


def times(histogram: Histogram) -> Json:
    """Return the percentiles of a histogram in milliseconds; None for each if the histogram is empty."""
    count = histogram.count
    result: Json = {"count": count}
    for percent, value_us in zip((*PERCENTILES, 100.0), histogram.percentiles((*PERCENTILES, 100.0)), strict=True):
        name = "max_ms" if percent == 100.0 else f"p{percent:g}_ms"
        result[name] = _rounded(value_us / 1000) if count else None
    result["mean_ms"] = _rounded(histogram.mean() / 1000) if count else None
    return result


def milliseconds(histogram: Histogram, percentile: float) -> float | None:
    if not histogram.count:
        return None
    return _rounded(histogram.percentile(percentile) / 1000)


def distribution(histogram: Histogram) -> list[tuple[float, float]]:
    """Return points (1 / (1 - quantile), milliseconds) of the percentile plot, as far as the count allows."""
    count = histogram.count
    inverses, inverse = [], 1.0
    while count and inverse <= max(count, 2):
        inverses.append(inverse)
        inverse *= 1.15
    values = histogram.percentiles([100.0 * (1 - 1 / inverse) for inverse in inverses] + [100.0])
    return (
        list(zip([*inverses, max(float(count), 2.0)], (value / 1000 for value in values), strict=True)) if count else []
    )


def generator(replay: Replay) -> Json:
    """Return the figures that say how far the generator itself can be believed."""
    lateness = times(replay.own_lateness)
    warnings = []
    if (lateness["p99_ms"] or 0) > OWN_LATENESS_WARNING_MS:
        warnings.append(
            f"the generator itself sent late (p99 {lateness['p99_ms']} ms): response times hold its lateness too"
        )
    if replay.cpu_share > CPU_WARNING_SHARE:
        warnings.append(f"the generator used {replay.cpu_share:.0%} of a core: it may be the limit, not the wiki")
    controller = replay.crew.controller_cpu_s / max(replay.elapsed_s, 1e-9)
    if controller > CPU_WARNING_SHARE:
        warnings.append(f"the controller used {controller:.0%} of a core: it may be the limit, not the wiki")
    waits = replay.slot_wait.count
    if waits:
        warnings.append(
            f"{waits} requests waited because {replay.open_limit} were open already; the wait is in their response time"
        )
    return {
        "own_lateness": lateness,
        "waited_for_a_slot": times(replay.slot_wait),
        "dealt_late": times(replay.figures.dealt_late),
        "workers": replay.crew.workers,
        "workers_lost": replay.crew.lost,
        "starved_requests": replay.crew.starved,
        "clocks_within_ms": _rounded(replay.crew.clock_ms),
        "controller_cpu_s": _rounded(replay.crew.controller_cpu_s),
        "cpu_s": _rounded(replay.cpu_s),
        "cpu_share_of_one_core": _rounded(replay.cpu_share),
        "sent": replay.sent,
        "most_open_requests": replay.most_open,
        "open_requests_limit": replay.open_limit,
        "connections_opened": replay.connections,
        "resent_on_a_fresh_connection": replay.retried,
        "warnings": warnings,
    }


def roles_of(uses: Iterable[RoleUse], requests: int) -> list[Json]:
    return [
        {
            "role": use.name,
            "cpu_s": round(use.cpu_s, 2),
            "cpu_us_a_request": round(use.cpu_s / max(requests, 1) * 1e6, 1),
            "resident_mb": round(use.resident_mb, 1),
            "busiest_share_of_one_core": None if use.busiest_share is None else _rounded(use.busiest_share),
        }
        for use in uses
    ]


def role_line(row: Json) -> str:
    """Return what a role used; it is at its limit if one of its processes has a core for itself and takes it whole."""
    share = row.get("busiest_share_of_one_core")
    limit = f", its busiest process {share:.0%} of a core: at its limit" if (share or 0) > ROLE_LIMIT_SHARE else ""
    return f"{row['role']}: {row['cpu_us_a_request']:,.0f} us of CPU a request, {row['resident_mb']:,.0f} MB{limit}"


def machine_lines(summary: Json) -> list[str]:
    """Return what each watched role used, and what other programs took of the machine; older reports do not have it."""
    lines = [role_line(row) for row in summary.get("roles", ())]
    share = summary.get("others_cpu_share")
    if share is None:
        return lines
    what = "all programs but the generator" if not lines else "programs beside generator and watched ones"
    said = "" if lines else "; which of them is the wiki is not known without --watch, so nothing is judged by it"
    warning = ": they disturb the figures" if lines and share > OTHERS_CPU else said
    return [*lines, f"machine: {what} took {share:.0%} of the cores{warning}", *_contention_lines(summary)]


def _contention_lines(summary: Json) -> list[str]:
    found = summary.get("contention", {})
    words = {"stolen_share": "the host kept {:.0%} of the cores (steal)", "waited_share": WAITED}
    said = [text.format(found[name]) for name, text in words.items() if found.get(name) is not None]
    return [f"contention: {', '.join(said)}"] if said else []


def _measure(wanted: Requirement, replay: Replay) -> float | None:
    recorder = replay.recorder
    if wanted.metric == "lateness":
        return milliseconds(replay.own_lateness, 99.0)
    if wanted.metric == "rate":
        return replay.rate_got
    count = recorder.count(wanted.kind) - recorder.count(wanted.kind, [Outcome.INTERRUPTED])
    if not count:
        return None
    if wanted.metric in ("errors", "conflicts"):
        outcomes = FAILED if wanted.metric == "errors" else {Outcome.CONFLICT}
        found = recorder.count(wanted.kind, outcomes)
        return found / count * 100 if wanted.unit == "%" else float(found)
    histogram = recorder.response(wanted.kind)
    if wanted.metric == "mean":
        return histogram.mean() / 1000
    return milliseconds(histogram, 100.0 if wanted.metric == "max" else float(wanted.metric[1:]))


def _of_kind(recorder: Recorder, kind: Kind) -> Json:
    return {
        "kind": str(kind),
        "count": recorder.count(kind),
        "failed": recorder.failed(kind),
        "response_time": times(recorder.response(kind)),
        "service_time": times(recorder.service(kind)),
    }


def _of_pairs(recorder: Recorder) -> list[Json]:
    order = {kind: index for index, kind in enumerate(Kind)}
    rows = sorted(recorder.pairs.items(), key=lambda item: (order[item[0][0]], item[0][1]))
    return [
        {
            "kind": str(kind),
            "outcome": str(outcome),
            "failed": outcome in FAILED,
            "response_time": times(pair.response),
            "service_time": times(pair.service),
            # HdrHistogram V2, compressed, of microseconds: reports of several generators can be merged without loss
            "response_time_us_hdr_base64": pair.response.encode(),
            "service_time_us_hdr_base64": pair.service.encode(),
        }
        for (kind, outcome), pair in rows
    ]


def _verdict(verdict: Verdict) -> Json:
    wanted = verdict.requirement
    return {
        "requirement": wanted.text,
        "met": verdict.met,
        "got": None if verdict.got is None else _rounded(verdict.got),
        "limit": wanted.limit,
        "unit": wanted.unit,
        "text": verdict.line,
    }


def _failure(sample: Sample) -> Json:
    return {
        "intended_at_s": _rounded(sample.intended_s),
        "kind": str(sample.kind),
        "outcome": str(sample.outcome),
        "response_time_ms": _rounded(sample.response_us / 1000),
        "url": sample.url.encode("utf-8", "replace").decode("utf-8"),
        "why": sample.why,
    }


def _interval(start_s: float, interval: Interval) -> Json:
    # of two digits: two runs are compared by blocks of intervals
    histogram = interval.response.encode() if interval.requested else None
    return {**interval_figures(start_s, interval), "response_time_us_hdr_base64": histogram}


def interval_figures(start_s: float, interval: Interval) -> Json:
    """Return the figures of an interval without its histogram."""
    failed = {str(outcome): count for outcome, count in interval.outcomes.items() if outcome in FAILED}
    return {
        "start_s": start_s,
        "asked": interval.requested,
        "answered": interval.answered,
        "conflicts": interval.outcomes[Outcome.CONFLICT],
        "failed": failed,
        **{f"p{p:g}_ms": milliseconds(interval.response, p) for p in (50.0, 95.0, 99.0)},
        "max_ms": milliseconds(interval.response, 100.0),
    }


def _rounded(value: float) -> float:
    return round(float(value), 4)


def why_not_valid(replay: Replay, late_ms: float) -> list[str]:
    """Return a line for each reason; an empty list if the run is valid, as its load was offered as planned.

    Response times include the generator's own lateness, so a little lateness only makes the wiki look slower than it
    is.  Beyond a bound the figures describe the generator, whether requirements were met or missed.
    """
    found, crew = [], replay.crew
    if crew.lost:
        found.append(
            f"{crew.lost} of {crew.workers} workers were lost, and with them the end of {crew.lost_requests} requests"
        )
    if crew.starved:
        found.append(
            f"{crew.starved} requests were due before their worker had them: the controller dealt them too late"
        )
    if crew.clock_ms > CLOCK_MS:
        found.append(f"the clocks of workers and controller may be {crew.clock_ms:.4g} ms apart; over {CLOCK_MS:g} ms")
    if replay.elapsed_s >= CPU_JUDGED_S and replay.cpu_share >= CPU_LIMIT_SHARE:
        found.append(
            f"the generator used {replay.cpu_share:.0%} of a core; from {CPU_LIMIT_SHARE:.0%} on it is the limit "
            "itself: share the load among --workers, or ask for less"
        )
    p99_ms = milliseconds(replay.own_lateness, 99.0)
    if p99_ms is not None and p99_ms > late_ms:
        found.append(
            f"the generator itself sent {p99_ms:.4g} ms late (p99); over {late_ms:g} ms the plan was not offered"
        )
    return found
