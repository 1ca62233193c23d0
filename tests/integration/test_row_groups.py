"""Groups of rows through a real store: the page's examples, transactions that meet, and copies of tables."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from columnar.client import (
    Connection,
    Delete,
    Expect,
    GroupConflict,
    IllegalArgument,
    RegionAdmin,
    Source,
    View,
)
from columnar.client import row_groups as subject
from columnar.client.errors import WrongArgument
from columnar.client.row_groups import Transaction
from columnar.client.table import Table
from tests.support.group_scenario import ATTRIBUTES, scenario
from tests.support.readme_blocks import blocks_of
from tests.support.shell import Shell
from tests.support.store_thread import StoreThread

PAGE = Path(__file__).parents[2] / "docs" / "row-groups.md"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("groups")) as made:
        yield made


@pytest.fixture
def table(store: StoreThread, request: pytest.FixtureRequest) -> Iterator[Table]:
    connection, name = store.connection(), re.sub(r"\W", "_", request.node.name)
    connection.create_table(name, {"f": {}}, attributes=ATTRIBUTES)
    yield connection.table(name)
    connection.close()


def test_the_examples_of_the_page(store: StoreThread) -> None:
    command, *examples = blocks_of(PAGE.read_text())
    shell = Shell(f"127.0.0.1:{store.port}")
    shell.out(*shlex.split(command.text)[1:])
    assert len(examples) == 2
    for example in examples:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(example.text.replace("9090", str(store.port)), str(PAGE), "exec"), {})
        assert printed.getvalue().splitlines() == re.findall(r"^print\(.*\)  # (.*)$", example.text, re.MULTILINE)


def test_the_answers_of_one_process(store: StoreThread) -> None:
    with store.connection() as one, store.connection() as other:
        answers = scenario(one, other, "scenario")
    a, b, c, d = answers
    assert str(a).replace("a/", "d/") == str(d)
    assert a[0] == (True, {b"a/1": [2], b"a/2": []}, True, None, None)
    assert a[1] == (False, {}, False, b"a/1", 0)
    assert a[2][:3] == (True, {b"a/2": [], b"a/1": []}, True)
    assert a[3][:3] == (True, {b"a/1": []}, False), "a look alone is no change"
    assert a[4] == {b"a/1": {b"f:n": (2).to_bytes(8, "big"), b"f:x": b"1"}, b"a/2": {b"f:x": b"2", b"g:log": b"a"}}
    assert "row z/1 is of the group z/, not of the group a/ of the call" in a[6]
    assert "none" in a[7]
    assert a[-2:] == [(True, {b"a/1": [], b"a/2": [], b"a/3": []}, True, None, None), {b"a/9": a[-1][b"a/9"]}]
    assert any("met changes of others in each of its 2 tries" in str(one) for one in a)
    assert "never" not in str(answers)
    assert len(b) == len(c) == len(a)


# --- transactions ----------------------------------------------------------------------------------------


def test_transactions_that_meet_are_done_one_after_the_other(table: Table, store: StoreThread) -> None:
    """Each moves 3 between two rows that it picks by what it sees; all rows together keep their sum."""
    rows = [b"g/%d" % n for n in range(4)]
    table.mutate_group({row: ((), subject.puts({b"f:n": b"10"})) for row in rows})

    def move(tx: Transaction) -> None:
        held = {row: int(cells[b"f:n"]) for row, cells in tx.rows(columns=[b"f:n"]).items()}
        assert sum(held.values()) == 40, "a group is seen as of one moment"
        source, target = max(held, key=lambda row: (held[row], row)), min(held, key=lambda row: (held[row], row))
        tx.put(source, {b"f:n": b"%d" % (held[source] - 3)})
        tx.put(target, {b"f:n": b"%d" % (held[target] + 3)})
        tx.increment(b"g/", b"f:moves")

    def work(_: int) -> None:
        with store.connection() as connection:
            for _ in range(10):
                connection.table(table.name).transact(b"g/", move, tries=200)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    found = table.group(b"g/").rows()
    assert int.from_bytes(found.pop(b"g/")[b"f:moves"], "big") == 40, "each was done once"
    assert sum(int(cells[b"f:n"]) for cells in found.values()) == 40


def once(work: Any) -> Any:
    """Return a function that does the work at its first call."""
    left = [work]
    return lambda: left.pop()() if left else None


@pytest.mark.parametrize("change", ["a new row", "a row that went", "a new cell", "a row of another group"])
def test_what_was_not_there_is_read_too(table: Table, change: str) -> None:
    table.put(b"g/1", {b"f:x": b"1"})
    changes = {
        "a new row": lambda: table.put(b"g/2", {b"f:y": b"1"}),
        "a row that went": lambda: table.delete(b"g/1"),
        "a new cell": lambda: table.put(b"g/1", {b"f:z": b"1"}),
        "a row of another group": lambda: table.put(b"h/1", {b"f:z": b"1"}),
    }
    disturb, calls = once(changes[change]), list[list[bytes]]()

    def count(tx: Transaction) -> None:
        calls.append(list(tx.rows()))
        disturb()
        tx.put(b"g/count", {b"f:n": b"%d" % len(calls[-1])})

    table.transact(b"g/", count)
    assert len(calls) == (1 if change == "a row of another group" else 2)
    assert table.row(b"g/count") == {b"f:n": b"%d" % len(calls[-1])}


def test_rows_read_by_name_are_disturbed_by_these_alone(table: Table) -> None:
    disturb, calls = once(lambda: table.put(b"g/9", {b"f:x": b"1"})), []

    def read(tx: Transaction) -> None:
        calls.append(tx.row(b"g/1"))
        disturb()
        tx.put(b"g/2", {b"f:x": b"1"})

    table.transact(b"g/", read)
    assert calls == [{}]
    appears, seen = once(lambda: table.put(b"g/1", {b"f:x": b"new"})), []

    def look(tx: Transaction) -> None:
        seen.append(tx.row(b"g/1", columns=[b"f:x"]).get(b"f:x"))
        appears()
        tx.put(b"g/2", {b"f:x": b"2"})

    table.transact(b"g/", look)
    assert seen == [None, b"new"]


def test_nothing_of_a_failed_function_is_written(table: Table) -> None:
    def fails(tx: Transaction) -> None:
        tx.row(b"g/1")
        tx.put(b"g/1", {b"f:x": b"1"})
        tx.increment(b"g/2", b"f:n")
        raise LookupError("after its writes")

    with pytest.raises(LookupError, match="after its writes"):
        table.transact(b"g/", fails)
    assert table.group(b"g/").rows() == {}


def test_an_error_because_of_what_never_was_is_tried_again(table: Table) -> None:
    """Somebody moves the money between the two reads: at no moment there were 0 in all."""
    table.mutate_group({b"g/1": ((), subject.puts({b"f:n": b"0"})), b"g/2": ((), subject.puts({b"f:n": b"5"}))})
    move = once(
        lambda: table.mutate_group(
            {b"g/1": ((), subject.puts({b"f:n": b"5"})), b"g/2": ((), subject.puts({b"f:n": b"0"}))}
        )
    )
    sums: list[int] = []

    def total(tx: Transaction) -> int:
        one = int(tx.row(b"g/1")[b"f:n"])
        move()
        sums.append(one + int(tx.row(b"g/2")[b"f:n"]))
        if sums[-1] != 5:
            raise AssertionError("not all is there")
        return sums[-1]

    assert table.transact(b"g/", total) == 5
    assert sums == [0, 5]
    move = once(lambda: None)
    with pytest.raises(ZeroDivisionError):
        table.transact(b"g/", lambda tx: (tx.row(b"g/1"), tx.row(b"g/2"), 1 // 0))


def test_two_reads_that_differ_are_looked_at_even_if_nothing_is_written(table: Table) -> None:
    disturb, calls = once(lambda: table.put(b"g/1", {b"f:x": b"1"})), []

    def read(tx: Transaction) -> None:
        first = tx.row(b"g/1")
        disturb()
        calls.append((first, tx.row(b"g/2")))

    table.transact(b"g/", read)
    assert calls == [({}, {}), ({b"f:x": b"1"}, {})]


def test_pauses_grow_and_tries_end(table: Table) -> None:
    pauses: list[float] = []

    def disturbed(tx: Transaction) -> None:
        tx.rows()
        table.counter_inc(b"g/1", b"f:n")
        tx.put(b"g/2", {b"f:x": b"1"})

    with pytest.raises(GroupConflict, match="in each of its 12 tries, and nothing was written: read less of the group"):
        subject.transact(table, b"g/", disturbed, 12, pauses.append)
    assert table.row(b"g/2") == {}
    assert len(pauses) == 11
    for number, pause in enumerate(pauses):
        most = min(subject.LONGEST_PAUSE_S, subject.FIRST_PAUSE_S * 2**number)
        assert most / 2 <= pause <= most
    with pytest.raises(WrongArgument, match="at least once"):
        table.transact(b"g/", disturbed, tries=0)


def test_reads_come_before_writes(table: Table) -> None:
    def reads_its_write(tx: Transaction) -> None:
        tx.put(b"g/1", {b"f:x": b"1"})
        tx.row(b"g/2")
        tx.row(b"g/1")

    with pytest.raises(WrongArgument, match="row b'g/1' is read after a write to it"):
        table.transact(b"g/", reads_its_write)

    def reads_all(tx: Transaction) -> None:
        tx.mutate(b"g/1", [Delete(b"f:x")])
        tx.rows()

    with pytest.raises(WrongArgument, match="the group is read after a write"):
        table.transact(b"g/", reads_all)
    assert table.transact(b"g/", lambda tx: (tx.row(b"g/1"), tx.row(b"g/1"), tx.rows())) == ({}, {}, {})


def test_a_view_follows_the_rows_of_a_step(table: Table) -> None:
    connection, name = table.connection, table.name.decode()
    view = View("of_" + name, Source(name, key=("row.split('/',0)",), sums={"n": "f:n"}))
    connection.views.add(view)
    step = {b"g/%d" % n: ((), subject.puts({b"f:n": b"%d" % n})) for n in range(5)}
    table.mutate_group(step)
    done = table.mutate_group({**step, b"g/4": ((), [Delete(b"f")]), b"g/5": ([Expect.absent(b"f:n")], [])})
    assert not table.mutate_group({b"g/1": ((), [Delete(b"f")]), b"g/2": ([Expect.absent(b"f:n")], [])}).applied
    found = connection.view(view.name).get(b"g", after=done.sequence, timeout_ms=20_000)
    assert (found.count, found.sums["n"]) == (4, 0 + 1 + 2 + 3)
    assert connection.views.check(view.name).wrong == 0
    connection.views.drop(view.name)


def test_a_stream_tells_where_a_step_ends(table: Table) -> None:
    table.connection.admin.alter_table(table.name.decode(), attributes={"CHANGE_LOG": "3600"})
    stream = table.connection.changes(table.name, start="beginning", follow=False)
    assert list(stream) == []
    table.mutate_group({b"g/%d" % n: ((), subject.puts({b"f:n": b"1"})) for n in range(3)})
    table.put(b"g/0", {b"f:n": b"2"})
    events = list(table.connection.changes(table.name, start=stream.position, follow=False))
    assert [(one.row, one.more) for one in events] == [
        (b"g/0", True),
        (b"g/1", True),
        (b"g/2", False),
        (b"g/0", False),
    ]


# --- the table ---------------------------------------------------------------------------------------------


def test_copies_of_a_table_keep_its_groups(table: Table) -> None:
    connection: Connection = table.connection
    name = table.name.decode()
    table.mutate_group({b"g/1": ((), subject.puts({b"f:x": b"1"})), b"g/2": ((), subject.puts({b"f:x": b"1"}))})
    RegionAdmin(connection).split(name, b"g/2")
    assert [region["start_key"] for region in table.regions()] == [b"", b"g/"]
    connection.snapshots.take_snapshot("groups", table.name)
    connection.snapshots.clone_snapshot("groups", b"copy_of_groups")
    connection.admin.alter_table(name, attributes={"ROW_GROUP": ""})
    with pytest.raises(IllegalArgument, match="has no groups of rows: set ROW_GROUP first"):
        table.group(b"g/").rows()
    connection.snapshots.restore_snapshot("groups")
    for one in (table, connection.table("copy_of_groups")):
        assert list(one.group(b"g/").rows()) == [b"g/1", b"g/2"]
        assert connection.admin.describe(one.name).attributes == {"ROW_GROUP": "until:/"}
