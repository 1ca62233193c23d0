"""Transfer of connections to another server, between two requests: all connections of a server that leaves, or a few.

    within a request --answered--> replies unsent --sent--> transferred     plain TCP
                                                            closed          TLS, whose keys cannot be passed on, and
                                                                            users, who sign in again

The client of a transferred connection notices nothing: its connection stays open, and received bytes of its next
request are passed on with it.  A request of more than READ_BYTES that has begun to arrive is answered first.

Invariant: a connection is transferred only when each request that came out of its stream is answered and sent.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from columnar.coordination.connection_channel import READ_BYTES

if TYPE_CHECKING:
    from columnar.wire.connection import Connection

CHECKED_AT_ONCE: Final = 64  # connections in an iteration of the loop: 1 ms, and as many additional descriptors

_log = logging.getLogger("columnar.wire")
Give = Callable[[socket.socket, bytes], None]  # the callee owns the socket
Stays = Callable[[int], bool]  # by the id of a connection


class Leaving:
    """Transfers all connections.  ``check_connection`` is called whenever a connection may be between two requests."""

    def __init__(self, give: Give | None) -> None:
        """Pass ``give``, which transfers a connection, or None if connections are to be closed."""
        self._give = give
        self.closed = 0

    def check_connections(self, connections: list[Connection]) -> None:
        """Check the connections, CHECKED_AT_ONCE in each loop iteration."""
        for connection in connections[:CHECKED_AT_ONCE]:
            self.check_connection(connection)
        if len(connections) > CHECKED_AT_ONCE:
            asyncio.get_running_loop().call_soon(self.check_connections, connections[CHECKED_AT_ONCE:])

    def check_connection(self, connection: Connection) -> None:
        read = connection.begun(READ_BYTES)
        if read is None:
            return
        if self._give is None:
            if not read:
                self.closed += 1
                connection.begin_close()
        elif connection.output.unsent_now():
            connection.send_all()
        else:
            try:
                descriptor = connection.let_go()
            except OSError as error:  # serve it until its next request is answered, or the server stops
                _log.error("%s: cannot go on at another server: %s", connection.peer, error)
                return
            self._give(socket.socket(fileno=descriptor), read)


class Surplus(Leaving):
    """Transfers some of the connections that other processes accepted; the server keeps serving the rest."""

    def __init__(self, give: Give, most: int, stays: Stays) -> None:
        super().__init__(self._passed_on)
        self._stays = stays
        self._pass_on = give
        self._most = most
        self.given = 0
        self.all_gone = asyncio.Event()

    def check_connection(self, connection: Connection) -> None:
        """Transfer the connection if it is between two requests and may leave.

        A client that connected to this server's own port chose this server, and stays.  A client that is slow to read
        its replies also stays, because waiting for unsent replies would delay its requests.
        """
        if self.given == self._most or not connection.was_brought or connection.output.unsent_now():
            return
        if not self._stays(connection.number):
            super().check_connection(connection)

    def _passed_on(self, connection: socket.socket, read: bytes) -> None:
        self.given += 1
        if self.given == self._most:
            self.all_gone.set()
        self._pass_on(connection, read)
