"""(pure) The life of a region at its server: one state machine, events in, instructions out.

    state       a request            the region's store
    NONE        has it opened        none is open
    OPENING     waits                is being opened
    OPEN        is served            open
    READ_ONLY   reads are served     open for reading: the disk takes no writes
    REPLACING   is served            open; a split or a merge copies it
    HOLDING     waits                open; a split or a merge takes the last of it over
    REPLACED    waits                open; the catalogue names its successors, which are being opened
    BLOCKED     is refused           none is open; the outcome of the catalogue's write is unknown
    CLOSING     reads are served     open; it is closed as soon as every write is on disk
    BROKEN      waits                a thread closes it: its disk refused an fsync
    FAILED      waits                closed, as its disk refused an fsync in HOLDING: the split or merge ends first
    CLOSED      is refused           none is open; given up at an epoch, and refused at that epoch for ever

An owner's epoch numbers the owners of regions: a standalone raises it once per start, a master with each owner
that it names.  It is another number than the epoch of a region's change log, which counts openings.  A standalone
owns every region; a server of a cluster owns those that a master assigned, until it gives them up
(``region_assignment_state``).

Invariants (``HostingState.check``, and the model in tests/model/test_hosting_state.py):
    I1. A region in NONE is not remembered: memory is for regions that are open, waited for or given up.
    I2. A region is opened only by its owner, and only above the epoch at which it was given up last; epochs of a
        region only rise.
    I3. Each OPEN_STORE is followed by exactly one CLOSE or CLOSE_ASIDE before the next OPEN_STORE, unless the
        opening failed.
    I4. PAUSE_REQUESTS and RELEASE or REFUSE alternate; requests wait in the states of WAITING and in no other.

Knows nothing of stores, files, futures, time and the catalogue: ``hosting`` carries out the instructions.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


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
    PAUSE_BEGINS = auto()  # successors have nearly all: the pause begins
    LET_IN = auto()  # the pause was too long; another try follows
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
    CLOSE_ASIDE = auto()  # in a thread: a store that failed needs a second
    PAUSE_REQUESTS = auto()
    RELEASE = auto()  # waiting requests locate the region of their row again
    REFUSE = auto()  # waiting and new requests fail with the reason
    PAUSE_WRITES = auto()
    LET_WRITES = auto()
    SYNC = auto()  # sync every write, then report QUIET or continue the pause
    REPORT = auto()  # notify the assigner of regions of the new state


SERVING: Final = frozenset({State.OPEN, State.READ_ONLY, State.REPLACING, State.CLOSING})
WAITING: Final = frozenset({State.OPENING, State.HOLDING, State.REPLACED, State.BROKEN, State.FAILED})
REFUSING: Final = frozenset({State.BLOCKED, State.CLOSED})
HAS_STORE: Final = SERVING | {State.HOLDING, State.REPLACED}
_Next = tuple[State, tuple[Do, ...]]

_TABLE: Final[dict[tuple[State, Event], _Next]] = {
    (State.NONE, Event.WANTED): (State.OPENING, (Do.PAUSE_REQUESTS, Do.OPEN_STORE)),
    (State.OPENING, Event.OPENED): (State.OPEN, (Do.RELEASE, Do.REPORT)),
    (State.OPENING, Event.OPENED_READING): (State.READ_ONLY, (Do.RELEASE, Do.REPORT)),
    (State.OPENING, Event.NOT_OPENED): (State.NONE, (Do.RELEASE, Do.REPORT)),
    (State.OPEN, Event.EVICTED): (State.NONE, (Do.CLOSE,)),
    (State.READ_ONLY, Event.EVICTED): (State.NONE, (Do.CLOSE,)),
    # closing
    (State.OPEN, Event.LEAVES): (State.CLOSING, (Do.PAUSE_WRITES, Do.SYNC)),
    (State.REPLACING, Event.LEAVES): (State.CLOSING, (Do.PAUSE_WRITES, Do.SYNC)),
    (State.CLOSING, Event.LEAVES): (State.CLOSING, (Do.SYNC,)),  # two callers close it: both wait, the first one closes
    (State.READ_ONLY, Event.LEAVES): (State.READ_ONLY, (Do.SYNC,)),  # writers get the disk's error, as before
    (State.READ_ONLY, Event.QUIET): (State.NONE, (Do.CLOSE, Do.REPORT)),
    (State.CLOSING, Event.QUIET): (State.NONE, (Do.CLOSE, Do.REPORT)),
    (State.CLOSING, Event.STAYS): (State.OPEN, (Do.LET_WRITES,)),
    (State.NONE, Event.GIVEN_UP): (State.CLOSED, (Do.REPORT,)),
    # replaced by successors
    (State.OPEN, Event.REPLACEMENT_BEGINS): (State.REPLACING, ()),
    (State.REPLACING, Event.PAUSE_BEGINS): (State.HOLDING, (Do.PAUSE_REQUESTS, Do.SYNC)),
    (State.HOLDING, Event.LET_IN): (State.REPLACING, (Do.RELEASE,)),
    (State.REPLACING, Event.CALLED_OFF): (State.OPEN, ()),
    (State.HOLDING, Event.CALLED_OFF): (State.OPEN, (Do.RELEASE,)),
    (State.HOLDING, Event.COMMITTED): (State.REPLACED, (Do.REPORT,)),
    (State.REPLACED, Event.SUCCEEDED): (State.NONE, (Do.RELEASE, Do.CLOSE)),
    (State.HOLDING, Event.UNSURE): (State.BLOCKED, (Do.REFUSE, Do.CLOSE)),
    (State.BLOCKED, Event.SETTLED): (State.NONE, (Do.REPORT,)),
    # its disk fails
    (State.OPEN, Event.FSYNC_FAILED): (State.BROKEN, (Do.PAUSE_REQUESTS, Do.CLOSE_ASIDE)),
    (State.REPLACING, Event.FSYNC_FAILED): (State.BROKEN, (Do.PAUSE_REQUESTS, Do.CLOSE_ASIDE)),
    (State.CLOSING, Event.FSYNC_FAILED): (State.BROKEN, (Do.PAUSE_REQUESTS, Do.CLOSE_ASIDE)),
    (State.BROKEN, Event.STORE_CLOSED): (State.NONE, (Do.RELEASE, Do.REPORT)),
    # Its successors may be in the catalogue already: writes to it would be lost to them if it were opened now.
    (State.HOLDING, Event.FSYNC_FAILED): (State.FAILED, (Do.CLOSE,)),
    (State.FAILED, Event.LET_IN): (State.NONE, (Do.RELEASE, Do.REPORT)),
    (State.FAILED, Event.CALLED_OFF): (State.NONE, (Do.RELEASE, Do.REPORT)),
    (State.FAILED, Event.COMMITTED): (State.FAILED, (Do.REPORT,)),
    (State.FAILED, Event.SUCCEEDED): (State.NONE, (Do.RELEASE,)),
    (State.FAILED, Event.UNSURE): (State.BLOCKED, (Do.REFUSE,)),
}
# Events about something that has ended meanwhile: the store failed, or was closed, while the event was in flight.
_TOO_LATE: Final = frozenset({Event.CALLED_OFF, Event.STAYS, Event.QUIET, Event.FSYNC_FAILED})


class OutOfPlace(Exception):
    """The event is impossible in this state: its sender assumed another state."""

    def __init__(self, region_id: int, state: State, event: Event) -> None:
        super().__init__(f"region {region_id} is {state.name}: {event.name} cannot come now")


class HostingState:
    """The states of a server's regions.

    ``epoch``: at which it owns those that no master named since its start; None: it owns none of them.
    """

    def __init__(self, epoch: int | None) -> None:
        self.epoch = epoch
        self.is_stopping = False
        self._states: dict[int, State] = {}  # I1
        self._named: dict[int, int] = {}  # region id -> its epoch, where a master named it since the start
        self._given_up: dict[int, int] = {}  # region id -> the epoch at which it was given up last

    def state(self, region_id: int) -> State:
        return self._states.get(region_id, State.NONE)

    def in_states(self, wanted: frozenset[State]) -> list[int]:
        return [region_id for region_id, state in self._states.items() if state in wanted]

    def apply_event(self, region_id: int, event: Event) -> tuple[Do, ...]:
        """Take the event in and return what is to be done, in this order.  OutOfPlace."""
        state = self.state(region_id)
        found = _TABLE.get((state, event))
        if found is None and event in _TOO_LATE:
            return ()
        if found is None or (event is Event.WANTED and (self.is_stopping or not self.owns(region_id))):
            raise OutOfPlace(region_id, state, event)
        after, doing = found
        if event is Event.GIVEN_UP:
            self.give_up(region_id)
        if after is State.NONE:
            self._states.pop(region_id, None)
        else:
            self._states[region_id] = after
        return doing

    # --- owners ------------------------------------------------------------------------------------

    def epoch_of(self, region_id: int) -> int:
        """At which this server owns it, or owned it last; 0: never."""
        return self._named.get(region_id, self.epoch or 0)

    def owns(self, region_id: int) -> bool:
        """Tell whether this server owns the region and may open it; otherwise another server serves it."""
        epoch = self._named.get(region_id, self.epoch)
        return epoch is not None and epoch > self._given_up.get(region_id, -1)

    def is_not_local(self, region_id: int) -> bool:
        """Tell whether requests belong to another server: they neither are served nor wait nor are refused locally."""
        state = self._states.get(region_id)
        return (state is None or state is State.CLOSED) and not self.is_stopping and not self.owns(region_id)

    def own(self, region_id: int, epoch: int) -> bool:
        """A master names this server the region's owner at ``epoch``; False: refused, it is older or was given up."""
        if epoch <= self._given_up.get(region_id, 0) or epoch < self.epoch_of(region_id):
            return False
        self._named[region_id] = epoch
        if self.state(region_id) is State.CLOSED:
            del self._states[region_id]
        return True

    def give_up(self, region_id: int) -> None:
        """From now on the region is not opened at this epoch; it may be open still, until GIVEN_UP."""
        self._given_up[region_id] = self.epoch_of(region_id)

    def forget(self, region_id: int) -> None:
        """Forget a region that no table has any more.  Its id never comes again: ids are assigned once."""
        assert self.state(region_id) in (State.NONE, State.CLOSED), "it is held"
        self._states.pop(region_id, None)
        self._named.pop(region_id, None)
        self._given_up.pop(region_id, None)

    def stop(self) -> None:
        """Stop the server: no region is opened from now on, at any epoch."""
        self.is_stopping = True

    def check(self) -> None:
        assert State.NONE not in self._states.values(), "I1"
        for region_id, epoch in self._given_up.items():
            assert epoch <= self.epoch_of(region_id), "I2"
        for region_id, state in self._states.items():
            is_given_up = self._given_up.get(region_id, -1) == self.epoch_of(region_id)
            assert is_given_up or state is not State.CLOSED, "I2"
