"""The memory budget of replies that are filled over several loop iterations, for all calls together.

A scan of wide rows or a ``getRows`` fills its reply step by step while other requests are served.  Each reply
has its bound (``limits.REPLY_BYTES``); without a bound on their sum, a thousand connections that scan
concurrently would buffer a thousand replies.

Before each step a call reserves the step's bytes.  If there is no room the call waits, except the call
that began first: so one call always makes progress, and only that call may exceed the bound, by at
most its own reply.

A call whose client has disconnected ends: its next step raises ClientGone.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from columnar.errors import ClientGone
from columnar.runtime.loop_budget import IsDisconnected, LoopBudget, never_disconnected


class ReplyMemoryBudget:
    def __init__(self, bound_bytes: int, step_bytes: int, loop_budget: LoopBudget | None = None) -> None:
        """``loop_budget`` may come from another reply budget: then the steps of both share the loop."""
        self._bound = bound_bytes
        self._step = step_bytes
        self._reserved: OrderedDict[int, int] = OrderedDict()  # ticket -> bytes filled and reserved; the oldest first
        self._waiting: OrderedDict[int, asyncio.Future[None]] = OrderedDict()  # by ticket, in order of arrival
        self._gone: dict[int, IsDisconnected] = {}  # by ticket
        self._last_ticket = 0
        # The steps of all calls have one share of the loop.
        self.loop_budget = LoopBudget() if loop_budget is None else loop_budget
        self.total_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether there is no room for a step."""
        return self.total_bytes + self._step > self._bound

    @property
    def calls(self) -> int:
        """The number of calls that are filling a reply."""
        return len(self._reserved)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def begin_call(self, size_bytes: int = 0, has_gone: IsDisconnected = never_disconnected) -> int:
        """Register a call with ``size_bytes`` of reply so far; returns its ticket.  The caller must ``end`` it."""
        self._last_ticket += 1
        self._gone[self._last_ticket] = has_gone
        self._reserved[self._last_ticket] = size_bytes
        self.total_bytes += size_bytes
        return self._last_ticket

    async def reserve_step(self, ticket: int, size_bytes: int) -> None:
        """Note the size of the call's reply, yield the loop, and wait for room for the next step.

        Raises ClientGone if the call's client has disconnected.
        """
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
        """End a call whose reply is returned or given up, and wake waiting calls as far as there is room."""
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
