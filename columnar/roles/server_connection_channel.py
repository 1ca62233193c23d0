"""The server's end of its connection channel, over which connections arrive, and return when the server leaves.

    serving    a connection that arrives is taken and served; a surplus returns when the supervisor requests it
    leaving    connections return, each between two requests, including connections that still arrive

A connection returns to the supervisor, not to another server.  The supervisor has a channel to each server, knows which
servers are up and which has the fewest connections, and chooses as for a new client.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from columnar.coordination.connection_channel import DispatchedConnection, receive_connection, send_connection
from columnar.model.owner_messages import HandoverResult
from columnar.operations.scanner_table import ScannerTable
from columnar.roles.ports import ServerPorts
from columnar.runtime.background import Background

_log = logging.getLogger(__name__)

TAKEN_AT_ONCE: Final = 64  # connections in one iteration of the loop


class ServerConnectionChannel:
    def __init__(
        self, channel: socket.socket, ports: ServerPorts, scanners: ScannerTable, on_ended: Callable[[str], None]
    ) -> None:
        """Pass ``channel``, which this object owns from now on.

        ``on_ended`` is called when the supervisor has closed its end.
        """
        self._channel = channel
        self._ports = ports
        self._scanners = scanners
        self._on_ended = on_ended
        self._taking = Background("connections that are taken")
        self._is_leaving = False
        self._going: deque[DispatchedConnection] = (
            deque()
        )  # connections on their way back; at most ``limits.CONNECTIONS`` per port
        self._all_gone = asyncio.Event()
        self._is_full = False  # the supervisor has not taken the previous ones
        self.taken = 0
        self.given = 0

    @property
    def open(self) -> int:
        """The number of connections that the server has, including those to its own ports."""
        return self._ports.connections + len(self._taking) + len(self._going)

    def begin(self) -> None:
        asyncio.get_running_loop().add_reader(self._channel, self._rung)

    def _rung(self) -> None:
        for _ in range(TAKEN_AT_ONCE):
            if not self._take_next():
                return

    def _take_next(self) -> bool:
        """Take a connection from the channel.  Returns False if none waits."""
        try:
            dispatched = receive_connection(self._channel)
        except BlockingIOError:
            return False
        except OSError as error:
            _log.error("a connection was not handed over: %s", error)
            return False
        if dispatched is None:
            self.close()
            self._on_ended("the doorbell has ended")
            return False
        self.taken += 1
        if self._is_leaving:
            self._return_connection(dispatched)
        else:
            self._taking.spawn(self._ports.take_connection(dispatched))
        return True

    # --- leaving -------------------------------------------------------------------------------------

    async def hand_over(self, within_s: float) -> HandoverResult:
        """Transfer all clients.  Returns when no client is left and no scanner is open, or after ``within_s``."""
        self._is_leaving = True
        while self._take_next():  # sent by the supervisor before its request
            pass
        given_before, closed_before = self.given, self._ports.closed_between
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._taking.ended()
                await self._ports.leave(self._return_connection)
                while self._going:
                    self._all_gone.clear()
                    await self._all_gone.wait()
                await self._scanners.all_closed()
        given, closed = self.given - given_before, self._ports.closed_between - closed_before
        return HandoverResult(given, closed, self.open, len(self._scanners))

    async def part_with(self, most: int, within_s: float) -> int:
        """Transfer up to ``most`` connections to the supervisor while the server keeps serving.  Returns their number.

        A connection with open scanners stays; else its scanners would be closed early, as if the client had
        disconnected.
        """
        if self._is_leaving:
            return 0
        return await self._ports.part_with(most, self._return_connection, self._scanners.has_open, within_s)

    def _return_connection(self, dispatched: DispatchedConnection) -> None:
        self._going.append(dispatched)
        if not self._is_full:
            self._send()

    def _send(self) -> None:
        while self._going:
            if not send_connection(self._channel, self._going[0]):
                if not self._is_full:
                    self._is_full = True
                    asyncio.get_running_loop().add_writer(self._channel, self._send)
                return
            self._going.popleft().connection.close()
            self.given += 1
        if self._is_full:
            self._is_full = False
            asyncio.get_running_loop().remove_writer(self._channel)
        self._all_gone.set()

    def close(self) -> None:
        """Take and transfer no more connections.  Idempotent."""
        if self._channel.fileno() < 0:
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._channel)
        loop.remove_writer(self._channel)
        self._channel.close()
        while self._going:
            self._going.popleft().connection.close()
