"""The consumer loop of an asyncio program; ``consuming`` has the same for other programs.

    consumer = connection.consume("pages", group="search", handler=index)     # async def index(batch): ...
    await consumer.run()                # until ``stop``, or until the task is cancelled; both leave the group

A task beside the loop renews the member's lease while the handler awaits, for up to ``longest_s`` for a batch.  A
handler that holds up the event loop holds up the renewals, too.  ``consumer_loop`` decides the steps.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from columnar.client.async_group_changes import AsyncGroupChanges
from columnar.client.changes import StreamEvent
from columnar.client.consumer_loop import (
    RENEWED_S,
    Commit,
    ConsumerLoop,
    Handle,
    Pause,
    Poll,
    Step,
    WorkTime,
    options_of,
)
from columnar.client.consuming import STORE_ERRORS

if TYPE_CHECKING:
    from columnar.client.aio import AsyncConnection

_log = logging.getLogger(__name__)

LEAVE_S: Final = 10.0  # to leave the group at the end; after that the lease ends by itself
AsyncHandler = Callable[[list[StreamEvent]], Awaitable[object] | None]


class AsyncConsumer(ConsumerLoop):
    """The loop; ``run`` in one task.  ``stop`` is for the same event loop, as is ``loop.add_signal_handler``."""

    def __init__(
        self, changes: AsyncGroupChanges, handler: AsyncHandler, *, batch: int, tries: int, longest_s: float
    ) -> None:
        self._work_time = WorkTime(time.monotonic, longest_s)
        super().__init__(changes.group, self._work_time, batch=batch, tries=tries)
        self._handler = handler
        self._stopped = asyncio.Event()
        self.changes = changes

    def stop(self) -> None:
        super().stop()
        self._stopped.set()

    @property
    def lag_ms(self) -> int | None:
        """How far the loop is behind the clock; None before its first reply."""
        return self.lag_at(time.time_ns() // 1_000_000)

    async def run(self) -> None:
        """Work until ``stop``, then leave the group.  Raises HandlerFailed, ChangesGone, or the store's error."""
        renewal = asyncio.create_task(self._renew_while_working())
        try:
            await self._carry_out()
        finally:
            renewal.cancel()
            await asyncio.wait([renewal])
            with suppress(*STORE_ERRORS, RuntimeError):  # then its lease ends; RuntimeError: the stream was closed
                async with asyncio.timeout(LEAVE_S):
                    await self.changes.leave_group()

    async def _carry_out(self) -> None:
        steps = self.steps()
        with suppress(StopIteration):
            step = next(steps)
            while True:
                try:
                    found = await self._do(step)
                except Exception as error:  # noqa: BLE001 - the loop decides whether it goes on
                    step = steps.throw(error)
                else:
                    step = steps.send(found)

    async def _do(self, step: Step) -> list[StreamEvent] | None:
        match step:
            case Poll(wait_ms):
                return await self.changes.poll(wait_ms)
            case Handle(batch):
                awaited = self._handler(batch)
                if inspect.isawaitable(awaited):
                    await awaited
            case Commit():
                await self.changes.commit()
            case Pause(seconds):  # a broken link is replaced with the next call
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._stopped.wait()
        return None

    async def _renew_while_working(self) -> None:
        while True:
            await asyncio.sleep(RENEWED_S)
            if not self._work_time.needs_lease:
                continue
            try:
                await self.changes.renew_lease(RENEWED_S)
            except STORE_ERRORS as error:  # the next renewal may succeed
                _log.warning("group %s: the lease is not renewed now: %s", self.changes.group, error)


def open_async_consumer(
    connection: AsyncConnection,
    table: bytes | str,
    group: str,
    handler: AsyncHandler,
    *,
    batch: int,
    tries: int,
    longest_s: float,
    options: Mapping[str, Any],
) -> AsyncConsumer:
    """Return the loop that ``AsyncConnection.consume`` describes; calls no server.  Raises WrongArgument."""
    changes = connection.changes(table, **options_of(group, batch, options))
    assert isinstance(changes, AsyncGroupChanges), "it has a group"
    return AsyncConsumer(changes, handler, batch=batch, tries=tries, longest_s=longest_s)
