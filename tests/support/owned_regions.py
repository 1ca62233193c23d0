"""A region server over the memory engine, with empty dead logs, to which a test assigns regions as a master does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from columnar.model.mutation import Put, RowMutation
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import CannotOpen, CloseRegion, GivenUp, OpenRegion
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.regions.life.region_assigner import RegionAssigner
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.storage.api import SpaceOptions, Store
from columnar.storage.commit import Committer
from columnar.storage.dead_logs import DeadLog, DeadLogs, Sealed
from columnar.storage.memory import MemoryEngine
from columnar.storage.ownership import LogPart, Ownership
from tests.support.held_engine import FakeClock, HeldEngine

HERE, DEAD, OTHER = Incarnation("s1", 5), Incarnation("s2", 3), Incarnation("s3", 4)
LEADER = 7
TABLE = make_table("t", [Family("a")])
EDGES = [(b"", b"d"), (b"d", b"m"), (b"m", b"t"), (b"t", b"")]
REGIONS = [RegionInfo("t", 10 + n, start, end) for n, (start, end) in enumerate(EDGES)]
FIRST = REGIONS[0]
PUT = RowMutation(b"a", (Put(b"a", b"q", b"v"),))


class OwnedEngine(HeldEngine):
    """An engine that notes the claims with which stores are opened, and refuses some."""

    def __init__(self) -> None:
        super().__init__(MemoryEngine())
        self.claims: list[Ownership] = []
        self.failures: dict[str, Exception] = {}  # by the region's encoded name
        self.owned: list[tuple[str, int]] = []

    def open_store(
        self,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions] | None = None,
        ownership: Ownership | None = None,
    ) -> Any:
        assert ownership is not None
        self.claims.append(ownership)
        if ownership.region in self.failures:
            raise self.failures[ownership.region]
        store: Any = super().open_store(path, spaces, options, ownership)
        store.own = lambda region, epoch: self.owned.append((region, epoch))
        return store

    def is_untouched(self, path: str) -> bool:
        return False

    def has_unreplayed_writes(self, store: Store, ownership: Ownership) -> bool:
        return False


class OwnLog:
    def __init__(self) -> None:
        self.parts: dict[str, tuple[LogPart, ...]] = {}

    def unreplayed_parts(self, region: str) -> tuple[LogPart, ...]:
        return self.parts.get(region, ())

    def brought_in(self, region: str) -> None:
        self.parts.pop(region, None)


class Logs:
    """Dead logs without records."""

    def __init__(self) -> None:
        self.server_log = OwnLog()
        self.dead_logs = DeadLogs()
        self.read: list[tuple[str, tuple[tuple[str, int], ...]]] = []

    def dead_log(self, incarnation: str, lengths: tuple[tuple[str, int], ...]) -> DeadLog:
        self.read.append((incarnation, lengths))
        return DeadLog("nowhere", Sealed())


class House:
    def __init__(self, open_regions: int = 9) -> None:
        self.engine = OwnedEngine()
        self.committer = Committer(asyncio.get_running_loop())
        self.server = RegionServer(
            self.engine, "regions", self.committer, FakeClock(), open_regions=open_regions, epoch=None
        )
        self.logs = Logs()
        self.owning = RegionAssigner(HERE, self.server, self.logs)
        self.server.openings.ownership_at = self.owning.ownership_at
        self.server.openings.on_settled = self.owning.settled
        self.reports: list[CannotOpen] = []
        self.owning.on_cannot_open = self.reports.append
        self.server.folders.make([info.encoded for info in REGIONS])
        self.served = ServedTable(TABLE, True, list(REGIONS))
        self.server.tables.install(self.served)

    async def open(self, owner: Owner, info: RegionInfo = FIRST, *sealed: Any, leader: int = LEADER) -> None:
        await self.owning.open_region(OpenRegion(info, owner, sealed), leader)

    async def close_at(self, epoch: int, info: RegionInfo = FIRST) -> GivenUp:
        return await self.owning.close(CloseRegion(info, epoch), LEADER)

    async def region(self, info: RegionInfo = FIRST) -> Any:
        return await self.server.opened(self.served, info)

    async def put(self, mutation: RowMutation = PUT) -> None:
        def step() -> Any:
            return self.server.open_region(self.served, self.served.holding(mutation.row)).apply(mutation)

        applied = await retry_until_ready(step)
        await applied.durable

    async def settled(self) -> None:
        """Wait until nothing is being opened in the background."""
        while self.owning.openings.running:
            await asyncio.wait(list(self.owning.openings.running))

    async def close(self) -> None:
        self.engine.gate.release()
        self.owning.openings.stop()
        self.server.openings.check_invariants()
        await self.server.close()
        self.committer.close()


def run(check: Callable[[House], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        house = House(**options)
        async with asyncio.timeout(20):
            await check(house)
        house.owning.check_invariants()
        await house.close()

    asyncio.run(main())
