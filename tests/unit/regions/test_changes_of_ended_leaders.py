"""Splits and merges whose master leads no more: called off, or blocked until the next master's tables settle them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.errors import NotServingRegion, OutcomeUnknown, RetryLater
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import CallOffChange, PauseDeliveries, Publish, RegionChange, ReleaseDeliveries
from tests.support.memory_house import House, housed


class Leader:
    """A master at an epoch, at the other end of a link that may break."""

    def __init__(self, house: House, epoch: int) -> None:
        self.house, self.epoch = house, epoch
        self.failure: Exception | None = None
        self.commits = True
        self.asked = asyncio.Event()
        house.owner.follow_master(self, lambda: self.epoch)

    async def request_peer(self, message: Any) -> Any:
        self.asked.set()
        change = message.change
        if self.commits:
            await self.house.catalogue.replace(list(change.gone), list(change.fresh))
        if self.failure is not None:
            raise self.failure

    async def publish(self) -> None:
        """Publish the table as the catalogue has it."""
        entry = self.house.catalogue.tables["t"]
        await self.house.owner.request_peer(Publish(entry.schema, True, tuple(entry.regions)))


async def begun(house: House) -> RegionChange:
    """A split that the owner has begun."""
    await house.put(b"10", b"60", b"90")
    (parent,) = house.infos
    low, high = house.catalogue.next_ids(2)
    fresh = (RegionInfo("t", low, b"", b"50"), RegionInfo("t", high, b"50", b""))
    change = RegionChange((parent,), fresh, house.server.hosting.state.epoch_of(parent.region_id))
    await house.catalogue.announce(fresh)
    await house.owner.changing.begin_change(change)
    return change


@housed(triggers=1)
async def test_a_change_that_waits_for_its_end_is_called_off(house: House) -> None:
    Leader(house, 7)
    change = await begun(house)
    house.owner.leader_ended()
    await house.put(b"20")
    with pytest.raises(NotServingRegion, match="called off meanwhile"):
        await house.owner.changing.finish(change)
    assert house.infos == list(change.gone)
    assert house.rows_held() == [b"10", b"20", b"60", b"90"]
    await house.drain()


@pytest.mark.parametrize("step", ["held", "shut", "made"])
@housed(triggers=1)
async def test_a_change_is_called_off_at_its_next_step(house: House, step: str) -> None:
    leader = Leader(house, 7)
    change = await begun(house)
    steps: list[str] = []

    def at(reached: str) -> None:
        steps.append(reached)
        if reached == step:
            house.owner.leader_ended()

    house.owner.changing.at = at
    with pytest.raises(NotServingRegion, match="leads no more"):
        await house.owner.changing.finish(change)
    assert step in steps
    assert not leader.asked.is_set(), "nothing was committed"
    await house.put(b"20")
    assert house.rows_held() == [b"10", b"20", b"60", b"90"]
    await house.drain()
    assert {row for row, _ in house.told} == {b"10", b"20", b"60", b"90"}


@housed()
async def test_a_change_that_cannot_be_committed_for_want_of_a_leader_is_called_off(house: House) -> None:
    leader = Leader(house, 7)
    leader.failure, leader.commits = NotSent(), False
    change = await begun(house)
    with pytest.raises(NotServingRegion, match="no master leads now"):
        await house.owner.changing.finish(change)
    await house.put(b"20")
    assert house.rows_held() == [b"10", b"20", b"60", b"90"]


async def cut_off(house: House, *, commits: bool) -> tuple[RegionChange, list[Any]]:
    """A split whose link broke after the request to commit; with the changes that are found committed later."""
    found: list[Any] = []
    house.owner.changing.on_found_committed = found.append
    leader = Leader(house, 7)
    leader.failure, leader.commits = LinkBroke(), commits
    change = await begun(house)
    with pytest.raises(OutcomeUnknown, match="link to the master broke"):
        await house.owner.changing.finish(change)
    house.owner.leader_ended()
    with pytest.raises(NotServingRegion):
        await house.put(b"20")
    return change, found


@housed(triggers=1)
async def test_the_next_leader_names_the_old_regions(house: House) -> None:
    change, found = await cut_off(house, commits=False)
    await Leader(house, 8).publish()
    await house.put(b"20")
    assert (house.infos, found) == (list(change.gone), [])
    assert house.rows_held() == [b"10", b"20", b"60", b"90"]
    await house.drain()
    assert {row for row, _ in house.told} == {b"10", b"20", b"60", b"90"}


@housed(triggers=1)
async def test_the_next_leader_names_the_successors(house: House) -> None:
    change, found = await cut_off(house, commits=True)
    await Leader(house, 8).publish()
    assert (house.infos, found) == (list(change.fresh), [change])
    await house.put(b"20", b"80")
    assert house.rows_held() == [b"10", b"20", b"60", b"80", b"90"]
    assert not house.server.is_open(change.gone[0])
    await house.drain()
    assert {row for row, _ in house.told} == {b"10", b"20", b"60", b"80", b"90"}


@housed()
async def test_what_the_same_leader_publishes_may_be_older_than_its_commit(house: House) -> None:
    """It may still be writing the commit while it publishes the table to a server that has a new link to it."""
    change, _ = await cut_off(house, commits=False)
    await Leader(house, 7).publish()
    with pytest.raises(NotServingRegion):
        await house.put(b"20")
    await house.catalogue.replace(list(change.gone), list(change.fresh))
    await Leader(house, 7).publish()
    assert house.infos == list(change.fresh)
    assert house.rows_held() == [b"10", b"60", b"90"]


@housed()
async def test_a_leader_that_calls_its_change_off_settles_it(house: House) -> None:
    change, _ = await cut_off(house, commits=False)
    Leader(house, 7)
    await house.owner.request_peer(CallOffChange(change))
    await house.put(b"20")
    assert house.infos == list(change.gone)


@housed()
async def test_a_change_that_the_old_leader_had_asked_for_ends_when_the_next_is_followed(house: House) -> None:
    """Its request may have been taken from the link, and begun after the link's end."""
    house.owner.leader_ended()
    change = await begun(house)
    Leader(house, 8)
    with pytest.raises(NotServingRegion, match="called off meanwhile"):
        await house.owner.changing.finish(change)


@housed(triggers=1)
async def test_deliveries_that_an_ended_leader_paused_go_on(house: House) -> None:
    for _ in range(2):
        await house.owner.request_peer(PauseDeliveries())
    await house.put(b"10")
    house.owner.leader_ended()
    await house.owner.request_peer(ReleaseDeliveries())  # of that leader, late
    assert not house.keeper.hub.upkeep.is_saving_paused
    await house.drain()
    assert [row for row, _ in house.told] == [b"10"]


@housed(triggers=1)
async def test_a_pause_that_waits_for_calls_ends_with_its_leader(house: House) -> None:
    house.workers[0].is_held = True
    await house.put(b"10")
    await house.until(house.keeper.dispatcher.calls_in_flight)
    pausing = asyncio.ensure_future(house.owner.request_peer(PauseDeliveries()))
    await asyncio.sleep(0)
    house.owner.leader_ended()
    with pytest.raises(RetryLater, match="leads no more"):
        await pausing
    house.workers[0].is_held = False
    await house.drain()
    assert not house.keeper.hub.upkeep.is_saving_paused
