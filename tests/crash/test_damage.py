"""The short form of ``python -m tests.crash.damage``: damage to any file gives an error or the right rows."""

from __future__ import annotations

import os

from tests.crash.damage import run

SEED = int(os.environ.get("COLUMNAR_SEED", "20261123"))
DAMAGES = int(os.environ.get("COLUMNAR_DAMAGES", "60"))


def test_a_damaged_file_is_an_error_or_no_harm() -> None:
    print(f"COLUMNAR_SEED={SEED} COLUMNAR_DAMAGES={DAMAGES}")
    outcomes = run(DAMAGES, SEED)
    assert [(outcome.damage, outcome.wrong) for outcome in outcomes if outcome.wrong] == []
    refused = {outcome.kind for outcome in outcomes if outcome.refused}
    assert len(refused) > 5, "most damages are harmless: the test shows nothing"
