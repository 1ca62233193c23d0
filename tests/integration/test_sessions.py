"""Sessions over two servers: a client's writes, by happybase's methods and ours, are in when a wait says so."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from pathlib import Path

import pytest

from columnar.client import Connection, Expect, Increment, Put, RegionAdmin, Source, View
from columnar.client.errors import IllegalArgument, WrongArgument
from columnar.client.errors import IOError as Refused
from columnar.client.row_groups import GroupConflict
from columnar.client.sessions import ALL, SESSION_REGIONS
from tests.support.cluster_process import ClusterProcess
from tests.support.readme_blocks import blocks_of
from tests.support.shell import Shell

PAGE = Path(__file__).parents[2] / "docs" / "sessions.md"
MODULE = "flows_of_sessions"
FIRST, SECOND = "notes-first", "words-second"
WAIT_MS = 60_000
CHAIN = """
from columnar.triggers.api import Change, Put, on


@on("notes", columns=["m:text"], writes=["words"])
def first(change: Change):
    yield Put("words", change.row, {b"m:size": b"%d" % len(change.after[b"m:text"])})


@on("words", columns=["m:size"], writes=["sizes"])
def second(change: Change):
    yield Put("sizes", change.after[b"m:size"] + b"/" + change.row, {b"m:of": change.row})


@on("sizes", columns=["m:of"])
def undeclared(change: Change):
    yield Put("ends", change.row, {b"m:of": change.after[b"m:of"]})
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    folder = tmp_path_factory.mktemp("sessions")
    (folder / f"{MODULE}.py").write_text(CHAIN)
    store = ClusterProcess(folder / "data", 2, "--trigger-modules", MODULE)
    store.environment["PYTHONPATH"] += f":{folder}"
    with pytest.MonkeyPatch.context() as patch, store:
        patch.syspath_prepend(str(folder))
        with closing(store.connection()) as connection:
            connection.create_table("notes", {"m": {}}, splits=[b"n3", b"n6"], attributes={"ROW_GROUP": "length:2"})
            for name in ("words", "sizes", "ends"):
                connection.create_table(name, {"m": {}}, splits=[b"n5"])
            Shell(f"127.0.0.1:{store.port}").out("trigger", "sync", MODULE, "--yes")
            connection.views.add(View("by_of", Source("sizes", key=("m:of",))))
            connection.views.add(View("ends_of", Source("ends", key=("m:of",))))
            for view in ("by_of", "ends_of"):
                assert connection.views.wait(view, timeout_ms=WAIT_MS)
        yield store
        sys.modules.pop(MODULE, None)


@pytest.fixture
def connection(cluster: ClusterProcess) -> Iterator[Connection]:
    with closing(cluster.connection()) as found:
        yield found


def test_a_token_names_each_region_that_a_call_wrote_into(connection: Connection) -> None:
    session = connection.session()
    assert session.token == ""
    assert session.wait(FIRST, timeout_ms=0), "there is nothing to wait for"
    with session.table("notes").batch() as batch:
        for number in range(9):
            batch.put(b"n%d" % number, {b"m:text": b"x"})
    assert len(session.token.split(",")) == 3
    session.table("notes").put(b"n1", {b"m:text": b"xy"})
    assert len(session.token.split(",")) == 3
    origins = {one.split("-")[0] for one in session.token.split(",")}
    assert len(origins) == 3
    assert session.wait(FIRST, timeout_ms=WAIT_MS)


def test_every_kind_of_write_is_waited_for_through_the_chain(connection: Connection) -> None:
    session = connection.session()
    notes = session.table("notes")
    writes = {
        b"put": lambda row: notes.put(row, {b"m:text": row}),
        b"put at a time": lambda row: notes.put(row, {b"m:text": row}, timestamp=10**13),
        b"mutate": lambda row: notes.mutate(row, [Put(b"m:text", row)]),
        b"rows": lambda row: notes.mutate_rows({row: [Put(b"m:text", row)]}),
        b"group": lambda row: notes.mutate_group({row: ([], [Put(b"m:text", row)])}),
        b"transaction": lambda row: notes.transact(row[:2], lambda tx: tx.put(row, {b"m:text": row})),
    }
    for number, (kind, write) in enumerate(writes.items()):
        row = b"n%d of %s" % (number, kind)
        before = session.token
        write(row)
        assert session.token != before, kind
        assert session.wait(SECOND, timeout_ms=WAIT_MS), kind
        assert connection.table("sizes").row(b"%d/%s" % (len(row), row)) == {b"m:of": row}, kind
    for number in range(20):
        row = b"n%d again" % (number % 9)
        notes.put(row, {b"m:text": b"x" * (number + 1)})
        assert session.wait(SECOND, timeout_ms=WAIT_MS)
        assert connection.table("sizes").row(b"%d/%s" % (number + 1, row)) == {b"m:of": row}


def test_downstream_goes_on_to_the_view_at_the_end(connection: Connection) -> None:
    session = connection.session()
    counted = 0
    for number in range(10):
        row = b"n4 chain"
        session.table("notes").put(row, {b"m:text": b"y" * (100 + number)})
        assert session.wait(FIRST, timeout_ms=WAIT_MS, downstream=True)
        found = connection.view("by_of").get(row).count
        assert found > counted, "each size is a row of its own"
        counted = found
    session.table("notes").put(b"n8 all", {b"m:text": b"z"})
    assert session.wait(timeout_ms=WAIT_MS), "without names: all triggers and views"
    assert connection.view("by_of").get(b"n8 all").count == 1


def test_what_a_trigger_writes_undeclared_counts_once_a_server_has_seen_it(connection: Connection) -> None:
    session = connection.session()
    notes = session.table("notes")
    notes.put(b"n1 seen", {b"m:text": b"q"})
    assert session.wait("sizes-undeclared", timeout_ms=WAIT_MS)
    for number in range(1, 10):
        notes.put(b"n1 seen", {b"m:text": b"q" * (200 + number)})
        assert session.wait("ends_of", timeout_ms=WAIT_MS)
        assert connection.view("ends_of").get(b"n1 seen").count == number + 1


def test_a_session_goes_on_in_another_process(cluster: ClusterProcess, connection: Connection) -> None:
    session = connection.session()
    session.table("notes").put(b"n2 handed on", {b"m:text": b"12345"})
    with closing(cluster.connection()) as other:
        second = other.session(session.token)
        second.table("notes").put(b"n7 handed on", {b"m:text": b"123456"})
        assert second.wait(SECOND, timeout_ms=WAIT_MS)
        assert other.table("sizes").row(b"5/n2 handed on")
        assert other.table("sizes").row(b"6/n7 handed on")
        sizes = second.table("sizes")
        sizes.put(b"own", {b"m:of": b"own group"})
        assert other.view("by_of").get(b"own group", after=second.token, timeout_ms=WAIT_MS).count == 1


def test_counters_are_counted_as_happybase_does(connection: Connection) -> None:
    session = connection.session()
    notes = session.table("notes")
    assert [notes.counter_inc(b"n0 counter", b"m:n", 5), notes.counter_dec(b"n0 counter", b"m:n")] == [5, 4]
    assert connection.table("notes").counter_get(b"n0 counter", b"m:n") == 4
    assert len(session.token.split(",")) == 1
    notes.delete(b"n0 counter", columns=[b"m:n"])
    assert notes.row(b"n0 counter") == {}


def test_a_refused_step_is_no_write(connection: Connection) -> None:
    session = connection.session()
    notes = session.table("notes")
    assert not notes.check_and_mutate(b"n1", [Expect(b"m:no", b"x")], [Put(b"m:text", b"never")]).applied
    assert not notes.mutate_group({b"n1": ([Expect(b"m:no", b"x")], [Increment(b"m:i")])}).applied
    assert session.token == ""


def test_after_a_write_without_an_outcome_all_writes_are_waited_for(connection: Connection) -> None:
    session = connection.session()
    with pytest.raises(Refused):
        session.table("nowhere").put(b"x", {b"m:text": b"x"})
    assert session.token == ALL
    connection.table("notes").put(b"n5 of others", {b"m:text": b"1234567890"})
    assert session.wait(SECOND, timeout_ms=WAIT_MS)
    assert connection.table("sizes").row(b"10/n5 of others")
    assert connection.session(ALL).wait(FIRST, timeout_ms=WAIT_MS)


def test_a_session_of_many_regions_waits_for_all_writes(connection: Connection) -> None:
    session = connection.session()
    for origin in range(SESSION_REGIONS + 1):
        session.add(f"{origin + 10**12}-1-1")
    assert session.token == ALL
    assert session.wait(FIRST, timeout_ms=WAIT_MS)


def test_a_paused_trigger_is_not_in_time(connection: Connection) -> None:
    session = connection.session()
    connection.triggers.pause(FIRST)
    try:
        session.table("notes").put(b"n6 paused", {b"m:text": b"x"})
        assert not session.wait(FIRST, timeout_ms=50)
        assert not session.wait(SECOND, timeout_ms=50), "it is fed by the paused one"
        assert session.wait("by_of", timeout_ms=50) is False
    finally:
        connection.triggers.resume(FIRST)
    assert session.wait("by_of", timeout_ms=WAIT_MS)


def test_splits_and_moves_do_not_end_a_wait(cluster: ClusterProcess, connection: Connection) -> None:
    session = connection.session()
    notes = session.table("notes")
    connection.triggers.pause(FIRST)
    for number in range(9):
        notes.put(b"n%d split" % number, {b"m:text": b"s"})
    RegionAdmin(connection).split(b"notes", b"n7")
    notes.put(b"n7 split", {b"m:text": b"ss"})
    connection.triggers.resume(FIRST)
    assert session.wait(SECOND, timeout_ms=WAIT_MS)
    sizes = connection.table("sizes")
    assert all(sizes.row(b"1/n%d split" % number) for number in range(9) if number != 7)
    assert sizes.row(b"2/n7 split")


def test_what_is_no_token_or_name_is_an_error(connection: Connection) -> None:
    with pytest.raises(WrongArgument, match="is no token of a write"):
        connection.session("hello")
    session = connection.session("7-1-1")
    with pytest.raises(Refused, match="there is no trigger, view or feed 'nobody'"):
        session.wait("nobody")
    with pytest.raises(IllegalArgument, match="a wait takes 0 to"):
        session.wait(FIRST, timeout_ms=-1)


def test_a_transaction_that_gives_up_is_no_write(connection: Connection) -> None:
    session = connection.session()
    notes = session.table("notes")

    def meddle(tx: object) -> None:
        tx.row(b"n3 meddled")  # type: ignore[attr-defined]
        connection.table("notes").put(b"n3 meddled", {b"m:text": b"x"})
        tx.put(b"n3 meddled", {b"m:text": b"y"})  # type: ignore[attr-defined]

    with pytest.raises(GroupConflict):
        notes.transact(b"n3", meddle, tries=2)
    assert session.token == ""


def test_the_examples_of_the_page(cluster: ClusterProcess) -> None:
    for example in blocks_of(PAGE.read_text()):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(example.text.replace("9090", str(cluster.port)), str(PAGE), "exec"), {})
        expected = [line.rpartition("  # ")[2] for line in example.text.splitlines() if line.startswith("print(")]
        assert printed.getvalue().splitlines() == expected
