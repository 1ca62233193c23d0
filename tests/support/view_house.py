"""A ``ChangingHouse`` with views: the test's own tables and definitions, and reads of the views' tables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from columnar.master.alterations import Alterations
from columnar.master.view_changes import Declaring, ViewChanges
from columnar.master.view_generations import ViewGenerations
from columnar.model.mutation import Operation, Put, RowMutation
from columnar.model.read import ReadSpec, projection
from columnar.model.region_messages import Backfilled, Message
from columnar.model.schema import Family
from columnar.model.view_definition import Source, View, to_json
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.row_reader import RowCursor, visible_cells
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.storage.layout import range_start
from columnar.storage.memory import MemoryEngine
from columnar.views import declaring
from tests.support.changing_house import CatalogueRows, ChangingHouse
from tests.support.held_engine import FakeClock

PATIENCE_S = 20.0
Rows = dict[bytes, dict[bytes, bytes]]


async def nothing() -> None:
    pass


class ViewHouse(ChangingHouse):
    looks_by_itself = False  # else a test looks how far builds are (``ViewChanges.look``)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        made = Declaring(declaring.declared, declaring.table_of)
        self.views = ViewChanges(self.catalogue, self.owner, self.changes, lambda: made, nothing)
        self.generations = ViewGenerations(self.views)
        self.owner.follow_master(self)
        if not self.looks_by_itself:
            self.views._schedule_build_check = lambda: None  # type: ignore[method-assign]
        self.alterations = Alterations(self.catalogue, self.owner, self.changes)

    async def start(self) -> None:
        await super().start()
        async with self.views.lock:
            await self.views.settle()
            await self.views.publish()

    async def make_source(self, name: str = "t", families: tuple[str, ...] = ("f",), *splits: bytes) -> None:
        await self.changes.create(name.encode(), [Family(one) for one in families], splits=list(splits))

    async def request_peer(self, message: Message[Any]) -> Any:
        """Handle a request to the master as its owner sends it."""
        return await (self.views if isinstance(message, Backfilled) else self.regions).request_peer(message)

    async def add(self, view: View) -> None:
        await self.views.add_view(to_json(view))

    def served(self, table: str) -> ServedTable:
        return self.server.tables.known(table.encode())

    async def write(self, table: str, row: bytes, *operations: Operation) -> Applied:
        """Write the row; return when the write is acknowledged."""
        served = self.served(table)

        def apply() -> Applied:
            return self.server.open_region(served, served.holding(row)).apply(RowMutation(row, operations))

        applied = await retry_until_ready(apply)
        if applied.durable is not None:
            await asyncio.shield(applied.durable)
        return applied

    async def put_cells(self, table: str, row: bytes, **cells: bytes) -> str:
        """Put cells into family ``f``; return the token."""
        puts = [Put(b"f", name.encode(), value) for name, value in cells.items()]
        return (await self.write(table, row, *puts)).sequence.token

    async def rows_of(self, table: str, *families: bytes) -> Rows:
        """Return all rows that a reader sees."""
        served = self.served(table)
        spec = ReadSpec(projection(served.schema, list(families)))
        found: Rows = {}
        for info in list(served.regions):
            region = await self.server.opened(served, info)
            start, stop = range_start(info.start), range_start(info.end) if info.end else None
            cursor = RowCursor.over(region.store, region.views, spec.projection, start, stop, reverse=False)
            while (held := cursor.next_row()) is not None:
                cells = visible_cells(region.store, *held, spec, region.now_ms)
                image = {column: value for column, value, _ in cells}
                if image:
                    found[held[0]] = image
        return found

    async def totals(self, view: str) -> dict[bytes, dict[str, int]]:
        return {
            row: {column[2:].decode(): int.from_bytes(value, "big", signed=True) for column, value in cells.items()}
            for row, cells in (await self.rows_of(view, b"v")).items()
        }

    async def settled(self, view: str, token: str = "") -> None:
        assert await self.owner.views.wait_delivered(view, token, PATIENCE_S), "the view is not there in time"

    def state(self, view: str) -> str:
        held = self.catalogue.derivations.views.find(view)
        return held.state if held is not None else ""

    async def restarted(self) -> ViewHouse:
        """Return a new server on the data on disk; this server is closed."""
        await self.close()
        house = type(self)(self.engine, self.folder, self.rows, self.clock)
        await house.start()
        await house.changes.finish_drops()
        return house


def in_view_house(test: Callable[[ViewHouse], Awaitable[None]]) -> Callable[[], None]:
    """Return a test that gets a ``ViewHouse`` without tables."""

    async def run() -> None:
        unheard = list[dict[str, Any]]()  # as of a timer that outlives what it was for
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unheard.append(context))
        house = ViewHouse(MemoryEngine(), "regions", CatalogueRows(), FakeClock())
        await house.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await test(house)
        finally:
            await house.close()
        assert unheard == []

    def wrapped() -> None:
        asyncio.run(run())

    wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
    return wrapped


def by_a(name: str = "by_a", table: str = "t", **options: Any) -> View:
    """Return a view of rows of ``f`` by the cell ``f:a``, with the sum of ``f:n``."""
    return View(name, Source(table, ("f:a",), sums={"n": "f:n"}, **options))
