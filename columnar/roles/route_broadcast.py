"""Broadcast of routes: each linked server gets all routes once, then every change, and all routes again if it lags.

Invariants:
    B1. A server gets routes after the rows of owners are on disk, and before it is requested to open or close regions
        by them.  Therefore the caller first reports a written row to this class.
    B2. A server gets no routes before ``replace_routes``, which is called when the server has every table: a server
        that has routes takes connections, and would answer that a table it lacks does not exist.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.master.cluster_status_builder import list_blocked_regions
from columnar.master.publishing import Publishing
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.model.route import ChangeRoutes, RoutesVersion, first_of
from columnar.roles.cluster_servers import Servers
from columnar.roles.state_events import StateEvents

Compose: TypeAlias = Callable[[], Message[None]]  # makes the newest message


class RouteBroadcast:
    def __init__(self, events: StateEvents, servers: Servers, leader: int) -> None:
        """``leader``: the master's epoch, so that a server that had routes of an earlier master replaces them all."""
        self.publishing = Publishing(first_of(leader))
        self.greeted: dict[Incarnation, bool] = {}  # linked servers that are not reaped, and whether each has routes
        self._latest: dict[Incarnation, Compose | None] = {}  # servers that have not answered -> what they get next
        self._events = events
        self._servers = servers
        self._blocked_regions: dict[int, str] = {}  # regions that stay closed, as last published

    def publish_routes(self) -> None:
        """Send every server the changes since the last call, if there are any."""
        change = self.publishing.take()
        if change is not None:
            for server, has_routes in self.greeted.items():
                if not has_routes:
                    continue  # ``replace_routes`` will send this change too
                self._events.spawn(self._send_routes(server, change))

    async def _send_routes(self, server: Incarnation, change: ChangeRoutes) -> None:
        try:
            version: RoutesVersion = await self._servers.request_server(server, change)
            if version.needs_all or version.number < change.number:
                await self.replace_routes(server)
        except (NotSent, LinkBroke):
            return  # the end of the server is reported separately

    async def replace_routes(self, server: Incarnation) -> None:
        """Send all routes; from now on the server gets each change."""
        if server in self.greeted:
            self.greeted[server] = True
        await self._servers.request_server(server, self.publishing.everything())

    def publish_blocked_regions(self) -> None:
        """Publish why regions stay closed, so that every server refuses calls for them with the reason."""
        blocked = list_blocked_regions(self._events.state)
        if blocked != self._blocked_regions:
            self._blocked_regions = blocked
            self.publishing.set_blocked_regions(blocked)
            self.publish_routes()

    def send_latest(self, compose: Compose) -> None:
        """Send every server ``compose()``, by which a newer message replaces an older one.

        A server that has not answered yet gets the newest message once it has: when all servers of a large cluster
        start, each of them gets a few of these messages instead of one for each other server.
        """
        for server in self.greeted:
            is_busy = server in self._latest
            self._latest[server] = compose
            if not is_busy:
                self._events.spawn(self._send_latest(server))

    async def _send_latest(self, server: Incarnation) -> None:
        try:
            while (compose := self._latest[server]) is not None:
                self._latest[server] = None
                await self._servers.request_server(server, compose())
        except (NotSent, LinkBroke):
            return  # the end of the server is reported separately
        finally:
            del self._latest[server]

    def send_message(self, server: Incarnation, message: Message[None]) -> None:
        """Send a request without waiting for its answer."""
        self._events.spawn(self._sent(server, message))

    async def _sent(self, server: Incarnation, message: Message[None]) -> None:
        try:
            await self._servers.request_server(server, message)
        except (NotSent, LinkBroke):
            return  # the end of the server is reported separately
