"""An HTTP port: one request after the other, bodies both ways, bounds, time, visitors, users, and its end."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import json
import logging
import random
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.coordination.lease_gate import LeaseGate
from columnar.model.accounts import Account
from columnar.security.passwords import Passwords
from columnar.security.sign_in import SignIn
from columnar.wire.browsers import Visitors
from columnar.wire.connection_table import WireLimits
from columnar.wire.http.connection import BODY_PAUSE_S, HEAD_S
from columnar.wire.http_sign_in import HttpUsers
from columnar.wire.tls_context import ServerTls, TlsFiles
from columnar.wire.tls_protocol import Tls
from tests.support.certificates import Authority
from tests.support.deep import seeds
from tests.support.hostile_http import hostile_bytes
from tests.support.toy_http import PIECE, RunningHttp

MIB = 1 << 20
HOSTILE = seeds("hostile connections of an HTTP port", deep=20_000, short=120)


@pytest.fixture(scope="module")
def running() -> Iterator[RunningHttp]:
    one = RunningHttp()
    yield one
    one.stop()


@contextlib.contextmanager
def started(limits: WireLimits | None = None, **options: Any) -> Iterator[RunningHttp]:
    one = RunningHttp(limits, **options)
    try:
        yield one
    finally:
        one.stop()


def until(running: RunningHttp, condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not running.on_loop(condition):
        assert time.monotonic() < ends, "it never became true"


def web(running: RunningHttp) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)


def exchange(running: RunningHttp, *pieces: bytes) -> bytes:
    """Return all that comes back until the server closes."""
    with running.connect() as sock, contextlib.suppress(OSError):
        for piece in pieces:
            sock.sendall(piece)
        whole = b""
        while data := sock.recv(65_536):
            whole += data
        return whole
    return b"reset"


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


LAST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def test_requests_on_one_connection(running: RunningHttp) -> None:
    client = web(running)
    client.request("GET", "/")
    answer = client.getresponse()
    assert (answer.status, answer.read(), answer.headers["Content-Length"]) == (200, b"hello", "5")
    assert answer.headers["Date"].endswith(" GMT")
    client.request("POST", "/echo?a=b", b"x" * 3 * MIB)
    answer = client.getresponse()
    assert answer.read() == b"x" * 3 * MIB
    assert json.loads(answer.headers["X-Facts"]) == {"method": "POST", "query": "a=b", "user": "", "size": 3 * MIB}
    chunked = {"Transfer-Encoding": "chunked"}
    client.request("POST", "/later", iter([b"ab", b"cd"]), chunked, encode_chunked=True)
    assert client.getresponse().read() == b"abcd"
    client.request("GET", "/t/a%2Fb/c/d")
    assert client.getresponse().read() == b"a/b|c/d"
    client.request("DELETE", "/nothing")
    answer = client.getresponse()
    assert (answer.status, answer.headers["Content-Length"], answer.read()) == (204, None, b"")
    client.request("HEAD", "/")
    answer = client.getresponse()
    assert (answer.headers["Content-Length"], answer.read()) == ("5", b"")
    client.close()


def test_bodies_in_chunks(running: RunningHttp) -> None:
    client = web(running)
    for count in (0, 1, 50):
        client.request("GET", f"/pieces/{count}")
        answer = client.getresponse()
        assert answer.headers["Transfer-Encoding"] == "chunked"
        assert answer.read() == PIECE * count
    client.request("HEAD", "/pieces/3")
    answer = client.getresponse()
    assert (answer.headers["Transfer-Encoding"], answer.read()) == ("chunked", b"")
    client.request("GET", "/")
    assert client.getresponse().read() == b"hello"
    client.close()
    old = exchange(running, b"GET /pieces/2 HTTP/1.0\r\n\r\n")
    assert b"Transfer-Encoding" not in old
    assert old.endswith(b"\r\n\r\n" + PIECE * 2)


def test_a_body_that_fails_is_not_taken_for_whole(running: RunningHttp, caplog: pytest.LogCaptureFixture) -> None:
    client = web(running)
    with caplog.at_level(logging.ERROR, "columnar.http"):
        client.request("GET", "/broken")
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            client.getresponse().read()
    client.close()
    assert "the body of a response failed" in caplog.text


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [("/missing", 404, "TableNotFound"), ("/unknown", 504, "OutcomeUnknown"), ("/nowhere", 404, None)],
)
def test_errors_are_problems(running: RunningHttp, path: str, status: int, error: str | None) -> None:
    client = web(running)
    for _ in range(2):  # the connection stays
        client.request("GET", path)
        answer = client.getresponse()
        assert answer.headers["Content-Type"] == "application/problem+json"
        members = json.loads(answer.read())
        assert (answer.status, members["status"], members.get("error")) == (status, status, error)
    client.close()


@pytest.mark.parametrize("path", ["/fault", "/header"])
def test_a_fault_of_a_handler_is_answered_and_logged(
    running: RunningHttp, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    client = web(running)
    with caplog.at_level(logging.ERROR, "columnar.http"):
        client.request("GET", path)
        answer = client.getresponse()
        assert (answer.status, b"no number" in answer.read()) == (500, False)
    assert f"GET {path} failed" in caplog.text
    client.request("GET", "/")
    assert client.getresponse().status == 200
    client.close()


def test_pipelined_requests_are_answered_in_order(running: RunningHttp) -> None:
    sent = [post(path, b"%d" % number) for number in range(50) for path in ("/echo", "/later")]
    whole = exchange(running, b"".join(sent) + LAST)
    bodies = [part.partition(b"\r\n\r\n")[2] for part in whole.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert bodies == [b"%d" % number for number in range(50) for _ in range(2)] + [b"hello"]


def test_while_one_is_served_the_next_wait_within_a_bound() -> None:
    limits = WireLimits(input_bytes=50_000)
    with started(limits) as running, running.connect() as sock:
        sock.sendall(post("/gate", b""))
        assert running.handlers.began.wait(20)
        sock.setblocking(False)
        sent = 0
        piece = post("/echo", b"y" * 10_000)
        with contextlib.suppress(BlockingIOError):
            while True:
                sent += sock.send(piece)
        until(running, lambda: running.server.table.input_bytes > 50_000)
        assert running.server.table.input_bytes < 50_000 + 300_000, "the socket is not read on"
        sock.setblocking(True)
        running.on_loop(running.handlers.gate.set)
        with sock.makefile("rb") as stream:
            assert stream.readline() == b"HTTP/1.1 200 OK\r\n"


def test_a_client_that_does_not_read_is_sent_no_more() -> None:
    limits = WireLimits(output_bytes=2 * MIB)
    with started(limits) as running, running.connect() as sock:
        sock.sendall(b"GET /pieces/4000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(running, lambda: running.server.table.output_bytes >= 2 * MIB)
        assert running.server.table.output_bytes < 3 * MIB
        assert running.handlers.sent < 1_000
        sock.close()
        assert running.handlers.ended.wait(20)
        assert running.handlers.sent < 1_000, "the client had gone"
        until(running, lambda: (len(running.server.table), running.server.table.output_bytes) == (0, 0))


def test_over_the_total_of_unsent_bytes_one_is_closed() -> None:
    limits = WireLimits(output_bytes=4 * MIB, server_output_bytes=6 * MIB)
    with started(limits) as running, contextlib.ExitStack() as stack:
        for _ in range(4):
            sock = stack.enter_context(running.connect())
            sock.sendall(b"GET /pieces/4000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(running, lambda: len(running.server.table) < 4)
        assert running.on_loop(lambda: running.server.table.output_bytes) <= 6 * MIB


def test_over_the_total_of_input_the_largest_is_dropped() -> None:
    limits = WireLimits(message_bytes=10 * MIB, server_input_bytes=4 * MIB)
    with started(limits) as running, running.connect() as large, running.connect() as small:
        small.sendall(post("/echo", bytes(MIB))[:-1])
        large.sendall(post("/echo", bytes(9 * MIB))[: 5 * MIB])
        large.sendall(bytes(4 * MIB + 200))
        assert large.recv(100).startswith(b"HTTP/1.1 503 ")
        small.sendall(b"\x00")
        assert small.recv(100).startswith(b"HTTP/1.1 200 ")
        large.close()
        small.close()
        until(running, lambda: running.server.table.input_bytes == 0)


def test_a_request_that_does_not_fit_beside_the_others() -> None:
    with started(WireLimits(server_input_bytes=12_000)) as running, running.connect() as first:
        first.sendall(post("/gate", bytes(9_000)))
        assert running.handlers.began.wait(20)
        client = web(running)
        client.request("POST", "/echo", bytes(5_000))
        answer = client.getresponse()
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert json.loads(answer.read())["error"] == "CallQueueTooBig"
        client.request("POST", "/echo", b"small")
        assert client.getresponse().read() == b"small"
        client.close()
        running.on_loop(running.handlers.gate.set)


def test_a_client_that_is_lost_while_it_is_served() -> None:
    with started() as running:
        with running.connect() as sock:
            sock.sendall(post("/gate", bytes(9_000)))
            assert running.handlers.began.wait(20)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # its end is a reset
        until(running, lambda: len(running.server.table) == 0)
        running.on_loop(running.handlers.gate.set)
        until(running, lambda: not running.server._tasks)
        assert (running.server.table.input_bytes, running.server.table.output_bytes) == (0, 0)


def test_more_connections_than_the_bound() -> None:
    with started(WireLimits(connections=1)) as running, running.connect() as first:
        first.sendall(post("/echo", b"1"))
        assert first.recv(100)
        assert exchange(running, post("/echo", b"2")) in (b"", b"reset")


def test_a_request_that_comes_too_slowly() -> None:
    with started() as running, contextlib.ExitStack() as stack:
        head, body, idle = (stack.enter_context(running.connect()) for _ in range(3))
        head.sendall(b"GET / HTTP/1.1\r\n")
        body.sendall(post("/echo", b"12")[:-1])
        idle.sendall(post("/echo", b"12"))
        assert idle.recv(1_000)
        until(running, lambda: running.server.table.input_bytes >= 17)

        def age(seconds: float) -> None:
            now_s = running.loop.time()
            for one in running.server._connections():
                one.check_time(now_s + seconds)

        running.on_loop(lambda: age(HEAD_S - 5))
        running.on_loop(lambda: age(HEAD_S + 1))
        assert head.recv(1_000).startswith(b"HTTP/1.1 408 ")
        running.on_loop(lambda: age(BODY_PAUSE_S + 1))
        assert body.recv(1_000).startswith(b"HTTP/1.1 408 ")
        running.on_loop(lambda: age(1e6))
        idle.sendall(post("/echo", b"12"))
        assert idle.recv(1_000).startswith(b"HTTP/1.1 200 "), "connections between requests have no timeout"


def test_100_continue(running: RunningHttp) -> None:
    with running.connect() as sock:
        sock.sendall(post("/later", b"ab", "Expect: 100-continue")[:-2])
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"ab")
        assert sock.recv(100).startswith(b"HTTP/1.1 200 ")


def test_a_handler_learns_that_its_client_has_gone(running: RunningHttp) -> None:
    running.handlers.began.clear()
    running.on_loop(running.handlers.gate.clear)
    with running.connect() as sock:
        sock.sendall(post("/gate", b""))
        assert running.handlers.began.wait(20)
        sock.shutdown(socket.SHUT_WR)
        running.on_loop(running.handlers.gate.set)
        whole = b""
        while data := sock.recv(1_000):
            whole += data
        assert whole.endswith(b"gone")


@pytest.mark.parametrize("is_expensive", [False, True])
def test_expensive_connections_share_the_budget_of_the_loop(is_expensive: bool) -> None:
    with started() as running, running.connect() as sock:
        before = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n" if is_expensive else post("/echo", b"1")
        until(running, lambda: len(running.server.table) == 1)
        (connection,) = running.server._connections()
        for _ in range(100):  # a busy machine may take the time slice of a cheap request
            sock.sendall(before)
            assert sock.recv(1_000).startswith(b"HTTP/1.1 200 ")
            if running.on_loop(lambda: connection._is_expensive) == is_expensive:
                break

        def receive_after_others() -> bool:
            running.server.loop_budget.spend(1.0)
            connection.data_received(post("/echo", b"2"))
            return connection._resting

        assert running.on_loop(receive_after_others) == is_expensive
        assert sock.recv(1_000).endswith(b"2")


def test_pages_are_visitors() -> None:
    origin = "https://app.example"
    with started(visitors=Visitors.of("127.0.0.1", [origin])) as running:
        assert b" 403 " in exchange(running, LAST.replace(b"localhost", b"rebound.example"))
        assert b" 403 " in exchange(running, post("/echo", b"", "Origin: https://evil.example"))
        assert b" 200 " in exchange(running, post("/echo", b"", "Content-Type: text/plain", "Connection: close"))
        allowed = exchange(running, post("/echo", b"", f"Origin: {origin}", "Connection: close"))
        assert f"Access-Control-Allow-Origin: {origin}\r\n".encode() in allowed
        asked = f"OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n"
        asked += "Access-Control-Request-Method: PUT\r\n\r\n"
        preflight = exchange(running, asked.encode())
        assert preflight.startswith(b"HTTP/1.1 204 ")
        assert b"Access-Control-Allow-Methods: PUT\r\n" in preflight
        assert b" 403 " in exchange(running, asked.replace(origin, "https://evil.example").encode())
        assert b" 415 " in exchange(running, post("/echo", b"x", "Content-Encoding: gzip"))


def test_users() -> None:
    passwords = Passwords(memory_kib=64)
    sign_in = SignIn(passwords)
    sign_in.take_accounts({"ada": Account("ada", passwords.hashed("right password"))})
    with started(users=HttpUsers(sign_in)) as running:
        client = web(running)
        right = base64.b64encode(b"ada:right password").decode()
        wrong = base64.b64encode(b"ada:wrong password").decode()
        for authorization, status, user in [
            ("", 200, ""),
            (f"Basic {right}", 200, "ada"),
            (f"Basic {right}", 200, "ada"),
            (f"Basic {wrong}", 401, ""),
            ("Bearer nothing", 401, ""),
            ("Magic x", 401, ""),
        ]:
            client.request("POST", "/echo", b"", {"Authorization": authorization} if authorization else {})
            answer = client.getresponse()
            answer.read()
            assert answer.status == status, authorization
            if status == 200:
                assert json.loads(answer.headers["X-Facts"])["user"] == user
            else:
                assert "Basic" in answer.headers["WWW-Authenticate"]
        client.close()


def test_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    pair = authority.sign("localhost")
    tls = Tls(ServerTls.read(TlsFiles(pair.cert, pair.key)))
    with started(tls=tls) as running:
        context = ssl.create_default_context(cafile=authority.ca)
        client = http.client.HTTPSConnection("127.0.0.1", running.port, timeout=20, context=context)
        client.request("GET", "/pieces/40")
        assert client.getresponse().read() == PIECE * 40
        client.request("POST", "/echo", b"x" * MIB)
        assert client.getresponse().read() == b"x" * MIB
        client.close()
        assert b"HTTP/1.1 200" not in exchange(running, LAST)


def test_a_server_that_leaves() -> None:
    with started() as running, running.connect() as busy, running.connect() as idle:
        idle.sendall(post("/echo", b"1"))
        assert idle.recv(1_000)
        busy.sendall(post("/gate", b"") + LAST)
        assert running.handlers.began.wait(20)
        leaving = asyncio.run_coroutine_threadsafe(running.server.leave(), running.loop)
        assert idle.recv(1_000) == b""
        with pytest.raises(ConnectionRefusedError):
            running.connect()
        running.on_loop(running.handlers.gate.set)
        with busy.makefile("rb") as stream:
            whole = stream.read()
        assert whole.endswith(b"Connection: close\r\n\r\nwaited"), "it is the last answer"
        leaving.result(20)


def test_a_client_that_comes_as_the_server_leaves() -> None:
    with started() as running:
        running.server.is_leaving = True  # before it has stopped listening
        with running.connect() as sock:
            assert sock.recv(1) == b""


def test_a_handler_that_never_ends_does_not_keep_the_server() -> None:
    running = RunningHttp()
    with running.connect() as sock:
        sock.sendall(post("/gate", b""))
        assert running.handlers.began.wait(20)
        running.call(running.server.close(0.05))
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""
        assert not running.server._tasks
    running.loop.call_soon_threadsafe(running.loop.stop)
    running.thread.join(5)
    running.loop.close()


def test_a_server_that_stops_finishes_what_has_begun() -> None:
    running = RunningHttp()
    with running.connect() as busy, running.connect() as stuck:
        busy.sendall(post("/gate", b""))
        assert running.handlers.began.wait(20)
        stuck.sendall(b"GET /pieces/4000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        closing = asyncio.run_coroutine_threadsafe(running.server.close(0.5), running.loop)
        running.on_loop(running.handlers.gate.set)
        assert b"waited" in busy.recv(1_000)
        closing.result(20)
        assert running.handlers.ended.wait(20), "a body that nobody reads is given up"
    running.loop.call_soon_threadsafe(running.loop.stop)
    running.thread.join(5)
    running.loop.close()


def test_responses_leave_only_while_the_lease_holds() -> None:
    holds = [False]
    with started(gate=LeaseGate(lambda: holds[0])) as running, running.connect() as sock:
        sock.sendall(post("/echo", b"1") + b"GET /pieces/100 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        sock.settimeout(20)
        holds[0] = True
        whole = b""
        while not whole.endswith(b"\r\n0\r\n\r\n"):
            whole += sock.recv(MIB)
        assert whole.count(b"HTTP/1.1 200 OK") == 2
        assert len(whole) > 100 * len(PIECE)


def test_hostile_connections_are_answered_or_closed(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever comes, something comes back or the connection ends; the server still serves, and keeps nothing."""
    caplog.set_level(logging.CRITICAL, "columnar.http")
    limits = WireLimits(message_bytes=100_000, drained_bytes=1_000_000, server_input_bytes=4 * MIB)
    with started(limits) as running:
        for seed in range(HOSTILE):
            rng = random.Random(seed)
            wire = hostile_bytes(rng).replace(b" /p", rng.choice((b" /echo", b" /later", b" /t/a", b" /pieces/1")))
            with running.connect() as sock, contextlib.suppress(OSError):
                sock.sendall(wire)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65_536):
                    pass
            if seed % 20 == 0:
                assert b"hello" in exchange(running, LAST), seed
        until(running, lambda: len(running.server.table) == 0)
        table = running.server.table
        assert (table.input_bytes, table.output_bytes, len(running.server._tasks)) == (0, 0, 0)
