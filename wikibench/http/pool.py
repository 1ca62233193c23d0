"""The connections of one replay to one origin, and the exchange of a request for its answer.

A request goes out on the free connection that was used last, else on a fresh one: the number of requests in the air is
the caller's to bound, and his wait for one is his figure.  If the server has closed a kept connection meanwhile, a GET
is sent once more on a fresh one, as browsers do; such repeats are counted in ``retried``, and both attempts are in the
latency.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from wikibench import __version__
from wikibench.outcome import Outcome

from .answer import Answer, NoAnswer
from .connection import TIMED_OUT, Connection, Deadlines

_SAFE: Final = "!#$%&'()*+,/:;=?@[]~-._"  # of a target that a redirect or a form gives


class Wire:
    """The connections of one replay.  Owned by the event loop it was made in."""

    def __init__(self, origin: str, *, timeout_s: float, headers: Mapping[str, str]) -> None:
        """Take ``origin``, scheme, host and port, to which all requests go."""
        parts = urlsplit(origin)
        self.opened = 0  # connections made
        self.retried = 0  # requests sent once more on a fresh connection
        self._origin = origin
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._is_tls = parts.scheme == "https"
        self._tls: ssl.SSLContext | None = None
        self._timeout_s = timeout_s
        self._tail = _packed_headers(parts.netloc, headers)
        self._loop = asyncio.get_running_loop()
        self._addresses: list[str] = []  # of the host, once found
        self._free: list[Connection] = []
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
    ) -> Answer | NoAnswer:
        """Send one request and read its whole answer; with ``keep`` return its text too.  Never follows a redirect.

        ``url`` is of the origin.
        """
        frame = self._frame(method, url, data, headers)
        deadline = self._loop.time() + self._timeout_s
        kept = self._kept()
        if kept is not None:
            answer = await self._send(kept, frame, keep, deadline)
            if method != "GET" or not isinstance(answer, NoAnswer) or not answer.was_kept:
                return answer
            self.retried += 1
        connection = await self._connect(deadline)
        return connection if isinstance(connection, NoAnswer) else await self._send(connection, frame, keep, deadline)

    def _kept(self) -> Connection | None:
        while self._free:
            connection = self._free.pop()
            if connection.is_open:
                return connection
        return None

    async def _send(self, connection: Connection, frame: bytes, keep: bool, deadline: float) -> Answer | NoAnswer:
        self._deadlines.watch(connection, deadline)
        try:
            return await connection.send(frame, keep=keep)
        except asyncio.CancelledError:
            connection.abort()
            raise
        finally:
            self._deadlines.forget(connection)

    async def _connect(self, deadline: float) -> Connection | NoAnswer:
        try:
            async with asyncio.timeout_at(deadline):
                if not self._addresses:
                    self._tls = ssl.create_default_context() if self._is_tls else None
                    self._addresses = await self._resolved()
                return await self._connected()
        except TimeoutError:
            if self._loop.time() >= deadline:
                return TIMED_OUT
            return NoAnswer(Outcome.REFUSED, "the connection attempt was not answered")  # the kernel's own limit
        except socket.gaierror as error:
            return NoAnswer(Outcome.REFUSED, f"the name {self._host} cannot be resolved: {error.strerror}")
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            return NoAnswer(Outcome.REFUSED, f"no connection to {self._host}:{self._port}: {why}")

    async def _connected(self) -> Connection:
        last = OSError("the host has no address")
        for address in self._addresses:
            try:
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self._loop, self._free.append, self._lost),
                    address,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls else None,
                )
            except OSError as error:
                last = error
                continue
            self.opened += 1
            self._open.add(connection)
            return connection
        raise last

    async def _resolved(self) -> list[str]:
        found = await self._loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if not self._open and self._all_closed is not None:
            self._all_closed.set()
        if connection in self._free:
            self._free.remove(connection)

    def _frame(self, method: str, url: str, data: bytes | None, headers: Mapping[str, str] | None) -> bytes:
        target = url[len(self._origin) :] or "/"
        if not target.isascii() or not target.isprintable() or " " in target:
            target = quote(target, safe=_SAFE, errors="surrogateescape")
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items()) if headers else ""
        if data is None:
            return f"{method} {target}{self._tail}{more}\r\n".encode("latin-1")
        return f"{method} {target}{self._tail}{more}Content-Length: {len(data)}\r\n\r\n".encode("latin-1") + data

    async def close(self) -> None:
        """Close all connections, and wait until they are."""
        self._deadlines.close()
        for connection in list(self._open):
            connection.abort()
        if self._open:
            self._all_closed = asyncio.Event()
            await self._all_closed.wait()


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
