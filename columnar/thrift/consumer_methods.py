"""Our method on groups of consumers, which ports of other servers call.  Loaded at first use."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from columnar.kafka.group_coordinators import GroupCoordinators


class ConsumerMethods:
    def __init__(self, coordinators: GroupCoordinators) -> None:
        self._coordinators = coordinators

    def columnarConsumerGroup(self, ctx: Any, row: bytes, message: bytes) -> Awaitable[bytes]:
        return self._coordinators.answer(ctx, row or b"", message or b"")
