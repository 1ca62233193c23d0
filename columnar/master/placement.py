"""(pure) Where regions are and where they should be, with the indexes that a planner reads.

    phase        a region                                                its transition
    HOMELESS     has no owner that may open it                           none: the planner names the next owner
    WRITING      its owner row is being written                          under way
    CLOSING      its source was asked to close it, and serves until then under way
    OPENING      its owner was asked to open it                          under way
    OPEN         is served by its owner                                  none
    LEAVING      its owner was asked to close it, for an operator, or    under way
                 because it cannot open it
    OFFLINE      is closed until an operator assigns it                  none
    FAILED_OPEN  could not be opened, often enough: an operator assigns  none
                 it, or it is tried again after a pause, if the host was
                 the cause
    CHANGING     is being split or merged by its owner                   under way

``Desired`` is what operators want.  ``Current`` is the present state, as far as the master knows.  Each change of a
region or of a server updates the indexes, so a plan costs what is out of place, not the whole.

Invariants (``Current.check_invariants``):
    P1. A region counts for the server of its owner row, unless it has no living owner.  Load, number of regions and
        regions of a table of a server are the sums over its regions.
    P2. ``homeless`` and ``failed`` are the regions in those phases, ``unwritable`` those with a fault, ``astray`` those
        that are not at their ideal server.
    P3. ``moves`` are transitions from a living owner; each server counts those that leave or reach it.

Knows nothing of rows being written nor of requests to owners (``cluster_state``), nor of the decisions that follow
(``planner``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from columnar.limits import MIB
from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.instructions import Reason, Request, Throttles
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import RegionRates
from columnar.model.region_info import RegionInfo

NEVER_MS: Final = -(1 << 60)
DEATHS_WITHIN_MS: Final = 5 * 60_000
DEATHS_TOO_MANY: Final = 3
BENCHED_MS: Final = (60_000, 120_000, 240_000, 480_000)
FORGIVEN_AFTER_MS: Final = 30 * 60_000  # without a death: the next bench is the first one again
FAILURES_WITHIN_MS: Final = 5 * 60_000
FAILURES_TOO_MANY: Final = 3  # regions that a server could not open, within that time
AVOIDED_MS: Final = 120_000  # it gets no regions then, unless it is the last
OPENING_TRIES: Final = 5  # of a region, at whatever servers
RETRY_PAUSES_MS: Final = (2_000, 4_000, 8_000, 15_000, 30_000)  # of a region that its host could not open
DEATHS_SUSPECT: Final = 2  # owners that died when they opened it: it is opened while no other such region is
DEATHS_DEADLY: Final = 4  # it is opened no more
PROVEN_MS: Final = 1_000  # a server that has a region open for this long does not die of it


AVERAGED_OVER_MS: Final = 60_000
IDLE: Final = 1.0  # a region without requests
MIB_OF_ONE: Final = 100  # this many MiB weigh as much as one read a second


def score(rates: RegionRates) -> float:
    """Loads: what a region costs its server, averaged over a minute.

        load of a region  1 + reads/s + 2 writes/s + 2 deliveries/s + MiB/100
        load of a server  the sum over its regions, divided by the server's weight

    Popularity (requests and deliveries) and size go into one figure, so balancing considers both.  A report has more
    weight, the longer it is since the last one.  The average forgets: it has no data from before the last two minutes,
    so two minutes after loads have become steady nothing changes any more, however high they were before.  A report
    costs the same however long a region exists.
    """
    requests = rates.reads_per_s + 2 * rates.writes_per_s + 2 * rates.deliveries_per_s
    return IDLE + requests + rates.size_bytes / MIB / MIB_OF_ONE


def summed(before: float, total: float, passed_ms: int, load: float, for_ms: int) -> tuple[float, float, int]:
    """Return the first three arguments after adding ``load``, which lasted for ``for_ms``.

    ``before``: the mean of the minute before this one; ``total``: of this one, the sum of loads by milliseconds;
    ``passed_ms``: of this one.  A clock that goes back stands still.
    """
    total, passed_ms = total + load * max(0, for_ms), passed_ms + max(0, for_ms)
    return (before, total, passed_ms) if passed_ms < AVERAGED_OVER_MS else (total / passed_ms, 0.0, 0)


def averaged(before: float, total: float, passed_ms: int) -> float:
    """Average over a minute: the passed part of this minute, and for the rest of it the minute before."""
    return (total + before * (AVERAGED_OVER_MS - passed_ms)) / AVERAGED_OVER_MS


@dataclass(slots=True)
class CatalogueHealth:
    """Whether the catalogue can be written: owner rows, operator settings and tables wait while it cannot.

        sound --unsound--> unsound, since when and why --sound--> sound

    A write that failed leaves the catalogue sound if its disk was repaired at once; no write goes out before
    ``unwritable_until_ms`` then.

    Knows nothing of rows and disks: ``meta_region`` repairs the disk, and the master's shell reports both events.
    """

    unwritable_until_ms: int  # after a write that failed
    failure: str = ""  # why it is unsound; empty: it is sound
    since_ms: int = 0  # it is unsound

    @property
    def is_sound(self) -> bool:
        return not self.failure

    def unsound(self, failure: str, now_ms: int) -> None:
        if self.is_sound:
            self.failure, self.since_ms = failure, now_ms

    def sound(self) -> None:
        self.failure = ""

    def remark(self, now_ms: int) -> str:
        """The state for people; empty while it is sound."""
        if self.is_sound:
            return ""
        seconds = max(0, now_ms - self.since_ms) / 1_000
        return (
            f"for {seconds:.1f} s the catalogue could not be written: {self.failure}. It is tried every second; until "
            "then no region gets another owner, no server is started, and no wish or table is changed"
        )


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
    STARTING = auto()  # has not said hello
    UP = auto()
    FENCING = auto()
    DOWN = auto()


IN_TRANSITION: Final = frozenset({Phase.WRITING, Phase.CLOSING, Phase.OPENING, Phase.LEAVING, Phase.CHANGING})


@dataclass(slots=True, eq=False)
class Place:
    """A region.  ``Current`` alone writes server, ideal, load and phase: they are indexed."""

    info: RegionInfo
    owner: Owner | None  # the row, as written or being written
    phase: Phase = Phase.HOMELESS
    server: str | None = None  # for which it counts
    ideal: str | None = None
    load: float = IDLE
    size_bytes: int = 0
    limit_bytes: int = 0
    since_ms: int = 0  # of the phase
    why: str = ""
    reason: Reason | None = None  # of the Give that is under way
    why_ideal: str = ""
    settled_ms: int = NEVER_MS  # when balance moved it last
    by_hand_ms: int = NEVER_MS
    tried: tuple[str, ...] = ()  # servers that could not open it, since it was open last; one for each try
    failure: str = ""  # of the last try
    is_damaged: bool = False  # by the last try, so another server would fail too
    is_doubted: bool = False  # its store could not be opened: its next owner opens it before it says so
    rounds: int = 0  # times that it stayed closed for a temporary cause, since it was open last
    retry_ms: int | None = None  # FAILED_OPEN: when it is tried again by itself; None: a person must act
    deaths: int = 0  # owners that died when they opened it, or a moment later, one after the other
    notified_ms: int = NEVER_MS  # when its owner was notified last
    rated_ms: int = NEVER_MS  # when its load was reported last
    minute_before: float = IDLE  # of ``summed``, with the next two
    minute_total: float = 0.0
    minute_passed_ms: int = 0
    reads_per_s: float = 0.0  # as of that report, whose object is not kept: the collector would go through them all
    writes_per_s: float = 0.0
    deliveries_per_s: float = 0.0
    write_fault: str = ""  # why it cannot be written, as of that report
    unsplit_bytes: int = 0  # its size when it could not be split
    partner: int | None = None  # CHANGING: the region that it is merged with; None: it is split

    @property
    def is_suspect(self) -> bool:
        return self.deaths >= DEATHS_SUSPECT

    @property
    def is_deadly(self) -> bool:
        return self.deaths >= DEATHS_DEADLY


@dataclass(slots=True, eq=False)
class Server:
    name: str
    weight: float = 1.0
    state: ServerState = ServerState.DOWN
    incarnation: Incarnation | None = None
    since_ms: int = NEVER_MS  # of the state
    was_up: bool = False  # this start of it
    load: float = 0.0
    regions: dict[int, None] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)  # regions of each table
    opening: dict[int, None] = field(default_factory=dict)  # given to it and not open
    moves: int = 0
    changes: int = 0
    deaths_ms: tuple[int, ...] = ()
    benches: int = 0
    benched_until_ms: int = NEVER_MS
    failures_ms: dict[int, int] = field(default_factory=dict)  # regions that this start of it could not open lately
    avoided_until_ms: int = NEVER_MS  # as there were too many of them

    @property
    def shunned_until_ms(self) -> int:
        """Return the time until which it gets regions only if no other server may take them."""
        return max(self.benched_until_ms, self.avoided_until_ms)

    def why_shunned(self, now_ms: int) -> str:
        if self.benched_until_ms > now_ms:
            return f"as it died {len(self.deaths_ms)} times within 5 minutes"
        return f"as it could not open {len(self.failures_ms)} regions within 5 minutes"

    def began(self) -> None:
        """Note a new process: it may try again to open the regions that the one before could not."""
        self.was_up = False
        self.failures_ms.clear()
        self.avoided_until_ms = NEVER_MS

    def could_not_open(self, region: int, now_ms: int) -> None:
        recent = {one: at for one, at in self.failures_ms.items() if now_ms - at < FAILURES_WITHIN_MS}
        self.failures_ms = {**recent, region: now_ms}
        if len(self.failures_ms) >= FAILURES_TOO_MANY:
            self.avoided_until_ms = now_ms + AVOIDED_MS

    def died(self, now_ms: int) -> None:
        last = self.deaths_ms[-1] if self.deaths_ms else NEVER_MS
        self.benches = 0 if now_ms - last > FORGIVEN_AFTER_MS else self.benches
        recent = (at for at in self.deaths_ms if now_ms - at < DEATHS_WITHIN_MS)
        self.deaths_ms = (*recent, now_ms)
        if len(self.deaths_ms) >= DEATHS_TOO_MANY:
            self.benched_until_ms = now_ms + BENCHED_MS[min(self.benches, len(BENCHED_MS) - 1)]
            self.benches += 1


@dataclass(slots=True)
class Desired:
    operator_settings: OperatorSettings = field(default_factory=OperatorSettings)
    throttles: Throttles = field(default_factory=Throttles)
    requests: dict[int, Request] = field(default_factory=dict)  # by number of the request; oldest first
    leaving: set[str] = field(default_factory=set)  # servers that are emptied as they are to stop; kept nowhere

    @property
    def drained(self) -> frozenset[str]:
        """Names of servers that get no region and lose those they have."""
        return self.operator_settings.drained | self.leaving


class Current:
    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}
        self.places: dict[int, Place] = {}
        self.homeless: dict[int, None] = {}
        self.failed: dict[int, None] = {}
        self.unwritable: dict[int, None] = {}  # regions that cannot be written, as their owner reported last
        self.in_transition: dict[int, None] = {}
        self.closing: dict[int, None] = {}  # their source was asked to close them
        self.paused_tables: set[str] = set()  # copied now: none of their regions begins a transition
        self.astray: dict[str, dict[int, None]] = {}  # by ideal server
        self.at_home: dict[str, dict[int, None]] = {}  # by ideal server, which has them
        self.moves: dict[int, tuple[str, str]] = {}  # from, to
        self.changes: dict[int, str] = {}  # regions that are split or merged, and their server
        self.large: dict[int, None] = {}  # over the limit of their table, or by themselves much of a server
        self.load = 0.0
        self.changed_ms = NEVER_MS  # a server came or went
        self.balanced_ms = NEVER_MS
        self.catalogue = CatalogueHealth(unwritable_until_ms=NEVER_MS)
        self.suspects: dict[int, None] = {}  # open, and not for PROVEN_MS since an owner died of it, perhaps
        self.is_beginning = False  # servers have nothing yet: regions go where they were
        self.free_bytes = 1 << 62  # of the disk
        self.unread_logs: dict[Incarnation, str] = {}  # of dead servers, that the disk refuses to read now: why

    # --- servers -----------------------------------------------------------------------------------

    def server(self, name: str) -> Server:
        found = self.servers.get(name)
        if found is None:
            found = self.servers[name] = Server(name)
        return found

    def is_up(self, name: str) -> bool:
        found = self.servers.get(name)
        return found is not None and found.state is ServerState.UP

    def is_alive(self, incarnation: Incarnation) -> bool:
        """Return whether it can be notified."""
        found = self.servers.get(incarnation.name)
        return found is not None and found.incarnation == incarnation and found.state is ServerState.UP

    # --- regions -----------------------------------------------------------------------------------

    def add_place(self, place: Place) -> None:
        region = place.info.region_id
        assert region not in self.places
        assert place.server is place.ideal is None
        self.places[region] = place
        if place.phase is Phase.HOMELESS:
            self.homeless[region] = None

    def remove(self, region: int) -> None:
        place = self.places[region]
        self.end_move(region)
        self.end_change(region)
        self.set_phase(place, Phase.OFFLINE, place.since_ms)
        self.set_server(place, None)
        self.set_ideal(place, None, "")
        self.large.pop(region, None)
        self.unwritable.pop(region, None)
        self.suspects.pop(region, None)
        del self.places[region]

    def set_server(self, place: Place, name: str | None) -> None:
        region, table = place.info.region_id, place.info.table
        self._leave_home(place)
        if place.server is not None:
            old = self.servers[place.server]
            del old.regions[region]
            old.opening.pop(region, None)
            old.load = old.load - place.load if old.regions else 0.0
            self.load -= place.load
            old.tables[table] -= 1
            if not old.tables[table]:
                del old.tables[table]
        place.server = name
        self.set_write_fault(place, "")
        if name is not None:
            new = self.server(name)
            new.regions[region] = None
            new.load += place.load
            self.load += place.load
            new.tables[table] = new.tables.get(table, 0) + 1
        self._find_home(place)

    def set_ideal(self, place: Place, name: str | None, why: str) -> None:
        self._leave_home(place)
        place.ideal, place.why_ideal = name, why
        self._find_home(place)

    def _leave_home(self, place: Place) -> None:
        if place.ideal is not None:
            index = self.at_home if place.server == place.ideal else self.astray
            regions = index[place.ideal]
            del regions[place.info.region_id]
            if not regions:
                del index[place.ideal]

    def _find_home(self, place: Place) -> None:
        if place.ideal is not None:
            index = self.at_home if place.server == place.ideal else self.astray
            regions = index.get(place.ideal)
            if regions is None:
                regions = index[place.ideal] = {}
            regions[place.info.region_id] = None

    def set_write_fault(self, place: Place, why: str) -> None:
        place.write_fault = why
        if why:
            self.unwritable[place.info.region_id] = None
        else:
            self.unwritable.pop(place.info.region_id, None)

    def set_load(self, place: Place, load: float) -> None:
        if place.server is not None:
            self.servers[place.server].load += load - place.load
            self.load += load - place.load
        place.load = load

    def rate(self, place: Place, load: float, now_ms: int) -> None:
        """The region has had that load since it was rated last."""
        minute = (place.minute_before, place.minute_total, place.minute_passed_ms)
        minute = (load, 0.0, 0) if place.rated_ms == NEVER_MS else summed(*minute, load, now_ms - place.rated_ms)
        place.minute_before, place.minute_total, place.minute_passed_ms = minute
        place.rated_ms = now_ms
        self.set_load(place, averaged(*minute))

    def set_phase(self, place: Place, phase: Phase, now_ms: int) -> None:
        region = place.info.region_id
        if place.phase is Phase.HOMELESS:
            del self.homeless[region]
        if phase is Phase.HOMELESS:
            self.homeless[region] = None
        if phase is Phase.FAILED_OPEN:
            self.failed[region] = None
        else:
            self.failed.pop(region, None)
        if phase in IN_TRANSITION:
            self.in_transition[region] = None
        else:
            self.in_transition.pop(region, None)
        if phase is Phase.CLOSING:
            self.closing[region] = None
        else:
            self.closing.pop(region, None)
        place.phase, place.since_ms = phase, now_ms
        if place.server is not None:
            opening = self.servers[place.server].opening
            if phase is Phase.WRITING or phase is Phase.OPENING or phase is Phase.CLOSING:
                opening[region] = None
            else:
                opening.pop(region, None)

    def is_free(self, place: Place) -> bool:
        """Return whether a transition of the region may begin: it is open, and its table is not being copied."""
        return place.phase is Phase.OPEN and place.info.table not in self.paused_tables

    def begin_move(self, region: int, source: str, target: str) -> None:
        self.end_move(region)
        self.moves[region] = (source, target)
        self.server(source).moves += 1
        self.server(target).moves += 1

    def end_move(self, region: int) -> None:
        for name in self.moves.pop(region, ()):
            self.servers[name].moves -= 1

    def begin_change(self, region: int, server: str) -> None:
        self.changes[region] = server
        self.server(server).changes += 1

    def end_change(self, region: int) -> None:
        server = self.changes.pop(region, None)
        if server is not None:
            self.servers[server].changes -= 1

    # --- invariants --------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        for server in self.servers.values():
            places = [self.places[region] for region in server.regions]
            assert all(place.server == server.name for place in places), "P1"
            assert abs(server.load - sum(place.load for place in places)) < 1e-3 * (1 + server.load), "P1"
            assert sum(server.tables.values()) == len(places), "P1"
            assert server.opening.keys() <= server.regions.keys(), "P1"
            assert server.moves == sum(names.count(server.name) for names in self.moves.values()), "P3"
            assert server.changes == sum(name == server.name for name in self.changes.values()), "P3"
        for region, place in self.places.items():
            assert place.server is None or region in self.servers[place.server].regions, "P1"
            assert (region in self.homeless) == (place.phase is Phase.HOMELESS), "P2"
            assert (region in self.failed) == (place.phase is Phase.FAILED_OPEN), "P2"
            assert (region in self.unwritable) == bool(place.write_fault), "P2"
            assert (region in self.in_transition) == (place.phase in IN_TRANSITION), "P2"
            assert (region in self.closing) == (place.phase is Phase.CLOSING), "P2"
            if place.phase is Phase.HOMELESS:
                assert place.server is None, "P1"
            elif place.owner is not None and place.server is not None:
                assert place.server == place.owner.server.name, "P1"
            astray = place.ideal is not None and region in self.astray.get(place.ideal, ())
            at_home = place.ideal is not None and region in self.at_home.get(place.ideal, ())
            assert astray == (place.ideal is not None and place.server != place.ideal), "P2"
            assert at_home == (place.ideal is not None and place.server == place.ideal), "P2"
        assert all(self.places[region].deaths for region in self.suspects), "P2"
        for region in self.moves:
            assert self.places[region].phase in IN_TRANSITION, "P3"
