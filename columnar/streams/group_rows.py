"""The states of groups of readers, as rows of ``columnar:groups``: read, and changed if nobody else changed them.

Any server changes any group: a change is a compare-and-set of one cell at the owner of its row, and is computed again
if another change came first.  Within a server the changes of one group wait for each other, so most succeed at once.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from columnar.cluster.peer_requests import ReplaceCell
from columnar.errors import RegionTooBusy
from columnar.model.reader_groups import GROUPS_OF_TABLE
from columnar.model.system_tables import GROUPS_TABLE
from columnar.operations.system_tables import SystemTables
from columnar.streams.group_bytes import INFO, STATE, group_of, pack_group, row_of, rows_of, unpack_group
from columnar.streams.groups import Group

CHANGE_TRIES: Final = 100  # of one change, against other servers' changes of the same group
LONGEST_PAUSE_S: Final = 0.2
_COLUMN: Final = INFO + b":" + STATE

T = TypeVar("T")


class GroupRows:
    def __init__(self, tables: SystemTables) -> None:
        self._tables = tables
        self._locks: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        self._waiting: dict[bytes, set[asyncio.Future[None]]] = {}

    async def load(self, table: str, name: str) -> Group | None:
        found = await self._load(row_of(table, name))
        return None if found is None else unpack_group(found)

    async def groups(self, table: str) -> list[tuple[str, Group]]:
        start, stop = rows_of(table)
        rows = self._tables.rows(GROUPS_TABLE, start, stop, GROUPS_OF_TABLE + 1)
        return [(group_of(row), unpack_group(cells[_COLUMN])) async for row, cells in rows]

    async def change(self, table: str, name: str, event: Callable[[Group | None], tuple[Group | None, T]]) -> T:
        """Change the group by ``event``, which gets the present state and returns the next; None: there is no group.

        Returns what ``event`` returned beside the state that was written, and is durable.  ``event`` may be called
        several times; it returns the same object if there is nothing to write.
        """
        row = row_of(table, name)
        lock = self._locks.get(row)
        if lock is None:
            lock = self._locks[row] = asyncio.Lock()
        async with lock:
            for number in range(CHANGE_TRIES):
                before = await self._load(row)
                group = None if before is None else unpack_group(before)
                changed, result = event(group)
                if changed is group:
                    return result
                after = None if changed is None else pack_group(changed)
                if await self._tables.replace_cell(ReplaceCell(GROUPS_TABLE, row, INFO, STATE, before, after)):
                    self._wake(row)
                    return result
                await asyncio.sleep(random.uniform(0, min(LONGEST_PAUSE_S, 0.005 * (number + 1))))
        raise RegionTooBusy(f"group {name} of table {table} is changed by too many servers at once; try again later")

    async def _load(self, row: bytes) -> bytes | None:
        async for _, cells in self._tables.rows(GROUPS_TABLE, row, row + b"\x00", 1):
            return cells.get(_COLUMN)
        return None

    def next_change(self, table: str, name: str) -> asyncio.Future[None]:
        """Return a future that ends with the group's next change by this server; ``forget`` it."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(row_of(table, name), set()).add(future)
        return future

    def forget(self, table: str, name: str, future: asyncio.Future[None]) -> None:
        row = row_of(table, name)
        waiting = self._waiting.get(row)
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                del self._waiting[row]

    def _wake(self, row: bytes) -> None:
        for future in self._waiting.pop(row, ()):
            if not future.done():
                future.set_result(None)
