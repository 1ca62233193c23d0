"""``python -m tests.proofs.wiki_kills`` for some seconds: store, trigger worker and wiki are each shot once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.proofs.wiki_kills import VICTIMS, prove

SEED = int(os.environ.get("COLUMNAR_SEED", "20261126"))


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
# A scan that is dropped as its store is shot cannot close its scanner there.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_edit_is_lost_and_no_index_differs(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    found = prove(tmp_path, kills=len(VICTIMS), every_s=0.5, editors=2, seed=SEED)
    assert found.wrong == []
    assert set(found.shots) == set(VICTIMS)
    assert found.counts["edits"] > 0, "on a busy machine a second has few"
