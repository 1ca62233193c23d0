"""Requirements on a replay, ``p95<200ms,errors<0.1%``: the language and the verdict (pure).

    requirements := clause ("," clause)*
    clause       := [kind "."] metric comparison value
    kind         := page | missing | edit-form | edit-save        none: all requests
    metric       := p<number> | mean | max     response time; value in us, ms or s
                  | errors | conflicts         share of the requests (%) or, without %, a count
                  | rate                       answered per second; value a number, optionally /s
                  | lateness                   the generator's own, p99; value in us, ms or s
    comparison   := < | <= | > | >=

If no request of a kind occurred, a requirement on its percentile is missed, because it was not put to the test.  A
failed request was not answered in time, however quick the failure: ``p95<200ms`` is missed, too, if over 5 % failed.

Knows nothing of histograms: a callable gives the numbers.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from .errors import RequirementError
from .outcome import Kind

_CLAUSE: Final = re.compile(
    r"(?:(?P<kind>[a-z-]+)\.)?(?P<metric>p\d+(?:\.\d+)?|[a-z]+)\s*(?P<op><=|>=|<|>)\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|/s|us|µs|ms|s)?"
)
_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MILLISECONDS: Final = {"us": 0.001, "µs": 0.001, "ms": 1.0, "s": 1000.0}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A clause; ``limit`` is in milliseconds, percent, a count or requests per second, as ``unit`` says."""

    text: str
    metric: str  # p95, mean, max, errors, conflicts, rate, lateness
    comparison: str
    limit: float
    unit: str  # ms, %, count, /s
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A requirement compared with a replay; ``got`` is None if nothing was measured."""

    requirement: Requirement
    got: float | None
    met: bool
    failed_share: float = 0.0  # of the requests, if it decides

    @property
    def line(self) -> str:
        """Return a line for a person: the requirement, the measured value, and by how much it misses."""
        wanted = self.requirement
        if self.failed_share:
            return f"MISSED {wanted.text}: {self.failed_share:.4g} % of these requests failed"
        if self.got is None:
            return f"MISSED {wanted.text}: no such request was measured"
        unit = "" if wanted.unit == "count" else wanted.unit if wanted.unit in ("%", "/s") else " " + wanted.unit
        text = f"{'met' if self.met else 'MISSED'} {wanted.text}: got {self.got:.4g}{unit}"
        return text if self.met else f"{text}, off by {abs(self.got - wanted.limit):.4g}{unit}"


def parse_requirements(text: str) -> tuple[Requirement, ...]:
    """Return the clauses of ``text``; raises RequirementError naming the first bad one."""
    clauses = [clause.strip() for clause in text.split(",")]
    return tuple(_parse_clause(clause) for clause in clauses if clause)


def judge(requirement: Requirement, measure: Callable[[Requirement], float | None]) -> Verdict:
    """Return the verdict; ``measure`` returns the value in the requirement's unit, or None if nothing was measured."""
    got = measure(requirement)
    if got is not None and (percent := _answered_percent(requirement)) is not None:
        share = measure(replace(requirement, metric="errors", unit="%")) or 0.0
        if share > 100.0 - percent:
            return Verdict(requirement, got, met=False, failed_share=share)
    met = got is not None and _COMPARE[requirement.comparison](got, requirement.limit)
    return Verdict(requirement, got, met)


def _answered_percent(requirement: Requirement) -> float | None:
    """Return how many per cent of the requests are to be answered in time; None if the clause does not say that."""
    is_percentile = requirement.metric[:1] == "p" and requirement.comparison in ("<", "<=")
    return float(requirement.metric[1:]) if is_percentile else None


def _parse_clause(clause: str) -> Requirement:
    match = _CLAUSE.fullmatch(clause)
    if match is None:
        raise RequirementError(clause, "not of the form p95<200ms, edit-save.p99<1s, errors<0.1% or rate>=500")
    metric, number, unit = match["metric"], float(match["number"]), match["unit"]
    if match["kind"] is not None and match["kind"] not in {kind.value for kind in Kind}:
        raise RequirementError(clause, f"no kind of request {match['kind']!r}; there are {', '.join(Kind)}")
    kind = Kind(match["kind"]) if match["kind"] else None
    if metric.startswith("p") and metric[1:].replace(".", "").isdigit():
        if not 0 < float(metric[1:]) <= 100:
            raise RequirementError(clause, "a percentile lies between 0 and 100")
        return _of_time(clause, match, kind)
    if metric == "lateness" and kind is not None:
        raise RequirementError(clause, "lateness is the generator's, not that of a kind of request")
    if metric in ("mean", "max", "lateness"):
        return _of_time(clause, match, kind)
    if metric in ("errors", "conflicts"):
        if unit not in (None, "%"):
            raise RequirementError(clause, f"{metric} are counted or in %, not in {unit}")
        return Requirement(clause, metric, match["op"], number, unit or "count", kind)
    if metric == "rate":
        if kind is not None:
            raise RequirementError(clause, "a rate is that of all requests, not of one kind")
        if unit not in (None, "/s"):
            raise RequirementError(clause, f"a rate is in requests per second, not in {unit}")
        return Requirement(clause, metric, match["op"], number, "/s", kind)
    known = "p<number>, mean, max, errors, conflicts, rate, lateness"
    raise RequirementError(clause, f"no metric {metric!r}; there are {known}")


def _of_time(clause: str, match: re.Match[str], kind: Kind | None) -> Requirement:
    unit = match["unit"]
    if unit not in _MILLISECONDS:
        raise RequirementError(clause, "a time needs its unit: us, ms or s")
    limit = float(match["number"]) * _MILLISECONDS[unit]
    return Requirement(clause, match["metric"], match["op"], limit, "ms", kind)
