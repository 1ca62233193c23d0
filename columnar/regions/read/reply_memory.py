"""How much all calls together hold of rows that they gather over several turns of the loop.

A scan of wide rows or a ``getRows`` fills its reply step by step while others are served.  One reply
has its bound (``limits.REPLY_BYTES``); without one for their sum, a thousand connections that scan at
once would hold a thousand replies.

Before each step a call reserves the step's bytes.  Where there is no room it waits, but for the call
that began first: so there is always one that goes on, and only that one passes the bound, by at
most its own reply.

A call whose client has gone gathers no further: its next turn raises ClientGone.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from columnar.errors import ClientGone
from columnar.runtime.loop_budget import IsDisconnected, LoopBudget, never_disconnected


class ReplyMemoryBudget:
    def __init__(self, bound_bytes: int, step_bytes: int) -> None:
        self._bound = bound_bytes
        self._step = step_bytes
        self._reserved: OrderedDict[int, int] = OrderedDict()  # bytes, reserved ones too, by ticket; the oldest first
        self._waiting: OrderedDict[int, asyncio.Future[None]] = OrderedDict()  # by ticket, in the order of coming
        self._gone: dict[int, IsDisconnected] = {}  # by ticket
        self._last_ticket = 0
        self.loop_budget = LoopBudget()  # the steps of all calls have one share of the loop
        self.total_bytes = 0

    @property
    def is_full(self) -> bool:
        """There is no room for a step."""
        return self.total_bytes + self._step > self._bound

    @property
    def calls(self) -> int:
        """How many gather."""
        return len(self._reserved)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def begin(self, size_bytes: int = 0, has_gone: IsDisconnected = never_disconnected) -> int:
        """A call that holds so much gathers on; ``end`` must follow.  Its ticket."""
        self._last_ticket += 1
        self._gone[self._last_ticket] = has_gone
        self._reserved[self._last_ticket] = size_bytes
        self.total_bytes += size_bytes
        return self._last_ticket

    async def reserve_step(self, ticket: int, size_bytes: int) -> None:
        """The call holds so much by now: give way to others, and wait for room for its next step.  ClientGone."""
        self._reserve(ticket, size_bytes)
        if not self.is_full or ticket == next(iter(self._reserved)):
            self._reserve(ticket, size_bytes + self._step)
        else:
            future = self._waiting[ticket] = asyncio.get_running_loop().create_future()
            try:
                await future
            finally:
                self._waiting.pop(ticket, None)
        await self.loop_budget.wait_for_budget()
        if self._gone[ticket]():
            raise ClientGone

    def _reserve(self, ticket: int, size_bytes: int) -> None:
        self.total_bytes += size_bytes - self._reserved[ticket]
        self._reserved[ticket] = size_bytes

    def end(self, ticket: int) -> None:
        """What the call gathered is handed over, or given up: others go on as far as there is room."""
        self.total_bytes -= self._reserved.pop(ticket)
        del self._gone[ticket]
        if self._reserved:
            self._wake(next(iter(self._reserved)))
        for waiting in list(self._waiting):
            if self.is_full:
                return
            self._wake(waiting)

    def _wake(self, ticket: int) -> None:
        future = self._waiting.get(ticket)
        if future is not None and not future.done():
            self._reserve(ticket, self._reserved[ticket] + self._step)
            future.set_result(None)
