"""The partitions of this server, the readers that wait for their records, and their retention.  Owned by the loop.

A waiting reader is woken by each change of its partition and by the end of its region.  Every WAIT_SLICE_S it looks
whether its client is still there and whether this server still owns the partition's region.

Retention looks at all partitions of this server's open regions each RETENTION_S, from the first call on topics on.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

from columnar.errors import IllegalArgument, RegionTooBusy, RetryLater
from columnar.model.topic import MOST_WAIT_MS, TOPICS_TABLE, Waited
from columnar.operations.access import Caller, TableAccess, after
from columnar.operations.row_desks import RowDesks
from columnar.regions.region import Region
from columnar.runtime.faults import FAULTS
from columnar.runtime.loop_budget import never_disconnected
from columnar.topics.partition import Partition
from columnar.topics.partition_rows import PartitionRows, first_row
from columnar.wire.service import Later

TOPIC_WAITERS: Final = 10_000  # readers of one server that wait
WAIT_SLICE_S: Final = 1.0
RETENTION_S: Final = 30.0
RETENTION: Final = "retention of topics"

_TABLE: Final = TOPICS_TABLE.encode()


class Partitions:
    def __init__(self, access: TableAccess) -> None:
        self._access = access
        self.waits = access.waits
        self.waits.on_end(self._end_waits)
        self.desks: RowDesks[Partition] = RowDesks(access, _TABLE, self._make)
        self._waiters: dict[bytes, set[asyncio.Future[None]]] = {}
        self.waiting_count = 0
        self._retention: asyncio.Task[int] | None = None

    def _make(self, region: Region, key: bytes) -> Partition:
        region.on_leave.add(self._wake_closed)
        return Partition(region, key, self._access.acknowledgement, partial(self._wake, key))

    # --- readers that wait -------------------------------------------------------------------------------

    def wait_for_bytes(self, caller: Caller, key: bytes, offset: int, least_bytes: int, wait_ms: int) -> Any:
        """Wait until a reader at ``offset`` can get ``least_bytes``; return ``Waited``."""
        if not 0 <= wait_ms <= MOST_WAIT_MS:
            raise IllegalArgument(f"waitMs {wait_ms}: a reader waits between 0 and {MOST_WAIT_MS} ms; call again")
        return self.desks.run(caller, key, partial(self._wait_now, caller, key, offset, least_bytes, wait_ms))

    def _wait_now(
        self, caller: Caller, key: bytes, offset: int, least_bytes: int, wait_ms: int, partition: Partition
    ) -> Any:
        found = partition.waited(offset, least_bytes)
        if found.error or found.size_bytes >= least_bytes or not wait_ms:
            return found
        return self._wait_later(caller, key, offset, least_bytes, wait_ms)

    async def _wait_later(self, caller: Caller, key: bytes, offset: int, least_bytes: int, wait_ms: int) -> Waited:
        loop, was_ending = asyncio.get_running_loop(), self.waits.is_ending
        end_s = loop.time() + self.waits.bounded_s(wait_ms / 1_000)
        while True:
            partition = await self.desks.open_desk(caller.has_gone, key)
            found = partition.waited(offset, least_bytes)
            left_s = 0.0 if self.waits.is_ending > was_ending else end_s - loop.time()
            if found.error or found.size_bytes >= least_bytes or left_s <= 0:
                return found
            await self._changed(key, min(left_s, WAIT_SLICE_S))

    async def _changed(self, key: bytes, timeout_s: float) -> None:
        """Wait until the partition changes, or for the time."""
        if self.waiting_count >= TOPIC_WAITERS:
            raise RegionTooBusy(f"{TOPIC_WAITERS} readers wait for records of topics at this server; try later")
        waiters = self._waiters.setdefault(key, set())
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters.add(future)
        self.waiting_count += 1
        try:
            await asyncio.wait((future,), timeout=max(0.0, timeout_s))
        finally:
            self.waiting_count -= 1
            waiters.discard(future)
            if not waiters and self._waiters.get(key) is waiters:
                del self._waiters[key]

    def _wake(self, key: bytes) -> None:
        for future in self._waiters.pop(key, ()):
            if not future.done():
                future.set_result(None)

    def _end_waits(self) -> None:
        """Answer the readers that wait: the server leaves or stops."""
        for key in list(self._waiters):
            self._wake(key)

    async def drop_partition(self, caller: Caller, key: bytes) -> None:
        """End a partition, and delete its row in bounded steps."""
        ended = self.desks.run(caller, key, lambda partition: after(partition.end_partition(), None))
        if ended is not None:
            await (asyncio.shield(ended.future) if isinstance(ended, Later) else ended)
        is_last = False
        while not is_last:
            is_last, waiting = await self.desks.step_when_ready(caller.has_gone, key, Partition.delete_some)
            if waiting is not None:
                await asyncio.shield(waiting)

    def _wake_closed(self) -> None:
        """Wake the readers of partitions whose regions have closed: their owner is another server, perhaps."""
        for partition in self.desks.closed_desks():
            self._wake(partition.key)

    # --- retention ---------------------------------------------------------------------------------------

    def begin_retention(self) -> None:
        """Look for expired batches each RETENTION_S from now on."""
        asyncio.get_running_loop().call_later(RETENTION_S, self._run_retention)

    def _run_retention(self) -> None:
        self._retention = asyncio.ensure_future(self.delete_expired())
        self._retention.add_done_callback(self._retention_ended)

    def _retention_ended(self, done: asyncio.Future[int]) -> None:
        if done.cancelled():
            return
        if (fault := done.exception()) is not None:
            FAULTS.met(RETENTION, fault)
        self.begin_retention()

    async def delete_expired(self) -> int:
        """Delete what is above the retention of this server's partitions; return how many batches were deleted."""
        deleted = 0
        for region in self._access.open_regions(_TABLE):
            start: bytes | None = b"\x01"  # behind the rows of topics and groups
            while start is not None and region.is_open:
                key = first_row(region, start)
                if key is not None:
                    deleted += await self._delete_expired_of(region, key)
                start = key + b"\x00" if key is not None else None
                await asyncio.sleep(0)
        return deleted

    async def _delete_expired_of(self, region: Region, key: bytes) -> int:
        deleted = 0
        try:
            if PartitionRows(region, key).is_retention_due():
                while count := await self.desks.step_when_ready(never_disconnected, key, Partition.delete_expired):
                    deleted += count
                    await asyncio.sleep(0)
        except RetryLater:  # its owner, or the next look, goes on
            pass
        except Exception as fault:  # noqa: BLE001 - a damaged partition keeps its batches, and the others have their turn
            FAULTS.met(RETENTION, fault)
        return deleted
