"""A master, a region server and triggers on an engine of the test's choice; only splits and merges run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from columnar.clock import Clock
from columnar.flows.hub import Hub
from columnar.limits import OPEN_REGIONS
from columnar.master.catalogue import Catalogue
from columnar.master.region_changes import RegionChanges
from columnar.master.schema_changes import SchemaChanges
from columnar.master.trigger_changes import TriggerChanges
from columnar.model.mutation import RowMutation
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family
from columnar.model.system_tables import SYSTEM_TABLES
from columnar.model.trigger_registration import Registration
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.roles.region_owner import RegionOwner
from columnar.storage.commit import Committer
from columnar.storage.region_folders import RegionFolders
from columnar.triggers.trigger_manager import TriggerManager
from tests.support.fake_links import FakeLink, runs
from tests.support.openings import operations_of


class CatalogueRows:
    """The catalogue's table as a dictionary; a test can make a write fail."""

    def __init__(self) -> None:
        self.cells: dict[bytes, dict[bytes, bytes]] = {}
        self.failure: Exception | None = None
        self.takes_what_fails = False  # a write that is told to fail is on disk all the same

    def read(self) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return sorted(self.cells.items())

    async def write(self, mutations: list[RowMutation]) -> None:
        await asyncio.sleep(0)
        if self.failure is None or self.takes_what_fails:
            self._take(mutations)
        if self.failure is not None:
            raise self.failure

    def _take(self, mutations: list[RowMutation]) -> None:
        for mutation in mutations:
            for operation in mutation.operations:
                if hasattr(operation, "value"):
                    self.cells.setdefault(mutation.row, {})[b"info:" + (operation.qualifier or b"")] = operation.value
                elif operation.qualifier is None:
                    self.cells.pop(mutation.row, None)
                else:
                    self.cells.get(mutation.row, {}).pop(b"info:" + operation.qualifier, None)


class RoomyFolders(RegionFolders):
    """Region folders for stores in memory, too."""

    def make_beside_others(self, encoded: Sequence[str]) -> None:
        self.make(encoded)

    def free_bytes(self) -> int:
        return 1 << 60


class Worker(FakeLink):
    """A worker that answers each call successfully some loop iterations later, and remembers its calls in order."""

    def __init__(self, listener: Any, rng: random.Random, told: list[tuple[bytes, str]]) -> None:
        super().__init__(listener)
        self._rng, self._told = rng, told
        self.is_held = False
        self._waiting: list[int] = []

    def send(self, *parts: Any) -> None:
        super().send(*parts)
        for call in runs(parts):
            self._told.append((call[4][0][1], call[4][0][3]))
            self._later(call[0], self._rng.randrange(6))

    def _later(self, call_id: int, turns: int) -> None:
        if turns or self.is_held:
            asyncio.get_running_loop().call_soon(self._later, call_id, max(0, turns - 1))
        else:
            self.answer(call_id)


class ChangingHouse:
    def __init__(
        self, engine: Any, folder: str, rows: CatalogueRows, clock: Clock, seed: int = 0,
        *, open_regions: int = OPEN_REGIONS, region_bytes: int = 1 << 60,
    ) -> None:  # fmt: skip
        self.engine, self.folder = engine, folder
        self.rows, self.clock = rows, clock
        self.committer = Committer(asyncio.get_running_loop(), threads=2)
        self.server = RegionServer(engine, folder, self.committer, clock, open_regions=open_regions)
        self.catalogue = Catalogue(rows.read(), rows.write)
        self.keeper = TriggerManager(self.server, Hub(self.server), ("m",), operations_of(self.server))
        self.server.listener = self.keeper.hub.listener
        self.owner = RegionOwner(self.server, self.keeper, region_bytes)
        self.folders = RoomyFolders(folder, engine)
        self.triggers = TriggerChanges(self.catalogue, self.owner, ("m",))
        self.changes = SchemaChanges(self.catalogue, self.owner, self.folders, self.triggers)
        self.regions = RegionChanges(self.catalogue, self.changes, self.owner, self.folders)
        self.owner.follow_master(self.regions)
        self.owner.changing.at = lambda step: self.regions.at(step)
        self.told: list[tuple[bytes, str]] = []
        self.workers: list[Worker] = []
        self._rng = random.Random(seed)

    async def start(self) -> None:
        self.server.hosting.state.epoch = await self.catalogue.ownership.raise_epoch()
        await self.changes.start()
        await self.triggers.start()
        for name, family in SYSTEM_TABLES:
            if name not in self.catalogue.tables:
                await self.changes.create(name.encode(), [family], system=True)
        await self.keeper.load()
        self.keeper.start_with(self._worker)

    def _worker(self, listener: Any) -> Worker:
        self.workers.append(Worker(listener, self._rng, self.told))
        return self.workers[-1]

    async def make(self, families: list[Family], triggers: int = 1, splits: list[bytes] | None = None) -> None:
        """Make table ``t`` and its triggers, which begin with the next changes."""
        await self.changes.create(b"t", families, splits=splits)
        for n in range(triggers):
            await self.register(Registration(f"trigger-{n}", "t", "m:f", tuple(family.name for family in families)))

    async def register(self, registration: Registration) -> None:
        """Register a trigger without the marks that an addition sets, so that it gets all changes in the logs."""
        added = self.catalogue.derivations.triggers.adding(registration).with_state(registration.name, "running")
        await self.catalogue.derivations.write_derivations(added)
        await self.triggers.publish()

    @property
    def table(self) -> ServedTable:
        return self.server.tables.known(b"t")

    @property
    def infos(self) -> list[RegionInfo]:
        return self.table.regions

    async def apply(self, mutation: RowMutation) -> Applied:
        """Apply the mutation; return when it is acknowledged."""

        def apply() -> Applied:
            return self.server.open_region(self.table, self.table.holding(mutation.row)).apply(mutation)

        applied = await retry_until_ready(apply)
        if applied.durable is not None:
            await asyncio.shield(applied.durable)
        return applied

    async def drain(self) -> None:
        assert await self.keeper.wait_delivered("", "", 20), "not delivered in time"

    async def close(self) -> None:
        await self.regions.close()
        self.server.openings.check_invariants()
        await self.keeper.close()
        await self.server.close()
        self.committer.close()
