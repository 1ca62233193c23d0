"""Connections of the growth probes, which time one call or send many calls with some in flight."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from columnar.bench import calls
from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.calls import FRAME_HEAD, BadReply, Exchange
from columnar.bench.connections import SILENCE_S
from columnar.bench.faults import failed
from columnar.bench.tls_connections import context_of

IN_FLIGHT: Final = 4  # large calls at once
_OPENED: Final = calls.good_begin("scannerOpenWithScan", calls.I32_SUCCESS)
_LISTED: Final = calls.good_begin("scannerGetList", calls.LIST_SUCCESS)
_RECEIVE_BYTES: Final = 1 << 18


class Line:
    """A blocking connection; its methods raise BadReply and OSError."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def send(self, frame: bytes) -> None:
        self._sock.sendall(frame)

    def reply(self) -> bytes:
        """Return the next reply, whole, with the frame's head before it."""
        data = self._sock.recv(_RECEIVE_BYTES)
        if len(data) >= FRAME_HEAD and len(data) == FRAME_HEAD + int.from_bytes(data[:FRAME_HEAD], "big"):
            return data
        parts = bytearray(data)
        while data and len(parts) < FRAME_HEAD + int.from_bytes(parts[:FRAME_HEAD].ljust(FRAME_HEAD, b"\xff"), "big"):
            data = self._sock.recv(_RECEIVE_BYTES)
            parts += data
        if not data:
            raise EndpointFailed("the endpoint closed the connection")
        return bytes(parts)

    def round_trip(self, frame: bytes) -> bytes:
        self.send(frame)
        return self.reply()

    def take(self, one: Exchange) -> None:
        """Receive and check the reply to ``one``, which was sent before."""
        reply = self.reply()
        if not reply.startswith(one.good, FRAME_HEAD) or len(reply) < one.reply_bytes:
            raise BadReply(reply)

    def took_us(self, one: Exchange) -> float:
        started = time.perf_counter()
        self.send(one.frame)
        self.take(one)
        return (time.perf_counter() - started) * 1e6

    def scan_s(self, opened: bytes, rows: int, rows_a_call: int) -> float:
        """Return the time to open a scanner, read ``rows`` rows (to the end if fewer came), and close the scanner."""
        started, found = time.perf_counter(), 0
        scanner = calls.number_at(self.round_trip(opened), _OPENED)
        more = calls.call("scannerGetList", scanner, rows_a_call)
        while found < rows:
            reply = self.round_trip(more)
            count = calls.number_at(reply, _LISTED)
            found += count
            if not count:
                raise EndpointFailed(f"a scan found {found:,} rows where there are {rows:,}")
        self.round_trip(calls.call("scannerClose", scanner))
        return time.perf_counter() - started


@contextmanager
def line_to(endpoint: Endpoint) -> Iterator[Line]:
    """Yield a connection.  Raises EndpointFailed for any error on it."""
    try:
        with _opened(endpoint) as sock:
            yield Line(sock)
    except (OSError, BadReply) as error:
        raise failed(endpoint, error) from error


@contextmanager
def _opened(endpoint: Endpoint) -> Iterator[socket.socket]:
    with socket.create_connection((endpoint.host, endpoint.port), timeout=SILENCE_S) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if endpoint.tls is None:
            yield sock
        else:
            with context_of(endpoint.tls).wrap_socket(sock, server_hostname=endpoint.host) as secured:
                yield secured


def send_all(
    endpoint: Endpoint, exchanges: Iterable[Exchange], advance: Callable[[int], None], in_flight: int = IN_FLIGHT
) -> None:
    """Send the calls in their order, each over the connection whose answer is the oldest.  Raises EndpointFailed.

    Each connection has one call at a time, so neighbouring calls may be carried out in a different order.
    """
    with ExitStack() as stack:
        idle = [stack.enter_context(line_to(endpoint)) for _ in range(in_flight)]
        waiting: deque[tuple[Line, Exchange]] = deque()
        for one in exchanges:
            line = idle.pop() if idle else _answered(waiting, advance)
            line.send(one.frame)
            waiting.append((line, one))
        while waiting:
            _answered(waiting, advance)


def _answered(waiting: deque[tuple[Line, Exchange]], advance: Callable[[int], None]) -> Line:
    line, one = waiting.popleft()
    line.take(one)
    advance(one.units)
    return line
