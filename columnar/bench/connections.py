"""A non-blocking connection of the load generator, with one packed call under way."""

from __future__ import annotations

import socket
import time
from typing import Final, Protocol

from columnar.bench.address import EndpointFailed
from columnar.bench.protocols import FRAME_HEAD
from columnar.bench.workloads import Session

RECEIVE_BYTES: Final = 64 * 1024
LARGE_RECEIVE_BYTES: Final = 1024 * 1024  # once an answer is known to be longer
SILENCE_S: Final = 30.0  # without any answer: the endpoint hangs


class Stream(Protocol):
    """A non-blocking socket, or a TLS stream over one."""

    def fileno(self) -> int: ...
    def recv(self, size: int, /) -> bytes: ...
    def send(self, data: bytes | memoryview, /) -> int: ...
    def close(self) -> None: ...


class FrameStream:
    """Frames to the endpoint and back, with the unsent and the half-received bytes."""

    __slots__ = ("have", "parts", "sent_ns", "sock", "unsent")

    def __init__(self, sock: Stream) -> None:
        self.sock = sock
        self.parts: list[bytes] = []
        self.have = 0  # bytes in ``parts``
        self.unsent = memoryview(b"")
        self.sent_ns = 0

    def send(self, frame: bytes) -> bool:
        """Begin the next operation; return False if a part of the frame must wait until the socket takes more."""
        self.sent_ns = time.perf_counter_ns()
        try:
            done = self.sock.send(frame)
        except BlockingIOError:
            done = 0
        if done == len(frame):
            return True
        self.unsent = memoryview(frame)[done:]
        return False

    def send_next(self, frame: bytes) -> bool:
        """Send the next call of an operation that began earlier and whose time continues."""
        began_ns = self.sent_ns
        whole = self.send(frame)
        self.sent_ns = began_ns
        return whole

    def send_on(self) -> bool:
        self.unsent = self.unsent[self.sock.send(self.unsent) :]
        return not self.unsent

    def receive(self) -> bytes | None:
        """Return the next answer with its frame's head once it is whole, else None."""
        data = self.sock.recv(LARGE_RECEIVE_BYTES if self.parts else RECEIVE_BYTES)
        if not data:
            raise EndpointFailed("the endpoint closed the connection")
        if not self.parts and len(data) == FRAME_HEAD + int.from_bytes(data[:FRAME_HEAD], "big"):
            return data
        self.parts.append(data)
        self.have += len(data)
        if len(self.parts[0]) < FRAME_HEAD:
            self.parts = [b"".join(self.parts)]
        head = self.parts[0][:FRAME_HEAD]
        if len(head) < FRAME_HEAD or self.have < FRAME_HEAD + int.from_bytes(head, "big"):
            return None
        whole = b"".join(self.parts)
        self.parts = []
        self.have = 0
        return whole


class Connection(FrameStream):
    """A stream, and the session whose calls go over it."""

    __slots__ = ("session",)

    def __init__(self, sock: Stream, session: Session) -> None:
        super().__init__(sock)
        self.session = session


def plain_socket(host: str, port: int) -> socket.socket:
    """Return a connected socket.  Raises OSError."""
    sock = socket.create_connection((host, port), timeout=SILENCE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    return sock
