"""The shell of the cluster's state over servers and a disk that the test holds: orders, refusals, deaths, writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from columnar.clock import StoreClock
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.routes import Routes
from columnar.errors import DamagedData, HostError, NotServingRegion, OutcomeUnknown
from columnar.master import instructions as do
from columnar.master.catalogue import Catalogue
from columnar.master.cluster_state import ClusterState
from columnar.master.dead_servers import DeadServerLog
from columnar.master.placement_records import Phase
from columnar.master.region_changes import RegionChanges
from columnar.model import owner_messages as told
from columnar.model import region_messages as messages
from columnar.model.mutation import RowMutation
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod, first_owner
from columnar.model.region_info import RegionInfo
from columnar.model.route import ChangeRoutes, ReplaceRoutes
from columnar.model.schema import Family, make_table
from columnar.roles import cluster_loops
from columnar.roles.cluster_host import ClusterHost
from columnar.roles.cluster_owners import ClusterOwners

TABLE = make_table("t", [Family("f")])


def on_a_loop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        asyncio.run(scenario())

    test.__doc__ = scenario.__doc__
    return test


class FakeServer:
    def __init__(self, here: Incarnation) -> None:
        self.here = here
        self.routes = Routes()
        self.heard: list[Any] = []
        self.refusal: Exception | None = None  # of the next ask to open
        self.is_deaf = False  # asks are taken, and never answered
        self.takes_tables = asyncio.Event()  # publications of tables are answered
        self.takes_tables.set()
        self.holdings = told.Holdings((), (), ())
        self.clock_ms = 0

    async def answer(self, message: Any) -> Any:
        self.heard.append(message)
        if self.is_deaf:
            await asyncio.Event().wait()
        if isinstance(message, messages.Publish):
            await self.takes_tables.wait()
        if isinstance(message, ReplaceRoutes):
            return self.routes.replace(message)
        if isinstance(message, ChangeRoutes):
            return self.routes.apply(message)
        if isinstance(message, told.OpenRegion) and self.refusal is not None:
            refusal, self.refusal = self.refusal, None
            raise refusal
        if isinstance(message, told.Holding):
            return replace(self.holdings, has_routes=self.routes.number > 0)
        if isinstance(message, told.CloseRegion):
            return told.GivenUp(message.epoch, False, self.clock_ms)
        return () if isinstance(message, told.Rates) else None

    def opened(self) -> dict[int, int]:
        return {m.region.region_id: m.owner.epoch for m in self.heard if isinstance(m, told.OpenRegion)}


class House:
    """Servers, a catalogue in memory, and the past of the dead."""

    def __init__(self, before: House | None = None, *, owner: Owner | None = None) -> None:
        """``before``: the house whose catalogue is on disk; ``owner``: of regions without a row, as of one process."""
        self.servers: dict[Incarnation, FakeServer] = {}
        self.removed: list[Incarnation] = []
        self.pasts: dict[Incarnation, DeadServerLog] = {}
        self.is_failing = False
        self.is_sound = asyncio.Event()
        self.is_sound.set()
        self.writes: list[list[RowMutation]] = []
        self.free: int | None = 1 << 40  # bytes of the disk
        self.is_stalled = False  # the data folder is
        self.catalogue = Catalogue([], self._write) if before is None else before.catalogue
        self.catalogue.ownership.epoch += 1
        self.catalogue._write = self._write
        self.catalogue.ownership._write = self._write
        ownership, entries = self.catalogue.ownership, self.catalogue.tables.values()
        rows = [(info, ownership.owners.get(info.region_id, owner)) for entry in entries for info in entry.regions]
        state = ClusterState(
            rows, self.catalogue.ownership.sealed, self.catalogue.ownership.operator_settings, Random(1)
        )
        self.host = ClusterHost(state, self.catalogue, self.is_sound.wait, self, self, StoreClock(lambda: 0))
        self.owners = ClusterOwners(self.host, self.catalogue, self)
        self.deaths: dict[Incarnation, asyncio.Event] = {}

    async def _write(self, mutations: list[RowMutation]) -> None:
        await asyncio.sleep(0)
        rows = [mutation.row for mutation in mutations]
        assert len(set(rows)) == len(rows), "a row's mutations go into one"
        if self.is_failing:
            self.is_sound.clear()
            raise OutcomeUnknown("the fsync failed")
        self.writes.append(mutations)

    # --- Servers, Pasts --------------------------------------------------------------------------------

    async def request_server(self, server: Incarnation, message: Any) -> Any:
        found = self.servers.get(server)
        if found is None:
            raise NotSent
        answer = asyncio.ensure_future(found.answer(message))
        death = asyncio.ensure_future(self.deaths[server].wait())
        await asyncio.wait([answer, death], return_when=asyncio.FIRST_COMPLETED)
        death.cancel()
        if not answer.done():
            answer.cancel()
            raise LinkBroke
        return answer.result()

    async def fence(self, server: Incarnation) -> None:
        self.kill(server)

    def has_worked(self, server: Incarnation) -> bool:
        return False

    async def gone(self, server: Incarnation) -> None:
        if server in self.deaths:
            await self.deaths[server].wait()

    async def read_dead_server_log(self, server: Incarnation, *, is_by_time: bool) -> DeadServerLog:
        return self.pasts.get(server, DeadServerLog((), frozenset(), None))

    async def remove(self, server: Incarnation) -> None:
        self.removed.append(server)

    async def extents(self, _server: Incarnation) -> told.Segments:
        return (("now", 7),)

    def free_bytes(self) -> int | None:
        return self.free

    def list_delays(self) -> tuple[str, ...]:
        return ()

    def is_folder_stalled(self) -> bool:
        return self.is_stalled

    # --- what the test does ----------------------------------------------------------------------------

    async def start(self, name: str, number: int, before: FakeServer | None = None) -> FakeServer:
        """``before``: the server, which lives since the time of another master."""
        here = Incarnation(name, number)
        server = self.servers[here] = before or FakeServer(here)
        self.deaths[here] = asyncio.Event()
        self.host.joined(here)
        await self.host.linked(here)
        return server

    def kill(self, server: Incarnation) -> None:
        if self.servers.pop(server, None) is not None:
            self.deaths[server].set()
            self.host.ended(server, "by SIGKILL", asked=False)

    async def create(self, starts: list[bytes]) -> list[RegionInfo]:
        edges = [b"", *starts, b""]
        infos = await self.catalogue.reserve("t", list(pairwise(edges)))
        await self.catalogue.adopt(TABLE, infos)
        await self.owners.request_peer(messages.Publish(TABLE, True, tuple(infos)))
        return infos

    async def rest(self) -> None:
        """Everything that was begun is over."""
        for _ in range(50):
            await asyncio.sleep(0)

    def place(self, info: RegionInfo) -> Any:
        return self.host.state.current.places[info.region_id]

    async def close(self) -> None:
        self.host.state.check_invariants()
        self.host.routes.publishing.check_invariants()
        self.host.stop()
        await self.host.close()


async def two_servers() -> tuple[House, FakeServer, FakeServer]:
    house = House()
    one, other = await house.start("s1", 2), await house.start("s2", 3)
    house.host.begin()
    return house, one, other


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
    assert [type(message) for message in late.heard][:4] == [
        messages.Publish,
        messages.PublishTriggers,
        messages.PublishViews,
        told.Holding,
    ]
    assert type(late.heard[4]) is ReplaceRoutes
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
    assert [type(message) for message in late.heard] == [messages.Publish]
    late.takes_tables.set()
    await starting
    await house.rest()
    assert [type(message) for message in late.heard].index(ReplaceRoutes) == 4, "after tables, triggers, views, regions"
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
    assert [type(message) for message in one.heard][:6] == [
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
