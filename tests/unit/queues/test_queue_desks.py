"""Calls that wait: for a store that is behind, for messages, for a region; and the memory of all desks together."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from columnar.errors import ClientGone, RegionNotLocal, RegionTooBusy
from columnar.operations import row_desks
from columnar.queues import queue_desks
from columnar.regions.life import retry
from columnar.runtime.long_waits import ENDING_WAIT_S
from columnar.storage.api import StoreBusy
from columnar.wire.idl import columnar
from columnar.wire.service import CallContext
from tests.support.queue_house import CTX, Q, Queues, queues
from tests.support.service_calls import answer_of

CALLS = 20


class Behind:
    """A store whose engine is behind until ``catch_up``."""

    def __init__(self, house: Queues) -> None:
        self.tries = 0
        self._store = house.region(Q).store
        self._gather = self._store.gather
        self._store.gather = self._refuse  # type: ignore[method-assign]

    def _refuse(self, _batch: object) -> None:
        self.tries += 1
        raise StoreBusy("behind", "a folder")

    def catch_up(self) -> None:
        self._store.gather = self._gather  # type: ignore[method-assign]


async def looped(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def pop_of(house: Queues, ctx: CallContext, queue: bytes = Q, wait_ms: int = 20_000) -> Any:
    return asyncio.ensure_future(answer_of(house.methods.columnarQueuePop(ctx, queue, 1, wait_ms, 0)))


async def pushed_to(house: Queues, queue: bytes, count: int = 1) -> None:
    messages = [columnar.QueueMessage(body=b"%d" % number) for number in range(count)]
    await answer_of(house.methods.columnarQueuePush(CTX, queue, messages))


@queues
async def test_one_call_tries_for_all_that_wait_for_a_store(house: Queues) -> None:
    await house.stats()
    behind = Behind(house)
    pushing = [asyncio.ensure_future(house.push(b"%d" % number)) for number in range(CALLS)]
    while behind.tries < 2 * CALLS + 5:  # noqa: ASYNC110 - each at once and before the line, then only the first
        await asyncio.sleep(0.001)
    before = behind.tries
    await asyncio.sleep(4 * retry.STALL_POLL_S)
    assert behind.tries - before <= 5
    behind.catch_up()
    await asyncio.gather(*pushing)
    assert await house.bodies(CALLS) == [b"%d" % number for number in range(CALLS)]


def test_a_store_that_stays_behind_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "STALL_TIMEOUT_S", 0.02)

    @queues
    async def answered(house: Queues) -> None:
        await house.stats()
        behind = Behind(house)
        with pytest.raises(StoreBusy):
            await house.push(b"a")
        behind.catch_up()
        assert await house.bodies() == []

    answered()


@queues
async def test_a_client_that_has_gone_waits_for_no_store(house: Queues) -> None:
    await house.stats()
    behind, gone = Behind(house), list[bool]()
    ctx = CallContext(2, "gone", has_gone=lambda: bool(gone))
    pushing = asyncio.ensure_future(
        answer_of(house.methods.columnarQueuePush(ctx, Q, [columnar.QueueMessage(body=b"a")]))
    )
    await looped()
    gone.append(True)
    with pytest.raises(ClientGone):
        await pushing
    behind.catch_up()


@queues
async def test_a_message_goes_past_a_pop_whose_client_has_gone(house: Queues) -> None:
    gone = list[bool]()
    dead = pop_of(house, CallContext(2, "gone", has_gone=lambda: bool(gone)))
    await looped()
    alive = pop_of(house, CTX)
    await looped()
    gone.append(True)
    await house.push(b"a")
    assert [one.body for one in await asyncio.wait_for(alive, 5)] == [b"a"]
    with pytest.raises(ClientGone):
        await dead


@queues
async def test_a_waiting_pop_goes_to_the_next_owner_when_its_region_does(house: Queues) -> None:
    waiting = pop_of(house, CTX)
    await looped()
    region = house.region(Q)
    house.server.hosting.state.give_up(region.info.region_id)
    house.server.eviction.evict(region)
    with pytest.raises(RegionNotLocal):
        await asyncio.wait_for(waiting, queue_desks.REOPENING_S / 2)


@queues
async def test_a_waiting_pop_does_not_open_a_region_that_was_closed_and_gets_the_next_message(house: Queues) -> None:
    waiting = [pop_of(house, CTX) for _ in range(3)]
    await looped()
    region = house.region(Q)
    house.server.eviction.evict(region)
    await looped(100)
    assert not house.server.is_open(region.info)
    await pushed_to(house, Q, 3)
    found = await asyncio.wait_for(asyncio.gather(*waiting), queue_desks.REOPENING_S / 2)
    assert sorted(one.body for messages in found for one in messages) == [b"0", b"1", b"2"]


def test_a_waiting_pop_opens_a_closed_region_for_a_delay_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_desks, "REOPENING_S", 0.05)

    @queues
    async def opened(house: Queues) -> None:
        await house.push(b"a", delayMs=50)
        waiting = pop_of(house, CTX)
        await looped()
        house.server.eviction.evict(house.region(Q))
        house.clock.now_ms += 50
        assert [one.body for one in await waiting] == [b"a"]

    opened()


def test_pops_of_clients_that_have_gone_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_desks, "QUEUE_WAITERS", 2)

    @queues
    async def made(house: Queues) -> None:
        gone = list[bool]()
        waiting = [pop_of(house, CallContext(2, "gone", has_gone=lambda: bool(gone))) for _ in range(2)]
        await looped()
        with pytest.raises(RegionTooBusy, match="pops wait"):
            await pop_of(house, CTX)
        gone.append(True)
        alive = pop_of(house, CTX)
        for one in waiting:
            with pytest.raises(ClientGone):
                await one
        await house.push(b"a")
        assert [one.body for one in await alive] == [b"a"]

    made()


def test_all_desks_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_desks, "DESKS_BYTES", 200_000)

    @queues
    async def bounded(house: Queues) -> None:
        desks: Any = house.desks._desks
        for number in range(30):
            queue = b"q%d" % number
            await pushed_to(house, queue, 100)
            held = await pop_of(house, CTX, queue)
            assert held[0].body == b"0"
            assert desks._bytes.keys() == desks._desks.keys()
            assert sum(desks._bytes.values()) == desks._counted_bytes
            assert desks._counted_bytes <= 200_000 + desks._bytes[queue]
        assert len(desks._desks) < 20
        assert len(house.region(Q).on_leave) == 1
        for number in range(30):
            assert (await pop_of(house, CTX, b"q%d" % number))[0].body == b"1"

    bounded()


def test_a_desk_that_is_swept_is_not_made_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_desks, "DESKS_BYTES", 1)

    @queues
    async def kept(house: Queues) -> None:
        desks: Any = house.desks._desks
        await pushed_to(house, Q)
        desk = desks._desks[Q]
        with desk.background.counted():  # as a sweep does, which writes totals as ``desk`` knows them
            await pushed_to(house, b"other")
            assert (await house.stats()).messages == 1
            assert desks._desks[Q] is desk
        await house.stats()
        await pushed_to(house, b"other")
        await pushed_to(house, b"other")
        assert Q not in desks._desks
        assert not desk.is_usable, "it must not write totals beside the desk that follows"

    kept()


@queues
async def test_a_waiting_pop_gets_a_message_whose_lease_began_after_it(house: Queues) -> None:
    await house.push(b"long")
    await house.pop(lease_ms=60_000)
    pops = [asyncio.ensure_future(house.pop(wait_ms=20_000, lease_ms=20)) for _ in range(2)]
    await looped()
    await house.stats()  # the alarm is that of the long lease
    began_s = time.monotonic()
    await house.push(b"a")
    ticking = asyncio.ensure_future(ticked(house, lambda: not all(one.done() for one in pops)))
    first, second = [(await one)[0] for one in pops]
    await ticking
    assert (first.attempts, second.attempts) == (1, 2)
    assert time.monotonic() - began_s < 10, "a wait is 20 s"
    assert not house.desks._alarms


@queues
async def test_each_waiting_pop_gets_one_of_the_messages_whose_leases_end_together(house: Queues) -> None:
    await house.push(b"a", b"b", b"c")
    await house.pop(3, lease_ms=20)
    pops = [asyncio.ensure_future(house.pop(wait_ms=20_000)) for _ in range(3)]
    await looped()
    began_s = time.monotonic()
    house.clock.now_ms += 20
    assert sorted([(await one)[0].body for one in pops]) == [b"a", b"b", b"c"]
    assert time.monotonic() - began_s < 10, "a wait is 20 s"


@queues
async def test_no_alarm_stays_without_a_pop_that_waits(house: Queues) -> None:
    await house.push(b"a")
    waiting = asyncio.ensure_future(house.pop(2, wait_ms=20_000, lease_ms=5_000))
    await waiting
    waiting = asyncio.ensure_future(house.pop(wait_ms=300))
    await looped()
    await house.peek()
    assert house.desks._alarms
    assert await waiting == []
    assert not house.desks._alarms


async def ticked(house: Queues, goes_on: Callable[[], bool]) -> None:
    """Have the clock of the region go with that of the loop."""
    loop = asyncio.get_running_loop()
    began_s, began_ms = loop.time(), house.clock.now_ms
    while goes_on():
        house.clock.now_ms = began_ms + round((loop.time() - began_s) * 1_000)
        await asyncio.sleep(0.001)


@queues
async def test_a_stop_answers_the_pops_that_wait_and_has_none_wait_afterwards(house: Queues) -> None:
    await house.push(b"held")
    await house.pop()
    waiting = [asyncio.ensure_future(house.pop(wait_ms=20_000)) for _ in range(3)]
    await looped()
    house.desks._waits.end_waits()
    began_s = time.monotonic()
    assert await asyncio.gather(*waiting) == [[], [], []]
    assert time.monotonic() - began_s < 10, "a wait is 20 s"
    began_s = time.monotonic()
    assert await house.pop(wait_ms=20_000) == []
    assert ENDING_WAIT_S <= time.monotonic() - began_s < 10, "it does not pop again at once"
    await house.push(b"a")
    assert await house.bodies() == [b"a"], "a pop that need not wait is done"


def test_an_alarm_that_is_due_at_once_rings_once_whatever_handle_the_loop_gives() -> None:
    """The loop of the store, uvloop, gives a handle without a time if the alarm is due within half a millisecond."""
    woken: list[bytes] = []
    alarms = queue_desks._Alarms({b"q": deque()}, lambda queue, _count: woken.append(queue))
    desk: Any = SimpleNamespace(queue=b"q", next_wait_ms=lambda: 0)

    async def ring() -> None:
        loop = asyncio.get_running_loop()
        loop.call_at = lambda _when, callback, *given: loop.call_soon(callback, *given)  # type: ignore[method-assign]
        alarms.set_alarm(desk)
        alarms.set_alarm(desk)  # a second step within the same iteration
        assert len(alarms) == 1
        await asyncio.sleep(0)

    asyncio.run(ring())
    assert woken == [b"q"]
    assert len(alarms) == 0
