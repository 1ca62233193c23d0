"""Walks are interrupted every few cells, end where their time is over, and lose nothing where they go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from columnar.model.mutation import Put
from columnar.model.schema import Family, make_table
from columnar.model.view_definition import Source, View
from columnar.views import walks
from columnar.views.digests import BLOCK, BUCKETS, Balance, Digest
from columnar.views.walks import STRIDE, GroupsWalk, MembersWalk, SourceRows, SourceWalk
from tests.support.checked_house import CheckedHouse

ROWS = 5 * STRIDE + 3
VIEW = View("v", Source("s", key=("f:a",), order="f:n"))
ALL = bytes([0xFF]) * (BUCKETS // 8)


def walked(groups: int, work: Callable[[CheckedHouse], None]) -> None:
    """``work`` gets ROWS rows in so many groups of a view."""

    async def run() -> None:
        house = CheckedHouse(VIEW, [make_table("s", [Family("f")])])
        for number in range(ROWS):
            house.write("s", b"r%03d" % number, Put(b"f", b"a", b"g%d" % (number % groups)), Put(b"f", b"n", b"1"))
        house.drain()
        try:
            work(house)
        finally:
            await house.close()

    asyncio.run(run())


def is_same(one: list[Digest], other: list[Digest]) -> bool:
    balance = Balance()
    for digest in one:
        balance.add(digest.pack())
    for digest in other:
        balance.subtract(digest.pack())
    return not [found for first in range(0, BUCKETS, BLOCK) for found in balance.unequal(first, first + BLOCK)]


def sources(house: CheckedHouse, is_over: bool, *, is_summed: bool = True) -> tuple[list[SourceWalk], int]:
    """The walks until the end of the region, and how often they could be interrupted."""
    region, rows = house.region("s", b""), SourceRows(house.rules[0])
    found, start, stops = list[SourceWalk](), b"", 0
    while True:
        walk = SourceWalk(start)
        stops += len(list(walk.walk_rows(region, rows, b"", lambda: is_over, is_summed=is_summed)))
        found.append(walk)
        if walk.next_row is None:
            return found, stops
        assert walk.next_row > start
        start = walk.next_row


def test_a_walk_over_a_source_whose_time_is_over_ends_and_goes_on_behind_it() -> None:
    def work(house: CheckedHouse) -> None:
        (whole,), stops = sources(house, False)
        assert whole.rows == ROWS
        assert ROWS // STRIDE <= stops <= 4 * ROWS // STRIDE, "a row has some cells"
        parts, _ = sources(house, True)
        assert max(part.rows for part in parts) <= STRIDE
        assert min(part.rows for part in parts[:-1]) > 1, "each goes some way"
        assert sum(part.rows for part in parts) == ROWS
        assert is_same([whole.digest], [part.digest for part in parts])

    walked(1, work)


def test_a_walk_over_a_source_that_lists_ends_with_so_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "LISTED", 3)

    def work(house: CheckedHouse) -> None:
        parts, _ = sources(house, False, is_summed=False)
        assert max(part.listed for part in parts) <= 3 + STRIDE
        assert len(parts) > 2
        assert [row for part in parts for row, _ in part.entries] == [b"r%03d" % number for number in range(ROWS)]

    walked(1, work)


@pytest.mark.parametrize("cursor_rows", [1, STRIDE, STRIDE + 1, 256])
def test_a_source_is_walked_whole_however_many_rows_a_cursor_reads(
    cursor_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks, "CURSOR_ROWS", cursor_rows)
    walked(1, lambda house: rows_are(sources(house, True)[0]))


def rows_are(parts: list[SourceWalk]) -> None:
    assert sum(part.rows for part in parts) == ROWS


def all_groups(house: CheckedHouse, is_over: bool) -> tuple[list[GroupsWalk], list[int]]:
    region, found, stops = house.region("v", b""), list[GroupsWalk](), list[int]()
    start, after = b"", b""
    while True:
        walk = GroupsWalk(start, after)
        stops.append(len(list(walk.walk_groups(region, lambda: is_over))))
        found.append(walk)
        assert not walk.wrong
        if walk.next_row is None:
            return found, stops
        assert (walk.next_row, walk.after) > (start, after)
        start, after = walk.next_row, walk.after


@pytest.mark.parametrize("groups", [1, 3, ROWS])
@pytest.mark.parametrize("buckets", [1, 2, STRIDE + 2, 10_000])
def test_groups_are_walked_whole_however_full_a_digest_may_be(
    groups: int, buckets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks, "PART_BUCKETS", buckets)

    def work(house: CheckedHouse) -> None:
        parts, _ = all_groups(house, False)
        assert sum(part.groups for part in parts) == groups
        assert sum(part.members for part in parts) == ROWS
        assert max(len(part.digest) for part in parts) <= buckets
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(walks, "PART_BUCKETS", 1_000_000)
            (whole,), _ = sources(house, False)
            assert len(all_groups(house, False)[0]) == 1
            assert len(all_groups(house, True)[0]) == groups, "a group is checked to its end"
        assert is_same([whole.digest], [part.digest for part in parts])

    walked(groups, work)


def test_a_large_group_is_interrupted_also_where_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(house: CheckedHouse) -> None:
        _, (stops,) = all_groups(house, False)
        most = 2 * (ROWS // STRIDE)
        assert most <= stops <= most + 2, "over its members and over its order"
        monkeypatch.setattr(walks, "PART_BUCKETS", 1)
        walk = GroupsWalk(b"")
        list(walk.walk_groups(house.region("v", b""), lambda: False))
        assert walk.next_row == b"g0"
        assert walk.after
        monkeypatch.setattr(walks, "PART_BUCKETS", 1_000_000)
        rest = GroupsWalk(walk.next_row, walk.after)
        most = (ROWS - 1) // STRIDE
        assert most <= len(list(rest.walk_groups(house.region("v", b""), lambda: False))) <= most + 2

    walked(1, work)


@pytest.mark.parametrize("cursor_rows", [1, 7, 256])
@pytest.mark.parametrize("is_over", [False, True])
def test_members_are_listed_whole_and_once(cursor_rows: int, is_over: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "CURSOR_ROWS", cursor_rows)

    def work(house: CheckedHouse) -> None:
        found, start, after = list[tuple[bytes, bytes]](), b"", b""
        while True:
            walk = MembersWalk(start, after)
            stops = len(list(walk.walk_members(house.region("v", b""), ALL, lambda: is_over)))
            assert stops >= len(walk.entries) // STRIDE
            assert not is_over or len(walk.entries) <= cursor_rows
            found += [(group, member) for group, member, _ in walk.entries]
            if walk.next_row is None:
                break
            start, after = walk.next_row, walk.after
        side = house.rules[0].side
        assert sorted(found) == sorted((b"g%d" % (n % 3), side + b"r%03d" % n) for n in range(ROWS))
        assert found == sorted(found)

    walked(3, work)
