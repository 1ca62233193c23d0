"""The members of a cluster as its leader knows them, servers and other nodes, with the links that they make to it.

    expected   the member lives; it may dial
    linked     the member has dialled and said hello; requests can be sent to it
    ended      it answers nothing any more (``end_member``); requests under way have ended

A member dials; the leader refuses a link of a process that it does not know yet, which dials again a moment later.  If
a server's link ends and the server is not reported as ended within OUTLIVES_S, the server is fenced: parts of requests
may be lost with a link, so the leader and the server could differ about regions.  So links to the leader outlast the
lease of either side: an outage of the coordination service, however long, ends no server.

Invariant: each request ends, because a link's end ends its requests, and no request waits for a link.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from columnar.cluster.hello import Hello, obstacle
from columnar.cluster.link_errors import NotSent
from columnar.cluster.link_listener import OnLink
from columnar.cluster.peer_link import PeerLink, State
from columnar.cluster.peers import LinkEnds, LinkTerms
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.runtime.background import Background

_log = logging.getLogger(__name__)

R = TypeVar("R")
OUTLIVES_S: Final = 1.0  # the time in which a process is reported as ended after its link has ended, by any node


class MemberEvents(Protocol):
    async def linked(self, member: Incarnation) -> None: ...

    def unlinked(self, member: Incarnation, why: str) -> None:
        """Report that the link has ended; the process may still live."""


class MemberLinks:
    """The ``Servers`` of a cluster's host."""

    def __init__(self, hello: Hello, answerer: LinkEnds, terms: LinkTerms) -> None:
        """Pass the leader's own ``hello``, and ``answerer``, which answers the members' requests.

        The gate of ``terms`` is that of the leader's lease.
        """
        self._hello = hello
        self._answerer = answerer
        self._terms = terms
        self._links: dict[Incarnation, PeerLink | None] = {}  # of each living member
        self._ends: dict[Incarnation, asyncio.Future[None]] = {}  # of the same members
        self._accepted: set[PeerLink] = set()
        self._background = Background("links of the leader")
        self._is_closed = False

    def follow(self, events: MemberEvents, kill: Callable[[Incarnation, str], Awaitable[None]]) -> None:
        """Report to ``events`` from now on; ``kill`` has a server ended, and returns when that was requested."""
        self._events = events
        self._kill = kill

    # --- members -------------------------------------------------------------------------------------

    def expect(self, member: Incarnation) -> None:
        """Let the member dial."""
        self._links.setdefault(member, None)
        self._ends.setdefault(member, asyncio.get_running_loop().create_future())

    def end_member(self, member: Incarnation) -> None:
        """Forget the member, which answers nothing any more.  Call after the events of its end are reported."""
        link = self._links.pop(member, None)
        if link is not None:
            link.end(f"{member} has ended")
        ended = self._ends.pop(member, None)
        if ended is not None:
            ended.set_result(None)

    def is_linked(self, member: Incarnation) -> bool:
        return self._links.get(member) is not None

    # --- links ---------------------------------------------------------------------------------------

    def accept(self, on_ended: OnLink) -> PeerLink:
        """Return a link for a connection that a member has made, as ``make_link`` of ``LinkListener``."""

        def ended(link: PeerLink) -> None:
            on_ended(link)
            self._link_ended(link)

        terms = self._terms
        link = PeerLink(
            self._hello,
            self._obstacle,
            self._answerer,
            ended,
            on_open=self._link_opened,
            gate=terms.gate,
            outlasts_lease=True,
            secret=terms.secret,
        )
        self._accepted.add(link)
        return link

    def _obstacle(self, hello: Hello) -> str | None:
        if self._is_closed:
            return "this node does not lead any more"
        if hello.server not in self._links:
            return f"{hello.server} is not known to live yet, or has ended"
        if self._links[hello.server] is not None:
            return f"{hello.server} is linked already"
        return obstacle(hello, self._hello.cluster, 0)

    def _link_opened(self, link: PeerLink) -> None:
        assert link.peer is not None, "it has said hello"
        why = self._obstacle(link.peer)  # again: over TCP the proof came after the hello, and much may have happened
        if why is not None:
            link.end(why)
            return
        member = link.peer.server
        self._links[member] = link
        self._background.spawn(self._events.linked(member))

    def _link_ended(self, link: PeerLink) -> None:
        self._accepted.discard(link)
        self._answerer.link_ended(link)
        member = link.peer.server if link.peer is not None else None
        if self._is_closed or member is None or self._links.get(member) is not link:
            return
        self._links[member] = None
        self._background.spawn(self._outlives(member, self._ends[member], link.why))

    async def _outlives(self, member: Incarnation, ended: asyncio.Future[None], why: str) -> None:
        """Report the link's end if the member lives on.

        In most cases the member has ended too, and its end is reported a moment later.
        """
        await asyncio.wait([ended], timeout=OUTLIVES_S)
        if not ended.done() and not self._is_closed:
            self._events.unlinked(member, why)

    # --- requests ------------------------------------------------------------------------------------

    async def request_server(self, server: Incarnation, message: Message[R]) -> R:
        """Send ``message`` and return the answer.  Concurrent requests are sent in the order of the calls.

        Raises the errors of ``PeerLink.send_request``.
        """
        link = self._links.get(server)
        if link is None:
            raise NotSent
        return await link.send_request(message)

    async def fence(self, server: Incarnation) -> None:
        """Kill the server.  Returns when the server answers no more requests and was reported as ended."""
        if server in self._links:
            await self._kill(server, "the leader has it ended")
        await self.gone(server)

    async def gone(self, server: Incarnation) -> None:
        ended = self._ends.get(server)
        if ended is not None:
            await asyncio.shield(ended)

    async def close(self) -> None:
        """End all links; members dial the next leader."""
        self._is_closed = True
        for link in list(self._accepted):
            if link.state is not State.ENDED:
                link.end("this node does not lead any more")
        self._background.close()
        await self._background.ended()
