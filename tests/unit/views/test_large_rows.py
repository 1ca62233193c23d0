"""Rows that carry more than a cell of the view holds: they cannot be read, and hold up no other."""

from __future__ import annotations

import asyncio

import pytest

from columnar.errors import IllegalArgument
from columnar.limits import CELL_BYTES, MIB
from columnar.model.mutation import Put
from columnar.model.trigger_registration import Registration
from columnar.model.view_definition import Source, View
from columnar.views.contributions import contributions, rules_of
from tests.support.view_house import ViewHouse, by_a, in_view_house

LARGE = bytes(CELL_BYTES * 6 // 10)


@in_view_house
async def test_a_row_that_carries_too_much_is_counted_and_others_go_on(house: ViewHouse) -> None:
    await house.make_source()
    await house.write("t", b"0", Put(b"f", b"a", b"x"), Put(b"f", b"n", b"1"), Put(b"f", b"p", LARGE))
    await house.write("t", b"0", Put(b"f", b"q", LARGE))
    await house.add(by_a(order="f:n", include=("f:p", "f:q")))
    await house.put_cells("t", b"1", a=b"x", n=b"2", p=b"p", q=b"q")
    async with asyncio.timeout(10):
        await house.settled("by_a")
    assert await house.totals("by_a") == {b"x": {"count": 1, "n": 2}}
    (look,) = house.owner.views.view_statuses()
    assert (look.rejected_rows, look.last_error) == (1, "")
    await house.write("t", b"1", Put(b"f", b"p", LARGE), Put(b"f", b"q", LARGE))
    await house.write("t", b"0", Put(b"f", b"q", b"q"))
    await house.settled("by_a")
    assert await house.totals("by_a") == {b"x": {"count": 1, "n": 1}}
    assert house.owner.views.view_statuses()[0].rejected_rows == 1


@in_view_house
async def test_nobody_reads_all_members_of_a_group_with_each_change(house: ViewHouse) -> None:
    """A group with more of them than an image holds would take no more, and the view would stop for good."""
    await house.make_source()
    await house.add(by_a(order="f:n"))
    for each in ("m", "o"):
        with pytest.raises(IllegalArgument, match=f"all of family {each} of view by_a.*any number of members"):
            await house.add(View("above", Source("by_a", (f"each {each}:",))))
        with pytest.raises(IllegalArgument, match=f"all of family {each} of view by_a.*any number of members"):
            await house.triggers.add_trigger(Registration("t", "by_a", "m:f", (each, "v"), images=True))
    await house.add(View("above", Source("by_a", ("each v:",))))


def test_what_a_row_carries_into_all_its_groups_is_bounded() -> None:
    """Each change of it writes all that: a cell of a few megabytes with thousands of tags would fill the disk."""
    (rules,) = rules_of(View("v", Source("t", ("each f:tags split ','",), include=("f:body",))))
    for groups, is_too_much in ((10, False), (100, True)):
        tags = b",".join(b"%d" % number for number in range(groups))
        given = contributions(rules, b"r", {b"f:tags": tags, b"f:body": bytes(MIB)})
        assert bool(given.rejected) is is_too_much
        assert len(given.shares) == (0 if is_too_much else groups)
    assert "into each of 100 groups" in given.rejected
