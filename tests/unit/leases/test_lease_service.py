"""Calls about leases at the owner of their rows: durable before the answer, waits without polling, bounds."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from columnar.errors import CallQueueTooBig, ClientGone, IllegalArgument, NotAllowed
from columnar.leases import lease_service as subject
from columnar.leases.lease_service import LeaseReply, LeaseService
from columnar.leases.lease_state import LeaseRequest
from columnar.model.lease import LEASES_TABLE
from columnar.model.schema import Family, make_table
from tests.support.region_house import House

NAME = b"import"
TABLE = make_table(LEASES_TABLE, [Family("lease")])


class Leases(House):
    def __init__(self) -> None:
        super().__init__(TABLE)
        self.region(NAME)
        self.now_s = 100.0
        self.service = LeaseService(self.operations.access, lambda: self.now_s)
        self.gone: set[bytes] = set()

    def ask(self, holder: bytes, ttl_ms: int = 1_000, token: int = 0, wait_ms: int = 0) -> asyncio.Task[LeaseReply]:
        asked = LeaseRequest(holder, ttl_ms, token)
        return asyncio.ensure_future(self.service.request(NAME, asked, wait_ms, lambda: holder in self.gone))

    async def waiting(self, count: int) -> None:
        """Return when so many callers stand in lines."""
        while self.service._waiting != count:  # noqa: ASYNC110 - the service has no event for its tests
            await asyncio.sleep(0)

    async def expire(self) -> None:
        """Let the lease end, as its timer finds it."""
        self.now_s += 1.0
        self.service._lines[NAME].wake()


def in_house(test: Callable[[Leases], Awaitable[None]]) -> Callable[[], None]:
    async def run() -> None:
        house = Leases()
        async with asyncio.timeout(20):
            await test(house)
        assert not house.service._lines
        await house.close()

    def wrapper() -> None:
        asyncio.run(run())

    wrapper.__name__, wrapper.__doc__ = test.__name__, inspect.getdoc(test)
    return wrapper


@in_house
async def test_a_lease_is_acquired_renewed_released_and_looked_at(house: Leases) -> None:
    assert await house.ask(b"", 0) == LeaseReply(False, 0, b"", 0)
    assert await house.ask(b"a") == LeaseReply(True, 1, b"a", 1_000)
    house.now_s += 0.4
    assert await house.ask(b"b") == LeaseReply(False, 1, b"a", 600)
    assert await house.ask(b"a", 2_000, 1) == LeaseReply(True, 1, b"a", 2_000)
    house.now_s += 1.9
    assert await house.ask(b"", 0) == LeaseReply(False, 1, b"a", 100)
    assert await house.ask(b"a", 0, 1) == LeaseReply(False, 1, b"", 0)
    assert await house.ask(b"b") == LeaseReply(True, 2, b"b", 1_000)
    house.now_s += 1.0
    assert await house.ask(b"", 0) == LeaseReply(False, 2, b"", 0)
    assert await house.ask(b"a") == LeaseReply(True, 3, b"a", 1_000)


@in_house
async def test_no_answer_comes_before_the_fsync(house: Leases) -> None:
    """An answer to another caller would tell of a token that a crash takes back."""
    house.gate.hold()
    given, other = house.ask(b"a"), house.ask(b"b")
    for _ in range(50):
        await asyncio.sleep(0)
    assert not given.done()
    assert not other.done()
    house.gate.release()
    assert (await given).is_held
    assert not (await other).is_held


@in_house
async def test_the_wall_clock_may_go_back(house: Leases) -> None:
    house.clock.now_ms = 1_000_000
    await house.ask(b"a")
    house.clock.now_ms = 1_000
    await house.ask(b"a", 0, 1)
    assert (await house.ask(b"b")).token == 2


@in_house
async def test_a_server_that_begins_anew_holds_a_lease_for_its_full_time(house: Leases) -> None:
    await house.ask(b"a")
    house.now_s += 5.0
    house.service = LeaseService(house.operations.access, lambda: house.now_s)
    assert await house.ask(b"b") == LeaseReply(False, 1, b"a", 1_000)
    house.now_s += 1.0
    assert (await house.ask(b"b")).token == 2


@in_house
async def test_those_who_wait_get_the_lease_in_their_order(house: Leases) -> None:
    await house.ask(b"a")
    first = house.ask(b"b", wait_ms=30_000)
    await house.waiting(1)
    second = house.ask(b"c", wait_ms=30_000)
    await house.waiting(2)
    await house.ask(b"a", 0, 1)
    late = house.ask(b"d", wait_ms=30_000)
    assert (await first).token == 2
    await house.waiting(2)
    assert not second.done()
    await house.expire()
    assert (await second).token == 3
    await house.ask(b"c", 0, 3)
    assert (await late).token == 4


@in_house
async def test_an_expiry_wakes_by_a_timer(house: Leases) -> None:
    house.service = LeaseService(house.operations.access)  # with the real clock
    await house.ask(b"a", 100)
    assert (await house.ask(b"b", wait_ms=30_000)).token == 2


@in_house
async def test_a_wait_ends_and_a_client_that_is_gone_gets_nothing(house: Leases) -> None:
    await house.ask(b"a")
    first = house.ask(b"b", wait_ms=1)
    await house.waiting(1)
    house.now_s += 0.5
    assert await first == LeaseReply(False, 1, b"a", 1_000), "as it was when it was asked"
    gone, next_ = house.ask(b"c", wait_ms=30_000), house.ask(b"d", wait_ms=30_000)
    await house.waiting(2)
    house.gone.add(b"c")
    await house.ask(b"a", 0, 1)
    with pytest.raises(ClientGone):
        await gone
    assert (await next_).token == 2


@in_house
async def test_a_cancelled_caller_passes_its_turn_on(house: Leases) -> None:
    await house.ask(b"a")
    first = house.ask(b"b", wait_ms=30_000)
    await house.waiting(1)
    second = house.ask(b"c", wait_ms=30_000)
    await house.waiting(2)
    house.gate.hold()
    released = house.ask(b"a", 0, 1)
    while not house.service._lines[NAME].waiters[0].done():
        house.service._lines[NAME].wake()
        await asyncio.sleep(0)
    first.cancel()
    house.gate.release()
    await released
    assert (await second).is_held


@in_house
async def test_the_bounds(house: Leases) -> None:
    wrong: list[tuple[Any, str]] = [
        ((b"a", 50), "100 to 3600000 ms"), ((b"a", 4_000_000), "100 to 3600000 ms"), ((b"", 1_000), "who holds"),
        ((b"a" * 1_025, 1_000), "at most 1024"), ((b"a", 1_000, -1), "positive"), ((b"a", 1_000, 0, 30_001), "30000"),
        ((b"a", -1), "100 to"),
    ]  # fmt: skip
    for args, says in wrong:
        with pytest.raises(IllegalArgument, match=says):
            await house.ask(*args)
    for name in (b"", b"n" * 257):
        with pytest.raises(IllegalArgument, match="1 to 256 bytes"):
            await house.service.request(name, LeaseRequest(b"a", 1_000, 0), 0, lambda: False)
    await house.ask(b"a")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "LEASE_WAITERS", 1)
        first = house.ask(b"b", wait_ms=30_000)
        await house.waiting(1)
        with pytest.raises(CallQueueTooBig, match="1 callers wait"):
            await house.ask(b"c", wait_ms=30_000)
    await house.ask(b"a", 0, 1)
    assert (await first).is_held


def test_nobody_else_writes_the_table() -> None:
    from dataclasses import replace

    with pytest.raises(NotAllowed, match="written by the store alone"):
        replace(TABLE, kept_by=LEASES_TABLE).check_written_by()


@in_house
async def test_a_stop_answers_those_who_wait_and_none_gets_the_lease(house: Leases) -> None:
    await house.ask(b"a")
    first, second = house.ask(b"b", wait_ms=30_000), house.ask(b"c", wait_ms=30_000)
    await house.waiting(2)
    house.service._waits.end_waits()
    assert await asyncio.gather(first, second) == [LeaseReply(False, 1, b"a", 1_000)] * 2
    await house.ask(b"a", 0, 1)
    assert (await house.ask(b"d", wait_ms=30_000)).token == 2, "who need not wait is served"
