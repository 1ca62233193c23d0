"""Functions that hold up the leader, in a time of the test's own."""

from __future__ import annotations

import pytest

from columnar.triggers.threads import LONGEST_S, TRIAL_S, BlockingFunctions


def test_a_function_runs_in_the_leader_until_it_holds_it_up() -> None:
    held = BlockingFunctions()
    assert not held.runs_aside("m:f", 0.0)
    held.note_blocking("m:f", 0.0)
    assert held.runs_aside("m:f", 0.0)
    assert not held.runs_aside("m:g", 0.0)


def test_a_function_whose_calls_look_long_beside_each_other_is_tried_and_comes_back() -> None:
    held = BlockingFunctions()
    held.note_blocking("m:f", 0.0)
    assert held.runs_aside("m:f", TRIAL_S / 2)
    assert not held.runs_aside("m:f", TRIAL_S)
    assert held.runs_aside("m:f", TRIAL_S), "one call is the trial"
    held.was_quick("m:f")
    assert not held.runs_aside("m:f", TRIAL_S)
    held.note_blocking("m:f", 1.0)
    assert not held.runs_aside("m:f", 1.0 + TRIAL_S), "it begins anew"


def test_a_function_that_blocks_is_tried_ever_more_rarely() -> None:
    held, now_s, waits = BlockingFunctions(), 0.0, []
    held.note_blocking("m:f", now_s)
    for _ in range(10):
        begun_s = now_s
        while held.runs_aside("m:f", now_s):
            now_s += TRIAL_S / 10
        waits.append(now_s - begun_s)
        held.note_blocking("m:f", now_s)
    assert waits[:3] == pytest.approx([TRIAL_S, 2 * TRIAL_S, 4 * TRIAL_S], abs=TRIAL_S / 5)
    assert waits[-1] == pytest.approx(LONGEST_S, abs=TRIAL_S / 5)
