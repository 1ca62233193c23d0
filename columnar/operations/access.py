"""Tables and the regions of their rows, for every operation: the one place that finds a region and admits a call.

    find       a table by its name, if requests may use it; the region of a row, which is opened if need be
    admit      a call if its table's quota is not used up; a write if its region's change log has room
    wait       for the fsync before an acknowledgement, and for the delay that a nearly full change log requires
    charge     the rows and bytes that a call read or wrote to its table's quota

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from columnar.runtime.long_waits import LongWaits
from columnar.runtime.loop_budget import IsDisconnected
from columnar.wire import detect
from columnar.wire.service import Later


class Caller(Protocol):
    """The connection for which an operation is done, as the operation sees it."""

    @property
    def connection_id(self) -> int: ...

    @property
    def protocol(self) -> detect.Protocol: ...

    @property
    def has_gone(self) -> IsDisconnected: ...

    @property
    def user(self) -> str: ...


class RemoteCalls(Protocol):
    """Calls on rows of several servers; a standalone has none (``operations.distributed_calls``)."""

    def rows(self, caller: Caller, served: ServedTable, query: Any, answer: Any) -> Awaitable[Any]:
        """Return the answer to ``reads.RowQuery``."""

    def writes(
        self, is_disconnected: IsDisconnected, writes: Sequence[tuple[ServedTable, RowWrite]], answer: Any
    ) -> Awaitable[Any]:
        """Write rows that have been checked; several steps of one row are done in their order in ``writes``."""

    def replace_cell(self, request: Any) -> Awaitable[bool]:
        """Carry out ``peer_requests.ReplaceCell``; return whether it was done.  Raises OutcomeUnknown."""

    def scan_step(
        self, scanner: Any, found: Any, count: int, reserve_step: Callable[[], Awaitable[None]]
    ) -> Awaitable[None]:
        """Do the next step of a ``scanners.Scanner`` in a region that a different server owns."""

    def ingest(self, served: ServedTable, incoming: Any) -> Awaitable[bool]:
        """Ingest ``regions.write.ingestion.IncomingRows`` into a region that a different server owns."""

    def delete_rows(self, served: ServedTable, start: bytes, stop: bytes) -> Awaitable[Any]:
        """Delete rows of a different server's regions; return ``row_deletes.Deleted``, perhaps for a part of them."""


class TableAccess:
    def __init__(
        self,
        server: RegionServer,
        now_s: Callable[[], float] = monotonic,
        reply_memory: ReplyMemoryBudget | None = None,
    ) -> None:
        """``reply_memory`` is the budget for replies of the calls; None means that of ``server``."""
        self._server = server
        self._now_s = now_s
        self._tables: Tables = server.tables
        self.reply_memory: ReplyMemoryBudget = server.reply_memory if reply_memory is None else reply_memory
        self.waits = LongWaits()  # of the calls' clients
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
        """Return the table.

        Raises TableNotFound, TableNotEnabled, or IllegalArgument if ``name`` cannot be a table's name.
        """
        return self._tables.enabled(name)

    def meant(self, name: bytes | None) -> ServedTable:
        """Return the table as ``table`` does, by a name from a client, which may be an alias."""
        return self._tables.meant_now(name)

    def local_files(self, files: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Return lists of paths that are relative to the data folder as paths on this machine, with the same keys."""
        local_path = self._server.folders.local_path
        return {key: [local_path(path) for path in paths] for key, paths in files.items()}

    def find(self, name: bytes | None) -> ServedTable | None:
        return self._tables.find(name)

    def again(self, served: ServedTable) -> ServedTable:
        """Return the table as it is now, to a caller that has waited; raises the errors of ``table``."""
        return self._tables.enabled(served.schema.name.encode())

    # --- quotas ------------------------------------------------------------------------------------

    def admit(self, served: ServedTable, *, writes: bool) -> None:
        """Admit a call on a table that ``is_throttled``, at its beginning; raises Throttled if the quota is used up."""
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
        """Return the open region of ``row``.  Raises RegionUnavailable, RegionNotLocal or NotServingRegion."""
        return self._server.open_region(served, served.holding(row))

    async def opened(self, served: ServedTable, info: RegionInfo) -> Region:
        """Wait until the region is open, and return it; raises the errors of ``open_region`` and ``again``."""
        return await retry_until_ready(lambda: self.open_region(self.again(served), info))

    def open_region(self, served: ServedTable, info: RegionInfo) -> Region:
        """Return the open region; raises the errors of ``region_for``."""
        return self._server.open_region(served, info)

    def open_regions(self, table: bytes) -> list[Region]:
        """Return the table's regions that are open at this server."""
        return self._server.open_regions_of(table.decode())

    def writable(self, served: ServedTable, row: bytes) -> Region:
        """Return the region as ``region_for`` does; raises RegionTooBusy if the region's change log is full."""
        region = self._server.open_region(served, served.holding(row))
        if region.refuses_writes:
            raise RegionTooBusy(
                f"the change log of region {region.info.encoded} of {region.info.table} is full: {region.log_obstacle}"
            )
        return region

    def has_moved(self, served: ServedTable, row: bytes, region: Region) -> bool:
        """Tell whether a closed region has lost ``row``, to another server or to a region that takes its place."""
        info = served.holding(row)
        return info.region_id != region.info.region_id or not self._server.owns(info)

    def acknowledgement(self, region: Region, applied: Applied) -> Any:
        """Return a future for the fsync, and the delay of a nearly full log; None if the answer need not wait."""
        if applied.durable is None and applied.failed_condition is None:
            self._server.async_writes.happened()
        if region.write_delay_s > 0:
            return _delay_future(applied.durable, region.write_delay_s)
        return applied.durable


def _bytes_of(write: RowWrite) -> int:
    """Return the bytes of row key, columns and values, plus the overhead of each cell."""
    if isinstance(write, RowPuts):
        cells = sum(len(family) + len(qualifier) for family, qualifier in write.columns) + sum(map(len, write.values))
        return len(write.row) + cells + len(write.values) * CELL_OVERHEAD_BYTES
    size = len(write.row)
    for send in write.sends:
        size += send.size_bytes
    for operation in write.operations:
        if isinstance(operation, Contribute):
            size += operation.size_bytes + CELL_OVERHEAD_BYTES * (2 + len(operation.totals))
            continue
        value = getattr(operation, "value", b"")
        size += len(operation.family) + len(operation.qualifier or b"") + len(value) + CELL_OVERHEAD_BYTES
    return size


# --- answers that wait -----------------------------------------------------------------------------


def _delay_future(future: asyncio.Future[None] | None, delay_s: float) -> asyncio.Future[None]:
    """Return a future that ends like ``future``, but not before ``delay_s`` have passed: backpressure on writers."""
    loop = asyncio.get_running_loop()
    delayed: asyncio.Future[None] = loop.create_future()

    def release(done: asyncio.Future[None] | None) -> None:
        failure = done.exception() if done is not None else None
        if failure is not None:
            delayed.set_exception(failure)
            delayed.exception()  # so that asyncio does not report it: the caller may have gone
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
    """Return ``result``, or Later if ``future`` is not done or has failed.

    ``future`` may also be a coroutine that waits for several fsyncs.
    """
    if future is None or (isinstance(future, asyncio.Future) and future.done() and not future.exception()):
        return result
    return Later(future, result)


async def _all(futures: list[Any]) -> None:
    for future in futures:
        await asyncio.shield(future)  # other callers wait for it, too, so it must not be cancelled


def joined(waits: list[Any]) -> Any:
    """Join several futures into one awaitable, without duplicates; return None if there is no future."""
    distinct = list({id(future): future for future in waits if future is not None}.values())
    if not distinct:
        return None
    return distinct[0] if len(distinct) == 1 else _all(distinct)


def after_all(waits: list[Any], result: Any) -> Any:
    future = joined(waits)
    return result if future is None else Later(future, result)


# --- retries of a call -------------------------------------------------------------------------------


async def retried(call: Callable[[], Any], unavailable: RegionUnavailable, is_disconnected: IsDisconnected) -> Any:
    """Return the result of ``call``, retried until all its regions are available.

    Raises ClientGone, without a retry, if the client has disconnected.
    """
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
