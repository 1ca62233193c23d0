"""Sends through real stores: a message is in its queue if and only if the row was changed."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from columnar.client import Append, Connection, Delete, Expect, IllegalArgument, IOError, Put, Send
from tests.support.readme_blocks import blocks_of
from tests.support.store_thread import StoreThread

PAGE = Path(__file__).parents[2] / "docs" / "queues.md"
FAMILIES: dict[str, dict[str, object]] = {"f": {}}
PUT = Put(b"f:v", b"1")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("sends")) as made:
        yield made


@pytest.fixture
def connection(store: StoreThread) -> Iterator[Connection]:
    with store.connection() as made:
        if b"pages" not in made.tables():
            made.admin.create_table("pages", FAMILIES, attributes={"SENDS": "true", "ROW_GROUP": "until:/"})
            made.admin.create_table("plain", FAMILIES)
        yield made


def test_the_example_of_the_page(store: StoreThread) -> None:
    example = next(block for block in blocks_of(PAGE.read_text()) if "Send(" in block.text)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(example.text.replace("9090", str(store.port)), str(PAGE), "exec"), {})
    expected = [line.partition("  # ")[2] for line in example.text.splitlines() if line.startswith("print(")]
    assert printed.getvalue().splitlines() == expected


def bodies(connection: Connection, queue: str, count: int) -> list[bytes]:
    """Take ``count`` messages of the queue, and show that it has no more."""
    found: list[bytes] = []
    while len(found) < count:
        popped = connection.queue(queue).pop(count, wait_ms=10_000)
        assert popped, f"{found} of {count}"
        found += [one.body for one in popped if one.commit()]
    assert connection.queue(queue).pop(1, wait_ms=100) == []
    return found


def test_a_message_comes_with_all_that_its_sender_said(connection: Connection) -> None:
    pages = connection.table("pages")
    given = Send("queue:one", b"body", group="g", priority=7, headers={b"h": b"v"})
    assert pages.mutate(b"r/1", [PUT, given]).applied
    (message,) = connection.queue("one").pop(2, wait_ms=10_000)
    assert (message.body, message.group, message.priority, message.headers) == (b"body", b"g", 7, {b"h": b"v"})
    assert message.name.startswith(b"send-")
    assert pages.row(b"r/1") == {b"f:v": b"1"}
    pages.mutate(b"r/1", [Delete(b"f"), Send("queue:one", b"named", name="n"), Send("queue:one", b"again", name="n")])
    assert bodies(connection, "one", 1) == [b"named"]


def test_messages_of_a_row_come_in_the_order_of_its_changes(connection: Connection) -> None:
    pages = connection.table("pages")
    for number in range(30):
        body = b"%d" % number
        pages.mutate(b"r/ordered", [Append(b"f:v", b"x"), Send("queue:order", body), Send("queue:order", body + b"+")])
    expected = [b"%d" % number + end for number in range(30) for end in (b"", b"+")]
    assert bodies(connection, "order", 60) == expected


def test_a_condition_that_fails_sends_nothing(connection: Connection) -> None:
    pages = connection.table("pages")
    pages.put(b"r/checked", {b"f:v": b"old"})
    unmet = pages.check_and_mutate(b"r/checked", [Expect(b"f:v", b"new")], [PUT, Send("queue:checked", b"no")])
    assert not unmet.applied
    met = pages.check_and_mutate(b"r/checked", [Expect(b"f:v", b"old")], [PUT, Send("queue:checked", b"yes")])
    assert met.applied
    assert bodies(connection, "checked", 1) == [b"yes"]


def test_rows_of_many_calls_send(connection: Connection) -> None:
    pages = connection.table("pages")
    pages.mutate_rows({b"m/%d" % n: [PUT, Send("queue:many", b"%d" % n)] for n in range(50)})
    assert sorted(bodies(connection, "many", 50)) == sorted(b"%d" % n for n in range(50))
    checked = {b"m/%d" % n: ([Expect(b"f:v", b"%d" % (n % 2))], [PUT, Send("queue:many", b"%d" % n)]) for n in range(6)}
    assert [one.applied for one in pages.check_and_mutate_rows(checked).values()] == [False, True] * 3
    assert sorted(bodies(connection, "many", 3)) == [b"1", b"3", b"5"]


def test_a_group_sends_all_or_nothing(connection: Connection) -> None:
    pages = connection.table("pages")

    def write(first: bytes) -> bool:
        return pages.mutate_group(
            {
                b"g/1": ([Expect.absent(b"f:never")], [PUT, Send("queue:group", first + b"1")]),
                b"g/2": ([Expect(b"f:v", first)], [Put(b"f:v", b"b"), Send("queue:group", first + b"2")]),
            }
        ).applied

    pages.put(b"g/2", {b"f:v": b"a"})
    assert write(b"a")
    assert not write(b"a")
    pages.transact(b"g/1", lambda tx: tx.mutate(b"g/3", [PUT, Send("queue:group", b"tx")]))
    assert bodies(connection, "group", 3) == [b"a1", b"a2", b"tx"]


def test_a_table_without_the_attribute_takes_no_sends_until_it_is_set(connection: Connection) -> None:
    plain = connection.table("plain")
    with pytest.raises(IllegalArgument, match="columnar alter plain --set SENDS=true"):
        plain.mutate(b"r", [PUT, Send("queue:plain", b"no")])
    assert plain.row(b"r") == {}
    connection.admin.alter_table("plain", attributes={"SENDS": "true"})
    plain.mutate(b"r", [PUT, Send("queue:plain", b"yes")])
    assert bodies(connection, "plain", 1) == [b"yes"]
    with pytest.raises(IOError, match="not truncated"):
        connection.admin.truncate("plain")
    with pytest.raises(IllegalArgument, match="SENDS stays"):
        connection.admin.alter_table("plain", attributes={"SENDS": ""})


@pytest.mark.parametrize(
    ("send", "text"),
    [
        (Send("jobs", b""), "queue:NAME"),
        (Send("mail:q", b""), "topic:NAME"),
        (Send("topic:a b", b""), "topic's name"),
        (Send("topic:t", b"", priority=1), "it has a key"),
        (Send("topic:t", b"", headers={b"\xff": b""}), "UTF-8"),
        (Send("queue:a b", b""), "queue's name"),
        (Send("queue:q", b"", priority=300), "priority 300"),
        (Send("queue:q", b"", delay_ms=-1), "delay of -1"),
        (Send("queue:q", b"", group=b"g" * 201), "200 bytes"),
        (Send("queue:q", b"", key=b"k"), "no key"),
    ],
)
def test_a_send_that_no_queue_takes_is_refused_with_its_row(connection: Connection, send: Send, text: str) -> None:
    with pytest.raises(IllegalArgument, match=text):
        connection.table("pages").mutate(b"refused/1", [PUT, send])
    assert connection.table("pages").row(b"refused/1") == {}


def test_bounds_of_sends(connection: Connection) -> None:
    pages = connection.table("pages")
    with pytest.raises(IOError, match="101 sends"):
        pages.mutate(b"b/1", [PUT, *[Send("queue:q", b"")] * 101])
    with pytest.raises(IOError, match="a message of 1048577 bytes"):
        pages.mutate(b"b/1", [PUT, Send("queue:q", b"x" * (1 << 20) + b"x")])
    with pytest.raises(IOError, match=r"a record of 1048\d+ bytes"):
        pages.mutate(b"b/1", [PUT, Send("topic:t", b"x" * ((1 << 20) - 200))])
    with pytest.raises(IOError, match="the sends of one row"):
        pages.mutate(b"b/1", [PUT, *[Send("queue:q", b"x" * (1 << 20))] * 4])
    with pytest.raises(IllegalArgument, match="goes with a change"):
        pages.mutate(b"b/1", [Send("queue:q", b"")])
    assert pages.row(b"b/1") == {}


def test_what_its_queue_refuses_is_in_the_queue_of_refused_messages(connection: Connection) -> None:
    connection.queue("strict").configure(fifo=True)
    pages = connection.table("pages")
    for number in range(3):
        pages.mutate(b"r/%d" % number, [PUT, Send("queue:strict", b"%d" % number, priority=number % 2)])
    assert bodies(connection, "strict", 2) == [b"0", b"2"]
    (message,) = connection.queue("refused-sends").pop(2, wait_ms=10_000)
    assert message.body == b"1"
    assert message.headers[b"send-target"] == b"queue:strict"
    assert b"FIFO" in message.headers[b"send-error"]


def test_a_send_to_a_topic_needs_a_topic(tmp_path_factory: pytest.TempPathFactory) -> None:
    with StoreThread(tmp_path_factory.mktemp("no-topics")) as store, store.connection() as connection:
        connection.admin.create_table("t", FAMILIES, attributes={"SENDS": "true"})
        with pytest.raises(IllegalArgument, match="there is no topic edits"):
            connection.table("t").mutate(b"r", [PUT, Send("topic:edits", b"")])
        assert connection.table("t").row(b"r") == {}
        connection.topics.create("others")
        connection.table("t").mutate(b"r", [PUT, Send("topic:edits", b"body", key="k")])
        (message,) = connection.queue("refused-sends").pop(2, wait_ms=10_000)
        assert (message.body, message.headers[b"send-target"]) == (b"body", b"topic:edits")
        assert message.headers[b"send-key"] == b"k"
        assert b"there is no topic edits" in message.headers[b"send-error"]


def test_records_of_a_key_are_in_a_topic_in_the_order_of_changes(connection: Connection) -> None:
    connection.topics.create("edits", 3)
    pages, topic = connection.table("pages"), connection.topic("edits")
    for number in range(40):
        key = b"k%d" % (number % 4)
        pages.mutate(b"t/%d" % (number % 2), [PUT, Send("topic:edits", b"%d" % number, key=key, headers={b"h": b"v"})])
    found = []
    for record in topic.records(wait_ms=10_000):
        found.append(record)
        if len(found) == 40:
            break
    assert sorted(int(one.value or b"") for one in found) == list(range(40))
    for key in (b"k0", b"k1", b"k2", b"k3"):
        mine = [one for one in found if one.key == key]
        assert len({one.partition for one in mine}) == 1
        assert [int(one.value or b"") for one in mine] == list(range(int(key[1:]), 40, 4))
    headers = dict(found[0].headers)
    assert headers["h"] == b"v"
    assert (headers["columnar-send"] or b"").endswith(b"-0")
    assert all(abs(one.timestamp_ms - time.time() * 1_000) < 60_000 for one in found)


def test_a_change_sends_to_queues_and_topics_alike(connection: Connection) -> None:
    connection.topics.create("both")
    sends = [Send("topic:both", b"r1"), Send("queue:both", b"m"), Send("topic:both", b"r2")]
    connection.table("pages").mutate(b"r/both", [PUT, *sends])
    assert bodies(connection, "both", 1) == [b"m"]
    records = connection.topic("both").records(wait_ms=10_000)
    assert [next(records).value, next(records).value] == [b"r1", b"r2"]
