"""A client connection of a ``ConnectionServer``: how it begins and ends, whatever it speaks.

An ``asyncio.Protocol`` in all but name.  The Thrift ports have a connection of their own, which other processes take
over between two calls.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import ClassVar, cast

from columnar.errors import ColumnarError
from columnar.wire.connection_buffers import ConnectionInput, ConnectionOutput
from columnar.wire.connection_server import ConnectionServer
from columnar.wire.sockets import has_ended, name_of_peer, tune


class ServedConnection(ABC):
    log: ClassVar[logging.Logger]

    def __init__(self, server: ConnectionServer) -> None:
        self._server = server
        self.input = ConnectionInput(server.table)
        self.output = ConnectionOutput(server.table)
        self._transport = cast(asyncio.Transport, None)  # from connection_made on
        self._peer = ""  # as the one before
        self._fd = -1
        self._closing = False
        self._has_gone = False

    # --- what a protocol decides -------------------------------------------------------------------------

    @abstractmethod
    def _connected(self, transport: asyncio.BaseTransport) -> None:
        """Note whose connection it is."""

    @abstractmethod
    def _drop_input(self) -> None:
        """Drop what was received: the connection has ended."""

    @abstractmethod
    def begin_close(self) -> None:
        """Finish what has begun, answer it, close."""

    @abstractmethod
    def close_between(self) -> None:
        """Close after the requests that have begun: the server leaves."""

    @abstractmethod
    def shed_input(self, error: ColumnarError) -> bool: ...

    @abstractmethod
    def rest(self, ahead: bool = False) -> None: ...

    # --- what the loop calls -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._peer = name_of_peer(transport)
        self._connected(transport)
        self.input.begin_reading(self._transport)
        self.output.begin_writing(self._transport)
        if not self._server.table.admit(self):
            self.abort(f"{len(self._server.table)} connections are open, which is the limit")
            return
        sock = transport.get_extra_info("socket")
        self._fd = sock.fileno()
        tune(sock)
        if self._server.is_leaving:  # accepted just before the port stopped listening
            asyncio.get_running_loop().call_soon(self.close_between)

    def pause_writing(self) -> None:
        self.output.pause_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        by_us, self._closing, self._has_gone = self._closing, True, True
        self.output.leave_gate()
        self._fd = -1
        self._drop_input()
        if self._server.table.forget_connection(self) and exc is not None and not by_us:
            self.log.info("%s: connection lost: %s", self._peer, exc)

    # --- what table, server and requests call --------------------------------------------------------------

    def abort(self, why: str) -> int:
        self.log.warning("%s: closed: %s", self._peer, why)
        self._closing = self._has_gone = True
        return self.output.abort()

    def has_gone(self) -> bool:
        """Return whether the client has ended the connection or its sending side, by the kernel's word."""
        if not self._has_gone and (self._fd < 0 or has_ended(self._fd)):
            self._has_gone = True
        return self._has_gone
