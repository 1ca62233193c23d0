"""The health port: ``/livez`` and ``/readyz`` in plain HTTP, and nothing else.

    GET /livez     200 "ok" if the store's loop answers
    GET /readyz    200 "ready" if the store can take clients; otherwise 503, with the first obstacle in a sentence
    another path   404; another method 405; a head over HEAD_BYTES or of more than REQUEST_S: the connection is closed

Probes of Kubernetes and of balancers show no certificate.  So where the pages ask for one (``--tls-client-ca``), the
probes need a port of their own, which tells nothing else.  The loop itself answers, without a thread: a loop that does
not iterate is not alive.  Each connection has one request.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final

from columnar.runtime.planned_step import PlannedStep

_log = logging.getLogger(__name__)

LIVEZ: Final = "/livez"
READYZ: Final = "/readyz"
HEAD_BYTES: Final = 4_096  # of a request: a probe sends some 100
REQUEST_S: Final = 5.0  # from the connection to the answer
CONNECTIONS: Final = 64  # at the same time; further ones are closed at once
SAMPLE_S: Final = 1.0  # obstacles have clocks that begin when they are seen
STOPPING: Final = "the store stops"
LOOP: Final = "the samples of the health port"
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


class HealthPort:
    """The port, bound by the caller.  Call ``start``, ``begin_stop`` and ``close``."""

    def __init__(self, bound: socket.socket, obstacles: Callable[[], Sequence[str]]) -> None:
        """Pass ``obstacles``, which returns why the store cannot take clients; nothing if it can."""
        self._bound = bound
        self._obstacles = obstacles
        self._is_stopping = False
        self._open = 0  # connections
        self._server: asyncio.Server | None = None
        self._step = PlannedStep(LOOP, self._sample)

    @property
    def port(self) -> int:
        port: int = self._bound.getsockname()[1]
        return port

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, sock=self._bound, limit=HEAD_BYTES)
        self._step.now()
        _log.info("health port: %s and %s at port %d, without TLS", LIVEZ, READYZ, self.port)

    def _sample(self) -> None:
        self._step.after(SAMPLE_S)
        self._obstacles()

    def begin_stop(self) -> None:
        """Answer from now on that the store is not ready: balancers send no more clients."""
        self._is_stopping = True

    async def close(self) -> None:
        self._step.cancel()
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= CONNECTIONS:
                async with asyncio.timeout(REQUEST_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(answer_to(head, (STOPPING,) if self._is_stopping else self._obstacles()))
                    await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            return  # a port scan, TLS, or a probe that gave up
        finally:
            self._open -= 1
            writer.close()


def answer_to(head: bytes, obstacles: Sequence[str]) -> bytes:
    """Return the answer to a request, whose head ends with an empty line."""
    words = head.partition(b"\r\n")[0].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return _answer(400, "This is HTTP/1.1.\n")
    method, path = words[0], words[1].partition(b"?")[0].decode("latin-1")
    if path not in (LIVEZ, READYZ):
        status, text = 404, f"There is {LIVEZ} and {READYZ}.\n"
    elif method not in (b"GET", b"HEAD"):
        status, text = 405, "This is for reading only.\n"
    elif path == LIVEZ:
        status, text = 200, "ok\n"
    elif obstacles:
        status, text = 503, f"not ready: {obstacles[0]}\n"
    else:
        status, text = 200, "ready\n"
    return _answer(status, text, has_body=method != b"HEAD")


def _answer(status: int, text: str, *, has_body: bool = True) -> bytes:
    body = text.encode()
    lines = [
        f"HTTP/1.1 {status} {_REASONS[status]}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        *(["Allow: GET, HEAD"] if status == 405 else []),
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + (body if has_body else b"")
