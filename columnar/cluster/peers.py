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
from functools import partial
from typing import Final, Protocol, TypeVar, cast

from columnar.cluster.hello import Hello, obstacle
from columnar.cluster.peer_link import Answerer, PeerLink, State
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.runtime.background import Background

_log = logging.getLogger(__name__)

LARGE_BYTES: Final = 64 * 1024
RETRY_S: Final = 0.01  # a refused connection costs some 0.1 ms
GREETING_S: Final = 5.0  # a peer that accepts a link must say its hello within this time

R = TypeVar("R")
AddressOf = Callable[[Incarnation], str | None]  # the path of a server's Unix socket; None: it is not known


class LinkEnds(Answerer, Protocol):
    def link_ended(self, link: PeerLink) -> None: ...


class Peers:
    def __init__(self, mine: Hello, address_of: AddressOf, answerer: LinkEnds) -> None:
        self._mine = mine  # constant, as are the next two
        self._address_of = address_of
        self._answerer = answerer
        self._small: dict[Incarnation, PeerLink] = {}
        self._large: dict[Incarnation, PeerLink] = {}
        self._accepted: set[PeerLink] = set()
        self._connecting = Background("links of servers")
        self._server: asyncio.Server | None = None
        self._is_closed = False

    # --- links made by other servers -------------------------------------------------------------------

    async def listen(self, path: str) -> None:
        """Accept links at the path of a Unix socket, and no longer at an earlier path.  Raises OSError."""
        if self._server is not None:
            self._server.close()  # first: the loop removes the name with the socket
        factory = cast(Callable[[], asyncio.Protocol], self._accept)
        self._server = await asyncio.get_running_loop().create_unix_server(factory, path)

    def _accept(self) -> PeerLink:
        link = PeerLink(self._mine, self._obstacle, self._answerer, self._accepted_ended)
        self._accepted.add(link)
        asyncio.get_running_loop().call_later(GREETING_S, _greeted, link)
        return link

    def _accepted_ended(self, link: PeerLink) -> None:
        self._accepted.discard(link)
        self._answerer.link_ended(link)
        if link.state is State.ENDED and not self._is_closed:
            _log.debug("a link of %s has ended: %s", link.peer.server if link.peer else "a stranger", link.why)

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
            self._mine, partial(self._other_than, server), self._answerer, partial(self._ended, links, server)
        )
        path = self._address_of(server)
        links[server] = link
        if path is None or self._is_closed:
            link.end("its address is not known" if path is None else "this server stops")
            return link
        self._connecting.spawn(self._connect(link, path))
        return link

    async def _connect(self, link: PeerLink, path: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(GREETING_S):
                await loop.create_unix_connection(cast(Callable[[], asyncio.Protocol], lambda: link), path)
        except OSError as error:  # TimeoutError among them
            link.end(f"cannot connect to {path}: {error}")
            return
        loop.call_later(GREETING_S, _greeted, link)

    def _other_than(self, server: Incarnation, hello: Hello) -> str | None:
        if hello.server != server:
            return f"{hello.server} answers in the place of {server}"
        return self._obstacle(hello)

    def _ended(self, links: dict[Incarnation, PeerLink], server: Incarnation, link: PeerLink) -> None:
        self._answerer.link_ended(link)
        if self._is_closed or links.get(server) is not link:
            return
        _log.log(logging.DEBUG if link.peer is None else logging.INFO, "no link to server %s: %s", server, link.why)
        asyncio.get_running_loop().call_later(RETRY_S, _forget, links, server, link)

    # --- ends ------------------------------------------------------------------------------------------

    def fenced(self, server: Incarnation) -> None:
        """End the links of a server that answers nothing any more: calls sent to it end as with a broken link."""
        for links in (self._small, self._large):
            link = links.get(server)
            if link is not None:
                link.end(f"server {server} was fenced")
        for link in [link for link in self._accepted if link.peer is not None and link.peer.server == server]:
            link.end(f"server {server} was fenced")

    def check_invariants(self) -> None:
        for links in (self._small, self._large):
            for link in links.values():
                link.check_invariants()
        for link in self._accepted:
            assert link.state is not State.ENDED
            link.check_invariants()

    async def close(self) -> None:
        """Listen no more and end all links."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        self._connecting.close()
        links: list[PeerLink] = [*self._small.values(), *self._large.values(), *self._accepted]
        for link in links:
            link.end("this server stops")
        if self._server is not None:
            await self._server.wait_closed()


def _greeted(link: PeerLink) -> None:
    if link.state is State.GREETING:
        link.end(f"the peer said no hello within {GREETING_S:g} s")


def _forget(links: dict[Incarnation, PeerLink], server: Incarnation, link: PeerLink) -> None:
    if links.get(server) is link:
        del links[server]
