"""Holes and overlaps of a table's regions."""

from __future__ import annotations

import pytest

from columnar.checking.store_check import Hole, Overlap, faults_of
from columnar.model.region_info import RegionInfo


def regions(*ranges: tuple[bytes, bytes]) -> list[RegionInfo]:
    return [RegionInfo("t", number, start, end) for number, (start, end) in enumerate(ranges)]


@pytest.mark.parametrize(
    ("held", "faults"),
    [
        (regions((b"", b"")), []),
        (regions((b"m", b""), (b"", b"m")), []),
        ([], [Hole(b"", b"")]),
        (regions((b"b", b"c")), [Hole(b"", b"b"), Hole(b"c", b"")]),
        (regions((b"", b"a"), (b"c", b"")), [Hole(b"a", b"c")]),
    ],
)
def test_holes(held: list[RegionInfo], faults: list[Hole]) -> None:
    assert faults_of(held) == faults


def test_overlaps() -> None:
    whole, part = regions((b"", b""), (b"c", b"d"))
    assert faults_of([whole, part]) == [Overlap(whole, part)]
    long, inner, last = regions((b"", b"m"), (b"b", b"c"), (b"k", b""))
    assert faults_of([long, inner, last]) == [Overlap(long, inner), Overlap(long, last)]
    one, same = regions((b"", b"m"), (b"", b"m"))
    assert faults_of([one, same]) == [Overlap(one, same), Hole(b"m", b"")]
