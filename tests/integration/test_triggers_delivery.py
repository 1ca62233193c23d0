"""What a trigger is given, and when: a real store, a real worker process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest
from click.testing import CliRunner

from columnar.cli import main
from columnar.client import Append, Connection, Delete, Increment, Put
from columnar.client.errors import IllegalArgument, IOError
from tests.support.audit import seen
from tests.support.serving import Serving
from tests.support.trigger_functions import MODULE

NOTE = f"{MODULE}:note"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("store") / "data").start()
    connection = serving.connect()
    for name in (b"audit", b"audit2"):
        connection.create_table(name, {"a": {}})
    yield serving
    serving.stop()


@pytest.fixture
def connection(serving: Serving) -> Connection:
    return serving.connect()


def make(connection: Connection, table: bytes, **settings: object) -> None:
    connection.create_table(table, {"f": {}, "g": {}})
    connection.triggers.add(table.decode(), table, NOTE, [b"f"], **settings)  # type: ignore[arg-type]


def test_a_change_tells_every_step_and_the_row_as_it_is(connection: Connection) -> None:
    make(connection, b"steps", before=True)
    table = connection.table(b"steps")
    table.put(b"r-steps", {b"f:a": b"1", b"f:b": b"2", b"g:x": b"none of its business"})
    result = table.mutate(
        b"r-steps", [Put(b"f:c", b"3"), Delete(b"f:a"), Increment(b"f:n", 5), Append(b"f:b", b"+"), Put(b"g:y", b"-")]
    )
    table.mutate(b"r-steps", [Delete(b"f")])
    assert connection.triggers.wait("steps")
    first, second, third = seen(connection, b"r-steps")
    assert {c[:2] + c[3:] for c in first.changes} == {("put", b"f:a", b"1"), ("put", b"f:b", b"2")}
    assert second.sequence == result.sequence
    five = (5).to_bytes(8, "big")
    assert [c[:2] + c[3:] for c in second.changes] == [
        ("put", b"f:c", b"3"),
        ("delete", b"f:a", b""),
        ("put", b"f:n", five),
        ("put", b"f:b", b"2+"),
    ]
    assert second.before == {b"f:a": b"1", b"f:b": b"2"}
    assert [c[:2] for c in third.changes] == [("delete family", b"f")]
    assert third.before == {b"f:b": b"2+", b"f:c": b"3", b"f:n": five}
    assert third.now == {}
    assert first.timestamp < second.timestamp < third.timestamp


def test_changes_of_a_row_rise_strictly_however_fast_they_come(connection: Connection) -> None:
    make(connection, b"stamps")
    with connection.table(b"stamps").batch() as batch:
        for n in range(50):
            batch.put(b"s-%d" % (n % 2), {b"f:n": b"%d" % n})
    for n in range(50):
        connection.table(b"stamps").put(b"s-0", {b"f:n": b"%d" % n})
    assert connection.triggers.wait("stamps")
    stamps = [one.timestamp for one in seen(connection, b"s-0")]
    assert len(stamps) == 51
    assert all(earlier < later for earlier, later in pairwise(stamps))


def test_two_triggers_of_one_table_see_their_own_families_and_before_images(connection: Connection) -> None:
    make(connection, b"pair", before=True)
    connection.triggers.add("pair-g", b"pair", f"{MODULE}:note_other", [b"g"])
    table = connection.table(b"pair")
    table.put(b"p", {b"f:a": b"1", b"g:a": b"1"})
    table.put(b"p", {b"f:a": b"2", b"g:a": b"2"})
    table.put(b"p", {b"g:a": b"3"})
    assert connection.triggers.wait()
    of_f, of_g = seen(connection, b"p"), seen(connection, b"p", b"audit2")
    assert [one.before for one in of_f] == [{}, {b"f:a": b"1"}]
    assert [[c[1] for c in one.changes] for one in of_g] == [[b"g:a"]] * 3
    assert all(not one.before for one in of_g), "it did not ask for them"


def test_a_new_trigger_does_not_see_what_waits_for_another(connection: Connection) -> None:
    make(connection, b"latecomer")
    connection.triggers.pause("latecomer")
    connection.table(b"latecomer").put(b"l", {b"f:a": b"old"})
    connection.triggers.add("latecomer-2", b"latecomer", f"{MODULE}:note_other", [b"f"])
    connection.table(b"latecomer").put(b"l", {b"f:a": b"new"})
    assert connection.triggers.wait("latecomer-2")
    assert [one.changes[0][3] for one in seen(connection, b"l", b"audit2")] == [b"new"]
    connection.triggers.resume("latecomer")
    assert connection.triggers.wait("latecomer")
    assert [one.changes[0][3] for one in seen(connection, b"l")] == [b"old", b"new"]


def test_from_the_beginning_every_row_comes_once(connection: Connection) -> None:
    connection.create_table(b"old", {"f": {}, "g": {}}, attributes={"DURABILITY": "SYNC_WAL"}, splits=[b"b-5"])
    with connection.table(b"old").batch() as batch:
        for n in range(700):
            batch.put(b"b-%04d" % n, {b"f:n": b"%d" % n}, wal=True)
        batch.put(b"b-none", {b"g:n": b"no cell of its families"})
    connection.triggers.add("old", b"old", NOTE, [b"f"], from_where="beginning")
    assert connection.triggers.wait("old", timeout_ms=30_000)
    rows = [row for row, _ in connection.table(b"audit").scan(row_prefix=b"b-")]
    assert rows == [b"b-%04d" % n for n in range(700)]
    for row in (b"b-0000", b"b-0699"):
        (one,) = seen(connection, row)
        assert one.is_backfill
        assert one.now == {b"f:n": b"%d" % int(row[2:])}
        assert one.changes == ()


def test_a_name_can_be_used_again_and_begins_anew(connection: Connection) -> None:
    connection.create_table(b"again", {"f": {}})
    table = connection.table(b"again")
    table.put(b"a-1", {b"f:n": b"1"})
    connection.triggers.add("again", b"again", NOTE, [b"f"], from_where="beginning")
    assert connection.triggers.wait("again")
    connection.triggers.pause("again")
    table.put(b"a-2", {b"f:n": b"undelivered when it goes"})
    connection.triggers.remove("again")
    connection.triggers.add("again", b"again", NOTE, [b"f"], from_where="beginning")
    (status,) = (one for one in connection.triggers.list() if one.name == "again")
    assert status.state == "running"
    assert connection.triggers.wait("again")
    assert [one.is_backfill for one in seen(connection, b"a-1")] == [True, True]
    assert [one.is_backfill for one in seen(connection, b"a-2")] == [True], "not what waited for its namesake"


def test_a_wait_for_one_change_waits_for_that_alone(connection: Connection) -> None:
    make(connection, b"token")
    connection.triggers.pause("token")
    before = connection.table(b"token").mutate(b"t", [Put(b"f:a", b"1")]).sequence
    assert not connection.triggers.wait("token", before, timeout_ms=1)
    assert not connection.triggers.wait("token", timeout_ms=1)
    connection.triggers.resume("token")
    assert connection.triggers.wait("token", before)
    assert len(seen(connection, b"t")) == 1
    connection.triggers.pause("token")
    other = connection.table(b"token").mutate(b"t", [Put(b"g:a", b"none of its business")]).sequence
    connection.triggers.resume("token")
    assert connection.triggers.wait("token", other)
    with pytest.raises(IllegalArgument, match="no sequence of ours"):
        connection.triggers.wait("token", "1-2-three")


@pytest.mark.parametrize("durability", ["SYNC_WAL", "ASYNC_WAL", "SKIP_WAL"])
def test_unsynced_writes_reach_triggers_too(connection: Connection, durability: str) -> None:
    name = durability.encode()
    connection.create_table(name, {"f": {}}, attributes={"DURABILITY": durability})
    connection.triggers.add(durability, name, NOTE, [b"f"])
    connection.table(name).put(b"d-" + name, {b"f:a": b"1"}, wal=False)
    connection.table(name).put(b"d-" + name, {b"f:a": b"2"})
    assert connection.triggers.wait(durability)
    assert [one.changes[0][3] for one in seen(connection, b"d-" + name)] == [b"1", b"2"]


def test_what_may_not_be_registered(connection: Connection) -> None:
    connection.create_table(b"guarded", {"f": {}})
    add = connection.triggers.add
    for function, families, message in (
        ("os:getcwd", [b"f"], "module os is not allowed.*--trigger-modules os"),
        (f"{MODULE}:nothing", [b"f"], "AttributeError"),
        (f"{MODULE}:not_a_function", [b"f"], "is no function"),
        (f"{MODULE}.os:getcwd", [b"f"], "not allowed"),
        ("no function", [b"f"], "module:function"),
        (NOTE, [b"nope"], "NoSuchColumnFamily"),
        (NOTE, [], "at least one column family"),
    ):
        with pytest.raises((IOError, IllegalArgument), match=message):
            add("guarded", b"guarded", function, families)
    with pytest.raises(IOError, match="TableNotFound"):
        add("guarded", b"nowhere", NOTE, [b"f"])
    with pytest.raises(IllegalArgument, match="table of the system"):
        add("guarded", b"columnar:dead_letters", NOTE, [b"info"])
    assert "guarded" not in [one.name for one in connection.triggers.list()]
    add("guarded", b"guarded", NOTE, [b"f"])
    add("guarded", b"guarded", NOTE, [b"f"])
    with pytest.raises(IllegalArgument, match="other settings"):
        add("guarded", b"guarded", NOTE, [b"f"], attempts=2)
    connection.disable_table(b"guarded")
    with pytest.raises(IOError, match="is disabled"):
        connection.triggers.wait("guarded")
    connection.triggers.remove("guarded")
    with pytest.raises(IOError, match="is disabled"):
        add("guarded", b"guarded", NOTE, [b"f"])
    for call in (connection.triggers.remove, connection.triggers.pause, connection.triggers.resume):
        with pytest.raises(IOError, match="there is no trigger guarded"):
            call("guarded")


def test_a_dropped_table_takes_its_triggers_along_and_says_so(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    make(connection, b"doomed")
    connection.triggers.pause("doomed")
    for n in range(7):
        connection.table(b"doomed").put(b"x-%d" % n, {b"f:a": b"1"})
    with caplog.at_level(logging.WARNING, logger="columnar.master.trigger_changes"):
        connection.delete_table(b"doomed", disable=True)
    assert "table doomed is dropped: trigger doomed goes with it, 7 changes undelivered" in caplog.text
    assert "doomed" not in [one.name for one in connection.triggers.list()]
    connection.create_table(b"doomed", {"f": {}})
    connection.table(b"doomed").put(b"x-new", {b"f:a": b"1"})
    assert connection.triggers.wait()
    assert seen(connection, b"x-new") == []


def test_a_disabled_table_keeps_its_changes_and_goes_on_when_it_is_enabled(connection: Connection) -> None:
    make(connection, b"resting")
    connection.triggers.pause("resting")
    connection.table(b"resting").put(b"rest", {b"f:a": b"1"})
    connection.disable_table(b"resting")
    connection.triggers.resume("resting")
    connection.enable_table(b"resting")
    assert connection.triggers.wait("resting")
    assert len(seen(connection, b"rest")) == 1


def test_late_and_repeated_deliveries_end_in_the_same_table(serving: Serving, connection: Connection) -> None:
    connection.create_table(b"source", {"f": {}})
    connection.create_table(b"index", {"i": {}}, attributes={"DELETE_MARKERS": "3600000"})
    connection.triggers.add("index", b"source", f"{MODULE}:index", [b"f"], before=True)
    table = connection.table(b"source")
    first = table.mutate(b"i", [Put(b"f:v", b"a")])
    table.put(b"i", {b"f:v": b"b"})
    table.delete(b"i")
    table.put(b"i", {b"f:v": b"c"})
    assert connection.triggers.wait("index")
    expected = [(b"c", {b"i:i": b""})]
    assert list(connection.table(b"index").scan()) == expected
    connection.table(b"index").put(b"a", {b"i:i": b""}, timestamp=first.timestamp)  # the first call, late
    connection.table(b"index").put(b"b", {b"i:i": b""}, timestamp=first.timestamp)  # a call that read b, late
    assert list(connection.table(b"index").scan()) == expected

    hour_ms = 3_600_000
    table.put(b"ahead", {b"f:v": b"d"}, timestamp=first.timestamp + hour_ms)
    table.delete(b"ahead", timestamp=first.timestamp + 2 * hour_ms)
    table.put(b"ahead", {b"f:v": b"d"})
    assert table.row(b"ahead") == {b"f:v": b"d"}
    assert connection.triggers.wait("index")
    assert list(connection.table(b"index").scan()) == [*expected, (b"d", {b"i:ahead": b""})], "whatever clients invent"


def test_a_trigger_registered_at_a_terminal(serving: Serving, connection: Connection) -> None:
    connection.create_table(b"typed", {"f": {}, "g": {}})
    connection.table(b"typed").put(b"typed", {b"f:a": b"1"})
    store = ["--store", f"127.0.0.1:{serving.store.port}"]
    runner = CliRunner()
    added = runner.invoke(main, ["trigger", "add", "typed", NOTE, "--from", "beginning", "--attempts", "3", *store])
    assert added.exit_code == 0, added.output
    waited = runner.invoke(main, ["trigger", "wait", *store])
    assert waited.exit_code == 0, waited.output
    assert [one.is_backfill for one in seen(connection, b"typed")] == [True]
    (status,) = (one for one in connection.triggers.list() if one.table == b"typed")
    assert (status.families, status.attempts) == ((b"f", b"g"), 3)
    refused = runner.invoke(main, ["trigger", "add", "typed", "os:getcwd", *store])
    assert refused.exit_code == 1
    assert "--trigger-modules os" in refused.output + refused.stderr


def test_every_change_after_the_registration_is_delivered_under_load(serving: Serving) -> None:
    connection = serving.connect()
    connection.create_table(b"loaded", {"f": {}}, splits=[b"load-2"])
    tokens: list[list[str]] = [[] for _ in range(3)]
    going, registered, stop = threading.Barrier(4), threading.Event(), threading.Event()

    def write(number: int) -> None:
        table = serving.connect().table(b"loaded")
        going.wait(10)
        while not stop.is_set() or len(tokens[number]) < 20:
            counts = registered.is_set()
            result = table.mutate(b"load-%d" % number, [Increment(b"f:n")])
            if counts:
                tokens[number].append(result.sequence)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    going.wait(10)
    connection.triggers.add("loaded", b"loaded", NOTE, [b"f"])
    registered.set()
    stop.set()
    for writer in writers:
        writer.join()
    assert connection.triggers.wait("loaded", timeout_ms=30_000)
    for number in range(3):
        delivered = [one.sequence for one in seen(connection, b"load-%d" % number)]
        assert set(tokens[number]) <= set(delivered)
        assert len(delivered) == len(set(delivered))
