"""Queues on a region: the methods of queues, whose memory a test may drop, and whose clock it sets."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from columnar.model.queue_place import QUEUES_TABLE, ROW_GROUP
from columnar.model.schema import Family, make_table
from columnar.queues.queue_desks import QueueDesks
from columnar.queues.queue_rows import QueueRows
from columnar.thrift.queue_methods import QueueMethods
from columnar.wire.idl import columnar
from columnar.wire.service import CallContext
from tests.support.region_house import House
from tests.support.service_calls import answer_of

CTX = CallContext(1, "test")
Q = b"jobs"


class Queues(House):
    def __init__(self) -> None:
        super().__init__(make_table(QUEUES_TABLE, [Family("q")], {"ROW_GROUP": ROW_GROUP}))
        self.region()
        self.begin_again()

    def begin_again(self) -> None:
        """Forget what is in memory, as a restart does."""
        self.desks = QueueDesks(self.operations.access)
        self.methods = QueueMethods(self.desks)

    async def push(self, *bodies: bytes, **given: Any) -> list[Any]:
        messages = [columnar.QueueMessage(body=body, **given) for body in bodies]
        return list(await answer_of(self.methods.columnarQueuePush(CTX, Q, messages)))

    async def pop(self, count: int = 1, wait_ms: int = 0, lease_ms: int = 0) -> list[Any]:
        return list(await answer_of(self.methods.columnarQueuePop(CTX, Q, count, wait_ms, lease_ms)))

    async def bodies(self, count: int = 1) -> list[bytes]:
        return [one.body for one in await self.pop(count)]

    async def settle(self, messages: list[Any], what: str = "commit", ms: int = 0, error: bytes = b"") -> list[bool]:
        receipts = [one.receipt for one in messages]
        return list(await answer_of(self.methods.columnarQueueSettle(CTX, Q, receipts, what, ms, error)))

    async def configure(self, **settings: Any) -> None:
        await answer_of(self.methods.columnarQueueConfigure(CTX, Q, columnar.QueueSettings(**settings)))

    async def dead(self, after: str = "", count: int = 100) -> list[Any]:
        return list(await answer_of(self.methods.columnarQueueDead(CTX, Q, after, count)))

    async def redrive(self, ids: list[str] | None = None, count: int = 0) -> int:
        return int(await answer_of(self.methods.columnarQueueRedrive(CTX, Q, ids, count)))

    async def remove_dead(self, ids: list[str] | None = None, count: int = 0) -> int:
        return int(await answer_of(self.methods.columnarQueueRemoveDead(CTX, Q, ids, count)))

    async def purge(self) -> int:
        return int(await answer_of(self.methods.columnarQueuePurge(CTX, Q)))

    def stored_rows(self) -> list[bytes]:
        return [row for row, _ in QueueRows(self.region(), Q).scan(Q + b"\x00", Q + b"\x01")]

    def cells_of(self, row: bytes) -> dict[bytes, bytes]:
        return QueueRows(self.region(), Q).cells(row)

    async def stats(self) -> Any:
        return await self.stats_of(Q)

    async def stats_of(self, queue: bytes) -> Any:
        return await answer_of(self.methods.columnarQueueStats(CTX, queue))

    async def peek(self, count: int = 10) -> list[Any]:
        return list(await answer_of(self.methods.columnarQueuePeek(CTX, Q, count)))


def queues(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    def run(**fixtures: Any) -> None:
        async def inside() -> None:
            house = Queues()
            try:
                async with asyncio.timeout(20):
                    await test(house, **fixtures)
            finally:
                await house.close()

        asyncio.run(inside())

    run.__name__ = test.__name__
    named = list(inspect.signature(test).parameters.values())[1:]  # beside the house: fixtures of pytest
    run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return run
