"""Requests to several servers at once: to the owners of rows until each row is taken, and to servers for their status.

``scatter_gather`` cuts the rows of a call by owner, sends each owner one request, and repeats that for the rows that
are left.  The copy of the routes names the owner.  That server may not own the region yet, or any more, or be
unreachable: then nothing was done there.  The next lookup waits for a change of the routes or of the regions of this
server, or for a pause, because a route may be ahead of its owner, which is notified a moment later.

Invariants (``tests/unit/cluster/test_scatter_gather.py``):
    G1. A row that was taken is in no further request.
    G2. A row whose request may have been carried out (LinkBroke) is sent again only if the call allows it, and then
        once: if two servers ended, the call itself may be the cause.
    G3. An error is raised after all requests of its round have ended; an unknown outcome precedes other errors.
    G4. A call fails if no request takes a row for UNAVAILABLE_TIMEOUT_S.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from columnar.cluster import refusals
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_link import Refused
from columnar.cluster.peer_server import Handlers
from columnar.cluster.refusals import PeerFault
from columnar.cluster.routes import Routes
from columnar.cluster.value_codec import BadValue
from columnar.errors import ColumnarError, NotServingRegion, OutcomeUnknown
from columnar.model.flow_status import silent_entry
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.model.route import Route
from columnar.regions.life.retry import UNAVAILABLE_TIMEOUT_S

A = TypeVar("A")
R = TypeVar("R")

FIRST_PAUSE_S: Final = 0.005
LONGEST_PAUSE_S: Final = 0.32
NOTHING_DONE: Final = (NotSent, Refused)  # errors of ``request_server``; after LinkBroke the outcome is unknown
STATUS_TIMEOUT_S: Final = 2.0  # a server that does not answer a status request in this time is named as silent

# (server, numbers of its rows, number of servers in the round) -> the answer
Request = Callable[[Incarnation, list[int], int], Awaitable[A]]
Take = Callable[[list[int], A], Iterable[int]]  # (numbers of the rows, answer) -> the numbers that are left
Unsure = Callable[[Incarnation, list[int]], Exception]  # (server, rows of a request perhaps carried out) -> the error


class Links(Protocol):
    async def request_server(self, server: Incarnation, message: Message[R]) -> R: ...


class SizedLinks(Protocol):
    async def request_server(self, server: Incarnation, message: Message[R], size_bytes: int = 0) -> R:
        """Send the message and return the answer.

        ``size_bytes``: the approximate size of the message or its answer, if it may be large: then small messages do
        not queue behind it.  Raises NotSent, LinkBroke, Refused, or the error that the server met.
        """


class Owners(SizedLinks, Protocol):
    """The servers of a cluster, this one among them, and the owner of each row as far as this server knows."""

    @property
    def local_server(self) -> Incarnation: ...

    def owner_of(self, table: str, row: bytes) -> Route | None:
        """Return the route of the region that holds the row, or None if the table is not known."""

    def routes_of(self, table: str) -> Sequence[Route]:
        """Return all routes of a table, ascending; the caller must not keep them across a wait."""

    def change(self) -> asyncio.Future[None]:
        """Return a shared future that ends with the next change of the routes, or of the regions of this server."""


class RoutedOwners:
    """``Owners`` by this server's copy of the routes, its links and its own handlers."""

    def __init__(self, local_server: Incarnation, routes: Routes, links: SizedLinks, handlers: Handlers) -> None:
        self.local_server = local_server  # constant, as are the next three
        self._routes = routes
        self._links = links
        self._handlers = handlers
        self._change: asyncio.Future[None] | None = None

    def owner_of(self, table: str, row: bytes) -> Route | None:
        return self._routes.find(table, row)

    def routes_of(self, table: str) -> Sequence[Route]:
        return self._routes.of_table(table)

    async def request_server(self, server: Incarnation, message: Message[R], size_bytes: int = 0) -> R:
        if server == self.local_server:
            answer: R = await self._handlers[type(message)](message)
            return answer
        return await self._links.request_server(server, message, size_bytes)

    def change(self) -> asyncio.Future[None]:
        if self._change is None:
            self._change = asyncio.get_running_loop().create_future()
        return self._change

    def changed(self) -> None:
        """End the future of ``change``: call this after a change of the routes, or when this server gets a region."""
        change, self._change = self._change, None
        if change is not None and not change.done():
            change.set_result(None)


# --- owners of rows ----------------------------------------------------------------------------------


async def scatter_gather(
    owners: Owners,
    table: str,
    rows: Sequence[bytes],
    request: Request[A],
    take: Take[A],
    *,
    unsure: Unsure | None = None,
    before_round: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Send requests for the rows to their owners until ``take`` has taken each row.

    ``unsure`` makes the error of a request whose link broke; if it is None, the request may be sent again (G2).
    Raises NotServingRegion, ServersEnded, or the gravest error of a round.
    """
    search, left = Search(owners, table), list(range(len(rows)))
    while left:
        if before_round is not None:
            await before_round()
        still_left = await search.round([(number, rows[number]) for number in left], request, take, unsure)
        if len(still_left) < len(left):
            search.succeeded()
        else:
            await search.again(rows[still_left[0]])
        left = still_left


async def request_owner(
    owners: Owners,
    table: str,
    row: bytes,
    message: Message[R],
    is_not_local: Callable[[R], bool],
    unsure: Unsure | None = None,
) -> R:
    """Send ``message`` to the owner of the row and return the answer.  Raises what ``scatter_gather`` raises."""
    answers: list[R] = []

    def take(numbers: list[int], answer: R) -> Iterable[int]:
        if is_not_local(answer):
            return numbers
        answers.append(answer)
        return ()

    await scatter_gather(
        owners, table, [row], lambda server, *_: owners.request_server(server, message), take, unsure=unsure
    )
    return answers[0]


class Search:
    """The search of a call for the owners of its rows: rounds of requests, and a wait after each round in vain."""

    def __init__(self, owners: Owners, table: str) -> None:
        self._owners = owners
        self._table = table
        self._change: asyncio.Future[None] | None = None  # ends with a change after the last lookup
        self._deadline_s: float | None = None  # None: the last round succeeded
        self._pause_s = FIRST_PAUSE_S
        self._tries = 0  # rounds in vain since the last round that succeeded
        self._ended: dict[bytes, Incarnation] = {}  # owners that ended while they worked on these rows

    async def round(
        self, rows: Iterable[tuple[int, bytes]], request: Request[A], take: Take[A], unsure: Unsure | None = None
    ) -> list[int]:
        """Send each owner a request for its rows; return the numbers of the rows that are left, ascending."""
        keys = dict(rows)
        self._change = self._owners.change()  # a change from here on ends the wait of ``again``
        shares = by_owner(self._owners, self._table, keys.items(), self._tries)
        answers = await asyncio.gather(
            *(request(server, numbers, len(shares)) for server, numbers in shares.items()), return_exceptions=True
        )
        left: list[int] = []
        failures: list[BaseException] = []
        for (server, numbers), answer in zip(shares.items(), answers, strict=True):
            if isinstance(answer, NOTHING_DONE):
                left += numbers
            elif isinstance(answer, LinkBroke) and unsure is None:
                self.broke(server, [keys[number] for number in numbers])
                left += numbers
            elif isinstance(answer, LinkBroke) and unsure is not None:
                failures.append(unsure(server, numbers))
            elif isinstance(answer, BaseException):
                failures.append(answer)
            else:
                left += take(numbers, answer)
        if failures:
            raise next((one for one in failures if isinstance(one, OutcomeUnknown)), failures[0])
        return sorted(left)

    def succeeded(self) -> None:
        self._deadline_s, self._pause_s, self._tries = None, FIRST_PAUSE_S, 0

    def broke(self, server: Incarnation, rows: Iterable[bytes]) -> None:
        """Note that the link to an owner broke while it worked on these rows.

        Raises ServersEnded if a different owner had ended before while it worked on one of them.
        """
        for row in rows:
            before = self._ended.setdefault(row, server)
            if before != server:
                raise refusals.deadly(self._table, row, server)

    async def again(self, row: bytes) -> None:
        """Wait until a new round may succeed.

        Raises NotServingRegion if no round succeeded for UNAVAILABLE_TIMEOUT_S, or if the row's region is blocked.
        """
        assert self._change is not None, "it was looked before"
        route = self._owners.owner_of(self._table, row)
        if route is not None and route.blocked_reason:
            raise NotServingRegion(route.blocked_reason)
        now_s = asyncio.get_running_loop().time()
        if self._deadline_s is None:
            self._deadline_s = now_s + UNAVAILABLE_TIMEOUT_S
        if now_s >= self._deadline_s:
            raise refusals.refuse_unavailable(route, self._table)
        pause_s = min(self._pause_s, self._deadline_s - now_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._tries += 1
        await asyncio.wait([self._change], timeout=pause_s)


def by_owner(
    owners: Owners, table: str, rows: Iterable[tuple[int, bytes]], tries: int = 0
) -> dict[Incarnation, list[int]]:
    """Group the numbers of rows by the server to call, in order.  Rows without a route go to this server to be refused.

    While a region moves, its old owner answers until it has closed the region, and then the next owner answers: the
    two are tried alternately.  ``tries``: rounds in vain so far.
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


# --- status of servers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unanswered:
    server: Incarnation
    why: str = ""  # empty: nothing came in time

    @property
    def by_name(self) -> str:
        return silent_entry(self.server.name, self.why)

    def __str__(self) -> str:
        return silent_entry(str(self.server), self.why)


async def gather_status(
    servers: Iterable[Incarnation], links: Links, message: Message[R], within_s: float = STATUS_TIMEOUT_S
) -> tuple[dict[Incarnation, R], list[Unanswered]]:
    """Return the answers, and the servers that gave none, in the order of ``servers``."""
    requests = {server: asyncio.ensure_future(links.request_server(server, message)) for server in servers}
    if requests:
        await asyncio.wait(requests.values(), timeout=within_s)
    found: dict[Incarnation, R] = {}
    lacking: list[Unanswered] = []
    for server, request in requests.items():
        try:
            if not request.done():
                request.cancel()
                lacking.append(Unanswered(server))
            else:
                found[server] = request.result()
        except (NotSent, LinkBroke):
            lacking.append(Unanswered(server, "its link has ended"))
        except ColumnarError as error:
            lacking.append(Unanswered(server, error.text))
        except (Refused, PeerFault, BadValue) as error:
            lacking.append(Unanswered(server, str(error)))
    return found, lacking
