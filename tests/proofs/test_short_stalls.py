"""The shared folder stands still for some seconds; ``python -m tests.proofs.stalls`` is the long form."""

from __future__ import annotations

from pathlib import Path

import pytest

from columnar.master.liveness import SILENT_MS, STUCK_MS
from tests.proofs.stalls import prove, report
from tests.support.deep import seeds
from tests.support.stalling_mount import missing

STALL_S = seeds("seconds in which the shared folder stalls", deep=60.0, short=(STUCK_MS + SILENT_MS) / 1_000 - 1)


@pytest.mark.timeout(300)
def test_nobody_dies_of_a_folder_that_stands_still(tmp_path: Path) -> None:
    what = missing()
    if what is not None:
        pytest.skip(f"THE PROOF OF STALLING FOLDERS DID NOT RUN: it needs {what}")
    found = prove("etcd", 1, STALL_S, tmp_path)
    report(found)
    assert found.problems == []
    assert {"columnar servers", "page", "live", "metrics", "rows again"} == found.asked.keys()
