"""The listeners of a supervisor: sources of connections, each of which is dispatched between two of its requests.

    Port                   clients that connect: each goes to a server before a byte of it is read
    ReturnedConnections    a leaving server: each connection that it returns goes to another, up to its channel's end

    take       as they come, TAKEN_AT_ONCE per loop iteration
    wait       if no server takes a connection: it is kept, and the listener is not read until one does; other
               connections wait in the system's queues

TLS and HTTP are handled by the servers: a raw socket is dispatched.  Owned by the loop.
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
PAUSE_S: Final = 0.1  # after no descriptor was left


class Servers(Protocol):
    """``connection_dispatcher.ConnectionDispatcher``."""

    def dispatch(self, dispatched: DispatchedConnection) -> bool: ...

    def wait(self, again: Callable[[], None]) -> None: ...


class Listener:
    """Connections that come over sockets; a subclass says how."""

    def __init__(self, sockets: list[socket.socket], servers: Servers) -> None:
        """``sockets``: this object's from now on; they do not block."""
        self.sockets = sockets
        self._servers = servers
        self._is_open = False
        self._is_over = False
        self._kept: DispatchedConnection | None = None  # taken, and no server has it as yet
        self._pause: asyncio.TimerHandle | None = None

    def next(self, sock: socket.socket) -> DispatchedConnection | None:
        """The next connection; None: the source has ended.  BlockingIOError: none waits.  OSError: it was not taken."""
        raise NotImplementedError

    def open(self) -> None:
        """Take connections from now on; again: does nothing."""
        self._pause = None
        if self._is_over or (self._kept is not None and not self._given(self._kept)):
            return
        if not self._is_open:
            self._is_open = True
            for one in self.sockets:
                asyncio.get_running_loop().add_reader(one, self._take, one)

    def wait(self) -> None:
        """Take nothing until ``open``."""
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
            except ConnectionResetError:  # a server has ended with connections in its queue; its own follow those
                continue
            except OSError as error:  # no descriptor is left: waiting connections keep waiting
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
        """Dispatch the connection; False: it is kept, and nothing is taken before a server has it."""
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
        """``service``: the port's service, as of ``coordination.connection_channel``."""
        super().__init__(sockets, servers)
        self._service = service

    @classmethod
    def bound(cls, service: bytes, host: str, port: int, option: str, servers: Servers) -> Port:
        """Bind: no other process gets the port, and clients are refused before ``listen``.  HostError: it is taken."""
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
        """Listen, before ``open``.  HostError: another program listens on the port."""
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
    """The connections that a server returns; closed when the server has ended and the last one is dispatched."""

    def __init__(
        self, channel: socket.socket, servers: Servers, returned: Callable[[], None], ended: Callable[[], None]
    ) -> None:
        """``channel``: owned by this object from now on.

        ``returned`` is called for each connection; ``ended`` at the end.
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
