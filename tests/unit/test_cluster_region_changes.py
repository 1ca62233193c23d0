"""Splits and merges of regions of several servers: their commits, and deaths of owners meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from columnar.errors import NotServingRegion, OutcomeUnknown
from columnar.master import instructions as do
from columnar.master.placement_records import Phase
from columnar.master.region_changes import RegionChanges
from columnar.model import region_messages as messages
from tests.support.hosted_cluster import FakeServer, House, on_a_loop, two_servers


@on_a_loop
async def test_a_split_is_published_at_its_commit() -> None:
    house, one, other = await two_servers()
    (info,) = await house.create([])
    owner = one if house.place(info).server == "s1" else other
    changes = _changes(house)

    async def finish(message: messages.FinishChange) -> float:
        await changes.request_peer(messages.Commit(message.change))
        assert owner.routes.find("t", b"z") is not None
        return 0.001

    _answer_changes(owner, finish)
    low, high = await asyncio.wait_for(house.host.requests.split(info, b"m"), 5)
    assert (low.end, high.start) == (b"m", b"m")
    await house.rest()
    for server in (one, other):
        assert [route.region for route in server.routes.of_table("t")] == [low, high]
    assert house.catalogue.ownership.owners.keys() == {low.region_id, high.region_id}
    await house.close()


@on_a_loop
async def test_an_owner_that_dies_before_the_commit_leaves_the_old_region() -> None:
    house, one, other = await two_servers()
    (info,) = await house.create([])
    owner = one if house.place(info).server == "s1" else other
    _changes(house)

    async def finish(_message: messages.FinishChange) -> float:
        house.kill(owner.here)
        await asyncio.Event().wait()
        return 0.0

    _answer_changes(owner, finish)
    with pytest.raises((OutcomeUnknown, NotServingRegion)):
        await asyncio.wait_for(house.host.requests.split(info, b"m"), 5)
    await house.rest()
    assert house.catalogue.tables["t"].regions == [info]
    assert house.place(info).phase is Phase.OPEN, "at the other server"
    await house.close()


@on_a_loop
async def test_regions_of_two_servers_are_merged_at_the_highest_of_their_epochs() -> None:
    """The one that was moved has a higher epoch than its neighbour; their owner refuses a change at another one."""
    house, one, other = await two_servers()
    left, right = await house.create([b"m"])
    assert house.place(left).server != house.place(right).server
    owner = one if house.place(left).server == "s1" else other
    changes = _changes(house)

    async def finish(message: messages.FinishChange) -> float:
        await changes.request_peer(messages.Commit(message.change))
        return 0.001

    _answer_changes(owner, finish)
    await asyncio.wait_for(house.host.requests.merge(left, right), 5)
    (begun,) = [message.change for message in owner.heard if isinstance(message, messages.BeginChange)]
    assert (begun.gone, begun.epoch) == ((left, right), 2)
    await house.close()


@on_a_loop
async def test_a_change_that_waits_for_its_turn_does_not_keep_a_dead_servers_region() -> None:
    house, one, other = await two_servers()
    left, right = await house.create([b"m"])
    owner, others = (one, other) if house.place(right).server == "s1" else (other, one)
    _changes(house)
    goes_on = asyncio.Event()

    async def finish(_message: messages.FinishChange) -> float:
        await goes_on.wait()
        raise NotServingRegion("it is busy")

    _answer_changes(others, finish)
    first = asyncio.ensure_future(house.host.requests.split(left, b"c"))
    await house.rest()
    asked = asyncio.ensure_future(house.host.requests.split(right, b"x"))
    await house.rest()
    assert house.place(right).phase is Phase.CHANGING
    house.kill(owner.here)
    with pytest.raises(NotServingRegion, match="died"):
        await asyncio.wait_for(asked, 5)
    await house.rest()
    assert (house.place(right).phase, house.place(right).server) == (Phase.OPEN, others.here.name)
    goes_on.set()
    with pytest.raises(NotServingRegion, match="busy"):
        await asyncio.wait_for(first, 5)
    await asyncio.wait_for(house.host.requests.request(do.MoveRegion(left.region_id, others.here.name)), 5)
    await house.close()


@on_a_loop
async def test_an_owner_that_dies_in_the_iteration_of_the_beginning_is_not_waited_for() -> None:
    house, one, other = await two_servers()
    (info,) = await house.create([])
    owner = one if house.place(info).server == "s1" else other
    changes = _changes(house)
    async with changes._one_at_a_time:
        asked = asyncio.ensure_future(house.host.requests.split(info, b"m"))
        await house.rest()
        house.kill(owner.here)
        await house.rest()
    with pytest.raises(NotServingRegion):
        await asyncio.wait_for(asked, 5)
    await house.rest()
    assert house.place(info).phase is Phase.OPEN, "at the other server"
    await house.close()


class _NoFolders:
    def destroy(self, _encoded: str) -> None:
        pass


def _changes(house: House) -> RegionChanges:
    lock: Any = type("Changes", (), {"lock": asyncio.Lock()})()
    folders: Any = _NoFolders()
    changes = RegionChanges(house.catalogue, lock, house.owners, folders)
    house.host.requests.lead(changes)
    return changes


def _answer_changes(server: FakeServer, finish: Callable[[Any], Coroutine[Any, Any, float]]) -> None:
    answer = server.answer

    async def answered(message: Any) -> Any:
        if isinstance(message, messages.FinishChange):
            return await finish(message)
        return await answer(message)

    server.answer = answered  # type: ignore[method-assign]
