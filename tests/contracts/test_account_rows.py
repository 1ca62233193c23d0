"""Steps on one row: what accounts count on, held against Columnar, a plain HBase's way, and the rows in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.support.memory_rows import MemoryRows
from tests.support.store_thread import StoreThread
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import SITE, USERS
from wikka_port.pages import Wiki


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with StoreThread(tmp_path_factory.mktemp("rows")) as store:
        made = Wiki("127.0.0.1", store.port, indexes="application")
        made.prepare()
        yield made
        made.store.close()


@pytest.fixture(params=["memory", "columnar", "plain"])
def rows(request: pytest.FixtureRequest, wiki: Wiki) -> Iterator[Rows]:
    if request.param == "memory":
        yield MemoryRows()
        return
    wiki.store._is_columnar = request.param == "columnar"
    made = Rows(wiki.store)
    for table in (USERS, SITE):
        for row, _ in list(made.scan(table)):
            made.delete(table, row)
    yield made


A, B, C, SESSION = b"account:id", b"account:name", b"account:email", b"session:one"


def test_cells_are_put_read_and_deleted(rows: Rows) -> None:
    assert rows.row(USERS, b"ada") == {}
    rows.put(USERS, b"ada", {A: b"1", B: b"Ada", SESSION: b"s", b"session:two": b"t"})
    assert rows.row(USERS, b"ada", [A, b"session"]) == {A: b"1", SESSION: b"s", b"session:two": b"t"}
    assert rows.row(USERS, b"ada", [A, SESSION]) == {A: b"1", SESSION: b"s"}
    rows.delete(USERS, b"ada", [SESSION])
    assert rows.row(USERS, b"ada", [b"session"]) == {b"session:two": b"t"}
    rows.delete(USERS, b"ada", [b"session"])
    assert rows.row(USERS, b"ada") == {A: b"1", B: b"Ada"}
    rows.delete(USERS, b"ada")
    assert rows.row(USERS, b"ada") == {}


def test_rows_and_scans(rows: Rows) -> None:
    for name in (b"a", b"b", b"c"):
        rows.put(USERS, name, {A: name, **({C: b"x"} if name == b"b" else {})})
    assert rows.rows(USERS, []) == {}
    assert rows.rows(USERS, [b"a", b"nobody"]) == {b"a": {A: b"a"}}
    assert [row for row, _ in rows.scan(USERS, b"b")] == [b"b", b"c"]
    assert [row for row, _ in rows.scan(USERS, limit=2)] == [b"a", b"b"]
    assert list(rows.scan(USERS, columns=[C])) == [(b"b", {C: b"x"})]


def test_a_scan_goes_on_behind_its_steps(rows: Rows) -> None:
    for number in range(405):
        rows.put(SITE, b"%03d" % number, {b"secret:key": b"x"})
    assert [row for row, _ in rows.scan(SITE)] == [b"%03d" % number for number in range(405)]
    assert len(list(rows.scan(SITE, limit=300))) == 300


def test_a_change_holds_or_writes_nothing(rows: Rows) -> None:
    assert rows.change(USERS, b"ada", {A: None}, {A: b"1", B: b"Ada"})
    assert not rows.change(USERS, b"ada", {A: None}, {A: b"2", B: b"Eve"})
    assert rows.row(USERS, b"ada") == {A: b"1", B: b"Ada"}
    assert not rows.change(USERS, b"ada", {A: b"2"}, {C: b"e@x"})
    assert rows.change(USERS, b"ada", {A: b"1"}, {C: b"a@x", B: b"ADA"}, [b"session"])
    assert rows.row(USERS, b"ada") == {A: b"1", B: b"ADA", C: b"a@x"}


def test_a_change_deletes_other_families(rows: Rows) -> None:
    rows.put(USERS, b"ada", {A: b"1", SESSION: b"s"})
    assert rows.change(USERS, b"ada", {A: b"1"}, {B: b"Ada"}, [b"session"])
    assert rows.row(USERS, b"ada") == {A: b"1", B: b"Ada"}


def test_a_change_that_is_repeated_as_it_was_has_come_through(rows: Rows) -> None:
    """Its answer was lost: the first cell is told from everybody else's."""
    for _ in range(2):
        assert rows.change(USERS, b"ada", {A: None}, {A: b"mine", B: b"Ada"})


def test_of_many_that_take_a_row_at_once_one_gets_it(rows: Rows) -> None:
    won: list[bytes] = []
    start = threading.Barrier(4)

    def take(mine: bytes) -> None:
        start.wait(10)
        if rows.change(USERS, b"ada", {A: None}, {A: mine, B: mine}):
            won.append(mine)

    threads = [threading.Thread(target=take, args=(b"%d" % number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(won) == 1
    assert rows.row(USERS, b"ada") == {A: won[0], B: won[0]}
