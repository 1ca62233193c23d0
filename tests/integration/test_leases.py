"""Leases through a real store: the page's example, a holder that stalls, a killed server's successor, the command."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from columnar.client import Connection, Expect, IllegalArgument, LeaseLost, LeaseNotFree, Put
from columnar.client.errors import IOError, WrongArgument
from columnar.client.leases import Lease
from tests.support.readme_blocks import blocks_of
from tests.support.shell import Shell
from tests.support.store_thread import StoreThread

PAGE = Path(__file__).parents[2] / "docs" / "leases.md"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("leases")) as made:
        yield made


@pytest.fixture
def connection(store: StoreThread) -> Iterator[Connection]:
    made = store.connection()
    yield made
    made.close()


def test_the_example_of_the_page(store: StoreThread, connection: Connection) -> None:
    connection.create_table("jobs", {"job": {}})
    (example,) = blocks_of(PAGE.read_text())
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(example.text.replace("9090", str(store.port)), str(PAGE), "exec"), {})
    expected = [line.rpartition("  # ")[2] for line in example.text.splitlines() if "print(" in line]
    assert printed.getvalue().splitlines() == expected


def test_a_lease_renews_itself_and_the_next_gets_it_when_it_is_released(store: StoreThread) -> None:
    first, second = store.connection(), store.connection()
    mine = first.lease("renewed", ttl_ms=2_000)
    other = second.lease("renewed", ttl_ms=2_000, wait_ms=20_000)
    got: list[tuple[int, float]] = []

    def take() -> None:
        with other as lease:
            got.append((lease.token, time.monotonic()))

    assert mine.acquire()
    assert not other.acquire()
    taking = threading.Thread(target=take)
    taking.start()
    ends_s = mine._ends_s
    while mine._ends_s < ends_s + 0.6:  # renewals moved it
        mine.require()
        threading.Event().wait(0.01)
    assert (mine.is_held, mine.token, got) == (True, 1, [])
    released_s = time.monotonic()
    mine.release()
    taking.join(20)
    assert got[0][0] == 2
    assert got[0][1] >= released_s
    with pytest.raises(LeaseLost, match="does not hold lease renewed"):
        mine.require()


def test_a_holder_that_is_not_renewed_in_time_knows_it_first(store: StoreThread, connection: Connection) -> None:
    now_s = 0.0
    mine = Lease(connection, "stalled", 60_000, 0, "stalled:1", now_s=lambda: now_s)
    assert mine.acquire()
    now_s = 60.0  # its process stood still, and the server has not counted so far
    assert not mine.is_held
    with pytest.raises(LeaseLost):
        _ = mine.token
    now_s = 59.0
    with pytest.raises(LeaseLost):
        _ = mine.token_bytes
    mine.release()
    with pytest.raises(LeaseLost), connection.lease("stalled") as again:  # noqa: PT012
        connection.leases.revoke("stalled")
        again._is_lost = True  # as its thread finds it


def test_an_older_holder_is_refused_by_its_token(connection: Connection) -> None:
    connection.create_table("fenced", {"f": {}})
    table, fence = connection.table("fenced"), b"f:fence"

    def write(token: bytes, value: bytes) -> bool:
        result = table.check_and_mutate(b"r", [Expect.fence(fence, token)], [Put(fence, token), Put(b"f:v", value)])
        return result.applied

    one, two = ((n).to_bytes(8, "big") for n in (1, 2))
    assert [write(one, b"a"), write(one, b"b"), write(two, b"c"), write(one, b"d")] == [True, True, True, False]
    assert table.row(b"r")[b"f:v"] == b"c"
    table.put(b"r", {fence: b"no token"[:3]})
    assert not write(two, b"e"), "a cell that is no token refuses everybody"
    with pytest.raises(IllegalArgument, match="takes the 8 bytes of a lease's token, not 3"):
        write(b"abc", b"f")


def test_the_table_is_written_by_the_store_alone(connection: Connection) -> None:
    table = connection.table("columnar:leases")
    for write in (lambda: table.put(b"import", {b"lease:state": b""}), lambda: table.delete(b"import")):
        with pytest.raises(IOError, match="written by the store alone"):
            write()


def test_the_command(store: StoreThread, connection: Connection) -> None:
    shell = Shell(f"127.0.0.1:{store.port}")
    mine = connection.lease("nightly", ttl_ms=60_000, holder="worker7")
    assert mine.acquire()
    with pytest.raises(WrongArgument, match="is held already"):
        mine.acquire()
    shown = shell.out("lease", "show", "nightly")
    assert "worker7:" in shown
    assert "nightly\tworker7:" in shell.out("lease", "list")
    with pytest.raises(LeaseNotFree, match="lease nightly was not free within 1 ms"):
        connection.lease("nightly", wait_ms=1).__enter__()
    assert "worker7:" in shell.out("lease", "release", "nightly", "--yes", "--json")
    assert json.loads(shell.out("lease", "release", "nightly", "--json")) == {"lease": "nightly", "holder": ""}
    assert connection.leases.show("nightly").token == 1
    assert [one.name for one in connection.leases.list() if one.name == "nightly"] == []
    mine.release()


def test_a_holder_whose_text_is_no_utf8_is_shown_and_revoked(store: StoreThread, connection: Connection) -> None:
    shell = Shell(f"127.0.0.1:{store.port}")
    given = connection.call("columnarLease", b"raw", b"java\xff:1", 60_000, 0, 0)
    assert given.held
    assert "java\ufffd:1" in shell.out("lease", "show", "raw")
    shell.out("lease", "release", "raw", "--yes")
    assert connection.leases.show("raw").holder == ""
    assert connection.call("columnarLease", b"raw", b"other", 60_000, 0, 0).held
    assert connection.leases.revoke("raw").holder == "other"


def test_a_lease_that_went_to_another_holder_meanwhile_is_taken_from_that_one(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, meanwhile = connection.call, [b"second", b"third"]
    call("columnarLease", b"busy", b"first", 60_000, 0, 0)

    def call_late(method: str, *args: Any) -> Any:
        _, holder, _, token, _ = args
        if token and meanwhile:
            assert not call(method, b"busy", holder, 0, token, 0).held
            assert call(method, b"busy", meanwhile.pop(0), 60_000, 0, 0).held
        return call(method, *args)

    monkeypatch.setattr(connection, "call", call_late)
    assert connection.leases.revoke("busy").holder == "third"
    assert connection.leases.show("busy").holder == ""
