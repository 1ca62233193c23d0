"""Tables and the regions of their rows, for every operation: the one place that finds a region and admits a call.

    found      the table by its name, if requests may use it; the region of a row, opened if need be
    admitted   a call only while its table's quota is not used up; a write only if its region's change log has room
    waited     an acknowledgement comes after the fsync, and after the delay that a nearly full log requires
    charged    the rows and bytes that a call read or wrote, to its table's quota

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any, Protocol

from columnar.errors import ClientGone, RegionNotLocal, RegionTooBusy, RegionUnavailable
from columnar.model.mutation import Contribute, RowPuts, RowWrite
from columnar.model.region_info import RegionInfo
from columnar.model.throttle_limits import limits_of
from columnar.operations.throttle import Throttle
from columnar.regions.life.retry import retry_until_ready, wait_available
from columnar.regions.read.found_rows import CELL_OVERHEAD_BYTES
from columnar.regions.read.reply_memory import ReplyMemoryBudget
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable, Tables
from columnar.regions.write.applied import Applied
from columnar.runtime.loop_budget import IsDisconnected
from columnar.wire import detect
from columnar.wire.service import Later


class Caller(Protocol):
    """The connection that an operation is done for, as far as an operation needs to know it."""

    @property
    def connection_id(self) -> int: ...

    @property
    def protocol(self) -> detect.Protocol: ...

    @property
    def has_gone(self) -> IsDisconnected: ...


class RemoteCalls(Protocol):
    """Calls on rows of several servers; a standalone has none (``operations.distributed_calls``)."""

    def rows(self, caller: Caller, served: ServedTable, query: Any, answer: Any) -> Awaitable[Any]:
        """Return the answer to ``reads.RowQuery``."""

    def writes(
        self, is_disconnected: IsDisconnected, writes: Sequence[tuple[ServedTable, RowWrite]], answer: Any
    ) -> Awaitable[Any]:
        """Write rows that have been checked, in the order in which the steps of one row are done."""

    def scan_step(
        self, scanner: Any, found: Any, count: int, reserve_step: Callable[[], Awaitable[None]]
    ) -> Awaitable[None]:
        """Do the next step of a ``scanners.Scanner`` whose region is another server's."""

    def ingest(self, served: ServedTable, incoming: Any) -> Awaitable[bool]:
        """Ingest ``regions.write.ingestion.IncomingRows`` into a region of another server."""

    def delete_rows(self, served: ServedTable, start: bytes, stop: bytes) -> Awaitable[Any]:
        """Delete rows of another server's regions; returns ``row_deletes.Deleted``, perhaps of a part of the range."""


class TableAccess:
    def __init__(
        self,
        server: RegionServer,
        now_s: Callable[[], float] = monotonic,
        reply_memory: ReplyMemoryBudget | None = None,
    ) -> None:
        """``reply_memory``: of the calls; None: the server's."""
        self._server = server
        self._now_s = now_s
        self._tables: Tables = server.tables
        self.reply_memory: ReplyMemoryBudget = server.reply_memory if reply_memory is None else reply_memory
        self.others: RemoteCalls | None = None  # calls to other servers; None: a standalone

    def connect_others(self, others: RemoteCalls) -> None:
        """Send calls for rows of other servers by ``others`` from now on."""
        self.others = others

    def remote(self, error: RegionNotLocal) -> RemoteCalls:
        """Return the calls to other servers, after ``error``; raise ``error`` if there are no other servers."""
        if self.others is None:
            raise error
        return self.others

    def table(self, name: bytes | None) -> ServedTable:
        """Return the table.  TableNotFound, TableNotEnabled; IllegalArgument if ``name`` cannot be a table's name."""
        return self._tables.enabled(name)

    def meant(self, name: bytes | None) -> ServedTable:
        """As ``table``, of a name that a client gave: it may be an alias."""
        return self._tables.meant_now(name)

    def find(self, name: bytes | None) -> ServedTable | None:
        return self._tables.find(name)

    def again(self, served: ServedTable) -> ServedTable:
        """Return the table as it is now, to a caller that has waited; errors as of ``table``."""
        return self._tables.enabled(served.schema.name.encode())

    # --- quotas ------------------------------------------------------------------------------------

    def admit(self, served: ServedTable, *, writes: bool) -> None:
        """Admit a call on a table that ``is_throttled``, before it begins.  Throttled if the quota is used up."""
        now_s = self._now_s()
        self._throttle_of(served, now_s).admit(writes, now_s)

    def charge(self, served: ServedTable, requests: int, size_bytes: int, *, writes: bool) -> None:
        """Charge the quota after a call, or a step of it, on a table that ``is_throttled``."""
        self._throttle_of(served, self._now_s()).charge(writes, requests, size_bytes)

    def _throttle_of(self, served: ServedTable, now_s: float) -> Throttle:
        throttle: Throttle | None = served.throttle
        if throttle is None:
            schema = served.schema
            throttle = Throttle(schema.name, limits_of(schema.throttle), now_s)
            served.keep_throttle(throttle)
        return throttle

    def charge_writes(self, served: ServedTable, writes: Sequence[RowWrite]) -> None:
        self.charge(served, len(writes), sum(_bytes_of(write) for write in writes), writes=True)

    # --- regions -----------------------------------------------------------------------------------

    def region_for(self, served: ServedTable, row: bytes) -> Region:
        """Return the open region of ``row``.  RegionUnavailable, RegionNotLocal, NotServingRegion."""
        return self._server.open_region(served, served.holding(row))

    async def opened(self, served: ServedTable, info: RegionInfo) -> Region:
        """Wait for ``open_region`` of the table as it is then; errors as of ``again``, too."""
        return await retry_until_ready(lambda: self.open_region(self.again(served), info))

    def open_region(self, served: ServedTable, info: RegionInfo) -> Region:
        """Return the open region; errors as of ``region_for``."""
        return self._server.open_region(served, info)

    def writable(self, served: ServedTable, row: bytes) -> Region:
        """Return the region as ``region_for`` does; RegionTooBusy if the region's change log is full."""
        region = self._server.open_region(served, served.holding(row))
        if region.refuses_writes:
            raise RegionTooBusy(
                f"the change log of region {region.info.encoded} of {region.info.table} is full: {region.log_obstacle}"
            )
        return region

    def acknowledgement(self, region: Region, applied: Applied) -> Any:
        """Return the future that the answer waits for, or None: the fsync, and the delay of a nearly full log."""
        if applied.durable is None and applied.failed_condition is None:
            self._server.async_writes.happened()
        if region.write_delay_s > 0:
            return _delay_future(applied.durable, region.write_delay_s)
        return applied.durable


def _bytes_of(write: RowWrite) -> int:
    """Return the bytes of row key, columns and values, and the overhead of each cell."""
    if isinstance(write, RowPuts):
        cells = sum(len(family) + len(qualifier) for family, qualifier in write.columns) + sum(map(len, write.values))
        return len(write.row) + cells + len(write.values) * CELL_OVERHEAD_BYTES
    size = len(write.row)
    for operation in write.operations:
        if isinstance(operation, Contribute):
            size += operation.size_bytes + CELL_OVERHEAD_BYTES * (2 + len(operation.totals))
            continue
        value = getattr(operation, "value", b"")
        size += len(operation.family) + len(operation.qualifier or b"") + len(value) + CELL_OVERHEAD_BYTES
    return size


# --- answers that wait -----------------------------------------------------------------------------


def _delay_future(future: asyncio.Future[None] | None, delay_s: float) -> asyncio.Future[None]:
    """Return a future that resolves as ``future``, but not before ``delay_s`` from now: backpressure on writers."""
    loop = asyncio.get_running_loop()
    delayed: asyncio.Future[None] = loop.create_future()

    def release(done: asyncio.Future[None] | None) -> None:
        failure = done.exception() if done is not None else None
        if failure is not None:
            delayed.set_exception(failure)
            delayed.exception()  # seen: its caller may have gone
        else:
            delayed.set_result(None)

    def waited() -> None:
        if future is None:
            release(None)
        else:
            future.add_done_callback(release)

    loop.call_later(delay_s, waited)
    return delayed


def after(future: Any, result: Any) -> Any:
    """Return ``result``, or Later if ``future`` is not done.  ``future`` may be a coroutine: several fsyncs."""
    if future is None or (isinstance(future, asyncio.Future) and future.done() and not future.exception()):
        return result
    return Later(future, result)


async def _all(futures: list[Any]) -> None:
    for future in futures:
        await asyncio.shield(future)  # shared with other waiters: it must not be cancelled


def joined(waits: list[Any]) -> Any:
    """Join several futures into one awaitable, or None; the same future is not waited for twice."""
    distinct = list({id(future): future for future in waits if future is not None}.values())
    if not distinct:
        return None
    return distinct[0] if len(distinct) == 1 else _all(distinct)


def after_all(waits: list[Any], result: Any) -> Any:
    future = joined(waits)
    return result if future is None else Later(future, result)


# --- retries of a call -------------------------------------------------------------------------------


async def retried(call: Callable[[], Any], unavailable: RegionUnavailable, is_disconnected: IsDisconnected) -> Any:
    """Return the result of ``call``, retried until all its regions are available.  ClientGone: it was not retried."""
    while True:
        await wait_available(unavailable)
        if is_disconnected():
            raise ClientGone
        try:
            result = call()
        except RegionUnavailable as another:
            unavailable = another
            continue
        if type(result) is Later:
            await asyncio.shield(result.future)
            return result.result
        return await result if hasattr(result, "__await__") else result
