"""Ends of messages: dead ones shown, brought back and removed; purges, retention, and a queue that is dropped."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from columnar.errors import (
    IllegalArgument,
    RegionTooBusy,
)
from columnar.queues import dead_messages, desk, keys, queue_desks, sweep
from columnar.queues.queue_rows import QueueRows, delete_of
from columnar.storage.api import StoreBusy
from tests.support.queue_house import CTX, Q, Queues, queues
from tests.support.service_calls import answer_of


def desk_of(house: Queues) -> desk.Desk:
    return house.desks._desks._desks[Q]


async def killed(house: Queues, *bodies: bytes, **given: Any) -> None:
    """Have messages die of their first attempt."""
    await house.configure(attempts=1)
    await house.push(*bodies, **given)
    await house.settle(await house.pop(len(bodies)), "rollback", 0, b"broken")
    assert await house.pop(1) == []


async def swept(house: Queues) -> None:
    await asyncio.gather(*house.desks._sweeps.values())


@queues
async def test_dead_messages_are_shown_and_come_back_with_their_number_group_and_error(house: Queues) -> None:
    await killed(house, b"one", b"two", b"three", group=b"g", headers={b"h": b"v"})
    dead = await house.dead()
    assert [(one.body, one.attempts, one.error, one.group, one.headers) for one in dead] == [
        (body, 1, b"broken", b"g", {b"h": b"v"}) for body in (b"one", b"two", b"three")
    ]
    assert [one.body for one in await house.dead(after=dead[0].id, count=1)] == [b"two"]
    assert await house.redrive(ids=[dead[1].id, dead[1].id, "7"]) == 1
    assert await house.bodies(9) == [b"two"]
    stats = await house.stats()
    assert (stats.messages, stats.dead, stats.inFlight) == (1, 2, 1)
    house.begin_again()
    assert await house.redrive(count=1) == 1
    (back,) = await house.pop(9)
    assert (back.body, back.id, back.attempts, back.error) == (b"one", dead[0].id, 1, b"broken")
    assert await house.settle([back]) == [True]
    stats = await house.stats()
    assert (stats.messages, stats.dead) == (1, 1)


@queues
async def test_dead_messages_are_removed_with_their_names(house: Queues) -> None:
    await killed(house, b"one", name=b"n")
    assert not (await house.push(b"again", name=b"n"))[0].isNew
    assert await house.remove_dead() == 1
    assert (await house.dead(), (await house.stats()).dead) == ([], 0)
    assert (await house.push(b"again", name=b"n"))[0].isNew
    assert await house.remove_dead() == 0
    assert await house.settle(await house.pop()) == [True]
    await killed(house, b"two", b"three")
    first = (await house.dead())[0]
    assert await house.remove_dead(ids=[first.id]) == 1
    assert first.id not in [one.id for one in await house.dead()]


@queues
async def test_messages_whose_rows_are_gone_are_not_counted_as_dead(house: Queues) -> None:
    await house.configure(attempts=1)
    await house.push(b"a", b"b")
    held = await house.pop(2)
    row = keys.message_row(Q, keys.Subqueue(keys.HIGHEST_PRIORITY, b""), int(held[0].id))
    house.region(Q).apply(delete_of(row, keys.MESSAGE))
    await house.settle(held, "rollback")
    stats = await house.stats()
    assert (stats.messages, stats.dead, [one.body for one in await house.dead()]) == (0, 1, [b"b"])


@queues
async def test_a_message_that_cannot_be_made_dead_at_the_moment_is_dead_later(house: Queues) -> None:
    await house.configure(attempts=1)
    await house.push(b"a")
    await house.pop(lease_ms=1_000)
    house.clock.now_ms += 1_000
    held = desk_of(house)
    write_rows, failures = held.write_rows, [StoreBusy("behind", "a folder")]

    def refuse_once(*rows: Any, **given: Any) -> Any:
        if failures:
            raise failures.pop()
        return write_rows(*rows, **given)

    held.write_rows = refuse_once  # type: ignore[method-assign]
    assert await house.pop() == []
    house.clock.now_ms += desk.GRACE_MS
    assert (await house.stats()).dead == 1
    assert failures == []


@queues
async def test_calls_on_dead_messages_have_bounds(house: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    await killed(house, *[b"8 bytes."] * 4)
    ids = [one.id for one in await house.dead()]
    with monkeypatch.context() as patched:
        patched.setattr(dead_messages, "QUEUE_LEASES", 3)
        with pytest.raises(RegionTooBusy, match="popped"):
            await house.redrive()
    monkeypatch.setattr(dead_messages, "DEAD_BYTES", 10)
    assert [one.id for one in await house.dead()] == ids[:2]
    assert [await house.redrive(ids), await house.remove_dead(ids)] == [2, 2]


@queues
async def test_a_waiting_pop_is_woken_by_a_message_that_comes_back(house: Queues) -> None:
    await killed(house, b"a")
    waiting = asyncio.ensure_future(house.pop(wait_ms=20_000))
    await asyncio.sleep(0)
    began_s = time.monotonic()
    assert await house.redrive() == 1
    assert [one.body for one in await waiting] == [b"a"]
    assert time.monotonic() - began_s < 10


@queues
async def test_a_fifo_message_that_comes_back_is_the_first_of_its_group_again(house: Queues) -> None:
    await house.configure(fifo=True, attempts=1)
    await house.push(b"a1", b"a2", group=b"a")
    await house.settle(await house.pop(), "rollback")
    assert await house.bodies() == [b"a2"]
    assert await house.redrive() == 1
    assert await house.pop() == [], "its group has a message out"
    house.begin_again()
    house.clock.now_ms += keys.Settings().lease_ms + desk.GRACE_MS
    assert await house.bodies(9) == [b"a1"], "a2 died of its only attempt"
    assert [one.body for one in await house.dead()] == [b"a2"]


@queues
async def test_a_purge_is_at_once_and_its_rows_go_in_steps(house: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "SWEPT_ROWS", 7)
    bodies = [b"%03d" % number for number in range(100)]
    for priority, group in ((0, b""), (5, b"g"), (5, b"h")):
        await house.push(*bodies, priority=priority, group=group)
    named = await house.push(b"named", name=b"n")
    await house.push(b"later", delayMs=60_000)
    out = await house.pop(3)
    assert await house.purge() == 302
    assert await house.settle(out) == [False] * 3, "also those that are out"
    assert (await house.pop(), await house.peek()) == ([], [])
    stats = await house.stats()
    assert (stats.messages, stats.ready, stats.inFlight, stats.delayed) == (0, 0, 0, 0)
    again = await house.push(b"new", name=b"n")
    assert again[0].isNew
    assert again[0].id > named[0].id
    house.begin_again()  # as after a crash amid the sweep
    assert await house.bodies(9) == [b"new"]
    await swept(house)
    assert not (await house.push(b"second", name=b"n"))[0].isNew, "a sweep leaves the name of a later message"
    assert {row[len(Q) + 1 : len(Q) + 2] for row in house.stored_rows()} == {b"r", b"l", b"n", b"s"}
    assert len(house.stored_rows()) == 4
    assert keys.PURGE not in house.cells_of(keys.state_row(Q))


@queues
async def test_what_is_pushed_beside_a_purge_is_not_lost(house: Queues) -> None:
    await house.push(b"old")
    house.gate.hold()
    pushing = asyncio.ensure_future(house.push(b"on its way"))
    await asyncio.to_thread(house.gate.entered.wait)
    purging = asyncio.ensure_future(house.purge())
    await asyncio.sleep(0)
    house.gate.release()
    await pushing
    assert await purging == 1
    assert await house.bodies(9) == [b"on its way"]
    assert (await house.stats()).messages == 1
    await swept(house)


@queues
async def test_messages_past_their_retention_go_unless_somebody_holds_them(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_desks, "LONGEST_SWEEP_PAUSE_S", 0.0)
    await house.configure(retentionS=60, leaseMs=200_000)
    await house.push(b"out", b"old", name=b"")
    await house.push(b"old too", group=b"g", name=b"n")
    out = await house.pop()
    await swept(house)
    monkeypatch.setattr(desk, "time_ns", lambda: time.time_ns() + 3_600 * 10**9)
    fresh = await house.push(b"fresh", name=b"n")
    assert not fresh[0].isNew, "until it is removed the name is taken"
    await swept(house)
    assert (await house.push(b"fresh", name=b"n"))[0].isNew
    assert await house.bodies(9) == [b"fresh"]
    stats = await house.stats()
    assert (stats.messages, stats.retentionS) == (2, 60)
    await house.settle(out, "rollback")
    assert await house.bodies(9) == [], "it is not given out again"
    await swept(house)
    assert (await house.stats()).messages == 1
    assert len([row for row in house.stored_rows() if row.startswith(Q + b"\x00r")]) == 1


@queues
async def test_a_dropped_queue_leaves_nothing_and_begins_anew(house: Queues) -> None:
    await killed(house, b"dead", name=b"a")
    await house.push(b"alive", b"out", name=b"")
    await house.configure(leaseMs=1_000)
    await house.pop()
    assert await answer_of(house.methods.columnarQueueDrop(CTX, Q)) is True
    assert house.stored_rows() == []
    stats = await house.stats()
    assert (stats.messages, stats.pushed, stats.leaseMs, stats.attempts) == (0, 0, keys.Settings().lease_ms, 0)
    assert (await house.push(b"anew", name=b"a"))[0].isNew
    assert await house.bodies() == [b"anew"]


@queues
async def test_a_queue_that_gets_messages_while_it_is_dropped_stays(house: Queues) -> None:
    await house.push(b"one")
    dropping = asyncio.ensure_future(answer_of(house.methods.columnarQueueDrop(CTX, Q)))
    await house.push(b"two")
    gone = await dropping
    assert gone is (await house.bodies() == [])


@queues
async def test_what_names_no_message_is_refused(house: Queues) -> None:
    with pytest.raises(IllegalArgument, match="is no id of a message"):
        await house.redrive(ids=["x"])
    with pytest.raises(IllegalArgument, match="in one call: it has 1 to 1000 messages"):
        await house.dead(count=0)
    with pytest.raises(IllegalArgument, match="a retention of -1 s"):
        await house.configure(retentionS=-1)


# --- dead messages for another queue -----------------------------------------------------------------------


@queues
async def test_a_backlog_past_its_retention_delays_nobody(house: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.configure(retentionS=60, leaseMs=1_000)
    for _ in range(3):
        await house.push(*[b"old"] * 1_000)
    await house.pop(700)
    house.clock.now_ms += 1_000
    monkeypatch.setattr(desk, "time_ns", lambda: time.time_ns() + 3_600 * 10**9)
    monkeypatch.setattr(desk, "LOST_AT_ONCE", 100)
    monkeypatch.setattr(house.desks, "begin_sweep", lambda _desk: None)  # it is behind
    await house.push(b"fresh")
    reads = 0
    message = QueueRows.message

    def counted(rows: QueueRows, subqueue: keys.Subqueue, n: int) -> keys.Message | None:
        nonlocal reads
        reads += 1
        return message(rows, subqueue, n)

    monkeypatch.setattr(QueueRows, "message", counted)
    popped = 0
    while not (found := await house.pop()):
        popped += 1
    assert [one.body for one in found] == [b"fresh"]
    assert 7 <= popped <= 10, "messages in memory are forgotten in steps"
    assert reads == 1, "others are passed by one seek"
    assert (await house.stats()).messages == 3_001, "the sweep counts them"
    monkeypatch.undo()


@queues
async def test_a_pop_waits_for_the_message_behind_a_backlog_past_its_retention(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.configure(retentionS=60)
    await house.push(*[b"old"] * 90)
    monkeypatch.setattr(desk, "time_ns", lambda: time.time_ns() + 3_600 * 10**9)
    monkeypatch.setattr(desk, "LOST_AT_ONCE", 10)
    monkeypatch.setattr(house.desks, "begin_sweep", lambda _desk: None)
    await house.push(b"fresh")
    assert [one.body for one in await house.pop(wait_ms=20_000)] == [b"fresh"]


@queues
async def test_messages_that_are_kept_longer_now_come_again(house: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.configure(retentionS=60)
    await house.push(b"a", b"b")
    monkeypatch.setattr(house.desks, "begin_sweep", lambda _desk: None)  # it has not come to them yet
    monkeypatch.setattr(desk, "time_ns", lambda: time.time_ns() + 3_600 * 10**9)
    assert await house.bodies(9) == []
    await house.configure(retentionS=7_200)
    assert await house.bodies(9) == [b"a", b"b"]


@queues
async def test_a_dead_message_that_comes_back_after_a_purge_stays(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_desks, "LONGEST_SWEEP_PAUSE_S", 0.0)
    await killed(house, b"a", name=b"n")
    await house.configure(retentionS=3_600)
    await house.push(b"b")
    await swept(house)  # a sweep for the retention would carry out the purge, too
    with monkeypatch.context() as patched:
        patched.setattr(house.desks, "begin_sweep", lambda _desk: None)
        assert await house.purge() == 1
        with pytest.raises(RegionTooBusy, match="purge"):
            await house.redrive()
    await house.stats()
    await swept(house)
    assert await house.redrive() == 1
    await house.stats()
    await swept(house)
    assert not (await house.push(b"c", name=b"n"))[0].isNew
    await swept(house)
    house.begin_again()
    assert (await house.stats()).messages == 1
    assert await house.bodies(9) == [b"a"]
    await swept(house)


@queues
async def test_a_purge_beside_the_sweep_of_another_leaves_no_rows(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "SWEPT_ROWS", 1)
    await house.push(b"a", b"b", b"c")
    purging = asyncio.ensure_future(house.purge())
    await asyncio.sleep(0)
    await house.push(b"d")
    assert (await purging, await house.purge()) == (3, 1)
    await swept(house)
    assert house.stored_rows() == [keys.state_row(Q)]
    assert keys.PURGE not in house.cells_of(keys.state_row(Q))


@queues
async def test_the_desk_that_follows_another_goes_on_with_its_sweep(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, budget = asyncio.Event(), house.operations.access.reply_memory.loop_budget
    monkeypatch.setattr(budget, "wait_for_budget", go_on.wait)
    await house.push(*[b"a"] * 5)
    await house.purge()
    desk_of(house).note_broken()
    assert (await house.stats()).messages == 0
    go_on.set()
    while house.desks._sweeps:
        await swept(house)
    assert house.stored_rows() == [keys.state_row(Q)]
    assert keys.PURGE not in house.cells_of(keys.state_row(Q))


@queues
async def test_a_dead_message_of_later_comes_back_while_a_purge_goes_on(house: Queues) -> None:
    await house.push(b"a")
    assert await house.purge() == 1
    await killed(house, b"b")
    house.begin_again()
    assert await house.redrive() == 1
    await swept(house)
    assert await house.bodies(9) == [b"b"]
