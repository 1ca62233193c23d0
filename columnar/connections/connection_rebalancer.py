"""Rebalances the connections of the servers of a supervisor: the server with the most returns its surplus, repeatedly.

A restarted server has no connections, and clients of pools do not reconnect for days.  Without rebalancing the first
of two servers would read every request of all old clients after a rolling restart, and forward half of them.

    checks     at each beat of a server, while no request is under way
    requests   the surplus of the server with the most; a returned connection is dispatched like a new one
    pauses     TICK_S, or RETRY_S after a server returned fewer than requested: its clients are busy

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.coordination.open_connections import OpenConnections
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import ReturnConnections

_log = logging.getLogger(__name__)

TICK_S: Final = 1.0
RETRY_S: Final = 10.0
WITHIN_S: Final = 2.0  # in which a connection that works is between two requests at some time

RequestServer = Callable[[Incarnation, ReturnConnections], Awaitable[int]]


class ConnectionRebalancer:
    def __init__(
        self,
        connections: OpenConnections[Incarnation],
        taking: Callable[[], Iterable[Incarnation]],
        request_server: RequestServer,
    ) -> None:
        """``taking``: the servers that take connections now; ``request_server``: ``ServerProcesses.request_server``."""
        self._open = connections
        self._taking = taking
        self._request_server = request_server
        self._asking: asyncio.Task[None] | None = None
        self._not_before_s = 0.0
        self._is_closed = False

    def tick(self) -> None:
        """Start a rebalance if a server has a surplus.  Costs O(servers), at most once in TICK_S."""
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
        except (NotSent, LinkBroke):
            pass  # the server ends, and its connections with it
        except Exception:  # noqa: BLE001 - connections are uneven until the next check, and every client is served
            _log.exception("server %s gives no connections back", server)
        finally:
            self._not_before_s = asyncio.get_running_loop().time() + pause_s
            self._asking = None

    def close(self) -> None:
        """Stop checking, and cancel the request under way."""
        self._is_closed = True
        if self._asking is not None:
            self._asking.cancel()
