"""Calls whose replies are pending, as those see them that resolve what they wait for."""

from __future__ import annotations

import asyncio
from typing import Any

from columnar.wire.service import HandedOn

Awaited = asyncio.Future[Any] | HandedOn  # what a pending reply waits for


class Waiter:
    """A call whose answer waits for a future, perhaps with others."""

    __slots__ = ()

    def resume(self, done: Awaited) -> None:
        raise NotImplementedError
