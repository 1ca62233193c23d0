"""HTTP that no good client sends, against a store of its own process: others are answered, memory stays bounded."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.limits import MESSAGE_BYTES, MIB
from tests.support.besieged import besieged, furnish
from tests.support.deep import seeds
from tests.support.hostile_http import hostile_bytes
from tests.support.standalone_store import StoreProcess

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are told by /proc")

SEED = 21
CONNECTIONS = seeds("hostile connections of a store over HTTP", deep=20_000, short=150)
LITTLE_BYTES = 24 * MIB
CALL = struct.pack(">HBBI", 0x8001, 0, 1, 13) + b"getTableNames" + b"\0\0\0\1\0"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    with StoreProcess(tmp_path_factory.mktemp("http") / "data", is_forked=False) as running:
        furnish(running)
        yield running


def connected(store: StoreProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", store.port), timeout=60)


def status_after(store: StoreProcess, *pieces: bytes) -> bytes:
    """The status line that comes back for ``pieces``, in one or more sends."""
    with connected(store) as sock, contextlib.suppress(ConnectionResetError, BrokenPipeError):
        for piece in pieces:
            sock.sendall(piece)
        return sock.recv(65_536).partition(b"\r\n")[0]
    return b"reset"


def test_lengths_that_lie(store: StoreProcess) -> None:
    with besieged(store, LITTLE_BYTES):
        for length in (MESSAGE_BYTES + 1, 2**31, 2**40, 10**15):
            claimed = POST + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % length
            assert status_after(store, claimed) == b"HTTP/1.1 413 Content Too Large"
        assert status_after(store, POST + b"Content-Length: 99999999999\r\n\r\n").endswith(b" 413 Content Too Large")
        chunk = POST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + CALL
        with connected(store) as sock:
            sock.sendall(chunk)  # it waits for the rest, and holds what is here
        assert status_after(store, POST + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL) == b"HTTP/1.1 200 OK"


def test_a_body_over_the_bound_is_received_and_not_kept(store: StoreProcess) -> None:
    piece = bytes(MIB)
    with besieged(store, LITTLE_BYTES):
        told = POST + b"Content-Length: %d\r\n\r\n" % (80 * MIB)
        assert status_after(store, told, *([piece] * 80)) == b"HTTP/1.1 413 Content Too Large"


def test_headers_without_end(store: StoreProcess) -> None:
    with besieged(store, LITTLE_BYTES):
        assert status_after(store, POST + b"X: " + b"x" * 300_000).startswith(b"HTTP/1.1 431 ")
        assert status_after(store, POST + b"X: y\r\n" * 50_000).startswith(b"HTTP/1.1 431 ")
        with contextlib.ExitStack() as many:  # half-sent ones cost what was sent
            for _ in range(100):
                sock = many.enter_context(connected(store))
                sock.sendall(POST + b"X: " + b"x" * 10_000)


def test_many_little_chunks(store: StoreProcess) -> None:
    """They take their turns: the neighbour is answered meanwhile."""
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in CALL)
    padding = b"1;x=y\r\n\x00\r\n" * 20_000
    with besieged(store, LITTLE_BYTES):
        head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
        assert status_after(store, head + chunks + b"0\r\n\r\n") == b"HTTP/1.1 200 OK"
        assert (
            status_after(store, head + chunks + padding + b"0\r\n\r\n") == b"HTTP/1.1 200 OK"
        )  # PROTOCOL_ERROR within


def test_connections_that_smuggle_lie_and_break_off(store: StoreProcess) -> None:
    """Each is answered or closed; afterwards the store serves."""
    with besieged(store, LITTLE_BYTES):
        for seed in range(CONNECTIONS):
            wire = hostile_bytes(random.Random(seed), CALL)
            with connected(store) as sock, contextlib.suppress(OSError):
                sock.sendall(wire)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65_536):
                    pass
        assert status_after(store, POST + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL) == b"HTTP/1.1 200 OK"


def test_random_bytes_behind_a_good_beginning(store: StoreProcess) -> None:
    rng = random.Random(SEED)
    good = POST + b"Content-Length: %d\r\n\r\n" % len(CALL) + CALL
    with besieged(store, LITTLE_BYTES):
        for _ in range(150):
            wire = bytearray(good * 2)
            for _ in range(rng.randrange(1, 6)):
                wire[rng.randrange(4, len(wire))] = rng.randrange(256)
            with connected(store) as sock, contextlib.suppress(ConnectionResetError, BrokenPipeError):
                sock.sendall(wire)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65_536):
                    pass
