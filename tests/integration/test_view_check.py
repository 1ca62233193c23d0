"""A view that somebody damaged: a check over the wire says where, as people see it, and a repair sets it right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.client import Connection, Source, View
from columnar.client.errors import IOError as Refused
from columnar.model.mutation import Delete, Operation, Put, RowMutation
from columnar.views import view_check_peer_handlers
from tests.support.serving import Serving
from tests.support.shell import Shell

VIEW = View("authors", Source("pages", key=("meta:author",), sums={"size": "meta:size"}, order="meta:size desc"))


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    store = Serving(tmp_path / "store").start()
    connection = store.connect()
    connection.create_table("pages", {"meta": {}}, splits=[b"p2"])
    with connection.table("pages").batch() as batch:
        for number in range(30):
            batch.put(b"p%02d" % number, {b"meta:author": b"ab"[number % 2 :][:1], b"meta:size": b"%d" % number})
    connection.views.add(VIEW)
    assert connection.views.wait("authors", timeout_ms=60_000)
    yield store
    store.stop()


def damage(serving: Serving, group: bytes, *operations: Operation) -> None:
    """Past the door that lets nobody write a view."""

    def write() -> None:
        access = serving.store.serving.operations.access
        region = access.region_for(access.table(b"authors"), group)
        region.apply(RowMutation(group, operations))

    serving.do(write)


def counts(connection: Connection, *, repair: bool = False) -> tuple[int, int]:
    report = connection.views.check("authors", repair=repair)
    return report.wrong, report.repaired


def test_damage_is_said_and_repaired(serving: Serving) -> None:
    connection = serving.connect()
    shell = Shell(f"127.0.0.1:{serving.store.port}")
    assert counts(connection) == (0, 0)
    damage(serving, b"a", Put(b"v", b"size", b"\0" * 8), Delete(b"m", b"p04"))
    damage(serving, b"c", Put(b"o", b"\x80\0\1stray", b"\0\0"))
    report = connection.views.check("authors")
    assert [(one.kind, one.row, one.text) for one in report.findings] == [
        ("row", b"p04", "group a has nothing of it"),
        ("group", b"a", "its totals and its order are not those of its members"),
        ("group", b"c", "its order is not that of its members"),
    ]
    said = shell("view", "check", "authors")
    assert said.exit_code == 1
    assert "row p04 of pages: group a has nothing of it" in said.stdout
    assert "view authors is wrong in 3 places; 'columnar view check authors --repair'" in said.stderr
    assert shell.json("view", "check", "authors", "--repair")["repaired"] == 3
    assert counts(connection) == (0, 0)
    group = connection.view("authors").get(b"a")
    assert (group.count, group.sums["size"], group.highest) == (15, sum(range(0, 30, 2)), 28)
    assert [one.key for one in connection.view("authors").groups()] == [b"a", b"b"]


def test_a_check_goes_in_parts(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_check_peer_handlers, "SLICE_S", 0.0)
    damage(serving, b"b", Delete(b"m", b"p05"), Delete(b"m", b"p29"))
    connection = serving.connect()
    assert counts(connection) == (3, 0)
    assert counts(connection, repair=True) == (3, 3)
    assert counts(connection) == (0, 0)


def test_what_cannot_be_checked(serving: Serving) -> None:
    with pytest.raises(Refused, match="there is no view nobody"):
        serving.connect().views.check("nobody")
