"""Table ``t`` in memory, with regions that split and merge; the test controls fsyncs and cleanups."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from columnar.model.mutation import Put, RowMutation
from columnar.model.read import ReadSpec, projection
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family
from columnar.regions.read.region_reads import get_row
from columnar.regions.region import Region
from columnar.storage.api import SpaceOptions
from columnar.storage.memory import MemoryEngine
from columnar.storage.ownership import Ownership
from tests.support.changing_house import CatalogueRows, ChangingHouse
from tests.support.held_engine import FakeClock, HeldEngine, HeldStore
from tests.support.openings import region_at_once

PATIENCE_S = 20.0


class CleanedStore(HeldStore):
    """A store that reports every range whose space it frees, and waits for the test's permission."""

    def __init__(self, store: Any, gate: Any, engine: MemoryHeld, path: str) -> None:
        super().__init__(store, gate)
        self._engine, self._path = engine, path
        store.files.compact_span = self.reclaim_span

    def reclaim_span(self, *_: Any) -> None:
        self._engine.cleaned.add(self._path)
        assert self._engine.may_clean.wait(PATIENCE_S), "the test never let it"


class MemoryHeld(HeldEngine):
    def __init__(self) -> None:
        self.memory = MemoryEngine()
        super().__init__(self.memory)
        self.cleaned: set[str] = set()  # folders of regions that gave space back
        self.may_clean = threading.Event()
        self.may_clean.set()

    def open_store(
        self,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions] | None = None,
        ownership: Ownership | None = None,
    ) -> Any:
        return CleanedStore(self.memory.open_store(path, spaces, options, ownership), self.gate, self, path)


class House(ChangingHouse):
    engine: MemoryHeld

    async def put(self, *rows: bytes, value: bytes = b"1") -> str:
        token = ""
        for row in rows:
            token = (await self.apply(RowMutation(row, (Put(b"f", b"q", value),)))).sequence.token
        return token

    def rows_held(self) -> list[bytes]:
        spec = ReadSpec(projection(self.table.schema, []))
        names = [b"%02d" % n for n in range(100)]
        return [row for row in names if get_row(self.region(row), row, spec)]

    def is_of_t(self, path: str) -> bool:
        tables = self.catalogue.tables.values()
        return path not in [self.server.folder_of(info) for entry in tables for info in entry.regions]

    def region(self, row: bytes) -> Region:
        return region_at_once(self.server, self.table, row)

    def was_cleaned(self, info: RegionInfo) -> bool:
        return self.server.folder_of(info) in self.engine.cleaned

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition that threads bring about; the test's own time limit ends the wait."""
        while not condition():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)

    async def restarted(self) -> House:
        """Return a new server on the data on disk; this server is closed."""
        await self.close()
        house = House(self.engine, self.folder, self.rows, self.clock)
        await house.start()
        await house.changes.finish_drops()
        return house


def housed(
    triggers: int = 0, splits: tuple[bytes, ...] = (), **options: Any
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Return a decorator that gives a test a ``House``; ``options`` are those of ``ChangingHouse``."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        async def run(*args: Any, **kwargs: Any) -> None:
            house = House(MemoryHeld(), "regions", CatalogueRows(), FakeClock(), **options)
            await house.start()
            await house.make([Family("f")], triggers, list(splits))
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await test(house, *args, **kwargs)
            finally:
                house.engine.may_clean.set()
                house.engine.gate.release()
                await house.close()

        def wrapped(*args: Any, **kwargs: Any) -> None:
            asyncio.run(run(*args, **kwargs))

        wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
        known = inspect.signature(test)
        wrapped.__signature__ = known.replace(parameters=list(known.parameters.values())[1:])  # type: ignore[attr-defined]
        return wrapped

    return decorate
