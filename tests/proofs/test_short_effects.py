"""Random effects for some seconds; ``python -m tests.proofs.effects --seconds 3600`` is the long form."""

from __future__ import annotations

from pathlib import Path

from tests.proofs.effects import Proof
from tests.support.seeds import seed


def test_effects_stop_no_trigger_and_no_view(tmp_path: Path) -> None:
    number = seed(20261126)
    print(f"COLUMNAR_SEED={number}")
    found = Proof(tmp_path, 1, number, lambda _: None).run(6.0, 2.5)
    print(found.counts)
    assert found.problems == []
    assert found.counts["changes"] > 50
    assert found.counts["kills"] > 0
    assert found.counts["dead letters"] > 0
