"""The dead letters of a store: buried, listed, and retried.  Owned by the loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Final

from columnar.errors import RegionElsewhere
from columnar.model.read import ReadSpec, projection
from columnar.operations.access import TableAccess
from columnar.regions.change_record import ChangeRecord
from columnar.regions.patience import patiently
from columnar.regions.region_reads import fetch
from columnar.regions.row_reader import latest_timestamp
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.triggers import dead_letters
from columnar.triggers.dead_letters import DEAD_LETTERS_TABLE, DeadLetter
from columnar.triggers.system_tables import SystemTables

LETTERS_PER_CALL: Final = 10_000


class Burials:
    def __init__(self, server: RegionServer, tables: SystemTables) -> None:
        self._access = TableAccess(server)
        self._tables = tables
        self._one_retry_at_a_time = asyncio.Lock()
        self._counts: dict[str, int] = {}  # by trigger

    async def load(self) -> None:
        """Count the letters that there are, where the table's region is served here."""
        with suppress(RegionElsewhere):
            async for _, cells in self._tables.rows(DEAD_LETTERS_TABLE):
                self._count(dead_letters.from_cell(cells[b"info:letter"]).trigger, 1)

    def _count(self, trigger: str, more: int) -> None:
        self._counts[trigger] = self._counts.get(trigger, 0) + more

    def count_of(self, trigger: str) -> int:
        return self._counts.get(trigger, 0)

    async def bury(self, letter: DeadLetter) -> None:
        """Returns when it is on disk.  The same change again replaces its letter."""
        writing = dead_letters.writing(letter)
        is_new = not await self._tables.has(DEAD_LETTERS_TABLE, writing.row)
        await self._tables.write(DEAD_LETTERS_TABLE, writing)
        self._count(letter.trigger, 1 if is_new else 0)

    async def found(self, name: str, limit: int) -> list[DeadLetter]:
        """The oldest ``limit`` letters of one trigger; of all for an empty name."""
        rows = self._tables.rows(DEAD_LETTERS_TABLE, *dead_letters.rows_of(name), min(limit, LETTERS_PER_CALL))
        return [dead_letters.from_cell(cells[b"info:letter"]) async for _, cells in rows]

    async def retry(self, name: str, row: bytes) -> int:
        """Deliver dead rows again as they are now; a letter goes once its row is in the log again."""
        taken = 0
        async with self._one_retry_at_a_time:
            for letter in await self.found(name, LETTERS_PER_CALL):
                if row and letter.row != row:
                    continue
                served = self._access.table(letter.table.encode())
                logged = await patiently(partial(self._log_again, served, letter.row, name))
                await asyncio.shield(logged)
                await self._tables.write(DEAD_LETTERS_TABLE, dead_letters.removing(letter))
                self._count(name, -1)
                taken += 1
        return taken

    def _log_again(self, served: ServedTable, row: bytes, name: str) -> asyncio.Future[None]:
        region = self._access.region_for(served, row)
        newest = latest_timestamp(fetch(region, row, ReadSpec(projection(region.table, ()))), region.now_ms)
        return region.log_records([ChangeRecord(row, newest or region.now_ms, (), (), name)], {})
