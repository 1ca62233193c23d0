"""(pure) The life of one forwarded call at its gateway: one state machine, events in, instructions out.

    state      the call
    WAITING    waits for a route, or for the moment at which a route that failed may be tried again
    QUEUED     is queued on the link to an owner, and no byte of it is sent yet
    SENT       was sent to an owner
    LOCAL      is handled by this server itself: the region has moved to it
    ANSWERED   the owner's reply goes to the client unchanged
    REFUSED    an error goes to the client
    GONE       the client has disconnected before an answer

    event while SENT                                 a read                        a write
    the owner refuses: it does not own the region    looks up a route again        the same: nothing was done
    the link breaks                                  looks up a route again        outcome unknown, never repeated
    the link to a second owner breaks                is refused                    -
    the region has a later owner                     waits: the server that has the call answers or refuses

While a region moves its route has a source: the previous owner, which serves until it has quiesced, flushed and closed
the region.  A call goes to the source first, and to the next owner when the source refuses.

A call looks for a route for ``ROUTING_TIMEOUT_MS`` from its beginning; then it is refused as not served, and nothing
was done.  It is refused at once if the route says that the region stays closed (``Route.blocked_reason``).

A read is refused if two owners ended while they had it: the read may be the cause, and would end the next owner, too.

A call that is SENT has no deadline here: the owner has its own, and the link to an owner that is fenced breaks
(``Peers.fenced``).  A later owner in the routes does not end a call that is SENT.  Otherwise the gateway could give up
a write that was answered: after a move, answers of the server that has closed the region may still be in flight.

Invariants (``ForwardedCall.check_invariants``, and the model in tests/model/test_forwarding_model.py):
    W1. Each call that is begun ends once: by ANSWER, by one refusal, by this server's own answer, or with its client.
    W2. A write is sent again, or refused as not served, only if no owner can have carried it out.
    W3. SEND and RECALL alternate until the call is SENT; a call is with one owner at a time.

A call that came over a link is never forwarded again (``refusals.refuse_not_local``), so it has no such state.

Knows nothing of links, bytes, methods and clocks.  ``now_ms`` is any clock that does not go back.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from columnar.model.owner import Incarnation, OwnershipPeriod
from columnar.model.route import Route

ROUTING_TIMEOUT_MS: Final = 10_000  # as ``regions.life.retry.UNAVAILABLE_TIMEOUT_S``
FIRST_PAUSE_MS: Final = 5  # before a route that failed is tried again, if no later owner is known
LONGEST_PAUSE_MS: Final = 320


class State(Enum):
    __hash__ = object.__hash__  # by identity: Enum hashes the member's name, a cost that each event would pay

    WAITING = auto()
    QUEUED = auto()
    SENT = auto()
    LOCAL = auto()
    ANSWERED = auto()
    REFUSED = auto()
    GONE = auto()


class Event(Enum):
    __hash__ = object.__hash__

    ROUTED = auto()  # an owner is known that may be tried
    ROUTED_LOCALLY = auto()  # the owner that may be tried is this server
    WRITTEN = auto()  # the link has begun to send the call
    NOT_SENT = auto()  # there is no link, or it broke before the call was sent
    ANSWER_CAME = auto()
    NOT_LOCAL = auto()  # refused as moved or unknown: nothing was done
    FAILED = auto()  # refused with an error
    LINK_BROKE = auto()
    BROKE_AGAIN = auto()  # the link to a second owner broke under a read
    LATER_OWNER = auto()  # the region has a later owner
    BLOCKED = auto()  # no server serves the region before an operator has it opened
    TOO_LATE = auto()
    CLIENT_WENT = auto()
    ENDED_LOCALLY = auto()  # the server's own handler answered


class Do(Enum):
    SEND = auto()  # hand the call to the link to ``call.server``
    SERVE_LOCALLY = auto()
    WAIT = auto()  # call ``woke`` at ``call.wake_at_ms``, and ``route_changed`` when the row's route changes
    RECALL = auto()  # take the call back from the link's queue
    FORGET = auto()  # a late answer is dropped
    ANSWER = auto()  # send the reply as it came
    REFUSE_UNAVAILABLE = auto()  # ``refusals.refuse_unavailable``
    REFUSE_BLOCKED = auto()  # with ``Route.blocked_reason``
    REFUSE_UNSURE = auto()  # ``refusals.unsure``
    REFUSE_DEADLY = auto()  # ``refusals.deadly``
    REFUSE_FAILED = auto()  # the error that the owner sent


# Members that every call needs: in a compiled method, access by the class costs as much as a call.
_WAITING: Final = State.WAITING
_WRITTEN: Final = Event.WRITTEN
_ANSWER_CAME: Final = Event.ANSWER_CAME
_ROUTED: Final = Event.ROUTED
_ROUTED_LOCALLY: Final = Event.ROUTED_LOCALLY
ENDED: Final = frozenset({State.ANSWERED, State.REFUSED, State.GONE})
_Next = tuple[State, tuple[Do, ...]]

_BOTH: Final[dict[tuple[State, Event], _Next]] = {
    (State.WAITING, Event.ROUTED): (State.QUEUED, (Do.SEND,)),
    (State.WAITING, Event.ROUTED_LOCALLY): (State.LOCAL, (Do.SERVE_LOCALLY,)),
    (State.WAITING, Event.BLOCKED): (State.REFUSED, (Do.REFUSE_BLOCKED,)),
    (State.WAITING, Event.TOO_LATE): (State.REFUSED, (Do.REFUSE_UNAVAILABLE,)),
    (State.WAITING, Event.CLIENT_WENT): (State.GONE, ()),
    (State.QUEUED, Event.WRITTEN): (State.SENT, ()),
    (State.QUEUED, Event.NOT_SENT): (State.WAITING, ()),
    (State.QUEUED, Event.LATER_OWNER): (State.WAITING, (Do.RECALL,)),
    (State.QUEUED, Event.TOO_LATE): (State.REFUSED, (Do.RECALL, Do.REFUSE_UNAVAILABLE)),
    (State.QUEUED, Event.CLIENT_WENT): (State.GONE, (Do.RECALL,)),
    (State.SENT, Event.ANSWER_CAME): (State.ANSWERED, (Do.ANSWER,)),
    (State.SENT, Event.FAILED): (State.REFUSED, (Do.REFUSE_FAILED,)),
    (State.SENT, Event.NOT_LOCAL): (State.WAITING, ()),
    (State.SENT, Event.CLIENT_WENT): (State.GONE, (Do.FORGET,)),  # the owner carries it out all the same
    (State.LOCAL, Event.ENDED_LOCALLY): (State.ANSWERED, ()),
    (State.LOCAL, Event.NOT_LOCAL): (State.WAITING, ()),
    (State.LOCAL, Event.CLIENT_WENT): (State.GONE, ()),
}
_READ: Final = _BOTH | {
    (State.SENT, Event.LINK_BROKE): (State.WAITING, ()),
    (State.SENT, Event.BROKE_AGAIN): (State.REFUSED, (Do.REFUSE_DEADLY,)),
}
_WRITE: Final = _BOTH | {(State.SENT, Event.LINK_BROKE): (State.REFUSED, (Do.REFUSE_UNSURE,))}


class OutOfPlace(Exception):
    """The event cannot come in this state: a mistake of the shell."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"a forwarded call is {state.name}: {event.name} cannot come now")


class ForwardedCall:
    """A forwarded call.  Owned by the loop.

    Each method takes an event and returns the instructions, in the order of their execution.  ``route`` is the present
    route of the call's row in the copy, or None if the table is not known.  Events of a call that has ended change
    nothing.
    """

    __slots__ = (
        "_broke",
        "_is_write",
        "_local_server",
        "_ownership_period",
        "_ownership_region",
        "_pause_ms",
        "_retry_at_ms",
        "deadline_ms",
        "state",
    )

    def __init__(self, local_server: Incarnation, is_write: bool, now_ms: int) -> None:
        self._local_server = local_server  # constant, as are the next two
        self._is_write = is_write
        self.deadline_ms = now_ms + ROUTING_TIMEOUT_MS
        self.state = _WAITING
        self._ownership_period: OwnershipPeriod | None = None  # the period that was tried last, and its region's id:
        self._ownership_region = 0
        self._retry_at_ms = 0  # until then the owner tried last is not tried again; 0: it may be tried
        self._pause_ms = FIRST_PAUSE_MS
        self._broke: Incarnation | None = None  # the owner whose link broke after the call was SENT

    @property
    def server(self) -> Incarnation:
        """Return the owner to which the call goes, or went last."""
        assert self._ownership_period is not None, "it was sent to none yet"
        return self._ownership_period.server

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def wake_at_ms(self) -> int | None:
        """The time at which ``woke`` must be called, or None if it need not be called."""
        if self.state is State.WAITING:
            return min(self.deadline_ms, self._retry_at_ms) if self._retry_at_ms else self.deadline_ms
        return self.deadline_ms if self.state is State.QUEUED else None

    # --- events ------------------------------------------------------------------------------------

    def begin_call(self, route: Route | None, now_ms: int) -> tuple[Do, ...]:
        """Begin the call.  This is its first event."""
        return self._try_route(route, now_ms)

    def frame_written(self) -> tuple[Do, ...]:
        return self._apply_event(_WRITTEN)

    def not_sent(self, route: Route | None, now_ms: int) -> tuple[Do, ...]:
        """Handle that nothing of the call has left this server."""
        return self._tried(Event.NOT_SENT, route, now_ms)

    def answer_came(self) -> tuple[Do, ...]:
        return self._apply_event(_ANSWER_CAME)

    def not_local(self, route: Route | None, now_ms: int) -> tuple[Do, ...]:
        """Handle a refusal ``moved`` or ``unknown``; the copy of the routes already has the owner that ``moved`` names.

        Also called in LOCAL if this server's own state says that it does not own the region.
        """
        return self._tried(Event.NOT_LOCAL, route, now_ms)

    def failed(self) -> tuple[Do, ...]:
        """Handle the owner's refusal with an error, which says what was done."""
        return self._apply_event(Event.FAILED)

    def link_broke(self, route: Route | None, now_ms: int) -> tuple[Do, ...]:
        """Handle the end of the link after WRITTEN, also if this server ended the link as the peer was fenced."""
        is_second = not self._is_write and self._broke is not None and self._broke != self.server
        self._broke = self.server
        return self._tried(Event.BROKE_AGAIN if is_second else Event.LINK_BROKE, route, now_ms)

    def route_changed(self, route: Route | None, now_ms: int) -> tuple[Do, ...]:
        """Handle a change in the copy of the routes: the row has a new route, or none any more."""
        if self.state is State.WAITING:
            return self._try_route(route, now_ms)
        if self.state is State.QUEUED and route is not None and self._is_later(route, self._awaited(route)):
            return self._tried(Event.LATER_OWNER, route, now_ms)
        return ()

    def woke(self, route: Route | None, now_ms: int) -> tuple[Do, ...]:
        """Handle that the time is ``wake_at_ms`` or later."""
        if self.state is State.WAITING:
            return self._try_route(route, now_ms)
        if self.state is State.QUEUED and now_ms >= self.deadline_ms:
            return self._apply_event(Event.TOO_LATE)
        return ()

    def client_went(self) -> tuple[Do, ...]:
        return self._apply_event(Event.CLIENT_WENT)

    def ended_locally(self) -> tuple[Do, ...]:
        """End the call after SERVE_LOCALLY: the handler's answer, or its error, has gone to the client."""
        return self._apply_event(Event.ENDED_LOCALLY)

    # --- rules -------------------------------------------------------------------------------------

    def _apply_event(self, event: Event) -> tuple[Do, ...]:
        state = self.state
        found = (_WRITE if self._is_write else _READ).get((state, event))
        if found is None:
            if state in ENDED:
                return ()
            raise OutOfPlace(state, event)
        self.state = found[0]
        return found[1]

    def _tried(self, event: Event, route: Route | None, now_ms: int) -> tuple[Do, ...]:
        """End an attempt; if the call continues, it tries a route at once."""
        doing = self._apply_event(event)
        if self.state is not State.WAITING:
            return doing
        if event is not Event.LATER_OWNER:
            self._retry_at_ms = now_ms + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, LONGEST_PAUSE_MS)
        return doing + self._try_route(route, now_ms)

    def _try_route(self, route: Route | None, now_ms: int) -> tuple[Do, ...]:
        if now_ms >= self.deadline_ms:
            return self._apply_event(Event.TOO_LATE)
        if now_ms >= self._retry_at_ms:
            self._retry_at_ms = 0
        if route is not None and route.blocked_reason:
            return self._apply_event(Event.BLOCKED)
        if route is None or not self._may_try(route):
            return (Do.WAIT,)
        self._ownership_period, self._ownership_region = self._next(route), route.region.region_id
        return self._apply_event(_ROUTED_LOCALLY if self._ownership_period.server == self._local_server else _ROUTED)

    def _next(self, route: Route) -> OwnershipPeriod:
        """Return the ownership period to try.  If the region moves, source and next owner are tried alternately."""
        source = route.source
        if source is None or (source == self._ownership_period and route.region.region_id == self._ownership_region):
            return route.ownership_period
        return source

    def _awaited(self, route: Route) -> OwnershipPeriod:
        """Return the period whose answer counts while the call is QUEUED: the source's, if the route has a source."""
        source = route.source
        return source if source is not None else route.ownership_period

    def _may_try(self, route: Route) -> bool:
        """Return whether the route's owner may be tried: a later owner at once, the owner that failed after a pause.

        The pause is needed because a route may be ahead of its owner.
        """
        return not self._retry_at_ms or self._is_later(route, self._next(route))

    def _is_later(self, route: Route, period: OwnershipPeriod) -> bool:
        """Return whether ``period`` is later than the period tried last.

        A later period has a higher epoch, or is of a region that replaced the region tried last.
        """
        tried = self._ownership_period
        return tried is None or route.region.region_id != self._ownership_region or period.epoch > tried.epoch

    def check_invariants(self) -> None:
        if self.state in (State.QUEUED, State.SENT):
            assert self._ownership_period is not None, "W3"
            assert self._ownership_period.server != self._local_server, "W3"
        assert (self.wake_at_ms is not None) == (self.state in (State.WAITING, State.QUEUED)), "W1"
        assert FIRST_PAUSE_MS <= self._pause_ms <= LONGEST_PAUSE_MS
