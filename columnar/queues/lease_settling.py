"""Ends and extends leases from within the store: on messages of any queue, whichever server owns its region.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from columnar.cluster.peer_requests import SettledLeases, SettleLeases
from columnar.cluster.scatter_gather import Owners, request_owner
from columnar.errors import RegionNotLocal
from columnar.model.queue_place import QUEUES_TABLE, first_row
from columnar.operations.access import after
from columnar.queues.desk import Desk
from columnar.queues.queue_desks import QueueDesks
from columnar.wire.service import CallContext, Later

STORE: Final = CallContext(0, "this store")  # no connection of a client


class LeaseSettling:
    def __init__(self, desks: QueueDesks, owners: Callable[[], Owners | None]) -> None:
        """``owners`` returns None if this process has all regions."""
        self._desks = desks
        self._owners = owners
        self.answers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {SettleLeases: self.settle_local}

    async def settle_leases(
        self, queue: bytes, receipts: Sequence[bytes], what: str, ms: int = 0, error: bytes = b""
    ) -> tuple[bool, ...]:
        """End or extend the leases; return for each whether it lasted.  A commit is on disk at the return.

        Raises NotServingRegion if no server has the queue in time.
        """
        request = SettleLeases(queue, tuple(receipts), what, ms, error)
        owners = self._owners()
        if owners is None:
            return (await self.settle_local(request)).lasted
        row = first_row(queue)
        answer = await request_owner(owners, QUEUES_TABLE, row, request, lambda answer: answer.is_not_local)
        return answer.lasted

    async def settle_local(self, request: SettleLeases) -> SettledLeases:
        """Settle the leases if this server owns the queue."""

        def step(desk: Desk) -> Any:
            answers, waiting = desk.settle_leases(request.receipts, request.what, request.ms, request.error)
            return after(waiting, answers)

        try:
            found = self._desks.run(STORE, request.queue, step)
            if type(found) is Later:
                await asyncio.shield(found.future)
                found = found.result
            elif hasattr(found, "__await__"):
                found = await found
        except RegionNotLocal:
            return SettledLeases(is_not_local=True)
        return SettledLeases(tuple(found))
