"""What clients may send and leave unread: each bound of the wire on loopback, against a toy service."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from columnar.wire.server import WireLimits
from tests.support.toy_wire import (
    EMPTY_GET,
    Running,
    call,
    framed,
    get,
    open_socket,
    receive,
    reply_of,
    serves,
    text,
    until_closed,
)

SMALL = WireLimits(
    message_bytes=100_000,
    drained_bytes=1_000_000,
    connections=4,
    input_bytes=50_000,
    output_bytes=200_000,
    server_input_bytes=150_000,
    server_output_bytes=600_000,
)


@pytest.fixture
def running() -> Iterator[Running]:
    server = Running()
    yield server
    server.stop()


@pytest.fixture
def small() -> Iterator[Running]:
    server = Running(SMALL)
    yield server
    server.stop()


@pytest.mark.parametrize("frame", [framed, bytes])
def test_an_oversized_message_is_drained_and_answered(small: Running, frame: Any) -> None:
    big = call(b"get", 8, text(1, b"x" * 500_000) + text(2, b"r") + text(3, b"f:q"))
    with open_socket(small) as sock:
        sock.sendall(frame(big) + frame(get(9)))
        data = receive(sock, 4 if frame is framed else 0) and b""
        data += receive(sock, 15)
        assert data[:15] == b"\x80\x01\x00\x02\x00\x00\x00\x03get\x00\x00\x00\x08"
        assert b"RequestTooBigException: a message of 500" in receive(sock, 80)
        sock.shutdown(socket.SHUT_WR)
        assert (EMPTY_GET % struct.pack(">i", 9)) in until_closed(sock)


def test_a_frame_over_the_drained_bound_is_closed(small: Running) -> None:
    with open_socket(small) as sock:
        sock.sendall(struct.pack(">I", 2_000_000) + get(1))
        assert until_closed(sock) == b""
    assert serves(small)


def test_too_many_connections_are_refused(small: Running) -> None:
    held = [open_socket(small) for _ in range(4)]
    for sock in held:
        sock.sendall(get(1))
        receive(sock, 24)
    with open_socket(small) as refused:
        assert until_closed(refused) == b""
    held[0].sendall(get(2))
    assert len(receive(held[0], 20)) == 20
    for sock in held:
        sock.close()


def test_half_sent_messages_do_not_fill_the_server(small: Running) -> None:
    """Three connections hold 80 KB of a message each, 150 KB are allowed: one has to send again."""
    half = framed(call(b"get", 8, text(1, b"x" * 90_000)))
    held = [open_socket(small) for _ in range(3)]
    for sock in held:
        sock.sendall(half[:80_000])
        while sock is held[0] and small.server.input_bytes < 80_000:
            pass
    assert serves(small)
    for sock in held:
        sock.sendall(half[80_000:])
    answers = [reply_of(sock) for sock in held]
    assert sum(b"CallQueueTooBigException" in rest for _, _, _, rest in answers) >= 1
    assert serves(small)
    assert small.server.input_bytes == 0
    for sock in held:
        sock.close()


def test_a_client_that_never_reads_is_held_in_bounds(small: Running) -> None:
    """Asks for 1 GB of rows and reads nothing: the server stops serving it, not the others."""
    small.service.rows[b"big"] = {b"f:q": (b"v" * 100_000, 1)}
    request = get(1, b"big")
    with open_socket(small) as sock:
        sock.settimeout(1.0)  # the server may be slow
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 20_000_000:
                sent += sock.send(request * 1000)
        served = len(small.service.calls)
        assert served < 200  # what sockets of the system hold, and 200 KB
        assert small.server.output_bytes <= SMALL.output_bytes + 2 * 256 * 1024 + 100_100
        assert small.server.input_bytes <= SMALL.input_bytes + 512 * 1024
        assert serves(small)
        assert len(small.service.calls) == served + 1
        sock.settimeout(10)
        assert len(receive(sock, 1_000_000)) == 1_000_000  # and goes on once it reads
    assert serves(small)


def test_over_the_total_of_unsent_bytes_one_is_closed(small: Running) -> None:
    small.service.rows[b"big"] = {b"f:q": (b"v" * 450_000, 1)}
    held = [open_socket(small) for _ in range(3)]
    for sock in held:
        sock.sendall(get(1, b"big") * 30)
    assert serves(small)
    assert small.server.output_bytes <= SMALL.server_output_bytes + 450_100
    for sock in held:
        sock.close()


@pytest.mark.parametrize("frame", [framed, bytes])
def test_a_large_message_is_decoded_aside(running: Running, frame: Any) -> None:
    big = call(b"get", 8, text(1, b"x" * 3_000_000) + text(2, b"large") + text(3, b"f:q"))
    with open_socket(running) as sock:
        sock.sendall(frame(big) + frame(get(9)))
        answers = frame(EMPTY_GET % struct.pack(">i", 8)) + frame(EMPTY_GET % struct.pack(">i", 9))
        assert receive(sock, len(answers)) == answers
        assert running.service.calls == [b"large", b"r"]
    with open_socket(running) as sock:
        sock.sendall(framed(call(b"get", 8, text(1, b"x" * 3_000_000) + b"\x55\x00\x01")))
        assert reply_of(sock)[:3] == (3, b"get", 8)
        assert until_closed(sock) == b""
    assert serves(running)
    assert running.server.input_bytes == 0
