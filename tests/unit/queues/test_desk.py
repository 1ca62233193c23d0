"""A desk on a region: pushes, pops, leases that outlive it, names, dead messages."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.errors import IllegalArgument, RequestTooBig
from columnar.queues import desk as desk_module
from columnar.queues import queue_state, queue_status
from columnar.queues.queue_status import QueueFlows
from columnar.regions.region import STEP_MS
from tests.support.queue_house import CTX, Q, Queues, queues
from tests.support.service_calls import answer_of


@queues
async def test_a_message_is_given_out_until_it_is_committed(house: Queues) -> None:
    await house.push(b"a", b"b")
    first = await house.pop()
    assert (first[0].body, first[0].attempts) == (b"a", 1)
    assert await house.bodies(5) == [b"b"]
    assert await house.settle(first) == [True]
    assert await house.settle(first) == [False]
    house.clock.now_ms += 30_000
    again = await house.pop(5)
    assert [(one.body, one.attempts) for one in again] == [(b"b", 2)]
    found = await house.stats()
    assert (found.messages, found.inFlight, found.pushed, found.committed) == (1, 1, 2, 1)


@queues
async def test_leases_and_attempts_outlive_the_desk(house: Queues) -> None:
    await house.push(b"a", b"b", b"c")
    held = await house.pop(2, lease_ms=10_000)
    assert await house.settle(held[:1], "rollback", 5_000, b"broken") == [True]
    house.begin_again()
    assert await house.bodies(5) == [b"c"]
    house.clock.now_ms += 5_000
    again = await house.pop(5)
    assert [(one.body, one.attempts, one.error) for one in again] == [(b"a", 2, b"broken")]
    assert await house.settle(held[1:]) == [True]
    house.clock.now_ms += 60_000
    assert sorted(await house.bodies(5)) == [b"a", b"c"]


@queues
async def test_a_lease_does_not_end_earlier_because_a_crash_put_the_clock_forward(house: Queues) -> None:
    await house.push(b"a")
    held = await house.pop(lease_ms=10_000)
    house.clock.now_ms += 9_900 + STEP_MS
    house.begin_again()
    assert await house.bodies() == []
    assert await house.settle(held, "extend", 1_000) == [True]
    house.clock.now_ms += 1_000
    assert await house.bodies() == [b"a"]


@queues
async def test_a_name_with_a_time_lasts_from_the_push_on_and_no_longer(house: Queues) -> None:
    assert [one.isNew for one in await house.push(b"a", name=b"n", nameMs=300_000)] == [True]
    assert [one.isNew for one in await house.push(b"b", name=b"n", nameMs=300_000)] == [False]
    assert await house.settle(await house.pop()) == [True]
    house.clock.now_ms += 299_000
    assert [one.isNew for one in await house.push(b"c", name=b"n", nameMs=300_000)] == [False]
    house.clock.now_ms += 2_000  # a commit does not make it last longer
    assert [one.isNew for one in await house.push(b"d", name=b"n", nameMs=300_000)] == [True]
    house.clock.now_ms += 301_000  # and the message that is still there does not either
    assert [one.isNew for one in await house.push(b"e", name=b"n", nameMs=300_000)] == [True]
    assert await house.bodies(5) == [b"d", b"e"]


@queues
async def test_the_time_of_the_first_pop_outlives_others_and_the_desk(house: Queues) -> None:
    await house.push(b"a")
    first = (await house.pop(lease_ms=1_000))[0].firstMs
    assert first > 0
    house.clock.now_ms += 1_000 + desk_module.GRACE_MS
    house.begin_again()
    again = (await house.pop())[0]
    assert (again.attempts, again.firstMs) == (2, first)


@queues
async def test_a_lost_lease_settles_nothing(house: Queues) -> None:
    await house.push(b"a")
    old = await house.pop(lease_ms=1_000)
    house.clock.now_ms += 1_000
    for what, ms in (("rollback", 0), ("extend", 5)):
        assert await house.settle(old, what, ms) == [False]
    new = await house.pop()
    for what, ms in (("commit", 0), ("rollback", 0), ("extend", 5)):
        assert await house.settle(old, what, ms) == [False]
    assert await house.settle(new, "extend", 90_000) == [True]
    house.clock.now_ms += 89_999
    assert await house.bodies() == []
    assert await house.settle(new) == [True]


@queues
async def test_a_late_commit_counts_until_somebody_else_gets_the_message(house: Queues) -> None:
    for fifo in (False, True):
        await house.configure(fifo=fifo)
        await house.push(b"a", b"b", group=b"g")
        late = await house.pop(lease_ms=1_000)
        house.clock.now_ms += 1_000
        assert (await house.stats()).ready == 2
        assert await house.settle(late) == [True]
        assert await house.settle(late) == [False]
        last = await house.pop(lease_ms=1_000)
        assert [one.body for one in last] == [b"b"]
        house.clock.now_ms += 1_000 + desk_module.GRACE_MS
        house.begin_again()
        assert await house.settle(last) == [True]
        assert await house.pop() == []
        assert house.stored_rows() == [Q + b"\x00s"]


@queues
async def test_a_message_is_given_out_only_after_its_fsync(house: Queues) -> None:
    await house.stats()
    house.gate.hold()
    pushing = asyncio.ensure_future(house.push(b"a"))
    await asyncio.sleep(0)
    assert await house.bodies() == []
    waiting = asyncio.ensure_future(house.pop(wait_ms=10_000))
    await asyncio.sleep(0)
    house.gate.release()
    await pushing
    assert [one.body for one in await waiting] == [b"a"]


@queues
async def test_a_message_on_its_way_to_the_disk_is_not_read_from_the_rows(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_state, "SUBQUEUE_CACHED", 2)
    await house.push(b"a", b"b", b"c", b"d")
    house.gate.hold()
    pushing = asyncio.ensure_future(house.push(b"late"))
    await asyncio.sleep(0)
    assert await house.bodies(9) == [b"a", b"b", b"c", b"d"]
    house.gate.release()
    await pushing
    assert await house.bodies(9) == [b"late"]


@queues
async def test_a_receipt_that_comes_twice_in_a_call_is_settled_once(house: Queues) -> None:
    await house.push(b"a", b"b")
    first, second = await house.pop(2)
    assert await house.settle([first, first, second]) == [True, True, True]
    stats = await house.stats()
    assert (stats.messages, stats.committed) == (0, 2)


@queues
async def test_a_desk_that_follows_another_gives_out_what_is_on_disk(house: Queues) -> None:
    await house.stats()
    house.gate.hold()
    pushing = asyncio.ensure_future(house.push(b"a"))
    await asyncio.sleep(0)
    house.begin_again()
    popping = asyncio.ensure_future(house.bodies())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not popping.done()
    house.gate.release()
    assert await popping == [b"a"]
    await pushing


@queues
async def test_a_name_is_taken_while_its_message_is_there_and_five_minutes_more(house: Queues) -> None:
    first, second = await house.push(b"a", b"b", name=b"n")
    assert (first.isNew, second.isNew, second.id) == (True, False, first.id)
    house.begin_again()
    assert [one.isNew for one in await house.push(b"c", name=b"n")] == [False]
    assert await house.settle(await house.pop()) == [True]
    house.clock.now_ms += 299_000
    assert [one.isNew for one in await house.push(b"c", name=b"n")] == [False]
    house.clock.now_ms += 2_000
    assert [one.isNew for one in await house.push(b"d", name=b"n")] == [True]
    assert await house.bodies(5) == [b"d"]


@queues
async def test_a_message_is_dead_after_its_attempts(house: Queues) -> None:
    await house.configure(attempts=2)
    await house.push(b"a", headers={b"k": b"v"})
    await house.settle(await house.pop(), "rollback", 0, b"one")
    await house.settle(await house.pop(), "rollback", 0, b"two")
    assert await house.bodies() == []
    house.begin_again()
    assert await house.bodies() == []
    found = await house.stats()
    assert (found.messages, found.dead, found.inFlight, found.attempts) == (0, 1, 0, 2)


@queues
async def test_a_fifo_group_has_one_message_out_at_a_time(house: Queues) -> None:
    await house.configure(fifo=True)
    await house.push(b"a1", b"a2", group=b"a")
    await house.push(b"b1", group=b"b")
    held = await house.pop(9)
    assert [one.body for one in held] == [b"a1", b"b1"]
    house.begin_again()
    assert await house.bodies(9) == []
    await house.settle(held[:1], "rollback", 0)
    assert await house.bodies(9) == [b"a1"]
    with pytest.raises(IllegalArgument, match="FIFO"):
        await house.push(b"x", priority=1)
    with pytest.raises(IllegalArgument, match="empty it first"):
        await house.configure(fifo=False)


@queues
async def test_priority_and_delay(house: Queues) -> None:
    await house.push(b"low")
    await house.push(b"high", priority=9)
    await house.push(b"later", priority=99, delayMs=500)
    assert await house.bodies(9) == [b"high", b"low"]
    house.begin_again()
    assert await house.bodies(9) == []
    house.clock.now_ms += 500
    assert await house.bodies(9) == [b"later"]


@queues
async def test_many_messages_are_read_in_their_order_and_never_again(house: Queues) -> None:
    for start in range(0, 3_000, 1_000):
        await house.push(*(b"%d" % n for n in range(start, start + 1_000)))
    house.begin_again()
    seen: list[bytes] = []
    while found := await house.pop(100):
        seen += [one.body for one in found]
        assert all(await house.settle(found))
        if len(seen) == 500:
            await house.push(b"new")
    assert seen == [b"%d" % n for n in range(3_000)] + [b"new"]
    found = await house.stats()
    assert (found.messages, found.committed, found.ready) == (0, 3_001, 0)


@queues
async def test_peek_and_stats_change_nothing(house: Queues) -> None:
    await house.push(b"a", b"b", group=b"g")
    await house.pop()
    assert sorted(one.body for one in await house.peek()) == [b"a", b"b"]
    assert all(not one.receipt or one.attempts for one in await house.peek())
    assert await house.bodies(5) == [b"b"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"priority": 256}, IllegalArgument),
        ({"priority": -1}, IllegalArgument),
        ({"delayMs": -1}, IllegalArgument),
        ({"delayMs": 1 << 60}, IllegalArgument),
        ({"name": b"n" * 201}, IllegalArgument),
        ({"nameMs": 1}, IllegalArgument),
        ({"name": b"n", "nameMs": -1}, IllegalArgument),
        ({"headers": {b"sqs:": b"x" * 8_193}}, RequestTooBig),
        ({"group": b"g" * 201}, IllegalArgument),
        ({"headers": {b"%d" % n: b"" for n in range(101)}}, IllegalArgument),
        ({"headers": {b"k": b"v" * 70_000}}, IllegalArgument),
    ],
)
def test_a_message_that_cannot_be_stored_is_refused(given: Any, error: type[Exception]) -> None:
    @queues
    async def refused(house: Queues) -> None:
        with pytest.raises(error):
            await house.push(b"a", **given)
        with pytest.raises(RequestTooBig):
            await house.push(b"a" * (desk_module.keys.MESSAGE_BYTES + 1))
        assert (await house.stats()).pushed == 0

    refused()


@queues
async def test_calls_that_make_no_sense_are_refused(house: Queues) -> None:
    methods = house.methods
    await house.push(b"a")
    for name in (b"", b"a\x00b", b"a/b", b"n" * 201, None):
        with pytest.raises(IllegalArgument, match="queue's name"):
            await answer_of(methods.columnarQueueStats(CTX, name))  # type: ignore[arg-type]
    for count, wait_ms, lease_ms in ((0, 0, 0), (-1, 0, 0), (1_001, 0, 0), (1, -1, 0), (1, 20_001, 0), (1, 0, -1)):
        with pytest.raises(IllegalArgument):
            await house.pop(count, wait_ms, lease_ms)
    for receipt in (b"", b"x" * 15, b"x" * 17):
        with pytest.raises(IllegalArgument, match="receipt"):
            await answer_of(methods.columnarQueueSettle(CTX, Q, [receipt], "commit", 0, b""))
    with pytest.raises(IllegalArgument, match="commit"):
        await house.settle(await house.pop(), "burn")
    assert await answer_of(methods.columnarQueueSettle(CTX, Q, [b"x" * 16], "commit", 0, b"")) == [False]
    for settings in ({"leaseMs": 0}, {"attempts": -1}):
        with pytest.raises(IllegalArgument):
            await house.configure(**settings)


@queues
async def test_a_waiting_pop_is_woken_by_the_end_of_a_delay(house: Queues) -> None:
    await house.push(b"a", delayMs=30)
    waiting = asyncio.ensure_future(house.pop(wait_ms=5_000))
    await asyncio.sleep(0)
    house.clock.now_ms += 30
    assert [one.body for one in await waiting] == [b"a"]


@queues
async def test_queues_are_flows_with_their_lag_and_their_dead(house: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    flows = QueueFlows(house.desks.usable_desks)
    assert flows.flow_statuses() == []
    await house.configure(attempts=1, deadTo=b"others")
    await house.push(b"a", b"b", b"c", b"d")
    found = await house.pop(2)
    await house.settle(found[:1])
    (flow,) = flows.flow_statuses()
    assert (flow.kind, flow.name, flow.reads, flow.writes) == ("queue", "jobs", ("queue:jobs",), ("queue:others",))
    assert (flow.lag_changes, flow.parked, flow.delivered, flow.dead, flow.rate_per_s) == (2, 1, 1, 0, 1.0)
    assert 0 < flow.lag_seconds < 60
    house.clock.now_ms += 10_000
    await house.settle(await house.pop(2))
    await house.settle(found[1:], "rollback")
    await house.pop()
    (flow,) = flows.flow_statuses()
    assert (flow.lag_changes, flow.lag_seconds, flow.delivered, flow.dead, flow.rate_per_s) == (0, 0.0, 3, 1, 0.3)
    stats = await house.stats()
    assert (stats.pushRate, stats.commitRate) == (0.4, 0.3), "that of its flow, and of what was pushed"
    house.clock.now_ms += 120_000
    stats = await house.stats()
    assert (stats.pushRate, stats.commitRate, stats.committed) == (0.0, 0.0, 3), "of the last minute"
    monkeypatch.setattr(queue_status, "QUEUES_LISTED", 0)
    assert flows.flow_statuses() == []
