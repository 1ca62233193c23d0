"""Kills of real workers and controllers for some rounds; ``python -m tests.proofs.crew_kills`` is the long form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.crew_kills import KINDS, is_whole, prove
from tests.support.deep import seeds
from tests.support.noted_load import whole_again_s
from tests.support.seeds import seed

ROUNDS = {
    "worker killed": seeds("replays whose worker is killed", deep=10, short=1),
    "controller killed": seeds("replays whose controller is killed", deep=10, short=0),
    "worker stopped": seeds("replays whose worker is stopped", deep=5, short=0),
}


@pytest.mark.lasts(60)
@pytest.mark.timeout(600)
def test_a_crew_keeps_its_promises_under_kills(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={seed(1)}")
    found = prove({kind: (play, ROUNDS[kind]) for kind, play in KINDS.items()}, seed(1), 200.0, 2.0, tmp_path, print)
    assert [problem for one in found.values() for problem in one.wrong] == []


def test_the_whole_rate_begins_with_the_first_window_that_has_it() -> None:
    half = [n / 50 for n in range(100)]  # 50/s for 2 s
    whole = [2 + n / 100 for n in range(100)]
    assert whole_again_s(half + whole, 0.0, 100.0) == pytest.approx(2.0, abs=0.04)
    assert whole_again_s(half + whole, 2.5, 100.0) == 0.0
    assert whole_again_s(half, 0.0, 100.0) == float("inf")
    assert whole_again_s([], 0.0, 100.0) == float("inf")


@pytest.mark.parametrize(
    ("name", "text", "whole"),
    [
        ("a.json", '{"a": 1}\n', True),
        ("a.json", '{"a": 1', False),
        ("a.html", "<html></html>\n", True),
        ("a.html", "<html>", False),
        ("a.csv", "a,b\r\n", True),
        ("a.csv", "a,b\r\n1", False),
    ],
)
def test_half_a_file_is_noticed(tmp_path: Path, name: str, text: str, whole: bool) -> None:
    (tmp_path / name).write_text(text)
    assert is_whole(tmp_path / name) == whole
