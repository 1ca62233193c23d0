"""The listening side of links: accepts links at an address, and bounds those whose greeting is not over.

    accepted    the peer's greeting is awaited, for ``limits.GREETING_S``; beyond ``limits.GREETINGS`` such links the
                oldest is ended, because an honest peer greets within milliseconds
    open        the link stays until it ends, or until ``close``

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable

from columnar.cluster.peer_address import PeerAddress, hosts_of, listen, port_of
from columnar.cluster.peer_link import PeerLink, State
from columnar.limits import GREETING_S, GREETINGS

_log = logging.getLogger(__name__)

OnLink = Callable[[PeerLink], None]


class LinkListener:
    def __init__(
        self,
        make_link: Callable[[OnLink], PeerLink],
        on_ended: OnLink,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """``make_link`` makes an accepted link with this listener's ``on_ended``; ``on_ended`` is called after it.

        ``tls`` returns the context of links over TCP; None: they are plain.
        """
        self._make_link = make_link
        self._on_ended = on_ended
        self._tls = tls
        self._links: set[PeerLink] = set()
        self._greeting: list[PeerLink] = []  # links that were not open when last checked, the oldest first
        self._server: asyncio.Server | None = None
        self._is_closed = False
        self._emptied: asyncio.Future[None] | None = None  # done when no accepted link is left

    async def listen(self, address: PeerAddress) -> None:
        """Accept links at the address, and no longer at an earlier address.  Raises OSError."""
        if self._server is not None:
            self._server.close()  # first: the loop removes the name of a Unix socket with the socket
        self._server = await listen(address, self._accept, self._tls() if self._tls is not None else None)

    @property
    def port(self) -> int:
        """Return the TCP port.  Call after ``listen`` at a TCP address."""
        assert self._server is not None, "it listens"
        return port_of(self._server)

    @property
    def hosts(self) -> list[str]:
        """Return the IP addresses on which it listens.  Call after ``listen`` at a TCP address."""
        assert self._server is not None, "it listens"
        return hosts_of(self._server)

    @property
    def links(self) -> list[PeerLink]:
        """Return the accepted links that have not ended."""
        return list(self._links)

    def _accept(self) -> PeerLink:
        link = self._make_link(self._ended)
        self._links.add(link)
        self._greeting = [one for one in self._greeting if one.state is State.GREETING]
        self._greeting.append(link)
        if len(self._greeting) > GREETINGS:
            self._greeting.pop(0).end(f"over {GREETINGS} links wait for their greeting")
        end_silent_later(link)
        return link

    def _ended(self, link: PeerLink) -> None:
        self._links.discard(link)
        self._on_ended(link)
        if self._emptied is not None and not self._links and not self._emptied.done():
            self._emptied.set_result(None)
        if not self._is_closed:
            _log.debug("a link of %s has ended: %s", link.peer.server if link.peer else "a stranger", link.why)

    def check_invariants(self) -> None:
        for link in self._links:
            assert link.state is not State.ENDED
            link.check_invariants()
        assert len(self._greeting) <= GREETINGS + 1

    async def wait_empty(self) -> None:
        """Accept no more links, and wait until each accepted link has ended."""
        if self._server is not None:
            self._server.close()
        if self._links:
            self._emptied = asyncio.get_running_loop().create_future()
            await self._emptied

    def begin_close(self) -> None:
        """Listen no more, and end all links."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        for link in self.links:
            link.end("this server stops")

    async def wait_closed(self) -> None:
        if self._server is not None:
            await self._server.wait_closed()


def end_silent_later(link: PeerLink) -> None:
    """End the link if its greeting is not over within ``limits.GREETING_S``."""
    asyncio.get_running_loop().call_later(GREETING_S, _end_silent, link)


def _end_silent(link: PeerLink) -> None:
    if link.state is State.GREETING:
        link.end(f"the peer said no hello within {GREETING_S:g} s")
