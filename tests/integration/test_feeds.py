"""Feeds through a server: each change of a table once, in the order of its row, whatever is split or missing."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from columnar.client import Connection, IllegalArgument, Source, View
from columnar.client.admin import RegionAdmin
from columnar.client.errors import IOError as StoreError
from columnar.client.feeds import FeedStatus
from columnar.client.topics import ReadRecord
from columnar.flows.follower_name import FollowerName
from columnar.model.feeds import Feed, to_json
from columnar.model.mutation import Put, RowMutation
from columnar.topics.feed_batch import Part
from columnar.topics.feed_follower import FeedFollower
from columnar.topics.feed_messages import FEED_ROWS
from tests.support.cluster_process import until
from tests.support.readme_blocks import blocks_of
from tests.support.store_thread import StoreThread

PAGE = Path(__file__).parents[2] / "docs" / "topics.md"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("feeds")) as made:
        yield made


@pytest.fixture
def connection(store: StoreThread) -> Iterator[Connection]:
    with store.connection() as made:
        yield made


def records(connection: Connection, topic: str) -> list[ReadRecord]:
    return list(connection.topic(topic).records(wait_ms=1))


def messages(found: Sequence[ReadRecord]) -> list[tuple[bytes | None, Any]]:
    return [(one.key, None if one.value is None else json.loads(one.value)) for one in found]


def afters(connection: Connection, topic: str) -> dict[bytes | None, list[str | None]]:
    """Return the values of m:a after each change, by row, in the order of the partition; without tombstones."""
    found: dict[bytes | None, list[str | None]] = {}
    for key, value in messages(records(connection, topic)):
        if value is not None:
            found.setdefault(key, []).append(value["after"] and value["after"].get("m:a"))
    return found


def status(connection: Connection, name: str) -> FeedStatus:
    return next(one for one in connection.feeds.list() if one.name == name)


def wait_for(connection: Connection, name: str, holds: Callable[[FeedStatus], bool]) -> None:
    until(lambda: holds(status(connection, name)))


def is_through(one: FeedStatus) -> bool:
    return one.state == "running" and one.lag_changes == 0


def test_the_example_of_the_page(store: StoreThread) -> None:
    text = PAGE.read_text()
    example = next(block for block in blocks_of(text) if "connection.feeds" in block.text)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(example.text.replace("9090", str(store.port)), str(PAGE), "exec"), {})
    expected = [line.partition(")  # ")[2] for line in example.text.splitlines() if line.startswith("print(")]
    expected[1:1] = [line.strip() for line in text.splitlines() if line.startswith("    b'Main_Page' ")]
    assert printed.getvalue().splitlines() == expected
    with store.connection() as connection:
        connection.admin.drop(b"pages", disable=True)
        connection.topics.drop_topic("pages.changes")


def test_each_change_is_a_record_with_the_row_before_and_after(connection: Connection) -> None:
    connection.create_table("pages", {"m": {}, "n": {}})
    table = connection.table("pages")
    table.put(b"early", {b"m:a": b"1"})
    assert connection.feeds.add("pages", "pages.changes", partitions=3, columns=["m"])
    table.put(b"row", {b"m:a": b"1", b"n:x": b"out"})
    table.put(b"row", {b"n:x": b"untold"})
    table.put(b"row", {b"m:a": b"2"})
    table.delete(b"row")
    until(lambda: len(records(connection, "pages.changes")) >= 4)
    found = records(connection, "pages.changes")
    (one, create), (_, update), (_, delete), (_, tombstone) = messages(found)
    assert one == b"row"
    images = [(value["op"], value["before"], value["after"]) for value in (create, update, delete)]
    assert images == [
        ("c", None, {"row": "row", "m:a": "1"}),
        ("u", {"row": "row", "m:a": "1"}, {"row": "row", "m:a": "2"}),
        ("d", {"row": "row", "m:a": "2"}, None),
    ]
    assert tombstone is None
    sequences = [dict(record.headers)["sequence"] for record in found]
    assert sequences[:3] == [value["source"]["sequence"].encode() for value in (create, update, delete)]
    assert sequences[3] == sequences[2]
    assert len({record.partition for record in found}) == 1
    assert create["source"]["table"] == "pages"


def test_a_session_waits_for_feeds_by_name_and_among_all_others(connection: Connection) -> None:
    connection.create_table("waited", {"m": {}})
    connection.views.add(View("waited_view", Source("waited", key=("m:a",))))
    connection.feeds.add("waited", "waited.changes", partitions=1)
    connection.feeds.add("waited_view", "waited.groups", partitions=1, columns=["v"])
    session = connection.session()
    for number, (names, downstream) in enumerate(
        (((), False), ((), True), (("waited.changes",), False), (("waited_view",), True), (("waited.groups",), False))
    ):
        session.table("waited").put(b"r", {b"m:a": b"%d" % number})
        assert session.wait(*names, timeout_ms=60_000, downstream=downstream), names
        if names != ("waited_view",) and names != ("waited.groups",):
            assert afters(connection, "waited.changes")[b"r"][-1] == str(number), names
        if names != ("waited.changes",):
            keys = [key for key, _ in messages(records(connection, "waited.groups"))]
            assert any(b"%d" % number in (key or b"") for key in keys), names
    with pytest.raises(StoreError, match="there is no trigger, view or feed 'nobody'"):
        session.wait("nobody")
    connection.feeds.drop("waited.groups")
    connection.feeds.drop("waited.changes")


def test_the_rows_that_are_there_come_first_and_are_not_repeated(connection: Connection) -> None:
    connection.create_table("old", {"m": {}})
    table = connection.table("old")
    keys = [b"row-%04d" % number for number in range(300)]
    for key in keys:
        table.put(key, {b"m:a": b"0"})
    connection.feeds.add("old", "old", partitions=4, start="beginning")
    for number in range(1, 4):
        for key in keys[::7]:
            table.put(key, {b"m:a": b"%d" % number})
    wait_for(connection, "old", is_through)
    found = afters(connection, "old")
    assert sorted(found) == keys  # type: ignore[type-var]
    for place, key in enumerate(keys):
        if place % 7:
            assert found[key] == ["0"]
        else:
            first = found[key][0]
            assert found[key] == [str(number) for number in range(int(first or ""), 4)], "a row, and what came after it"


def test_a_feed_follows_splits_merges_and_restarts(tmp_path: Path) -> None:
    with StoreThread(tmp_path / "store") as store:
        counts = 0

        def write(connection: Connection) -> None:
            nonlocal counts
            for _ in range(20):
                counts += 1
                for key in keys:
                    connection.table("moving").put(key, {b"m:a": b"%d" % counts})

        keys = [b"a", b"h", b"p", b"z"]
        with store.connection() as connection:
            connection.create_table("moving", {"m": {}})
            connection.feeds.add("moving", "moving", partitions=2)
            write(connection)
            regions = RegionAdmin(connection)
            low, high = regions.split(b"moving", b"m")
            write(connection)
            regions.merge(low, high)
            write(connection)
        store.stop()
        store.start()
        with store.connection() as connection:
            write(connection)
            wait_for(connection, "moving", is_through)
            found = afters(connection, "moving")
            assert found == {key: [str(number) for number in range(1, counts + 1)] for key in keys}


def test_a_topic_that_refuses_stops_its_feed_alone_with_its_reason(connection: Connection) -> None:
    connection.create_table("two", {"m": {}})
    table = connection.table("two")
    with pytest.raises(IllegalArgument, match="no topic gone: give partitions"):
        connection.feeds.add("two", "gone")
    connection.feeds.add("two", "gone", partitions=1)
    connection.feeds.add("two", "there", partitions=1)
    connection.topics.drop_topic("gone")
    table.put(b"row", {b"m:a": b"1"})
    until(lambda: len(records(connection, "there")) == 1)
    wait_for(connection, "gone", lambda one: "no topic gone; columnar topic create gone" in one.error)
    assert status(connection, "there").error == ""
    connection.topics.create("gone", 2)
    wait_for(connection, "gone", lambda one: is_through(one) and not one.error)
    assert afters(connection, "gone") == {b"row": ["1"]}
    connection.feeds.drop("gone")
    assert [one.name for one in connection.feeds.list() if one.feed.table == "two"] == ["there"]
    table.put(b"row", {b"m:a": b"2"})
    until(lambda: len(records(connection, "there")) == 2)
    assert afters(connection, "gone") == {b"row": ["1"]}


def test_a_value_that_is_not_as_declared_stops_the_feed_behind_what_came_before(connection: Connection) -> None:
    connection.create_table("typed", {"m": {}})
    table = connection.table("typed")
    connection.feeds.add("typed", "typed", partitions=1)
    table.put(b"a", {b"m:a": b"fine"})
    table.put(b"b", {b"m:a": b"\xff"})
    wait_for(connection, "typed", lambda one: "no text in UTF-8" in one.error)
    assert afters(connection, "typed") == {b"a": ["fine"]}
    connection.feeds.drop("typed")
    connection.feeds.add("typed", "typed", values=["base64"], start="beginning")
    wait_for(connection, "typed", is_through)
    assert afters(connection, "typed") == {b"a": ["fine", "ZmluZQ=="], b"b": ["/w=="]}


def test_a_table_with_a_feed_stays(connection: Connection) -> None:
    connection.create_table("held", {"m": {}})
    with pytest.raises(IllegalArgument, match="no family x"):
        connection.feeds.add("held", "held", columns=["x:y"], partitions=1)
    assert all(one.name != "held" for one in connection.topics.list()), "not left over"
    connection.feeds.add("held", "held", partitions=1)
    assert not connection.feeds.add("held", "held")
    with pytest.raises(IllegalArgument, match="another definition"):
        connection.feeds.add("held", "held", columns=["m"])
    with pytest.raises((IllegalArgument, StoreError), match="feed held follows it"):
        connection.admin.drop(b"held", disable=True)
    with pytest.raises((IllegalArgument, StoreError), match="feed held would not hear of it"):
        connection.admin.truncate(b"held")
    connection.feeds.drop("held")
    with pytest.raises((IllegalArgument, StoreError), match="no feed held"):
        connection.feeds.drop("held")
    connection.admin.drop(b"held", disable=True)


def test_a_family_that_comes_later_is_in_the_feed(connection: Connection) -> None:
    connection.create_table("grown", {"m": {}})
    connection.feeds.add("grown", "grown", partitions=1)
    connection.admin.alter_table(b"grown", add={"n": {}})
    connection.table("grown").put(b"row", {b"n:x": b"1"})
    until(lambda: len(records(connection, "grown")) == 1)
    ((_, message),) = messages(records(connection, "grown"))
    assert message["after"] == {"row": "row", "n:x": "1"}


def test_a_feed_whose_changes_the_log_lost_begins_again_and_says_so(store: StoreThread, connection: Connection) -> None:
    connection.create_table("lost", {"m": {}})
    table = connection.table("lost")
    connection.feeds.add("lost", "lost", partitions=1)
    connection.topics.drop_topic("lost")
    for number in range(5):
        table.put(b"row-%d" % number, {b"m:a": b"%d" % number})
    table.put(b"row-0", {b"m:a": b"9"})
    wait_for(connection, "lost", lambda one: "no topic lost" in one.error)

    def trim() -> None:
        server = store.inside.serving.server
        (region,) = server.open_regions_of("lost")
        region.logging.trim(region.log.written_to, region.now_ms)

    store.do(trim)
    connection.topics.create("lost", 1)
    wait_for(connection, "lost", is_through)
    assert afters(connection, "lost") == {b"row-0": ["9"], **{b"row-%d" % n: [str(n)] for n in range(1, 5)}}
    assert {value["op"] for _, value in messages(records(connection, "lost"))} == {"r"}


def test_rows_that_are_not_in_the_topic_yet_are_not_sent(connection: Connection) -> None:
    connection.create_table("early", {"m": {}})
    connection.table("early").put(b"row", {b"m:a": b"1"})
    connection.call("columnarFeedAdd", to_json(Feed("early", "early", "early", start="beginning")))
    wait_for(connection, "early", lambda one: "no topic early" in one.error)
    assert status(connection, "early").state == "snapshot"
    connection.topics.create("early", 1)
    wait_for(connection, "early", is_through)
    assert afters(connection, "early") == {b"row": ["1"]}


def test_a_change_that_is_in_a_row_that_was_read_is_not_sent_again(store: StoreThread, connection: Connection) -> None:
    connection.create_table("fenced", {"m": {}})
    connection.table("fenced").put(b"row", {b"m:a": b"1"})
    connection.call("columnarFeedAdd", to_json(Feed("fenced", "fenced", "fenced", start="beginning")))
    wait_for(connection, "fenced", lambda one: "no topic fenced" in one.error)

    def read_amid_a_write() -> None:
        """Read the row when a change of it is written and not yet on disk, so not in what the feed has of the log."""
        (follower,) = store.inside.serving.trigger_manager.hub.followers.of(FollowerName("feed", "fenced"))
        assert isinstance(follower, FeedFollower)
        follower.pause_intake()
        follower.region.apply(RowMutation(b"row", (Put(b"m", b"a", b"2"),)))
        follower._read_rows()

    store.do(read_amid_a_write)
    connection.topics.create("fenced", 1)
    connection.table("fenced").put(b"row", {b"m:a": b"3"})
    wait_for(connection, "fenced", is_through)
    assert afters(connection, "fenced") == {b"row": ["2", "3"]}


def test_the_rows_that_are_there_end_while_writers_never_pause(store: StoreThread, connection: Connection) -> None:
    connection.create_table("hurried", {"m": {}})
    keys = [b"row-%03d" % number for number in range(5 * FEED_ROWS)]
    for key in keys:
        connection.table("hurried").put(key, {b"m:a": b"0"})
    connection.call("columnarFeedAdd", to_json(Feed("hurried", "hurried", "hurried", start="beginning")))
    wait_for(connection, "hurried", lambda one: "no topic hurried" in one.error)
    puts, most = 0, 200

    def write_during_each_append() -> None:
        """Have a change wait whenever the feed has appended a batch, as with some 1,000 writes/s."""
        (follower,) = store.inside.serving.trigger_manager.hub.followers.of(FollowerName("feed", "hurried"))
        assert isinstance(follower, FeedFollower)
        append, is_over = follower._append, lambda: follower.progress.done is None or puts == most

        async def appended(topic: str, parts: list[Part]) -> None:
            nonlocal puts
            await append(topic, parts)
            if not is_over():
                puts += 1
                put = RowMutation(keys[0], (Put(b"m", b"a", b"%d" % puts),))
                await follower.region.apply(put).durable

        follower._append = lambda topic, parts: asyncio.ensure_future(appended(topic, parts))

    store.do(write_during_each_append)
    connection.topics.create("hurried", 1)
    wait_for(connection, "hurried", is_through)
    assert puts < most, "changes alone were sent as long as there were any"
    numbers = [str(number) for number in range(puts + 1)]
    assert afters(connection, "hurried") == {key: numbers if key == keys[0] else ["0"] for key in keys}


def test_many_writers_at_once(connection: Connection, store: StoreThread) -> None:
    connection.create_table("busy", {"m": {}})
    connection.feeds.add("busy", "busy", partitions=4, start="beginning")

    def write(writer: int) -> None:
        with store.connection() as own:
            for number in range(150):
                own.table("busy").put(b"row-%d" % (writer * 10 + number % 10), {b"m:a": b"%d" % number})

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for(connection, "busy", is_through)
    expected = {
        b"row-%d" % (writer * 10 + row): [str(number) for number in range(row, 150, 10)]
        for writer in range(3)
        for row in range(10)
    }
    assert afters(connection, "busy") == expected
