"""All owners of regions as one: those that begin while something is asked of all, and what waiting for many costs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.errors import RetryLater
from columnar.master.placement_records import Phase, Place
from columnar.model import owner_messages as told
from columnar.model import region_messages as messages
from columnar.model.region_info import RegionInfo
from tests.support.hosted_cluster import FakeServer, House, on_a_loop, two_servers

HOLD, RELEASE = messages.PauseDeliveries(), messages.ReleaseDeliveries()


def counts(server: FakeServer) -> tuple[int, int]:
    return server.heard.count(HOLD), server.heard.count(RELEASE)


@on_a_loop
async def test_a_server_that_begins_while_deliveries_are_held_holds_its_own_before_it_has_a_region() -> None:
    house, one, other = await two_servers()
    infos = await house.create([b"m"])
    await house.owners.request_peer(HOLD)
    late = await house.start("s3", 5)
    for server in (one, other):
        house.kill(server.here)
    await house.rest()
    assert late.opened().keys() == {info.region_id for info in infos}
    kinds = [type(message) for message in late.heard]
    assert kinds.index(messages.PauseDeliveries) < kinds.index(told.OpenRegion)
    await house.owners.request_peer(RELEASE)
    assert counts(late) == (1, 1), "holds are counted"
    after = await house.start("s4", 6)
    assert counts(after) == (0, 0)
    await house.close()


@on_a_loop
async def test_a_server_that_begins_while_others_come_to_rest_is_released_with_them() -> None:
    house, one, other = await two_servers()
    runs_on = asyncio.Event()
    _answer_hold(one, runs_on)
    holding = asyncio.ensure_future(house.owners.request_peer(HOLD))
    await house.rest()
    late = await house.start("s3", 5)
    assert counts(late) == (1, 0)
    runs_on.set()
    with pytest.raises(RetryLater):
        await holding
    assert counts(late) == counts(other) == (1, 1)
    assert counts(one) == (1, 0), "it has let go by itself"
    assert counts(await house.start("s4", 6)) == (0, 0)
    await house.close()


def _answer_hold(server: FakeServer, runs_on: asyncio.Event) -> None:
    answer = server.answer

    async def answered(message: Any) -> Any:
        found = await answer(message)
        if message == HOLD:
            await runs_on.wait()
            raise RetryLater("triggers are still running")
        return found

    server.answer = answered  # type: ignore[method-assign]


@on_a_loop
async def test_a_server_that_links_again_gets_what_was_not_sent_and_all_that_it_missed() -> None:
    house, one, other = await two_servers()
    infos = await house.create([b"m"])
    house.lose_link(one.here)
    before, opened = len(one.heard), one.opened()
    following = asyncio.ensure_future(house.owners.request_peer(messages.FollowSchema("t")))
    await house.rest()
    assert not following.done()
    assert house.owners.is_bound(one.here) is False, "nothing of it has reached the server"
    one.holdings = told.Holdings(tuple(opened.items()), (), (), ("t",), clock_ms=77_000)
    await house.link(one.here)
    await following
    since = [type(message) for message in one.heard[before:]]
    assert since.count(messages.FollowSchema) >= 1
    assert {messages.Publish, messages.PublishTriggers, messages.PublishViews, told.Holding} <= set(since)
    assert told.OpenRegion not in since, "it serves its regions all the time"
    assert (one.routes.number, house.host.state.current.servers["s1"].incarnation) == (other.routes.number, one.here)
    assert house.host.transitions._clock() >= 77_000
    assert {place.phase for place in house.host.state.current.places.values()} == {Phase.OPEN}
    assert len(infos) == 2
    await house.close()


@on_a_loop
async def test_a_region_whose_opening_was_lost_with_a_link_is_opened_over_the_next() -> None:
    house, one, other = await two_servers()
    await house.create([b"m"])
    one.is_deaf, before = True, one.opened()
    house.kill(other.here)
    await house.rest()
    assert len(one.opened().keys() - before.keys()) == 1, "the region of the dead server"
    one.holdings = told.Holdings(tuple(before.items()), (), (), ("t",))
    house.lose_link(one.here)
    await house.rest()
    one.is_deaf, heard = False, len(one.heard)
    await house.link(one.here)
    await house.rest()
    assert [type(message) for message in one.heard[heard:]].count(told.OpenRegion) == 1
    assert {place.phase for place in house.host.state.current.places.values()} == {Phase.OPEN}
    await house.close()


@on_a_loop
async def test_a_server_is_bound_by_a_request_a_pause_and_a_change() -> None:
    house, one, other = await two_servers()
    await house.create([])
    assert not house.owners.is_bound(one.here)
    one.is_deaf = True
    following = asyncio.ensure_future(house.owners.request_peer(messages.FollowSchema("t")))
    await house.rest()
    assert (house.owners.is_bound(one.here), house.owners.is_bound(other.here)) == (True, False)
    house.lose_link(one.here)
    await house.rest()
    assert not following.done(), "its outcome is unknown until the server has ended"
    house.kill(one.here)
    await following
    assert not house.owners.is_bound(one.here)
    await house.owners.request_peer(HOLD)
    assert house.owners.is_bound(other.here)
    await house.owners.request_peer(RELEASE)
    assert not house.owners.is_bound(other.here)
    await house.close()


class Places(dict[int, Place]):
    """Counts the looks at places."""

    looks = 0

    def __getitem__(self, region: int) -> Place:
        self.looks += 1
        return super().__getitem__(region)


async def looks_until_served(regions: int, *, backwards: bool) -> int:
    house = House()
    infos = [RegionInfo("t", number) for number in range(regions)]
    places = Places({info.region_id: Place(info, None, Phase.OPENING) for info in infos})
    house.host.state.current.places = places
    serving = asyncio.ensure_future(house.host.tables.served("t", infos))
    order = list(places.values())
    for place in reversed(order) if backwards else order:
        for _ in range(3):  # a report, and the waiter has looked
            await asyncio.sleep(0)
        assert not serving.done()
        place.phase = Phase.OPEN
        house.host.events.event([])
    await asyncio.wait_for(serving, 5)
    return places.looks


@pytest.mark.parametrize("backwards", [False, True])
def test_waiting_for_twice_the_regions_costs_twice(backwards: bool) -> None:
    few, many = (asyncio.run(looks_until_served(regions, backwards=backwards)) for regions in (100, 200))
    assert few >= 100
    assert many <= 2 * few
