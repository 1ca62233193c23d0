"""Change streams through the client: order, snapshots, filters, images, what a log that was cut off makes of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from columnar.client import Connection
from columnar.client.changes import Change, Changes, Idle, Row, StreamEvent
from columnar.client.errors import StoreIllegalArgument, StoreIOError
from columnar.cluster.peer_requests import ChangesFound, ChangesPart, ReadChanges
from columnar.flows import position as positions
from columnar.model.change_stream import StreamSpec
from columnar.regions.log.change_record import Sequence
from columnar.regions.read.wide_row import WideRow
from columnar.streams import change_streams, region_reader
from tests.support.serving import Serving
from tests.support.stream_reading import FG, IMAGES, KEPT, F, noted_time, now, rows_of, state_after

MANY_RANGES = positions.Position(
    tuple([positions.Range(b"%06d" % n if n else b"", Sequence(1, 1, n), None) for n in range(10_000)])
)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("streams")).start()
    yield serving
    serving.stop()


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


def test_a_snapshot_and_its_tail_make_the_table(connection: Connection) -> None:
    connection.create_table("whole", FG, attributes=KEPT, splits=[b"m"])
    table = connection.table("whole")
    for n in range(500):
        table.put(b"%03d" % n, {b"f:n": b"%d" % n})
        table.put(b"z%03d" % n, {b"g:n": b"%d" % n})
    stream = connection.changes("whole", start="beginning", follow=False, max_bytes=2_000)
    events = []
    for n, event in enumerate(stream):
        events.append(event)
        if n % 50 == 0:  # amid the snapshot
            table.put(b"%03d" % (n % 500), {b"f:later": b"%d" % n})
            table.delete(b"z%03d" % (n % 500))
    events += now(stream)
    assert state_after(events) == {row: dict(cells) for row, cells in table.scan()}
    assert any(isinstance(one, Change) for one in events)
    assert len({one.row for one in events if isinstance(one, Row)}) >= 900


def test_now_begins_with_the_next_change_and_goes_on_where_it_was(connection: Connection) -> None:
    connection.create_table("tail", F, attributes=KEPT)
    table = connection.table("tail")
    table.put(b"before", {b"f:x": b"1"})
    stream = connection.changes("tail", follow=False)
    assert now(stream) == []
    table.put(b"a", {b"f:x": b"1", b"f:y": b"2"})
    table.delete(b"a", [b"f:x"])
    (put, delete) = now(stream)
    assert isinstance(put, Change)
    assert isinstance(delete, Change)
    assert [(e.kind, e.column, e.value) for e in put.entries] == [("put", b"f:x", b"1"), ("put", b"f:y", b"2")]
    assert [(e.kind, e.column) for e in delete.entries] == [("delete", b"f:x")]
    assert put.stamp < delete.stamp
    assert (put.before, put.after, put.more) == (None, None, False)
    assert rows_of(now(connection.changes("tail", start=put.position, follow=False))) == [b"a", b"a"], "the reply again"
    assert now(connection.changes("tail", start=delete.position, follow=False)) == []
    table.put(b"b", {b"f:x": b"1"})
    assert rows_of(now(connection.changes("tail", start=delete.position, follow=False))) == [b"b"]


@pytest.mark.parametrize("begin", ["beginning", "time"])
def test_each_event_of_the_first_reply_has_a_position_that_misses_nothing(connection: Connection, begin: str) -> None:
    name = f"first-{begin}"
    connection.create_table(name, F, attributes=KEPT)
    noted = begin if begin == "beginning" else noted_time(connection, name)
    for row in (b"a", b"b", b"c"):
        connection.table(name).put(row, {b"f:x": b"1"})
    for first in now(connection.changes(name, start=noted, follow=False))[:-1]:
        again = rows_of(now(connection.changes(name, start=first.position, follow=False)))
        assert set(again) >= {b"a", b"b", b"c"}


def test_a_stream_from_now_gives_positions_that_miss_nothing(serving: Serving, connection: Connection) -> None:
    connection.create_table("first-now", F, attributes=KEPT)
    stream = connection.changes("first-now")
    writer = serving.connect().table("first-now")
    later = threading.Timer(0.2, lambda: put_together(writer, [b"a", b"b", b"c"]))
    later.start()
    first = next(stream)
    later.join()
    again = rows_of(now(connection.changes("first-now", start=first.position, follow=False)))
    assert again == [b"a", b"b", b"c"]


def put_together(table: Any, rows: list[bytes]) -> None:
    with table.batch() as batch:
        for row in rows:
            batch.put(row, {b"f:x": b"1"})


def test_unwanted_changes_in_any_number_do_not_end_a_reader(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that finds nothing for a while is answered with a position only: that is not the log's end."""
    connection.create_table("unwanted", FG, attributes=KEPT)
    stream = connection.changes("unwanted", columns=["g"], follow=False)
    assert now(stream) == []
    put_together(connection.table("unwanted"), [b"%03d" % n for n in range(100)])
    connection.table("unwanted").put(b"wanted", {b"g:x": b"1"})
    monkeypatch.setattr(region_reader, "STEP_RECORDS", 10)
    monkeypatch.setattr(region_reader, "READ_STEPS", 1)
    monkeypatch.setattr(change_streams, "LONGEST_READ_S", 0.0)
    assert stream.poll(0) == []
    assert not stream.is_at_end
    assert rows_of(now(stream)) == [b"wanted"]


def test_readers_that_are_behind_come_to_the_same_positions(
    serving: Serving, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They began at different positions; from the same ones on they share their replies."""
    connection.create_table("aligned", F, attributes=KEPT)
    streams = []
    table = connection.table("aligned")
    for n in range(5):
        streams.append(connection.changes("aligned", max_bytes=16_384, follow=False))
        streams[-1].poll(0)
        table.put(b"first-%d" % n, {b"f:x": b"1"})
    put_together(table, [b"%04d" % n for n in range(2_000)])
    monkeypatch.setattr(region_reader, "STEP_RECORDS", 16)
    for _ in range(2):
        counts = [len(stream.poll(0)) for stream in streams]
        assert all(100 < count < 400 for count in counts), "no more than asked for, and most of it"
    assert len({stream.position for stream in streams}) == 1
    for at, stream in enumerate(streams):
        assert len({change.row for change in stream}) > 2_000 - 800, at


def test_rows_that_a_snapshot_does_not_want_leave_the_loop_to_others(
    serving: Serving, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows a snapshot passes without an event, other work runs in between, and each read is bounded."""
    connection.create_table("passed", FG, attributes=IMAGES)
    put_together(connection.table("passed"), [b"%03d" % n for n in range(200)])
    monkeypatch.setattr(region_reader, "CHUNK_ROWS", 10)
    changes = serving.store.serving.changes(None)
    (info,) = changes._server.tables.enabled(b"passed").regions
    message = ReadChanges("passed", StreamSpec(where=("f:x = never",)), "beginning", (ChangesPart(info, ()),), 9, "", 1)

    async def turns_during_a_read() -> tuple[int, ChangesFound]:
        read = asyncio.ensure_future(changes.read_changes(message))
        turns = 0
        while not read.done():
            await asyncio.sleep(0)
            turns += 1
        return turns, read.result()

    turns, found = serving.run(turns_during_a_read())
    assert (turns > 20, found.is_at_end, found.events) == (True, True, b"")
    monkeypatch.setattr(region_reader, "READ_STEPS", 3)
    turns, found = serving.run(turns_during_a_read())
    assert (turns < 20, found.is_at_end) == (True, False)
    assert list(connection.changes("passed", start="beginning", where=["f:x = never"], follow=False)) == []


def put_wide_rows(connection: Connection, table: str) -> None:
    connection.create_table(table, FG, attributes=KEPT)
    connection.table(table).put(b"first", {b"g:x": b"1"})
    for n in range(5):
        connection.table(table).put(b"huge", {b"f:%d" % n: b"%d" % n * 1_000_000, b"g:x": b"%d" % n})
    connection.table(table).put(b"small", {b"g:x": b"1"})


def test_a_row_that_takes_several_steps_to_read_is_one_event_of_a_snapshot(connection: Connection) -> None:
    put_wide_rows(connection, "wide")
    found = now(connection.changes("wide", start="beginning", follow=False))
    assert rows_of(found) == [b"first", b"huge", b"small"]
    huge = next(one for one in found if isinstance(one, Row) and one.row == b"huge")
    assert {column: value[:2] for column, (value, _) in huge.cells.items()} == {
        b"f:0": b"00", b"f:1": b"11", b"f:2": b"22", b"f:3": b"33", b"f:4": b"44", b"g:x": b"4"
    }  # fmt: skip
    assert {len(value) for column, (value, _) in huge.cells.items() if column != b"g:x"} == {1_000_000}
    (event,) = now(connection.changes("wide", start="beginning", columns=["f:1"], rows=(b"h", b"i"), follow=False))
    assert isinstance(event, Row)
    assert list(event.cells) == [b"f:1"]


def test_a_wide_row_is_shown_as_of_one_moment_and_its_later_changes_follow(
    serving: Serving, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_wide_rows(connection, "moment")
    writer, took, numbers = serving.connect(), WideRow.take, iter(range(10, 100))

    async def write_between() -> None:
        n = next(numbers)
        await asyncio.to_thread(writer.table("moment").put, b"huge", {b"f:0": b"%d" % n, b"g:x": b"%d" % n})

    steps, writes = 0, list[asyncio.Task[None]]()

    def take(reading: WideRow, cost: int) -> object:
        nonlocal steps
        steps += 1
        if steps == 2:  # one family was read in part
            writes.append(asyncio.get_running_loop().create_task(write_between()))
        return took(reading, cost)

    monkeypatch.setattr(WideRow, "take", take)
    state: dict[bytes, bytes] = {}
    stream = connection.changes("moment", start="beginning", rows=(b"huge", b"huge0"), follow=True)
    seen: list[dict[bytes, bytes]] = []
    until_s = time.monotonic() + 20
    while state.get(b"g:x") != b"10" and time.monotonic() < until_s:
        for event in stream.poll(100):
            if isinstance(event, Row):
                state = {column: value for column, (value, _) in event.cells.items()}
            elif isinstance(event, Change):
                state |= {one.column: one.value for one in event.entries}
            else:
                continue
            seen.append({column: state[column][:2] for column in (b"f:0", b"g:x")})
    assert seen == [{b"f:0": b"00", b"g:x": b"4"}, {b"f:0": b"10", b"g:x": b"10"}]


def test_a_row_that_no_snapshot_can_show_is_named_with_what_helps(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region_reader, "SNAPSHOT_ROW_BYTES", 3_000_000)
    put_wide_rows(connection, "wider")
    with pytest.raises(StoreIOError, match=r"row huge of wider .*leave out the row \(rows\) or its families"):
        now(connection.changes("wider", start="beginning", follow=False))
    for helps in ({"rows": (b"i", b"")}, {"columns": ["g"], "rows": (b"i", b"")}):
        assert rows_of(now(connection.changes("wider", start="beginning", follow=False, **helps))) == [b"small"]


def test_a_reader_waits_for_the_next_change(serving: Serving, connection: Connection) -> None:
    connection.create_table("waits", F, attributes=KEPT)
    stream = connection.changes("waits")
    assert isinstance(stream.poll(1)[0], Idle)
    writer = serving.connect()
    later = threading.Timer(0.2, lambda: writer.table("waits").put(b"r", {b"f:x": b"1"}))
    later.start()
    begun = time.monotonic()
    (event,) = stream.poll(30_000)
    assert isinstance(event, Change)
    assert 0.1 < time.monotonic() - begun < 20
    later.join()


def test_a_wait_in_vain_is_told_up_to_when(connection: Connection) -> None:
    connection.create_table("idle", F, attributes=KEPT, splits=[b"m"])
    stream = connection.changes("idle", heartbeats=True, poll_ms=20)
    first = next(stream)
    second = next(stream)
    assert isinstance(first, Idle)
    assert isinstance(second, Idle)
    assert abs(first.up_to_ms - time.time() * 1_000) < 60_000
    connection.table("idle").put(b"r", {b"f:x": b"1"})
    change = next(stream)
    assert isinstance(change, Change)
    assert change.stamp >= second.up_to_ms, "what came later has no lower stamp"


def test_columns_rows_and_parts(connection: Connection) -> None:
    connection.create_table("part", FG, attributes=KEPT, splits=[b"m"])
    table = connection.table("part")
    begun = connection.changes("part", follow=False)
    now(begun)
    start = begun.position
    for n in range(40):
        table.put(b"%c%02d" % (97 + n % 26, n), {b"f:x": b"1", b"g:y": b"2"} if n % 2 else {b"g:z": b"3"})
    table.delete(b"a00")

    def read(**wanted: Any) -> list[StreamEvent]:
        return now(connection.changes("part", start=start, follow=False, **wanted))

    everything = rows_of(read())
    assert len(everything) == 41
    assert rows_of(read(rows=("c", "e"))) == [r for r in everything if b"c" <= r < b"e"]
    parts = [rows_of(read(part=(n, 3))) for n in range(3)]
    assert sorted(chain(*parts)) == sorted(everything)
    assert all(len(part) > 3 for part in parts)
    some = read(columns=["f", "g:z"])
    assert {e.column for one in some if isinstance(one, Change) for e in one.entries} == {b"f:x", b"g:z", b"f", b"g"}
    assert rows_of(read(columns=[b"f:none"])) == [b"a00"], "a delete of the family may be one of the column"
    whole = now(connection.changes("part", start="beginning", follow=False, columns=["g:z"]))
    assert all(isinstance(one, Row) and set(one.cells) == {b"g:z"} for one in whole)


def test_images_and_conditions(connection: Connection) -> None:
    connection.create_table("images", FG, attributes=IMAGES)
    table = connection.table("images")
    stream = connection.changes("images", before=True, after=True, follow=False)
    now(stream)
    start = stream.position
    table.put(b"r", {b"f:x": b"1", b"g:state": b"draft"})
    table.put(b"r", {b"g:state": b"ready"})
    table.delete(b"r", [b"f:x"])
    images = [(one.before, one.after) for one in now(stream) if isinstance(one, Change)]
    draft, ready = ({b"f:x": b"1", b"g:state": state} for state in (b"draft", b"ready"))
    assert images == [({}, draft), (draft, ready), (ready, {b"g:state": b"ready"})]
    some = connection.changes("images", start=start, where=["g:state = ready"], columns=["f"], after=True, follow=False)
    assert [one.after for one in now(some) if isinstance(one, Change)] == [{}], "only the delete is in f, and ready"
    rows = connection.changes("images", start="beginning", where=["g:state = ready"], columns=["g"], follow=False)
    assert [one.row for one in now(rows) if isinstance(one, Row)] == [b"r"]
    none = connection.changes("images", start="beginning", where=["g:state = draft"], follow=False)
    assert now(none) == []


def test_what_the_table_lacks_is_said_with_the_command(connection: Connection) -> None:
    connection.create_table("lacks", F)
    with pytest.raises(StoreIOError, match="columnar alter lacks --set CHANGE_LOG="):
        now(connection.changes("lacks", follow=False))
    connection.admin.alter_table("lacks", attributes=KEPT)
    assert now(connection.changes("lacks", follow=False)) == []
    with pytest.raises(StoreIOError, match="columnar alter lacks --set CHANGE_LOG_IMAGES=true"):
        now(connection.changes("lacks", after=True, follow=False))


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"start": b"nonsense"}, "position"),
        ({"start": b""}, "position is empty"),
        ({"start": positions.pack(positions.oldest(), "tail")}, "of table tail"),
        ({"start": positions.pack(MANY_RANGES, "wrong")}, "10000 ranges"),
        ({"columns": ["none:x"]}, "none"),
        ({"part": (3, 3)}, "part 3 of 3"),
        ({"part": (0, 0)}, "part 0 of 0"),
        ({"rows": ("b", "a")}, "swap"),
        ({"start": b"9" * 5_000}, "a time in ms"),
        ({"start": b"9" * 17}, "a time in ms"),
        ({"where": ["f:x = 1"] * 101}, "at most 100 conditions"),
    ],
)
def test_wrong_requests_are_refused(connection: Connection, wanted: dict[str, Any], says: str) -> None:
    if b"wrong" not in connection.tables():
        connection.create_table("wrong", F, attributes=KEPT)
    with pytest.raises((StoreIOError, StoreIllegalArgument), match=says):
        now(connection.changes("wrong", follow=False, **wanted))


def test_readers_with_the_same_wishes_go_on_together_beside_a_writer(serving: Serving, connection: Connection) -> None:
    connection.create_table("many", F, attributes=KEPT)
    streams = [serving.connect().changes("many", poll_ms=1_000) for _ in range(12)]
    for stream in streams:
        stream.poll(0)
    table, got = connection.table("many"), [list[bytes]() for _ in streams]

    def read(stream: Changes, rows: list[bytes]) -> None:
        while len(rows) < 300:
            rows += rows_of(stream.poll(1_000))

    readers = [threading.Thread(target=read, args=pair) for pair in zip(streams, got, strict=True)]
    for reader in readers:
        reader.start()
    rows = [b"%03d" % n for n in range(300)]
    for row in rows:
        table.put(row, {b"f:x": b"1"})
    for reader in readers:
        reader.join(30)
    assert all(one == rows for one in got)


def test_a_reader_that_is_far_behind_gets_one_change_of_a_row(connection: Connection) -> None:
    connection.create_table("behind", F, attributes=IMAGES)
    table = connection.table("behind")
    stream = connection.changes("behind", follow=False)
    assert now(stream) == []
    for n in range(600):
        table.put(b"%d" % (n % 3), {b"f:n": b"%d" % n, b"f:%d" % (n % 2): b"x"})
    table.delete(b"0", [b"f:1"])
    merged = connection.changes(
        "behind", start=stream.position, consolidate=True, before=True, after=True, follow=False
    )
    events = now(merged)
    assert sorted(rows_of(events)) == [b"0", b"1", b"2"]
    assert state_after(events) == {row: dict(cells) for row, cells in table.scan()}
    changes = {one.row: one for one in events if isinstance(one, Change)}
    assert {row: (one.before, one.after) for row, one in changes.items()} == {
        row: ({}, dict(cells)) for row, cells in table.scan()
    }
    assert len(rows_of(now(connection.changes("behind", start=stream.position, follow=False)))) == 601
    table.put(b"0", {b"f:n": b"last"})
    assert rows_of(now(merged)) == [b"0"]
