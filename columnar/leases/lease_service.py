"""Leases at the owner of their rows: decides, stores, and lets callers wait until a lease is free.

A decision reads the lease's row and writes it in one step of the loop, so two callers never decide on the same state.
The answer waits for the fsync, and so does an answer that only tells of a state.

Callers that wait for a lease stand in a line.  A release, or the end of the holder's time, wakes the first of them;
nobody polls.  A caller whose wait is over, or whose client is gone, leaves the line and wakes the next.

Invariants:
    W1. At most LEASE_WAITERS callers wait, each for at most LEASE_WAIT_MS; a further one is refused.
    W2. A line with callers has a timer for the lease's end, or its first caller is awake.
    W3. No wait holds up a server that leaves or stops (``runtime.long_waits``).

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Any, Final, NamedTuple

from columnar.errors import CallQueueTooBig, ClientGone, IllegalArgument, NotServingRegion
from columnar.leases.lease_state import Decision, LeaseRequest, LeaseTimes, decide
from columnar.model.lease import LEASE_FAMILY, LEASES_TABLE, STATE_QUALIFIER, UNKNOWN, pack, unpack
from columnar.model.mutation import Put, RowMutation
from columnar.operations.access import TableAccess
from columnar.operations.reads import LATEST
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.region_reads import get_column
from columnar.runtime.loop_budget import IsDisconnected

LEASE_TTL_MS: Final = (100, 3_600_000)  # the shortest and the longest; a holder that died blocks others so long
LEASE_WAIT_MS: Final = 30_000  # of one call; a client that waits longer calls again
LEASE_WAITERS: Final = 10_000  # of one server
NAME_BYTES: Final = 256  # of a lease
HOLDER_BYTES: Final = 1_024
_FAMILY: Final = LEASE_FAMILY.encode()
_TABLE: Final = LEASES_TABLE.encode()
_STATE_ONLY: Final = LeaseRequest(b"", 0, 0)


class LeaseReply(NamedTuple):
    is_held: bool  # by the caller
    token: int  # the last one that was given, whoever has it
    holder: bytes  # empty: nobody holds the lease
    left_ms: int  # until the server regards the lease as free, unless it is renewed


class _Line:
    """The callers that wait for one lease, first come first served."""

    __slots__ = ("timer", "waiters")

    def __init__(self) -> None:
        self.waiters: deque[asyncio.Future[None]] = deque()
        self.timer: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """Wake the first caller that is not awake, if no caller before it is."""
        if self.waiters and not self.waiters[0].done():
            self.waiters[0].set_result(None)

    def wake_after(self, delay_s: float) -> None:
        self.cancel()
        self.timer = asyncio.get_running_loop().call_later(max(0.0, delay_s), self.wake)

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class LeaseService:
    def __init__(self, access: TableAccess, now_s: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._now_s = now_s
        self._waits = access.waits
        self._waits.on_end(self._end_waits)
        self._times = LeaseTimes()
        self._lines: dict[bytes, _Line] = {}
        self._waiting = 0

    async def request(self, name: bytes, asked: LeaseRequest, wait_ms: int, has_gone: IsDisconnected) -> LeaseReply:
        """Acquire, renew, release or look (``lease_state``); an acquisition waits up to ``wait_ms`` for the lease.

        Raises IllegalArgument, CallQueueTooBig, RegionNotLocal and other errors of a write.  A caller that has waited
        while the region went to another server gets an answer without the lease, and may call again.
        """
        check_request(name, asked, wait_ms)
        if not wait_ms or not _acquires(asked):
            return await self._reply(name, asked, has_gone)
        ends_s = self._now_s() + self._waits.bounded_s(wait_ms / 1_000)
        reply = await self._reply(name, _STATE_ONLY if name in self._lines else asked, has_gone)  # others came before
        return reply if reply.is_held else await self._wait(name, asked, reply, ends_s, has_gone)

    async def _wait(
        self, name: bytes, asked: LeaseRequest, reply: LeaseReply, ends_s: float, has_gone: IsDisconnected
    ) -> LeaseReply:
        """Stand in the line of the lease until the lease is given, or until ``ends_s``."""
        if self._waiting >= LEASE_WAITERS:
            raise CallQueueTooBig(f"{LEASE_WAITERS} callers wait for leases of this server; try again, or do not wait")
        loop = asyncio.get_running_loop()
        line = self._lines.setdefault(name, _Line())
        turn: asyncio.Future[None] = loop.create_future()
        line.waiters.append(turn)
        self._waiting += 1
        try:
            if line.waiters[0] is turn:
                line.wake_after(reply.left_ms / 1_000)
            while not reply.is_held:
                await asyncio.wait([turn], timeout=max(0.0, ends_s - self._now_s()))
                if not turn.done() or turn.cancelled():
                    return reply
                if has_gone():
                    raise ClientGone
                reply = await self._reply(name, asked, has_gone)
                if not reply.is_held:
                    line.waiters[0] = turn = loop.create_future()
                    line.wake_after(reply.left_ms / 1_000)
            return reply
        except NotServingRegion:  # the region went to another server meanwhile, which may have given the lease
            return reply
        finally:
            self._waiting -= 1
            self._leave(name, line, turn, has_lease=reply.is_held)

    def _end_waits(self) -> None:
        """Answer the callers that wait without the lease: the server leaves or stops."""
        for line in self._lines.values():
            for turn in line.waiters:
                turn.cancel()

    def _leave(self, name: bytes, line: _Line, turn: asyncio.Future[None], *, has_lease: bool) -> None:
        was_first = line.waiters[0] is turn
        line.waiters.remove(turn)
        if not line.waiters:
            line.cancel()
            del self._lines[name]
        elif was_first and not has_lease:  # with the lease, its end wakes the next caller
            line.wake()

    async def _reply(self, name: bytes, asked: LeaseRequest, has_gone: IsDisconnected) -> LeaseReply:
        decision, end_s, durable = await retry_until_ready(partial(self._step, name, asked), has_gone)
        if durable is not None:
            await asyncio.shield(durable)  # others wait for it, too
        lease = decision.lease
        left_ms = max(0, ceil((end_s - self._now_s()) * 1_000))
        if not decision.is_held and not left_ms:
            return LeaseReply(False, lease.token, b"", 0)
        return LeaseReply(decision.is_held, lease.token, lease.holder, left_ms)

    def _step(self, name: bytes, asked: LeaseRequest) -> tuple[Decision, float, Any]:
        """Decide in one step of the loop.

        Returns the decision, the end of the lease, and the fsync for which the answer waits.  Versions of the cell are
        counted, so that a state is the newest whatever the wall clock says.
        """
        access, now_s = self._access, self._now_s()
        region = access.writable(access.table(_TABLE), name)
        found = get_column(region, name, _FAMILY, STATE_QUALIFIER, LATEST)
        stored, version = (unpack(found[0][0]), found[0][1]) if found else (UNKNOWN, 0)
        end_s = self._times.end_of(name, stored, now_s)
        decision = decide(stored, asked, is_expired=end_s <= now_s)
        if not decision.is_changed:
            return decision, end_s, region.syncs.barrier(name)
        state = Put(_FAMILY, STATE_QUALIFIER, pack(decision.lease), version + 1)
        applied = region.apply(RowMutation(name, (state,)))
        end_s = self._times.end_of(name, decision.lease, now_s)
        line = self._lines.get(name)
        if line is not None:
            line.wake_after(end_s - now_s)
        return decision, end_s, access.acknowledgement(region, applied)


def _acquires(asked: LeaseRequest) -> bool:
    return asked.ttl_ms != 0 and asked.token == 0


def check_request(name: bytes, asked: LeaseRequest, wait_ms: int) -> None:
    """Raise IllegalArgument if a request is outside its bounds."""
    shortest, longest = LEASE_TTL_MS
    if not 1 <= len(name) <= NAME_BYTES:
        raise IllegalArgument(f"the name of a lease has 1 to {NAME_BYTES} bytes, not {len(name)}")
    if len(asked.holder) > HOLDER_BYTES:
        raise IllegalArgument(f"the holder of a lease has at most {HOLDER_BYTES} bytes, not {len(asked.holder)}")
    if asked.ttl_ms and not asked.holder:
        raise IllegalArgument("say who holds the lease: a text that no other holder has")
    if asked.ttl_ms and not shortest <= asked.ttl_ms <= longest:
        raise IllegalArgument(
            f"a lease lasts {shortest} to {longest} ms, or 0 ms to release it, not {asked.ttl_ms}; renew it to keep it"
        )
    if not 0 <= wait_ms <= LEASE_WAIT_MS:
        raise IllegalArgument(f"a call waits 0 to {LEASE_WAIT_MS} ms for a lease, not {wait_ms}; call again to wait on")
    if asked.token < 0:
        raise IllegalArgument(f"a token is positive, or 0 to acquire the lease, not {asked.token}")
