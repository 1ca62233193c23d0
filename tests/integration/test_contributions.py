"""Contributions through the client, on a real store: read by counters, kept through all that moves a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.client import Connection, Contribute, Expect, MemberCell, Put, RegionAdmin, Table
from columnar.client.errors import IllegalArgument, IOError
from tests.support.serving import Serving


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    folder: Path = tmp_path_factory.mktemp("contributions") / "data"
    serving = Serving(folder).start()
    yield serving.connect()
    serving.stop()


def made(connection: Connection, name: bytes) -> Table:
    """As a happybase program makes it: three versions a family."""
    connection.create_table(name, {"n": {}, "m": {}, "o": {}})
    table: Table = connection.table(name)
    return table


def edits(source: bytes, n: int, count: int | None) -> Contribute:
    return Contribute(source, n, None if count is None else {b"n:edits": count})


def test_totals_read_by_counters(connection: Connection) -> None:
    table = made(connection, b"authors")
    table.mutate(b"alice", [edits(b"page/1", 1, 3), edits(b"page/2", 1, 4)])
    table.mutate(b"alice", [edits(b"page/1", 1, 99)])
    assert table.counter_get(b"alice", b"n:edits") == 7
    result = table.check_and_mutate(b"alice", [Expect.exists(b"n:edits")], [edits(b"page/2", 2, None)])
    assert (result.applied, result.counters) == (True, [])
    assert table.counter_get(b"alice", b"n:edits") == 3
    assert not table.check_and_mutate(b"alice", [Expect(b"n:edits", b"x")], [edits(b"page/1", 5, 1)]).applied
    assert table.members(b"alice") == {b"page/1": MemberCell({b"n:edits": 3}, "0-0-1", None, {})}
    assert b"m:page/2" in table.row(b"alice"), "a plain reader sees the guard"
    table.mutate(b"alice", [edits(b"page/1", 2, 0)])
    assert table.row(b"alice", columns=[b"n"]) == {}


def test_sources_in_an_order_carry_cells(connection: Connection) -> None:
    table = made(connection, b"ranked")
    for name, sequence, score in ((b"a", "7-1-4", b"\x05"), (b"b", "7-1-5", b"\x02"), (b"a", "7-1-6", b"\x01")):
        table.mutate(b"top", [Contribute(name, sequence, {b"n:count": 1}, order=score, carry={b"f:title": name})])
    assert [column[2:] for column in table.row(b"top", columns=[b"o"])] == [b"\x01\x00\x01a", b"\x02\x00\x01b"]
    assert table.members(b"top")[b"a"] == MemberCell({b"n:count": 1}, "7-1-6", b"\x01", {b"f:title": b"a"})


def test_tallies_add_up_once_each(connection: Connection) -> None:
    table = made(connection, b"tallied")
    for n in (1, 2, 2, 3, 1):
        table.mutate(b"r", [Contribute(b"s", n, {b"n:edits": 10 + n}, relative=True)])
    assert table.counter_get(b"r", b"n:edits") == 36


def test_mistakes_say_what_is_wrong(connection: Connection) -> None:
    table = made(connection, b"mistaken")
    table.put(b"r", {b"n:text": b"no number"})
    for bad, why in (
        (Contribute(b"s", 1, {b"n:text": 1}), "Field is not a long"),
        (Contribute(b"s", 1, {b"gone:x": 1}), "Column family gone does not exist"),
        (Contribute(b"s", 1, {b"n:x": 1}, members=b"gone"), "Column family gone does not exist"),
        (Contribute(b"s", 1, {}), "one amount to each total"),
        (Contribute(b"s", 1, {b"n": 1}), "has no qualifier"),
        (Contribute(b"s", 1, {b"m:x": 1}), "families of their own"),
        (Contribute(b"s", 1, {b"n:x": 1}, order=b"1", ordered=b"gone"), "Column family gone does not exist"),
        (Contribute(b"s", 1, None, relative=True), "not relative"),
        (Contribute(b"s", "1-2", {b"n:x": 1}), "a sequence of three numbers"),
        (Contribute(b"s", -1, {b"n:x": 1}), "unsigned"),
    ):
        with pytest.raises((IOError, IllegalArgument)) as raised:
            table.mutate(b"r", [Put(b"n:y", b""), bad])
        assert why.encode() in bytes(raised.value.message), bad
    with pytest.raises(ValueError, match="a sequence is a number"):
        table.mutate(b"r", [Contribute(b"s", "now", {b"n:x": 1})])
    assert table.row(b"r") == {b"n:text": b"no number"}


def test_a_table_with_contributions_is_changed_as_any(connection: Connection) -> None:
    table, admin = made(connection, b"moved"), connection.admin
    rows = [b"a", b"b", b"y", b"z"]

    def said(n: int, amount: int | None) -> None:
        for row in rows:
            connection.table(b"moved").mutate(row, [edits(b"s", n, amount), edits(b"t", n, amount)])

    def held(name: bytes) -> set[int]:
        return {connection.table(name).counter_get(row, b"n:edits") for row in rows}

    said(5, 1)
    admin.flush("moved")
    regions = RegionAdmin(connection)
    regions.split(b"moved", b"m")
    said(4, 99)
    assert held(b"moved") == {2}
    for row in rows:
        table.mutate(row, [edits(b"t", 6, None)])
    connection.snapshots.take_snapshot("moved-1", b"moved")
    connection.snapshots.clone_snapshot("moved-1", b"copy")
    regions.merge(*[one.name for one in admin.regions("moved")])
    admin.major_compact("moved")
    said(5, 99)
    assert held(b"moved") == {1}
    connection.table(b"copy").mutate(b"a", [edits(b"t", 5, 50), edits(b"s", 7, 3)])
    assert held(b"copy") == {3, 1}
