"""Pushes from within the store: to any queue, whichever server owns its region.

The messages have names, so a push that is repeated, after an answer was lost, stores nothing twice.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from columnar.cluster.peer_requests import PushMessages, QueuedMessage, StoredMessages
from columnar.cluster.scatter_gather import Owners, request_owner
from columnar.errors import IllegalArgument, NotServingRegion, RegionNotLocal
from columnar.model.queue_place import QUEUES_TABLE, checked_queue, first_row
from columnar.queues.desk import Desk, Pushed
from columnar.queues.keys import Message
from columnar.queues.queue_desks import QueueDesks
from columnar.wire.service import CallContext, Later

_CALLER: Final = CallContext(0, "this store")  # no connection of a client


class QueuePushes:
    def __init__(self, desks: QueueDesks, owners: Callable[[], Owners | None]) -> None:
        """``owners`` returns None if this process has all regions."""
        self.desks = desks
        self._owners = owners
        self.answers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {PushMessages: self.push_local}

    async def push(self, queue: bytes, messages: Sequence[QueuedMessage]) -> None:
        """Store messages that have names; return when they are on disk.

        Raises IllegalArgument if the queue cannot take one of them, and NotServingRegion if no server has it in time.
        """
        request = PushMessages(queue, tuple(messages))
        owners = self._owners()
        if owners is None:
            if (await self.push_local(request)).is_not_local:
                raise NotServingRegion("this server does not know the owners of queues yet")
            return
        row = first_row(checked_queue(queue))
        await request_owner(owners, QUEUES_TABLE, row, request, lambda answer: answer.is_not_local)

    async def push_local(self, request: PushMessages) -> StoredMessages:
        """Store the messages if this server owns the queue."""
        if not all(one.name for one in request.messages):
            raise IllegalArgument("a push from within the store names its messages, as it may be repeated")
        pushed = [_pushed(one) for one in request.messages]

        def step(desk: Desk) -> Any:
            return desk.push(pushed)[2]

        try:
            waiting = self.desks.run(_CALLER, request.queue, step)
            if type(waiting) is Later:
                waiting = waiting.future
            if waiting is not None:
                await asyncio.shield(waiting)
        except RegionNotLocal:
            return StoredMessages(is_not_local=True)
        return StoredMessages()


def _pushed(one: QueuedMessage) -> Pushed:
    return Pushed(Message(one.name, one.headers, one.body), one.group, one.priority, one.delay_ms)
