"""Rows that carry more than a cell of the view holds: they cannot be read, and hold up no other."""

from __future__ import annotations

import asyncio

from columnar.limits import CELL_BYTES
from columnar.model.mutation import Put
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
    (look,) = house.owner.views.looks()
    assert (look.rejected, look.error) == (1, "")
    await house.write("t", b"1", Put(b"f", b"p", LARGE), Put(b"f", b"q", LARGE))
    await house.write("t", b"0", Put(b"f", b"q", b"q"))
    await house.settled("by_a")
    assert await house.totals("by_a") == {b"x": {"count": 1, "n": 1}}
    assert house.owner.views.looks()[0].rejected == 1
