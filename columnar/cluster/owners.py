"""The other servers of a cluster, as a call on several rows sees them, and its search for the owners of its rows.

A call sends requests to the owner that the copy of the routes names.  That server may not own the region yet, or any
more, or be unreachable: then nothing was done there, and the call repeats the lookup.  It does so when the routes or
the regions of this server change, or after a pause, because a route may be ahead of its owner, which is notified a
moment later.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from columnar.cluster import refusals
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_link import Refused
from columnar.cluster.routes import Routes
from columnar.errors import NotServingRegion
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.model.route import Route
from columnar.regions.life.retry import UNAVAILABLE_TIMEOUT_S

R = TypeVar("R")

FIRST_PAUSE_S: Final = 0.005
LONGEST_PAUSE_S: Final = 0.32
NOTHING_DONE: Final = (NotSent, Refused)  # errors of ``request_server`` that say so; LinkBroke: outcome unknown


class Owners(Protocol):
    @property
    def local_server(self) -> Incarnation: ...

    def owner_of(self, table: str, row: bytes) -> Route | None:
        """The route of the region that holds the row; None: no such table is known."""

    def routes_of(self, table: str) -> Sequence[Route]:
        """All routes of a table, ascending; not to be kept across a wait."""

    async def request_server(self, server: Incarnation, message: Message[R], size_bytes: int = 0) -> R:
        """NotSent, LinkBroke, Refused; the error that the server met.

        ``size_bytes``: of the message or its answer, roughly, where it may be large: small ones go past it then.
        """

    def change(self) -> asyncio.Future[None]:
        """A future that ends with the next change of the routes, or of what this server owns; shared."""


class Asking(Protocol):
    """The links to other servers."""

    async def request_server(self, server: Incarnation, message: Message[R], size_bytes: int = 0) -> R: ...


class RoutedOwners:
    """``Owners`` by this server's copy of the routes and its links."""

    def __init__(self, local_server: Incarnation, routes: Routes, links: Asking) -> None:
        self.local_server = local_server  # constant, as are the next two
        self._routes = routes
        self._links = links
        self._change: asyncio.Future[None] | None = None

    def owner_of(self, table: str, row: bytes) -> Route | None:
        return self._routes.find(table, row)

    def routes_of(self, table: str) -> Sequence[Route]:
        return self._routes.of_table(table)

    async def request_server(self, server: Incarnation, message: Message[R], size_bytes: int = 0) -> R:
        return await self._links.request_server(server, message, size_bytes)

    def change(self) -> asyncio.Future[None]:
        if self._change is None:
            self._change = asyncio.get_running_loop().create_future()
        return self._change

    def changed(self) -> None:
        """To be called after each change of the routes, and when this server owns a region that it did not own."""
        change, self._change = self._change, None
        if change is not None and not change.done():
            change.set_result(None)


class Search:
    """The search of a call: ``watch_routes`` before each lookup, ``again`` after one that found no owner."""

    def __init__(self, owners: Owners, table: str) -> None:
        self._owners = owners
        self._table = table
        self._change: asyncio.Future[None] | None = None
        self._deadline_s: float | None = None  # None: the last lookup succeeded
        self._pause_s = FIRST_PAUSE_S
        self.tries = 0  # since the last lookup that led somewhere
        self._ended: dict[bytes, Incarnation] = {}  # owners that ended while they worked on these rows

    def watch_routes(self) -> None:
        """Watch the routes from now on: a change after this call ends the wait of ``again``."""
        self._change = self._owners.change()

    def succeeded(self) -> None:
        self._deadline_s, self._pause_s, self.tries = None, FIRST_PAUSE_S, 0

    def broke(self, server: Incarnation, rows: Iterable[bytes]) -> None:
        """The link to an owner broke while it worked on these rows.  ServersEnded: it is the second one of a row.

        Such work is done again once, and no more: it may be what ended them.
        """
        for row in rows:
            before = self._ended.setdefault(row, server)
            if before != server:
                raise refusals.deadly(self._table, row, server)

    async def again(self, row: bytes) -> None:
        """Return when another lookup may succeed.

        NotServingRegion: none succeeded for UNAVAILABLE_TIMEOUT_S, or the region is blocked.
        """
        assert self._change is not None, "it was looked before"
        route = self._owners.owner_of(self._table, row)
        if route is not None and route.blocked_reason:
            raise NotServingRegion(route.blocked_reason)
        now_s = asyncio.get_running_loop().time()
        if self._deadline_s is None:
            self._deadline_s = now_s + UNAVAILABLE_TIMEOUT_S
        if now_s >= self._deadline_s:
            raise refusals.refuse_unavailable(route.region if route is not None else None, self._table)
        pause_s = min(self._pause_s, self._deadline_s - now_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self.tries += 1
        await asyncio.wait([self._change], timeout=pause_s)


def by_owner(
    owners: Owners, table: str, rows: Iterable[tuple[int, bytes]], tries: int = 0
) -> dict[Incarnation, list[int]]:
    """Group the numbers of rows by the server to call, in order; this server refuses rows without a route.

    While a region moves, its old owner answers until it has closed the region, and then the next owner answers: the
    two are tried alternately.  ``tries``: ``Search.tries``.
    """
    found: dict[Incarnation, list[int]] = {}
    route: Route | None = None
    server = owners.local_server
    for number, row in rows:
        if route is None or not route.region.contains_row(row):
            route = owners.owner_of(table, row)
            server = owners.local_server if route is None else choose_server(route, tries)
        found.setdefault(server, []).append(number)
    return found


def choose_server(route: Route, tries: int) -> Incarnation:
    return route.server if route.source is None or tries % 2 else route.source.server


__all__ = ["LinkBroke", "NotSent", "Owners", "Refused", "RoutedOwners", "Search", "by_owner", "choose_server"]
