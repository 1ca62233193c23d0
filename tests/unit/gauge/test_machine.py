"""The machine while figures are taken: what its host kept, and how long programs waited for a core."""

from __future__ import annotations

import os

import pytest

from gauge.machine import Contention, contention, contention_in, environment
from gauge.processes import RoleWatch

STAT = "cpu  1910745 83066 257345 480631 9950 0 29852 1953 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
PRESSURE = (
    "some avg10=41.42 avg60=41.10 avg300=40.31 total=8439320452\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
)


@pytest.mark.parametrize(
    ("stat", "pressure", "found"),
    [
        (STAT, PRESSURE, Contention(19.53, 8439.320452)),
        (STAT, "", Contention(19.53, None)),
        ("cpu  1 2 3 4\n", "some avg10=0.00\n", Contention(None, None)),
        ("", "", Contention(None, None)),
    ],
)
def test_steal_and_pressure_are_read_from_the_kernels_texts(stat: str, pressure: str, found: Contention) -> None:
    assert contention_in(stat, pressure, 100) == found


def test_shares_are_of_the_cores_and_of_the_time() -> None:
    before, after = Contention(10.0, 100.0), Contention(14.0, 105.0)
    assert after.shares_since(before, 10.0, 2) == {"stolen_share": 0.2, "waited_share": 0.5}
    assert after.shares_since(Contention(10.0, None), 10.0, 4) == {"stolen_share": 0.1, "waited_share": None}
    assert before.shares_since(after, 10.0, 2) == {"stolen_share": 0.0, "waited_share": 0.0}
    assert after.shares_since(before, 0.0, 2) == {"stolen_share": None, "waited_share": None}


def test_this_machine_is_read() -> None:
    assert os.path.exists("/proc/pressure/cpu") == (contention().waited_s is not None)
    assert (contention().stolen_s or 0.0) >= 0.0
    assert "governor" in environment()
    watch = RoleWatch([])
    watch.begin()
    assert all(share is None or 0.0 <= share <= 1.0 for share in watch.contention().values())
