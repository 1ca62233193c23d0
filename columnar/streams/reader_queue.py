"""The queue of readers: many readers of change streams leave the loop to other requests.

A request of a reader, and a reader that changes have woken, waits for a slot in the order of arrival.  While other
requests come, the slots pause for a multiple of the processor time that the readers before have taken, by the rule of
the governor of background work.  So readers together take a bounded share of the loop, however many they are, and
however much they read; the pause holds up no other background work.  A pause ends within POLL_S after the last of the
other requests, and lasts LONGEST_PAUSE_S at most.

Slots are counted in rounds: a round gives a slot to each reader that waits when it begins.  Within a round all readers
read up to the same end of each log (``LocalChanges``).  So readers with the same wishes come to the same positions, and
share their replies (``SharedReplies``).  Without other readers each slot is a round.

A slot is free at once if nobody waits for one and no other requests come.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Final

from columnar.flows.governor import TICK_S, GovernedStep, Governor

REPLY_S: Final = 0.000_12  # of the loop, for one reply
BYTE_S: Final = 0.000_000_002  # for a byte of it
SLOTS_AT_ONCE: Final = 4
POLL_S: Final = 0.02  # a pause checks so often whether requests still come
LONGEST_PAUSE_S: Final = 1.0


class ReaderQueue:
    def __init__(self, governor: Governor) -> None:
        self._governor = governor
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._left = 0  # slots of the present round
        self.round = time.time_ns() // 1_000  # no round of an earlier process has its number
        self._unpaid_s = 0.0  # of the loop, since the last pause was planned
        self._free_s = float("-inf")  # when the pause is over
        self._timer: asyncio.TimerHandle | None = None  # of the pause
        self._step = GovernedStep(governor, "the queue of stream readers", self._release_slots)

    def enqueue(self, future: asyncio.Future[bool]) -> None:
        """Complete the future with True when it has a slot, unless it is done by then."""
        self._waiting.append(future)
        if self._timer is None:
            self._plan()

    async def wait_slot(self) -> None:
        """Wait for a slot."""
        if not self._waiting and not self._governor.requests_come():
            self.round += 1
            return
        slot: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.enqueue(slot)
        await slot

    def spend_bytes(self, size_bytes: int) -> None:
        """Count the bytes of a reply, which take the loop's time when they are sent."""
        self._unpaid_s += size_bytes * BYTE_S

    def spend_time(self, seconds: float) -> None:
        """Count the processor time of a read."""
        self._unpaid_s += seconds

    def _plan(self) -> None:
        """Plan the next slots: now, or after the pause for what readers have taken so far."""
        self._timer = None
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        pause_s = self._governor.pause_after_work(self._unpaid_s)
        self._free_s = min(max(self._free_s, now_s) + pause_s, now_s + LONGEST_PAUSE_S)
        self._unpaid_s = 0.0
        left_s = self._free_s - now_s
        if left_s > TICK_S / 2 and self._governor.requests_come():
            self._timer = loop.call_later(min(left_s, POLL_S), self._plan)
        else:
            self._step.soon()

    def _release_slots(self) -> bool:
        given, waiting = 0, self._waiting
        while waiting and given < SLOTS_AT_ONCE:
            if self._left <= 0:
                self.round += 1
                self._left = len(waiting)
            self._left -= 1
            future = waiting.popleft()
            if not future.done():
                future.set_result(True)
                given += 1
        self._unpaid_s += given * REPLY_S
        if waiting:
            self._plan()
        return False
