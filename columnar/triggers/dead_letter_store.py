"""The dead letters of a store: adds, lists, counts, retries and skips them.  Owned by the loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final, TypeAlias

from columnar.errors import ColumnarError, DamagedData, RegionNotLocal, TriggerError, abbreviate
from columnar.model.read import ReadSpec, projection
from columnar.model.system_tables import DEAD_LETTERS_TABLE
from columnar.model.trigger_registration import Registration
from columnar.operations.access import TableAccess
from columnar.operations.system_tables import SystemTables
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.log.change_record import ChangeRecord
from columnar.regions.read.region_reads import fetch, rows_of
from columnar.regions.read.row_reader import latest_timestamp
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.regions.write.images import covers
from columnar.triggers import dead_letters
from columnar.triggers.dead_letters import DeadLetter

_log = logging.getLogger(__name__)

LETTERS_PER_CALL: Final = 10_000
LISTED_BYTES: Final = 4 * 1024 * 1024  # of errors, outputs and rows: some 50 ms of the loop
COUNTED_ROWS: Final = 50  # in one step, of some 10 us each
LETTERS_WITH_CHANGES: Final = 10  # with their changes, which may be large
_NO_CHANGE: Final = (
    f"hold no change: it was over {dead_letters.CHANGE_BYTES} bytes, or they are of an earlier version; retry these as "
    "their rows are now"
)
_A_ROW: Final = (
    "stand for a row that was shown as it was then, and for no change of it; retry these as their rows are now"
)
_NO_IMAGES: Final = (
    f"lack the row before and after their change: with it they were over {dead_letters.CHANGE_BYTES} bytes, or the "
    "trigger asks for other columns than it did; retry these as their rows are now"
)
RemoteLogAgain: TypeAlias = Callable[[str, ChangeRecord], Awaitable[None]]  # table, what to log


class DeadLetterStore:
    def __init__(self, server: RegionServer, tables: SystemTables) -> None:
        self._access = TableAccess(server)
        self._tables = tables
        self._one_retry_at_a_time = asyncio.Lock()
        self._counts: dict[str, int] = {}  # by trigger; used by a standalone
        self._counted: dict[int, tuple[Region, int, Counter[str]]] = {}  # region, its writes when it was counted
        self.log_again_remotely: RemoteLogAgain | None = None  # None: there is no other server
        self._server = server

    async def load(self) -> None:
        """Count the existing letters, if this server owns the table's region."""
        with suppress(RegionNotLocal):
            async for row, _ in self._tables.rows(DEAD_LETTERS_TABLE, columns=[dead_letters.LETTER_COLUMN]):
                self._count(dead_letters.trigger_of(row), 1)

    async def local_letter_counts(self) -> Counter[str]:
        """Return the number of letters by trigger in the table's regions that this server owns.

        Letters of a region are counted again, COUNTED_ROWS per loop iteration, if the region was written to since.
        """
        found: Counter[str] = Counter()
        served = self._access.table(DEAD_LETTERS_TABLE.encode())
        for info in list(served.regions):
            if self._server.hosting.state.owns(info.region_id) and not self._server.is_untouched(info):
                try:
                    found.update(await self._letters_in(await self._server.opened(served, info)))
                except RegionNotLocal:
                    continue  # the region moved just now, and its owner counts
                except ColumnarError as error:
                    _log.info("letters of region %s are not counted: %s", info.encoded, error.text)
        return found

    async def _letters_in(self, region: Region) -> Counter[str]:
        counted = self._counted.get(region.info.region_id)
        if counted is not None and counted[0] is region and counted[1] == region.writes:
            return counted[2]
        writes, counts, start = region.writes, Counter[str](), b""
        while region.is_open:
            rows = [row for row, _ in islice(rows_of(region, start), COUNTED_ROWS)]
            counts.update(map(dead_letters.trigger_of, rows))
            if len(rows) < COUNTED_ROWS:
                break
            start = rows[-1] + b"\x00"
            await asyncio.sleep(0)
        self._counted = {region.info.region_id: (region, writes, counts)}  # one region, unless it was split
        return counts

    def _count(self, trigger: str, more: int) -> None:
        self._counts[trigger] = self._counts.get(trigger, 0) + more

    def count_of(self, trigger: str) -> int:
        return self._counts.get(trigger, 0)

    async def add_letter(self, letter: DeadLetter) -> None:
        """Write the letter and return when it is on disk.  A second letter of the same change replaces the first."""
        writing = dead_letters.writing(letter)
        is_new = not await self._tables.has(DEAD_LETTERS_TABLE, writing.row)
        await self._tables.write_mutation(DEAD_LETTERS_TABLE, writing)
        self._count(letter.trigger, 1 if is_new else 0)

    async def found(self, name: str, limit: int) -> list[DeadLetter]:
        """Return the oldest ``limit`` letters, without their changes, of one trigger or with an empty name of all.

        Returns at most LETTERS_PER_CALL letters and stops at LISTED_BYTES, since the answer is built in memory.
        """
        taken: list[DeadLetter] = []
        size_bytes = 0
        async for letter in self._all_of(name, min(limit, LETTERS_PER_CALL)):
            taken.append(letter)
            size_bytes += len(letter.error) + len(letter.output) + len(letter.row)
            if size_bytes >= LISTED_BYTES:
                break
        return taken

    async def _all_of(self, name: str, limit: int = 0) -> AsyncIterator[DeadLetter]:
        """Yield the letters of one trigger, oldest first, or of all if ``name`` is empty; a ``limit`` of 0 is none."""
        span, columns = dead_letters.rows_of(name), [dead_letters.LETTER_COLUMN]
        async for row, cells in self._tables.rows(DEAD_LETTERS_TABLE, *span, limit, columns):
            letter = _readable(row, cells)
            if letter is not None:
                yield letter

    async def letters_with_changes(self, name: str, row: bytes, limit: int) -> list[DeadLetter]:
        """Return at most LETTERS_WITH_CHANGES letters of one trigger with their changes; an empty row means any row."""
        found = (one async for one in self._whole(name, row))
        taken: list[DeadLetter] = []
        async for letter in found:
            taken.append(letter)
            if len(taken) >= min(limit, LETTERS_WITH_CHANGES):
                break
        return taken

    async def _whole(self, name: str, row: bytes) -> AsyncIterator[DeadLetter]:
        """Yield letters with their changes, one at a time.

        Letters written since the call began are left out: a retried change may become a dead letter again at once.
        """
        until_ms = int(time.time() * 1_000)
        async for letter in self._all_of(name):
            if (row and letter.row != row) or letter.timestamp_ms > until_ms:
                continue
            key = dead_letters.letter_row(letter.trigger, letter.sequence)
            async for _, cells in self._tables.rows(DEAD_LETTERS_TABLE, key, key + b"\x00", 1):
                whole = _readable(key, cells)
                if whole is not None:
                    yield whole

    # --- what becomes of them ------------------------------------------------------------------------

    async def retry(self, of: Registration, row: bytes, *, as_it_was: bool = False) -> int:
        """Deliver a trigger's dead letters again, with the row as it is now or as the change left it.

        Returns the number of letters delivered.  A letter is removed once its change is in the log again.  Raises
        TriggerError if letters cannot be delivered; these letters stay.
        """
        name, table = of.name, of.table
        taken, stay = 0, Counter[str]()
        async with self._one_retry_at_a_time:
            async for letter in self._whole(name, row):
                lack = _lack(letter, of) if as_it_was else ""
                if letter.table != table:  # an earlier trigger of the name followed it
                    stay[f"are of another table, {letter.table}; skip them"] += 1
                elif lack:
                    stay[lack] += 1
                else:
                    again = _again(letter) if as_it_was else ChangeRecord(letter.row, 0, (), (), name)
                    await self._log_wherever(table, again)
                    await self._forget(letter)
                    taken += 1
        if stay:
            left = ", and ".join(f"{count} dead letters of trigger {name} {why}" for why, count in stay.items())
            raise TriggerError(f"{left}; {taken} others are tried again")
        return taken

    async def _log_wherever(self, table: str, record: ChangeRecord) -> None:
        try:
            await self.log_again(table, record)
        except RegionNotLocal:
            if self.log_again_remotely is None:
                raise
            await self.log_again_remotely(table, record)

    async def skip(self, name: str, row: bytes) -> int:
        """Remove the letters of one row, or of all rows if ``row`` is empty, without delivery; return their number."""
        gone = 0
        async with self._one_retry_at_a_time:
            async for letter in self._all_of(name):
                if not row or letter.row == row:
                    await self._forget(letter)
                    gone += 1
        return gone

    async def _forget(self, letter: DeadLetter) -> None:
        await self._tables.write_mutation(DEAD_LETTERS_TABLE, dead_letters.removing(letter))
        self._count(letter.trigger, -1)

    async def log_again(self, table: str, record: ChangeRecord) -> None:
        """Log the change for the trigger that the record names; return when the record is on disk.

        A record without a stamp stands for its row as it is now.  Raises RegionNotLocal if another server owns the row.
        """
        served = self._access.table(table.encode())
        logged = await retry_until_ready(partial(self._log_again, served, record))
        await asyncio.shield(logged)

    def _log_again(self, served: ServedTable, record: ChangeRecord) -> asyncio.Future[None]:
        region = self._access.region_for(self._access.again(served), record.row)
        if not record.stamp:
            spec = ReadSpec(projection(region.table, ()))
            newest = latest_timestamp(region.store, record.row, fetch(region, record.row, spec), region.now_ms)
            record = record.but(timestamp=newest or region.now_ms)
        return region.log_records([record], {})


def _readable(row: bytes, cells: Mapping[bytes, bytes]) -> DeadLetter | None:
    """Decode a letter; return None for a row that holds no letter, as clients may write anything into the table."""
    try:
        letter = dead_letters.from_cells(cells)
        if dead_letters.letter_row(letter.trigger, letter.sequence) != row:
            raise DamagedData("a dead letter in a row of another one")
        return letter
    except DamagedData as error:
        _log.warning("row %s of %s is passed over: %s", abbreviate(row), DEAD_LETTERS_TABLE, error.text)
        return None


def _lack(letter: DeadLetter, of: Registration) -> str:
    """Return which data the letter lacks to deliver its change as it was; an empty text if it lacks none."""
    change = letter.change
    if change is None or not change.stamp:
        return _NO_CHANGE
    if not change.entries:
        return _A_ROW
    wanted = of.scope().images
    lacks_touched = letter.lacks_images and of.before
    return _NO_IMAGES if lacks_touched or (wanted and not covers(change.images or {}, wanted)) else ""


def _again(letter: DeadLetter) -> ChangeRecord:
    """Return the letter's change for its trigger alone, with 0 hops: an operator's retry begins a new chain."""
    assert letter.change is not None, "a letter without one lacks it"
    return letter.change.but(only_for=letter.trigger, hops=0, more_follows=False)
