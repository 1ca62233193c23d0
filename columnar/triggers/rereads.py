"""Consumers whose regions cannot be read now, as on a disk that failed: each is read again after a growing pause.

A region whose store is broken closes meanwhile, and the consumer of its next opening continues.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from columnar.errors import ColumnarError
from columnar.flows.delivery_state import pause_s
from columnar.triggers.consumer import Consumer

_log = logging.getLogger(__name__)


class Rereads:
    def __init__(self, again: Callable[[Consumer], None]) -> None:
        self._again = again
        self._timers: dict[int, asyncio.TimerHandle] = {}  # by id() of the consumer

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, consumer: Consumer) -> bool:
        return id(consumer) in self._timers

    def read_later(self, consumer: Consumer, error: ColumnarError) -> None:
        consumer.failed_reads += 1
        after_s = pause_s(consumer.failed_reads)
        name, region = consumer.registration.name, consumer.region.info.encoded
        _log.warning("trigger %s reads region %s again in %.1f s: %s", name, region, after_s, error.text)
        consumer.state.last_error = error.wire_message
        if consumer not in self:
            self._timers[id(consumer)] = asyncio.get_running_loop().call_later(after_s, self._read, consumer)

    def _read(self, consumer: Consumer) -> None:
        self._timers.pop(id(consumer), None)
        self._again(consumer)

    def forget(self, consumer: Consumer) -> None:
        timer = self._timers.pop(id(consumer), None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
