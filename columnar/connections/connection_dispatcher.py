"""Dispatches client connections to a supervisor's servers: each goes to the server with the fewest open connections.

A server takes connections while it is up and not leaving.  Each server's connection channel has a short queue.  If
every queue is full, or no server is up, the caller keeps the connection and waits until a server may take it.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Final, Generic, TypeVar

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.coordination.connection_channel import DispatchedConnection
from columnar.coordination.processes import Beat, Child
from columnar.errors import OutcomeUnknown
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import ReturnConnections
from columnar.runtime.faults import surviving

PAUSE_S: Final = 0.1  # between two checks whether a server is up


Name = TypeVar("Name", bound=Hashable)
TOLERATED_PART: Final = 8


class OpenConnections(Generic[Name]):
    """The number of open connections of each server, as its supervisor knows it.

        open = the server's own number in its last heartbeat
             + connections dispatched to the server that it had not taken at that heartbeat
             - connections that the server has returned since that heartbeat

    Server and supervisor both count the connections on the channel since the server's start, so a late heartbeat only
    makes the number old: no connection is counted twice.

    Knows nothing of sockets and processes; ``Name`` is the type of a server's identifier.
    """

    def __init__(self) -> None:
        self._said: dict[Name, Beat] = {}
        self._dispatched: dict[Name, int] = {}  # to the server, since its start
        self._returned: dict[Name, int] = {}  # by the server, since its start

    def joined(self, server: Name) -> None:
        self._said[server], self._dispatched[server], self._returned[server] = Beat(0), 0, 0

    def ended(self, server: Name) -> None:
        for counts in (self._said, self._dispatched, self._returned):
            counts.pop(server, None)

    def said(self, server: Name, beat: Beat) -> None:
        if server in self._said:
            self._said[server] = beat

    def count_dispatched(self, server: Name) -> None:
        self._dispatched[server] += 1

    def count_returned(self, server: Name) -> None:
        """Count a connection that the server returned.  Has no effect if the server has ended meanwhile."""
        if server in self._returned:
            self._returned[server] += 1

    def of(self, server: Name) -> int:
        said = self._said.get(server)
        if said is None:
            return 0
        coming = max(0, self._dispatched[server] - said.taken)
        return max(0, said.open + coming - max(0, self._returned[server] - said.given))

    def surplus(self, servers: Iterable[Name]) -> tuple[Name, int] | None:
        """Return the server with the most connections and its excess over an equal share, or None if balanced.

        O(servers).  An excess of one connection, or of an eighth of a share, counts as balanced, because connections
        come and go.
        """
        counts = {server: self.of(server) for server in servers if server in self._said}
        if len(counts) < 2:
            return None
        fullest = max(counts, key=counts.__getitem__)
        share = -(-sum(counts.values()) // len(counts))
        over = counts[fullest] - share
        if over <= share // TOLERATED_PART or counts[fullest] - min(counts.values()) < 2:
            return None
        return fullest, over

    def fewest_first(self, servers: Iterable[Name]) -> list[Name]:
        """Return the servers that have joined, fewest open connections first; equals keep the order of joining."""
        wanted = set(servers)
        return sorted((server for server in self._said if server in wanted), key=self.of)


class ConnectionDispatcher:
    def __init__(self, taking: Callable[[], Mapping[Incarnation, Child]]) -> None:
        """Pass ``taking``, which returns the servers that take connections now."""
        self._taking = taking
        self.open: OpenConnections[Incarnation] = OpenConnections()
        self._waiting: list[Callable[[], None]] = []
        self._watched: list[socket.socket] = []  # copies of full channels, because a child's end closes its own
        self._pause: asyncio.TimerHandle | None = None

    def dispatch(self, dispatched: DispatchedConnection) -> bool:
        """Send the connection to a server and close our descriptor.

        Returns False if no server takes the connection now; then the caller keeps the connection.
        """
        taking = self._taking()
        for server in self.open.fewest_first(taking):
            if taking[server].send_connection(dispatched):
                self.open.count_dispatched(server)
                dispatched.connection.close()
                return True
        return False

    def wait(self, again: Callable[[], None]) -> None:
        """Have ``again`` called once, when a server may take a connection.  The next ``dispatch`` may fail again."""
        self._waiting.append(again)
        if self._watched or self._pause is not None:
            return
        loop = asyncio.get_running_loop()
        for child in self._taking().values():
            with suppress(OSError):  # no file descriptor is free, or the child has ended
                channel = child.connection_channel.dup()
                self._watched.append(channel)
                loop.add_writer(channel, self._again)
        self._pause = loop.call_later(PAUSE_S, self._again)  # no server is up, or a server with a full queue has ended

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
        """Cancel all callbacks."""
        self._waiting.clear()
        self._stop_watching()


_log = logging.getLogger(__name__)

TICK_S: Final = 1.0
RETRY_S: Final = 10.0
WITHIN_S: Final = 2.0  # in which a busy connection is at least once between two requests

RequestServer = Callable[[Incarnation, ReturnConnections], Awaitable[int]]


class ConnectionRebalancer:
    """Rebalances a supervisor's servers: repeatedly, the server with the most connections returns its surplus.

    A restarted server has no connections, and clients with connection pools do not reconnect for days.  Without
    rebalancing, after a rolling restart of two servers, the server restarted first would receive every request of all
    old clients, and forward half of the requests.

        checks     at each heartbeat of a server, while no request to return connections is under way
        requests   the surplus of the server with the most connections; returned connections are dispatched as new ones
        pauses     TICK_S, or RETRY_S if a server returned fewer connections than requested, as its clients are busy

    Owned by the loop.
    """

    def __init__(
        self,
        connections: OpenConnections[Incarnation],
        taking: Callable[[], Iterable[Incarnation]],
        request_server: RequestServer,
    ) -> None:
        """Pass ``taking``, which returns the servers that take connections now.

        ``request_server`` is ``ServerProcesses.request_server``.
        """
        self._open = connections
        self._taking = taking
        self._request_server = request_server
        self._asking: asyncio.Task[None] | None = None
        self._not_before_s = 0.0
        self._is_closed = False

    def tick(self) -> None:
        """Start a rebalance if a server has a surplus.  Costs O(servers), at most once per TICK_S."""
        loop = asyncio.get_running_loop()
        if self._is_closed or self._asking is not None or loop.time() < self._not_before_s:
            return
        self._not_before_s = loop.time() + TICK_S
        found = self._open.surplus(self._taking())
        if found is not None:
            self._asking = asyncio.ensure_future(self._even_out(*found))

    async def _even_out(self, server: Incarnation, surplus: int) -> None:
        pause_s = RETRY_S
        try:
            given = await self._request_server(server, ReturnConnections(surplus, round(WITHIN_S * 1000)))
            _log.info("server %s gives back %d of %d connections that it has over its share", server, given, surplus)
            if given == surplus:
                pause_s = TICK_S
        except (NotSent, LinkBroke, OutcomeUnknown):
            pass  # the server is ending, which closes its connections
        except Exception:  # noqa: BLE001 - connections are uneven until the next check, and every client is served
            _log.exception("server %s gives no connections back", server)
        finally:
            self._not_before_s = asyncio.get_running_loop().time() + pause_s
            self._asking = None

    def close(self) -> None:
        """Stop checking, and cancel a request under way."""
        self._is_closed = True
        if self._asking is not None:
            self._asking.cancel()
