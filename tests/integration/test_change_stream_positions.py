"""Positions in a change stream: through holes of the log, splits and merges, restarts, drops and quiet regions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from columnar.client import Connection
from columnar.client.admin import RegionAdmin
from columnar.client.changes import Change, ChangesGone, Forget, Row
from columnar.client.errors import StoreIllegalArgument, StoreIOError
from columnar.cluster.peer_requests import ChangesFound, ChangesPart, ReadChanges, WaitChanges
from columnar.flows import position
from columnar.flows.position import Range
from columnar.model.change_stream import StreamRange, StreamSpec
from tests.support.serving import Serving
from tests.support.stream_reading import FG, KEPT, F, noted_time, now, rows_of, state_after


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("streams")).start()
    yield serving
    serving.stop()


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


def test_a_position_behind_a_hole_is_gone_and_never_passed_in_silence(connection: Connection) -> None:
    connection.create_table("hole", F, attributes=KEPT)
    table = connection.table("hole")
    stream = connection.changes("hole", start="beginning", follow=False)
    table.put(b"a", {b"f:x": b"1"})
    events = now(stream)
    connection.admin.alter_table("hole", attributes={"CHANGE_LOG": ""})
    table.put(b"unlogged", {b"f:x": b"1"})
    connection.admin.alter_table("hole", attributes=KEPT)
    table.put(b"again", {b"f:x": b"1"})
    with pytest.raises(ChangesGone, match="snapshot"):
        now(stream)
    again = connection.changes("hole", start=stream.position, snapshot=True, follow=False)
    events += now(again)
    assert isinstance(events[1], Forget)
    assert set(state_after(events)) == {b"a", b"unlogged", b"again"}
    table.put(b"later", {b"f:x": b"1"})
    assert rows_of(now(again)) == [b"later"]


def test_a_position_is_gone_when_its_changes_are_trimmed(serving: Serving, connection: Connection) -> None:
    connection.create_table("trimmed", F, attributes=KEPT | {"CHANGE_LOG_BYTES": "10000"}, splits=[b"m"])
    table = connection.table("trimmed")
    stream = connection.changes("trimmed", follow=False)
    assert now(stream) == []
    table.put(b"z", {b"f:x": b"1"})
    for n in range(200):
        table.put(b"%03d" % n, {b"f:x": b"v" * 200})
    hub = serving.store.serving.trigger_manager.hub
    for region in serving.do(lambda: serving.store.serving.server.open_regions_of("trimmed")):
        serving.do(lambda region=region: hub.upkeep.save(region))  # type: ignore[misc]
    with pytest.raises(ChangesGone):
        now(stream)
    upper = connection.changes("trimmed", start=stream.position, rows=("m", ""), follow=False)
    assert rows_of(now(upper)) == [b"z"], "the other region has them all"
    events = now(connection.changes("trimmed", start=stream.position, snapshot=True, follow=False))
    assert [(one.start, one.stop) for one in events if isinstance(one, Forget)] == [(b"", b"m")]
    assert set(state_after(events)) == {b"z"} | {b"%03d" % n for n in range(200)}


def test_a_stream_from_a_time(connection: Connection) -> None:
    connection.create_table("times", F, attributes=KEPT)
    table, noted = connection.table("times"), noted_time(connection, "times")
    table.put(b"r", {b"f:x": b"1"})
    assert rows_of(now(connection.changes("times", start=noted, follow=False)))[-1:] == [b"r"]
    with pytest.raises(ChangesGone, match="reach back to"):
        now(connection.changes("times", start=noted - timedelta(days=1), follow=False))


def test_a_new_table_is_read_from_any_time_since_it_was_made(connection: Connection) -> None:
    connection.create_table("fresh", F, attributes=KEPT)
    table = connection.table("fresh")
    table.put(b"a", {b"f:x": b"1"})
    time.sleep(0.002)
    made = datetime.now(UTC)
    table.put(b"b", {b"f:x": b"1"})
    assert rows_of(now(connection.changes("fresh", start=made, follow=False)))[-1:] == [b"b"]
    with pytest.raises(ChangesGone, match="reach back to"):
        now(connection.changes("fresh", start=made - timedelta(days=1), follow=False))


def test_splits_and_merges_neither_lose_nor_repeat(connection: Connection) -> None:
    connection.create_table("moves", F, attributes=KEPT, splits=[b"m"])
    table = connection.table("moves")
    stream = connection.changes("moves", start="beginning", follow=False, max_bytes=1_000)
    away = connection.changes("moves", follow=False)  # reads nothing until the end
    assert now(away) == []
    got: list[bytes] = []
    written = []

    def put() -> None:
        for prefix in (b"a", b"f", b"n", b"z"):
            row = b"%s-%d" % (prefix, len(written))
            table.put(row, {b"f:x": b"1"})
            written.append(row)

    def regions() -> list[bytes]:
        return [one.name for one in connection.client.getTableRegions(b"moves")]

    put()
    got += rows_of(now(stream))
    changes = [
        lambda: connection.call("columnarMerge", *regions()[:2]),
        lambda: connection.call("columnarSplit", b"moves", b"g"),
        lambda: connection.call("columnarSplit", b"moves", b"o"),
        lambda: connection.call("columnarMerge", *regions()[:2]),
        lambda: connection.call("columnarMerge", *regions()[:2]),
    ]
    for change in changes:
        put()
        change()
        put()
        got += rows_of(now(stream))
    assert sorted(got) == sorted(written)
    assert sorted(rows_of(now(away))) == sorted(written)


def test_a_merge_with_rows_that_a_reader_does_not_want_takes_no_position_away(connection: Connection) -> None:
    connection.create_table("beside", F, attributes=KEPT, splits=[b"m"])
    table = connection.table("beside")
    table.put(b"b", {b"f:x": b"1"})
    streams = [
        connection.changes("beside", rows=(b"a", b"c"), follow=False, start=start, snapshot=snapshot)
        for start in ("now", "beginning")
        for snapshot in (False, True)
    ]
    for stream in streams:
        now(stream)
    RegionAdmin(connection).merge(*[region.name for region in connection.admin.regions("beside")])
    table.put(b"b", {b"f:x": b"2"})
    table.put(b"z", {b"f:x": b"2"})
    assert [[type(one) for one in now(stream)] for stream in streams] == [[Change]] * 4
    with pytest.raises(ChangesGone):  # rows that were never read are not passed in silence
        now(connection.changes("beside", start=streams[0].position, rows=(b"a", b"zz"), follow=False))


def test_a_position_beyond_the_end_of_the_log_is_not_believed(connection: Connection) -> None:
    """The store went back to an older copy of its folder; later changes reach the position, and would be skipped."""
    connection.create_table("ahead", F, attributes=KEPT)
    table = connection.table("ahead")
    table.put(b"a", {b"f:x": b"1"})
    stream = connection.changes("ahead", start="beginning", follow=False)
    now(stream)
    (one,) = position.unpack(stream.position)[0].ranges
    end = one.p
    assert end is not None
    for p in (end._replace(n=end.n + 1), end._replace(epoch=end.epoch + 1, n=0), end._replace(origin=1 << 40)):
        ahead = position.pack(position.Position((Range(b"", p, None),)), "ahead")
        with pytest.raises(ChangesGone, match="restored from a copy"):
            now(connection.changes("ahead", start=ahead, follow=False))
        events = now(connection.changes("ahead", start=ahead, follow=False, snapshot=True))
        assert [type(event) for event in events] == [Forget, Row]


def test_a_position_outlives_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("restarted")
    serving = Serving(folder).start()
    connection = serving.connect()
    connection.create_table("t", F, attributes=KEPT)
    stream = connection.changes("t", start="beginning", follow=False)
    connection.table("t").put(b"a", {b"f:x": b"1"})
    assert rows_of(now(stream)) == [b"a"]
    connection.table("t").put(b"b", {b"f:x": b"1"})
    serving.stop()
    serving = Serving(folder).start()
    try:
        connection = serving.connect()
        again = connection.changes("t", start=stream.position, follow=False)
        assert rows_of(now(again)) == [b"b"]
        connection.table("t").put(b"c", {b"f:x": b"1"})
        assert rows_of(now(again)) == [b"c"]
    finally:
        serving.stop()


def test_a_dropped_table_ends_the_stream(serving: Serving, connection: Connection) -> None:
    connection.create_table("dropped", F, attributes=KEPT)
    stream = connection.changes("dropped")
    stream.poll(1)
    other = serving.connect()

    def drop() -> None:
        other.disable_table("dropped")
        other.delete_table("dropped")

    later = threading.Timer(0.1, drop)
    later.start()
    begun = time.monotonic()
    with pytest.raises((StoreIOError, StoreIllegalArgument)):
        stream.poll(25_000)
    assert time.monotonic() - begun < 20
    later.join()
    connection.create_table("dropped", F, attributes=KEPT)
    with pytest.raises(ChangesGone):
        stream.poll(1)


def test_a_reader_does_not_keep_quiet_regions_open(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A region that was read to its end is not opened for a reader until it has changes."""
    serving = Serving(tmp_path_factory.mktemp("quiet")).start()
    try:
        connection = serving.connect()
        connection.create_table("quiet", F, attributes=KEPT, splits=[b"%d" % n for n in range(1, 6)])
        table, server = connection.table("quiet"), serving.store.serving.server
        for n in range(6):
            table.put(b"%d" % n, {b"f:x": b"1"})
        stream = connection.changes("quiet", start="beginning", follow=False)
        assert len(now(stream)) == 6
        assert now(stream) == []

        async def close(start: bytes) -> None:
            (one,) = [region for region in server.open_regions_of("quiet") if region.info.start == start]
            await server.hosting.close(one)

        for start in (b"2", b"3", b"4"):
            serving.run(close(start))
        assert now(stream) == []
        assert serving.do(lambda: len(server.open_regions_of("quiet"))) == 3
        table.put(b"3x", {b"f:x": b"1"})
        assert rows_of(now(stream)) == [b"3x"]
        assert serving.do(lambda: len(server.open_regions_of("quiet"))) == 4
    finally:
        serving.stop()


def test_a_wait_counts_from_the_round_in_which_was_read(serving: Serving, connection: Connection) -> None:
    """A round of another gateway, or a later one, must not hide a change that this round has not read."""
    connection.create_table("rounds", F, attributes=KEPT)
    connection.table("rounds").put(b"a", {b"f:x": b"1"})
    store = serving.store.serving
    changes = store.changes(None)
    (info,) = store.server.tables.enabled(b"rounds").regions

    def read(gateway: str, number: int, ranges: tuple[StreamRange, ...]) -> ChangesFound:
        part = ChangesPart(info, ranges)
        message = ReadChanges("rounds", StreamSpec(), "beginning", (part,), 10_000, gateway, number)
        return serving.run(changes.read_changes(message))

    def waits(tick: int) -> bool:
        return not serving.run(changes.wait_changes(WaitChanges((info,), tick, 1)))

    first = read("one", 1, ())
    (ranges,) = first.ranges
    assert ranges
    assert waits(first.tick)
    connection.table("rounds").put(b"b", {b"f:x": b"1"})
    other = read("two", 7, ranges)
    assert b"b" in other.events
    again = read("one", 1, ranges)
    assert (again.events, again.tick) == (b"", first.tick), "the round has one end"
    assert not waits(again.tick)
    assert waits(other.tick)
    assert b"b" in read("one", 2, ranges).events


@pytest.mark.parametrize("is_open", [True, False])
def test_a_dropped_family_is_told_to_readers_behind_it_and_at_it(
    serving: Serving, connection: Connection, is_open: bool
) -> None:
    """Its cells vanish without changes, and a later family of its name has none of them."""
    name = f"family-{is_open}"
    connection.create_table(name, FG, attributes=KEPT)
    table, server = connection.table(name), serving.store.serving.server
    behind = connection.changes(name, start="beginning", follow=False)
    assert now(behind) == []
    table.put(b"r", {b"f:x": b"1", b"g:x": b"old"})
    at_it = connection.changes(name, start=behind.position, follow=False)
    events = now(at_it)

    async def close() -> None:
        for region in server.open_regions_of(name):
            await server.hosting.close(region)

    if not is_open:
        serving.run(close())
    connection.admin.alter_table(name, drop=["g"])
    connection.admin.alter_table(name, add={"g": {}})
    for stream in (behind, at_it):
        with pytest.raises(ChangesGone):
            now(stream)
    again = connection.changes(name, start=at_it.position, snapshot=True, follow=False)
    assert state_after(events + now(again)) == {b"r": {b"f:x": b"1"}}
    table.put(b"r", {b"g:x": b"new"})
    assert rows_of(now(again)) == [b"r"]
    assert now(again) == []
