"""The listeners of a supervisor: sources of connections.  Each connection is dispatched between two requests.

    Port                   clients that connect: each connection goes to a server before any byte of it is read
    ReturnedConnections    a leaving server: each connection that it returns goes to a different server, until the
                           channel ends

    take       connections are taken as they arrive, up to TAKEN_AT_ONCE per loop iteration
    wait       if no server takes a connection, it is kept, and the listener is not read until a server does; other
               connections wait in the system's queues

Raw sockets are dispatched; the servers handle TLS and HTTP.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final, Protocol

from columnar.coordination.connection_channel import DispatchedConnection, receive_connection
from columnar.errors import HostError

_log = logging.getLogger(__name__)

BACKLOG: Final = 1024
TAKEN_AT_ONCE: Final = 64
PAUSE_S: Final = 0.1  # after no file descriptor was free


class Servers(Protocol):
    """The part of ``connection_dispatcher.ConnectionDispatcher`` that listeners call."""

    def dispatch(self, dispatched: DispatchedConnection) -> bool: ...

    def wait(self, again: Callable[[], None]) -> None: ...


class Listener:
    """A source of connections that arrive over sockets; a subclass implements how."""

    def __init__(self, sockets: list[socket.socket], servers: Servers) -> None:
        """Pass non-blocking sockets, which this object owns from now on."""
        self.sockets = sockets
        self._servers = servers
        self._is_open = False
        self._is_over = False
        self._kept: DispatchedConnection | None = None  # taken from the source, and not yet by a server
        self._pause: asyncio.TimerHandle | None = None

    def next(self, sock: socket.socket) -> DispatchedConnection | None:
        """Return the next connection, or None if the source has ended.

        Raises BlockingIOError if none waits, and any other OSError if the connection could not be taken.
        """
        raise NotImplementedError

    def open(self) -> None:
        """Take connections from now on.  A second call does nothing."""
        self._pause = None
        if self._is_over or (self._kept is not None and not self._given(self._kept)):
            return
        if not self._is_open:
            self._is_open = True
            for one in self.sockets:
                asyncio.get_running_loop().add_reader(one, self._take, one)

    def wait(self) -> None:
        """Take no connections until the next ``open``."""
        if self._is_open:
            self._is_open = False
            for one in self.sockets:
                asyncio.get_running_loop().remove_reader(one)

    def _take(self, sock: socket.socket) -> None:
        for _ in range(TAKEN_AT_ONCE):
            try:
                dispatched = self.next(sock)
            except (BlockingIOError, ConnectionAbortedError):
                return
            except ConnectionResetError:  # a server ended with connections in its queue; those that it returned follow
                continue
            except OSError as error:  # no file descriptor is free: connections keep waiting
                _log.error("cannot take a connection: %s", error)
                self.wait()
                self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self.open)
                return
            if dispatched is None:
                self.close()
                return
            if not self._given(dispatched):
                return

    def _given(self, dispatched: DispatchedConnection) -> bool:
        """Dispatch the connection, or keep it.

        Returns False if the connection is kept; then no other connection is taken until a server takes this one.
        """
        if self._servers.dispatch(dispatched):
            self._kept = None
            return True
        self._kept = dispatched
        self.wait()
        self._servers.wait(self.open)
        return False

    def close(self) -> None:
        self.wait()
        self._is_over = True
        if self._pause is not None:
            self._pause.cancel()
        if self._kept is not None:
            self._kept.connection.close()
            self._kept = None
        for one in self.sockets:
            one.close()


class Port(Listener):
    def __init__(self, service: bytes, sockets: list[socket.socket], servers: Servers) -> None:
        """Pass the port's service as ``coordination.connection_channel`` names it."""
        super().__init__(sockets, servers)
        self._service = service

    @classmethod
    def bound(cls, service: bytes, host: str, port: int, option: str, servers: Servers) -> Port:
        """Bind the port, so that no other process gets it; clients are refused before ``listen``.

        Raises HostError if the port is taken.
        """
        sockets: list[socket.socket] = []
        try:
            infos = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, kind, protocol, _, address in dict.fromkeys(infos):
                bound = socket.socket(family, kind, protocol)
                sockets.append(bound)
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                chosen = sockets[0].getsockname()[1] if len(sockets) > 1 else port
                bound.bind((address[0], chosen, *address[2:]))
                bound.setblocking(False)
        except OSError as error:
            for one in sockets:
                one.close()
            raise _taken(host, port, option, error) from error
        return cls(service, sockets, servers)

    def listen(self, host: str, option: str) -> None:
        """Listen; call before ``open``.  Raises HostError if another program listens on the port."""
        try:
            for one in self.sockets:
                one.listen(BACKLOG)
        except OSError as error:
            raise _taken(host, self.port, option, error) from error

    @property
    def port(self) -> int:
        port: int = self.sockets[0].getsockname()[1]
        return port

    def next(self, sock: socket.socket) -> DispatchedConnection:
        connection, _address = sock.accept()
        return DispatchedConnection(self._service, connection)


def _taken(host: str, port: int, option: str, error: OSError) -> HostError:
    return HostError(f"cannot listen on {host}:{port}: {error.strerror}; choose another with {option}")


class ReturnedConnections(Listener):
    """The connections that a server returns; closed when the server has ended and its last connection is dispatched."""

    def __init__(
        self, channel: socket.socket, servers: Servers, returned: Callable[[], None], ended: Callable[[], None]
    ) -> None:
        """Pass ``channel``, which this object owns from now on.

        ``returned`` is called for each connection, ``ended`` at the channel's end.
        """
        super().__init__([channel], servers)
        self._returned = returned
        self._ended = ended

    def next(self, sock: socket.socket) -> DispatchedConnection | None:
        dispatched = receive_connection(sock)
        if dispatched is not None:
            self._returned()
        return dispatched

    def close(self) -> None:
        super().close()
        self._ended()
