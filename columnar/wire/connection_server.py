"""A listening server of any protocol with one port: its connections, what they carry out, and how the port ends.

    starting --start--> serving --leave--> leaving: each connection ends between two requests    --close--> closed
                                --close---------------------------------------------------------> closed

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from columnar.wire.connection_table import ConnectionTable
from columnar.wire.sockets import ListeningSockets, take_accepted

if TYPE_CHECKING:
    from columnar.wire.tls_protocol import Tls

log = logging.getLogger("columnar.wire")
T = TypeVar("T")


class _Connection(Protocol):
    def close_between(self) -> None:
        """Close after the requests that have begun."""


class ConnectionServer(ABC):
    """The part of a server that knows no protocol; with ``tls`` the port speaks only TLS."""

    def __init__(self, table: ConnectionTable, tls: Tls | None) -> None:
        self.table = table
        self.is_leaving = False
        self._tls = tls
        self._listening = ListeningSockets()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 takes a free port.  Raises OSError if the address is in use."""
        await self._listening.listen(self._accept, host, port)

    async def take_connection(self, connection: socket.socket, read: bytes = b"") -> None:
        """Serve a client's connection that another process accepted, as if the client had connected to this port.

        ``read`` has bytes of the next request that are read already.  A client that has disconnected is no error.
        """
        assert not read, "a port of this kind gives no connection on"
        await take_accepted(self._accept, connection)

    @property
    def port(self) -> int:
        assert self._listening.port, "not started"
        return self._listening.port

    async def leave(self) -> None:
        """Stop listening, and close each connection after its next answer.  Returns when none is left."""
        self.is_leaving = True
        await self._listening.close_public()
        for connection in list(self.table.connections):
            cast(_Connection, connection).close_between()
        await self.table.wait_empty()

    async def close(self, grace_s: float) -> None:
        """Stop listening, let requests finish for up to ``grace_s``, cancel the rest, close all connections."""
        self._listening.begin_close()
        await self.table.close_all(grace_s)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._listening.wait_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run what a request still needs; ``close`` ends it even after its connection has ended."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @abstractmethod
    def _make_connection(self) -> Any:
        """Return the protocol of a new connection."""

    def _accept(self) -> Any:
        return self._tls.make_protocol(self._make_connection) if self._tls is not None else self._make_connection()
