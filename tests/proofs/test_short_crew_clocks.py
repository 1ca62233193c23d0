"""A worker with another clock, for one round; ``python -m tests.proofs.crew_clocks`` is the long form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.crew_clocks import prove, why_no_namespace
from tests.support.deep import IS_DEEP


@pytest.mark.skipif(not IS_DEEP, reason="half a minute of replays: with COLUMNAR_DEEP")
@pytest.mark.skipif(why_no_namespace() != "", reason=why_no_namespace())
@pytest.mark.lasts(60)
@pytest.mark.timeout(300)
def test_a_worker_whose_clock_is_off_starts_when_it_should(tmp_path: Path) -> None:
    found = prove(1, 2.0, 3.0, 20.0, tmp_path, print)
    assert found.wrong == []
