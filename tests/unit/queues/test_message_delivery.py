"""The delivery of a served queue, on a real desk with a target that the test plays."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from columnar.errors import RegionNotLocal
from columnar.flows.governor import Governor
from columnar.model.message_delivery import DONE, RETURNED, End, How, ServedMessage
from columnar.queues import message_leases
from columnar.queues.delivery_pace import PAUSES_OF_ONE, DeliveryPace
from columnar.queues.lease_settling import LeaseSettling
from columnar.queues.message_delivery import MessageDelivery
from tests.support.queue_house import Q, Queues, queues

FAILED = End(How.FAILED, why="no")


class Played:
    """A target whose messages the test ends."""

    def __init__(self) -> None:
        self.under_way: dict[bytes, tuple[ServedMessage, Callable[[End], int]]] = {}
        self.seen: list[tuple[bytes, int]] = []
        self.calls: list[str] = []
        self.withdrawn = asyncio.Event()
        self._came = asyncio.Event()

    def deliver(self, message: ServedMessage, ended: Callable[[End], int]) -> None:
        self.under_way[message.body] = (message, ended)
        self.seen.append((message.body, message.attempt))
        self._came.set()

    def withdraw(self) -> None:
        self.calls.append("withdraw")
        self.withdrawn.set()

    def close(self) -> None:
        self.calls.append("close")

    def end(self, body: bytes, end: End = DONE) -> None:
        self.under_way.pop(body)[1](end)

    async def until(self, *bodies: bytes) -> None:
        while not set(bodies) <= self.under_way.keys():
            self._came.clear()
            await self._came.wait()


def delivery_of(
    house: Queues, target: Played, side_by_side: int = 8, rate: float | None = None, governor: Governor | None = None
) -> MessageDelivery:
    pace = DeliveryPace(side_by_side, rate, asyncio.get_running_loop().time())
    settling = LeaseSettling(house.desks, lambda: None)
    made = MessageDelivery(Q, pace, target, house.desks, settling, governor or Governor(), lambda: None)
    made.start()
    return made


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    while not await is_so():  # noqa: ASYNC110 - the desk tells nobody of it
        await asyncio.sleep(0.001)


async def until_committed(house: Queues, count: int) -> None:
    async def are_committed() -> bool:
        return bool((await house.stats()).committed >= count)

    await until(are_committed)


@queues
async def test_a_message_is_committed_when_its_work_is_done_and_not_before(house: Queues) -> None:
    target = Played()
    delivery = delivery_of(house, target)
    await house.push(b"a", headers={b"k": b"v"}, group=b"g", priority=3, name=b"n")
    await target.until(b"a")
    message = target.under_way[b"a"][0]
    assert (message.headers, message.group, message.priority, message.name) == (((b"k", b"v"),), b"g", 3, b"n")
    stats = await house.stats()
    assert (stats.inFlight, stats.committed) == (1, 0)
    target.end(b"a")
    await until_committed(house, 1)
    assert (await house.stats()).messages == 0
    await delivery.close()


@queues
async def test_what_fails_comes_again_and_what_is_put_off_counts_no_attempt(house: Queues) -> None:
    target = Played()
    delivery = delivery_of(house, target)
    await house.push(b"a", b"b")
    await target.until(b"a", b"b")
    target.end(b"a", FAILED)
    target.end(b"b", End(How.LATER, 0.01))
    while len(target.seen) < 4:
        house.clock.now_ms += 50
        house.desks.wake(Q, 1)
        await asyncio.sleep(0.001)
    assert sorted(target.seen) == [(b"a", 1), (b"a", 2), (b"b", 1), (b"b", 1)]
    assert target.under_way[b"a"][0].error == b"no"
    await delivery.close()


@queues
async def test_at_most_side_by_side_are_out_and_each_end_lets_the_next_begin(house: Queues) -> None:
    target = Played()
    delivery = delivery_of(house, target, side_by_side=2)
    await house.push(*[b"%d" % n for n in range(5)])
    await target.until(b"0", b"1")
    assert (await house.stats()).inFlight == 2
    target.end(b"1")
    await target.until(b"2")
    assert sorted(target.under_way) == [b"0", b"2"]
    for n in (0, 2, 3, 4):
        await target.until(b"%d" % n)
        target.end(b"%d" % n)
    await until_committed(house, 5)
    assert [body for body, _ in target.seen] == [b"0", b"1", b"2", b"3", b"4"]
    await delivery.close()


@queues
async def test_leases_last_while_the_target_works(house: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_leases, "EXTENDED_S", 0.002)

    async def is_extended(before: int) -> bool:
        return bool((await house.peek())[0].untilMs != before)

    target = Played()
    delivery = delivery_of(house, target)
    await house.push(b"a")
    await target.until(b"a")
    for _ in range(30):
        house.clock.now_ms += message_leases.LEASE_MS // 10
        before = (await house.peek())[0].untilMs
        await until(partial(is_extended, before))
    assert target.seen == [(b"a", 1)]
    target.end(b"a")
    await until_committed(house, 1)
    await delivery.close()


@queues
async def test_a_delivery_that_is_drained_waits_for_what_is_out_and_takes_nothing_more(house: Queues) -> None:
    target = Played()
    delivery = delivery_of(house, target, side_by_side=1)
    await house.push(b"a", b"b")
    await target.until(b"a")
    draining = asyncio.ensure_future(delivery.drain())
    await target.withdrawn.wait()
    assert not draining.done()
    target.end(b"a", RETURNED)
    await draining
    assert target.calls == ["withdraw", "close"]
    stats = await house.stats()
    assert (stats.ready, stats.inFlight, stats.committed) == (2, 0, 0)
    assert [one.attempts for one in await house.pop(2)] == [1, 1], "nobody worked on the message"


@queues
async def test_the_end_of_the_process_puts_messages_off_and_late_ends_count_no_more(house: Queues) -> None:
    target = Played()
    delivery = delivery_of(house, target)
    await house.push(b"a")
    await target.until(b"a")
    _, ended = target.under_way[b"a"]
    await delivery.close()
    ended(DONE)
    assert (await house.stats()).ready == 1
    assert (await house.stats()).committed == 0


@queues
async def test_an_idle_delivery_pops_only_when_it_is_woken(house: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Played()
    await house.push(b"first")
    delivery = delivery_of(house, target)
    await target.until(b"first")
    target.end(b"first")
    await until_committed(house, 1)
    pops = 0
    run = house.desks.run

    def counted(*given: object) -> object:
        nonlocal pops
        pops += 1
        return run(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(house.desks, "run", counted)
    for _ in range(50):
        house.clock.now_ms += 1_000
        await asyncio.sleep(0)
    assert pops == 0
    await house.push(b"second")
    await target.until(b"second")
    await delivery.close()


@queues
async def test_a_wake_that_finds_no_room_goes_to_another_consumer(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_leases, "EXTENDED_S", 60.0)  # an extension wakes consumers, too
    target = Played()
    await house.push(b"a")
    delivery = delivery_of(house, target)
    await target.until(b"a")
    waiting = asyncio.ensure_future(house.pop(1, wait_ms=20_000))
    await asyncio.sleep(0.01)
    delivery.pace.begin_messages(1)
    delivery.pace.end_message(End(How.BLOCKED, 60.0, "busy"), 1, 1, asyncio.get_running_loop().time())
    await house.push(b"b")
    async with asyncio.timeout(5):  # later the end of a lease wakes it
        assert [one.body for one in await waiting] == [b"b"], "the push has woken the delivery, which waited first"
    assert delivery.pace.why == "busy"
    await delivery.close()


def busy(seconds: float = 0.01) -> End:
    return End(How.BLOCKED, seconds, "asked for a pause", is_requested=True)


@queues
async def test_a_message_at_which_its_target_always_asks_for_a_pause_fails_and_others_go_on(house: Queues) -> None:
    target = Played()
    delivery = delivery_of(house, target)
    await house.push(b"bad", b"b", b"c")
    await target.until(b"bad", b"b", b"c")
    for good in (b"b", b"c"):
        target.end(good)
    await house.push(b"d")
    for _ in range(PAUSES_OF_ONE):
        await target.until(b"bad")
        assert target.under_way[b"bad"][0].attempt == 1
        target.under_way.pop(b"d", None)
        target.end(b"bad", busy())
    await target.until(b"d")
    assert target.seen[3:] == [(b"bad", 1)] * (PAUSES_OF_ONE - 1) + [(b"d", 1)], "it goes alone, and then another"
    assert target.under_way.pop(b"d")[1](DONE) == 1, "one message has failed by it"
    await until_committed(house, 3)
    while target.seen[-1] != (b"bad", 2):
        house.clock.now_ms += 50
        house.desks.wake(Q, 1)
        await asyncio.sleep(0.001)
    assert target.under_way[b"bad"][0].error == b"asked for a pause"
    await delivery.close()


@queues
async def test_the_only_message_goes_again_after_each_pause_and_costs_no_attempt(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_leases, "EXTENDED_S", 60.0)  # an extension wakes the delivery, too
    target = Played()
    delivery = delivery_of(house, target)
    await house.push(b"a")
    async with asyncio.timeout(5):  # later the end of its lease wakes it
        for _ in range(3 * PAUSES_OF_ONE):
            await target.until(b"a")
            target.end(b"a", busy())
        await target.until(b"a")
    assert set(target.seen) == {(b"a", 1)}
    assert (await house.stats()).inFlight == 1, "it keeps its lease"
    target.end(b"a")
    await until_committed(house, 1)
    await delivery.close()


@queues
async def test_a_target_that_asks_for_a_pause_at_the_next_message_too_costs_no_attempt(house: Queues) -> None:
    target = Played()
    delivery = delivery_of(house, target, side_by_side=1)
    await house.push(b"a", b"b")
    for _ in range(PAUSES_OF_ONE):
        await target.until(b"a")
        target.end(b"a", busy())
    for _ in range(PAUSES_OF_ONE):
        await target.until(b"b")
        assert target.under_way.pop(b"b")[1](busy()) == 0
    while target.seen[-1] != (b"a", 1) or b"a" not in target.under_way:
        house.clock.now_ms += 50
        house.desks.wake(Q, 1)
        await asyncio.sleep(0.001)
    assert {attempt for _, attempt in target.seen} == {1}
    await delivery.close()


@pytest.fixture(params=[True, False])
def is_kept_before(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@queues
async def test_a_delivery_that_ends_gives_the_message_back_that_waits_for_a_pause(
    house: Queues, is_kept_before: bool
) -> None:
    target = Played()
    delivery = delivery_of(house, target)
    await house.push(b"a")
    await target.until(b"a")
    if is_kept_before:
        target.end(b"a", busy(60.0))
    draining = asyncio.ensure_future(delivery.drain())
    if not is_kept_before:
        await target.withdrawn.wait()
        target.end(b"a", busy(60.0))
    async with asyncio.timeout(5):
        await draining
    assert [one.attempts for one in await house.pop(1)] == [1]


@queues
async def test_a_message_that_waits_goes_with_its_queue_to_another_server(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, asked = Played(), asyncio.Event()
    delivery = delivery_of(house, target)
    await house.push(b"a")
    for _ in range(PAUSES_OF_ONE):
        await target.until(b"a")
        target.end(b"a", busy())

    def elsewhere(*_given: object) -> object:
        asked.set()
        monkeypatch.undo()
        raise RegionNotLocal("columnar:queues", "r")

    monkeypatch.setattr(house.desks, "run", elsewhere)
    await asked.wait()

    async def is_ready() -> bool:
        return bool((await house.stats()).ready == 1)

    await until(is_ready)
    assert target.under_way == {}
    await delivery.close()


@queues
async def test_a_queue_of_another_server_is_waited_for(house: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    target, change = Played(), asyncio.get_running_loop().create_future()
    run, is_local = house.desks.run, False

    def perhaps(*given: object) -> object:
        if not is_local:
            raise RegionNotLocal("columnar:queues", "r")
        return run(*given)  # type: ignore[arg-type]

    await house.push(b"a")
    monkeypatch.setattr(house.desks, "run", perhaps)
    pace = DeliveryPace(8, None, 0.0)
    delivery = MessageDelivery(
        Q, pace, target, house.desks, LeaseSettling(house.desks, lambda: None), Governor(), lambda: change
    )
    delivery.start()
    await asyncio.sleep(0.01)
    assert target.seen == []
    is_local = True
    change.set_result(None)
    await target.until(b"a")
    await delivery.close()


@queues
async def test_an_error_of_the_store_is_outlived(
    house: Queues, monkeypatch: pytest.MonkeyPatch, expected_faults: object
) -> None:
    target, tries = Played(), 0
    run = house.desks.run

    def failing(*given: object) -> object:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ZeroDivisionError("as told")
        return run(*given)  # type: ignore[arg-type]

    await house.push(b"a")
    monkeypatch.setattr(house.desks, "run", failing)
    delivery = delivery_of(house, target)
    await target.until(b"a")
    assert delivery.error == ""
    await delivery.close()


class ClosedGate:
    """A lease of the process that the test lets hold."""

    def __init__(self) -> None:
        self.waiting: list[object] = []
        self.waits = asyncio.Event()
        self.holds = False

    def is_open(self) -> bool:
        return self.holds

    def wait(self, one: object) -> None:
        self.waiting.append(one)
        self.waits.set()


@queues
async def test_without_the_lease_of_the_process_no_message_goes_out(house: Queues) -> None:
    governor, gate, target = Governor(), ClosedGate(), Played()
    governor.gate = gate  # type: ignore[assignment]
    delivery = delivery_of(house, target, governor=governor)
    await house.push(b"a")
    await gate.waits.wait()
    assert target.seen == []
    gate.holds = True
    gate.waiting.pop().gate_opened()  # type: ignore[attr-defined]
    await target.until(b"a")
    await delivery.close()
