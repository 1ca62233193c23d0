"""Ticks of logs, the queue of readers, and replies that readers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from types import SimpleNamespace
from typing import Any, cast

import pytest

from columnar.errors import RegionTooBusy
from columnar.flows.governor import PAUSE, Governor
from columnar.streams import log_ticks
from columnar.streams.change_streams import SHARED_BYTES, SHARED_REPLIES, SharedReplies, StreamReply
from columnar.streams.log_ticks import LogTicks
from columnar.streams.reader_queue import LONGEST_PAUSE_S, POLL_S, REPLY_S, SLOTS_AT_ONCE, ReaderQueue


def on_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(asyncio.wait_for(test(), 20))

    return run


def region(number: int) -> Any:
    return SimpleNamespace(info=SimpleNamespace(region_id=number))


def ticks() -> LogTicks:
    return LogTicks(ReaderQueue(Governor()))


@on_loop
async def test_a_change_ends_the_waits_for_its_region_only() -> None:
    log = ticks()
    tick = log.tick
    mine = asyncio.ensure_future(log.wait_later([1, 2], tick, 10))
    other = asyncio.ensure_future(log.wait_later([3], tick, 10))
    await asyncio.sleep(0)
    log.note_durable(region(2))
    assert await mine
    assert not other.done()
    assert log.waiting_count == 1
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    assert log.waiting_count == 0
    log.note_durable(region(3))
    assert await log.wait_later([3], tick, 10), "it came before the wait"
    assert not await log.wait_later([3], log.tick, 0.001), "it is known"
    assert not await log.wait_later([1], log.tick, 0.001)


@on_loop
async def test_a_tick_of_another_process_is_looked_at_again() -> None:
    log = ticks()
    assert await log.wait_later([1], log.tick + 5, 10)
    assert await log.wait_later([1], 0, 10)


@on_loop
async def test_a_replaced_region_ends_its_waits() -> None:
    log = ticks()
    waiting = asyncio.ensure_future(log.wait_later([1], log.tick, 10))
    await asyncio.sleep(0)
    log.wake([1, 7])
    assert await waiting


@on_loop
async def test_too_many_waits_are_refused() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_ticks, "STREAM_WAITS", 2)
        log = ticks()
        waits = [asyncio.ensure_future(log.wait_later([1], log.tick, 10)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(RegionTooBusy):
            await log.wait_later([1], log.tick, 10)
        log.note_durable(region(1))
        assert await asyncio.gather(*waits) == [True, True]
        assert not await log.wait_later([1], log.tick, 0.001), "there is room again"


@on_loop
async def test_readers_get_slots_in_their_order_while_other_requests_come() -> None:
    answered = 0

    def busy() -> int:  # another request was answered each time
        nonlocal answered
        answered += 1
        return answered

    queue, order = ReaderQueue(Governor(busy)), []

    async def read(number: int) -> None:
        await queue.wait_slot()
        order.append((queue.round, number))

    await asyncio.gather(*(read(n) for n in range(20)))
    assert [number for _, number in order] == list(range(20))
    first = order[0][0]
    assert [one for one, _ in order] == [first] * 20, "all waited when the round began"
    await queue.wait_slot()
    assert queue.round == first + 1


@on_loop
async def test_a_reader_alone_waits_for_nothing() -> None:
    queue = ReaderQueue(Governor())
    for _ in range(3):
        before = queue.round
        slot = asyncio.ensure_future(queue.wait_slot())
        await asyncio.sleep(0)
        assert slot.done()
        assert queue.round == before + 1


@on_loop
async def test_readers_pause_for_all_that_they_read_and_hold_up_nobody_else() -> None:
    answered = 0

    def busy() -> int:
        nonlocal answered
        answered += 1_000
        return answered

    governor = Governor(busy)
    queue, loop = ReaderQueue(governor), asyncio.get_running_loop()

    async def read(count: int, cost_s: float) -> float:
        """Return how long ``count`` reads in a row take of the clock; each takes so much processor time."""
        begun_s = loop.time()
        for _ in range(count):
            await queue.wait_slot()
            queue.spend_time(cost_s)
        return loop.time() - begun_s

    assert await read(5, 0.005) > 0.9 * 4 * PAUSE * 0.005
    queue.spend_time(0.12)  # a pause of LONGEST_PAUSE_S, nearly
    slot, step = asyncio.ensure_future(queue.wait_slot()), loop.create_future()
    governor.soon(lambda: bool(step.set_result(None)))  # type: ignore[func-returns-value]
    await step
    assert not slot.done(), "other background work does not pay for readers"
    begun_s = loop.time()
    governor.answered = lambda: 0
    governor.requests_come()
    await slot
    assert loop.time() - begun_s < 30 * POLL_S, "no requests come any more"
    queue.spend_time(1e6)
    governor.answered = busy
    governor.requests_come()
    assert await read(1, 0.0) < LONGEST_PAUSE_S + 1.0


@on_loop
async def test_readers_whose_waits_end_at_once_are_answered_in_slots() -> None:
    """A thousand answers in one iteration of the loop, and their next requests, would hold up a put for 0.1 s."""
    answered = 0

    def busy() -> int:
        nonlocal answered
        answered += 1_000
        return answered

    log, loop, ends = LogTicks(ReaderQueue(Governor(busy))), asyncio.get_running_loop(), list[float]()

    async def read() -> None:
        assert not await log.wait_later([1], log.tick, 0.05)
        ends.append(loop.time())

    begun_s = loop.time()
    await asyncio.gather(*(read() for _ in range(100)))
    assert ends[0] - begun_s < 0.05 + 20 * POLL_S
    least_s = (100 // SLOTS_AT_ONCE - 2) * PAUSE * SLOTS_AT_ONCE * REPLY_S
    assert ends[-1] - ends[0] > 0.9 * least_s


@on_loop
async def test_a_reader_that_changes_have_woken_has_them_when_its_wait_is_over_in_the_queue() -> None:
    answered = 0

    def busy() -> int:
        nonlocal answered
        answered += 1_000
        return answered

    queue = ReaderQueue(Governor(busy))
    log = LogTicks(queue)
    waiting = asyncio.ensure_future(log.wait_later([1], log.tick, 0.05))
    await asyncio.sleep(0)
    queue.spend_time(0.04)  # a pause of 0.32 s
    log.note_durable(region(1))
    assert await waiting
    waiting = asyncio.ensure_future(log.wait_later([1], log.tick, 10))
    await asyncio.sleep(0)
    queue.spend_time(0.1)
    log.note_durable(region(1))
    log.waits.end_waits()
    await asyncio.sleep(0)
    assert waiting.done(), "a stop waits for no slot"


def test_shared_replies_are_of_their_table_and_bounded() -> None:
    shared, table, altered = SharedReplies(), cast(Any, object()), cast(Any, object())
    reply = StreamReply(b"events", b"position", 0)
    shared.keep_reply(table, "key", reply, 100)
    assert shared.find_reply(table, "key") is reply
    assert shared.find_reply(table, "other") is None
    assert shared.find_reply(altered, "key") is None
    assert shared.size_bytes == 0
    for n in range(SHARED_REPLIES + 10):
        shared.keep_reply(table, n, reply, 1_000)
        assert shared.find_reply(table, 0) is reply or n > SHARED_REPLIES
    assert shared.size_bytes == SHARED_REPLIES * 1_000
    assert shared.find_reply(table, 1) is None, "it was used longest ago"
    shared.keep_reply(table, "large", reply, SHARED_BYTES // 4)
    assert shared.size_bytes <= SHARED_BYTES
    shared.keep_reply(table, "too large", reply, SHARED_BYTES)
    assert shared.find_reply(table, "too large") is None
