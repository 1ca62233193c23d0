"""A server's or node's link to the leader of its cluster, made anew until it stands.

    idle       no leader is known
    dialling   connections to the leader's address are tried until one is open; the leader refuses a process that it
               does not know to live yet.  A node other than the leader's may answer there: only the leader's own node,
               by its name, is a leader whose start is to be waited for
    open       both have said hello; requests go in both directions
    ended      the link broke, or a later leader is followed: dialling again

A leader with a lower epoch than one that was followed before is not followed.

    requests         are sent over the open link; without a link they are not sent
    clients' calls   wait for the link, LEADER_WAIT_S at most and within WAITING_BYTES; then nothing was done for them

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, Protocol, TypeVar

from columnar.cluster import peer_address
from columnar.cluster.forwarding import RawMessage, UnretriedRequest, unreachable
from columnar.cluster.hello import Hello, obstacle
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_link import PeerLink, State
from columnar.cluster.peers import LinkEnds, LinkTerms
from columnar.limits import MIB
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import CannotOpen
from columnar.model.region_messages import Message
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

R = TypeVar("R")
LEADER_WAIT_S: Final = 10.0  # of a client's call without a leader: a new leader is there within a few seconds
WAITING_BYTES: Final = 64 * MIB  # of all clients' calls that wait for a leader
DIAL_S: Final = 2.0  # of one attempt
REDIAL_S: Final = (0.05, 0.05, 0.05, 0.05, 0.1, 0.2, 0.5)  # pauses between two attempts; the last one repeats


class LeaderEvents(Protocol):
    def leader_linked(self) -> None:
        """Note that the link is open."""

    def leader_lost(self, why: str) -> None:
        """Note that a link that was open has ended."""


class LeaderLink:
    def __init__(
        self,
        hello: Hello,
        answerer: LinkEnds,
        events: LeaderEvents,
        terms: LinkTerms,
    ) -> None:
        """Pass this process's ``hello``; ``answerer`` answers the leader's requests."""
        self._hello = hello
        self._answerer = answerer
        self._events = events
        self._terms = terms
        self._link: PeerLink | None = None  # open, or greeting
        self.epoch = 0  # the highest epoch of a leader that was followed
        self._why = ""  # the last attempt failed, or the last link has ended
        self._is_early = False  # the leader answers, and its catalogue is not open yet
        self._address = ""
        self._leader = ""  # the name of the leader's node, if it is known
        self._dialling: asyncio.Task[None] | None = None
        self._waiting: deque[tuple[UnretriedRequest, RawMessage, asyncio.TimerHandle]] = deque()
        self._waiting_bytes = 0
        self._reports = Background("reports to the leader")
        self._is_closed = False

    # --- the link ------------------------------------------------------------------------------------

    def follow(self, epoch: int, address: str, leader: str = "") -> None:
        """Follow the leader of ``epoch`` from now on; ``leader`` names its node, if that is known."""
        if epoch < self.epoch or (epoch, address) == (self.epoch, self._address) or self._is_closed:
            return
        self.epoch, self._address, self._leader = epoch, address, leader
        self._why, self._is_early = "", False
        if self._link is not None:
            self._link.end(f"another node leads, at epoch {epoch}")
        self._dial()

    @property
    def is_open(self) -> bool:
        return self._link is not None and self._link.state is State.OPEN

    def obstacle(self) -> str:
        """Return a sentence on why no leader is linked; an empty text if one is."""
        if self.is_open:
            return ""
        if not self._address:
            return "no node leads"
        why = f": {self._why}" if self._why else ""
        return self.delay() or f"there is no link with the leader at {self._address}{why}"

    def delay(self) -> str:
        """Return a sentence if the leader lives, and has to finish its own start first; otherwise an empty text."""
        if self.is_open or not self._is_early:
            return ""
        return f"the node at {self._address} leads, and has not opened the catalogue yet"

    def _dial(self) -> None:
        if self._dialling is None and self._address and not self._is_closed:
            self._dialling = asyncio.ensure_future(self._dial_until_open())

    async def _dial_until_open(self) -> None:
        attempt = 0
        try:
            while not self._is_closed and not self.is_open:
                if attempt:
                    await asyncio.sleep(REDIAL_S[min(attempt, len(REDIAL_S)) - 1])
                attempt += 1
                try:
                    why = await self._attempt()
                except Exception as fault:  # noqa: BLE001 - without a leader this process would be of no use
                    FAULTS.met("the link to the leader", fault)
                    continue
                if why and attempt == len(REDIAL_S):
                    _log.warning("no link to the leader at %s: %s; trying again", self._address, why)
        finally:
            self._dialling = None

    async def _attempt(self) -> str:
        """Try one connection.  Returns the reason if it does not open."""
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settle(_link: PeerLink) -> None:
            if not settled.done():
                settled.set_result(None)

        def ended(link: PeerLink) -> None:
            settle(link)
            self._ended(link)

        terms = self._terms
        link = self._link = PeerLink(
            self._hello,
            self._obstacle,
            self._answerer,
            ended,
            on_open=settle,
            gate=terms.gate,
            outlasts_lease=True,
            secret=terms.secret,
            connects=True,
        )
        tls = terms.tls
        try:
            async with asyncio.timeout(DIAL_S):
                address = peer_address.parse_address(self._address)
                await peer_address.connect(address, lambda: link, tls.connecting() if tls is not None else None)
                await settled
        except OSError as error:  # TimeoutError is one
            self._is_early = False
            link.end(f"cannot connect: {str(error) or 'no answer'}")
        if link.state is not State.OPEN:
            self._why = link.why
            return link.why
        self._opened()
        return ""

    def _obstacle(self, hello: Hello) -> str | None:
        self._is_early = False
        why = obstacle(hello, self._hello.cluster, self.epoch)
        if why is None and not hello.leader_epoch:
            why = self._misdirected(hello.server)
            self._is_early = why is None
            return why or f"{hello.server} does not lead"
        if why is None:
            self.epoch = max(self.epoch, hello.leader_epoch)
        return why

    def _misdirected(self, answering: Incarnation) -> str | None:
        """Return why the node that answers, and does not lead, never will by this address; None if it may."""
        if self._leader in ("", answering.name):
            return None
        whose = "this node's own" if answering == self._hello.server else f"that of node {answering.name}"
        return f"{self._leader} leads, and the address is {whose}: give each node its own address with --host"

    def _opened(self) -> None:
        self._events.leader_linked()
        waiting, self._waiting, self._waiting_bytes = self._waiting, deque(), 0
        for call, raw, timer in waiting:
            timer.cancel()
            self.send_call(call, raw)

    def _ended(self, link: PeerLink) -> None:
        self._answerer.link_ended(link)
        if link is not self._link:
            return
        self._link = None
        if self._is_closed:
            return
        if link.peer is not None and self._dialling is None:
            _log.warning("the link to the leader has ended: %s", link.why)
            self._why = link.why
            self._events.leader_lost(link.why)
            self._dial()

    # --- requests ------------------------------------------------------------------------------------

    async def request_peer(self, message: Message[R]) -> R:
        """Send ``message`` to the leader and return the answer.  Raises what ``PeerLink.send_request`` raises."""
        link = self._link
        if link is None or link.state is not State.OPEN:
            raise NotSent
        return await link.send_request(message)

    def report_unopened(self, report: CannotOpen) -> None:
        _log.error("region %s of %s cannot be opened: %s", report.region.encoded, report.region.table, report.why)
        self.report_soon(report)

    def report_soon(self, message: Message[None]) -> None:
        """Send ``message`` without waiting for its answer."""
        self._reports.spawn(self._report(message))

    async def _report(self, message: Message[None]) -> None:
        try:
            await self.request_peer(message)
        except (NotSent, LinkBroke):
            return  # the next leader asks for all that it needs
        except Exception as error:  # noqa: BLE001 - a leader that cannot use a report has said why in its log
            _log.error("the leader did not take a %s: %s", type(message).__name__, error)

    def send_call(self, call: UnretriedRequest, raw: RawMessage) -> None:
        """Send a client's call to the leader, now or when the next leader is linked."""
        link = self._link
        if link is not None and link.state is State.OPEN:
            call.send(link, raw)
        elif self._is_closed or self._waiting_bytes + len(raw.message) > WAITING_BYTES:
            call.fail(unreachable("the leader"))
        else:
            timer = asyncio.get_running_loop().call_later(LEADER_WAIT_S, self._give_up)
            self._waiting.append((call, raw, timer))
            self._waiting_bytes += len(raw.message)

    def _give_up(self) -> None:
        """Fail the call that has waited longest."""
        call, raw, _ = self._waiting.popleft()
        self._waiting_bytes -= len(raw.message)
        call.fail(unreachable("the leader"))

    def close(self) -> None:
        self._is_closed = True
        if self._dialling is not None:
            self._dialling.cancel()
        if self._link is not None:
            self._link.end("this process stops")
        while self._waiting:
            self._waiting[0][2].cancel()
            self._give_up()
        self._reports.close()
