"""The store's queues as the actions of SQS use them: by the Thrift methods of queues, on whatever server they are.

The state of a queue, which each send and receive must know, is one row.  The row is kept for KNOWN_S: a change through
another server is seen so much later.  SQS itself allows 60 s for that.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from columnar.model.queue_place import FAMILY, QUEUES_TABLE
from columnar.queues import keys
from columnar.queues.keys import Settings
from columnar.sqs.errors import SqsError, no_queue
from columnar.sqs.queue_attributes import KnownQueue, OwnAttributes, pack_cell, unpack_cell
from columnar.wire.idl import columnar, hbase
from columnar.wire.local_calls import CallFailed, LocalService

_log = logging.getLogger(__name__)

KNOWN_S: Final = 1.0
KNOWN_QUEUES: Final = 10_000
LISTED_AT_ONCE: Final = 100
LOGGED_BYTES: Final = 500  # of a cell that cannot be read
CHANGES: Final = 20  # attempts to change attributes that others change, too
_TABLE: Final = QUEUES_TABLE.encode()
_ATTRIBUTES: Final = b"a"  # qualifier of the cell
_NO_TABLE: Final = "TableNotFoundException"


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a request: for the log, the rights, and so that a wait ends with the client."""

    peer: str
    user: str
    has_gone: Callable[[], bool]


class StoreQueues:
    def __init__(self, service: LocalService, now_s: Callable[[], float] = time.time) -> None:
        self._service = service
        self._known: OrderedDict[bytes, tuple[float, KnownQueue]] = OrderedDict()  # oldest first, with its time
        self._now_s = now_s

    # --- what is known of a queue ------------------------------------------------------------------------

    async def known(self, client: Client, name: bytes) -> KnownQueue:
        """Return the queue, as it was within the last KNOWN_S.  Raises SqsError if it is not there."""
        found = self._known.get(name)
        if found is not None and asyncio.get_running_loop().time() - found[0] < KNOWN_S:
            return found[1]
        queue = await self.find_queue(client, name)
        if queue is None:
            raise no_queue()
        return queue

    async def find_queue(self, client: Client, name: bytes) -> KnownQueue | None:
        """Return the queue as it is now, or None if there is none of the name."""
        try:
            rows = await self.call_store(client, "getRow", _TABLE, keys.state_row(name), {})
        except SqsError as error:
            if error.name == "QueueDoesNotExist":
                return None
            raise
        cells = {column.partition(b":")[2]: cell.value for row in rows for column, cell in row.columns.items()}
        self.forget_queue(name)
        if not cells:
            return None
        settings = cells.get(keys.SETTINGS)
        cell = cells.get(_ATTRIBUTES)
        queue = KnownQueue(name, keys.unpack_settings(settings) if settings else Settings(), unpack_cell(cell), cell)
        self._known[name] = asyncio.get_running_loop().time(), queue
        while len(self._known) > KNOWN_QUEUES:
            self._known.popitem(last=False)
        return queue

    def forget_queue(self, name: bytes) -> None:
        """Read the queue again when it is asked for next."""
        self._known.pop(name, None)

    async def change_attributes(
        self, client: Client, name: bytes, change: Callable[[KnownQueue | None], OwnAttributes | None]
    ) -> None:
        """Write what ``change`` makes of the queue's attributes; None: they stay.  Raises what ``change`` raises."""
        for _ in range(CHANGES):
            queue = await self.find_queue(client, name)
            if queue is not None and queue.cell and queue.attributes == OwnAttributes():
                _log.warning("the attributes of queue %s cannot be read and are made anew: %r", name.decode("latin-1"),
                             queue.cell[:LOGGED_BYTES])  # fmt: skip
            changed = change(queue)
            if changed is None or await self._replace_cell(client, name, queue, pack_cell(changed)):
                self.forget_queue(name)
                return
        raise SqsError("RequestThrottled", "others change the attributes of this queue all the time; try again")

    async def _replace_cell(self, client: Client, name: bytes, queue: KnownQueue | None, cell: bytes) -> bool:
        column = FAMILY + b":" + _ATTRIBUTES
        old = queue.cell if queue is not None else None
        op = columnar.CompareOp.ABSENT if old is None else columnar.CompareOp.EQUAL
        condition = columnar.Condition(column=column, op=op, value=old)
        operation = columnar.RowOperation(kind=columnar.OperationKind.PUT, column=column, value=cell)
        row = keys.state_row(name)
        done = await self.call_prepared(client, "columnarCheckAndMutate", _TABLE, row, [condition], [operation], {})
        return bool(done.applied)

    async def list_names(self, client: Client, prefix: bytes, after: bytes, most: int) -> list[bytes]:
        """Return names of queues above ``after``, ascending.  Costs a few calls for each."""
        found: list[bytes] = []
        start = max(prefix, after + b"\x01" if after else b"")  # behind the rows of the queue ``after``
        while len(found) < most:
            row = await self._first_row(client, start)
            name = row.partition(b"\x00")[0]
            if not row or not name.startswith(prefix):
                break
            found.append(name)
            start = name + b"\x01"
        return found

    async def list_sources(self, client: Client, target: bytes) -> list[bytes]:
        """Return the queues whose dead messages go to ``target``.  Reads the state of every queue."""
        found: list[bytes] = []
        after = b""
        while names := await self.list_names(client, b"", after, LISTED_AT_ONCE):
            for name in names:
                queue = await self.find_queue(client, name)
                if queue is not None and queue.settings.dead_to == target:
                    found.append(name)
            after = names[-1]
        return found

    async def _first_row(self, client: Client, start: bytes) -> bytes:
        """Return the first row from ``start`` on, or an empty one if there is none."""
        scan = hbase.TScan(startRow=start, caching=1, filterString=b"KeyOnlyFilter()")
        try:
            scanner = await self.call_store(client, "scannerOpenWithScan", _TABLE, scan, {})
        except SqsError as error:
            if error.name == "QueueDoesNotExist":
                return b""
            raise
        try:
            rows = await self.call_store(client, "scannerGet", scanner)
        finally:
            await self.call_store(client, "scannerClose", scanner)
        return bytes(rows[0].row) if rows else b""

    @property
    def now_s(self) -> int:
        return int(self._now_s())

    # --- calls -------------------------------------------------------------------------------------------

    async def call_store(self, client: Client, method: str, *args: Any) -> Any:
        """Return the result of a method.  Raises SqsError."""
        try:
            return await self._service.call_method(client.peer, client.user, client.has_gone, method, *args)
        except CallFailed as failed:
            raise _as_sqs(failed) from None

    async def call_prepared(self, client: Client, method: str, *args: Any) -> Any:
        """Do ``call_store``, and make the table of queues if this is their first use in the store."""
        try:
            return await self._service.call_method(client.peer, client.user, client.has_gone, method, *args)
        except CallFailed as failed:
            if failed.kind != _NO_TABLE:
                raise _as_sqs(failed) from None
        await self.call_store(client, "columnarQueuePrepare")
        return await self.call_store(client, method, *args)

    async def push(self, client: Client, name: bytes, messages: Sequence[Any]) -> list[Any]:
        found: list[Any] = await self.call_store(client, "columnarQueuePush", name, list(messages))
        return found

    async def pop(self, client: Client, name: bytes, count: int, wait_ms: int, lease_ms: int) -> list[Any]:
        found: list[Any] = await self.call_store(client, "columnarQueuePop", name, count, wait_ms, lease_ms)
        return found

    async def settle_leases(
        self, client: Client, name: bytes, receipts: Sequence[bytes], what: str, ms: int = 0
    ) -> list[bool]:
        """Return for each receipt whether its lease lasted, as ``client.Queue.settle`` does."""
        found: list[bool] = await self.call_store(client, "columnarQueueSettle", name, list(receipts), what, ms, b"")
        return found


_ERRORS: Final = {
    _NO_TABLE: ("QueueDoesNotExist", "The specified queue does not exist."),
    "RegionTooBusyException": ("RequestThrottled", ""),
    "AccessDeniedException": ("AccessDenied", ""),
    "RpcThrottlingException": ("RequestThrottled", ""),
    "IllegalArgumentException": ("InvalidParameterValue", ""),
    "DoNotRetryIOException": ("InvalidParameterValue", ""),
}


def _as_sqs(failed: CallFailed) -> SqsError:
    """Return the error of the store as one of SQS."""
    if failed.kind in _ERRORS:
        name, text = _ERRORS[failed.kind]
        return SqsError(name, text or failed.text)
    if failed.kind:
        return SqsError("ServiceUnavailable", failed.text)
    return SqsError("InternalError", failed.text)
