"""An application that takes and gives bytes as transfers, and a client that is as slow as a test wants it."""

from __future__ import annotations

import hashlib
import queue
import socket
import threading
from collections.abc import Iterator
from typing import Any

from werkzeug.wrappers import Request, Response

from wikka_port.body_pipe import ClientDisconnected
from wikka_port.request_queues import QueueFull, run_as_transfer

PIECE = b"0123456789abcdef" * 4_096  # 64 KiB


class Transfers:
    """``POST /Page/files`` answers with the length and digest of the body; ``GET /down?bytes=`` gives bytes.

    ``events`` gets what happens to transfers.  ``POST /Refused/files`` is answered with 403 without a read.
    """

    def __init__(self) -> None:
        self.events: queue.Queue[str] = queue.Queue()
        self.may_read = threading.Event()
        self.may_read.set()

    def __call__(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        try:
            return self._respond(request, environ)(environ, start_response)
        except QueueFull as full:
            return full.get_response()(environ, start_response)

    def _respond(self, request: Request, environ: Any) -> Response:
        if request.path == "/Refused/files":
            return Response("refused", status=403)
        if request.path == "/down":
            run_as_transfer(environ)
            size = int(request.args["bytes"])
            return Response(self._given(size), headers={"Content-Length": str(size)})
        if request.method == "POST":
            run_as_transfer(environ)
            self.events.put("up begins")
            assert self.may_read.wait(20)
            return Response(self._taken(environ["wsgi.input"]))
        return Response(f"page {request.path}")

    def _taken(self, body: Any) -> str:
        size, digest = 0, hashlib.md5()
        try:
            while piece := body.read(65_536):
                size += len(piece)
                digest.update(piece)
        except ClientDisconnected:
            self.events.put("up breaks")
            raise
        self.events.put("up ends")
        return f"{size} {digest.hexdigest()}"

    def _given(self, size: int) -> Iterator[bytes]:
        self.events.put("down begins")
        whole = False
        try:
            for start in range(0, size, len(PIECE)):
                yield PIECE[: size - start]
            whole = True
        finally:
            self.events.put("down ends" if whole else "down breaks")

    def await_event(self, wanted: str, times: int = 1) -> None:
        """Take events until ``wanted`` has come; others are dropped."""
        while times:
            times -= self.events.get(timeout=20) == wanted


def connect_from(port: int, network: int = 1, receive_bytes: int | None = None) -> socket.socket:
    """Connect from 127.0.0.``network``; ``receive_bytes`` bounds what the kernel takes for the client."""
    made = socket.socket()
    made.settimeout(20)
    if receive_bytes is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    made.bind((f"127.0.0.{network}", 0))
    made.connect(("127.0.0.1", port))
    return made


def head(size: int, path: str = "/Page/files", *lines: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {size}", *lines, "", ""]).encode()


def content(size: int) -> Iterator[bytes]:
    for start in range(0, size, len(PIECE)):
        yield PIECE[: size - start]


def digest_of(size: int) -> str:
    digest = hashlib.md5()
    for piece in content(size):
        digest.update(piece)
    return f"{size} {digest.hexdigest()}"


def received(connection: socket.socket) -> int:
    """The length of the body of an answer, which is read to its end and not kept."""
    buffer = bytearray(1 << 20)
    first = b""
    while b"\r\n\r\n" not in first:
        first += connection.recv(4_096)
    at, _, rest = first.partition(b"\r\n\r\n")
    size = int(at.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    left = size - len(rest)
    while left:
        count = connection.recv_into(buffer)
        assert count, f"{left} bytes are missing"
        left -= count
    return size


if __name__ == "__main__":
    from tests.support.served_application import serving

    with serving(Transfers()) as (_, port, thread):
        print(port, flush=True)
        thread.join()
