"""(pure) The life of a region at its server: one state machine, events in, instructions out.

    state       a request            the region's store
    NONE        has it opened        none is open
    OPENING     waits                is being opened
    OPEN        is served            open
    READ_ONLY   reads are served     open for reading: the disk takes no writes
    REPLACING   is served            open; a split or a merge copies it
    HOLDING     waits                open; a split or a merge copies its last changes
    REPLACED    waits                open; the catalogue names its successors, which are being opened
    BLOCKED     is refused           none is open; the outcome of the catalogue's write is unknown
    CLOSING     reads are served     open; it is closed as soon as every write is on disk
    BROKEN      waits                a thread closes it: its disk refused an fsync
    FAILED      waits                closed, as its disk refused an fsync in HOLDING: the split or merge ends first
    CLOSED      is not local         none is open; given up at an epoch, and refused at that epoch for ever

The owner's epoch numbers the successive owners of a region: a standalone raises it at each start, a master with each
owner that it names.  This epoch differs from the epoch of a region's change log, which counts openings.  A standalone
owns every region.  A server of a cluster owns the regions that a master assigned:

    request     assigned, recovering   assigned                    leaving                 CLOSED, or never assigned
    open        leaves, then opens     leaves, then opens          opens when it has left  opens, recovering or not
    renumber    leaves, then opens     its epoch rises in place    opens when it has left  as open
    close       leaves                 leaves                      waits                   closed

A region is recovering until its store was opened with the unreplayed logs.  If its last owner could not open it, it is
recovering until its first opening even without such logs.  A leaving region is given up, and served until its store is
closed; if it is recovering, its opening is called off.  Each row of the table is about a request at a later epoch than
the region's; a close may also have the same epoch.  A repeated request is answered again without further effect.  At an
older epoch a request to open is refused, and a request to close is answered as done.

Invariants (``check_invariants``; models: tests/model/test_hosting_state.py and test_told_regions_model.py):
    I1. A region that no master named is remembered only while it is open, waited for or given up (``hosting_state``).
    I2. A region is opened only by its owner, and only above the epoch at which it was given up last; epochs of a
        region only rise.
    I3. Each OPEN_STORE is followed by exactly one CLOSE or CLOSE_ASIDE before the next OPEN_STORE, unless the
        opening failed.
    I4. PAUSE_REQUESTS and RELEASE or REFUSE alternate; requests wait in the states of WAITING and in no other.
    T1. A region is owned only at an epoch that a master assigned, once at each, and never at or below an epoch that was
        given up (C2).
    T2. ``ReportOpened`` comes only when no log is unreplayed (C4), ``ReportClosed`` only when no store is open.
    T3. Each request of a master is answered: by a report of its epoch, or by ``Refuse``.
    T4. A leader with a lower epoch than the last one is refused (``hosting_state``).

Knows nothing of stores, futures, links, time and the catalogue: ``hosting`` carries out the instructions about stores,
``region_assigner`` those about assignments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from columnar.model.owner import Owner, OwnershipPeriod


class State(Enum):
    NONE = auto()
    OPENING = auto()
    OPEN = auto()
    READ_ONLY = auto()
    REPLACING = auto()
    HOLDING = auto()
    REPLACED = auto()
    BLOCKED = auto()
    CLOSING = auto()
    BROKEN = auto()
    FAILED = auto()
    CLOSED = auto()


class Event(Enum):
    WANTED = auto()  # by a request, or by a consumer of its changes
    OPENED = auto()
    OPENED_READING = auto()  # the disk takes no writes
    NOT_OPENED = auto()
    EVICTED = auto()  # quiet, and little used or to be tried for writing again
    LEAVES = auto()  # its table, its schema or the server wants it closed
    QUIET = auto()  # after LEAVES: every write is on disk
    STAYS = auto()  # after LEAVES: called off
    REPLACEMENT_BEGINS = auto()
    PAUSE_BEGINS = auto()  # the successors have nearly all data: the pause begins
    LET_IN = auto()  # the pause was too long; a new attempt follows
    CALLED_OFF = auto()
    COMMITTED = auto()  # the catalogue names the successors
    SUCCEEDED = auto()  # the successors serve
    UNSURE = auto()  # it is unknown whether the catalogue names the successors
    SETTLED = auto()  # after UNSURE: the catalogue names this region
    FSYNC_FAILED = auto()
    STORE_CLOSED = auto()  # after CLOSE_ASIDE
    GIVEN_UP = auto()  # another owner follows, or the server stops


class Do(Enum):
    OPEN_STORE = auto()
    CLOSE = auto()
    CLOSE_ASIDE = auto()  # in a thread: closing a failed store takes a second
    PAUSE_REQUESTS = auto()
    RELEASE = auto()  # waiting requests locate the region of their row again
    REFUSE = auto()  # waiting and new requests fail with the reason
    PAUSE_WRITES = auto()
    LET_WRITES = auto()


SERVING: Final = frozenset({State.OPEN, State.READ_ONLY, State.REPLACING, State.CLOSING})
WAITING: Final = frozenset({State.OPENING, State.HOLDING, State.REPLACED, State.BROKEN, State.FAILED})
REFUSING: Final = frozenset({State.BLOCKED, State.CLOSED})
HAS_STORE: Final = SERVING | {State.HOLDING, State.REPLACED}
_Next = tuple[State, tuple[Do, ...]]
_BREAKS: Final = (State.BROKEN, (Do.PAUSE_REQUESTS, Do.CLOSE_ASIDE))

_TABLE: Final[dict[tuple[State, Event], _Next]] = {
    (State.NONE, Event.WANTED): (State.OPENING, (Do.PAUSE_REQUESTS, Do.OPEN_STORE)),
    (State.OPENING, Event.OPENED): (State.OPEN, (Do.RELEASE,)),
    (State.OPENING, Event.OPENED_READING): (State.READ_ONLY, (Do.RELEASE,)),
    (State.OPENING, Event.NOT_OPENED): (State.NONE, (Do.RELEASE,)),
    (State.OPEN, Event.EVICTED): (State.NONE, (Do.CLOSE,)),
    (State.READ_ONLY, Event.EVICTED): (State.NONE, (Do.CLOSE,)),
    # closing
    (State.OPEN, Event.LEAVES): (State.CLOSING, (Do.PAUSE_WRITES,)),
    (State.REPLACING, Event.LEAVES): (State.CLOSING, (Do.PAUSE_WRITES,)),
    (State.CLOSING, Event.LEAVES): (State.CLOSING, ()),  # two callers close it: both wait, the first one closes
    (State.READ_ONLY, Event.LEAVES): (State.READ_ONLY, ()),  # writers get the disk's error, as before
    (State.READ_ONLY, Event.QUIET): (State.NONE, (Do.CLOSE,)),
    (State.CLOSING, Event.QUIET): (State.NONE, (Do.CLOSE,)),
    (State.CLOSING, Event.STAYS): (State.OPEN, (Do.LET_WRITES,)),
    (State.NONE, Event.GIVEN_UP): (State.CLOSED, ()),
    # replaced by successors
    (State.OPEN, Event.REPLACEMENT_BEGINS): (State.REPLACING, ()),
    (State.REPLACING, Event.PAUSE_BEGINS): (State.HOLDING, (Do.PAUSE_REQUESTS,)),
    (State.HOLDING, Event.LET_IN): (State.REPLACING, (Do.RELEASE,)),
    (State.REPLACING, Event.CALLED_OFF): (State.OPEN, ()),
    (State.HOLDING, Event.CALLED_OFF): (State.OPEN, (Do.RELEASE,)),
    (State.HOLDING, Event.COMMITTED): (State.REPLACED, ()),
    (State.REPLACED, Event.SUCCEEDED): (State.NONE, (Do.RELEASE, Do.CLOSE)),
    (State.HOLDING, Event.UNSURE): (State.BLOCKED, (Do.REFUSE, Do.CLOSE)),
    (State.BLOCKED, Event.SETTLED): (State.NONE, ()),
    # its disk fails
    **{(state, Event.FSYNC_FAILED): _BREAKS for state in (State.OPEN, State.REPLACING, State.CLOSING)},
    (State.BROKEN, Event.STORE_CLOSED): (State.NONE, (Do.RELEASE,)),
    # The catalogue may name its successors already: if the region were opened now, they would lack the writes to it.
    (State.HOLDING, Event.FSYNC_FAILED): (State.FAILED, (Do.CLOSE,)),
    (State.FAILED, Event.LET_IN): (State.NONE, (Do.RELEASE,)),
    (State.FAILED, Event.CALLED_OFF): (State.NONE, (Do.RELEASE,)),
    (State.FAILED, Event.COMMITTED): (State.FAILED, ()),
    (State.FAILED, Event.SUCCEEDED): (State.NONE, (Do.RELEASE,)),
    (State.FAILED, Event.UNSURE): (State.BLOCKED, (Do.REFUSE,)),
}
# Events about something that has ended meanwhile: the store failed, or was closed, while the event was in flight.
_TOO_LATE: Final = frozenset({Event.CALLED_OFF, Event.STAYS, Event.QUIET, Event.FSYNC_FAILED})


class OutOfPlace(Exception):
    """The event is impossible in this state: its sender assumed another state."""

    def __init__(self, region_id: int, state: State, event: Event) -> None:
        super().__init__(f"region {region_id} is {state.name}: {event.name} cannot come now")


@dataclass(frozen=True, slots=True)
class AssignmentOutput:
    """An instruction or a report about an assignment."""

    region: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Recover(AssignmentOutput):
    """Open the region's store with these logs; report ``on_recovered`` or ``on_not_recovered``."""

    unreplayed_logs: tuple[OwnershipPeriod, ...]


class CallOff(AssignmentOutput):
    """Report ``on_not_recovered`` now if the opening has not begun."""


class MayServe(AssignmentOutput):
    """No log is unreplayed: the first request may open the region, or the shell opens it before if there is room."""


class RaiseEpoch(AssignmentOutput):
    """From now on write the records of the region's store, if it is open, at ``epoch``."""


class Leave(AssignmentOutput):
    """Flush while serving, block, quiesce, close; report ``on_closed``."""


class ReportOpened(AssignmentOutput): ...


class ReportFailed(AssignmentOutput): ...


@dataclass(frozen=True, slots=True)
class ReportClosed(AssignmentOutput):
    has_unreplayed_log: bool


class Why(Enum):
    """The reason of a ``Refuse``, as people read it."""

    OLD_LEADER = "another master leads by now"  # this says nothing about the region
    OLD_EPOCH = "it was told at a later epoch"
    GIVEN_UP = "this server has given it up at that epoch"
    STOPPING = "this server is stopping"  # it will not serve the region at that epoch


@dataclass(frozen=True, slots=True)
class Refuse(AssignmentOutput):
    """Refuse a request to open or renumber the region at ``epoch``; if the leader is old, any request about it."""

    why: Why


@dataclass(slots=True)
class LocalRegion:
    """The state machine of one region.  Each event returns instructions, in the order to carry them out."""

    region: int
    epoch: int  # at which this server owns the region, or owned it last; 0 if it never did
    state: State = State.NONE
    given_up: int = 0  # the epoch at which the region was given up last
    first: int = 0  # the epoch at which ownership began; the present one is above it after a renumbering in place
    doubted: int = 0  # the epoch at which the region is recovering even without unreplayed logs
    is_recovering: bool = False
    has_unreplayed_log: bool = False  # once CLOSED, or recovering: this server's log may have writes the store lacks
    unanswered_closes: tuple[int, ...] = ()  # epochs of the closes that are not answered
    next: Owner | None = None  # the request to open it when it has left

    @property
    def is_owned(self) -> bool:
        """Whether this server may open the region; otherwise another server serves it."""
        return self.epoch > self.given_up

    @property
    def is_assigned(self) -> bool:
        """Whether no other server may own the region: it is this server's, and not closed."""
        return self.epoch > 0 and self.state is not State.CLOSED

    @property
    def may_serve(self) -> bool:
        """Whether this server owns the region, and its store has every record of the unreplayed logs."""
        return self.is_owned and not self.is_recovering

    @property
    def is_leaving(self) -> bool:
        """Whether the region was given up, and is to be closed."""
        return self.is_assigned and not self.is_owned

    @property
    def epochs(self) -> range:
        """The epochs of the current, unbroken ownership period.

        A store that failed is opened again with this server's own records of these epochs.  Records of an earlier
        ownership period must not be replayed again: another server wrote to the store since.
        """
        return range(self.first, self.epoch + 1) if self.is_assigned else range(0)

    def apply_event(self, event: Event, *, is_stopping: bool = False) -> tuple[Do, ...]:
        """Apply an event of the store and return the instructions.  Raises OutOfPlace."""
        found = _TABLE.get((self.state, event))
        if found is None and event in _TOO_LATE:
            return ()
        if found is None or (event is Event.WANTED and (is_stopping or not self.is_owned)):
            raise OutOfPlace(self.region, self.state, event)
        if event is Event.GIVEN_UP:
            self.give_up()
        self.state, doing = found
        return doing

    def own(self, epoch: int) -> bool:
        """Own the region at a master's epoch.  Returns False if ``epoch`` is below the present one or was given up."""
        if epoch <= self.given_up or epoch < self.epoch:
            return False
        self.epoch = epoch
        if self.state is State.CLOSED:
            self.state = State.NONE
        return True

    def give_up(self) -> None:
        """Never open the region at its present epoch again.  The region may stay open until the event GIVEN_UP."""
        self.given_up = self.epoch

    # --- requests of a master ----------------------------------------------------------------------

    def on_open(self, owner: Owner, *, is_doubted: bool, is_stopping: bool) -> tuple[AssignmentOutput, ...]:
        """Handle a request to open.  ``owner`` is the stored ownership row, which names this server and the unreplayed
        logs.

        ``is_doubted`` says that the region recovers first, even without unreplayed logs, as its last owner could not
        open it.
        """
        if is_doubted:
            self.doubted = owner.epoch
        if not self.is_assigned:
            return self._begin(owner, is_stopping)
        if self.is_leaving:
            return self._opens_after(owner)
        if owner.epoch < self.epoch:
            return (Refuse(self.region, owner.epoch, Why.OLD_EPOCH),)
        if owner.epoch > self.epoch:
            self.next = owner
            return self._leave()
        return () if self.is_recovering else (ReportOpened(self.region, owner.epoch),)

    def on_renumber(self, owner: Owner, *, is_stopping: bool) -> tuple[AssignmentOutput, ...]:
        """Handle a request to raise the epoch.

        A served region needs no replay: its store has every log of ``owner.unreplayed_logs`` but this server's own.
        """
        if not self.may_serve or owner.epoch <= self.epoch:
            return self.on_open(owner, is_doubted=False, is_stopping=is_stopping)
        self._own(owner.epoch)
        return (RaiseEpoch(self.region, owner.epoch), ReportOpened(self.region, owner.epoch))

    def on_close(self, epoch: int) -> tuple[AssignmentOutput, ...]:
        if not self.is_assigned:
            if epoch > self.epoch:
                self._give_up_unseen(epoch)
            return (ReportClosed(self.region, epoch, self.has_unreplayed_log),)
        if epoch < self.epoch:
            # The region was perhaps renumbered in place since: its writes may be only in the log.
            return (ReportClosed(self.region, epoch, has_unreplayed_log=True),)
        if epoch not in self.unanswered_closes:
            self.unanswered_closes = (*self.unanswered_closes, epoch)
        refused: tuple[AssignmentOutput, ...] = ()
        if self.next is not None and self.next.epoch <= epoch:
            refused = (Refuse(self.region, self.next.epoch, Why.GIVEN_UP),)
            self.next = None
        return refused if self.is_leaving else refused + self._leave()

    # --- reports of the assigner ---------------------------------------------------------------------

    def on_recovered(self, epoch: int) -> tuple[AssignmentOutput, ...]:
        """Handle the success of Recover: the store has every record of the unreplayed logs, on disk."""
        self._end_recovery(epoch)
        return (Leave(self.region, epoch) if self.is_leaving else ReportOpened(self.region, epoch),)

    def on_not_recovered(self, epoch: int, *, is_stopping: bool) -> tuple[AssignmentOutput, ...]:
        """Handle the failure of Recover: the region is refused at that epoch for ever."""
        self._end_recovery(epoch)
        if self.is_leaving:
            return self._left(is_stopping)
        self.apply_event(Event.GIVEN_UP)
        return (ReportFailed(self.region, epoch),)

    def on_closed(self, epoch: int, *, has_unreplayed_log: bool, is_stopping: bool) -> tuple[AssignmentOutput, ...]:
        """Handle the end of Leave: no store of the region is open.

        ``has_unreplayed_log`` is True if an acknowledged write is not on disk in the region's store.
        """
        assert self.is_leaving
        assert self.epoch == epoch, "it was assigned once"
        self.has_unreplayed_log = has_unreplayed_log
        return self._left(is_stopping)

    # --- rules -------------------------------------------------------------------------------------

    def _own(self, epoch: int) -> None:
        is_taken = self.own(epoch)
        assert is_taken, f"T1: region {self.region} is assigned at {epoch}, after {self.epoch}"

    def _give_up_unseen(self, epoch: int) -> None:
        """Give up the region at an epoch at which it was never owned."""
        self._own(epoch)
        self.apply_event(Event.GIVEN_UP)
        self.first = epoch

    def _end_recovery(self, epoch: int) -> None:
        assert self.epoch == epoch, "it was assigned once"
        assert self.is_recovering
        self.is_recovering = False

    def _begin(self, owner: Owner, is_stopping: bool) -> tuple[AssignmentOutput, ...]:
        if not self.own(owner.epoch):
            return (Refuse(self.region, owner.epoch, Why.GIVEN_UP),)
        self.first = owner.epoch
        if is_stopping:
            self.apply_event(Event.GIVEN_UP)
            return (Refuse(self.region, owner.epoch, Why.STOPPING),)
        self.is_recovering = bool(owner.unreplayed_logs) or self.doubted == owner.epoch
        self.has_unreplayed_log = _names_its_server(owner)
        if self.is_recovering:
            return (Recover(self.region, owner.epoch, owner.unreplayed_logs),)
        return (MayServe(self.region, owner.epoch), ReportOpened(self.region, owner.epoch))

    def _opens_after(self, owner: Owner) -> tuple[AssignmentOutput, ...]:
        """Handle a request to open a region that is leaving."""
        if owner.epoch <= max(self.epoch, *self.unanswered_closes, 0):
            return (Refuse(self.region, owner.epoch, Why.GIVEN_UP),)
        before, self.next = self.next, owner
        if before is None or before.epoch == owner.epoch:
            return ()
        if before.epoch > owner.epoch:
            self.next = before
        return (Refuse(self.region, min(before.epoch, owner.epoch), Why.OLD_EPOCH),)

    def _leave(self) -> tuple[AssignmentOutput, ...]:
        self.give_up()
        if self.is_recovering:
            return (Refuse(self.region, self.epoch, Why.GIVEN_UP), CallOff(self.region, self.epoch))
        return (Leave(self.region, self.epoch),)

    def _left(self, is_stopping: bool) -> tuple[AssignmentOutput, ...]:
        closes, after = self.unanswered_closes, self.next
        if after is not None and self.has_unreplayed_log and not _names_its_server(after):
            # The master sent the request before it could know that the store lacks records of this server's log.
            own = (OwnershipPeriod(after.server, epoch) for epoch in self.epochs)
            after = replace(after, unreplayed_logs=(*after.unreplayed_logs, *own))
        self.apply_event(Event.GIVEN_UP)
        self.unanswered_closes, self.next = (), None
        last = max((self.epoch, *closes))
        if last > self.epoch:
            self._give_up_unseen(last)
        reports = tuple(ReportClosed(self.region, epoch, self.has_unreplayed_log) for epoch in sorted(closes))
        return reports if after is None else reports + self._begin(after, is_stopping)

    def check_invariants(self) -> None:
        assert self.given_up <= self.epoch, "I2"
        assert self.first <= self.epoch, "T1"
        assert self.state is not State.CLOSED or not (self.is_owned or self.is_recovering), "I2, T2"
        assert self.is_leaving or not (self.unanswered_closes or self.next), "T3"
        assert self.next is None or self.next.epoch > max((self.epoch, *self.unanswered_closes)), "T1"


def _names_its_server(owner: Owner) -> bool:
    return any(period.server == owner.server for period in owner.unreplayed_logs)
