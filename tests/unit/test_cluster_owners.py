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
