"""The language of --require, and the verdicts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wikibench.errors import RequirementError
from wikibench.outcome import Kind
from wikibench.requirements import Requirement, judge, parse_requirements


def test_clauses_and_units() -> None:
    read = parse_requirements(
        "p95<200ms, errors<0.1%,edit-save.p99.9<=1.5s,errors<=3,rate>=495/s,lateness<500us,max<2s"
    )
    assert [(r.metric, r.comparison, r.limit, r.unit, r.kind) for r in read] == [
        ("p95", "<", 200.0, "ms", None),
        ("errors", "<", 0.1, "%", None),
        ("p99.9", "<=", 1500.0, "ms", Kind.EDIT_SAVE),
        ("errors", "<=", 3.0, "count", None),
        ("rate", ">=", 495.0, "/s", None),
        ("lateness", "<", 0.5, "ms", None),
        ("max", "<", 2000.0, "ms", None),
    ]
    assert parse_requirements("") == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("p95<200", "unit"),
        ("p95=200ms", "form"),
        ("p0<1ms", "between 0 and 100"),
        ("p101<1ms", "between 0 and 100"),
        ("pages.p95<1ms", "no kind"),
        ("speed<1ms", "no metric"),
        ("errors<5ms", "counted or in %"),
        ("rate>5%", "per second"),
        ("p95<200ms;errors<1%", "form"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, why: str) -> None:
    with pytest.raises(RequirementError, match=why):
        parse_requirements(text)


def of_time(ms: float, failed_percent: float = 0.0) -> Callable[[Requirement], float]:
    return lambda wanted: failed_percent if wanted.metric == "errors" else ms


def test_a_failure_was_not_answered_in_time_however_quick_it_was() -> None:
    (within, slower) = parse_requirements("p95<200ms,p95>1ms")
    assert judge(within, of_time(3.0, failed_percent=5.0)).met
    failed = judge(within, of_time(3.0, failed_percent=5.5))
    assert (failed.met, failed.line) == (False, "MISSED p95<200ms: 5.5 % of these requests failed")
    assert judge(slower, of_time(3.0, failed_percent=100.0)).met, "it asks for no answer in time"


@pytest.mark.parametrize("clause", ["edit-save.rate>=10", "page.lateness<5ms"])
def test_what_no_kind_has_is_not_asked_of_one(clause: str) -> None:
    with pytest.raises(RequirementError, match="kind"):
        parse_requirements(clause)


def test_a_verdict_says_which_and_by_how_much() -> None:
    (wanted,) = parse_requirements("p95<200ms")
    met = judge(wanted, of_time(120.0))
    assert met.met
    assert met.line == "met p95<200ms: got 120 ms"
    missed = judge(wanted, of_time(250.0))
    assert not missed.met
    assert missed.line == "MISSED p95<200ms: got 250 ms, off by 50 ms"
    assert not judge(wanted, of_time(200.0)).met
    untested = judge(wanted, lambda _: None)
    assert not untested.met
    assert "no such request" in untested.line
