"""Groups of readers through the client: shares, commits, deaths, the consumer loop, restarts, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest

from columnar.client import Connection, aio
from columnar.client.changes import Change, Row, StreamEvent
from columnar.client.consuming import Consumer, HandlerFailed
from columnar.client.errors import StoreIllegalArgument, StoreIOError, WrongArgument
from columnar.client.group_changes import CommitRefused, GroupChanges
from columnar.model import reader_groups
from columnar.streams import group_reads, groups
from tests.support.serving import Serving
from tests.support.shell import Shell

KEPT = {"CHANGE_LOG": "3600"}
F: dict[str, dict[str, Any]] = {"f": {}}
SPLITS = [b"d", b"h", b"m"]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("groups")).start()
    yield serving
    serving.stop()


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases of 2 s, so that a death is seen soon."""
    for module in (groups, reader_groups):
        monkeypatch.setattr(module, "GROUP_LEASE_MS", 2_000)
    monkeypatch.setattr(groups, "RENEWED_AFTER_MS", 600)
    monkeypatch.setattr(group_reads, "GROUP_WAIT_MS", 900)


def member(serving: Serving, table: str, group: str = "g", **options: Any) -> GroupChanges:
    found = serving.connect().changes(table, group=group, **{"follow": False, **options})
    assert isinstance(found, GroupChanges)
    return found


def rows_of(events: list[StreamEvent]) -> list[bytes]:
    return [one.row for one in events if isinstance(one, Change | Row)]


def put_all(connection: Connection, table: str, prefix: bytes = b"") -> list[bytes]:
    rows = [b"%s%s%d" % (first, prefix, n) for n in range(5) for first in (b"a", b"e", b"k", b"z")]
    for row in rows:
        connection.table(table).put(row, {b"f:x": b"1"})
    return rows


def settle(members: list[GroupChanges]) -> None:
    for _ in range(3):
        for one in members:
            one.poll(0)
            one.commit()


def until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_members_share_the_rows_and_each_change_comes_once(serving: Serving, connection: Connection) -> None:
    connection.create_table("shared", F, attributes=KEPT, splits=SPLITS)
    members = [member(serving, "shared") for _ in range(3)]
    settle(members)
    assert sorted(one.ranges for one in members) == [1, 1, 2]
    written = put_all(connection, "shared")
    got = [rows_of(list(one)) for one in members]
    assert sorted(chain(*got)) == sorted(written)
    assert all(got)
    for one in members:
        one.commit()
    assert all(list(one) == [] for one in members)


def test_a_group_begins_at_the_beginning_if_its_first_member_says_so(serving: Serving, connection: Connection) -> None:
    connection.create_table("begins", F, attributes=KEPT, splits=SPLITS)
    before = put_all(connection, "begins", b"before")
    with member(serving, "begins", start="beginning") as first, member(serving, "begins") as second:
        assert sorted(rows_of(list(first))) == sorted(before), "of all ranges"
        first.commit()
        settle([second, first])
        assert (first.ranges, second.ranges) == (2, 2)
        after = put_all(connection, "begins", b"after")
        assert sorted(rows_of(list(first)) + rows_of(list(second))) == sorted(after)
    with member(serving, "begins") as third:
        assert sorted(rows_of(list(third))) == sorted(after), "both left without a commit"


def test_splits_and_merges_leave_the_shares_as_they_are(serving: Serving, connection: Connection) -> None:
    connection.create_table("cut", F, attributes=KEPT, splits=SPLITS)
    members = [member(serving, "cut", start="beginning", max_bytes=200) for _ in range(2)]
    written = put_all(connection, "cut", b"1")
    settle_rows: list[bytes] = []

    def read() -> None:
        for one in members:
            settle_rows.extend(rows_of(list(one)))
            one.commit()

    def regions() -> list[bytes]:
        return [one.name for one in connection.client.getTableRegions(b"cut")]

    for change in (
        lambda: connection.call("columnarMerge", *regions()[:2]),
        lambda: connection.call("columnarSplit", b"cut", b"k3"),
        lambda: connection.call("columnarMerge", *regions()[:2]),
        lambda: connection.call("columnarMerge", *regions()[:2]),
    ):
        read()
        written += put_all(connection, "cut", b"2%d" % len(written))
        change()
        written += put_all(connection, "cut", b"3%d" % len(written))
    read()
    read()
    assert Counter(settle_rows) == Counter(written)


def test_a_commit_counts_reply_by_reply(serving: Serving, connection: Connection) -> None:
    connection.create_table("partly", F, attributes=KEPT)
    one = member(serving, "partly")
    settle([one])
    written = put_all(connection, "partly")
    events = iter(one)
    first = next(events)
    assert isinstance(first, Change)
    one.commit()
    one.leave_group()
    other = member(serving, "partly")
    assert rows_of(list(other)) == written, "the reply was not handed out in full"
    other.commit()
    other.leave_group()
    assert list(member(serving, "partly")) == []


def test_the_ranges_of_a_member_that_died_are_taken_over(
    serving: Serving, connection: Connection, short_leases: None
) -> None:
    connection.create_table("died", F, attributes=KEPT, splits=SPLITS)
    dead, alive = members = [member(serving, "died") for _ in range(2)]
    settle(members)
    written = put_all(connection, "died")
    lost = rows_of(list(dead))  # it dies with them
    got: list[bytes] = []

    def read() -> bool:
        got.extend(rows_of(alive.poll(500)))
        alive.commit()
        return len(got) == len(written)

    until(read)
    assert lost
    assert sorted(got) == sorted(written)
    with pytest.raises(CommitRefused, match="2 of this member's ranges"):
        dead.commit()
    settle(members)
    assert (dead.ranges, alive.ranges) == (2, 2), "it came back"


def test_a_waiting_member_hears_at_once_of_its_new_ranges(serving: Serving, connection: Connection) -> None:
    connection.create_table("waits", F, attributes=KEPT, splits=[b"m"])
    first, second = members = [member(serving, "waits") for _ in range(2)]
    settle(members)
    assert (first.ranges, second.ranges) == (1, 1)
    later = threading.Timer(0.2, first.leave_group)
    later.start()
    begun_s = time.monotonic()
    second.poll(14_000)
    second.poll(0)
    assert time.monotonic() - begun_s < 10
    assert second.ranges == 2
    later.join()


class InAsyncio:
    """The consumer of asyncio programs, with a loop of its own for ``run``; its handler is a plain function."""

    def __init__(self, serving: Serving, table: str, handler: Any, **options: Any) -> None:
        async def handle(batch: list[StreamEvent]) -> None:
            await asyncio.to_thread(handler, batch)

        self.store = aio.connect(f"127.0.0.1:{serving.store.port}")
        self.consumer = self.store.consume(table, group="c", handler=handle, **options)
        self.loop: asyncio.AbstractEventLoop | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.consumer, name)

    def run(self) -> None:
        async def run() -> None:
            self.loop = asyncio.get_running_loop()
            async with self.store:
                await self.consumer.run()

        asyncio.run(run())

    def stop(self) -> None:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.consumer.stop)


ConsumerOf = Callable[..., Any]


@pytest.fixture(params=["threads", "asyncio"])
def consumer_of(request: pytest.FixtureRequest) -> ConsumerOf:
    """Both consumers keep the same promises."""

    def threads(serving: Serving, table: str, handler: Any, **options: Any) -> Consumer:
        return serving.connect().consume(table, group="c", handler=handler, **options)

    return threads if request.param == "threads" else InAsyncio


@pytest.fixture
def table(request: pytest.FixtureRequest) -> str:
    """A name for each case."""
    return "".join(one if one.isalnum() else "-" for one in request.node.name)[-60:].strip("-")


def test_the_consumer_loop_handles_retries_and_stops(
    serving: Serving, connection: Connection, monkeypatch: pytest.MonkeyPatch, consumer_of: ConsumerOf, table: str
) -> None:
    monkeypatch.setattr("columnar.client.consumer_loop.FIRST_PAUSE_S", 0.001)
    connection.create_table(table, F, attributes=KEPT, splits=SPLITS)
    put_all(connection, table)
    handled: list[bytes] = []
    failures = iter([True, True, False])

    def handle(batch: list[StreamEvent]) -> None:
        assert len(batch) <= 7
        if next(failures, False):
            raise ValueError("not now")
        handled.extend(rows_of(batch))

    consumer = consumer_of(serving, table, handle, batch=7, start="beginning")
    assert consumer.lag_ms is None
    thread = threading.Thread(target=consumer.run)
    thread.start()
    until(lambda: len(handled) == 20)
    more = put_all(connection, table, b"more")
    until(lambda: len(handled) == 40)
    until(lambda: consumer.lag_ms is not None)
    consumer.stop()
    thread.join(20)
    assert not thread.is_alive()
    assert sorted(handled[20:]) == sorted(more)
    assert consumer.handled == 40
    (group,) = connection.admin.reader_groups(table)
    assert (group.name, group.members) == ("c", ()), "it left"
    assert list(serving.connect().changes(table, group="c", follow=False)) == [], "all was committed"


@pytest.mark.parametrize("longest_s", [60.0, 0.0])
def test_a_slow_handler_keeps_its_rows_while_it_may(
    serving: Serving,
    connection: Connection,
    short_leases: None,
    monkeypatch: pytest.MonkeyPatch,
    longest_s: float,
    consumer_of: ConsumerOf,
    table: str,
) -> None:
    for module in ("consuming", "async_consuming"):
        monkeypatch.setattr(f"columnar.client.{module}.RENEWED_S", 0.3)
    connection.create_table(table, F, attributes=KEPT, splits=SPLITS)
    written = put_all(connection, table)
    first: list[bytes] = []
    second: list[bytes] = []
    works, may_end = threading.Event(), threading.Event()

    def handle_slowly(batch: list[StreamEvent]) -> None:
        first.extend(rows_of(batch))
        works.set()
        assert may_end.wait(20)

    slow = consumer_of(serving, table, handle_slowly, start="beginning", longest_s=longest_s)
    quick = consumer_of(serving, table, lambda batch: second.extend(rows_of(batch)), start="beginning")
    threads = [threading.Thread(target=one.run) for one in (slow, quick)]
    threads[0].start()
    assert works.wait(20)
    threads[1].start()
    until(lambda: quick.changes.ranges > 0 or longest_s > 0)
    held_until_s = time.monotonic() + 5.0  # two leases and a half
    until(lambda: len(second) == len(written) or time.monotonic() > held_until_s)
    assert sorted(second) == (sorted(written) if not longest_s else []), "it hangs, so others do its work"
    may_end.set()
    until(lambda: len({*first, *second}) == len(written) and slow.handled > 0)
    for consumer in (slow, quick):
        consumer.stop()
    for thread in threads:
        thread.join(20)
    assert slow.refused == (0 if longest_s else 1)


def test_a_handler_that_fails_each_time_ends_the_loop_before_its_change(
    serving: Serving, connection: Connection, monkeypatch: pytest.MonkeyPatch, consumer_of: ConsumerOf, table: str
) -> None:
    monkeypatch.setattr("columnar.client.consumer_loop.FIRST_PAUSE_S", 0.001)
    connection.create_table(table, F, attributes=KEPT)
    calls: list[list[bytes]] = []

    def handle(batch: list[StreamEvent]) -> None:
        calls.append(rows_of(batch))
        raise ValueError("never")

    connection.table(table).put(b"r1", {b"f:x": b"1"})
    with pytest.raises(HandlerFailed, match=r"3 times for 1 changes from row 'r1' \(sequence .*\) on"):
        consumer_of(serving, table, handle, tries=3, start="beginning").run()
    assert calls == [[b"r1"]] * 3
    again = serving.connect().changes(table, group="c", follow=False)
    assert rows_of(list(again)) == [b"r1"]


PROGRAM = """
import signal, sys
from columnar.client import Connection
port, table = int(sys.argv[1]), sys.argv[2]
def handle(batch):
    for one in batch:
        print(one.row.decode(), flush=True)
consumer = Connection("127.0.0.1", port).consume(table, group="p", handler=handle, batch=3)
signal.signal(signal.SIGTERM, lambda *_: consumer.stop())
consumer.run()
"""


def test_consumers_in_several_processes_and_one_is_killed(
    serving: Serving, connection: Connection, short_leases: None
) -> None:
    connection.create_table("processes", F, attributes=KEPT, splits=SPLITS)
    begun = member(serving, "processes", "p")
    begun.poll(0)
    begun.leave_group()
    written = put_all(connection, "processes")
    command = [sys.executable, "-c", PROGRAM, str(serving.store.port), "processes"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        until(lambda: len(connection.admin.reader_groups("processes")[0].members) == 2)
        os.kill(processes[0].pid, signal.SIGKILL)
        written += put_all(connection, "processes", b"later")

        def is_done() -> bool:
            (group,) = connection.admin.reader_groups("processes")
            return len(group.members) == 1 and all(one.age_ms < 1_500 for one in group.ranges)

        until(is_done, 40)
        processes[1].terminate()
        printed = "".join(one.communicate(timeout=20)[0] for one in processes).split()
    finally:
        for one in processes:
            one.kill()
            one.wait()
    assert processes[1].returncode == 0
    assert set(printed) == {row.decode() for row in written}


def test_a_restart_keeps_committed_positions(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("restarted")
    serving = Serving(folder).start()
    connection = serving.connect()
    connection.create_table("t", F, attributes=KEPT, splits=SPLITS)
    one = member(serving, "t")
    settle([one])
    put_all(connection, "t", b"1")
    list(one)
    one.commit()
    later = put_all(connection, "t", b"2")
    list(one)  # and no commit
    serving.stop()
    serving = Serving(folder).start()
    try:
        other = member(serving, "t")
        (group,) = serving.connect().admin.reader_groups("t")
        assert [held.name for held in group.members] == [one.member]
        request_leave(serving, "t", one)
        assert sorted(rows_of(list(other))) == sorted(later)
    finally:
        serving.stop()


def request_leave(serving: Serving, table: str, one: GroupChanges) -> None:
    from columnar.wire.idl import columnar

    request = columnar.CommitRequest(group=one.group, member=one.member, position=b"", leaves=True)
    serving.connect().call("columnarCommit", table.encode(), request)


def test_groups_are_listed_and_dropped(serving: Serving, connection: Connection) -> None:
    connection.create_table("listed", F, attributes=KEPT, splits=[b"m"])
    assert connection.admin.reader_groups("listed") == []
    one = member(serving, "listed", "indexers")
    one.poll(0)
    (group,) = connection.admin.reader_groups("listed")
    assert group.name == "indexers"
    assert [(m.name, m.ranges) for m in group.members] == [(one.member, 2)]
    assert 0 < group.members[0].left_ms <= reader_groups.GROUP_LEASE_MS
    assert [(r.start, r.stop, r.owner, r.moves) for r in group.ranges] == [
        (b"", b"m", one.member, False),
        (b"m", b"", one.member, False),
    ]
    assert connection.admin.drop_reader_group("listed", "indexers") is True
    assert connection.admin.drop_reader_group("listed", "indexers") is False
    assert connection.admin.reader_groups("listed") == []


def test_a_dropped_group_begins_anew_for_a_member_that_lives(serving: Serving, connection: Connection) -> None:
    connection.create_table("forgotten", F, attributes=KEPT)
    connection.table("forgotten").put(b"a", {b"f:v": b"1"})
    one = member(serving, "forgotten", start="beginning")
    assert rows_of(one.poll(10_000)) == [b"a"]
    one.commit()
    assert connection.admin.drop_reader_group("forgotten", "g") is True
    assert rows_of(one.poll(10_000)) == [b"a"]


def test_what_members_do_wrong_is_refused_with_the_remedy(
    serving: Serving, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.create_table("wrong", F, attributes=KEPT)
    member(serving, "wrong").poll(0)
    with pytest.raises(StoreIOError, match="all members of a group read the same changes"):
        member(serving, "wrong", columns=["f:x"]).poll(0)
    with pytest.raises(StoreIllegalArgument, match="name of a group"):
        member(serving, "wrong", "a b").poll(0)
    for options in ({"start": b"position"}, {"part": (0, 2)}):
        with pytest.raises(WrongArgument, match="leave out position and part"):
            member(serving, "wrong", **options)
    with pytest.raises(WrongArgument, match="name of its group"):
        connection.consume("wrong", group="", handler=print)
    with pytest.raises(WrongArgument, match="at least 1"):
        connection.consume("wrong", group="g", handler=print, batch=0)
    connection.create_table("unlogged", F)
    with pytest.raises(StoreIOError, match="columnar alter unlogged --set CHANGE_LOG="):
        member(serving, "unlogged").poll(0)
    monkeypatch.setattr(group_reads, "GROUPS_OF_TABLE", 1)
    with pytest.raises(StoreIOError, match="columnar readers drop GROUP wrong"):
        member(serving, "wrong", "another").poll(0)


def test_the_commands_for_operators(serving: Serving, connection: Connection) -> None:
    shell = Shell(f"127.0.0.1:{serving.store.port}")
    connection.create_table("commands", F, attributes=KEPT, splits=SPLITS)
    with member(serving, "commands", "indexers") as one:
        one.poll(0)
        ((group, table, name, lease_ms, *figures),) = (
            line.split("\t") for line in shell.out("readers", "list", "commands").splitlines()
        )
        assert (group, table, name, figures[:2]) == ("indexers", "commands", one.member, ["4", "0"])
        assert 0 < int(lease_ms) <= reader_groups.GROUP_LEASE_MS
        assert f"indexers\tcommands\t{one.member}" in shell.out("readers", "list")
    assert "\t(nobody)\t" in shell.out("readers", "list", "commands")
    (found,) = json.loads(shell.out("readers", "list", "commands", "--json"))
    assert (found["table"], found["group"], found["members"]) == ("commands", "indexers", [])
    assert [one["start"] for one in found["ranges"]] == ["", "d", "h", "m"]
    shell.out("readers", "drop", "indexers", "commands", "--yes")
    assert shell.out("readers", "list", "commands") == ""
