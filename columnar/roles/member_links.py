"""The members of a cluster as its leader knows them, servers and other nodes, with the links that they make to it.

    expected   the member lives; it may dial
    linked     the member has dialled and said hello; requests can be sent to it
    unlinked   its link has ended, or it dials again, and it lives.  A server without a link for RELINK_S is fenced
    bound      as unlinked, and its link ended amid a change of tables or regions, of whose outcome the leader and the
               server may think differently: the server is refused, and fenced if it lives OUTLIVES_S later
    ended      it answers nothing any more (``end_member``); requests under way have ended

A member dials; the leader refuses a link of a process that it does not know yet, which dials again a moment later.  A
server that links again is greeted like one that lived before this leader: it gets all tables and routes, and says which
regions it has.  So a network that resets connections ends no server.  Links to the leader outlast the lease of either
side: an outage of the coordination service, however long, ends no server.

Invariant: each request ends, because a link's end ends its requests, and no request waits for a link.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

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
RELINK_S: Final = 10.0  # for a living server to link again, as for one that lived before a new leader


@dataclass(slots=True)
class _Member:
    ended: asyncio.Future[None]
    linked: asyncio.Event  # set while there is a link
    is_node: bool
    link: PeerLink | None = None
    is_bound: bool = False

    async def relinked(self, within_s: float | None = None) -> bool:
        """Wait until there is a link, or the member has ended; return whether it has linked, and lives.

        The new link may have ended meanwhile, before this task ran.
        """
        linking: asyncio.Future[Any] = asyncio.ensure_future(self.linked.wait())
        either: list[asyncio.Future[Any]] = [self.ended, linking]
        try:
            await asyncio.wait(either, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            has_linked = linking.done()
            linking.cancel()
        return has_linked and not self.ended.done()


class MemberEvents(Protocol):
    async def linked(self, member: Incarnation) -> None: ...

    def unlinked(self, member: Incarnation, why: str) -> None:
        """Report that the member has lost its link for good; its process may still live."""


class MemberLinks:
    """The ``Servers`` of a cluster's host."""

    def __init__(self, hello: Hello, answerer: LinkEnds, terms: LinkTerms) -> None:
        """Pass the leader's own ``hello``, and ``answerer``, which answers the members' requests.

        The gate of ``terms`` is that of the leader's lease.
        """
        self._hello = hello
        self._answerer = answerer
        self._terms = terms
        self._members: dict[Incarnation, _Member] = {}  # that live
        self._accepted: set[PeerLink] = set()
        self._background = Background("links of the leader")
        self._is_closed = False

    def follow(
        self,
        events: MemberEvents,
        kill: Callable[[Incarnation, str], Awaitable[None]],
        is_bound: Callable[[Incarnation], bool],
    ) -> None:
        """Report to ``events`` from now on.

        ``kill`` has a server ended, and returns when that was requested.  ``is_bound`` returns whether a change at the
        server is under way, which must not outlast its link.
        """
        self._events = events
        self._kill = kill
        self._is_bound = is_bound

    # --- members -------------------------------------------------------------------------------------

    def expect(self, member: Incarnation, *, is_node: bool = False) -> None:
        """Let the member dial.  A node takes part in no change, so its link never binds it."""
        if member not in self._members:
            self._members[member] = _Member(asyncio.get_running_loop().create_future(), asyncio.Event(), is_node)

    def end_member(self, member: Incarnation) -> None:
        """Forget the member, which answers nothing any more.  Call after the events of its end are reported."""
        found = self._members.pop(member, None)
        if found is not None:
            if found.link is not None:
                found.link.end(f"{member} has ended")
            found.ended.set_result(None)

    def is_linked(self, member: Incarnation) -> bool:
        found = self._members.get(member)
        return found is not None and found.link is not None

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
        found = self._members.get(hello.server)
        if found is None:
            return f"{hello.server} is not known to live yet, or has ended"
        if found.is_bound:
            return f"{hello.server} lost its link amid a change, and is to be ended"
        return obstacle(hello, self._hello.cluster, 0)

    def _link_opened(self, link: PeerLink) -> None:
        assert link.peer is not None, "it has said hello"
        found = self._members.get(link.peer.server)
        if found is not None and found.link is not None:
            found.link.end("the member dials again, so its own end of this link has ended")
        why = self._obstacle(link.peer)  # again: over TCP the proof came after the hello, and much may have happened
        if why is not None:
            link.end(why)
            return
        assert found is not None, "it is no obstacle"
        member = link.peer.server
        found.link = link
        found.linked.set()
        self._background.spawn(self._events.linked(member))

    def _link_ended(self, link: PeerLink) -> None:
        self._accepted.discard(link)
        self._answerer.link_ended(link)
        member = link.peer.server if link.peer is not None else None
        found = self._members.get(member) if member is not None else None
        if self._is_closed or member is None or found is None or found.link is not link:
            return
        found.link = None
        found.linked.clear()
        found.is_bound = not found.is_node and self._is_bound(member)
        self._background.spawn(self._await_relink(member, found, link.why))

    async def _await_relink(self, member: Incarnation, found: _Member, why: str) -> None:
        """Report the link's end if the member lives on and does not link again, or may not.

        In most cases the member has ended too, and its end is reported a moment later.
        """
        if await found.relinked(OUTLIVES_S if found.is_bound else RELINK_S):
            _log.warning("%s is linked again, after its link was lost: %s", member, why)
        elif not found.ended.done() and not self._is_closed:
            amid = ", amid a change" if found.is_bound else f", and it has not linked again within {RELINK_S:g} s"
            self._events.unlinked(member, f"{why}{amid}")

    # --- requests ------------------------------------------------------------------------------------

    async def request_server(self, server: Incarnation, message: Message[R]) -> R:
        """Send ``message`` and return the answer.  Concurrent requests are sent in the order of the calls.

        Raises the errors of ``PeerLink.send_request``.
        """
        found = self._members.get(server)
        if found is None or found.link is None:
            raise NotSent
        return await found.link.send_request(message)

    async def relinked(self, member: Incarnation, within_s: float | None = None) -> bool:
        """Wait until the member has a link, or has ended, ``within_s`` at most; return whether it has linked."""
        found = self._members.get(member)
        return found is not None and await found.relinked(within_s)

    async def fence(self, server: Incarnation) -> None:
        """Kill the server.  Returns when the server answers no more requests and was reported as ended."""
        if server in self._members:
            await self._kill(server, "the leader has it ended")
        await self.gone(server)

    async def gone(self, server: Incarnation) -> None:
        found = self._members.get(server)
        if found is not None:
            await asyncio.shield(found.ended)

    async def close(self) -> None:
        """End all links; members dial the next leader."""
        self._is_closed = True
        for link in list(self._accepted):
            if link.state is not State.ENDED:
                link.end("this node does not lead any more")
        self._background.close()
        await self._background.ended()
