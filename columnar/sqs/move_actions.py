"""The actions that move the messages of a dead-letter queue back, and the tasks that do it.

    pop ten under a lease   push each to the queue in which it died, or to the one named   commit them

A push has a name made of queue and message, so a repeat after a kill is dropped.  A task ends when a pop finds
nothing, when it is cancelled, when a message has no queue to go to, and with its server (``move_tasks``).

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from secrets import token_hex
from typing import Any, Final

from columnar.runtime.background import Background
from columnar.sqs.errors import SqsError, invalid_value
from columnar.sqs.message_actions import Call
from columnar.sqs.message_origin import origin_of, own_headers
from columnar.sqs.move_tasks import (
    CANCELLED,
    CANCELLING,
    COMPLETED,
    FAILED,
    RUNNING,
    MoveTask,
    task_of_handle,
    with_task,
)
from columnar.sqs.queue_addresses import queue_of_arn
from columnar.sqs.queue_attributes import KnownQueue, OwnAttributes
from columnar.sqs.store_queues import Client, StoreQueues
from columnar.wire.idl import columnar

_log = logging.getLogger(__name__)

MOVED_AT_ONCE: Final = 10
LEASE_MS: Final = 60_000
NOTE_S: Final = 1.0  # between two notes of a task's progress
RETRIES: Final = 30  # of a step whose region moves, a second apart
MOST_RATE: Final = 500
NAME_MS: Final = 14 * 24 * 3_600 * 1_000  # of a moved message: the longest retention of SQS
MOST_LISTED: Final = 10
_RETRIED: Final = frozenset({"ServiceUnavailable", "RequestThrottled"})


class _NoSource(Exception):
    """A message was sent to the dead-letter queue itself, so it has no queue to go back to."""


class MoveActions:
    def __init__(self, queues: StoreQueues) -> None:
        self._queues = queues
        self._running = Background("moves of dead messages")
        self.actions: Mapping[str, Callable[[Call], Awaitable[dict[str, Any]]]] = {
            "StartMessageMoveTask": self._start,
            "ListMessageMoveTasks": self._list,
            "CancelMessageMoveTask": self._cancel,
        }

    async def close(self) -> None:
        """End the tasks of this server."""
        self._running.close()
        await self._running.ended()

    # --- actions -----------------------------------------------------------------------------------------

    async def _known(self, call: Call, name: bytes) -> KnownQueue:
        self._queues.forget_queue(name)
        try:
            return await self._queues.known(call.client, name)
        except SqsError as error:
            if error.name != "QueueDoesNotExist":
                raise
            raise SqsError("ResourceNotFoundException", "The resource that you specified doesn't exist.") from None

    async def _start(self, call: Call) -> dict[str, Any]:
        source = await self._known(call, queue_of_arn(call.fields.required_text("SourceArn")))
        destination = call.fields.optional_text("DestinationArn")
        rate = call.fields.number("MaxNumberOfMessagesPerSecond", 1, MOST_RATE) or 0
        to = (await self._known(call, queue_of_arn(destination))).name if destination else b""
        if to == source.name:
            raise invalid_value("SourceArn and DestinationArn must not be the same.")
        if not await self._queues.list_sources(call.client, source.name):
            raise invalid_value("Source queue must be configured as a Dead Letter Queue.")
        stats = await self._queues.call_store(call.client, "columnarQueueStats", source.name)
        now_ms = _now_ms()
        task = MoveTask(token_hex(16), RUNNING, to.decode(), rate, now_ms, 0, stats.messages, now_ms)

        def begin(found: KnownQueue | None) -> OwnAttributes:
            attributes = _attributes_of(found)
            if any(not one.as_of(now_ms).is_over for one in attributes.tasks):
                text = "There is already a task running. Only one active task is allowed for a source queue."
                raise SqsError("UnsupportedOperation", text)
            return attributes.with_tasks(with_task(attributes.tasks, task))

        await self._queues.change_attributes(call.client, source.name, begin)
        client = Client(f"move {task.id}", call.client.user, lambda: False)  # the caller may go
        self._running.spawn(_Move(self._queues, client, source.name, task).run())
        return {"TaskHandle": task.as_json(source.name, call.region)["TaskHandle"]}

    async def _list(self, call: Call) -> dict[str, Any]:
        source = await self._known(call, queue_of_arn(call.fields.required_text("SourceArn")))
        most = call.fields.number("MaxResults", 1, MOST_LISTED) or 1
        tasks = [one.as_of(_now_ms()) for one in source.attributes.tasks[:most]]
        return {"Results": [one.as_json(source.name, call.region) for one in tasks]}

    async def _cancel(self, call: Call) -> dict[str, Any]:
        task_id, source = task_of_handle(call.fields.required_text("TaskHandle"))
        await self._known(call, source)
        found: list[MoveTask] = []

        def cancel(queue: KnownQueue | None) -> OwnAttributes:
            attributes = _attributes_of(queue)
            task = next((one for one in attributes.tasks if one.id == task_id), None)
            if task is None or task.as_of(_now_ms()).is_over:
                raise SqsError("ResourceNotFoundException", "The task is not running.")
            found[:] = [task]
            return attributes.with_tasks(with_task(attributes.tasks, replace(task, state=CANCELLING)))

        await self._queues.change_attributes(call.client, source, cancel)
        return {"ApproximateNumberOfMessagesMoved": found[0].moved}


class _Move:
    """A task that runs in this server."""

    def __init__(self, queues: StoreQueues, client: Client, source: bytes, task: MoveTask) -> None:
        self._queues = queues
        self._client = client
        self._source = source
        self._task = task
        self._is_cancelled = False
        self._noted_s = 0.0

    async def run(self) -> None:
        try:
            while not self._is_cancelled and await self._retried(self._move_some):
                await self._note_progress()
            self._end(CANCELLED if self._is_cancelled else COMPLETED)
        except _NoSource:
            self._end(FAILED, "CouldNotDetermineMessageSource")
        except SqsError as error:
            _log.warning("the move of the messages of queue %s failed: %s", self._source.decode(), error)
            self._end(FAILED, error.name)
        await self._retried(self._write)

    def _end(self, state: str, why: str = "") -> None:
        self._task = replace(self._task, state=state, why=why)

    async def _move_some(self) -> bool:
        """Move the next messages; return whether there were any."""
        began_s = asyncio.get_running_loop().time()
        rate = self._task.rate
        count = min(MOVED_AT_ONCE, rate) if rate else MOVED_AT_ONCE
        found = await self._queues.pop(self._client, self._source, count, 0, LEASE_MS)
        receipts = [one.receipt for one in found]
        try:
            for one in found:
                headers, target = self._place_of(one)
                if await self._queues.find_queue(self._client, target) is None:
                    raise _NoSource
                await self._queues.push(self._client, target, [self._moved(one, headers)])
                await self._queues.settle_leases(self._client, self._source, [one.receipt], "commit")
                receipts.remove(one.receipt)
                self._task = replace(self._task, moved=self._task.moved + 1)
        except BaseException:
            with suppress(SqsError):
                await self._queues.settle_leases(self._client, self._source, receipts, "rollback")
            raise
        if rate and found:
            await asyncio.sleep(max(0.0, began_s + len(found) / rate - asyncio.get_running_loop().time()))
        return bool(found)

    def _place_of(self, found: Any) -> tuple[dict[bytes, bytes], bytes]:
        """Return the headers of a message that comes back, and its queue.  Raises _NoSource."""
        origin = origin_of(found.name, found.headers)
        target = self._task.to.encode() or (origin.queue if origin is not None else b"")
        if not target:
            raise _NoSource
        return found.headers if origin is None else own_headers(found.headers), target

    def _moved(self, found: Any, headers: dict[bytes, bytes]) -> Any:
        """Return the message as it is pushed: under a name that drops it if it is pushed again."""
        number = found.id.encode() if isinstance(found.id, str) else found.id
        return columnar.QueueMessage(
            body=found.body, name=sha256(b"moved %b %b" % (self._source, number)).hexdigest().encode(),
            group=found.group, priority=found.priority, delayMs=0, headers=headers, nameMs=NAME_MS,
        )  # fmt: skip

    async def _note_progress(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._noted_s >= NOTE_S:
            self._noted_s = now_s
            await self._retried(self._write)

    async def _write(self) -> None:
        self._task = replace(self._task, seen_ms=_now_ms())

        def change(found: KnownQueue | None) -> OwnAttributes | None:
            attributes = _attributes_of(found)
            now = next((one for one in attributes.tasks if one.id == self._task.id), None)
            if now is None:
                self._is_cancelled = True  # the queue was deleted meanwhile
                return None
            if now.state == CANCELLING and not self._task.is_over:
                self._is_cancelled = True
                return attributes.with_tasks(with_task(attributes.tasks, replace(self._task, state=CANCELLING)))
            return attributes.with_tasks(with_task(attributes.tasks, self._task))

        await self._queues.change_attributes(self._client, self._source, change)

    async def _retried(self, step: Callable[[], Awaitable[Any]]) -> Any:
        """Do a step, again where a region moves.  Raises SqsError."""
        for _ in range(RETRIES):
            try:
                return await step()
            except SqsError as error:
                if error.name not in _RETRIED:
                    raise
            await asyncio.sleep(1.0)
        return await step()


def _attributes_of(queue: KnownQueue | None) -> OwnAttributes:
    return queue.attributes if queue is not None else OwnAttributes()


def _now_ms() -> int:
    return round(time.time() * 1_000)
