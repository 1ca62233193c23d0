"""Waits for views: of a view, and of a view of views, for the write that a client names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest

from columnar.errors import IllegalArgument, TriggerError, ViewError
from columnar.model.derivations import Triggers
from columnar.model.flow_graph import Flow
from columnar.model.trigger_registration import Registration
from columnar.model.view_definition import Source, View
from columnar.thrift.wait_methods import WaitMethods
from tests.support.view_house import PATIENCE_S, ViewHouse, by_a, in_view_house
from tests.unit.views.test_view_generations import built, rebuilt

OF_COUNTS = View("counts", Source("by_a", ("v:count",), sums={"n": "v:n"}))
JOINED = View("joined", Source("counts", ("row",)), join=Source("u", ("row",), families=("f",)))


async def waited(house: ViewHouse, view: str, token: str = "") -> None:
    methods = WaitMethods(house.keeper, house.owner.views)
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
    methods = WaitMethods(house.keeper, house.owner.views)
    assert not await methods.columnarViewWait(None, "counts", token, 10)
    house.keeper.hub.upkeep.release()
    with pytest.raises(ViewError, match="there is no view nobody"):
        await methods.columnarViewWait(None, "nobody", token, 10)


@in_view_house
async def test_a_trigger_on_a_view_is_waited_for_behind_the_view(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    await house.register(Registration("t", "by_a", "m:f", ("v",)))
    methods = WaitMethods(house.keeper, house.owner.views)
    for number in range(5):
        token = await house.put_cells("t", b"1", a=b"%d" % number, n=b"1")
        assert await methods.columnarTriggerWait(None, "t", token, round(PATIENCE_S * 1_000))
        assert b"%d" % number in [row for row, _ in house.told]
    house.keeper.hub.upkeep.pause_saving()  # followers rest
    token = await house.put_cells("t", b"1", a=b"x", n=b"1")
    assert not await methods.columnarTriggerWait(None, "t", token, 10)
    house.keeper.hub.upkeep.release()


@in_view_house
async def test_a_wait_of_triggers_for_the_name_of_a_view_waits_for_that_view_alone(house: ViewHouse) -> None:
    await in_a_row(house)
    methods = WaitMethods(house.keeper, house.owner.views)
    passes, waited_for = methods._passes, list[str]()

    async def noted(steps: Iterable[tuple[Flow, str]], ends_s: float) -> bool:
        steps = list(steps)
        waited_for.extend(flow.name for flow, _ in steps)
        return await passes(steps, ends_s)

    methods._passes = noted  # type: ignore[method-assign]
    token = await house.put_cells("t", b"1", a=b"x", n=b"1")
    assert await methods.columnarTriggerWait(None, "counts", token, round(PATIENCE_S * 1_000))
    assert waited_for == ["by_a", "counts"]


@in_view_house
async def test_a_generation_that_is_swapped_in_meanwhile_is_waited_for(house: ViewHouse) -> None:
    await house.make_source()
    token = await house.put_cells("t", b"1", a=b"x", n=b"1")
    await house.add(by_a())
    await built(house, "by_a")
    await rebuilt(house)
    methods = WaitMethods(house.keeper, house.owner.views)
    passes, waited = methods._passes, list[list[str]]()

    async def swapped_at_first(steps: Iterable[tuple[Flow, str]], ends_s: float) -> bool:
        steps = list(steps)
        waited.append([flow.name for flow, _ in steps])
        if len(waited) == 1:
            await house.generations.swap("by_a")
        return await passes(steps, ends_s)

    methods._passes = swapped_at_first  # type: ignore[method-assign]
    assert await methods.columnarWait(None, ["by_a"], [token], round(PATIENCE_S * 1_000), False)
    assert waited == [["by_a"], ["by_a.2"]]


@in_view_house
async def test_a_trigger_that_is_removed_meanwhile_has_nothing(house: ViewHouse) -> None:
    await house.make_source()
    await house.register(Registration("t", "t", "m:f", ("f",)))
    house.keeper.dispatcher.pause("t")
    token = await house.put_cells("t", b"1", a=b"x")
    methods = WaitMethods(house.keeper, house.owner.views)
    waiting = asyncio.ensure_future(methods.columnarWait(None, ["t"], [token], round(PATIENCE_S * 1_000), False))
    await asyncio.sleep(0)
    assert not waiting.done()
    await house.triggers.remove("t")
    with pytest.raises(TriggerError, match="there is no trigger"):
        await waiting


@in_view_house
async def test_a_trigger_that_rests_is_no_trigger_to_wait_for(house: ViewHouse) -> None:
    await house.make_source()
    await house.register(Registration("t", "t", "m:f", ("f",)))
    (held,) = house.keeper.triggers.all
    token = await house.put_cells("t", b"1", a=b"x")
    methods = WaitMethods(house.keeper, house.owner.views)
    house.keeper._triggers = Triggers((replace(held, unusable_reason="it cannot be read"),))
    with pytest.raises(TriggerError, match="t rests: it cannot be read"):
        await methods.columnarWait(None, ["t"], [token], 1_000, False)


@in_view_house
async def test_names_of_a_wait_are_bounded(house: ViewHouse) -> None:
    methods = WaitMethods(house.keeper, house.owner.views)
    with pytest.raises(IllegalArgument, match="1001 names: a wait takes at most 1000"):
        await methods.columnarWait(None, ["t"] * 1_001, [], 0, False)
