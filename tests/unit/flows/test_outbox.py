"""The outbox of regions that split, merge, close and end amid pushes: each message once, and only for its change."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest

from columnar.cluster.peer_requests import QueuedMessage
from columnar.errors import (
    ColumnarError,
    DamagedData,
    IllegalArgument,
    NotServingRegion,
    OutcomeUnknown,
    TableNotEnabled,
    TableNotFound,
)
from columnar.flows import outbox_state
from columnar.flows.follower_name import OUTBOX, OUTBOX_NAME
from columnar.flows.outbox import OutboxFollower
from columnar.model.attributes import TableChange, altered
from columnar.model.mutation import CompareOp, Condition, Put, RowMutation
from columnar.model.region_messages import Publish
from columnar.model.schema import Family
from columnar.model.send import Send
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.log.change_record import ChangeRecord
from columnar.regions.log.change_record import Sequence as LogSequence
from columnar.regions.region import Region
from columnar.roles.outboxes import SENT_PLACES, Outboxes
from columnar.thrift.wait_methods import WaitMethods
from tests.support.changing_house import CatalogueRows
from tests.support.held_engine import FakeClock
from tests.support.memory_house import PATIENCE_S, House, MemoryHeld

PUT = Put(b"f", b"q", b"1")


class Queues:
    """Queues that know names, as far as the outbox sees them; a test makes their pushes fail and wait."""

    def __init__(self) -> None:
        self.stored: dict[bytes, dict[bytes, QueuedMessage]] = {}  # by name, in the order of arrival
        self.calls: list[tuple[bytes, list[bytes]]] = []
        self.outcomes: list[ColumnarError] = []
        self.closed: set[bytes] = set()  # queues whose server is away
        self.refuses: Callable[[bytes, QueuedMessage], bool] = lambda _queue, _message: False
        self.may_go = asyncio.Event()
        self.may_go.set()
        self.came = asyncio.Event()

    async def push(self, queue: bytes, messages: Sequence[QueuedMessage]) -> None:
        self.calls.append((queue, [one.body for one in messages]))
        self.came.set()
        await self.may_go.wait()
        failure = self.outcomes.pop(0) if self.outcomes else None
        if queue in self.closed:
            raise NotServingRegion("its server is away")
        if isinstance(failure, NotServingRegion | TableNotFound | TableNotEnabled):
            raise failure
        if any(self.refuses(queue, one) for one in messages):
            raise IllegalArgument("a FIFO queue takes no priority")
        for one in messages:
            self.stored.setdefault(queue, {}).setdefault(one.name, one)
        if failure is not None:
            raise failure

    def bodies(self, queue: bytes = b"jobs") -> list[bytes]:
        return [one.body for one in self.stored.get(queue, {}).values()]


class Outbox:
    """Table ``t``, which takes sends, on a house of regions."""

    def __init__(self, house: House, queues: Queues) -> None:
        self.house, self.queues = house, queues
        outboxes: Any = Outboxes(house.keeper.hub, lambda: queues, lambda: queues)  # type: ignore[arg-type, return-value]
        house.keeper.hub.follow_sends = outboxes.subscription

    async def begin(self) -> None:
        await self.house.changes.create(b"t", [Family("f")], {"SENDS": "true"})

    async def send(self, row: bytes, *bodies: bytes, queue: bytes = b"jobs", **given: Any) -> Any:
        sends = tuple(Send(b"queue:" + queue, b"", b"", b"", 0, given.get("priority", 0), body) for body in bodies)
        return await self.house.apply(RowMutation(row, (PUT,), given.get("conditions", ()), sends=sends))

    def region(self, row: bytes = b"10") -> Region:
        return self.house.region(row)

    async def drained(self) -> None:
        assert await self.house.keeper.hub.waits.wait(OUTBOX_NAME, "", 10.0)

    async def killed(self) -> Outbox:
        """Return the outbox of a new process on what is on disk; the old one saves no more cursors."""
        self.house.keeper.hub.upkeep.pause_saving()
        self.house.keeper.hub.upkeep.close = lambda: None  # type: ignore[method-assign]
        return await self.house.restarted_as(partial(Outbox, queues=self.queues))


class SendingHouse(House):
    async def restarted_as(self, make: Callable[[House], Outbox]) -> Outbox:
        await self.close()
        house = SendingHouse(self.engine, self.folder, self.rows, self.clock)
        made = make(house)
        await house.start()
        return made


def sending(test: Callable[..., Awaitable[None]]) -> Callable[[], None]:
    async def run() -> None:
        house = SendingHouse(MemoryHeld(), "regions", CatalogueRows(), FakeClock())
        outbox = Outbox(house, Queues())
        await house.start()
        await outbox.begin()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await test(outbox)
        finally:
            outbox.queues.may_go.set()
            await outbox.house.close()

    def wrapped() -> None:
        asyncio.run(run())

    wrapped.__name__ = test.__name__
    wrapped.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    return wrapped


def records(region: Region) -> list[ChangeRecord]:
    return [record for _, record in region.log.read_records(None)]


@sending
async def test_a_change_is_recorded_for_its_messages_alone_and_the_others_not_at_all(outbox: Outbox) -> None:
    region = outbox.region()
    steps = Counter[str]()
    listener = outbox.house.server.listener
    listener.changes_durable = lambda region: steps.update([region.info.table])  # type: ignore[method-assign]
    await outbox.house.put(b"10", b"11")
    assert (records(region), steps["t"]) == ([], 0), "a table that takes sends and has none pays nothing"
    assert region.logging.row_policy is None
    await outbox.send(b"10", b"a", b"b")
    (record,) = records(region)
    assert ([one.body for one in record.sends], record.entries) == ([b"a", b"b"], ())
    assert steps["t"] == 1
    await outbox.house.put(b"11")
    assert steps["t"] == 1


@sending
async def test_messages_arrive_in_the_order_of_changes_and_the_log_is_trimmed(outbox: Outbox) -> None:
    for number in range(20):
        await outbox.send(b"10", b"%d" % number)
    await outbox.drained()
    assert outbox.queues.bodies() == [b"%d" % number for number in range(20)]
    outbox.house.keeper.hub.upkeep.save_all()
    assert len(records(outbox.region())) == 1, "all below the cursor are gone"


@sending
async def test_a_condition_that_fails_leaves_no_record(outbox: Outbox) -> None:
    await outbox.send(b"10", b"no", conditions=(Condition(b"f", b"q", CompareOp.EXISTS),))
    assert records(outbox.region()) == []
    await outbox.send(b"10", b"yes", conditions=(Condition(b"f", b"q", CompareOp.ABSENT),))
    await outbox.drained()
    assert outbox.queues.bodies() == [b"yes"]


@sending
async def test_a_message_is_not_sent_before_its_change_is_on_disk(outbox: Outbox) -> None:
    outbox.region()
    outbox.house.engine.gate.hold()
    sending = asyncio.ensure_future(outbox.send(b"10", b"a"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert outbox.queues.calls == []
    outbox.house.engine.gate.release()
    await sending
    await outbox.drained()
    assert outbox.queues.bodies() == [b"a"]


@sending
async def test_what_was_pushed_before_a_crash_goes_again_under_its_names(outbox: Outbox) -> None:
    outbox.house.keeper.hub.upkeep.soon = lambda _region: None  # type: ignore[method-assign]
    for number in range(3):
        await outbox.send(b"%d0" % (number + 1), b"%d" % number)
    await outbox.drained()
    after = await outbox.killed()
    outbox.house = after.house
    after.region()
    await after.drained()
    pushed = Counter(body for _, bodies in outbox.queues.calls for body in bodies)
    assert pushed == {b"0": 2, b"1": 2, b"2": 2}, "no cursor was saved"
    assert sorted(outbox.queues.bodies()) == [b"0", b"1", b"2"]


@sending
async def test_answers_that_are_lost_and_servers_that_are_away_double_nothing(outbox: Outbox) -> None:
    lost = OutcomeUnknown("the answer is lost")
    outbox.queues.outcomes = [lost, NotServingRegion("nobody has it"), lost]
    await outbox.send(b"10", b"a")
    await outbox.send(b"10", b"b")
    await outbox.drained()
    assert outbox.queues.bodies() == [b"a", b"b"]
    (status,) = outbox.house.keeper.hub.flow_statuses()
    assert (status.kind, status.delivered, status.failed, status.reads) == ("outbox", 2, 3, ("t",))


@sending
async def test_a_refused_message_blocks_no_other_and_is_counted(outbox: Outbox) -> None:
    outbox.queues.refuses = lambda queue, one: queue == b"jobs" and one.priority > 0
    outbox.queues.may_go.clear()
    for number in range(6):
        await outbox.send(b"10", b"%d" % number, priority=number == 3)
    await outbox.send(b"10", b"other", queue=b"other")
    outbox.queues.may_go.set()
    await outbox.drained()
    assert outbox.queues.bodies() == [b"0", b"1", b"2", b"4", b"5"]
    assert outbox.queues.bodies(b"other") == [b"other"]
    assert outbox.queues.bodies(b"refused-sends") == [b"3"]
    (status,) = outbox.house.keeper.hub.flow_statuses()
    assert status.dead == 1


@pytest.mark.usefixtures("expected_faults")
@sending
async def test_a_record_that_cannot_be_read_once_keeps_its_place(outbox: Outbox) -> None:
    failures: list[Exception] = [DamagedData("a bad block")]
    read = OutboxFollower.record_at

    def record_at(follower: OutboxFollower, sequence: LogSequence) -> ChangeRecord | None:
        found = read(follower, sequence)
        if failures and found is not None and found.sends[0].body == b"1":
            raise failures.pop()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutboxFollower, "record_at", record_at)
        for number in range(4):
            await outbox.send(b"10", b"%d" % number)
        await outbox.drained()
    assert failures == []
    assert outbox.queues.bodies() == [b"0", b"1", b"2", b"3"]


def test_a_queue_that_cannot_be_reached_stops_no_other_messages_and_all_arrive_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox_state, "OUTBOX_MESSAGES", 8)
    monkeypatch.setattr(outbox_state, "LINE_MESSAGES", 2)

    @sending
    async def away(outbox: Outbox) -> None:
        queues, house = outbox.queues, outbox.house
        queues.closed = {b"away"}
        for number in range(30):
            sends = tuple(Send(b"queue:" + queue, b"", b"", b"", 0, 0, b"%d" % number) for queue in (b"away", b"jobs"))
            await house.apply(RowMutation(b"10", (PUT,), sends=sends))
            await outbox.send(b"10", b"%d alone" % number, queue=b"away")
        await house.until(lambda: len(queues.bodies()) == 30)
        region = outbox.region()
        follower = house.keeper.hub.followers.find((OUTBOX_NAME, region.info.region_id))
        assert follower is not None
        assert "send to queue:away wait (its server is away)" in follower.obstacle()
        house.keeper.hub.upkeep.save_all()
        after = await outbox.killed()
        outbox.house = after.house
        after.region()
        queues.closed = set()
        await after.drained()
        assert queues.bodies(b"away") == [body for n in range(30) for body in (b"%d" % n, b"%d alone" % n)]
        assert queues.bodies() == [b"%d" % number for number in range(30)]
        pushed = Counter(body for queue, bodies in queues.calls if queue == b"jobs" for body in bodies)
        assert set(pushed.values()) == {1}, "the progress of changes is in the cursor"

    away()


def test_a_record_that_was_removed_by_hand_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_state, "LINE_MESSAGES", 1)

    @sending
    async def removed(outbox: Outbox) -> None:
        queues = outbox.queues
        queues.may_go.clear()
        for number in range(3):
            await outbox.send(b"10", b"%d" % number)
        await outbox.house.until(lambda: bool(queues.calls))
        monkeypatch.setattr(outbox.region().log, "record_at", lambda _sequence: None)
        queues.may_go.set()
        await outbox.drained()
        assert queues.bodies() == [b"0"]

    removed()


def test_a_record_that_cannot_be_read_again_holds_up_its_target_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_state, "LINE_MESSAGES", 1)

    @sending
    async def damaged(outbox: Outbox) -> None:
        queues, house = outbox.queues, outbox.house
        region, failures = outbox.region(), [DamagedData("a bad block")] * 3
        read = region.log.record_at

        def record_at(sequence: LogSequence) -> ChangeRecord | None:
            if failures:
                raise failures.pop()
            return read(sequence)

        queues.may_go.clear()
        for number in range(4):
            await outbox.send(b"10", b"%d" % number)
        await outbox.send(b"10", b"other", queue=b"other")
        await house.until(lambda: len(queues.calls) == 2)
        monkeypatch.setattr(region.log, "record_at", record_at)
        queues.may_go.set()
        await house.until(lambda: queues.bodies(b"other") == [b"other"])
        await outbox.drained()
        assert failures == []
        assert queues.bodies() == [b"0", b"1", b"2", b"3"]

    damaged()


@sending
async def test_messages_wait_while_the_table_of_queues_is_not_there(outbox: Outbox) -> None:
    outbox.queues.outcomes = [TableNotFound("columnar:queues"), TableNotEnabled("columnar:queues")]
    await outbox.send(b"10", b"a")
    await outbox.drained()
    assert (outbox.queues.bodies(), outbox.queues.bodies(b"refused-sends")) == ([b"a"], [])


@sending
async def test_a_split_and_a_merge_amid_pushes_repeat_nothing(outbox: Outbox) -> None:
    queues = outbox.queues
    for row in (b"10", b"60"):
        await outbox.send(row, b"first " + row)
    await outbox.drained()
    queues.may_go.clear()
    queues.came.clear()
    for row in (b"10", b"60"):
        await outbox.send(row, b"second " + row)
    await queues.came.wait()
    for row in (b"10", b"60"):
        await outbox.send(row, b"third " + row)
    paused = outbox.house.keeper.hub.followers._paused_regions
    splitting = asyncio.ensure_future(outbox.house.regions.split(outbox.house.infos[0], b"50"))
    await outbox.house.until(lambda: paused)
    queues.may_go.set()
    await splitting
    assert len(outbox.house.infos) == 2
    for row in (b"10", b"60"):
        await outbox.send(row, b"fourth " + row)
    queues.may_go.clear()
    await outbox.send(b"60", b"late")
    merging = asyncio.ensure_future(outbox.house.regions.merge(*outbox.house.infos))
    await outbox.house.until(lambda: paused)
    queues.may_go.set()
    await merging
    await outbox.send(b"60", b"last")
    await outbox.drained()
    pushed = Counter(body for _, bodies in queues.calls for body in bodies)
    assert set(pushed.values()) == {1}, pushed
    arrived = queues.bodies()
    assert sorted(arrived) == sorted(pushed)
    for row in (b"10", b"60"):
        mine = [body.partition(b" ")[0] for body in arrived if body.endswith(row)]
        assert list(dict.fromkeys(mine)) == [b"first", b"second", b"third", b"fourth"]


@sending
async def test_a_successor_sends_only_what_is_left_of_a_change(outbox: Outbox) -> None:
    queues, house = outbox.queues, outbox.house
    queues.closed = {b"away"}
    await outbox.send(b"10", b"a", queue=b"away")
    sends = tuple(Send(b"queue:" + queue, b"", b"", b"", 0, 0, b"b") for queue in (b"away", b"jobs"))
    await house.apply(RowMutation(b"60", (PUT,), sends=sends))
    await house.until(lambda: queues.bodies() == [b"b"])
    await house.regions.split(house.infos[0], b"50")
    queues.closed = set()
    await outbox.drained()
    assert (queues.bodies(b"away"), queues.bodies()) == ([b"a", b"b"], [b"b"])
    assert [bodies for queue, bodies in queues.calls if queue == b"jobs"] == [[b"b"]]


def test_a_successor_takes_no_change_of_its_sister(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_state, "OUTBOX_MESSAGES", 1)

    @sending
    async def split(outbox: Outbox) -> None:
        queues, house = outbox.queues, outbox.house
        queues.closed = {b"jobs"}
        for number in range(6):
            await outbox.send(b"%d0" % (1 + 5 * (number % 2)), b"%d" % number)
        await house.regions.split(house.infos[0], b"50")
        del queues.calls[:]
        queues.closed = set()
        await outbox.drained()
        pushed = [body for _, bodies in queues.calls for body in bodies]
        assert sorted(pushed) == [b"%d" % number for number in range(6)], "most were still to be read"

    split()


@sending
async def test_a_region_with_messages_to_send_is_not_closed_to_make_room(outbox: Outbox) -> None:
    outbox.queues.may_go.clear()
    await outbox.send(b"10", b"a")
    server, region = outbox.house.server, outbox.region()
    assert not server.listener.may_close(region)
    outbox.queues.may_go.set()
    await outbox.drained()
    assert server.listener.may_close(region)


@sending
async def test_a_table_that_takes_sends_from_now_on_sends_its_next_change(outbox: Outbox) -> None:
    house = outbox.house
    await house.changes.create(b"u", [Family("f")])
    served = house.server.tables.known(b"u")

    async def apply(mutation: RowMutation) -> None:
        def now() -> Any:
            table = house.server.tables.known(b"u")
            return house.server.open_region(table, table.holding(mutation.row)).apply(mutation)

        applied = await retry_until_ready(now)
        await asyncio.shield(applied.durable)

    await apply(RowMutation(b"r", (PUT,)))
    changed = altered(served.schema, TableChange(attributes={"SENDS": "true"}))
    await house.owner.request_peer(Publish(changed, True, tuple(served.regions)))
    await apply(RowMutation(b"r", (PUT,), sends=(Send(b"queue:jobs", b"", b"", b"", 0, 0, b"a"),)))
    await outbox.drained()
    assert outbox.queues.bodies() == [b"a"]


@sending
async def test_the_outbox_is_drawn_with_the_queues_that_have_its_messages(outbox: Outbox) -> None:
    (status,) = [one for one in outbox.house.keeper.hub.flow_statuses() if one.kind == OUTBOX]
    assert (status.reads, status.seen) == (("t",), ())
    for number in range(SENT_PLACES + 2):
        await outbox.send(b"10", b"a", queue=b"q%03d" % number)
        await outbox.drained()
    (status,) = [one for one in outbox.house.keeper.hub.flow_statuses() if one.kind == OUTBOX]
    assert status.seen == tuple(f"queue:q{number:03}" for number in range(SENT_PLACES))
    assert len(outbox.queues.stored) == SENT_PLACES + 2, "the further ones have theirs, too"


@sending
async def test_a_wait_without_names_is_for_the_sends_too(outbox: Outbox) -> None:
    outbox.queues.may_go.clear()
    token = (await outbox.send(b"10", b"a")).sequence.token
    methods = WaitMethods(outbox.house.keeper, outbox.house.owner.views)
    assert not await methods.columnarWait(None, [], [token], 10, False)
    outbox.queues.may_go.set()
    assert await methods.columnarWait(None, [], [token], 10_000, False)
    assert outbox.queues.bodies() == [b"a"]
    for name, columns in (("queue:jobs", "queue stats jobs"), ("topic:edits", "topic groups edits")):
        with pytest.raises(IllegalArgument, match=f"no wait is for {name}.*columnar {columns}"):
            await methods.columnarWait(None, [name], [token], 10, False)


@sending
async def test_a_disabled_table_is_in_the_way_of_its_own_sends_alone(outbox: Outbox) -> None:
    house = outbox.house
    methods = WaitMethods(house.keeper, house.owner.views)
    own = (await outbox.send(b"10", b"a")).sequence.token
    await outbox.drained()
    await house.changes.create(b"u", [Family("f")], {"SENDS": "true"})
    served, send = house.server.tables.known(b"u"), Send(b"queue:jobs", b"", b"", b"", 0, 0, b"b")
    applied = await retry_until_ready(
        lambda: house.server.open_region(served, served.regions[0]).apply(RowMutation(b"1", (PUT,), sends=(send,)))
    )
    token = applied.sequence.token
    await house.changes.disable(b"t")
    assert await methods.columnarWait(None, [], [token], 10_000, False)
    with pytest.raises(TableNotEnabled):
        await methods.columnarWait(None, [], [own], 10_000, False)
