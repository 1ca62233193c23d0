"""The leases of the messages that the target of a served queue has: extended while it works, and ended after it.

    add_lease -> extended every EXTENDED_S -> end_lease -> committed, rolled back or put off

Leases that end in one loop iteration in the same way are ended by one request.  A lease whose end cannot be written in
time ends by itself, and the message comes again.

Owned by the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any, Final

from columnar.errors import ColumnarError
from columnar.queues.delivery_pace import Settlement
from columnar.queues.lease_ends import EXTEND
from columnar.queues.lease_settling import LeaseSettling
from columnar.runtime.background import Background
from columnar.runtime.planned_step import PlannedStep

_log = logging.getLogger(__name__)

LOOP: Final = "the leases of served queues"
LEASE_MS: Final = 10_000  # after a crash messages that were out come again so late
EXTENDED_S: Final = 3.0  # between two extensions


class MessageLeases:
    def __init__(self, queue: bytes, settling: LeaseSettling) -> None:
        self.attempts: dict[bytes, int] = {}  # by receipt, of the messages that the target has
        self._queue = queue
        self._settling = settling
        self._due: dict[Settlement, list[bytes]] = {}  # receipts of leases that are to be ended
        self._requests = Background(LOOP)
        self._end_step = PlannedStep(LOOP, self._end_due)
        self._extend_step = PlannedStep(LOOP, self._extend_all)

    def has(self, receipt: bytes) -> bool:
        return receipt in self.attempts

    def add_lease(self, receipt: bytes, attempt: int) -> None:
        self.attempts[receipt] = attempt
        if not self._extend_step.is_planned:
            self._extend_step.after(EXTENDED_S)

    def end_lease(self, receipt: bytes, settlement: Settlement) -> None:
        del self.attempts[receipt]
        self._due.setdefault(settlement, []).append(receipt)
        self._end_step.soon()

    async def settled(self) -> None:
        """Extend no more; wait until all leases that were to be ended are ended, or cannot be."""
        self._extend_step.cancel()
        self._end_step.cancel()
        self._end_due()
        await self._requests.ended()

    def close(self) -> None:
        self._requests.close()

    # --- requests ------------------------------------------------------------------------------------

    def _end_due(self) -> None:
        due, self._due = self._due, {}
        for one, receipts in due.items():
            request = self._settling.settle_leases(self._queue, receipts, one.what, one.delay_ms, one.error)
            self._requests.spawn(self._answered(request, len(receipts), "come again after their leases"))

    def _extend_all(self) -> None:
        if self.attempts:
            self._extend_step.after(EXTENDED_S)
            request = self._settling.settle_leases(self._queue, list(self.attempts), EXTEND, LEASE_MS)
            self._requests.spawn(self._answered(request, len(self.attempts), "keep their leases as they are"))

    async def _answered(self, request: Coroutine[Any, Any, tuple[bool, ...]], count: int, otherwise: str) -> None:
        name = self._queue.decode()
        try:
            lost = (await request).count(False)
        except ColumnarError as error:
            _log.warning("%d messages of queue %s %s: %s", count, name, otherwise, error.text)
            return
        if lost:
            _log.info("%d messages of queue %s were purged, or their leases were over", lost, name)
