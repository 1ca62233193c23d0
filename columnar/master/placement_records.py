"""(pure) The records of a region and of a server at the master.

    phase        a region                                                its transition
    HOMELESS     has no owner that may open it                           none: the planner names the next owner
    WRITING      its owner row is being written                          under way
    CLOSING      its source was asked to close it, and serves until then under way
    OPENING      its owner was asked to open it                          under way
    OPEN         is served by its owner                                  none
    LEAVING      its owner was asked to close it, for an operator, or    under way
                 because it cannot open it
    OFFLINE      is closed until an operator assigns it                  none
    FAILED_OPEN  could not be opened by several tries: it waits for an   none
                 operator, or, if the host was the cause, is tried again
                 after a pause
    CHANGING     is being split or merged by its owner                   under way

    state of a server    STARTING --come_up--> UP --begin_fencing--> FENCING --go_down--> DOWN --begin--> STARTING

Each method is one named transition of its record.  ``placement.Current`` has the indexes over the records: it alone
calls the methods that begin with ``index_``.

Knows nothing of other regions and servers, nor of the decisions that follow.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from columnar.limits import MIB
from columnar.master.instructions import Reason
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import RegionRates
from columnar.model.region_info import RegionInfo

NEVER_MS: Final = -(1 << 60)
DEATHS_WITHIN_MS: Final = 5 * 60_000
DEATHS_TOO_MANY: Final = 3
BENCHED_MS: Final = (60_000, 120_000, 240_000, 480_000)
FORGIVEN_AFTER_MS: Final = 30 * 60_000  # without a death: the next bench is as short as the first
FAILURES_WITHIN_MS: Final = 5 * 60_000
FAILURES_TOO_MANY: Final = 3  # regions that a server could not open within FAILURES_WITHIN_MS
AVOIDED_MS: Final = 120_000  # such a server gets no regions for this time, unless no other may take them
OPENING_TRIES: Final = 5  # to open a region, at any servers, before a pause
TRIED_KEPT: Final = 100  # names of servers kept for a region that is tried for hours
RETRY_PAUSES_MS: Final = (2_000, 4_000, 8_000, 15_000, 30_000)  # before the host tries to open a region again
DEATHS_SUSPECT: Final = 2  # owners that died when they opened a region: it is opened while no other such region is
DEATHS_DEADLY: Final = 4  # after this many the region is not opened any more
SETTLED_MS: Final = 5 * 60_000  # balance moves a region once in this time at most
BY_HAND_MS: Final = 60 * 60_000  # a region that an operator moved stays this long
AVERAGED_OVER_MS: Final = 60_000
IDLE: Final = 1.0  # load of a region without requests
MIB_OF_ONE: Final = 100  # this many MiB weigh as much as one read a second
assert TRIED_KEPT > OPENING_TRIES


class Phase(Enum):
    HOMELESS = auto()
    WRITING = auto()
    CLOSING = auto()
    OPENING = auto()
    OPEN = auto()
    LEAVING = auto()
    OFFLINE = auto()
    FAILED_OPEN = auto()
    CHANGING = auto()


class ServerState(Enum):
    STARTING = auto()  # its process has not said hello
    UP = auto()
    FENCING = auto()
    DOWN = auto()


IN_TRANSITION: Final = frozenset({Phase.WRITING, Phase.CLOSING, Phase.OPENING, Phase.LEAVING, Phase.CHANGING})


# --- loads -------------------------------------------------------------------------------------------


def score(rates: RegionRates) -> float:
    """Return the load of a region: what it costs its server.

        load of a region  1 + reads/s + 2 writes/s + 2 deliveries/s + MiB/100
        load of a server  the sum over its regions, divided by the server's weight

    Popularity (requests and deliveries) and size go into one figure, so balancing considers both.  Loads are averaged
    over a minute (``averaged``); a report weighs as much as the time since the report before.  The average contains no
    load from before the last two minutes.  So two minutes after loads have become steady their averages are steady too,
    however high loads were before.  The cost of a report does not depend on the age of a region.
    """
    requests = rates.reads_per_s + 2 * rates.writes_per_s + 2 * rates.deliveries_per_s
    return IDLE + requests + rates.size_bytes / MIB / MIB_OF_ONE


def summed(before: float, total: float, passed_ms: int, load: float, for_ms: int) -> tuple[float, float, int]:
    """Return the first three arguments after adding ``load``, which lasted for ``for_ms``.

    ``before``: the mean load of the previous minute.  ``total``: the sum of load times milliseconds in the present
    minute.  ``passed_ms``: the passed part of the present minute.  A clock that goes back counts as one that stands
    still.
    """
    total, passed_ms = total + load * max(0, for_ms), passed_ms + max(0, for_ms)
    return (before, total, passed_ms) if passed_ms < AVERAGED_OVER_MS else (total / passed_ms, 0.0, 0)


def averaged(before: float, total: float, passed_ms: int) -> float:
    """Average over a minute: the passed part of this minute, and for the rest the mean of the previous minute."""
    return (total + before * (AVERAGED_OVER_MS - passed_ms)) / AVERAGED_OVER_MS


# --- regions -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpeningAttempts:
    """The attempts to open a region since it was open last.  Methods that add an event return a new record."""

    tried: tuple[str, ...] = ()  # the server of each try that failed
    failure: str = ""  # why the last try failed
    is_damaged: bool = False  # the last try found damage, so every other server would fail too
    is_doubted: bool = False  # its store could not be opened: the next owner opens the store before it reports success
    rounds: int = 0  # how often the region stayed closed for a temporary cause
    retry_ms: int | None = None  # FAILED_OPEN: when it is tried again; None: it waits for an operator
    deaths: int = 0  # consecutive owners that died when they opened it, or a moment later

    @property
    def is_suspect(self) -> bool:
        return self.deaths >= DEATHS_SUSPECT

    @property
    def is_hopeless(self) -> bool:
        """Return whether no server should open the region before an operator assigns it."""
        return self.is_damaged or self.deaths >= DEATHS_DEADLY

    @property
    def is_exhausted(self) -> bool:
        """Return whether the region has to wait for a pause before the next try."""
        return len(self.tried) >= OPENING_TRIES

    def is_due(self, now_ms: int, *, all_at_once: bool) -> bool:
        """Return whether the region may be tried again now, without an operator; ``all_at_once`` ends its pause."""
        return self.retry_ms is not None and (all_at_once or now_ms >= self.retry_ms)

    def failed(self, server: str, failure: str, is_damaged: bool) -> OpeningAttempts:
        """Note that the server could not open the region."""
        tried = (*self.tried, server)[-TRIED_KEPT:]
        return replace(self, tried=tried, failure=failure, is_damaged=is_damaged, is_doubted=True)

    def owner_died(self, server: Incarnation) -> OpeningAttempts:
        """Note that the server died while it opened the region, or a moment later.

        That counts as a try; the region may be the cause of the death.
        """
        suffix = f", as {self.deaths} before it" if self.deaths else ""
        failure = f"server {server} died when it opened it{suffix}"
        return replace(self.failed(server.name, failure, is_damaged=False), deaths=self.deaths + 1)

    def paused(self, now_ms: int) -> OpeningAttempts:
        """Keep the region closed for the next pause, which is longer than the pause before."""
        pause_ms = RETRY_PAUSES_MS[min(self.rounds, len(RETRY_PAUSES_MS) - 1)]
        return replace(self, rounds=self.rounds + 1, retry_ms=now_ms + pause_ms)

    def due_at(self, retry_ms: int | None) -> OpeningAttempts:
        return replace(self, retry_ms=retry_ms)

    def assigned(self) -> OpeningAttempts:
        """Note that an operator assigned the region: earlier tries do not count any more.

        The next owner reports success only after it has opened the store.
        """
        return replace(self, tried=(), is_damaged=False, deaths=0, retry_ms=None, is_doubted=True)


NO_ATTEMPTS: Final = OpeningAttempts()


@dataclass(slots=True, eq=False)
class MeasuredLoad:
    """The measures of a region, as its owner reported them last."""

    size_bytes: int = 0
    limit_bytes: int = 0
    reads_per_s: float = 0.0  # the report is not kept: the garbage collector would go through all reports
    writes_per_s: float = 0.0
    deliveries_per_s: float = 0.0
    write_fault: str = ""  # why it cannot be written
    rated_ms: int = NEVER_MS  # when its load was reported
    minute: tuple[float, float, int] = (IDLE, 0.0, 0)  # the first three arguments of ``summed``
    unsplit_bytes: int = 0  # its size when it could not be split

    def report_rates(self, rates: RegionRates) -> None:
        self.reads_per_s, self.writes_per_s = rates.reads_per_s, rates.writes_per_s
        self.deliveries_per_s = rates.deliveries_per_s
        self.size_bytes, self.limit_bytes = rates.size_bytes, rates.limit_bytes

    def average_load(self, load: float, now_ms: int) -> float:
        """Return the load averaged over a minute; the region has had ``load`` since the last report."""
        is_first = self.rated_ms == NEVER_MS
        self.minute = (load, 0.0, 0) if is_first else summed(*self.minute, load, now_ms - self.rated_ms)
        self.rated_ms = now_ms
        return averaged(*self.minute)

    def change_failed(self) -> None:
        """Note that a split or merge was called off: the next split by size waits until the region has grown."""
        self.unsplit_bytes = self.size_bytes

    def index_write_fault(self, why: str) -> None:
        self.write_fault = why


@dataclass(slots=True, eq=False)
class Place:
    """The record of a region."""

    info: RegionInfo
    owner: Owner | None  # the row, as written or being written
    phase: Phase = Phase.HOMELESS
    server: str | None = None  # the server whose sums include the region
    ideal: str | None = None
    load: float = IDLE
    measured: MeasuredLoad = field(default_factory=MeasuredLoad)
    since_ms: int = 0  # when the phase began
    why: str = ""
    reason: Reason | None = None  # why its owner gets it; None if no Give is under way
    why_ideal: str = ""
    stays_until_ms: int = NEVER_MS  # balance and home do not move it earlier
    attempts: OpeningAttempts = NO_ATTEMPTS
    notified_ms: int = NEVER_MS  # when its owner was notified last
    partner: int | None = None  # CHANGING: the region that it is merged with; None if it is split

    # --- transitions -------------------------------------------------------------------------------

    def give(self, owner: Owner, why: str, reason: Reason) -> None:
        """Give the region to its next owner, whose row is yet to be written."""
        self.owner, self.why, self.reason = owner, why, reason

    def revert(self, owner: Owner | None) -> None:
        """Return to the owner row on disk, because the next row could not be written."""
        self.owner, self.reason = owner, None

    def replace_row(self, owner: Owner) -> None:
        """Replace the owner row by the next row of the same owner."""
        self.owner = owner

    def leave(self, why: str) -> None:
        self.why = why

    def note_notification(self, now_ms: int) -> None:
        self.notified_ms = now_ms

    def end_give(self) -> Reason | None:
        """Note that the owner serves.  Return why it was given the region, or None if it had the region before."""
        reason, self.reason = self.reason, None
        return reason

    def begin_change(self, partner: int | None) -> None:
        """Begin a split, or a merge with ``partner``."""
        self.partner = partner

    def note_choice(self, server: str, now_ms: int, *, by_hand: bool) -> None:
        """Note that balance, or an operator (``by_hand``), moves the region to ``server``, to stay there for a time."""
        if by_hand:
            self.stays_until_ms = max(self.stays_until_ms, now_ms + BY_HAND_MS)
        elif self.phase is Phase.OPEN and server == self.ideal and self.why_ideal:
            self.stays_until_ms = max(self.stays_until_ms, now_ms + SETTLED_MS)

    def may_settle(self, now_ms: int) -> bool:
        """Return whether balance and home may move the region now."""
        return now_ms >= self.stays_until_ms

    def came_home(self) -> None:
        """Note that the region goes to its ideal server, so no preference of balance is pending."""
        self.why_ideal = ""

    # --- attempts to open it -----------------------------------------------------------------------

    def note_attempt(self, attempts: OpeningAttempts) -> None:
        self.attempts = attempts

    # --- called by ``Current`` alone, which indexes these fields -----------------------------------

    def index_phase(self, phase: Phase, now_ms: int) -> None:
        self.phase, self.since_ms = phase, now_ms

    def index_server(self, server: str | None) -> None:
        self.server = server

    def index_ideal(self, server: str | None, why: str) -> None:
        self.ideal, self.why_ideal = server, why

    def index_load(self, load: float) -> None:
        self.load = load


# --- servers -----------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class ServerFailures:
    """Deaths of a server, and its failed openings: for a time it gets no regions that another server may take."""

    deaths_ms: tuple[int, ...] = ()
    benches: int = 0
    benched_until_ms: int = NEVER_MS
    unopened_ms: dict[int, int] = field(default_factory=dict)  # region -> when this process failed to open it
    avoided_until_ms: int = NEVER_MS  # because this process could not open too many regions

    @property
    def shunned_until_ms(self) -> int:
        """Return the time until which the server gets regions only if no other server may take them."""
        return max(self.benched_until_ms, self.avoided_until_ms)

    def why_shunned(self, now_ms: int) -> str:
        if self.benched_until_ms > now_ms:
            return f"as it died {len(self.deaths_ms)} times within 5 minutes"
        return f"as it could not open {len(self.unopened_ms)} regions within 5 minutes"

    def process_began(self) -> None:
        """Forget the openings that failed: a new process may try to open those regions again."""
        self.unopened_ms.clear()
        self.avoided_until_ms = NEVER_MS

    def could_not_open(self, region: int, now_ms: int) -> None:
        recent = {one: at for one, at in self.unopened_ms.items() if now_ms - at < FAILURES_WITHIN_MS}
        self.unopened_ms = {**recent, region: now_ms}
        if len(self.unopened_ms) >= FAILURES_TOO_MANY:
            self.avoided_until_ms = now_ms + AVOIDED_MS

    def process_died(self, now_ms: int) -> None:
        last = self.deaths_ms[-1] if self.deaths_ms else NEVER_MS
        self.benches = 0 if now_ms - last > FORGIVEN_AFTER_MS else self.benches
        recent = (at for at in self.deaths_ms if now_ms - at < DEATHS_WITHIN_MS)
        self.deaths_ms = (*recent, now_ms)
        if len(self.deaths_ms) >= DEATHS_TOO_MANY:
            self.benched_until_ms = now_ms + BENCHED_MS[min(self.benches, len(BENCHED_MS) - 1)]
            self.benches += 1


@dataclass(slots=True, eq=False)
class Server:
    name: str
    zone: str = ""  # of its node; empty if the node has none
    weight: float = 1.0
    state: ServerState = ServerState.DOWN
    incarnation: Incarnation | None = None
    since_ms: int = NEVER_MS  # when the state began
    was_up: bool = False  # whether the present process was ever up
    load: float = 0.0
    regions: dict[int, None] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)  # regions of each table
    opening: dict[int, None] = field(default_factory=dict)  # regions that it was given and that are not open yet
    moves: int = 0
    changes: int = 0
    failures: ServerFailures = field(default_factory=ServerFailures)

    # --- life --------------------------------------------------------------------------------------

    def begin(self, incarnation: Incarnation, weight: float, now_ms: int) -> None:
        """Note a new process, which has not said hello."""
        self.incarnation, self.state, self.since_ms, self.weight = incarnation, ServerState.STARTING, now_ms, weight
        self.was_up = False
        self.failures.process_began()

    def come_up(self, now_ms: int) -> None:
        self.state, self.since_ms, self.was_up = ServerState.UP, now_ms, True

    def begin_fencing(self, now_ms: int) -> None:
        self.state, self.since_ms = ServerState.FENCING, now_ms

    def go_down(self, now_ms: int) -> None:
        self.state, self.since_ms = ServerState.DOWN, now_ms

    # --- called by ``Current`` alone, for sums over the server's regions ---------------------------

    def index_region(self, place: Place) -> None:
        region, table = place.info.region_id, place.info.table
        self.regions[region] = None
        self.load += place.load
        self.tables[table] = self.tables.get(table, 0) + 1

    def index_region_left(self, place: Place) -> None:
        region, table = place.info.region_id, place.info.table
        del self.regions[region]
        self.opening.pop(region, None)
        self.load = self.load - place.load if self.regions else 0.0
        self.tables[table] -= 1
        if not self.tables[table]:
            del self.tables[table]

    def index_zone(self, zone: str) -> None:
        self.zone = zone

    def index_load(self, more: float) -> None:
        self.load += more

    def index_move(self, by: int) -> None:
        self.moves += by

    def index_change(self, by: int) -> None:
        self.changes += by
