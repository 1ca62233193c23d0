"""Real clients on loopback against a toy service, in the four combinations of transport and protocol."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator

import happybase
import pytest

from tests.support.toy_wire import (
    EMPTY_GET,
    Running,
    call,
    close_gate,
    framed,
    get,
    increment,
    open_socket,
    receive,
    reply_of,
    serves,
    until_closed,
)


@pytest.fixture
def running() -> Iterator[Running]:
    server = Running()
    yield server
    server.stop()


@pytest.mark.parametrize("transport", ["buffered", "framed"])
@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_happybase_in_all_combinations(running: Running, transport: str, protocol: str) -> None:
    connection = happybase.Connection("127.0.0.1", running.port, transport=transport, protocol=protocol, timeout=10_000)
    table = connection.table("t")
    assert connection.tables() == [b"t1", b"t2"]
    with table.batch() as batch:
        for n in range(300):
            batch.put(b"row%03d" % n, {b"f:a": b"x" * 1000, b"f:b": b"%d" % n})
    assert table.row(b"row007") == {b"f:a": b"x" * 1000, b"f:b": b"7"}
    assert table.row(b"none") == {}
    rows = dict(table.scan(batch_size=100))
    assert len(rows) == 300
    assert rows[b"row299"][b"f:b"] == b"299"
    assert list(dict(table.scan(sorted_columns=True))[b"row000"]) == [b"f:a", b"f:b"]
    assert table.counter_inc(b"r", b"f:c", 41) == 42
    connection.close()


# --- raw bytes ---------------------------------------------------------------------------------------


def test_pipelined_replies_keep_their_order(running: Running) -> None:
    running.call(close_gate(running.service))
    with open_socket(running) as sock:
        sock.sendall(framed(increment(1, b"slow")) + framed(get(2, b"after")) + framed(get(3, b"last")))
        assert serves(running)  # others do not wait
        assert running.service.calls == [b"slow", b"r"]
        running.loop.call_soon_threadsafe(running.service.gate.set_result, None)
        assert [reply_of(sock)[2] for _ in range(3)] == [1, 2, 3]
    assert running.service.calls == [b"slow", b"r", b"after", b"last"]


def test_a_call_that_is_cancelled_says_that_nobody_knows_its_outcome(running: Running) -> None:
    running.call(close_gate(running.service))
    with open_socket(running) as sock:
        sock.sendall(framed(increment(1, b"slow")) + framed(get(2)))
        assert serves(running)
        running.loop.call_soon_threadsafe(running.service.gate.cancel)
        kind, name, seqid, rest = reply_of(sock)[:4]
        assert (kind, name, seqid) == (2, b"atomicIncrement", 1)
        assert b"CallTimeoutException: the server stopped before this was done" in rest
        assert reply_of(sock)[2] == 2


def test_thousands_pipelined(running: Running) -> None:
    with open_socket(running) as sock:
        sock.sendall(b"".join(get(n) for n in range(5000)))
        size = len(EMPTY_GET % b"1234")
        data = receive(sock, 5000 * size)
    assert data == b"".join(EMPTY_GET % struct.pack(">i", n) for n in range(5000))


@pytest.mark.parametrize("kind", [0, 2, 3, 9])
def test_what_is_no_call_is_told_so(running: Running, kind: int) -> None:
    with open_socket(running) as sock:
        sock.sendall(framed(get(4, kind=kind)) + framed(get(5)))
        answer, name, seqid, rest = reply_of(sock)
        assert (answer, name, seqid, rest[-5:]) == (3, b"get", 4, b"\x00\x00\x00\x02\x00")
        assert reply_of(sock)[2] == 5


def test_a_oneway_call_is_served_without_a_reply(running: Running) -> None:
    with open_socket(running) as sock:
        sock.sendall(framed(get(4, b"oneway", kind=4)) + framed(get(5)))
        assert reply_of(sock)[2] == 5
    assert running.service.calls == [b"oneway", b"r"]


def test_errors(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    with open_socket(running) as sock:
        sock.sendall(b"".join(map(framed, [call(b"frob", 1), get(2, b"caller"), get(3, b"bug"), get(4)])))
        kind, name, seqid, rest = reply_of(sock)
        assert (kind, name, seqid) == (3, b"frob", 1)
        assert b"Invalid method name: 'frob'" in rest
        assert rest.endswith(b"\x08\x00\x02\x00\x00\x00\x01\x00")
        kind, name, seqid, rest = reply_of(sock)
        assert (kind, name, seqid) == (2, b"get", 2)
        assert b"DoNotRetryIOException: bad row" in rest
        kind, name, seqid, rest = reply_of(sock)
        assert (kind, name, seqid) == (3, b"get", 3)
        assert rest.endswith(b"\x08\x00\x02\x00\x00\x00\x06\x00")
        assert reply_of(sock)[2] == 4
    assert "ZeroDivisionError" in caplog.text


def test_every_request_is_observed(running: Running) -> None:
    requests = [get(1), get(2, b"caller"), get(3, b"bug"), call(b"frob", 4), increment(5, b"r"), get(6, kind=4), get(7)]
    with open_socket(running) as sock:
        sock.sendall(b"".join(map(framed, requests)))
        for _ in range(6):
            reply_of(sock)
    assert [(method, error) for method, error, _, _ in running.observed] == [
        ("get", None),
        ("get", "CallerError"),
        ("get", "ZeroDivisionError"),
        ("unknown", "TApplicationException"),
        ("atomicIncrement", None),
        ("get", None),
        ("get", None),
    ]
    assert [size for _, _, size, _ in running.observed] == list(map(len, requests))
    assert [size for _, _, _, size in running.observed][-2:] == [0, 24]


def test_a_malformed_argument_is_answered_and_closed(running: Running) -> None:
    with open_socket(running) as sock:
        sock.sendall(framed(call(b"get", 1, b"\x55\x00\x01")))
        kind, name, seqid, rest = reply_of(sock)
        assert (kind, name, seqid) == (3, b"get", 1)
        assert rest.endswith(b"\x08\x00\x02\x00\x00\x00\x07\x00")
        assert until_closed(sock) == b""
    assert serves(running)


def test_http_gets_an_answer_in_http(running: Running) -> None:
    with open_socket(running) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = until_closed(sock)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 405 ")
    assert b"Content-Length: %d" % len(body) in head
    assert b"Thrift" in body


@pytest.mark.parametrize(
    "junk", [b"SSH-2.0-x\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01", b"\xff" * 64, b"\x7f\xff\xff\xff\x80\x01"]
)
def test_what_is_no_thrift_is_closed_with_one_line(
    running: Running, junk: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with open_socket(running) as sock:
        sock.sendall(junk)
        assert until_closed(sock) == b""
    assert serves(running)
    assert len([record for record in caplog.records if "closed:" in record.getMessage()]) == 1


def test_three_hundred_connections(running: Running) -> None:
    held = [open_socket(running) for _ in range(300)]
    for n, sock in enumerate(held):
        sock.sendall(framed(get(n)))
    assert [reply_of(sock)[2] for sock in held] == list(range(300))
    assert running.server.connections == 300
    for sock in held:
        sock.close()
    assert serves(running)


def test_closing_finishes_the_call_in_flight() -> None:
    running = Running()
    running.call(close_gate(running.service))
    with open_socket(running) as sock, open_socket(running) as idle:
        sock.sendall(framed(increment(1, b"slow")) + framed(get(2)))
        idle.sendall(get(1))
        receive(idle, 24)
        closing = asyncio.run_coroutine_threadsafe(running.server.close(5), running.loop)
        until_closed(idle)
        running.loop.call_soon_threadsafe(running.service.gate.set_result, None)
        assert reply_of(sock)[2] == 1
        assert until_closed(sock) == b""
        closing.result(5)
    assert sorted(running.service.closed) == [1, 2]
    running.stop()


def test_the_grace_ends() -> None:
    running = Running()
    running.call(close_gate(running.service))
    with open_socket(running) as sock:
        sock.sendall(framed(increment(1, b"slow")))
        assert serves(running)
        running.call(running.server.close(0.05))
        assert until_closed(sock) == b""
    running.loop.call_soon_threadsafe(running.service.gate.set_result, None)
    running.stop()
