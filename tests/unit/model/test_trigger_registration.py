"""Registrations are refused with what would be right; backpressure rises towards the bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from columnar.errors import IllegalArgument, TriggerError
from columnar.flows.backpressure import LONGEST_DELAY_S, LogBounds, backpressure_of
from columnar.model.trigger_registration import Registration, checked, from_json, start_at, start_ms_of, to_json

GOOD = Registration("links", "pages", "wiki.triggers:links", ("link",))


def test_a_good_one_is_returned() -> None:
    assert checked(GOOD, ("other", "wiki.triggers")) is GOOD


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "trigger name"),
        ({"name": "a b"}, "trigger name"),
        ({"name": "a\n"}, "trigger name"),
        ({"name": "a\x00b"}, "trigger name"),
        ({"name": "x" * 101}, "up to 100"),
        ({"function": "wiki.triggers"}, "module:function"),
        ({"function": "wiki.triggers:links\n"}, "module:function"),
        ({"function": "wiki.triggers:a.b"}, "module:function"),
        ({"families": ()}, "at least one"),
        ({"from_where": "middle"}, "not from 'middle'"),
        ({"from_where": "1969-12-31T23:59"}, "not from '1969-12-31T23:59'"),
        ({"timeout_ms": 0}, "positive"),
        ({"attempts": -1}, "positive"),
        ({"share": 0}, "share of a trigger is 1 to 1000, not 0"),
        ({"share": 1_001}, "not 1001"),
        ({"rate": "10"}, "write it as 10/s"),
        ({"rate": "0/s"}, "more than 0"),
        ({"batch": -1}, "up to 1000 changes, not -1"),
        ({"batch": 1_001}, "not 1001"),
        ({"batch": 5, "within_ms": 60_001}, "not 60001"),
        ({"within_ms": 50}, "how many changes it has"),
        ({"process": "a b"}, "process label 'a b'"),
        ({"process": "a\n"}, "process label"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, Any], message: str) -> None:
    with pytest.raises(IllegalArgument, match=message):
        checked(replace(GOOD, **change), ("wiki.triggers",))


@pytest.mark.parametrize(
    "text", ["2026-11-24T08:00Z", "2026-11-24T09:00+01:00", "2026-11-24 08:00", "2026-11-24T08:00:00.000Z"]
)
def test_a_start_is_a_time(text: str) -> None:
    found = start_ms_of(text)
    assert found is not None
    assert start_at(found) == "2026-11-24T08:00:00.000Z"
    assert checked(replace(GOOD, from_where=text), ("wiki.triggers",)).start_ms == found
    assert replace(GOOD, from_where="beginning").start_ms is None


def test_pace_and_process_are_settings() -> None:
    chosen = replace(GOOD, share=1_000, rate="600/min", batch=1_000, within_ms=60_000, process="a.b-c_1")
    assert checked(chosen, ("wiki.triggers",)) is chosen
    assert from_json(to_json(chosen)) == chosen
    assert b"share" not in to_json(GOOD), "earlier programs read registrations that say nothing of it"


@pytest.mark.parametrize("allowed", [(), ("wiki",), ("wiki.triggers.more",), ("triggers",)])
def test_only_the_very_modules_that_are_allowed(allowed: tuple[str, ...]) -> None:
    with pytest.raises(TriggerError, match=r"--trigger-modules wiki\.triggers"):
        checked(GOOD, allowed)


def test_backpressure_is_gentle_then_steep_then_full() -> None:
    bounds = LogBounds(1_000, 1_000_000)
    assert backpressure_of(499, 0, bounds).delay_s == 0.0
    assert not backpressure_of(499, 0, bounds).alarms
    assert backpressure_of(500, 0, bounds).alarms
    delays = [backpressure_of(n, 0, bounds).delay_s for n in range(500, 1_001, 50)]
    assert delays == sorted(delays)
    assert delays[5] == pytest.approx(LONGEST_DELAY_S / 8)
    assert delays[-1] == LONGEST_DELAY_S
    assert not backpressure_of(999, 0, bounds).refuses
    assert backpressure_of(1_000, 0, bounds).refuses
    assert backpressure_of(0, 1_000_000, bounds).refuses
    assert backpressure_of(10_000, 0, bounds).delay_s == LONGEST_DELAY_S
