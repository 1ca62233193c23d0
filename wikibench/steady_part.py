"""(pure) The verdict on a try of a search: its warm-up is left out, and its backlog may not grow.

The steady part begins where ``gauge.steadiness`` says by the response times of the seconds.  Requirements are judged by
the requests that were intended to start in it, from histograms of two digits, so a percentile may read up to 1 % high;
those of one kind of request, and the generator's lateness, by the whole try.

A try that is steady in no second half is made once more, twice as long, unless the whole of it keeps the requirements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gauge.histogram import merged
from gauge.steadiness import is_backlog_growing, warm_up_end

from .latency import INTERVAL_DIGITS, Interval
from .outcome import FAILED, Outcome
from .requirements import Requirement, Verdict, judge
from .summary import Replay, judge_all, milliseconds

WhyMissed = Literal["", "overloaded", "a requirement", "its backlog grew", "it was not steady"]


@dataclass(frozen=True, slots=True)
class TryVerdict:
    """The verdict on a try; ``steady_from_s`` counts from its begin, and is None if it was not steady."""

    why_missed: WhyMissed  # empty if it was kept
    verdicts: tuple[Verdict, ...]
    steady_from_s: float | None

    @property
    def is_kept(self) -> bool:
        return not self.why_missed


def judge_try(replay: Replay, required: Sequence[Requirement]) -> TryVerdict:
    """Return the verdict on a try that was not interrupted."""
    whole = tuple(judge_all(required, replay))
    if replay.ending != "complete":
        return TryVerdict("overloaded", whole, 0.0)
    length_s = replay.recorder.interval_s
    first, last = round(replay.warm_up_s / length_s), round(replay.planned_s / length_s)
    rows = replay.recorder.intervals[first:last]
    if is_backlog_growing(_open_at_ends(rows), replay.requested_rate):
        return TryVerdict("its backlog grew", whole, None)
    cut = warm_up_end(_means(rows))
    if cut is None:
        return TryVerdict("" if all(one.met for one in whole) else "it was not steady", whole, None)
    if not cut:
        return TryVerdict(_missed(whole), whole, replay.warm_up_s)
    steady_s = replay.warm_up_s + cut * length_s
    part = replay.recorder.intervals[first + cut :]
    verdicts = tuple(
        _judged(one, whole_one, part, replay, steady_s) for one, whole_one in zip(required, whole, strict=True)
    )
    return TryVerdict(_missed(verdicts), verdicts, steady_s)


def _missed(verdicts: Sequence[Verdict]) -> WhyMissed:
    return "" if all(one.met for one in verdicts) else "a requirement"


def _judged(wanted: Requirement, whole: Verdict, part: Sequence[Interval], replay: Replay, steady_s: float) -> Verdict:
    if wanted.kind is not None or wanted.metric == "lateness":
        return whole
    return judge(wanted, lambda one: _measure(one, part, replay.elapsed_s - steady_s))


def _measure(wanted: Requirement, part: Sequence[Interval], seconds: float) -> float | None:
    outcomes: Counter[Outcome] = Counter()
    for row in part:
        outcomes.update(row.outcomes)
    count = outcomes.total()
    if wanted.metric == "rate":
        return sum(number for outcome, number in outcomes.items() if outcome not in FAILED) / max(seconds, 1e-9)
    if not count:
        return None
    if wanted.metric in ("errors", "conflicts"):
        counted = FAILED if wanted.metric == "errors" else {Outcome.CONFLICT}
        found = sum(outcomes[outcome] for outcome in counted)
        return found / count * 100 if wanted.unit == "%" else float(found)
    histogram = merged((row.response for row in part), INTERVAL_DIGITS)
    if wanted.metric == "mean":
        return histogram.mean() / 1000
    return milliseconds(histogram, 100.0 if wanted.metric == "max" else float(wanted.metric[1:]))


def _open_at_ends(rows: Sequence[Interval]) -> list[float]:
    """Return the requests that were open at the end of each interval."""
    open_requests, found = 0, []
    for row in rows:
        open_requests += row.requested - row.answered
        found.append(float(open_requests))
    return found


def _means(rows: Sequence[Interval]) -> list[float]:
    """Return the mean response of each interval; one without requests has the mean of the one before it."""
    found: list[float] = []
    for row in rows:
        found.append(row.response.mean() if row.requested else found[-1] if found else 0.0)
    return found
