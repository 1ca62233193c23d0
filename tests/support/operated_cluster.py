"""A planned cluster under operators' requests: ``master.cluster_control`` over the real state, in virtual time.

A wait lets virtual time pass, so a request ends as soon as only time is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from columnar.coordination.cas_memory import CasMemory
from columnar.coordination.maintenance_lock import MaintenanceLock, MemoryCalls
from columnar.errors import CallerError
from columnar.master.cluster_control import ClusterControl
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import Request
from columnar.model.node_messages import ServerFacts
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import RegionRates
from columnar.model.region_info import RegionInfo
from tests.support.planned_cluster import PlannedCluster

STEP_MS = 10
PATIENCE_MS = 30_000  # virtual: what has not happened by then never does


class OperatedCluster:
    def __init__(self, infos: list[RegionInfo], servers: int, seed: int = 1) -> None:
        self.cluster = PlannedCluster(infos, Random(seed), seed=seed, with_data=False)
        self.ended: list[str] = []  # what was done to processes
        names = [f"s{n + 1}" for n in range(servers)]
        for name in names:
            self.cluster.start(name)
        self.cluster.run(100)
        self.cluster.event("begin_planning")
        self.cluster.run(3_000)
        self.control = ClusterControl(self, MaintenanceLock(MemoryCalls(CasMemory())))
        self.node_of: dict[str, str] = {}
        self.living_nodes: tuple[str, ...] = ()
        self.without_servers: frozenset[str] = frozenset()
        self.unfenced: tuple[Incarnation, ...] = ()  # nodes
        self.said: tuple[str, ...] = ()  # what the shell cannot do

    @property
    def state(self) -> ClusterState:
        return self.cluster.state

    def rated(self, loads: dict[bytes, float]) -> None:
        """Set the reads a second of regions, by their start keys, as if they had lasted ten minutes."""
        state = self.state
        for server in state.current.servers.values():
            rates = []
            for region in server.regions:
                place = state.current.places[region]
                rates.append(RegionRates(region, loads.get(place.info.start, 0.0), 0.0, 0.0, 5 << 20, 1 << 30))
            assert server.incarnation is not None
            self.cluster.event("loads", server.incarnation, tuple(rates))
        self.cluster.run(self.cluster.now_ms + 1_000)

    # --- as ``cluster_control.Host`` ---------------------------------------------------------------

    def now_ms(self) -> int:
        return self.cluster.now_ms

    async def request(self, request: Request) -> None:
        number = self.cluster.ask(request)
        await self.until(lambda: number in self.cluster.answers)
        error = self.cluster.answers[number]
        if error is not None:
            raise CallerError(error)

    async def until(self, is_so: Callable[[], bool]) -> None:
        last_ms = self.cluster.now_ms + PATIENCE_MS
        while not is_so():
            if self.cluster.now_ms > last_ms:
                raise TimeoutError  # as whoever waits by the clock would be told
            self.cluster.run(self.cluster.now_ms + STEP_MS)
            await asyncio.sleep(0)

    # --- as ``cluster_control.Processes`` ----------------------------------------------------------

    def nodes(self) -> tuple[dict[str, str], tuple[str, ...]]:
        return self.node_of, self.living_nodes

    def nodes_without_servers(self) -> frozenset[str]:
        return self.without_servers

    def successors(self) -> tuple[str, ...]:
        return self.living_nodes[1:]

    async def resign(self) -> None:
        self.ended.append("resign")

    def settle(self, node_of: dict[str, str], *living: str) -> None:
        """Set the nodes, by server and those that live, the leader first."""
        self.node_of, self.living_nodes = node_of, living

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.ensure_future(work)

    def remarks(self) -> tuple[str, ...]:
        return self.said

    def facts(self, server: Incarnation) -> ServerFacts:
        if server not in self.cluster.servers:
            return ServerFacts()
        number = int(server.name.removeprefix("s"))
        return ServerFacts("9.9", f"127.0.0.1:{40_000 + number}", 4_700 + number, number)

    def unfenced_nodes(self) -> tuple[Incarnation, ...]:
        return self.unfenced

    def fence_node(self, node: Incarnation) -> None:
        self.ended.append(f"fence node {node}")
        self.unfenced = tuple(one for one in self.unfenced if one != node)
        self.living_nodes = tuple(one for one in self.living_nodes if one != str(node))

    async def fence(self, server: Incarnation, why: str) -> None:
        self.ended.append(f"fence {server}")
        self.cluster.event("silent", server, why)
        await self.until(lambda: self.state.ledger.is_fenced(server))
        self.cluster.start(server.name)

    async def stop_server(self, server: Incarnation) -> None:
        found = self.cluster.servers.get(server)
        if found is None:
            return  # it has ended: only its name is kept from starting
        held = found.serving
        assert not held, f"{server} is stopped while it serves {sorted(held)}"
        self.ended.append(f"stop {server}")
        self.cluster.kill(server, asked=True)
        await self.until(lambda: self.state.ledger.is_fenced(server))

    async def start_server(self, name: str) -> None:
        self.ended.append(f"start {name}")
        self.cluster.start(name)


def table_infos(table: str, count: int, first_id: int = 2) -> list[RegionInfo]:
    """Return regions whose rows begin with a, b, c, ..."""
    starts = [b"", *(bytes([97 + n]) for n in range(1, count))]
    ends = [*starts[1:], b""]
    return [RegionInfo(table, first_id + n, *bounds) for n, bounds in enumerate(zip(starts, ends, strict=True))]
