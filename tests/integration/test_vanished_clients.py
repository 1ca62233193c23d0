"""Clients that go before they are answered: what has not begun is never begun, and steps end."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.overload.vanishing import vanish
from tests.support.toy_wire import Running, call, close_gate, framed, get, increment, open_socket, text, until_closed

SEED = 15
LOOK_S = 0.005
WAIT_S = 20.0
TRIES = 10


@pytest.fixture
def running() -> Iterator[Running]:
    server = Running()
    yield server
    if server.service.gate is not None:
        server.loop.call_soon_threadsafe(server.service.gate.cancel)
    server.stop()


def until(true: Callable[[], bool]) -> None:
    for _ in range(int(WAIT_S / LOOK_S)):
        if true():
            return
        threading.Event().wait(LOOK_S)
    raise AssertionError("it does not come to be")


def begun(running: Running, row: bytes) -> bool:
    return row in running.service.calls


def open_gate(running: Running) -> None:
    running.loop.call_soon_threadsafe(running.service.gate.set_result, None)


def goes(sock: socket.socket, how: str) -> None:
    if how == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if how == "half":
        sock.shutdown(socket.SHUT_WR)
    else:
        sock.close()


@pytest.mark.parametrize("how", ["close", "reset", "half"])
@pytest.mark.parametrize("ahead_bytes", [0, 600_000])  # over the second the server has stopped to read
def test_calls_behind_the_one_that_waits_are_never_begun(running: Running, how: str, ahead_bytes: int) -> None:
    running.call(close_gate(running.service))
    with open_socket(running) as sock:
        late = get(2, b"late") + call(b"get", 3, text(1, b"x" * ahead_bytes) + text(2, b"later") + text(3, b"f:q"))
        sock.sendall(increment(1, b"waits") + late)
        until(lambda: begun(running, b"waits"))
        goes(sock, how)
        open_gate(running)
        if how == "half":
            assert b"atomicIncrement" in until_closed(sock), "what had begun is answered"
    until(lambda: running.server.connections == 0)
    assert running.service.calls == [b"waits"]
    assert running.server.input_bytes == 0


def test_the_call_that_has_begun_is_answered_to_a_client_that_ends_its_side(running: Running) -> None:
    with open_socket(running) as sock:
        sock.sendall(get(1))
        assert sock.recv(1000)
        sock.sendall(get(2))
        sock.shutdown(socket.SHUT_WR)
        assert b"get" in until_closed(sock)


@pytest.mark.parametrize("ahead_bytes", [1_200_000, 2_000_000])  # most of it is unread when the call is answered
def test_an_answer_is_not_overtaken_by_a_reset(running: Running, ahead_bytes: int) -> None:
    """A socket that is closed over unread bytes sends a reset, and the client loses what it has not taken yet."""
    for _ in range(TRIES):
        running.call(close_gate(running.service))
        with open_socket(running) as sock:
            sock.sendall(increment(1, b"waits") + call(b"get", 2, text(1, b"x" * ahead_bytes)))
            until(lambda: begun(running, b"waits"))
            sock.shutdown(socket.SHUT_WR)
            open_gate(running)
            data = b""
            while piece := sock.recv(65536):
                data += piece
        assert b"atomicIncrement" in data
        running.service.calls.clear()
    until(lambda: running.server.connections == 0)


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_large_message_that_is_not_decoded_yet_is_forgotten(running: Running, how: str) -> None:
    held = threading.Event()
    running.server.decoder.thread.submit(held.wait)
    big = framed(call(b"get", 8, text(1, b"x" * 3_000_000) + text(2, b"large") + text(3, b"f:q")))
    sock = open_socket(running)
    sock.sendall(big)
    until(lambda: running.server.input_bytes >= 3_000_000)
    goes(sock, how)
    with open_socket(running) as other:
        other.sendall(big.replace(b"large", b"other"))
        until(lambda: running.server.connections == 2 or how == "reset")
        held.set()
        until(lambda: begun(running, b"other"))
    assert not begun(running, b"large")


def test_a_large_call_that_waits_for_its_turn_is_forgotten(running: Running) -> None:
    calls = running.server.large_calls
    calls._is_resting = True  # a call that held the loop was made
    big = framed(call(b"get", 8, text(1, b"x" * 5_000_000) + text(2, b"large") + text(3, b"f:q")))
    with open_socket(running) as sock:
        sock.sendall(big)
        until(lambda: bool(calls._heavy))
    until(lambda: running.server.connections == 0)
    assert not calls._heavy
    running.loop.call_soon_threadsafe(calls._next_heavy)
    until(lambda: not calls._is_resting)
    assert running.service.calls == []


def test_a_connection_that_ended_before_we_accepted_it_begins_nothing(running: Running) -> None:
    held = threading.Event()
    running.loop.call_soon_threadsafe(held.wait)
    with open_socket(running) as sock:
        sock.sendall(get(1, b"late"))
    held.set()
    with open_socket(running) as sock:
        sock.sendall(get(1, b"now"))
        until(lambda: begun(running, b"now"))
    assert not begun(running, b"late")


def test_clients_that_vanish_at_random_moments(tmp_path: Path) -> None:
    report = vanish(tmp_path, SEED, 60)
    assert report.overwritten == []
    assert report.left == 0, "work for nobody goes on"
    assert report.vanished == 60
