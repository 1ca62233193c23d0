"""Dispatches client connections to the servers of a supervisor: each goes to the server with the fewest open.

A server takes connections while it is up and not leaving.  Its connection channel has a short queue; if every queue is
full, or no server is up, the caller keeps its connection and waits until a server may take it.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from columnar.coordination.connection_channel import DispatchedConnection
from columnar.coordination.open_connections import OpenConnections
from columnar.coordination.processes import Child
from columnar.model.owner import Incarnation
from columnar.runtime.faults import surviving

PAUSE_S: Final = 0.1  # between two checks whether a server is up


class ConnectionDispatcher:
    def __init__(self, taking: Callable[[], Mapping[Incarnation, Child]]) -> None:
        """``taking``: the servers that take connections now."""
        self._taking = taking
        self.open: OpenConnections[Incarnation] = OpenConnections()
        self._waiting: list[Callable[[], None]] = []
        self._watched: list[socket.socket] = []  # doorbells that are full: copies, for a child closes its own
        self._pause: asyncio.TimerHandle | None = None

    def dispatch(self, dispatched: DispatchedConnection) -> bool:
        """Send the connection to a server and close it here; False: no server takes it now, and the caller keeps it."""
        taking = self._taking()
        for server in self.open.fewest_first(taking):
            if taking[server].send_connection(dispatched):
                self.open.count_dispatched(server)
                dispatched.connection.close()
                return True
        return False

    def wait(self, again: Callable[[], None]) -> None:
        """Call ``again`` once, when a server may take a connection; it may fail again."""
        self._waiting.append(again)
        if self._watched or self._pause is not None:
            return
        loop = asyncio.get_running_loop()
        for child in self._taking().values():
            with suppress(OSError):  # no descriptor is left, or the child has ended
                channel = child.connection_channel.dup()
                self._watched.append(channel)
                loop.add_writer(channel, self._again)
        self._pause = loop.call_later(PAUSE_S, self._again)  # no server is up, or one with a full queue has ended

    def _again(self) -> None:
        self._stop_watching()
        waiting, self._waiting = self._waiting, []
        for again in waiting:
            with surviving("connections that wait for a server"):
                again()

    def _stop_watching(self) -> None:
        for channel in self._watched:
            asyncio.get_running_loop().remove_writer(channel)
            channel.close()
        self._watched.clear()
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    def close(self) -> None:
        """Call no callback any more."""
        self._waiting.clear()
        self._stop_watching()
