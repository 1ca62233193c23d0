"""One trigger on one region: what its lag says, where a namesake begins, what a removed one leaves undelivered."""

from __future__ import annotations

import asyncio
import logging
import types

import pytest

from columnar.flows import follower
from columnar.flows.backpressure import LogBounds, backpressure_of
from columnar.flows.delivery_cursor import Cursor, pack_cursor
from columnar.flows.follower_name import trigger
from columnar.limits import LOG_BYTES, LOG_RECORDS
from columnar.model.mutation import Put, RowMutation
from columnar.model.schema import Family
from columnar.regions.log.change_record import Sequence
from columnar.storage.memory import MemoryEngine
from tests.support.changing_house import CatalogueRows, ChangingHouse
from tests.support.held_engine import FakeClock
from tests.unit.triggers.test_dispatcher import ROWS, Bench, on_bench


async def deliver(bench: Bench, name: str) -> list[bytes]:
    """The rows, in the order of their calls."""
    rows: list[bytes] = []
    waiting = asyncio.ensure_future(bench.keeper.wait_delivered(name, "", 10.0))
    while not waiting.done():
        for call_id, _, row in bench.main.take():
            rows.append(row)
            bench.main.answer(call_id)
        await asyncio.sleep(0)
    assert waiting.result()
    return rows


# --- lag ---------------------------------------------------------------------------------------


def test_the_lag_of_what_an_earlier_run_left_counts_from_the_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = types.SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(follower, "time", types.SimpleNamespace(monotonic=lambda: clock.now_s))

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t")
        await bench.triggers.pause("t")
        await bench.put(b"a", b"b")
        clock.now_s = 103.0
        assert bench.keeper.trigger_statuses()[0].lag_seconds == 3.0
        bench.server.eviction.evict(bench.region(b"a"))
        clock.now_s = 110.0
        bench.region(b"a")
        clock.now_s = 117.0
        (status,) = bench.keeper.trigger_statuses()
        assert (status.lag_changes, status.lag_seconds) == (2, 7.0)
        await bench.triggers.resume("t")
        assert await deliver(bench, "t") == [b"a", b"b"]
        assert bench.keeper.trigger_statuses()[0].lag_seconds == 0.0

    run()


def test_a_lag_with_many_marks_begins_at_the_oldest_change_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks of changes that are delivered take no place of those that are not, though nobody asks for the lag."""
    clock = types.SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(follower, "time", types.SimpleNamespace(monotonic=lambda: clock.now_s))
    monkeypatch.setattr(follower, "LAG_MARKS", 4)

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t")
        await bench.put(b"a")
        assert await deliver(bench, "t") == [b"a"]
        await bench.triggers.pause("t")
        for row in (b"b", b"c", b"d", b"e"):
            clock.now_s += 1.0
            await bench.put(row)
        assert bench.keeper.trigger_statuses()[0].lag_seconds == 3.0

    run()


# --- namesakes ---------------------------------------------------------------------------------


@on_bench()
async def test_a_namesake_begins_anew_in_a_region_that_was_closed_meanwhile(bench: Bench) -> None:
    rows = [b"r%02d" % n for n in range(5)]
    await bench.put(*rows)
    await bench.add("t", from_where="beginning")
    assert sorted(await deliver(bench, "t")) == rows
    bench.server.eviction.evict(bench.region(b"r"))
    await bench.triggers.remove("t")
    await bench.add("t", from_where="beginning")
    assert sorted(await deliver(bench, "t")) == rows, "the mark of its namesake's backfill is not its own"


@on_bench()
async def test_a_namesake_is_not_given_what_an_earlier_one_had_open(bench: Bench) -> None:
    await bench.add("t")
    await bench.triggers.pause("t")
    await bench.put(b"old")
    bench.server.eviction.evict(bench.region(b"old"))
    await bench.triggers.remove("t")
    await bench.add("t")
    await bench.put(b"new")
    assert await deliver(bench, "t") == [b"new"]


# --- rows that were there before the trigger ---------------------------------------------------


@on_bench()
async def test_rows_that_were_there_come_though_a_split_of_their_region_was_called_off(bench: Bench) -> None:
    rows = [b"r%02d" % n for n in range(5)]
    await bench.put(*rows)
    await bench.add("t", from_where="beginning")
    region = bench.region(b"r")
    listener = bench.hub.listener
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    consumer.pause_intake()  # as a split has it, whose region waits until nothing is under way
    assert not consumer.is_prepared, "its rows are not in the log yet"
    listener.release(region)
    assert sorted(await deliver(bench, "t")) == rows


# --- what a dropped table's triggers had not seen ----------------------------------------------


@pytest.mark.parametrize("is_split", [False, True])
def test_what_was_undelivered_is_counted_once(caplog: pytest.LogCaptureFixture, is_split: bool) -> None:
    """Daughters of a split have both the whole log of their parent."""

    async def main() -> None:
        house = ChangingHouse(MemoryEngine(), "regions", CatalogueRows(), FakeClock())
        await house.start()
        await house.make([Family("f")])
        await house.apply(RowMutation(b"05", (Put(b"f", b"q", b"1"),)))
        await house.drain()
        await house.triggers.pause("trigger-0")
        for row in (b"10", b"20", b"30", b"80", b"90", b"90", b"90"):
            await house.apply(RowMutation(row, (Put(b"f", b"q", b"1"),)))
        if is_split:
            await house.regions.split(house.infos[0], b"50")
            await house.apply(RowMutation(b"95", (Put(b"f", b"q", b"1"),)))
        await house.changes.disable(b"t")
        await house.changes.drop(b"t")
        await house.close()

    with caplog.at_level(logging.WARNING, logger="columnar.master.trigger_changes"):
        asyncio.run(main())
    count = 8 if is_split else 7
    assert f"table t is dropped: trigger trigger-0 goes with it, {count} changes undelivered" in caplog.text


@on_bench()
async def test_of_what_is_undelivered_open_changes_count_and_those_whose_record_is_gone_do_not(bench: Bench) -> None:
    await bench.add("t")
    await bench.triggers.pause("t")
    await bench.put(b"a", b"b", b"c")
    region = bench.region(b"a")
    held = [sequence for sequence, _ in region.log.read_records(None)]
    for one in bench.dispatcher.intake.consumers_of("t"):
        bench.hub.listener.drop(one)
    never = Sequence(held[0].origin, held[0].epoch - 1, 5)
    region.log.cursors.save_cursor("t", pack_cursor(Cursor(held[1], ((never, 0), (held[0], 2)))))
    assert follower.undelivered(region, trigger("t")) == 2, "the open one and the unread one"
    region.log.cursors.drop_cursor("t")
    assert region.log.cursors.all_cursors() == {}
    assert follower.undelivered(region, trigger("t")) == 0, "it is forgotten"


# --- backpressure ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "size_bytes", "delay_s", "refuses"),
    [
        (0, 0, 0.0, False),
        (500, 0, 0.0, False),
        (0, 500_000, 0.0, False),
        (750, 0, 0.125, False),
        (0, 750_000, 0.125, False),
        (600, 750_000, 0.125, False),
        (750, 600_000, 0.125, False),
        (900, 900_000, 0.512, False),
        (1_000, 0, 1.0, True),
        (0, 1_000_000, 1.0, True),
        (5_000, 5_000_000, 1.0, True),
    ],
)
def test_backpressure_in_numbers(records: int, size_bytes: int, delay_s: float, refuses: bool) -> None:
    pressure = backpressure_of(records, size_bytes, LogBounds(1_000, 1_000_000))
    assert pressure.delay_s == pytest.approx(delay_s, abs=1e-3)
    assert pressure.refuses is refuses
    assert pressure.alarms is (max(records / 1_000, size_bytes / 1_000_000) >= 0.5)


def test_the_bounds_are_those_with_names() -> None:
    assert LogBounds() == LogBounds(records=LOG_RECORDS, size_bytes=LOG_BYTES)
    assert backpressure_of(LOG_RECORDS - 1, LOG_BYTES - 1).refuses is False
    assert backpressure_of(LOG_RECORDS, 0).refuses
    assert backpressure_of(0, LOG_BYTES).refuses


# --- what is needed of a log that is kept ------------------------------------------------------


@on_bench()
async def test_a_new_trigger_needs_nothing_of_what_was_kept_before_it(bench: Bench) -> None:
    keep_log(bench)
    await bench.put(*ROWS)
    await bench.add("t")
    assert bench.region(b"r").log.counts.records == len(ROWS)
    assert bench.region(b"r").log.counts.needed == (0, 0)
    await bench.put(b"new")
    assert bench.region(b"r").log.counts.needed[0] == 1


@on_bench()
async def test_a_region_that_is_opened_knows_at_once_what_of_its_log_is_only_kept(bench: Bench) -> None:
    """Else writers would be slowed until the first look, for what nobody needs."""
    keep_log(bench)
    await bench.add("t")
    await bench.put(*ROWS)
    await deliver(bench, "t")
    await bench.triggers.pause("t")
    await bench.put(b"a", b"b", b"c")
    bench.server.eviction.evict(bench.region(b"r"))
    log = bench.region(b"r").log
    while log.counts.records < len(ROWS) + 3:  # noqa: ASYNC110 - it is counted in steps
        await asyncio.sleep(0)
    assert 3 <= log.counts.needed[0] <= 4


def keep_log(bench: Bench) -> None:
    attributes = bench.table.schema.attributes
    assert isinstance(attributes, dict)
    attributes["CHANGE_LOG"] = "3600"
    bench.hub.table_installed("t")


@on_bench()
async def test_lag_in_seconds_reaches_back_to_its_beginning(bench: Bench) -> None:
    await bench.add("t")
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    await bench.triggers.pause("t")
    await bench.put(b"a")
    began = consumer.lag._marks[0]
    last = bench.region(b"a").log.last_logged
    assert last is not None
    for n in range(5_000):  # an hour and more of a mark each fifth of a second
        consumer.lag._marks.append((last, began[1] - n))
        consumer.lag.note_durable()
    assert len(consumer.lag._marks) <= 512
    assert consumer.lag._marks[0] == began
