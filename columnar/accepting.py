"""The accepting side of a supervisor's port: each connection goes to a server before a byte of it is read.

    accept     as the system has them, ACCEPTED_AT_ONCE an iteration of the loop
    hand on    to the living server with the fewest; its descriptor travels over the server's doorbell
    wait       while no server is up nothing is accepted: connections wait in the system's queue

TLS and HTTP are the servers' own: a raw socket is handed on.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from columnar.errors import HostError

_log = logging.getLogger(__name__)

BACKLOG: Final = 1024
ACCEPTED_AT_ONCE: Final = 64
PAUSE_S: Final = 0.1  # where no server takes one, or no descriptor is left


class Accepting:
    def __init__(self, sockets: list[socket.socket], hand_on: Callable[[socket.socket], bool]) -> None:
        """``hand_on``: False: no server takes a connection now.  The connection stays the caller's."""
        self._sockets = sockets
        self._hand_on = hand_on
        self._is_open = False
        self._kept: socket.socket | None = None  # accepted, and not taken as yet
        self._pause: asyncio.TimerHandle | None = None

    @classmethod
    def bound(cls, host: str, port: int, option: str, hand_on: Callable[[socket.socket], bool]) -> Accepting:
        """Bind and listen; nothing is accepted before ``open``.  HostError: the port is taken."""
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
                bound.listen(BACKLOG)
        except OSError as error:
            for one in sockets:
                one.close()
            raise HostError(
                f"cannot listen on {host}:{port}: {error.strerror}; choose another with {option}"
            ) from error
        return cls(sockets, hand_on)

    @property
    def port(self) -> int:
        port: int = self._sockets[0].getsockname()[1]
        return port

    def open(self) -> None:
        """Accept from now on; again: does nothing."""
        self._pause = None
        if self._kept is not None and not self._given(self._kept):
            return
        if not self._is_open:
            self._is_open = True
            loop = asyncio.get_running_loop()
            for one in self._sockets:
                loop.add_reader(one, self._accept, one)

    def wait(self) -> None:
        """Accept nothing until ``open``."""
        if self._is_open:
            self._is_open = False
            for one in self._sockets:
                asyncio.get_running_loop().remove_reader(one)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, _address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptor is left: those that wait go on waiting
                _log.error("cannot accept a connection: %s", error)
                self._later()
                return
            if not self._given(connection):
                return

    def _given(self, connection: socket.socket) -> bool:
        """False: it is kept, and nothing is accepted before it was taken."""
        if not self._hand_on(connection):
            self._kept = connection
            self._later()
            return False
        self._kept = None
        connection.close()  # the server has a descriptor of its own
        return True

    def _later(self) -> None:
        self.wait()
        if self._pause is None:
            self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self.open)

    def close(self) -> None:
        self.wait()
        if self._pause is not None:
            self._pause.cancel()
        if self._kept is not None:
            self._kept.close()
        for one in self._sockets:
            one.close()
