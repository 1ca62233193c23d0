"""The shell of the cluster's state over servers and a disk that the test holds: orders, refusals, deaths, writes."""

from __future__ import annotations

import asyncio

import pytest

from columnar.errors import DamagedData, HostError
from columnar.master import instructions as do
from columnar.master.dead_servers import DeadServerLog
from columnar.master.placement_records import Phase
from columnar.model import owner_messages as told
from columnar.model import region_messages as messages
from columnar.model.owner import Incarnation, OwnershipPeriod, first_owner
from columnar.model.route import ChangeRoutes, ReplaceRoutes
from columnar.roles import cluster_loops
from tests.support.hosted_cluster import TABLE, FakeServer, House, on_a_loop, two_servers


@on_a_loop
async def test_a_new_table_is_served_when_its_publication_returns() -> None:
    house, one, other = await two_servers()
    infos = await house.create([b"m"])
    assert {**one.opened(), **other.opened()} == {info.region_id: 1 for info in infos}
    for server in (one, other):
        await house.rest()
        kinds = [type(message) for message in server.heard]
        assert kinds.index(messages.Publish) < kinds.index(told.OpenRegion), "a table before its regions"
        assert kinds.index(ChangeRoutes) < kinds.index(told.OpenRegion), "H3"
        assert [route.region for route in server.routes.of_table("t")] == infos
    assert set(house.catalogue.ownership.owners) == {info.region_id for info in infos}, "on disk"
    await house.close()


@on_a_loop
async def test_a_dead_servers_regions_go_to_another_with_what_its_log_names() -> None:
    house, one, other = await two_servers()
    infos = await house.create([b"m"])
    mine = [info for info in infos if info.region_id in one.opened()]
    house.pasts[one.here] = DeadServerLog((("00000001.segment", 99),), frozenset({(mine[0].encoded, 1)}), None)
    house.kill(one.here)
    await house.rest()
    opened = [m for m in other.heard if isinstance(m, told.OpenRegion) and m.region == mine[0]]
    assert [m.owner.unreplayed_logs for m in opened] == [(OwnershipPeriod(one.here, 1),)]
    assert opened[0].sealed == ((one.here, (("00000001.segment", 99),)),)
    for _ in range(2):  # the settled row, then the log that no row names
        house.host.events.event(house.host.state.tick(house.host.events.now_ms()))
        await house.rest()
    assert house.removed == [one.here], "its row says no more that something is behind"
    assert house.catalogue.ownership.sealed == {}
    await house.close()


@on_a_loop
async def test_nothing_is_told_before_a_write_is_on_disk_and_a_failed_one_is_repeated() -> None:
    house, one, other = await two_servers()
    infos = await house.catalogue.reserve("t", [(b"", b"")])
    await house.catalogue.adopt(TABLE, infos)
    house.is_failing = True
    publishing = asyncio.ensure_future(house.owners.request_peer(messages.Publish(TABLE, True, tuple(infos))))
    await house.rest()
    assert not one.opened()
    assert not other.opened()
    assert house.place(infos[0]).phase is Phase.WRITING, "nobody knows what became of the write"
    house.is_failing = False
    house.is_sound.set()
    await asyncio.wait_for(publishing, 5)
    assert house.place(infos[0]).phase is Phase.OPEN
    await house.close()


@on_a_loop
async def test_a_region_that_cannot_be_opened_is_tried_elsewhere() -> None:
    house, one, other = await two_servers()
    one.refusal = other.refusal = HostError("the disk is full")
    (info,) = await house.create([])
    await asyncio.wait_for(house.host.events.until(lambda: house.place(info).phase is Phase.OPEN), 5)
    assert house.place(info).owner.epoch > 2
    await house.close()


@on_a_loop
async def test_damage_is_not_tried_elsewhere() -> None:
    house, one, other = await two_servers()
    one.refusal = other.refusal = DamagedData("a file is cut")
    (info,) = await house.create([])
    assert house.place(info).phase is Phase.FAILED_OPEN
    assert sorted([len(one.opened()), len(other.opened())]) == [0, 1]
    await house.rest()
    for server in (one, other):
        (route,) = server.routes.of_table("t")
        assert route.blocked_reason.startswith(f"region {info.encoded} of t is not served: it could not be opened by s")
    one.refusal = other.refusal = None
    await house.host.requests.request(do.AssignRegion(info.region_id))
    await house.rest()
    assert [route.blocked_reason for server in (one, other) for route in server.routes.of_table("t")] == ["", ""]
    await house.close()


@on_a_loop
async def test_a_server_that_starts_hears_everything_and_misses_no_change() -> None:
    house, one, _ = await two_servers()
    infos = await house.create([b"m"])
    late = await house.start("s3", 5)
    assert [type(message) for message in late.heard][:5] == [
        messages.PublishRights,  # first: a server decides no call before
        messages.Publish,
        messages.PublishTriggers,
        messages.PublishViews,
        told.Holding,
    ]
    assert type(late.heard[5]) is ReplaceRoutes
    house.kill(one.here)
    await house.rest()
    assert [route.server for route in late.routes.of_table("t")] == [house.place(info).owner.server for info in infos]
    await house.close()


@on_a_loop
async def test_a_server_that_starts_gets_no_routes_before_it_has_every_table() -> None:
    """With routes a server takes connections, and a table that it lacks then would not exist for its clients."""
    house, one, _ = await two_servers()
    infos = await house.create([b"m"])
    late = FakeServer(Incarnation("s3", 5))
    late.takes_tables.clear()
    starting = asyncio.ensure_future(house.start("s3", 5, late))
    await house.rest()
    house.kill(one.here)  # its regions get other owners, and routes change
    await house.rest()
    assert [type(message) for message in late.heard] == [messages.PublishRights, messages.Publish]
    late.takes_tables.set()
    await starting
    await house.rest()
    assert [type(message) for message in late.heard].index(ReplaceRoutes) == 5, (
        "after rights, tables, triggers, views, regions"
    )
    assert [route.server for route in late.routes.of_table("t")] == [house.place(info).owner.server for info in infos]
    await house.close()


@on_a_loop
async def test_a_new_table_waits_for_the_servers_of_an_earlier_master() -> None:
    """Such a server takes connections before it is linked, and does not know the table."""
    house, _, _ = await two_servers()
    knows = asyncio.Event()

    async def wait_inherited() -> None:
        await knows.wait()

    house.host.tables.wait_inherited = wait_inherited
    creating = asyncio.ensure_future(house.create([]))
    await house.rest()
    assert not creating.done()
    knows.set()
    await asyncio.wait_for(creating, 5)
    await house.close()


@on_a_loop
async def test_a_move_closes_at_the_source_before_the_target_opens() -> None:
    house, one, other = await two_servers()
    (info,) = await house.create([])
    source, target = (one, other) if house.place(info).server == "s1" else (other, one)
    source.heard.clear()
    await asyncio.wait_for(house.host.requests.request(do.MoveRegion(info.region_id, target.here.name)), 5)
    assert [type(m) for m in source.heard if not isinstance(m, told.Rates)][:2] == [ChangeRoutes, told.CloseRegion]
    assert target.opened() == {info.region_id: 2}
    await house.close()


@on_a_loop
async def test_the_next_owner_follows_the_clock_of_the_one_that_closed() -> None:
    house, one, other = await two_servers()
    (info,) = await house.create([])
    source, target = (one, other) if house.place(info).server == "s1" else (other, one)
    source.clock_ms = 7_000
    await asyncio.wait_for(house.host.requests.request(do.MoveRegion(info.region_id, target.here.name)), 5)
    assert [m.clock_ms for m in target.heard if isinstance(m, told.OpenRegion)] == [7_000]
    await house.close()


@on_a_loop
async def test_a_new_master_leaves_the_regions_of_living_servers_as_they_are() -> None:
    house, one, other = await two_servers()
    infos = await house.create([b"d", b"m"])
    served = [info for info in infos if house.place(info).server == "s1"]
    assert served, "each server has some"
    after = House(house)
    after.host.tables.load()
    pairs = tuple((info.region_id, 1) for info in served)
    one.holdings = told.Holdings(pairs, (), (), ("t", "gone"))
    one.heard.clear()
    number = one.routes.number
    await after.start("s1", 2, one)
    assert one.routes.number > number + 1, "a change of this master never continues a copy of the routes of another"
    assert [type(message) for message in one.heard][:7] == [
        messages.PublishRights,
        messages.Publish,  # it settles splits and merges
        messages.PublishTriggers,
        messages.PublishViews,
        told.Holding,
        messages.Withdraw,
        ReplaceRoutes,
    ]
    assert [route.server for route in one.routes.of_table("t")] == [house.place(info).owner.server for info in infos]
    await after.host.measured(other.here, is_by_time=True)
    after.host.begin()
    await after.host.events.until(lambda: all(after.place(info).phase is Phase.OPEN for info in infos))
    assert one.opened() == {info.region_id: 2 for info in infos if info not in served}
    await after.rest()
    assert [route.server for route in one.routes.of_table("t")] == [one.here] * len(infos)
    assert messages.FollowSchema("t") in one.heard
    assert {after.place(info).owner.generation for info in served} == {0}
    assert {after.place(info).owner.generation for info in infos if info not in served} == {1}
    await after.close()
    await house.close()


@pytest.mark.parametrize("has_detour", [False, True])
def test_a_region_that_was_unassigned_stays_so_over_a_restart_which_does_not_wait_for_it(has_detour: bool) -> None:
    """``has_detour``: one process served the folder in between, which forgets the owners and keeps the wishes."""

    async def scenario() -> None:
        before, _, _ = await two_servers()
        shut, served = await before.create([b"m"])
        await before.host.requests.request(do.UnassignRegion(shut.region_id))
        await before.close()
        last = Incarnation("standalone", 7)
        if has_detour:
            await before.catalogue.ownership.forget_servers(before.catalogue.regions())
        house = House(before, owner=first_owner(last, 8))
        house.host.tables.load()
        for server in (*before.servers, last):
            house.host.events.event(house.host.state.fenced(server, (), (), 0, asked=True))
        one, other = await house.start("s1", 8), await house.start("s2", 9)
        house.host.begin()
        async with asyncio.timeout(5):
            await house.owners.request_peer(messages.Publish(TABLE, True, (shut, served)))
            await house.host.events.until(lambda: house.host.routes.publishing.is_complete)
        await house.rest()
        why = f"region {shut.encoded} of t is not served: a person has unassigned it; 'columnar assign {shut.encoded}'"
        for server in (one, other):
            assert [route.blocked_reason[: len(why)] for route in server.routes.of_table("t")] == [why, ""]
        assert not (one.opened() | other.opened()).keys() & {shut.region_id}
        await asyncio.wait_for(house.host.requests.request(do.AssignRegion(shut.region_id)), 5)
        await house.rest()
        for server in (one, other):
            assert [route.blocked_reason for route in server.routes.of_table("t")] == ["", ""]
        assert house.place(shut).phase is house.place(served).phase is Phase.OPEN
        await house.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("is_known", [True, False])
def test_a_stop_does_not_wait_for_a_disk_that_refuses(is_known: bool) -> None:
    """``is_known``: the write has failed when the stop begins; else it fails meanwhile."""

    async def scenario() -> None:
        house, _, _ = await two_servers()
        house.is_failing = True
        house.host.events.event(house.host.state.add_request(1, do.DrainServer("s2"), house.host.events.now_ms()))
        if is_known:
            await house.rest()
        assert house.is_sound.is_set() != is_known
        await asyncio.wait_for(house.close(), 5)
        assert not house.is_sound.is_set()

    asyncio.run(scenario())


def test_a_disk_that_does_not_say_what_is_free_ends_no_look_at_the_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        house, one, _ = await two_servers()
        for free in (None, 7):
            house.free = free
            await house.rest()
            one.heard.clear()
            await house.rest()
            assert told.Rates() in one.heard
        assert house.host.state.current.free_bytes == 7
        await house.close()

    monkeypatch.setattr(cluster_loops, "LOADS_S", 0.0)
    asyncio.run(scenario())
