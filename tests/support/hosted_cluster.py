"""The shell of the cluster's state over servers and a disk that a test holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

from columnar.clock import StoreClock
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.routes import Routes
from columnar.errors import OutcomeUnknown
from columnar.master.catalogue import Catalogue
from columnar.master.cluster_state import ClusterState
from columnar.master.dead_servers import DeadServerLog
from columnar.model import owner_messages as told
from columnar.model import region_messages as messages
from columnar.model.mutation import RowMutation
from columnar.model.owner import Incarnation, Owner
from columnar.model.region_info import RegionInfo
from columnar.model.route import ChangeRoutes, ReplaceRoutes
from columnar.model.schema import Family, make_table
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
        self.breaks: dict[Incarnation, asyncio.Event] = {}  # each server's link has ended
        self.links: dict[Incarnation, asyncio.Event] = {}  # each server has a link

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
        if found is None or not self.is_linked(server):
            raise NotSent
        answer = asyncio.ensure_future(found.answer(message))
        ends = [asyncio.ensure_future(one[server].wait()) for one in (self.deaths, self.breaks)]
        await asyncio.wait([answer, *ends], return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
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

    def is_linked(self, server: Incarnation) -> bool:
        return server in self.links and self.links[server].is_set()

    async def relinked(self, member: Incarnation) -> bool:
        either = [asyncio.ensure_future(one[member].wait()) for one in (self.links, self.deaths)]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        for one in either:
            one.cancel()
        return self.is_linked(member)

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
        self.deaths[here], self.links[here] = asyncio.Event(), asyncio.Event()
        self.host.joined(here)
        await self.link(here)
        return server

    async def link(self, server: Incarnation) -> None:
        self.breaks[server] = asyncio.Event()
        self.links[server].set()
        await self.host.linked(server)

    def lose_link(self, server: Incarnation) -> None:
        """End the link of a server that lives on; answers under way are lost."""
        self.links[server].clear()
        self.breaks[server].set()

    def kill(self, server: Incarnation) -> None:
        if self.servers.pop(server, None) is not None:
            self.deaths[server].set()
            self.links[server].clear()
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
