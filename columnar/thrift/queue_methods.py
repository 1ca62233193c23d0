"""Our methods on queues.  Loaded at first use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from columnar.errors import IllegalArgument
from columnar.model.queue_place import checked_queue
from columnar.operations.access import after
from columnar.queues import keys
from columnar.queues.dead_messages import find_dead, redrive, remove_dead
from columnar.queues.desk import CALL_MESSAGES, Desk, Pushed, check_call
from columnar.queues.keys import Message
from columnar.queues.queue_desks import QueueDesks
from columnar.queues.queue_rows import Found
from columnar.queues.queue_status import peek, stats_of
from columnar.wire.idl import columnar
from columnar.wire.service import Later


class QueueMethods:
    def __init__(self, desks: QueueDesks) -> None:
        self._desks = desks

    def columnarQueuePush(self, ctx: Any, queue: bytes, messages: Any) -> Any:
        check_call(len(messages or ()), 0)
        pushed = [_pushed(one) for one in messages]

        def step(desk: Desk) -> Any:
            numbers, fresh, waiting = desk.push(pushed)
            answer = [
                columnar.QueuePushed(id=str(n), isNew=is_new) for n, is_new in zip(numbers, fresh, strict=True)
            ]  # fmt: skip
            return after(waiting, answer)

        return self._desks.run(ctx, queue, step)

    def columnarQueuePop(self, ctx: Any, queue: bytes, count: Any, wait_ms: Any, lease_ms: Any) -> Any:
        found = self._desks.pop(ctx, queue, 1 if count is None else count, wait_ms or 0, lease_ms or 0)
        return _answer(found) if isinstance(found, list) else _later(found)

    def columnarQueueSettle(self, ctx: Any, queue: bytes, receipts: Any, what: Any, ms: Any, error: Any) -> Any:
        given = list(receipts or ())

        def step(desk: Desk) -> Any:
            answers, waiting = desk.settle_leases(given, what or "", ms or 0, error or b"")
            return after(waiting, answers)

        return self._desks.run(ctx, queue, step)

    def columnarQueuePeek(self, ctx: Any, queue: bytes, count: Any) -> Any:
        return self._desks.run(ctx, queue, lambda desk: _answer(peek(desk, 1 if count is None else count)))

    def columnarQueueStats(self, ctx: Any, queue: bytes) -> Any:
        return self._desks.run(ctx, queue, _stats)

    def columnarQueueConfigure(self, ctx: Any, queue: bytes, settings: Any) -> Any:
        if settings is None:
            raise IllegalArgument("columnarQueueConfigure needs settings")

        given = {
            "lease_ms": settings.leaseMs,
            "attempts": settings.attempts,
            "fifo": settings.fifo,
            "retention_s": settings.retentionS,
            "dead_to": settings.deadTo,
        }
        changed = {name: value for name, value in given.items() if value is not None}
        return self._desks.run(ctx, queue, lambda desk: after(desk.configure(**changed), None))

    # --- dead messages, and the end of messages and queues -------------------------------------------------

    def columnarQueueDead(self, ctx: Any, queue: bytes, after_id: Any, count: Any) -> Any:
        number, most = _number(after_id) if after_id else 0, 1 if count is None else count
        check_call(most, 0)
        return self._desks.run(ctx, queue, lambda desk: _answer(find_dead(desk, number, most)))

    def columnarQueueRedrive(self, ctx: Any, queue: bytes, ids: Any, count: Any) -> Any:
        return self._of_dead(ctx, queue, redrive, ids, count)

    def columnarQueueRemoveDead(self, ctx: Any, queue: bytes, ids: Any, count: Any) -> Any:
        return self._of_dead(ctx, queue, remove_dead, ids, count)

    def _of_dead(self, ctx: Any, queue: bytes, change: Any, ids: Any, count: Any) -> Any:
        numbers, most = [_number(one) for one in ids or ()], count or CALL_MESSAGES
        check_call(len(numbers) or most, 0)

        def step(desk: Desk) -> Any:
            number, waiting = change(desk, numbers, most)
            return after(waiting, number)

        return self._desks.run(ctx, queue, step)

    def columnarQueuePurge(self, ctx: Any, queue: bytes) -> Any:
        def step(desk: Desk) -> Any:
            number, waiting = desk.purge()
            self._desks.begin_sweep(desk)
            return after(waiting, number)

        return self._desks.run(ctx, queue, step)

    async def columnarQueueDrop(self, ctx: Any, queue: bytes) -> bool:
        """Remove all that there is of a queue; return whether it is gone: not if a message was pushed meanwhile."""
        await self._done(ctx, queue, Desk.purge)
        while (await self._done(ctx, queue, lambda desk: remove_dead(desk, (), CALL_MESSAGES))) > 0:
            pass
        await self._desks.sweep(ctx, checked_queue(queue))
        return bool(await self._done(ctx, queue, Desk.forget_queue))

    async def _done(self, ctx: Any, queue: bytes, change: Any) -> Any:
        """Carry out a step that returns an answer and a future; return the answer when the future is done."""

        def step(desk: Desk) -> Any:
            answer, waiting = change(desk)
            return after(waiting, answer)

        done = self._desks.run(ctx, queue, step)
        if type(done) is Later:
            await asyncio.shield(done.future)
            return done.result
        return await done if hasattr(done, "__await__") else done


def _number(text: Any) -> int:
    try:
        number = int(text)
    except ValueError:
        raise IllegalArgument(
            f"{str(text)[:40]!r} is no id of a message; a push, pop or list has returned it"
        ) from None
    if not 0 <= number < 1 << 64:
        raise IllegalArgument(f"{number} is no id of a message")
    return number


def _pushed(one: Any) -> Pushed:
    headers = tuple((key or b"", value or b"") for key, value in (one.headers or {}).items())
    message = Message(one.name or b"", headers, one.body or b"")
    return Pushed(message, one.group or b"", one.priority or 0, one.delayMs or 0, one.nameMs or 0)


async def _later(found: Awaitable[list[Found]]) -> Any:
    return _answer(await found)


def _answer(found: list[Found]) -> list[Any]:
    return [
        columnar.QueueFound(
            id=str(one.n),
            receipt=keys.pack_receipt(one.n, one.lease) if one.lease else b"",
            body=one.message.body,
            name=one.message.name,
            group=one.subqueue.group,
            priority=keys.HIGHEST_PRIORITY - one.subqueue.rank,
            attempts=one.attempts,
            pushedMs=one.n // 1_000,
            untilMs=one.until_ms,
            headers=dict(one.message.headers),
            error=one.error,
            firstMs=one.first_ms,
        )
        for one in found
    ]


def _stats(desk: Desk) -> Any:
    found = stats_of(desk)
    return columnar.QueueStatistics(
        messages=found.messages,
        ready=found.ready,
        inFlight=found.in_flight,
        delayed=found.delayed,
        dead=found.dead,
        pushed=found.pushed,
        committed=found.committed,
        oldestMs=found.oldest_ms,
        leaseMs=found.settings.lease_ms,
        attempts=found.settings.attempts,
        fifo=found.settings.fifo,
        retentionS=found.settings.retention_s,
        deadTo=found.settings.dead_to,
        pushRate=found.push_rate_per_s,
        commitRate=found.commit_rate_per_s,
    )
