"""Carries out the instructions of ``forwarding_state`` for each forwarded call of this gateway.

A call of a single row is forwarded unchanged to the owner of its region, and the reply goes unchanged to the client
(``Forwarding.forward``).  A call that only one server can answer is forwarded once (``to_master``, ``to_server``): the
master's methods, the calls of a scanner.

Costs: a change of the routes checks the calls of its tables only.  All calls share one timer.  A call sets it only if
the timer would come too late for the call, so most calls, which the link takes at once, do not set it.

Invariants (``check_invariants``):
    X1. Each call ends once, or its client's connection is gone.
    X2. ``in_flight`` holds exactly the calls that have not ended, by table.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from time import monotonic
from typing import Final, Protocol

from columnar.cluster import refusals
from columnar.cluster.forwarding_state import Do, ForwardedCall, State
from columnar.cluster.peer_frames import Frame, FrameTooLong
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.refusals import Moved, Refusal, Unknown
from columnar.cluster.routes import Routes
from columnar.cluster.row_forms import PROTOCOL_BYTES
from columnar.errors import ClientGone, NotServingRegion, OutcomeUnknown, RegionNotLocal
from columnar.model.owner import Incarnation
from columnar.model.route import Route
from columnar.wire import detect
from columnar.wire.codec import Request
from columnar.wire.raw_calls import RawCaller
from columnar.wire.service import CallContext, ForwardedReply

COPIED_BYTES: Final = 64 * 1024  # a shorter reply does not keep the frames around it in memory
_BINARY: Final = PROTOCOL_BYTES[detect.Protocol.BINARY]
_COMPACT: Final = PROTOCOL_BYTES[detect.Protocol.COMPACT]
_SEND: Final = Do.SEND  # in a compiled method, access by the class costs as much as a call
_ANSWER: Final = Do.ANSWER
_NEVER_MS: Final = 1 << 62

ServeLocally = Callable[[CallContext, int, bytes, RawCaller], None]  # service, message: for ``RawCall`` of the service
CallLater = Callable[[float, Callable[[], None]], asyncio.TimerHandle]


class Links(Protocol):
    """The part of ``Peers`` that forwarding needs."""

    def link(self, server: Incarnation, size_bytes: int) -> PeerLink: ...


class RawMessage:
    """A client's call as it came, and the user who signed in."""

    __slots__ = ("message", "protocol", "service", "user")

    def __init__(self, message: bytes, service: int, protocol: int, user: str = "") -> None:
        self.message = message
        self.user = user
        self.service = service
        self.protocol = protocol  # one of ``row_forms.PROTOCOL_BYTES``


def raw_message(request: Request, service: int, ctx: CallContext) -> RawMessage:
    """Return the request's message as it came.  ``service``: THRIFT1 or THRIFT2."""
    protocol = _BINARY if ctx.protocol is detect.Protocol.BINARY else _COMPACT
    return RawMessage(request.message, service, protocol, ctx.user)


class ForwardedRequest(ForwardedReply):
    """A forwarded call of a single row.  The link (``peer_link.Call``) and ``RawCall`` report to it."""

    __slots__ = ("_attempt", "_ctx", "_forwarding", "_link", "_number", "_raw", "planned_ms", "row", "state", "table")

    def __init__(
        self,
        forwarding: Forwarding,
        ctx: CallContext,
        raw: RawMessage,
        table: str,
        row: bytes,
        state: ForwardedCall,
    ) -> None:
        super().__init__()
        self.table = table  # constant, as is the row
        self.row = row
        self.planned_ms = 0  # the time of its entry among the sleepers; 0: it has none
        self.state = state
        self._forwarding = forwarding
        self._ctx = ctx
        self._raw = raw
        self._link: PeerLink | None = None  # the last link that it was sent to, with its number there
        self._number = 0
        self._attempt = 0

    @property
    def _route(self) -> Route | None:
        return self._forwarding.routes.find(self.table, self.row)

    def note_wake_planned(self, at_ms: int) -> None:
        """Note the time of the call's entry among the sleepers, or 0 if it has none."""
        self.planned_ms = at_ms

    def begin_call(self, now_ms: int) -> None:
        self._carry_out(self.state.begin_call(self._route, now_ms))

    # --- what the link reports -------------------------------------------------------------------------

    def frame_written(self) -> None:
        self.state.frame_written()
        self._forwarding.leaves_queue(self)

    def not_sent(self) -> None:
        self._carry_out(self.state.not_sent(self._route, self._forwarding.now_ms()))

    def take_reply(self, frame: Frame) -> None:
        if _ANSWER in self.state.answer_came():
            self._forwarding.forget_call(self)
            self.succeed(reply_of(frame))

    def refused(self, refusal: Refusal) -> None:
        forwarding = self._forwarding
        if isinstance(refusal, Moved | Unknown) and (route := self._route) is not None:
            forwarding.routes.left(route.region, self.state.server)
        if isinstance(refusal, Moved):
            is_news = forwarding.routes.moved(refusal.region, refusal.server, refusal.epoch)
            self._carry_out(self.state.not_local(self._route, forwarding.now_ms()))
            if is_news:
                forwarding.routes_changed((refusal.region.table,))
        elif isinstance(refusal, Unknown):
            self._carry_out(self.state.not_local(self._route, forwarding.now_ms()))
        elif Do.REFUSE_FAILED in self.state.failed():
            self._fail(refusal)

    def link_broke(self) -> None:
        self._carry_out(self.state.link_broke(self._route, self._forwarding.now_ms()))

    # --- what this server's own service reports ----------------------------------------------------------

    def replied(self, reply: bytes) -> None:
        if self.state.state is State.LOCAL:
            self.state.ended_locally()
            self._forwarding.forget_call(self)
            self.succeed(reply)

    def not_local(self, _error: RegionNotLocal, _request: Request) -> None:
        if self.state.state is State.LOCAL:
            self._carry_out(self.state.not_local(self._route, self._forwarding.now_ms()))

    def broken(self, error: Exception) -> None:
        if self.state.state is State.LOCAL:
            self.state.ended_locally()
            self._fail(error)

    # --- other events ------------------------------------------------------------------------------------

    def route_changed(self, now_ms: int) -> None:
        self._carry_out(self.state.route_changed(self._route, now_ms))

    def woke(self, now_ms: int) -> None:
        self._carry_out(self.state.woke(self._route, now_ms))

    def client_left(self) -> None:
        super().client_left()
        doing = self.state.client_went()
        self._forwarding.forget_call(self)
        self._carry_out(doing)

    # --- instructions ------------------------------------------------------------------------------------

    def _carry_out(self, doing: tuple[Do, ...]) -> None:
        for do in doing:
            if do is _SEND:
                self._send()
            elif do is Do.WAIT:
                self._forwarding.sleep(self)
            elif do is Do.SERVE_LOCALLY:
                self._serve_locally()
            elif do is Do.RECALL or do is Do.FORGET:
                self._let_go()
            elif do is Do.REFUSE_UNAVAILABLE:
                self._fail(refusals.refuse_unavailable(self._route, self.table))
            elif do is Do.REFUSE_BLOCKED:
                route = self._route
                assert route is not None, "it says so"
                self._fail(NotServingRegion(route.blocked_reason))
            elif do is Do.REFUSE_UNSURE:
                self._fail(refusals.unsure(self.state.server))
            elif do is Do.REFUSE_DEADLY:
                self._fail(refusals.deadly(self.table, self.row, self.state.server))

    def _send(self) -> None:
        forwarding, raw = self._forwarding, self._raw
        if self._attempt and self._ctx.has_gone():
            self._give_up()
            return
        self._attempt = attempt = self._attempt + 1
        link = forwarding.links.link(self.state.server, len(raw.message))
        forwarding.enters_queue(self)
        self._link, self._number = link, 0
        try:
            number = link.call(raw.service, raw.protocol, raw.message, self, raw.user)
        except FrameTooLong as error:
            self._give_up(error)
            return
        if self._attempt == attempt:  # else the link was broken, and another attempt is under way already
            self._number = number

    def _serve_locally(self) -> None:
        if self._ctx.has_gone():
            self._give_up()
            return
        self._forwarding.serve_locally(self._ctx, self._raw.service, self._raw.message, self)

    def _let_go(self) -> None:
        if self._link is not None:
            self._link.forget_call(self._number)

    def _give_up(self, error: Exception | None = None) -> None:
        """End the call, of which nothing is sent: the client has gone, or the message is too long."""
        self.state.client_went()
        self._fail(error if error is not None else ClientGone())

    def _fail(self, failure: Exception) -> None:
        self._forwarding.forget_call(self)
        self.fail(failure)


class UnretriedRequest(ForwardedReply):
    """A call that only one server can answer: it is sent once."""

    __slots__ = ("_link", "_name", "_number")

    def __init__(self, name: str) -> None:
        """``name``: of the server, for error texts."""
        super().__init__()
        self._name = name
        self._link: PeerLink | None = None
        self._number = 0

    def send(self, link: PeerLink, raw: RawMessage) -> None:
        self._link = link
        try:
            self._number = link.call(raw.service, raw.protocol, raw.message, self, raw.user)
        except FrameTooLong as error:
            self.fail(error)

    def frame_written(self) -> None:
        pass

    def not_sent(self) -> None:
        self.fail(unreachable(self._name))

    def take_reply(self, frame: Frame) -> None:
        self.succeed(reply_of(frame))

    def refused(self, refusal: Refusal) -> None:
        if isinstance(refusal, Moved | Unknown):
            self.fail(NotServingRegion(f"{self._name} does not answer this call; nothing was done, try again"))
        else:
            self.fail(refusal)

    def link_broke(self) -> None:
        text = f"{self._name} ended before it answered; look whether it was done before you repeat it"
        self.fail(OutcomeUnknown(text))

    def client_left(self) -> None:
        super().client_left()
        if self._link is not None:
            self._link.forget_call(self._number)


class LeaderCalls(Protocol):
    """The way of clients' calls to the leader."""

    def send_call(self, call: UnretriedRequest, raw: RawMessage) -> None:
        """Send the call once, or fail it."""


class Forwarding:
    def __init__(
        self,
        local_server: Incarnation,
        routes: Routes,
        links: Links,
        serve_locally: ServeLocally,
        *,
        now_ms: Callable[[], int] | None = None,
        call_later: CallLater | None = None,
    ) -> None:
        """``serve_locally``: handles a call whose region has come to this server meanwhile.

        ``now_ms`` and ``call_later``: replace the clock and the loop's timers in tests.
        """
        self.local_server = local_server  # constant, as are the next four
        self.routes = routes
        self.links = links
        self.serve_locally = serve_locally
        self.now_ms = now_ms or _monotonic_ms
        self.leader: LeaderCalls | None = None  # None: this process has no leader to forward to
        self.forwarded = 0  # calls so far
        self.in_flight: dict[str, dict[ForwardedRequest, None]] = {}
        self._call_later = call_later
        self._sleepers: list[
            tuple[int, int, ForwardedRequest]
        ] = []  # a heap by the time of waking; some have woken already
        self._sleeper_count = 0
        self._queued: dict[ForwardedRequest, None] = {}  # handed to a link, and not written yet
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = _NEVER_MS

    # --- what services call ------------------------------------------------------------------------------

    def forward(self, ctx: CallContext, raw: RawMessage, table: str, row: bytes, is_write: bool) -> ForwardedReply:
        """Forward a call of a single row to the owner of its region, which may be this server by then."""
        self.forwarded += 1
        now_ms = self.now_ms()
        call = ForwardedRequest(self, ctx, raw, table, row, ForwardedCall(self.local_server, is_write, now_ms))
        calls = self.in_flight.get(table)
        if calls is None:
            calls = self.in_flight[table] = {}
        calls[call] = None
        call.begin_call(now_ms)
        return call

    def to_master(self, raw: RawMessage) -> ForwardedReply:
        """Forward a call to the master.  It fails with NotServingRegion if nothing was done, or with OutcomeUnknown."""
        self.forwarded += 1
        call = UnretriedRequest("the master")
        if self.leader is None:
            call.fail(unreachable("the master"))
        else:
            self.leader.send_call(call, raw)
        return call

    def to_server(self, server: Incarnation, raw: RawMessage) -> ForwardedReply:
        """Forward a call as ``to_master`` does, to the only server that can answer: the server of an open scanner."""
        self.forwarded += 1
        call = UnretriedRequest(f"server {server}")
        call.send(self.links.link(server, len(raw.message)), raw)
        return call

    # --- events ------------------------------------------------------------------------------------------

    def routes_changed(self, tables: Iterable[str]) -> None:
        """Notify the calls of these tables, whose routes have changed."""
        now_ms = self.now_ms()
        for table in tables:
            for call in list(self.in_flight.get(table, ())):
                call.route_changed(now_ms)

    def _woke(self) -> None:
        self._timer, self._timer_ms = None, _NEVER_MS
        now_ms, sleepers = self.now_ms(), self._sleepers
        try:
            while sleepers and sleepers[0][0] <= now_ms:
                at_ms, _, call = heappop(sleepers)
                if call.planned_ms == at_ms:  # else it has woken before
                    call.note_wake_planned(0)
                    call.woke(now_ms)
            for call in list(self._queued):
                if call.state.deadline_ms <= now_ms:
                    call.woke(now_ms)
        finally:  # the other calls are woken even if one fails
            if sleepers:
                self._plan(sleepers[0][0])
            if self._queued:
                self._plan(min(call.state.deadline_ms for call in self._queued))

    # --- what calls report -------------------------------------------------------------------------------

    def sleep(self, call: ForwardedRequest) -> None:
        """Wake the call at its time, unless it ends or is sent before that."""
        self._queued.pop(call, None)
        wake_ms = call.state.wake_at_ms
        if wake_ms is None or wake_ms == call.planned_ms:
            return
        call.note_wake_planned(wake_ms)
        self._sleeper_count += 1
        heappush(self._sleepers, (wake_ms, self._sleeper_count, call))
        self._plan(wake_ms)

    def enters_queue(self, call: ForwardedRequest) -> None:
        self._queued[call] = None
        if call.state.deadline_ms < self._timer_ms:
            self._plan(call.state.deadline_ms)

    def leaves_queue(self, call: ForwardedRequest) -> None:
        self._queued.pop(call, None)

    def forget_call(self, call: ForwardedRequest) -> None:
        """Forget a call that has ended."""
        self._queued.pop(call, None)
        calls = self.in_flight.get(call.table)
        if calls is not None and calls.pop(call, 0) is None and not calls:
            del self.in_flight[call.table]

    def _plan(self, at_ms: int) -> None:
        if at_ms >= self._timer_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = at_ms
        call_later = self._call_later or asyncio.get_running_loop().call_later
        self._timer = call_later(max(0, at_ms - self.now_ms()) / 1000 + 0.0005, self._woke)

    def close(self) -> None:
        """Wake no call any more; calls under way end with their links and connections."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._timer_ms = None, _NEVER_MS

    def check_invariants(self) -> None:
        """Assert X1 and X2; O(calls under way)."""
        for table, calls in self.in_flight.items():
            assert calls, "X2"
            for call in calls:
                assert call.table == table, "X2"
                assert not call.state.has_ended, "X1"
                assert not call.done(), "X1"
                call.state.check_invariants()
        queued = {call for calls in self.in_flight.values() for call in calls if call.state.state is State.QUEUED}
        assert queued == set(self._queued), "X2"
        assert not self._queued or self._timer is not None


def reply_of(frame: Frame) -> bytes | memoryview:
    return frame.body if frame.end - frame.start > COPIED_BYTES else frame.buffer[frame.start : frame.end]


def unreachable(name: str) -> NotServingRegion:
    return NotServingRegion(f"{name} cannot be reached; nothing was done, try again")


def _monotonic_ms() -> int:
    return int(monotonic() * 1000)
