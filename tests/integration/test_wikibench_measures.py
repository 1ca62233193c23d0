"""The commands that measure WikiBench's promises: how they judge, and in a deep run each of them in short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.measure.dashboard_cost import differences_of
from tests.measure.same_wiki import comparison_line, judge_comparisons, judge_searches
from tests.measure.whole_seconds import traces
from tests.support.deep import IS_DEEP
from wikibench.trace.source import Trace


def answer(rate: float, *, is_valid: bool = True) -> dict[str, Any]:
    return {"rate_per_s": rate, "valid": is_valid}


def test_searches_within_six_per_cent_are_met() -> None:
    assert judge_searches([answer(100), answer(103), answer(106)])[1]
    assert judge_searches([answer(100), answer(103), answer(107)]) == (
        "100.0 to 107.0/s, a spread of 6.8%; bound 6%: missed",
        False,
    )
    assert not judge_searches([answer(100), answer(100), answer(100, is_valid=False)])[1]
    assert not judge_searches([answer(0), answer(0)])[1]


def compared(verdict: str, *, is_valid: bool = True) -> dict[str, Any]:
    ratio = {"low": 0.99, "high": 1.02}
    figures = [{"figure": "p50", "decides": True, "ratio": ratio}, {"figure": "cpu", "decides": True, "ratio": None}]
    return {"verdict": verdict, "valid": is_valid, "not_valid_because": ["late"], "figures": figures}


def test_a_wiki_that_differs_from_itself_is_a_miss() -> None:
    assert judge_comparisons([compared("same"), compared("cannot tell")]) == (
        "'same' or 'cannot tell' in 2 of 2: met",
        True,
    )
    assert not judge_comparisons([compared("same"), compared("worse")])[1]
    assert not judge_comparisons([compared("same"), compared("same", is_valid=False)])[1]
    assert comparison_line(compared("same", is_valid=False)) == "same: p50 -1.0% to +2.0%; NOT VALID: late"


def test_neighbours_in_turn_are_paired() -> None:
    turns = [("without", 1.0), ("with", 1.5), ("with", 2.5), ("without", 2.25)]
    assert differences_of(turns) == [0.5, 0.25]


def test_a_log_of_whole_seconds_is_read_spread_and_as_logged(tmp_path: Path) -> None:
    made = traces(tmp_path, 200.0, 2.0, 1)
    times = {kind: [one.time_us for one in Trace([str(path)]).open_all().read()] for kind, path in made.items()}
    assert {len(one) for one in times.values()} == {400}
    assert {at_us % 1_000_000 for at_us in times["as logged"]} == {0}
    assert len({at_us % 1_000_000 for at_us in times["spread"]}) > 390
    for logged, original in ((times["as logged"], times["original"]), (times["spread"], times["original"])):
        assert [at_us // 1_000_000 for at_us in logged] == [at_us // 1_000_000 for at_us in original]


@pytest.mark.skipif(not IS_DEEP, reason="a minute of replays each: with COLUMNAR_DEEP")
@pytest.mark.parametrize(
    "words",
    [
        ("whole_seconds", "--rounds", "1", "--seconds", "4"),
        ("dashboard_cost", "--rounds", "1", "--seconds", "3"),
        ("same_wiki", "searches", "--count", "2", "--pages", "40", "--duration", "2", "--budget", "16"),
        ("same_wiki", "ab", "--count", "1", "--pages", "40", "--rounds", "2", "--duration", "2", "--rate", "30"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
@pytest.mark.lasts(90)
@pytest.mark.timeout(300)
def test_a_measure_says_met_or_missed(words: tuple[str, ...]) -> None:
    name, *given = words
    done = subprocess.run([sys.executable, "-m", f"tests.measure.{name}", *given], capture_output=True, text=True)
    last = done.stdout.splitlines()[-1] if done.stdout else ""
    assert (done.returncode, last.rpartition(": ")[2]) in ((0, "met"), (1, "missed")), done.stdout + done.stderr
