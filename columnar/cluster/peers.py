"""Links to the other servers of the cluster: made when something is to be sent, two for each server.

    small    for calls and requests up to LARGE_BYTES
    large    for larger ones, so that no small message queues behind 64 MB

A link is made by the requesting side, and answers return on it; so two servers that send each other requests have four
links.  A server that cannot be reached is not tried again for RETRY_S: calls end as "not sent" meanwhile.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from columnar.cluster.hello import Hello, obstacle
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.link_listener import LinkListener, OnLink, end_silent_later
from columnar.cluster.peer_address import PeerAddress, connect
from columnar.cluster.peer_link import Answerer, PeerLink, State
from columnar.cluster.peer_requests import LeaveLinks
from columnar.cluster.value_codec import BadValue
from columnar.coordination.lease_gate import LeaseGate
from columnar.errors import ColumnarError
from columnar.limits import GREETING_S
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.runtime.background import Background

if TYPE_CHECKING:
    from columnar.wire.tls_context import PeerTls

_log = logging.getLogger(__name__)

LARGE_BYTES: Final = 64 * 1024
LEAVE_S: Final = 1.0  # for calls of other servers when this one stops; their regions are closed after it
RETRY_S: Final = 0.01  # a refused connection costs some 0.1 ms

R = TypeVar("R")
AddressOf = Callable[[Incarnation], PeerAddress | None]  # where a server listens for links; None: it is not known


class LinkEnds(Answerer, Protocol):
    def link_ended(self, link: PeerLink) -> None: ...


@dataclass(frozen=True, slots=True)
class LinkTerms:
    """The terms of all links of a process.  Constant."""

    gate: LeaseGate | None = None  # None: the process has no lease
    secret: bytes | None = None  # of the cluster; None: links are over Unix sockets only
    tls: PeerTls | None = None  # None: TCP is not encrypted


class Peers:
    def __init__(self, mine: Hello, address_of: AddressOf, answerer: LinkEnds, terms: LinkTerms | None = None) -> None:
        self._mine = mine  # constant, as are the next three
        self._address_of = address_of
        self._answerer = answerer
        self._terms = terms if terms is not None else LinkTerms()
        self._small: dict[Incarnation, PeerLink] = {}
        self._large: dict[Incarnation, PeerLink] = {}
        self._retired: dict[PeerLink, Incarnation] = {}  # links to servers that stop, until their calls are answered
        tls = self._terms.tls
        self._listener = LinkListener(self._accepted, answerer.link_ended, tls.accepting if tls is not None else None)
        self._connecting = Background("links of servers")
        self._is_closed = False

    # --- links made by other servers -------------------------------------------------------------------

    async def listen(self, address: PeerAddress) -> None:
        """Accept links at the address, and no longer at an earlier address.  Raises OSError."""
        await self._listener.listen(address)

    @property
    def port(self) -> int:
        """Return the TCP port.  Call after ``listen`` at a TCP address."""
        return self._listener.port

    def _accepted(self, on_ended: OnLink) -> PeerLink:
        terms = self._terms
        return PeerLink(self._mine, self._obstacle, self._answerer, on_ended, gate=terms.gate, secret=terms.secret)

    def _obstacle(self, hello: Hello) -> str | None:
        return obstacle(hello, self._mine.cluster, 0)

    # --- links to other servers ------------------------------------------------------------------------

    def link(self, server: Incarnation, size_bytes: int) -> PeerLink:
        """Return the link for a message of this size: it may be open, or opening, or have ended just now."""
        links = self._large if size_bytes > LARGE_BYTES else self._small
        found = links.get(server)
        return found if found is not None else self._begin(links, server)

    async def request_server(self, server: Incarnation, message: Message[R], size_bytes: int = 0) -> R:
        """Send ``message`` and return the answer.

        ``size_bytes``: the approximate size of the message.  Raises what ``PeerLink.send_request`` raises.
        """
        return await self.link(server, size_bytes).send_request(message)

    def _begin(self, links: dict[Incarnation, PeerLink], server: Incarnation) -> PeerLink:
        link = PeerLink(
            self._mine,
            partial(self._other_than, server),
            self._answerer,
            partial(self._ended, links, server),
            gate=self._terms.gate,
            secret=self._terms.secret,
            connects=True,
        )
        address = self._address_of(server)
        links[server] = link
        if address is None or self._is_closed:
            link.end("its address is not known" if address is None else "this server stops")
            return link
        self._connecting.spawn(self._connect(link, address))
        return link

    async def _connect(self, link: PeerLink, address: PeerAddress) -> None:
        tls = self._terms.tls
        try:
            async with asyncio.timeout(GREETING_S):
                await connect(address, lambda: link, tls.connecting() if tls is not None else None)
        except OSError as error:  # among them TimeoutError, and the errors of TLS
            link.end(f"cannot connect to {address}: {error}")
            return
        end_silent_later(link)

    def _other_than(self, server: Incarnation, hello: Hello) -> str | None:
        if hello.server != server:
            return f"{hello.server} answers in the place of {server}"
        return self._obstacle(hello)

    def _ended(self, links: dict[Incarnation, PeerLink], server: Incarnation, link: PeerLink) -> None:
        self._answerer.link_ended(link)
        self._retired.pop(link, None)
        if self._is_closed or links.get(server) is not link:
            return
        _log.log(logging.DEBUG if link.peer is None else logging.INFO, "no link to server %s: %s", server, link.why)
        asyncio.get_running_loop().call_later(RETRY_S, _forget, links, server, link)

    # --- ends ------------------------------------------------------------------------------------------

    async def leave(self) -> None:
        """Have the other servers end their links with this one, which stops, when all their calls are answered.

        Call it while calls are still answered; returns after LEAVE_S at the latest.  Without it, a call in flight would
        end with a broken link: a write with an unknown outcome.  Servers of older versions end their links later.
        """
        for link in self._listener.links:
            if link.state is State.OPEN:
                self._connecting.spawn(_request_end(link))
            else:
                link.end("this server stops")  # its greeting is not over, so nothing was sent over it
        with suppress(TimeoutError):
            await asyncio.wait_for(self._listener.wait_empty(), LEAVE_S)

    async def retire_links(self, server: Incarnation, _message: LeaveLinks) -> None:
        """Send nothing more over the links to a server that stops; each ends when its calls are answered."""
        for links in (self._small, self._large):
            link = links.pop(server, None)
            if link is not None:
                self._retired[link] = server
                link.retire()

    def fenced(self, server: Incarnation) -> None:
        """End the links of a server that answers nothing any more: calls sent to it end as with a broken link."""
        for links in (self._small, self._large):
            link = links.get(server)
            if link is not None:
                link.end(f"server {server} was fenced")
        for link, other in list(self._retired.items()):
            if other == server:
                link.end(f"server {server} was fenced")
        for link in self._listener.links:
            if link.peer is not None and link.peer.server == server:
                link.end(f"server {server} was fenced")

    def check_invariants(self) -> None:
        for links in (self._small, self._large):
            for link in links.values():
                link.check_invariants()
        self._listener.check_invariants()

    async def close(self) -> None:
        """Listen no more and end all links."""
        self._is_closed = True
        self._connecting.close()
        for link in [*self._small.values(), *self._large.values(), *self._retired]:
            link.end("this server stops")
        self._listener.begin_close()
        await self._listener.wait_closed()


async def _request_end(link: PeerLink) -> None:
    with suppress(NotSent, LinkBroke, BadValue, ColumnarError):  # the end of the link is awaited, not the answer
        await link.send_request(LeaveLinks())


def _forget(links: dict[Incarnation, PeerLink], server: Incarnation, link: PeerLink) -> None:
    if links.get(server) is link:
        del links[server]
