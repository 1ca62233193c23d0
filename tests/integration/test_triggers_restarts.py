"""What restarts, bounds and closed regions leave of triggers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from columnar.client import Connection, Put
from columnar.client.errors import IOError
from columnar.config import ChangeLogSettings, MemorySettings
from columnar.regions.region import Region
from tests.support.audit import seen
from tests.support.cluster_process import until
from tests.support.serving import Serving
from tests.support.trigger_functions import MODULE

NOTE = f"{MODULE}:note"
Start = Callable[..., tuple[Serving, Connection]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the store (again)."""
    running: list[Serving] = []

    def again(**settings: object) -> tuple[Serving, Connection]:
        if running:
            running.pop().stop()
        running.append(Serving(tmp_path / "data", **settings).start())
        return running[0], running[0].connect()

    yield again
    running.pop().stop()


def make(connection: Connection, **settings: object) -> None:
    connection.create_table("audit", {"a": {}})
    connection.create_table(b"t", {"f": {}}, splits=[b"m"])
    connection.triggers.add("t", b"t", NOTE, [b"f"], **settings)  # type: ignore[arg-type]


def regions(serving: Serving) -> list[Region]:
    return serving.do(lambda: serving.store.serving.server.open_regions_of("t"))


def test_a_paused_trigger_and_its_changes_survive_a_restart(start: Start) -> None:
    _, connection = start()
    make(connection)
    connection.triggers.pause("t")
    tokens = [connection.table(b"t").mutate(row, [Put(b"f:a", b"1")]).sequence for row in (b"a", b"z")]
    _, connection = start()
    (status,) = connection.triggers.list()
    assert status.state == "paused"
    assert not connection.triggers.wait(timeout_ms=1), "what an earlier opening left counts"
    assert not connection.triggers.wait("t", tokens[0], timeout_ms=1)
    (status,) = connection.triggers.list()
    assert status.lag_changes == 2
    connection.triggers.resume("t")
    assert connection.triggers.wait("t", tokens[1])
    assert connection.triggers.wait()
    assert [one.sequence for row in (b"a", b"z") for one in seen(connection, row)] == tokens


def test_after_a_restart_nothing_comes_again_and_old_tokens_hold(start: Start) -> None:
    _, connection = start()
    make(connection)
    token = connection.table(b"t").mutate(b"a", [Put(b"f:a", b"1")]).sequence
    assert connection.triggers.wait()
    _, connection = start()
    assert connection.triggers.wait("t", token)
    assert connection.triggers.wait()
    assert len(seen(connection, b"a")) == 1


def test_attempts_are_kept_over_a_restart(start: Start) -> None:
    _, connection = start()
    make(connection)
    connection.triggers.add("o", b"t", f"{MODULE}:obey", [b"f"], attempts=3)
    connection.triggers.pause("t")
    connection.table(b"t").put(b"a", {b"f:do": b"raise"})
    assert not connection.triggers.wait("o", timeout_ms=30)
    _, connection = start()
    assert connection.triggers.wait("o")
    (letter,) = connection.triggers.dead_letters("o")
    assert letter.attempts == 3
    _, connection = start()
    assert [one.dead_letters for one in connection.triggers.list()] == [1, 0]
    assert connection.triggers.dead_letters("o") == [letter]


def test_a_backfill_goes_on_where_a_restart_stopped_it(start: Start) -> None:
    _, connection = start()
    connection.create_table("audit", {"a": {}})
    connection.create_table(b"t", {"f": {}}, splits=[b"m"])
    with connection.table(b"t").batch() as batch:
        for n in range(1_500):
            batch.put(b"%04d" % n, {b"f:a": b"1"})
    connection.triggers.add("t", b"t", NOTE, [b"f"], from_where="beginning")
    _, connection = start()
    assert connection.triggers.wait(timeout_ms=60_000)
    rows = [row for row, _ in connection.table(b"audit").scan(columns=[b"a:log"])]
    assert len(rows) == 1_500


def test_a_full_log_slows_then_refuses_and_drops_nothing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    serving, connection = start(change_log=ChangeLogSettings(records=40))
    make(connection)
    connection.triggers.pause("t")
    table = connection.table(b"t")
    delays = []
    written = 0

    def write() -> None:
        """Four rows in one call: it is slowed once, whatever the number of its rows."""
        with table.batch() as batch:
            for n in range(written, written + 4):
                batch.put(b"a-%d" % n, {b"f:a": b"1"})

    with caplog.at_level(logging.WARNING, logger="columnar.flows.log_upkeep"):
        while not any(region.refuses_writes for region in regions(serving)):
            write()
            written += 4
            delays.append(max(region.write_delay_s for region in regions(serving)))
        with pytest.raises(IOError) as refused:
            write()
    assert refused.value.message.startswith(b"RegionTooBusyException: the change log of region")
    assert refused.value.message.endswith(b" is full: trigger t is paused; columnar trigger resume t, or remove it")
    assert caplog.text.count("writers are slowed") == 1
    assert 40 <= written < 50
    assert delays[3] == 0.0, "below half of the bound"
    assert all(earlier <= later for earlier, later in pairwise(delays))
    assert 0.0 < delays[-2] < 1.0
    table.put(b"z", {b"f:a": b"another region is not slowed"})
    connection.triggers.resume("t")
    assert connection.triggers.wait()
    serving.do(serving.store.serving.trigger_manager.dispatcher.intake.upkeep.save_all)
    table.put(b"a", {b"f:a": b"1"})
    assert connection.triggers.wait()
    rows = [row for row, _ in connection.table(b"audit").scan(columns=[b"a:log"])]
    assert len(rows) == written + 2


def test_what_is_left_in_a_log_is_counted_against_its_bound(start: Start) -> None:
    _, connection = start()
    make(connection)
    connection.triggers.pause("t")
    with connection.table(b"t").batch() as batch:
        for n in range(50):
            batch.put(b"a-%d" % n, {b"f:a": b"1"})
    _, connection = start(change_log=ChangeLogSettings(records=40))
    assert not connection.triggers.wait(timeout_ms=1)  # the regions are open
    with pytest.raises(IOError, match="RegionTooBusyException"):
        connection.table(b"t").put(b"b", {b"f:a": b"1"})
    connection.triggers.remove("t")
    connection.table(b"t").put(b"b", {b"f:a": b"1"})


def test_the_log_ends_with_its_last_reader(start: Start) -> None:
    serving, connection = start(change_log=ChangeLogSettings(records=10))
    make(connection)
    connection.triggers.pause("t")
    with connection.table(b"t").batch() as batch:
        for n in range(12):
            batch.put(b"a-%d" % n, {b"f:a": b"1"})
    connection.triggers.remove("t")
    serving.do(serving.store.serving.trigger_manager.dispatcher.intake.upkeep.save_all)
    connection.table(b"t").put(b"b", {b"f:a": b"1"})
    (region,) = (region for region in regions(serving) if region.info.start == b"")
    assert serving.do(lambda: region.log.count_after(None, 100)) <= 1


def test_idle_regions_with_triggers_are_closed_over_the_bound_and_busy_ones_stay(start: Start) -> None:
    serving, connection = start(memory=MemorySettings(open_regions=5))
    connection.create_table("audit", {"a": {}})
    connection.create_table(b"many", {"f": {}}, splits=[b"%02d" % n for n in range(1, 10)])
    connection.triggers.add("many", b"many", NOTE, [b"f"])
    connection.triggers.pause("many")
    connection.table(b"many").put(b"00", {b"f:a": b"waits"})
    connection.triggers.resume("many")
    for n in range(10):
        connection.table(b"many").put(b"%02d" % n, {b"f:a": b"1"})
        assert connection.triggers.wait("many")
    until(lambda: serving.do(serving.store.serving.server.open_count) <= 6)  # a flush before a closing takes a while
    connection.triggers.pause("many")
    for n in range(10):
        connection.table(b"many").put(b"%02d" % n, {b"f:a": b"2"})
    assert serving.do(serving.store.serving.server.open_count) >= 10, "their changes have not been delivered"
    connection.triggers.resume("many")
    assert connection.triggers.wait("many")
    deliveries = [[(one.sequence, one.attempt) for one in seen(connection, b"%02d" % n)] for n in range(10)]
    assert [len(of_row) for of_row in deliveries] == [3, *[2] * 9], str(deliveries)


def test_a_region_that_a_failed_fsync_closed_comes_back_for_its_triggers(start: Start) -> None:
    serving, connection = start()
    make(connection)
    connection.triggers.pause("t")
    connection.table(b"t").put(b"a", {b"f:a": b"1"})
    (region,) = (region for region in regions(serving) if region.info.start == b"")
    connection.triggers.resume("t")
    serving.do(lambda: serving.store.serving.server.eviction.evict(region))
    assert connection.triggers.wait("t")
    assert len(seen(connection, b"a")) >= 1


def test_change_log_keeps_records_for_its_time_without_any_reader(start: Start) -> None:
    serving, connection = start()
    connection.create_table(b"t", {"f": {}, "g": {}}, attributes={"CHANGE_LOG": "3600"})
    connection.table(b"t").put(b"a", {b"f:a": b"1", b"g:a": b"1"})
    connection.table(b"t").put(b"a", {b"g:a": b"2"})
    serving, connection = start()
    connection.table(b"t").put(b"a", {b"g:a": b"3"})
    upkeep = serving.store.serving.trigger_manager.dispatcher.intake.upkeep
    (region,) = regions(serving)
    serving.do(upkeep.save_all)
    assert serving.do(lambda: [len(record.entries) for _, record in region.log.read_records(None)]) == [2, 1, 1]

    region._clock = lambda clock=region._clock: clock() + 3_700_000  # type: ignore[misc]
    serving.do(lambda: upkeep.save(region))
    connection.table(b"t").put(b"a", {b"g:a": b"4"})
    serving.do(lambda: upkeep.save(region))
    values = serving.do(lambda: [record.entries[-1].value for _, record in region.log.read_records(None)])
    assert values[-1] == b"4"
    assert b"1" not in values, "its time is over"


def fill(connection: Connection, first: int, count: int) -> None:
    with connection.table(b"t").batch() as batch:
        for n in range(first, first + count):
            batch.put(b"a-%04d" % n, {b"f:a": b"v" * 100})


def delay_s(serving: Serving, region: Region) -> float:
    """Return the delay in the loop: a write is acknowledged before the delay that follows from it is set."""
    return serving.do(lambda: region.write_delay_s)


def test_a_log_that_nobody_needs_slows_nobody(start: Start) -> None:
    """CHANGE_LOG keeps ahead of a first reader; its bound is the trigger's that is behind, not the keeping's."""
    serving, connection = start(change_log=ChangeLogSettings(records=40))
    connection.create_table("audit", {"a": {}})
    connection.create_table(b"t", {"f": {}}, attributes={"CHANGE_LOG": "3600"})
    upkeep = serving.store.serving.trigger_manager.dispatcher.intake.upkeep
    for n in range(4):
        fill(connection, 30 * n, 30)
    (region,) = regions(serving)
    assert serving.do(lambda: region.log.count_after(None, 1_000)) == 120, "three times the bound, and all of it there"
    assert delay_s(serving, region) == 0.0
    connection.triggers.add("t", b"t", NOTE, [b"f"])
    fill(connection, 200, 30)
    assert connection.triggers.wait()
    serving.do(upkeep.save_all)
    assert serving.do(lambda: region.log.counts.needed[0]) <= 1
    connection.triggers.pause("t")
    fill(connection, 300, 30)
    assert 0 < delay_s(serving, region) < 1, "its own backlog counts"
    fill(connection, 330, 15)
    with pytest.raises(IOError, match="is full: trigger t is paused"):
        fill(connection, 345, 1)
    connection.triggers.resume("t")
    assert connection.triggers.wait()
    serving.do(upkeep.save_all)
    fill(connection, 400, 10)
    assert serving.do(lambda: region.log.count_after(None, 1_000)) == 205, "what was delivered is kept for its time"

    serving, connection = start(change_log=ChangeLogSettings(records=40))
    assert connection.triggers.wait()
    fill(connection, 500, 10)
    (region,) = regions(serving)
    assert serving.do(lambda: region.log.counts.records) == 215
    assert delay_s(serving, region) == 0.0, "after a restart too"


def test_a_backlog_of_large_changes_is_refused_by_its_bytes_and_says_why(start: Start) -> None:
    serving, connection = start(change_log=ChangeLogSettings(size_bytes=20_000))
    make(connection)
    connection.triggers.add("o", b"t", f"{MODULE}:obey", [b"f"], attempts=100)
    connection.table(b"t").put(b"a", {b"f:do": b"raise"})
    assert not connection.triggers.wait("o", timeout_ms=300)
    (region,) = (region for region in regions(serving) if region.info.start == b"")
    while not serving.do(lambda: region.refuses_writes):
        connection.table(b"t").put(b"a", {b"f:a": b"v" * 5_000})
    assert region.log.counts.needed[0] < 10
    with pytest.raises(IOError, match=r"is full: trigger o is behind \(its last error: RuntimeError: as told"):
        connection.table(b"t").put(b"a", {b"f:a": b"1"})
    connection.triggers.remove("o")
    assert connection.triggers.wait()
    serving.do(serving.store.serving.trigger_manager.dispatcher.intake.upkeep.save_all)
    connection.table(b"t").put(b"a", {b"f:do": b"", b"f:a": b"1"})


def test_a_kept_log_ends_at_its_size_before_its_time(start: Start) -> None:
    serving, connection = start()
    connection.create_table(b"t", {"f": {}}, attributes={"CHANGE_LOG": "3600", "CHANGE_LOG_BYTES": "10000"})
    upkeep = serving.store.serving.trigger_manager.dispatcher.intake.upkeep
    for n in range(10):
        fill(connection, 30 * n, 30)
    serving.do(upkeep.save_all)
    (region,) = regions(serving)

    def kept() -> tuple[list[bytes], int]:
        rows = [record.row for _, record in region.log.read_records(None)]
        return rows, sum(len(data) for _, data in region.store.scan("log", b"", None))

    rows, size = serving.do(kept)
    assert 9_000 < size <= 10_000
    assert rows == [b"a-%04d" % n for n in range(300 - len(rows), 300)], "the newest stay"
    assert (region.log.counts.records, region.log.counts.size_bytes) == (len(rows), size)


def test_one_call_may_touch_more_regions_than_may_be_open(start: Start) -> None:
    _, connection = start(memory=MemorySettings(open_regions=4))
    connection.create_table(b"wide", {"f": {}}, splits=[b"%02d" % n for n in range(1, 20)])
    with connection.table(b"wide").batch() as batch:
        for n in range(20):
            batch.put(b"%02d" % n, {b"f:a": b"1"})
    assert len(list(connection.table(b"wide").scan())) == 20
    assert len(connection.table(b"wide").rows([b"%02d" % n for n in range(20)])) == 20
