"""Desks of rows: what a server has in memory for rows that it owns, made of the rows when a call first needs it.

A desk is of one open region.  When the region closes, or the desk says that it is not usable any more, the next call
makes a new one.  Calls find the region again after each wait, so they follow splits, and end with RegionNotLocal when
the row has gone to another server.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar

from columnar.errors import RegionUnavailable
from columnar.operations.access import Caller, TableAccess
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.region import Region
from columnar.runtime.loop_budget import IsDisconnected
from columnar.storage.api import StoreBusy
from columnar.wire.service import Later

DESKS_BYTES: Final = 64 * 1024 * 1024  # of all desks of one kind together; others are made of their rows again


class RowDesk(Protocol):
    @property
    def region(self) -> Region: ...

    @property
    def is_usable(self) -> bool: ...

    @property
    def is_idle(self) -> bool: ...

    @property
    def size_bytes(self) -> int: ...

    async def load_rows(self) -> None: ...


D = TypeVar("D", bound=RowDesk)


class RowDesks(Generic[D]):
    def __init__(
        self,
        access: TableAccess,
        table: bytes,
        make: Callable[[Region, bytes], D],
        *,
        row_of: Callable[[bytes], bytes] | None = None,
        opened: Callable[[D], None] | None = None,
        forgotten: Callable[[D], None] | None = None,
    ) -> None:
        """``make`` makes the desk of a key, which is loaded afterwards; then ``opened`` is called.

        ``row_of`` returns the row of a key, which is the key without it.  ``forgotten`` is called when a desk is out of
        memory, or another one of its key follows: what still has the desk must not write any more.
        """
        self._access = access
        self._table = table
        self._make = make
        self._row_of = row_of
        self._on_opened = opened
        self._on_forgotten = forgotten
        self._desks: OrderedDict[bytes, D] = OrderedDict()  # least used first
        self._openings: dict[bytes, asyncio.Task[D]] = {}
        self._bytes: dict[bytes, int] = {}  # memory of each desk at its last use
        self._counted_bytes = 0  # of all of them

    def usable_desks(self) -> list[D]:
        """Return the desks in memory of rows that are this server's."""
        return [desk for desk in self._desks.values() if desk.is_usable]

    def in_memory(self, key: bytes) -> D | None:
        """Return the desk of a key, usable or not; None if there is none."""
        return self._desks.get(key)

    def closed_desks(self) -> list[D]:
        """Return the desks in memory whose regions have closed."""
        return [desk for desk in self._desks.values() if not desk.region.is_open]

    def run(self, caller: Caller, key: bytes, step: Callable[[D], Any]) -> Any:
        """Return ``step`` of the key's desk; its result may be Later.  Raises RegionNotLocal."""
        try:
            desk = self._find(self._region(key), key)
            if desk is not None:
                return step(desk)
        except (RegionUnavailable, StoreBusy):
            pass
        return self._run_later(caller, key, step)

    async def _run_later(self, caller: Caller, key: bytes, step: Callable[[D], Any]) -> Any:
        result = await self.step_when_ready(caller.has_gone, key, step)
        if type(result) is Later:
            await asyncio.shield(result.future)
            return result.result
        return await result if hasattr(result, "__await__") else result

    async def step_when_ready(self, has_gone: IsDisconnected, key: bytes, step: Callable[[D], Any]) -> Any:
        """Return ``step`` of the desk as soon as region and store take it: the calls on one store take turns."""
        while True:
            await self.open_desk(has_gone, key)
            done = await retry_until_ready(partial(self._try_step, key, step), has_gone)
            if done is not None:
                return done[0]

    def _try_step(self, key: bytes, step: Callable[[D], Any]) -> tuple[Any] | None:
        """Return the result of ``step``; None if there is no usable desk any more."""
        desk = self._find(self._region(key), key)
        return None if desk is None else (step(desk),)

    async def open_desk(self, has_gone: IsDisconnected, key: bytes) -> D:
        """Return the key's desk as soon as its region is open and the desk is loaded."""
        while True:
            region = await retry_until_ready(partial(self._region, key), has_gone)
            desk = self._find(region, key)
            if desk is not None:
                return desk
            opening = self._openings.get(key)
            if opening is None:
                opening = self._openings[key] = asyncio.ensure_future(self._open(region, key))
            await asyncio.shield(opening)

    def _region(self, key: bytes) -> Region:
        row = key if self._row_of is None else self._row_of(key)
        return self._access.writable(self._access.table(self._table), row)

    def _find(self, region: Region, key: bytes) -> D | None:
        desk = self._desks.get(key)
        if desk is None or desk.region is not region or not desk.is_usable:
            return None
        self._desks.move_to_end(key)
        size_bytes = desk.size_bytes
        self._counted_bytes += size_bytes - self._bytes.get(key, 0)
        self._bytes[key] = size_bytes
        if self._counted_bytes > DESKS_BYTES:
            self._forget_some()
        return desk

    async def _open(self, region: Region, key: bytes) -> D:
        try:
            desk = self._make(region, key)
            with region.work.kept_up():
                await desk.load_rows()
            self._forget(key)
            self._desks[key] = desk
            if self._on_opened is not None:
                self._on_opened(desk)
            return desk
        finally:
            del self._openings[key]

    def _forget_some(self) -> None:
        """Forget the desks that were not used for the longest time, but not the one that is used now."""
        keys, surplus_bytes = list[bytes](), self._counted_bytes - DESKS_BYTES
        for key, desk in islice(self._desks.items(), len(self._desks) - 1):
            if desk.is_idle or not desk.is_usable:
                keys.append(key)
                surplus_bytes -= self._bytes.get(key, 0)
            if surplus_bytes <= 0:
                break
        for key in keys:
            self._forget(key)

    def _forget(self, key: bytes) -> None:
        desk = self._desks.pop(key, None)
        if desk is not None:
            self._counted_bytes -= self._bytes.pop(key, 0)
            if self._on_forgotten is not None:
                self._on_forgotten(desk)
