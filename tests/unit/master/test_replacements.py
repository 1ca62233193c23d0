"""Which regions take the place of which, and which should split: pure."""

from __future__ import annotations

import random

import pytest

from columnar.errors import IllegalArgument
from columnar.master.replacements import due, hole_or_overlap, merge_plan, replaced, split_plan
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionLoad

WHOLE = RegionInfo("t", 2)
LEFT, RIGHT = RegionInfo("t", 3, b"", b"m"), RegionInfo("t", 4, b"m", b"")


def test_daughters_hold_the_parents_rows() -> None:
    plan = split_plan(WHOLE, b"m", [3, 4])
    assert plan.gone == (WHOLE,)
    assert plan.fresh == (LEFT, RIGHT)


@pytest.mark.parametrize(
    ("parent", "row", "words"),
    [
        (WHOLE, b"", "1 to 32767 bytes"),
        (WHOLE, b"x" * 40_000, "1 to 32767 bytes"),
        (RIGHT, b"m", "the first that region"),
        (LEFT, b"m", "outside region"),
        (RIGHT, b"a", "outside region"),
    ],
)
def test_a_split_that_makes_no_sense_says_why(parent: RegionInfo, row: bytes, words: str) -> None:
    with pytest.raises(IllegalArgument, match=words):
        split_plan(parent, row, [5, 6])


def test_neighbours_merge_in_any_order() -> None:
    for pair in ((LEFT, RIGHT), (RIGHT, LEFT)):
        plan = merge_plan(*pair, 9)
        assert plan.gone == (LEFT, RIGHT)
        assert plan.fresh == (RegionInfo("t", 9),)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (LEFT, LEFT, "not with itself"),
        (LEFT, RegionInfo("u", 9, b"m"), "is of t, .* of u"),
        (LEFT, RegionInfo("t", 9, b"n"), "no neighbours: one ends at m, the other begins at n"),
        (WHOLE, RIGHT, "one ends at the end"),
    ],
)
def test_others_do_not(one: RegionInfo, other: RegionInfo, words: str) -> None:
    with pytest.raises(IllegalArgument, match=words):
        merge_plan(one, other, 9)


@pytest.mark.parametrize(
    ("regions", "words"),
    [
        ([], "no region begins at the first row"),
        ([RIGHT], "no region begins at the first row"),
        ([LEFT], "no region holds the rows from m on"),
        ([LEFT, RegionInfo("t", 9, b"n")], "leave a hole at n"),
        ([LEFT, RegionInfo("t", 9, b"k")], "overlap at k"),
        ([WHOLE, RIGHT], "overlap at m"),
    ],
)
def test_holes_and_overlaps_are_seen(regions: list[RegionInfo], words: str) -> None:
    assert words in (hole_or_overlap(regions) or "")


def test_whatever_is_planned_leaves_neither() -> None:
    rng, regions, last = random.Random(1), [WHOLE], 2
    for _ in range(500):
        if len(regions) < 2 or rng.random() < 0.55:
            parent = rng.choice(regions)
            row = bytes(rng.choices(b"abc", k=4))
            if row == parent.start or not parent.contains_row(row):
                continue
            plan = split_plan(parent, row, [last + 1, last + 2])
        else:
            at = rng.randrange(len(regions) - 1)
            plan = merge_plan(regions[at + 1], regions[at], last + 1)
        last += 2
        regions = replaced(regions, plan.gone, plan.fresh)
        assert hole_or_overlap(regions) is None


def load(number: int, size: int, limit: int = 100) -> RegionLoad:
    return RegionLoad(RegionInfo("t", number), size, limit)


def test_the_region_most_over_its_limit_splits_first() -> None:
    loads = [load(1, 90), load(2, 150), load(3, 180), load(4, 900, 1_000)]
    assert due(loads, {}, 10_000) == RegionInfo("t", 3)
    assert due(loads[:1], {}, 10_000) is None


def test_nothing_splits_where_the_disk_has_no_room_to_clean_up_after_it() -> None:
    assert due([load(1, 150)], {}, 300) is None


def test_one_that_could_not_be_split_is_left_alone_until_it_has_grown_by_half() -> None:
    assert due([load(1, 150)], {1: 140}, 10_000) is None
    assert due([load(1, 250)], {1: 140}, 10_000) is not None
