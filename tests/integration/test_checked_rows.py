"""``Table.check_and_mutate_rows``: conditional writes of several rows in one call, each a step of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.client import Append, Connection, Expect, Increment, Put
from columnar.client.errors import IllegalArgument, IOError, NotColumnar
from columnar.errors import RegionNotLocal
from columnar.model.mutation import Put as PutOfRow
from columnar.model.mutation import RowMutation
from columnar.model.schema import Family, make_table
from columnar.operations import writes
from tests.support.region_house import House
from tests.support.store_thread import StoreThread

NEW = [Expect.absent(b"f:n")]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with StoreThread(tmp_path) as store:
        made = store.connection()
        made.create_table("t", {"f": {}})
        yield made
        made.close()


def put(value: bytes) -> list[Put]:
    return [Put(b"f:n", value), Put(b"f:m", value)]


def test_each_row_is_written_or_refused_by_its_own_conditions(connection: Connection) -> None:
    table = connection.table("t")
    table.put(b"b", {b"f:n": b"held"})
    results = table.check_and_mutate_rows(
        {
            b"c": (NEW, put(b"1")),
            b"b": ([Expect(b"f:n", b"held", "exists"), Expect(b"f:n", b"other")], put(b"2")),
            b"a": ((), [Increment(b"f:count", 5), Increment(b"f:count", 2), Append(b"f:text", b"x")]),
        }
    )
    assert list(results) == [b"c", b"b", b"a"]
    assert [(one.applied, one.failed_condition) for one in results.values()] == [(True, None), (False, 1), (True, None)]
    assert results[b"a"].counters == [5, 7]
    assert dict(table.rows([b"a", b"b", b"c"], columns=[b"f:n", b"f:m"])) == {
        b"b": {b"f:n": b"held"},
        b"c": {b"f:n": b"1", b"f:m": b"1"},
    }
    assert results[b"c"].sequence < results[b"a"].sequence
    assert table.check_and_mutate_rows({}) == {}


@pytest.mark.parametrize(
    ("stored", "met"),
    [(None, {"absent", "absent or empty"}), (b"", {"exists", "absent or empty"}), (b"x", {"exists"})],
)
def test_an_empty_cell_exists(connection: Connection, stored: bytes | None, met: set[str]) -> None:
    """``absent`` is the contrary of ``exists``; HBase's checkAndPut without a value takes both."""
    table = connection.table("t")
    if stored is not None:
        table.put(b"r", {b"f:x": stored})
    expected = (Expect.exists(b"f:x"), Expect.absent(b"f:x"), Expect.absent_or_empty(b"f:x"))
    held = {one.op for one in expected if table.check_and_mutate(b"r", [one], [Put(b"f:n", b"1")]).applied}
    assert held == met


def test_rows_that_a_call_has_no_time_for_are_asked_for_alone(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "STEP_S", -1.0)
    rows = {b"%d" % number: (NEW, put(b"1")) for number in range(4)}
    connection.table("t").put(b"x", {b"f:n": b"its region is open"})
    calls = counted(connection, monkeypatch)
    assert all(one.applied for one in connection.table("t").check_and_mutate_rows(rows).values())
    assert calls == ["columnarCheckAndMutateRows", *["columnarCheckAndMutate"] * 3]
    assert not any(one.applied for one in connection.table("t").check_and_mutate_rows(rows).values())


def counted(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    call = connection.call

    def count(method: str, *arguments: Any) -> Any:
        calls.append(method)
        return call(method, *arguments)

    monkeypatch.setattr(connection, "call", count)
    return calls


def test_an_error_is_of_its_row_and_hides_no_other(connection: Connection) -> None:
    table = connection.table("t")
    table.put(b"b", {b"f:count": b"no number"})
    rows = {row: ((), [Increment(b"f:count", 1)]) for row in (b"a", b"b", b"c")}
    with pytest.raises((IOError, IllegalArgument)):
        table.check_and_mutate_rows(rows)
    assert [row for row, _ in table.scan()] == [b"a", b"b", b"c"], "rows beside it are written"
    with pytest.raises(IllegalArgument):
        table.check_and_mutate_rows({b"a": (NEW, ())})


def test_a_row_may_be_named_once(connection: Connection) -> None:
    from columnar.wire.idl import columnar

    row = columnar.CheckedRow(row=b"a", conditions=[], operations=[columnar.RowOperation(column=b"f:n", value=b"1")])
    with pytest.raises(IllegalArgument):
        connection.call("columnarCheckAndMutateRows", b"t", [row, row])
    assert list(connection.table("t").scan()) == []


def test_a_server_of_before_is_asked_row_by_row(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    call = connection.call

    def older(method: str, *arguments: Any) -> Any:
        if method == "columnarCheckAndMutateRows":
            raise NotColumnar(method, "here")
        return call(method, *arguments)

    monkeypatch.setattr(connection, "call", older)
    rows = {b"a": (NEW, put(b"1")), b"b": (NEW, put(b"2"))}
    assert [one.applied for one in connection.table("t").check_and_mutate_rows(rows).values()] == [True, True]


def test_rows_of_another_server_are_left_and_the_others_are_durable() -> None:
    async def run() -> None:
        house = House(make_table("t", [Family("a")]), splits=(b"m",))
        house.region(b"a"), house.region(b"z")
        access = house.operations.access
        writable = access.writable

        def elsewhere(served: Any, row: bytes) -> Any:
            if row >= b"m":
                raise RegionNotLocal("t", "elsewhere")
            return writable(served, row)

        access.writable = elsewhere  # type: ignore[method-assign]
        mutations = [RowMutation(row, (PutOfRow(b"a", b"q", b"v"),)) for row in (b"a", b"z", b"b")]
        later = writes.RowWrites(access).write_checked(house.served, mutations, lambda outcomes: outcomes)
        await later.future
        assert [one is not None for one in later.result] == [True, False, True]
        assert (len(house.row(b"a")), len(house.row(b"z"))) == (1, 0)
        await house.close()

    asyncio.run(run())
