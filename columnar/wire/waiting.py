"""Calls whose replies are pending, as those see them that resolve what they wait for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from columnar.wire.service import ForwardedReply

if TYPE_CHECKING:
    from columnar.wire.codec import Request
    from columnar.wire.connection import Connection
    from columnar.wire.service import Later

Awaited = asyncio.Future[Any] | ForwardedReply  # what a pending reply waits for


class Waiter:
    """A call whose answer waits for a future, perhaps together with other calls."""

    __slots__ = ()

    @property
    def is_background(self) -> bool:
        """Whether a trigger's worker sent the call."""
        return False

    def resume(self, done: Awaited) -> None:
        raise NotImplementedError


class Waiting(Waiter):
    """A request of a connection whose reply is pending."""

    __slots__ = ("connection", "later", "request", "started")

    def __init__(self, connection: Connection, request: Request, started: float, later: Later | None) -> None:
        self.connection = connection
        self.request = request
        self.started = started
        self.later = later

    @property
    def is_background(self) -> bool:
        return self.connection.counts == 0

    def resume(self, done: Awaited) -> None:
        self.connection.resume(self.request, done, self.started, self.later)
