"""(pure) The comparison of reports of two systems: for each figure the ratio with its interval, and a verdict.

Three reports a side and more are pairs, the first of a with the first of b and so on; fewer are compared by blocks of
BLOCK_S of their intervals (``gauge.confidence``), which says nothing of other runs.

    limits := clause ("," clause)*           p50>+5%,cpu>+5%,rate<-3%
    clause := figure (">" | "<") ("+" | "-") number "%"

A limit is missed if the whole interval of the figure lies beyond it, and met if none of it does.

Times and rates of a system that fails say nothing of it: an error may be quick.  If MOST_FAILED more of the requests
failed on one side than on the other, or its runs were ended as overloaded and the other's were not, that side is worse,
and every limit is missed if that is B.

Knows nothing of files; a report is the JSON of ``summary``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import exp, log
from statistics import fmean
from typing import Any, Final, Literal

from gauge.confidence import (
    CONFIDENCE,
    LEAST_BLOCKS,
    LEAST_PAIRS,
    Chooser,
    Ratio,
    Verdict,
    mean_figure,
    of_blocks,
    of_pairs,
    percentile_figure,
    verdict,
)
from gauge.histogram import Histogram

from .errors import LimitError, ReportError

FORMAT: Final = "wikibench-comparison-1"
READABLE: Final = ("wikibench-report-1", "wikibench-report-2")
BLOCK_S: Final = 5.0
MARGIN: Final = 0.02
SAME_RATE: Final = 0.02  # offered rates that differ by more are not compared without a remark
MOST_FAILED: Final = 0.01
DECIDING: Final = ("cpu", "p50")  # the figures that vary least, so a difference shows in them first
_BY_WEIGHT: Final[tuple[Verdict, ...]] = ("worse", "better", "cannot tell", "same")
_PERCENTILES: Final = ("p50", "p95", "p99")
_CLAUSE: Final = re.compile(r"([\w.:-]+?)\s*([<>])\s*([+-]?\d+(?:\.\d+)?)\s*%")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """A report, as far as it is compared.  Blocks are empty if it has none."""

    name: str
    date: str
    target: str
    trace: str
    offered_per_s: float
    failed: int
    counted: int
    is_overloaded: bool  # its system could no longer follow
    not_valid: tuple[str, ...]
    figures: dict[str, float]  # p50, p95, p99 in ms; rate in answers per second; cpu, cpu.ROLE in us a request
    blocks: tuple[Histogram, ...]  # of response times
    block_rates: tuple[float, ...]  # answers per second


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of both systems; ``ratio`` is None if it cannot be known, and ``why`` says why."""

    figure: str
    a: float
    b: float
    ratio: Ratio | None
    verdict: Verdict
    why: str = ""

    @property
    def decides(self) -> bool:
        return self.figure in DECIDING


@dataclass(frozen=True, slots=True)
class Comparison:
    """All figures of a against b."""

    basis: Literal["pairs", "blocks"]
    runs: int  # of each side
    margin: float
    confidence: float  # of the intervals
    differences: tuple[Difference, ...]
    remarks: tuple[str, ...]
    not_valid: tuple[str, ...]
    why_a_fails: str = ""  # where B does not; of both at most one is given
    why_b_fails: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the deciding figures; they cannot tell if one differs and another leans the other way."""
        if self.why_b_fails or self.why_a_fails:
            return "worse" if self.why_b_fails else "better"
        known = [(one, one.ratio.middle) for one in self.differences if one.decides and one.ratio is not None]
        found = {one.verdict for one, _ in known}
        is_more, is_less = (any(sign * (middle - 1) > self.margin for _, middle in known) for sign in (1, -1))
        if not known or (is_more and is_less):
            return "cannot tell"
        return next(word for word in _BY_WEIGHT if word in found)

    def needs_confirming(self, limits: Sequence[Limit] = ()) -> bool:
        """Return whether pairs show a difference, or miss a limit, as chance might have it; not if a system fails."""
        if self.basis != "pairs" or self.why_b_fails or self.why_a_fails or self.not_valid:
            return False
        return self.verdict in ("better", "worse") or any(limit.judge(self) == "missed" for limit in limits)


@dataclass(frozen=True, slots=True)
class Limit:
    """A clause of --fail-if; ``beyond`` is the ratio at the limit."""

    text: str
    figure: str
    sign: str
    beyond: float

    def judge(self, comparison: Comparison) -> Literal["met", "missed", "cannot tell"]:
        if comparison.why_b_fails:
            return "missed"
        found = next((one for one in comparison.differences if one.figure == self.figure), None)
        if comparison.why_a_fails or found is None or found.ratio is None:
            return "cannot tell"
        low, high = found.ratio.low, found.ratio.high
        if self.sign == "<":
            low, high = -high, -low
        at = self.beyond if self.sign == ">" else -self.beyond
        return "missed" if low > at else "met" if high <= at else "cannot tell"


def parse_limits(text: str) -> tuple[Limit, ...]:
    """Return the clauses of ``text``; raises LimitError naming the first bad one."""
    return tuple(_parse_limit(clause.strip()) for clause in text.split(",") if clause.strip())


def _parse_limit(clause: str) -> Limit:
    match = _CLAUSE.fullmatch(clause)
    if match is None:
        raise LimitError(clause, "not of the form p50>+5%, cpu>+5% or rate<-3%")
    figure = match[1]
    if figure not in (*_PERCENTILES, "rate", "cpu") and not figure.startswith("cpu."):
        raise LimitError(clause, f"no figure {figure!r}; there are p50, p95, p99, rate, cpu and cpu.ROLE")
    return Limit(clause, figure, match[2], 1 + float(match[3]) / 100)


def run_of(report: Any, name: str) -> Run:
    """Return what is compared of a report; raises ReportError if it is none."""
    if not isinstance(report, dict) or report.get("format") not in READABLE:
        raise ReportError(name, f"no report of wikibench replay: its format is none of {', '.join(READABLE)}")
    try:
        return _run_of(report, name)
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(name, f"a damaged report: {error!r}") from error


def _run_of(report: Json, name: str) -> Run:
    times = report["response_time"]
    figures = {key: float(times[f"{key}_ms"]) for key in _PERCENTILES if times[f"{key}_ms"] is not None}
    figures["rate"] = float(report["rate"]["got_per_s"])
    for row in report.get("roles", ()):
        figures[f"cpu.{row['role']}"] = float(row["cpu_us_a_request"])
    if report.get("roles"):
        figures = {"cpu": sum(value for key, value in figures.items() if key.startswith("cpu.")), **figures}
    blocks, rates = _blocks_of(report)
    not_valid = list(report.get("not_valid_because", ()))
    is_overloaded = report["ending"] == "overloaded"
    if report["ending"] != "complete" and not is_overloaded:
        not_valid.append(f"the replay was {report['ending']}")
    return Run(
        name,
        str(report["environment"]["date"]),
        str(report["target"]),
        str(report["trace"]["file"]),
        float(report["rate"]["asked_per_s"]),
        int(report["requests"]["failed"]),
        int(report["requests"]["counted"]),
        is_overloaded,
        tuple(not_valid),
        figures,
        tuple(blocks),
        tuple(rates),
    )


def _blocks_of(report: Json) -> tuple[list[Histogram], list[float]]:
    """Return blocks of the seconds in which requests began, without the warm-up and without a rest at the end."""
    length_s = float(report["interval_s"])
    intervals = [row for row in report["intervals"] if row["start_s"] >= report["warm_up"]["duration_s"]]
    while intervals and not intervals[-1]["asked"]:
        intervals.pop()
    size = max(1, round(BLOCK_S / length_s))
    if not intervals or "response_time_us_hdr_base64" not in intervals[0]:
        return [], []
    blocks, rates = [], []
    for at in range(0, len(intervals) - size + 1, size):
        block = Histogram(2)
        for row in intervals[at : at + size]:
            if row["response_time_us_hdr_base64"]:
                block.add(Histogram.decode(row["response_time_us_hdr_base64"]))
        blocks.append(block)
        rates.append(sum(row["answered"] for row in intervals[at : at + size]) / (size * length_s))
    return blocks, rates


def compare(
    a: Sequence[Run], b: Sequence[Run], rng: Chooser, margin: float = MARGIN, confidence: float = CONFIDENCE
) -> Comparison:
    """Return the comparison; raises ReportError if pairs are not complete.  ``rng`` draws blocks.

    ``confidence`` is that of pairs; blocks have CONFIDENCE.
    """
    if not a or len(a) != len(b):
        raise ReportError("reports", f"{len(a)} against {len(b)}: give as many of either side, each pair in its order")
    basis: Literal["pairs", "blocks"] = "pairs" if len(a) >= LEAST_PAIRS else "blocks"
    known = [name for name in a[0].figures if all(name in run.figures for run in (*a, *b))]
    of_pairs_at = confidence if basis == "pairs" else None
    differences = tuple(_difference(name, a, b, of_pairs_at, margin, rng) for name in known)
    not_valid = tuple(f"{run.name}: {why}" for run in (*a, *b) for why in run.not_valid)
    fails = [_why_fails(*sides) for sides in (((a, "A"), (b, "B")), ((b, "B"), (a, "A")))]
    if all(any(run.is_overloaded for run in runs) for runs in (a, b)):
        not_valid += ("both systems were overloaded: compare them at a lower rate",)
    said_at = of_pairs_at or CONFIDENCE
    return Comparison(basis, len(a), margin, said_at, differences, tuple(_remarks(a, b, basis)), not_valid, *fails)


def _why_fails(mine: tuple[Sequence[Run], str], others: tuple[Sequence[Run], str]) -> str:
    """Return why one side fails and the other does not; empty if that is not so."""
    (runs, name), (rest, other) = mine, others
    overloaded = [sum(run.is_overloaded for run in of_side) for of_side in (runs, rest)]
    if overloaded[0] and not overloaded[1]:
        return f"{name} could not follow in {overloaded[0]} of {len(runs)} runs, and {other} could"
    shares = [
        sum(run.failed for run in of_side) / max(1, sum(run.counted for run in of_side)) for of_side in (runs, rest)
    ]
    if shares[0] > shares[1] + MOST_FAILED and not overloaded[1]:
        return f"{shares[0]:.1%} of the requests failed on {name}, and {shares[1]:.1%} on {other}"
    return ""


def _difference(
    name: str, a: Sequence[Run], b: Sequence[Run], of_pairs_at: float | None, margin: float, rng: Chooser
) -> Difference:
    of_a, of_b = ([run.figures[name] for run in runs] for runs in (a, b))
    ratio, why = None, ""
    if of_pairs_at is not None:
        ratio = of_pairs(of_a, of_b, of_pairs_at)
        why = "" if ratio else "a figure of 0 has no ratio"
    elif name.startswith("cpu"):
        why = f"one run has no spread of its CPU: {LEAST_PAIRS} pairs do"
    else:
        ratio = _by_blocks(name, a, b, rng)
        why = "" if ratio else f"too short, or of an older format: {LEAST_BLOCKS * BLOCK_S:g} s and more have blocks"
    found = verdict(ratio, margin, is_less_better=name != "rate")
    return Difference(name, _middle(of_a), _middle(of_b), ratio, found, why)


def _by_blocks(name: str, a: Sequence[Run], b: Sequence[Run], rng: Chooser) -> Ratio | None:
    if name == "rate":
        figures = [mean_figure([rate for run in runs for rate in run.block_rates]) for runs in (a, b)]
    else:
        blocks = [[block for run in runs for block in run.blocks] for runs in (a, b)]
        figures = [percentile_figure(of_runs, float(name[1:])) for of_runs in blocks]
    counts = [sum(len(run.blocks) for run in runs) for runs in (a, b)]
    return of_blocks(figures[0], counts[0], figures[1], counts[1], rng)


def _middle(values: Sequence[float]) -> float:
    return exp(fmean(map(log, values))) if min(values) > 0 else fmean(values)


def _remarks(a: Sequence[Run], b: Sequence[Run], basis: str) -> list[str]:
    found = []
    if basis == "blocks":
        found.append("this is said of these runs only: measure in turn (wikibench ab) to know how runs differ")
    elif not _is_alternating(a, b):
        found.append("the runs were not made in turn, so what changed on the machine meanwhile counts as a difference")
    if len({run.trace for run in (*a, *b)}) > 1:
        found.append(f"the traces differ: {a[0].trace} and others")
    rates = [run.offered_per_s for run in (*a, *b)]
    if max(rates) > min(rates) * (1 + SAME_RATE):
        found.append(f"the offered rates differ: {min(rates):.1f} to {max(rates):.1f} per second")
    for side, runs in (("A", a), ("B", b)):
        if failed := sum(run.failed for run in runs):
            found.append(f"{side}: {failed} of {sum(run.counted for run in runs)} requests failed")
    return found


def _is_alternating(a: Sequence[Run], b: Sequence[Run]) -> bool:
    """Return whether the runs of each pair follow one another, as their dates have it."""
    dates = [sorted((of_a.date, of_b.date)) for of_a, of_b in zip(a, b, strict=True)]
    return all(one[1] <= other[0] for one, other in pairwise(dates))


def json_of(comparison: Comparison, limits: Sequence[Limit] = ()) -> Json:
    """Return the comparison for JSON; ratios are b over a."""
    return {
        "format": FORMAT,
        "basis": comparison.basis,
        "runs_of_each": comparison.runs,
        "confidence": comparison.confidence,
        "margin": comparison.margin,
        "verdict": comparison.verdict,
        "why_a_fails": comparison.why_a_fails,
        "why_b_fails": comparison.why_b_fails,
        "figures": [{**asdict(one), "decides": one.decides} for one in comparison.differences],
        "limits": [{"limit": limit.text, "verdict": limit.judge(comparison)} for limit in limits],
        "valid": not comparison.not_valid,
        "not_valid_because": list(comparison.not_valid),
        "remarks": list(comparison.remarks),
    }
