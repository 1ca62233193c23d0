"""An experiment's runner killed some times; ``python -m tests.proofs.experiment_kills`` is the long form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.proofs.experiment_kills import Found, Results, prove
from tests.support.deep import IS_DEEP
from tests.support.seeds import seed


@pytest.mark.skipif(not IS_DEEP, reason="half a minute of kills: with COLUMNAR_DEEP")
@pytest.mark.lasts(60)
@pytest.mark.timeout(300)
def test_a_killed_experiment_goes_on(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={seed(1)}")
    found = prove(tmp_path, 4, seed(1), print)
    assert found.wrong == []
    assert found.counts["kills"] > 0


def test_a_result_that_is_half_written_or_written_again_is_noticed(tmp_path: Path) -> None:
    found = Found()
    results = Results(tmp_path, found)
    (tmp_path / "a.json").write_text(json.dumps({"ok": True}))
    (tmp_path / "b.json").write_text(json.dumps({"ok": False}))
    results.check("first")
    assert (results.good, found.wrong) == (1, [])
    (tmp_path / "b.new").write_text(json.dumps({"ok": True}))
    (tmp_path / "b.new").replace(tmp_path / "b.json")  # a cell that failed runs again
    (tmp_path / "c.json").write_text('{"ok": ')
    results.check("second")
    assert [one.split(": ")[1] for one in found.wrong] == ["c.json is not whole"]
    (tmp_path / "a.new").write_text(json.dumps({"ok": True}))
    (tmp_path / "a.new").replace(tmp_path / "a.json")
    results.check("third")
    assert "third: a.json was written again" in found.wrong
