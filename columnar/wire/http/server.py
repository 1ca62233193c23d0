"""The listening server of an HTTP port: whose requests are answered, by which handler, and how the port ends.

    starting --start--> serving --leave--> leaving: each answer is its connection's last    --close--> closed
                                --close------------------------------------------------------------> closed

Every web page that is opened on this machine can send requests to a port on loopback (``browsers``).  So a port there
answers for its own names alone; requests that may change something are refused from pages whose origin is not allowed,
and allowed pages may read the answers.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from email.utils import formatdate
from time import time
from typing import TYPE_CHECKING, Final, Protocol, cast

from columnar.coordination.lease_gate import LeaseGate
from columnar.errors import SignInRefused
from columnar.runtime.loop_budget import LoopBudget
from columnar.runtime.planned_step import PlannedStep
from columnar.wire.browsers import Visitors
from columnar.wire.connection_server import ConnectionServer
from columnar.wire.connection_table import ConnectionTable, WireLimits
from columnar.wire.http.answers import HttpRefused, answer_head, refused
from columnar.wire.http.connection import HttpConnection
from columnar.wire.http.exchange import Client, Handler, Request, Response
from columnar.wire.http.incoming_request import Message
from columnar.wire.http.problems import problem_response
from columnar.wire.sockets import is_private, name_of_peer

if TYPE_CHECKING:
    from columnar.wire.tls_protocol import Tls

log = logging.getLogger("columnar.http")

CHECK_S: Final = 5.0  # between two looks for requests that come too slowly
_SAFE: Final = frozenset({"GET", "HEAD"})  # methods that change nothing


class Users(Protocol):
    """Users of connections and of requests; "" is nobody."""

    def user_of_connection(self, transport: asyncio.BaseTransport) -> str:
        """Return the user whom a certificate names."""

    def user_of_request(self, request: Request, client: Client) -> str | Awaitable[str]:
        """Return the user whom the request's credentials name, at once or after a hash.  Raises SignInRefused."""


class HttpServer(ConnectionServer):
    """Serves ``handler`` on one port, on the running loop.

    With ``tls`` the port speaks only TLS.  ``users`` name the user of each request; None: a handler does that itself,
    or everybody may do everything.  Ports of one process share one ``loop_budget``, as expensive requests of all do.
    """

    def __init__(
        self,
        handler: Handler,
        limits: WireLimits | None = None,
        *,
        users: Users | None = None,
        tls: Tls | None = None,
        visitors: Visitors | None = None,
        gate: LeaseGate | None = None,
        loop_budget: LoopBudget | None = None,
        wall_clock: Callable[[], float] = time,
    ) -> None:
        super().__init__(ConnectionTable(limits or WireLimits(), gate), tls)
        self.loop_budget = loop_budget or LoopBudget()
        self._handler = handler
        self._users = users
        self._visitors = visitors or Visitors()
        self._check = PlannedStep("the times of HTTP requests", self._check_times)
        self._wall_clock = wall_clock
        self._date = 0, ""  # the second, and how it is written

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 takes a free port.  Raises OSError if the address is in use."""
        await super().start(host, port)
        self._check.after(CHECK_S)

    async def close(self, grace_s: float) -> None:
        """Stop listening, let requests finish for up to ``grace_s``, cancel the rest, close all connections."""
        self._check.cancel()
        await super().close(grace_s)

    def _make_connection(self) -> HttpConnection:
        return HttpConnection(self)

    def _connections(self) -> list[HttpConnection]:
        return cast("list[HttpConnection]", list(self.table.connections))

    def _check_times(self) -> None:
        self._check.after(CHECK_S)
        now_s = asyncio.get_running_loop().time()
        for connection in self._connections():
            connection.check_time(now_s)

    # --- what connections call -------------------------------------------------------------------------

    def client_of(self, transport: asyncio.BaseTransport) -> Client:
        user = self._users.user_of_connection(transport) if self._users is not None else ""
        return Client(name_of_peer(transport), user, is_private(transport))

    def respond(self, request: Request, client: Client) -> Response | Awaitable[Response]:
        """Return the response of the handler, at once or later.  Raises what it raises, and SignInRefused."""
        if self._users is None:
            return self._handler(request)
        user = self._users.user_of_request(request, client)
        if not isinstance(user, str):
            return self._respond_as(request, user)
        return self._handler(replace(request, user=user) if user != request.user else request)

    async def _respond_as(self, request: Request, user: Awaitable[str]) -> Response:
        response = self._handler(replace(request, user=await user))
        return response if isinstance(response, Response) else await response

    def failed(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request that failed; an unexpected error is logged."""
        response = problem_response(error)
        if response.status == 500:
            log.error("%s: %s %s failed", request.peer, request.method, request.path[:200], exc_info=error)
        elif isinstance(error, SignInRefused):
            log.warning("%s: %s", request.peer, error.text)
        return response

    def headers_for(self, message: Message) -> list[tuple[str, str]]:
        """Return the headers of every response to ``message``: the date, and whether a page may read it."""
        second = int(self._wall_clock())
        if self._date[0] != second:
            self._date = second, formatdate(second, usegmt=True)
        headers = [("Date", self._date[1])]
        if "origin" in message.headers and self._visitors.allowed_origin(message.headers) is not None:
            headers += [("Access-Control-Allow-Origin", message.headers["origin"]), ("Vary", "Origin")]
        return headers

    def check_head(self, head: Message) -> None:
        """Refuse a request by its head: its body is not kept.  Raises HttpRefused."""
        method, headers = head.method, head.headers
        why = self._visitors.refuses_host(headers.get("host"))
        if why is not None:
            raise refused(403, why, head_only=method == "HEAD")
        found = self._visitors.refuses_origin(headers) if method not in _SAFE else None
        if found is not None:
            raise refused(*found)
        if method == "OPTIONS" and "access-control-request-method" in headers and "origin" in headers:
            raise self._preflight(head)
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise refused(415, "send the body as it is, not compressed")

    def _preflight(self, head: Message) -> HttpRefused:
        """Return the answer to the preflight request of an allowed page; the handler refuses what it does not have."""
        allowed = (
            ("Access-Control-Allow-Methods", head.headers["access-control-request-method"]),
            ("Access-Control-Allow-Headers", head.headers.get("access-control-request-headers", "content-type")),
            ("Access-Control-Allow-Private-Network", "true"),
            ("Connection", "close"),
        )
        answer = answer_head(204, (*self.headers_for(head), *allowed))
        return HttpRefused("HTTP 204: a page asked whether it may send requests", answer)
