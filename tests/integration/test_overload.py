"""The short form of ``python -m tests.overload``: everything at once against a store, for some seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.overload.overload import ALL, run

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are told by /proc")


def test_everything_at_once_harms_nobody_else() -> None:
    report = run(2.5, 400, 60, ALL, quiet_s=0.5)
    for line in report.lines():
        print(line)
    assert report.problems(latency=False) == []  # another test runs beside and shares core and disk
    assert report.held["replies bytes"] > 0
    refused = {what.split()[1] for what in report.heard if what.split()[1].endswith("Exception")}
    assert refused <= {"CallQueueTooBigException", "RegionTooBusyException"}
