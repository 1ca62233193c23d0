"""The connections of one replay to its origins, and the exchange of a request for its answer.

    pooled     a request goes out on the free connection that was used last, else on a fresh one
    fresh      each request has a connection of its own, and says so (``Connection: close``)
    visitor    the requests of a visit share a connection, which ends with the visit

The number of requests in the air is the caller's to bound, and his wait for one is his figure.  If the server has
closed a kept connection meanwhile, a GET or HEAD is sent once more on a fresh one, as browsers do; such repeats are
counted in ``retried``, and both attempts are in the latency.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from typing import Final, Literal
from urllib.parse import quote, urlsplit

from wikibench import __version__
from wikibench.outcome import Outcome

from .answer import Answer, NoAnswer
from .connection import TIMED_OUT, Connection, Deadlines

Connections = Literal["pooled", "fresh", "visitor"]
Kept = list[Connection] | None  # the free connections of a visit; None if those of all visits are shared
_SAFE: Final = "!#$%&'()*+,/:;=?@[]~-._"  # of a target that a redirect or a form gives


class Origin:
    """Scheme, host and port, and the free connections to it."""

    def __init__(self, origin: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(origin)
        self.text = origin
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.is_tls = parts.scheme == "https"
        self.tls: ssl.SSLContext | None = None  # once a connection is made
        self.tail = _packed_headers(parts.netloc, headers)
        self.free: list[Connection] = []
        self._addresses: list[str] = []  # of the host, once found

    async def resolved(self, loop: asyncio.AbstractEventLoop) -> list[str]:
        """Return the addresses of the host."""
        if not self._addresses:
            self.tls = ssl.create_default_context() if self.is_tls else None
            found = await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
            self._addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        return self._addresses


class Wire:
    """The connections of one replay.  Owned by the event loop it was made in."""

    connections: Connections = "pooled"

    def __init__(
        self, *origins: str, timeout_s: float, headers: Mapping[str, str], connections: Connections = "pooled"
    ) -> None:
        """Take ``origins``, each of scheme, host and port, to which all requests go."""
        self.opened = 0  # connections made
        self.retried = 0  # requests sent once more on a fresh connection
        self.connections = connections
        given = {**headers, "Connection": "close"} if connections == "fresh" else headers
        self._origins = {origin: Origin(origin, given) for origin in origins}
        self._only = self._origins[origins[0]] if len(self._origins) == 1 else None
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._open: set[Connection] = set()
        self._deadlines = Deadlines(self._loop)
        self._all_closed: asyncio.Event | None = None  # while ``close`` waits

    async def exchange(
        self,
        method: str,
        url: str,
        *,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        keep: bool = False,
        kept: Kept = None,
    ) -> Answer | NoAnswer:
        """Send one request and read its whole answer; with ``keep`` return its text too.  Never follows a redirect.

        ``url`` is of one of the origins; ``kept`` is of ``begin_visit``.
        """
        origin = self._only or self._origins[origin_of(url)]
        frame = _frame(origin, method, url, data, headers)
        deadline = self._loop.time() + self._timeout_s
        free = origin.free if kept is None else kept
        used = _last_open(free)
        if used is not None:
            answer = await self._send(used, frame, method, keep, deadline)
            if method == "POST" or not isinstance(answer, NoAnswer) or not answer.was_kept:
                return answer
            self.retried += 1
        connection = await self._connect(origin, free, deadline)
        if isinstance(connection, NoAnswer):
            return connection
        return await self._send(connection, frame, method, keep, deadline)

    def begin_visit(self) -> Kept:
        """Return what ``exchange`` takes for all requests of a visit to one origin, and ``end_visit`` at its end."""
        return [] if self.connections == "visitor" else None

    def end_visit(self, kept: Kept) -> None:
        if kept is not None:
            for connection in kept:
                connection.abort()
            kept.clear()

    async def _send(
        self, connection: Connection, frame: bytes, method: str, keep: bool, deadline: float
    ) -> Answer | NoAnswer:
        self._deadlines.watch(connection, deadline)
        try:
            return await connection.send(frame, keep=keep, is_head=method == "HEAD")
        except asyncio.CancelledError:
            connection.abort()
            raise
        finally:
            self._deadlines.forget(connection)

    async def _connect(self, origin: Origin, free: list[Connection], deadline: float) -> Connection | NoAnswer:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._connected(origin, await origin.resolved(self._loop), free)
        except TimeoutError:
            if self._loop.time() >= deadline:
                return TIMED_OUT
            return NoAnswer(Outcome.REFUSED, "the connection attempt was not answered")  # the kernel's own limit
        except socket.gaierror as error:
            return NoAnswer(Outcome.REFUSED, f"the name {origin.host} cannot be resolved: {error.strerror}")
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            return NoAnswer(Outcome.REFUSED, f"no connection to {origin.host}:{origin.port}: {why}")

    async def _connected(self, origin: Origin, addresses: list[str], free: list[Connection]) -> Connection:
        last = OSError("the host has no address")
        on_free = Connection.abort if self.connections == "fresh" else free.append
        for address in addresses:
            try:
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self._loop, on_free, self._lost),
                    address,
                    origin.port,
                    ssl=origin.tls,
                    server_hostname=origin.host if origin.tls else None,
                )
            except OSError as error:
                last = error
                continue
            self.opened += 1
            self._open.add(connection)
            return connection
        raise last

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if not self._open and self._all_closed is not None:
            self._all_closed.set()
        for origin in self._origins.values():
            if connection in origin.free:
                origin.free.remove(connection)

    def age_s(self, answer: Answer) -> float:
        """Return how long ago the last byte of the answer was read; 0 if that is not known."""
        return time.perf_counter() - answer.read_s if answer.read_s else 0.0

    async def close(self) -> None:
        """Close all connections, and wait until they are."""
        self._deadlines.close()
        for connection in list(self._open):
            connection.abort()
        if self._open:
            self._all_closed = asyncio.Event()
            await self._all_closed.wait()


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL that begins with them."""
    end = url.find("/", url.index("://") + 3)
    return url if end < 0 else url[:end]


def _last_open(free: list[Connection]) -> Connection | None:
    while free:
        connection = free.pop()
        if connection.is_open:
            return connection
    return None


def _frame(origin: Origin, method: str, url: str, data: bytes | None, headers: Mapping[str, str] | None) -> bytes:
    target = url[len(origin.text) :] or "/"
    if not target.isascii() or not target.isprintable() or " " in target:
        target = quote(target, safe=_SAFE, errors="surrogateescape")
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items()) if headers else ""
    if data is None:
        return f"{method} {target}{origin.tail}{more}\r\n".encode("latin-1")
    return f"{method} {target}{origin.tail}{more}Content-Length: {len(data)}\r\n\r\n".encode("latin-1") + data


def _packed_headers(netloc: str, given: Mapping[str, str]) -> str:
    """Return what follows the target in a request's head, up to the headers of the single request."""
    own = {
        "Host": netloc if netloc.isascii() else netloc.encode("idna").decode("ascii"),
        "User-Agent": f"wikibench/{__version__}",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
    }
    names = {name.lower() for name in given}
    lines = [*((name, value) for name, value in own.items() if name.lower() not in names), *given.items()]
    return " HTTP/1.1\r\n" + _lines(lines)


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers)
