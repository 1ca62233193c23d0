"""Waits for views: of a view, and of a view of views, for the write that a client names."""

from __future__ import annotations

import pytest

from columnar.errors import ViewError
from columnar.model.trigger_registration import Registration
from columnar.model.view_definition import Source, View
from columnar.thrift.trigger_methods import TriggerMethods
from tests.support.view_house import PATIENCE_S, ViewHouse, by_a, in_view_house

OF_COUNTS = View("counts", Source("by_a", ("v:count",), sums={"n": "v:n"}))
JOINED = View("joined", Source("counts", ("row",)), join=Source("u", ("row",), families=("f",)))


async def waited(house: ViewHouse, view: str, token: str = "") -> None:
    methods = TriggerMethods(house.keeper, house.owner.views)
    assert await methods.columnarViewWait(None, view, token, round(PATIENCE_S * 1_000))


async def in_a_row(house: ViewHouse) -> None:
    await house.make_source()
    await house.make_source("u")
    for view in (by_a(), OF_COUNTS, JOINED):
        await house.add(view)
        await waited(house, view.name)


@in_view_house
async def test_a_view_of_a_view_shows_a_write_into_the_first_ones_table(house: ViewHouse) -> None:
    await in_a_row(house)
    for number in range(1, 20):
        token = await house.put_cells("t", b"%d" % number, a=b"x", n=b"1")
        await waited(house, "counts", token if number % 2 else "")
        held = number.to_bytes(8, "big")
        assert await house.totals("counts") == {held: {"count": 1, "n": number}}


@in_view_house
async def test_each_source_of_a_view_is_waited_for(house: ViewHouse) -> None:
    await in_a_row(house)
    token = await house.put_cells("t", b"1", a=b"x", n=b"1")
    await waited(house, "joined", token)
    one = (1).to_bytes(8, "big")
    assert await house.totals("joined") == {one: {"l.count": 1}}
    token = await house.put_cells("u", one, a=b"x")
    await waited(house, "joined", token)
    assert await house.totals("joined") == {one: {"l.count": 1, "r.count": 1}}


@in_view_house
async def test_a_wait_that_is_over_before_the_first_view_has_it_says_so(house: ViewHouse) -> None:
    await in_a_row(house)
    house.keeper.hub.upkeep.pause_saving()  # followers rest
    token = await house.put_cells("t", b"1", a=b"x", n=b"1")
    methods = TriggerMethods(house.keeper, house.owner.views)
    assert not await methods.columnarViewWait(None, "counts", token, 10)
    house.keeper.hub.upkeep.release()
    with pytest.raises(ViewError, match="there is no view nobody"):
        await methods.columnarViewWait(None, "nobody", token, 10)


@in_view_house
async def test_a_trigger_on_a_view_is_waited_for_behind_the_view(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    await house.register(Registration("t", "by_a", "m:f", ("v",)))
    methods = TriggerMethods(house.keeper, house.owner.views)
    for number in range(5):
        token = await house.put_cells("t", b"1", a=b"%d" % number, n=b"1")
        assert await methods.columnarTriggerWait(None, "t", token, round(PATIENCE_S * 1_000))
        assert b"%d" % number in [row for row, _ in house.told]
    house.keeper.hub.upkeep.pause_saving()  # followers rest
    token = await house.put_cells("t", b"1", a=b"x", n=b"1")
    assert not await methods.columnarTriggerWait(None, "t", token, 10)
    house.keeper.hub.upkeep.release()
