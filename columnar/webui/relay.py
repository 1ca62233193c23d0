"""The TLS port of the status page: decrypts TLS on the loop, and relays plain text to waitress and back.

waitress itself has no TLS, and if its sockets were wrapped, one silent client could occupy its thread.  The relay uses
the ``TlsProtocol`` of the Thrift ports, with the same bounds.  Each page sends some 30 KB through the loop.

    visitor ==TLS==> TlsProtocol --> _Visitor --> _Page --private socket--> waitress

If one side does not read, reading from the opposite side pauses, so at most the transports' high-water marks are
buffered.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, Final, cast

from columnar.wire.sockets import PrivateSocket
from columnar.wire.tls_protocol import Tls

VISITORS: Final = 100

_log = logging.getLogger(__name__)


class TlsFront:
    def __init__(self, bound: socket.socket, tls: Tls, private: PrivateSocket) -> None:
        """Pass the bound socket of the port, and the private socket on which waitress serves the page."""
        self._bound = bound
        self._tls = tls
        self._private = private
        self._server: asyncio.Server | None = None
        self._visitors: set[_Visitor] = set()

    @property
    def inside(self) -> socket.socket:
        """The socket on which the page itself is served; it already listens."""
        return self._private.listening

    async def start(self) -> None:
        factory = cast(Callable[[], asyncio.Protocol], lambda: self._tls.make_protocol(self._visitor))
        self._server = await asyncio.get_running_loop().create_server(factory, sock=self._bound)

    def _visitor(self) -> _Visitor:
        return _Visitor(self._private.path, self._visitors)

    async def close(self) -> None:
        """Close the connections of visitors."""
        if self._server is not None:
            self._server.close()
            for visitor in list(self._visitors):
                visitor.abort()
            await self._server.wait_closed()
        else:
            self._bound.close()
        self._private.close()


class _Side(asyncio.Protocol):
    """A connection, joined with a second one on which its received bytes are sent."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.other: _Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def join(self, other: _Side | None) -> None:
        """Send received bytes on ``other`` from now on."""
        self.other = other

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def eof_received(self) -> bool:
        return False  # no client ends its side before it has the answer

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()
            self.other.join(None)
            self.other = None


class _Visitor(_Side):
    def __init__(self, path: str, visitors: set[_Visitor]) -> None:
        super().__init__()
        self._path = path
        self._visitors = visitors
        self._early: list[bytes] = []  # received before the page's side connected; at most one read
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self._visitors) >= VISITORS:
            _log.warning("a visitor of the status page is refused: %d are there", VISITORS)
            self.transport.abort()
            return
        self._visitors.add(self)
        self.transport.pause_reading()
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    def data_received(self, data: bytes) -> None:
        if self._connecting is not None:
            self._early.append(data)
        else:
            super().data_received(data)

    async def _connect(self) -> None:
        try:
            _, page = await asyncio.get_running_loop().create_unix_connection(_Side, self._path)
        except OSError as error:
            _log.warning("the status page cannot be reached: %s", error)
            self.transport.abort()
            return
        self._connecting = None
        if self.transport.is_closing():
            page.transport.close()
            return
        self.join(page)
        page.join(self)
        for data in self._early:
            page.transport.write(data)
        self._early.clear()
        self.transport.resume_reading()

    def abort(self) -> None:
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._visitors.discard(self)
        super().connection_lost(exc)
