"""Replies leave only while the gate is open: withheld ones go out whole and in order, or their connection is closed."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.coordination.lease_gate import LeaseGate
from columnar.wire.server import WireLimits, WireServer
from columnar.wire.tls_context import ServerTls, TlsFiles
from columnar.wire.tls_protocol import Tls
from tests.support.certificates import Authority
from tests.support.seeds import seed
from tests.support.toy_wire import Running, call, framed, get, increment, open_socket, receive, text, until_closed

SILENCE_S = 0.15  # some gate retries
LARGE_BYTES = 3 << 20


class Lease:
    """A lease in the test's hand."""

    def __init__(self) -> None:
        self.is_valid = True
        self.rest_of_questions: int | None = None  # that are answered with yes, before it ends

    def __call__(self) -> bool:
        if self.rest_of_questions is not None:
            self.rest_of_questions -= 1
            self.is_valid = self.rest_of_questions >= 0
        return self.is_valid


class Gated(Running):
    def __init__(self, wait_s: float = 20.0, limits: WireLimits | None = None, tls: Tls | None = None) -> None:
        self.lease = Lease()
        self.gate = LeaseGate(self.lease, wait_s)
        self._tls = tls
        super().__init__(limits)
        self.service.rows[b"r"] = {b"f:q": (b"value", 5)}
        self.service.rows[b"large"] = {b"f:q": (random.Random(5).randbytes(LARGE_BYTES), 5)}

    async def _start(self, limits: WireLimits | None) -> WireServer:
        server = WireServer(self.service, observer=self, limits=limits, gate=self.gate, tls=self._tls)
        await server.start("127.0.0.1", 0)
        return server

    def on_loop(self, read: Callable[[], Any]) -> Any:
        async def reading() -> Any:
            return read()

        return self.call(reading())

    def until(self, condition: Callable[[], bool]) -> None:
        ends = time.monotonic() + 10
        while not self.on_loop(condition):
            assert time.monotonic() < ends, "it never became true"

    def until_withheld(self, count: int = 1) -> None:
        self.until(lambda: self.gate.waiting_count == count)

    def replies_to(self, requests: bytes, count: int = 1) -> bytes:
        """Return the replies while the lease holds."""
        with open_socket(self) as sock:
            sock.sendall(requests)
            return b"".join(framed_reply(sock) for _ in range(count))


def framed_reply(sock: socket.socket) -> bytes:
    head = receive(sock, 4)
    return head + receive(sock, int.from_bytes(head, "big"))


def is_silent(sock: socket.socket) -> bool:
    sock.settimeout(SILENCE_S)
    try:
        found = sock.recv(1)
    except TimeoutError:
        return True
    finally:
        sock.settimeout(10)
    raise AssertionError(f"{found!r} came without a lease")


@pytest.fixture
def gated() -> Iterator[Gated]:
    running = Gated()
    yield running
    running.stop()


def test_a_reply_waits_for_the_lease(gated: Gated) -> None:
    whole = gated.replies_to(framed(get(1)))
    gated.lease.is_valid = False
    with open_socket(gated) as sock:
        sock.sendall(framed(get(1)))
        assert is_silent(sock)
        assert gated.on_loop(lambda: gated.server.answered) == 2, "the work was done"
        gated.lease.is_valid = True
        assert receive(sock, len(whole)) == whole
        gated.until_withheld(0)
        sock.sendall(framed(get(1)))
        assert receive(sock, len(whole)) == whole
    assert gated.on_loop(lambda: gated.server.output_bytes) == 0


def test_no_request_begins_while_a_reply_is_withheld(gated: Gated) -> None:
    whole = gated.replies_to(b"".join(framed(get(n)) for n in range(10)), 10)
    gated.service.calls.clear()
    gated.lease.is_valid = False
    with open_socket(gated) as sock:
        sock.sendall(framed(get(0)))
        gated.until_withheld()
        for n in range(1, 10):
            sock.sendall(framed(get(n)))
        assert is_silent(sock)
        assert len(gated.service.calls) == 1
        gated.lease.is_valid = True
        assert receive(sock, len(whole)) == whole


def test_a_call_that_was_busy_is_answered_in_its_turn(gated: Gated) -> None:
    requests = framed(get(1)) + framed(increment(2, b"r")) + framed(get(3))
    whole = gated.replies_to(requests, 3)
    gated.service.gate = gated.on_loop(lambda: gated.loop.create_future())
    gated.lease.is_valid = False
    with open_socket(gated) as sock:
        sock.sendall(requests)
        gated.until_withheld()
        gated.on_loop(lambda: gated.service.gate.set_result(None))  # type: ignore[union-attr]
        gated.until(lambda: gated.server.answered == 5)
        assert is_silent(sock)
        gated.lease.is_valid = True
        assert receive(sock, len(whole)) == whole


@pytest.mark.parametrize("questions", range(3))  # a client that does not read stops the fourth write
def test_the_lease_ends_between_two_writes_of_large_replies(gated: Gated, questions: int) -> None:
    requests = (framed(get(1)) + framed(get(2, b"large"))) * 4
    whole = gated.replies_to(requests, 8)
    assert len(whole) > 4 * LARGE_BYTES
    gated.lease.rest_of_questions = questions
    with open_socket(gated) as sock:
        sock.sendall(requests)
        gated.until_withheld()
        found = bytearray()
        gated.lease.rest_of_questions = None
        gated.lease.is_valid = True
        found += receive(sock, len(whole))
        assert found == whole


def test_http(gated: Gated) -> None:
    body = get(1)
    request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-thrift\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    with open_socket(gated) as sock:
        sock.sendall((request + body) * 2)
        gated.until(lambda: gated.server.answered == 2)
        time.sleep(SILENCE_S)
        whole = sock.recv(1 << 16)
    assert whole.count(b"200 OK") == 2
    gated.lease.is_valid = False
    with open_socket(gated) as sock:
        sock.sendall((request + body) * 2)
        assert is_silent(sock)
        gated.lease.is_valid = True
        assert receive(sock, len(whole)) == whole


def test_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    pair = authority.sign("store")
    gated = Gated(tls=Tls(ServerTls.read(TlsFiles(pair.cert, pair.key))))
    context = ssl.create_default_context(cafile=authority.ca)
    requests = framed(get(1)) + framed(get(2, b"large"))
    try:
        with context.wrap_socket(open_socket(gated), server_hostname="127.0.0.1") as sock:
            sock.sendall(requests)
            whole = framed_reply(sock) + framed_reply(sock)
            gated.lease.is_valid = False
            sock.sendall(requests)
            assert is_silent(sock)
            gated.lease.is_valid = True
            assert receive(sock, len(whole)) == whole
    finally:
        gated.stop()


def test_a_connection_that_has_waited_too_long_is_closed_without_a_byte() -> None:
    gated = Gated(wait_s=0.1)
    try:
        gated.lease.is_valid = False
        with open_socket(gated) as sock, open_socket(gated) as other:
            sock.sendall(framed(get(1)))
            other.sendall(framed(get(2, b"large")))
            assert (until_closed(sock), until_closed(other)) == (b"", b"")
        gated.until(lambda: gated.server.connections == 0)
        assert gated.on_loop(lambda: (gated.server.output_bytes, gated.server.input_bytes)) == (0, 0)
        assert gated.gate.waiting_count == 0
    finally:
        gated.stop()


def test_the_time_of_each_wait_counts_alone() -> None:
    gated = Gated(wait_s=1.0)
    try:
        whole = gated.replies_to(framed(get(1)))
        with open_socket(gated) as sock:
            for _ in range(3):
                gated.lease.is_valid = False
                sock.sendall(framed(get(1)))
                gated.until_withheld()
                time.sleep(0.4)
                gated.lease.is_valid = True
                assert receive(sock, len(whole)) == whole
    finally:
        gated.stop()


def test_a_client_that_sends_no_more_gets_its_answer_and_then_the_end(gated: Gated) -> None:
    whole = gated.replies_to(framed(get(1)))
    gated.lease.is_valid = False
    with open_socket(gated) as sock:
        sock.sendall(framed(get(1)))
        gated.until_withheld()
        sock.shutdown(socket.SHUT_WR)
        assert is_silent(sock)
        gated.lease.is_valid = True
        assert until_closed(sock) == whole
    gated.until(lambda: gated.server.connections == 0)


def test_a_client_that_goes_leaves_nothing_at_the_gate(gated: Gated) -> None:
    gated.lease.is_valid = False
    with open_socket(gated) as sock:
        sock.sendall(framed(get(1)))
        gated.until_withheld()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    gated.lease.is_valid = True
    gated.until(lambda: gated.server.connections == 0)
    assert gated.on_loop(lambda: (gated.gate.waiting_count, gated.server.output_bytes)) == (0, 0)


def test_a_request_in_error_is_answered_before_the_connection_is_closed(gated: Gated) -> None:
    request = framed(get(1)) + b"GET / HTTP/1.1\r\n\r\n"
    with open_socket(gated) as sock:
        sock.sendall(request)
        whole = until_closed(sock)
    gated.lease.is_valid = False
    with open_socket(gated) as sock:
        sock.sendall(request)
        assert is_silent(sock)
        gated.lease.is_valid = True
        assert until_closed(sock) == whole


def test_a_server_that_stops_sends_what_was_withheld_if_the_lease_comes_back(gated: Gated) -> None:
    whole = gated.replies_to(framed(get(1)))
    gated.lease.is_valid = False
    with open_socket(gated) as sock:
        sock.sendall(framed(get(1)))
        gated.until_withheld()
        closing = asyncio.run_coroutine_threadsafe(gated.server.close(5), gated.loop)
        assert is_silent(sock)
        gated.lease.is_valid = True
        assert until_closed(sock) == whole
        closing.result(10)


def test_a_connection_is_transferred_only_once_its_replies_are_sent(gated: Gated) -> None:
    whole = gated.replies_to(framed(get(1)))
    gated.lease.is_valid = False
    given: list[socket.socket] = []
    with open_socket(gated) as sock:
        sock.sendall(framed(get(1)))
        gated.until_withheld()
        leaving = asyncio.run_coroutine_threadsafe(gated.server.leave(lambda one, _read: given.append(one)), gated.loop)
        assert is_silent(sock)
        assert given == []
        gated.lease.is_valid = True
        assert receive(sock, len(whole)) == whole
        leaving.result(10)
        (one,) = given
        one.close()
        assert until_closed(sock) == b""


def test_withheld_replies_count_as_unsent() -> None:
    gated = Gated(limits=WireLimits(server_output_bytes=2 * LARGE_BYTES))
    try:
        gated.lease.is_valid = False
        with open_socket(gated) as small, open_socket(gated) as first, open_socket(gated) as second:
            small.sendall(framed(get(1)))
            gated.until_withheld(1)
            first.sendall(framed(get(1, b"large")))
            gated.until_withheld(2)
            assert gated.on_loop(lambda: gated.server.output_bytes) > LARGE_BYTES
            second.sendall(framed(get(1, b"large")))
            gated.until(lambda: gated.server.connections == 2)
            assert gated.on_loop(lambda: gated.server.output_bytes) < 2 * LARGE_BYTES
            gated.lease.is_valid = True
            assert framed_reply(small)
        gated.until(lambda: gated.server.connections == 0)
        assert gated.on_loop(lambda: gated.server.output_bytes) == 0
    finally:
        gated.stop()


def test_a_lease_that_comes_and_goes_changes_no_byte(gated: Gated) -> None:
    rng = random.Random(seed(11))
    requests = [get(n, rng.choice([b"r", b"r", b"none", b"large"])) for n in range(60)]
    requests += [call(b"getRowWithColumns", n, text(1, b"t") + text(2, b"r")) for n in range(20)]
    rng.shuffle(requests)
    data = b"".join(map(framed, requests))
    whole = gated.replies_to(data, len(requests))
    over = threading.Event()

    def flicker() -> None:
        while not over.is_set():
            gated.lease.is_valid = rng.random() < 0.5
            time.sleep(rng.random() * 0.03)
        gated.lease.is_valid = True

    flickering = threading.Thread(target=flicker)
    flickering.start()
    try:
        for _ in range(3):
            with open_socket(gated) as sock:
                sender = threading.Thread(target=sock.sendall, args=(data,))
                sender.start()
                assert receive(sock, len(whole)) == whole
                sender.join()
    finally:
        over.set()
        flickering.join()
    gated.until(lambda: gated.server.connections == 0)
    assert gated.on_loop(lambda: gated.server.output_bytes) == 0
