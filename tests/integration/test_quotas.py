"""Quotas of tables over the wire: happybase, the Thrift 2 service, and administration while a store serves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import happybase
import pytest
from happybase import Table

from columnar.client import Admin
from columnar.client.errors import IllegalArgument, IOError
from tests.support.serving import Serving
from tests.support.thrift2_client import H, cell, put, served
from tests.support.thrift2_client import connect as connect2

WAIT = re.compile(rb"RpcThrottlingException: number of (read|write) requests exceeded - wait (\d+)ms; table q has ")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("quotas") / "data") as running:
        yield running


@pytest.fixture
def admin(serving: Serving) -> Iterator[Admin]:
    connection = serving.connect()
    yield connection.admin
    connection.admin.drop("q", disable=True)
    connection.close()


@pytest.fixture
def plain(serving: Serving) -> Iterator[happybase.Connection]:
    connection = happybase.Connection("127.0.0.1", serving.store.port)
    yield connection
    connection.close()


def refused(call: Callable[[], Any]) -> tuple[bytes, int]:
    """Reads or writes, and the wait; the call must be refused by a quota of requests."""
    with pytest.raises(IOError) as raised:
        call()
    found = WAIT.match(raised.value.message)
    assert found is not None, raised.value.message
    return found[1], int(found[2])


def test_happybase_hears_the_wait_and_reads_and_writes_are_apart(admin: Admin, plain: happybase.Connection) -> None:
    admin.create_table("q", {"f": None}, {"THROTTLE": "write:3req/hour, read: 2 REQ/hour"})
    table: Table = plain.table("q")
    with table.batch() as batch:
        for number in range(5):  # over the limit: done whole, and paid for afterwards
            batch.put(b"r%d" % number, {b"f:q": b"v"})
    writes, wait_ms = refused(lambda: table.put(b"r9", {b"f:q": b"v"}))
    assert (writes, wait_ms // 100_000) == (b"write", 35), "2 requests are owed, and one is wanted, of 3 an hour"
    assert refused(lambda: table.delete(b"r1"))[0] == b"write"
    assert refused(lambda: table.counter_inc(b"r1", b"f:n"))[0] == b"write"
    assert table.row(b"r1") == {b"f:q": b"v"}
    assert table.row(b"r9") == {}
    assert refused(lambda: table.row(b"r1"))[0] == b"read"
    assert refused(lambda: table.rows([b"r1", b"r2"]))[0] == b"read"
    assert refused(lambda: list(table.scan()))[0] == b"read"
    admin.alter_table("q", attributes={"THROTTLE": ""})
    assert len(list(table.scan())) == 5


def test_it_is_shown_changed_and_kept_over_an_alter_of_something_else(
    admin: Admin, plain: happybase.Connection, serving: Serving
) -> None:
    admin.create_table("q", {"f": None}, {"THROTTLE": "1000req/sec,10M/s"})
    assert admin.describe("q").attributes == {"THROTTLE": "1000req/s,10MB/s"}
    admin.alter_table("q", attributes={"THROTTLE": "write:1req/hour"})
    table: Table = plain.table("q")
    table.put(b"r", {b"f:q": b"v"})
    assert refused(lambda: table.put(b"r", {b"f:q": b"v"}))[0] == b"write"
    admin.alter_table("q", add={"g": None}, attributes={"MAX_FILESIZE": 1 << 30})
    assert admin.describe("q").attributes == {"THROTTLE": "write:1req/hour", "MAX_FILESIZE": str(1 << 30)}
    assert refused(lambda: table.put(b"r", {b"g:q": b"v"}))[0] == b"write"
    found = serving.store.pages().descriptions.find(b"q")
    assert found is not None
    assert found.is_throttled
    admin.alter_table("q", attributes={"THROTTLE": "write:2req/hour"})
    table.put(b"r", {b"g:q": b"v"})


def test_wrong_values_are_refused_with_the_right_form_and_change_nothing(admin: Admin) -> None:
    admin.create_table("q", {"f": None}, {"THROTTLE": "5req/s"})
    for wrong in ("5", "5req", "0req/s", "read:5req/s,read:6req/s", "5req/month"):
        with pytest.raises(IllegalArgument, match="THROTTLE takes"):
            admin.alter_table("q", attributes={"THROTTLE": wrong})
        with pytest.raises(IllegalArgument, match="THROTTLE takes"):
            admin.create_table("other", {"f": None}, {"THROTTLE": wrong})
    assert admin.describe("q").attributes == {"THROTTLE": "5req/s"}
    assert not admin.exists("other")


def test_the_two_services_share_a_quota(admin: Admin, plain: happybase.Connection, serving: Serving) -> None:
    admin.create_table("q", {"f": None}, {"THROTTLE": "write:2req/hour"})
    client = connect2(serving)
    client.put(b"q", put(b"r", cell(b"f", b"q")))
    plain.table("q").put(b"r", {b"f:q": b"v"})
    with pytest.raises(H.TIOError, match="RpcThrottlingException: number of write requests exceeded - wait") as raised:
        client.put(b"q", put(b"r", cell(b"f", b"q")))
    assert raised.value.canRetry
    with pytest.raises(H.TIOError, match="RpcThrottlingException"):
        client.putMultiple(b"q", [put(b"r", cell(b"f", b"q"))])
    assert client.get(b"q", H.TGet(row=b"r")).columnValues
    described = client.getTableDescriptor(H.TTableName(ns=b"default", qualifier=b"q"))
    assert described.attributes[b"THROTTLE"] == b"write:2req/hour"
    client.close()
