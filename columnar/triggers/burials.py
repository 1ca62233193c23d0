"""The dead letters of a store: buried, listed, and retried.  Owned by the loop."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final, TypeAlias

from columnar.errors import ColumnarError, RegionElsewhere
from columnar.model.read import ReadSpec, projection
from columnar.operations.access import TableAccess
from columnar.operations.region_rows import rows_of
from columnar.regions.change_record import ChangeRecord
from columnar.regions.patience import patiently
from columnar.regions.region import Region
from columnar.regions.region_reads import fetch
from columnar.regions.row_reader import latest_timestamp
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.triggers import dead_letters
from columnar.triggers.dead_letters import DEAD_LETTERS_TABLE, DeadLetter
from columnar.triggers.system_tables import SystemTables

_log = logging.getLogger(__name__)

LETTERS_PER_CALL: Final = 10_000
COUNTED_ROWS: Final = 50  # in one step, of some 10 us each
LogElsewhere: TypeAlias = Callable[[str, bytes, str], Awaitable[None]]  # table, row, trigger


class Burials:
    def __init__(self, server: RegionServer, tables: SystemTables) -> None:
        self._access = TableAccess(server)
        self._tables = tables
        self._one_retry_at_a_time = asyncio.Lock()
        self._counts: dict[str, int] = {}  # by trigger, of a process that is alone
        self._counted: dict[int, tuple[Region, int, Counter[str]]] = {}  # region, its writes when it was counted
        self.log_again_elsewhere: LogElsewhere | None = None  # None: there is no other server
        self._server = server

    async def load(self) -> None:
        """Count the letters that there are, where the table's region is served here."""
        with suppress(RegionElsewhere):
            async for _, cells in self._tables.rows(DEAD_LETTERS_TABLE):
                self._count(dead_letters.from_cell(cells[b"info:letter"]).trigger, 1)

    async def letters_here(self) -> Counter[str]:
        """Letters by trigger in those regions of the table that this server owns.

        They are counted anew, in steps, where the region was written to since the last time.
        """
        found: Counter[str] = Counter()
        served = self._access.table(DEAD_LETTERS_TABLE.encode())
        for info in list(served.regions):
            if self._server.hosting.state.owns(info.region_id) and not self._server.is_untouched(info):
                try:
                    found.update(await self._letters_in(await self._server.opened(served, info)))
                except RegionElsewhere:
                    continue  # it left just now, and its owner counts
                except ColumnarError as error:
                    _log.info("letters of region %s are not counted: %s", info.encoded, error.text)
        return found

    async def _letters_in(self, region: Region) -> Counter[str]:
        held = self._counted.get(region.info.region_id)
        if held is not None and held[0] is region and held[1] == region.writes:
            return held[2]
        writes, counts, start = region.writes, Counter[str](), b""
        while region.is_open:
            rows = [row for row, _ in islice(rows_of(region, start), COUNTED_ROWS)]
            counts.update(map(dead_letters.trigger_of, rows))
            if len(rows) < COUNTED_ROWS:
                break
            start = rows[-1] + b"\x00"
            await asyncio.sleep(0)
        self._counted = {region.info.region_id: (region, writes, counts)}  # the table has one region, but for a split
        return counts

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
                try:
                    await self.log_again(letter.table, letter.row, name)
                except RegionElsewhere:
                    if self.log_again_elsewhere is None:
                        raise
                    await self.log_again_elsewhere(letter.table, letter.row, name)
                await self._tables.write(DEAD_LETTERS_TABLE, dead_letters.removing(letter))
                self._count(name, -1)
                taken += 1
        return taken

    async def log_again(self, table: str, row: bytes, name: str) -> None:
        """The row is a change for this trigger again, on disk.  RegionElsewhere."""
        served = self._access.table(table.encode())
        logged = await patiently(partial(self._log_again, served, row, name))
        await asyncio.shield(logged)

    def _log_again(self, served: ServedTable, row: bytes, name: str) -> asyncio.Future[None]:
        region = self._access.region_for(served, row)
        newest = latest_timestamp(fetch(region, row, ReadSpec(projection(region.table, ()))), region.now_ms)
        return region.log_records([ChangeRecord(row, newest or region.now_ms, (), (), name)], {})
