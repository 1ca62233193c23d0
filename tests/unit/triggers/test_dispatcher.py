"""The dispatcher and the keeper over stores in memory and workers of the test: who is delivered what, and when."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any

import pytest

from columnar.clock import StoreClock
from columnar.errors import HostError
from columnar.flows.fair_share import FairShare
from columnar.flows.follower_name import trigger
from columnar.flows.hub import Hub
from columnar.master.catalogue import Catalogue
from columnar.master.trigger_changes import TriggerChanges
from columnar.model.mutation import Operation, Put, RowMutation
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.model.system_tables import SYSTEM_TABLES
from columnar.model.trigger_registration import DEFAULT_SIDE_BY_SIDE as THREADS
from columnar.model.trigger_registration import Registration
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.roles.region_owner import RegionOwner
from columnar.storage.commit import Committer
from columnar.storage.memory import MemoryEngine
from columnar.triggers.consumer import Consumer
from columnar.triggers.frames import PLACES
from columnar.triggers.module_checks import SourceTrial
from columnar.triggers.trigger_manager import TriggerManager
from tests.support.changing_house import CatalogueRows
from tests.support.fake_links import USED_US, FakeLink, runs
from tests.support.openings import operations_of, region_at_once


class Bench:
    """A server with the system's tables and one table ``t``, a keeper with its master, and two fake workers."""

    def __init__(self, regions: int = 1, attributes: Mapping[str, str] | None = None) -> None:
        clock = count(1_000)
        self.engine = MemoryEngine()
        self.committer = Committer(asyncio.get_running_loop(), threads=2)
        self.server = RegionServer(self.engine, "regions", self.committer, StoreClock(lambda: next(clock)))
        ids = count(10)
        for name, family in SYSTEM_TABLES:
            self.server.tables.install(ServedTable(make_table(name, [family]), True, [RegionInfo(name, next(ids))]))
        starts = [b"", *(b"%02d" % n for n in range(1, regions))]
        infos = [RegionInfo("t", next(ids), start, end) for start, end in zip(starts, [*starts[1:], b""], strict=True)]
        self.table = ServedTable(make_table("t", [Family("f")], attributes or {}), True, infos)
        self.server.tables.install(self.table)
        out = make_table("out", [Family("f")], {"DELETE_MARKERS": "1000"})
        self.out = ServedTable(out, True, [RegionInfo("out", next(ids))])
        self.server.tables.install(self.out)
        self.rows = CatalogueRows()

    async def start(self) -> None:
        if not self.rows.cells:
            catalogue = Catalogue([], self.rows.write)
            for served in self.server.tables.all():
                await catalogue.adopt(served.schema, served.regions)
        self.catalogue = Catalogue(self.rows.read(), self.rows.write)
        self.hub = Hub(self.server)
        self.keeper = TriggerManager(self.server, self.hub, ("m",), operations_of(self.server))
        self.server.listener = self.hub.listener
        self.owner = RegionOwner(self.server, self.keeper, 1 << 60)
        self.triggers = TriggerChanges(self.catalogue, self.owner, ("m",))
        await self.triggers.start()
        await self.keeper.load()
        self.links: list[FakeLink] = []
        self.trials: list[FakeLink] = []  # of processes that only import
        self.keeper.start_with(self._link)
        self.main, self.ward = self.links
        self.dispatcher = self.keeper.dispatcher

    def let_go(self, name: str) -> None:
        """The trigger, which was suspended, may be scheduled again."""
        self.dispatcher.common.fair.let_go(name)
        self.dispatcher.deliver()

    async def restart(self) -> None:
        """Every region is closed, and the triggers are those that the catalogue names now."""
        await self.keeper.close()
        for region in self.server.all_open():
            await self.server.hosting.close(region)
        await self.start()

    def _link(self, listener: Any) -> FakeLink:
        found = FakeLink(listener)
        (self.trials if isinstance(listener, SourceTrial) else self.links).append(found)
        return found

    def registration(self, name: str, table: str = "t", **settings: Any) -> Registration:
        return Registration(name, table, "m:f", ("f",), **settings)

    async def add(self, name: str, **settings: Any) -> None:
        adding = asyncio.ensure_future(self.triggers.add_trigger(self.registration(name, **settings)))
        checked = asyncio.ensure_future(self.main.until(lambda: any(parts[0] == "check" for parts in self.main.sent)))
        await asyncio.wait([adding, checked], return_when=asyncio.FIRST_COMPLETED)
        if adding.done():  # it was refused
            checked.cancel()
            await adding
            return
        (check,) = [parts for parts in self.main.sent if parts[0] == "check"]
        self.main.sent.clear()
        self.main.listener.take_frame(["checked", check[1], None])
        await adding
        for consumer in self.dispatcher.intake.consumers_of(name):  # as after its first call, which runs alone
            pool = self.dispatcher.sender.pool_of(consumer.registration.process)
            pool.know(consumer.registration, 0.0)
            held = pool.fair._triggers[name].costs
            held.is_measured, held.mean_s = True, USED_US / 1e6

    def region(self, row: bytes) -> Region:
        return region_at_once(self.server, self.table, row)

    async def put(self, *rows: bytes) -> None:
        """Returns when what was written is durable and fed."""
        waits = [self.region(row).apply(RowMutation(row, (Put(b"f", b"a", b"1"),))).durable for row in rows]
        for wait in waits:
            assert wait is not None
            await wait
        await asyncio.sleep(0)

    async def apply(self, row: bytes, *operations: Operation) -> None:
        """As ``put``."""
        durable = self.region(row).apply(RowMutation(row, operations)).durable
        assert durable is not None
        await durable
        await asyncio.sleep(0)

    async def settle(self) -> None:
        """Returns when all effects and dead letters are written, and what they led to is fed."""
        applying, dispatcher = self.dispatcher.state.retries.applying, self.dispatcher
        regions = self.server.all_open()
        while applying or dispatcher.letters.pending or not all(one.syncs.is_quiet for one in regions):  # noqa: ASYNC110
            await asyncio.sleep(0)  # fsyncs end in iterations of the loop

    async def close(self) -> None:
        await self.keeper.close()
        await self.server.close()
        self.committer.close()


def on_bench(
    regions: int = 1, attributes: Mapping[str, str] | None = None
) -> Callable[[Callable[[Bench], Awaitable[None]]], Callable[[], None]]:
    def decorate(test: Callable[[Bench], Awaitable[None]]) -> Callable[[], None]:
        async def run() -> None:
            unheard = list[dict[str, Any]]()  # as of a timer that outlives what it was for
            asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unheard.append(context))
            bench = Bench(regions, attributes)
            await bench.start()
            try:
                async with asyncio.timeout(20):
                    await test(bench)
            finally:
                await bench.close()
            assert unheard == []

        def wrapped() -> None:
            asyncio.run(run())

        wrapped.__name__ = test.__name__
        return wrapped

    return decorate


ROWS = [b"r%02d" % n for n in range(40)]


@on_bench()
async def test_triggers_take_turns_however_much_one_has(bench: Bench) -> None:
    bench.dispatcher.common.fair = FairShare(4)
    await bench.add("busy")
    await bench.put(*ROWS)
    assert len(bench.main.take()) == 4
    await bench.add("calm")
    await bench.put(b"late")
    order = []
    for call_id in list(bench.dispatcher.common.main.calls)[:4]:
        bench.main.answer(call_id)
        order += [trigger for _, trigger, _ in bench.main.take()]
    assert order == ["calm", "busy", "busy", "busy"]


@on_bench()
async def test_a_trigger_that_has_all_its_places_holds_up_nobody(bench: Bench) -> None:
    await bench.add("slow")
    await bench.put(*ROWS)
    assert len(bench.main.take()) == THREADS
    await bench.add("calm", side_by_side=2)
    await bench.put(b"a", b"b", b"c")
    assert [(trigger, row) for _, trigger, row in bench.main.take()] == [("calm", b"a"), ("calm", b"b")]


@on_bench()
async def test_a_quick_trigger_has_more_in_the_worker_than_run_side_by_side(bench: Bench) -> None:
    await bench.add("quick")
    await bench.put(*(b"%03d" % number for number in range(6 * PLACES)))
    most = 0
    while calls := bench.main.take():
        most = max(most, len(calls))
        bench.main.listener.take_frame(["did", [[number, "done", [], None, "", None, 10, 5] for number, _, _ in calls]])
    assert most == PLACES
    assert await bench.keeper.wait_delivered("quick", "", 0.0)


@on_bench()
async def test_a_row_never_has_two_calls_and_its_neighbours_do_not_wait(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(b"hot")
    await bench.put(b"hot")
    await bench.put(b"cold")
    calls = bench.main.take()
    assert [row for _, _, row in calls] == [b"hot", b"cold"]
    bench.main.answer(calls[0][0], "Error: no")
    assert bench.main.take() == [], "the row is parked"
    bench.main.answer(calls[1][0])
    assert await bench.keeper.wait_delivered("t", "", 0.0) is False


@on_bench()
async def test_a_timeout_ends_the_worker_and_blames_that_call_alone(bench: Bench) -> None:
    await bench.add("slow", timeout_ms=20)
    await bench.add("other")
    await bench.put(b"a")
    calls = {trigger: call_id for call_id, trigger, _ in bench.main.take()}
    for call_id in calls.values():
        bench.main.listener.take_frame(["began", [call_id]])
    await bench.main.until(lambda: bench.main.kills)
    bench.main.answer(calls["other"])  # too late: it will run again
    bench.main.die()
    bench.main.start()
    assert [(trigger, row) for _, trigger, row in bench.main.take()] == [("other", b"a")]
    (slow,) = bench.dispatcher.intake.consumers_of("slow")
    (other,) = bench.dispatcher.intake.consumers_of("other")
    assert "over its timeout of 20 ms" in slow.state.last_error
    assert other.state.last_error == ""
    await bench.ward.until(lambda: bench.ward.sent)
    ((call_id, trigger, _),) = bench.ward.take()
    assert trigger == "slow", "it is tried again where it can hold up nobody"
    bench.ward.answer(call_id)
    assert bench.ward.kills == 1, "no second process without need"


@on_bench()
async def test_the_time_before_a_worker_began_is_not_the_calls(bench: Bench) -> None:
    await bench.add("t", timeout_ms=1)
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    call = bench.dispatcher.common.main.calls[call_id]
    assert call.limit_s >= 20
    bench.main.answer(call_id)
    await bench.put(b"b")
    ((call_id, _, _),) = bench.main.take()
    assert bench.dispatcher.common.main.calls[call_id].limit_s == 0.001
    bench.main.answer(call_id)


@on_bench()
async def test_of_several_calls_in_a_dead_worker_each_runs_alone(bench: Bench) -> None:
    await bench.add("t", attempts=2)
    await bench.put(*ROWS[:3])
    assert len(bench.main.take()) == 3
    bench.main.die("ended with status 3")
    bench.main.start()
    await bench.put(b"neighbour")
    await asyncio.sleep(0)
    ((neighbour, _, row),) = bench.main.take()
    assert row == b"neighbour"
    bench.main.answer(neighbour)
    done = []
    for _ in range(3):
        ((call_id, _, row),) = bench.ward.take()
        if row == ROWS[1]:
            bench.ward.die("ended with status 3")
            bench.ward.start()
        else:
            bench.ward.answer(call_id)
            done.append(row)
        if not bench.ward.is_up:
            bench.ward.start()
    assert done == [ROWS[0], ROWS[2]]
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    assert consumer.state.open_count == 1
    assert "ended with status 3" in consumer.state.last_error


@on_bench()
async def test_a_paused_trigger_is_sent_nothing_and_loses_nothing(bench: Bench) -> None:
    await bench.add("t")
    await bench.triggers.pause("t")
    await bench.put(*ROWS)
    assert bench.main.take() == []
    assert bench.keeper.trigger_statuses()[0].lag_changes == len(ROWS)
    await bench.triggers.resume("t")
    assert len(bench.main.take()) == THREADS
    await bench.triggers.pause("t")
    for call_id in list(bench.dispatcher.common.main.calls):
        bench.main.answer(call_id)
    assert bench.main.take() == []
    await bench.triggers.resume("t")
    seen: list[bytes] = []
    while calls := bench.main.take():
        for call_id, _, row in calls:
            seen.append(row)
            bench.main.answer(call_id)
    assert seen == ROWS[THREADS:]
    assert await bench.keeper.wait_delivered("t", "", 0.0)


@on_bench()
async def test_nothing_is_derived_from_what_a_crash_can_take_back(bench: Bench) -> None:
    await bench.add("t")
    await bench.triggers.pause("t")
    await bench.put(b"a")
    region = bench.region(b"a")
    gate = threading.Event()
    sync = region.store.sync
    region.store.sync = lambda: (gate.wait(10), sync())[1]  # type: ignore[method-assign]
    written = region.apply(RowMutation(b"a", (Put(b"f", b"a", b"2"),)))
    await bench.triggers.resume("t")
    assert bench.main.take() == [], "the row as it is now is not on disk yet"
    gate.set()
    assert written.durable is not None
    await written.durable
    await asyncio.sleep(0)
    (run,) = runs(*bench.main.sent)
    assert run[4][0][5] == {b"f:a": b"2"}


@on_bench()
async def test_a_call_that_waited_for_the_disk_while_its_worker_died_is_sent_once(bench: Bench) -> None:
    await bench.add("t")
    region = bench.region(b"a")
    gate = threading.Event()
    sync = region.store.sync
    await bench.triggers.pause("t")
    await bench.put(b"a")
    region.store.sync = lambda: (gate.wait(10), sync())[1]  # type: ignore[method-assign]
    written = region.apply(RowMutation(b"a", (Put(b"f", b"a", b"2"),))).durable
    await bench.triggers.resume("t")
    assert len(bench.dispatcher.common.main.calls) == 1, "it waits for the row as it is now"
    bench.main.die("ended with status 3")
    bench.main.start()
    gate.set()
    assert written is not None
    await written
    await asyncio.sleep(0)
    assert len(bench.main.take() + bench.ward.take()) == 1


@on_bench()
async def test_a_dead_letter_that_cannot_be_written_is_tried_again(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    bury, tries = bench.dispatcher.letters.add, []

    async def fails_once(letter: Any) -> None:
        tries.append(letter)
        if len(tries) == 1:
            raise HostError("the disk is away")
        await bury(letter)

    bench.dispatcher.letters.add = fails_once
    await bench.put(b"a")
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    bench.main.answer(call_id, "Error: no")
    assert bench.main.take() == []
    await bench.main.until(lambda: bench.main.sent)
    assert len(tries) == 2
    assert [letter.error for letter in await bench.keeper.dead_letters("t", 10)] == ["Error: no"]
    ((call_id, _, row),) = bench.main.take()
    assert row == b"a"
    bench.main.answer(call_id)


@on_bench()
async def test_the_store_can_stop_while_a_dead_letter_is_written(bench: Bench) -> None:
    await bench.add("t", attempts=1)

    async def never(_letter: Any) -> None:
        raise HostError("the disk is away")

    bench.dispatcher.letters.add = never
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    bench.main.answer(call_id, "Error: no")
    await asyncio.sleep(0)
    await bench.keeper.close()
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    assert consumer.state.open_count == 1, "the next start delivers it again"


@on_bench(regions=3)
async def test_a_failed_fsync_closes_a_region_and_its_triggers_bring_it_back(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(b"00")
    ((first, _, _),) = bench.main.take()
    region = bench.region(b"00")

    def broken() -> None:
        raise HostError("I/O error")

    region.store.sync = broken  # type: ignore[method-assign]
    with pytest.raises(Exception, match="refused to sync"):
        await bench.put(b"00")
    bench.main.answer(first)  # of a consumer that is gone
    assert bench.region(b"01") is not None
    assert await bench.keeper.wait_delivered("t", "", 0.0) is False
    await bench.main.until(lambda: bench.main.sent)
    assert bench.region(b"00") is not region
    for call_id, _, row in bench.main.take():
        assert row == b"00"
        bench.main.answer(call_id)


@on_bench(regions=50)
async def test_a_wait_for_one_change_costs_what_its_region_does(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(b"01")
    ((call_id, _, _),) = bench.main.take()
    sequence = bench.region(b"01").log.last_logged
    assert sequence is not None
    waiting = asyncio.ensure_future(bench.keeper.wait_delivered("t", sequence.token, 10.0))
    await asyncio.sleep(0)
    assert list(bench.hub.followers._watchers) == [(trigger("t"), sequence.origin)]
    bench.main.answer(call_id)
    assert await waiting
    assert bench.hub.followers._watchers == {}
    abandoned = asyncio.ensure_future(bench.keeper.wait_delivered("t", f"{sequence.origin}-99-1", 10.0))
    await asyncio.sleep(0)
    abandoned.cancel()
    await asyncio.gather(abandoned, return_exceptions=True)
    assert bench.hub.followers._watchers == {}


@on_bench()
async def test_a_waiter_is_let_go_when_its_trigger_is_removed(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(b"a")
    waiting = asyncio.ensure_future(bench.keeper.wait_delivered("t", "", 10.0))
    await asyncio.sleep(0)
    await bench.triggers.remove("t")
    assert await waiting
    assert bench.hub.followers._watchers == {}


@on_bench()
async def test_garbage_of_a_worker_is_refused(bench: Bench) -> None:
    outcomes = ([], [1], ["x", "done", [], None, "", None, 1, 1], [1, "done", None, None, "", None, 1, 1])
    for frame in (*(["did", [one]] for one in outcomes), ["did", 1], ["what", 1], ["checked", 1, 5], [None, None]):
        with pytest.raises(ValueError, match=r"no answer of a worker|no outcome of a call"):
            bench.main.listener.take_frame(frame)
    bench.main.answer(999)  # of nobody any more


@on_bench()
async def test_a_backfill_that_was_cut_off_does_not_stand_in_the_way_of_the_next(bench: Bench) -> None:
    await bench.put(*ROWS)
    slowed = asyncio.Event()

    async def for_ever(_consumer: Consumer) -> None:
        slowed.set()
        await asyncio.Event().wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Consumer, "_feel_backpressure", for_ever)
        await bench.add("t", from_where="beginning")
        await slowed.wait()
        await bench.triggers.remove("t")
    for call_id in list(bench.dispatcher.common.main.calls):
        bench.main.answer(call_id)
    bench.main.take()
    await bench.add("t", from_where="beginning")
    seen: list[bytes] = []
    waiting = asyncio.ensure_future(bench.keeper.wait_delivered("t", "", 10.0))
    while not waiting.done():
        for call_id, _, row in bench.main.take():
            seen.append(row)
            bench.main.answer(call_id)
        await asyncio.sleep(0)
    assert waiting.result()
    assert sorted(seen) == ROWS
