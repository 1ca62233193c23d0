"""Ranges of rows: held against sets of rows, at random."""

from __future__ import annotations

import random
from itertools import pairwise

from columnar.model.row_ranges import EVERY_ROW, RowRange, RowRanges, intersection, union
from tests.support.seeds import seed

LETTERS = (b"\0", b"a", b"b", b"\xff")
ROWS = sorted(
    {one + two + three for one in LETTERS for two in (b"", *LETTERS) for three in (b"", *LETTERS) if two or not three}
)


def drawn(rng: random.Random) -> RowRanges:
    bounds = [rng.choice((b"", *ROWS)) for _ in range(2 * rng.randint(0, 4))]
    ranges = [RowRange(one, other or None) for one, other in zip(bounds[::2], bounds[1::2], strict=True)]
    return RowRanges.of(ranges)


def rows_of(ranges: RowRanges) -> set[bytes]:
    return {row for row in ROWS for one in ranges.all if one.start <= row and (one.stop is None or row < one.stop)}


def check(ranges: RowRanges) -> None:
    assert all(one.stop is None or one.start < one.stop for one in ranges.all)
    assert all(one.stop is not None and one.stop < other.start for one, other in pairwise(ranges.all)), "I1"


def test_unions_and_intersections_are_those_of_the_rows() -> None:
    rng = random.Random(seed(33))
    for _ in range(2_000):
        several = [drawn(rng) for _ in range(rng.randint(0, 4))]
        for found in (*several, union(several), intersection(several)):
            check(found)
        assert rows_of(union(several)) == set().union(*map(rows_of, several))
        assert rows_of(intersection(several)) == set(ROWS).intersection(*map(rows_of, several))
    assert intersection([]).is_everything
    assert not union([]).all
    assert RowRanges.of([RowRange(b"", b"m"), RowRange(b"m", None)]) == EVERY_ROW


def test_the_range_of_the_next_row_in_either_direction() -> None:
    rng = random.Random(seed(34))
    for _ in range(2_000):
        ranges, row = drawn(rng), rng.choice(ROWS)
        held = rows_of(ranges)
        after = ranges.next_from(row)
        expected = min((one for one in held if one >= row), default=None)
        if expected is not None:
            assert after is not None
            assert after.start <= expected
            assert after.stop is None or expected < after.stop
        below = ranges.last_below(row)
        highest = max((one for one in held if one < row), default=None)
        if highest is not None:
            assert below is not None
            assert below.start <= highest
        assert ranges.last_below(None) == (ranges.all[-1] if ranges.all else None)
