"""Some seconds of reads at random; ``python -m tests.proofs.hostile_reads`` is an hour of them."""

from __future__ import annotations

from pathlib import Path

from tests.proofs.hostile_reads import Plan, prove
from tests.support.deep import seeds
from tests.support.seeds import seed


def test_no_read_ends_a_server(tmp_path: Path) -> None:
    number = seed(20261126)
    print(f"COLUMNAR_SEED={number}")
    seconds = seeds("seconds of hostile reads", deep=8.0, short=5.0)
    verdict = prove(Plan(servers=2, seconds=seconds, width=10_000, seed=number), tmp_path, lambda _: None)
    print(verdict.counts)
    assert verdict.problems == []
    assert verdict.counts["gets"] > 20
    assert verdict.counts["hostile reads answered"] > 5
