"""(pure) Desired and present places of regions, with the indexes that a planner reads.

``Desired`` is what operators want.  ``Current`` is the present state, as far as the master knows it; its records are
defined in ``placement_records``.  Each change of a region or of a server updates the indexes, so the cost of a plan
depends on the regions that are out of place, not on all regions.

Invariants (``Current.check_invariants``):
    P1. A region counts for the server of its owner row, unless it has no living owner.  A server's load, its number of
        regions, and its number of regions of each table are sums over the regions that count for it.
    P2. ``homeless`` and ``failed`` are the regions in the phases HOMELESS and FAILED_OPEN, ``unwritable`` the regions
        with a write fault, ``astray`` the regions that are not at their ideal server.
    P3. ``moves`` are transitions from a living owner; each server counts the moves that leave or reach it.

Knows nothing of rows being written nor of requests to owners (``cluster_state``), nor of the decisions that follow
(``planner``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.instructions import Request, Throttles
from columnar.master.placement_records import IN_TRANSITION, NEVER_MS, Phase, Place, Server, ServerState, score
from columnar.master.zones import ZoneIndex
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import RegionRates
from columnar.model.region_info import RegionInfo

PROVEN_MS: Final = 1_000  # a server that has had a region open for this long does not die of the opening
UNWRITABLE_MS: Final = 1_000  # no write goes out for this long after a write that failed


@dataclass(slots=True)
class CatalogueHealth:
    """The state that says whether the catalogue can be written: owner rows, settings and tables wait while it cannot.

        sound --unsound--> unsound, since when and why --sound--> sound

    After a write that failed the catalogue is still sound if its rows on disk were repaired at once; then no write goes
    out before ``unwritable_until_ms``.

    Knows nothing of rows and disks: ``meta_region`` repairs the disk, and the master's shell reports both events.
    """

    unwritable_until_ms: int  # set by a write that failed
    failure: str = ""  # why the catalogue is unsound; empty while it is sound
    since_ms: int = 0  # when it became unsound

    @property
    def is_sound(self) -> bool:
        return not self.failure

    def write_failed(self, now_ms: int) -> None:
        self.unwritable_until_ms = now_ms + UNWRITABLE_MS

    def unsound(self, failure: str, now_ms: int) -> None:
        if self.is_sound:
            self.failure, self.since_ms = failure, now_ms

    def sound(self) -> None:
        self.failure = ""

    def remark(self, now_ms: int) -> str:
        """Describe the state for people.  Returns an empty text while the catalogue is sound."""
        if self.is_sound:
            return ""
        seconds = max(0, now_ms - self.since_ms) / 1_000
        return (
            f"for {seconds:.1f} s the catalogue could not be written: {self.failure}. It is tried every second; until "
            "then no region gets another owner, no server is started, and no wish or table is changed"
        )


@dataclass(slots=True)
class Desired:
    operator_settings: OperatorSettings = field(default_factory=OperatorSettings)
    throttles: Throttles = field(default_factory=Throttles)
    requests: dict[int, Request] = field(default_factory=dict)  # by number of the request; oldest first
    leaving: set[str] = field(default_factory=set)  # servers that are emptied before they stop; not stored

    @property
    def drained(self) -> frozenset[str]:
        """Names of servers that get no region and lose the regions they have."""
        return self.operator_settings.drained | self.leaving

    def set_operator_settings(self, settings: OperatorSettings) -> None:
        self.operator_settings = settings


@dataclass(slots=True)
class BalanceTimes:
    """The times of the last round of balance, and of the last change of servers (one came or went)."""

    balanced_ms: int = NEVER_MS
    changed_ms: int = NEVER_MS
    is_beginning: bool = False  # the first plan: servers have nothing yet, and regions go where they were

    def begin_start(self, now_ms: int) -> None:
        self.is_beginning = True
        self.servers_changed(now_ms)

    def end_start(self) -> None:
        self.is_beginning = False

    def servers_changed(self, now_ms: int) -> None:
        self.changed_ms = now_ms

    def round_planned(self, now_ms: int) -> None:
        self.balanced_ms = now_ms

    def balance_at_once(self) -> None:
        """Have the next plan balance, whenever the last round was."""
        self.balanced_ms = self.changed_ms = NEVER_MS


class HomeIndex:
    """The regions that have an ideal server, by that server: ``at_home`` there, or ``astray`` elsewhere or nowhere.

    Invariant: each region with an ideal server is in one of the two indexes.  A server without such regions has no
    entry.
    """

    def __init__(self) -> None:
        self.astray: dict[str, dict[int, None]] = {}
        self.at_home: dict[str, dict[int, None]] = {}

    def enter(self, place: Place) -> None:
        if place.ideal is not None:
            index = self.at_home if place.server == place.ideal else self.astray
            regions = index.get(place.ideal)
            if regions is None:
                regions = index[place.ideal] = {}
            regions[place.info.region_id] = None

    def leave(self, place: Place) -> None:
        """Remove the region.  Call this before its server or ideal server changes, and ``enter`` afterwards."""
        if place.ideal is not None:
            index = self.at_home if place.server == place.ideal else self.astray
            regions = index[place.ideal]
            del regions[place.info.region_id]
            if not regions:
                del index[place.ideal]

    def check_place(self, place: Place) -> None:
        region, ideal = place.info.region_id, place.ideal
        astray = ideal is not None and region in self.astray.get(ideal, ())
        at_home = ideal is not None and region in self.at_home.get(ideal, ())
        assert astray == (ideal is not None and place.server != ideal), "P2"
        assert at_home == (ideal is not None and place.server == ideal), "P2"


class Current:
    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}
        self.places: dict[int, Place] = {}
        self.homeless: dict[int, None] = {}
        self.failed: dict[int, None] = {}
        self.unwritable: dict[int, None] = {}  # regions that cannot be written, as their owner reported last
        self.in_transition: dict[int, None] = {}
        self.closing: dict[int, None] = {}  # regions whose source was asked to close them
        self.paused_tables: set[str] = set()  # copied now: none of their regions begins a transition
        self.homes = HomeIndex()
        self.zones = ZoneIndex()
        self.moves: dict[int, tuple[str, str]] = {}  # from, to
        self.changes: dict[int, str] = {}  # regions that are split or merged, and their server
        self.large: dict[int, None] = {}  # over the limit of their table, or a large part of a server's load
        self.load = 0.0
        self.balance = BalanceTimes()
        self.catalogue = CatalogueHealth(unwritable_until_ms=NEVER_MS)
        self.suspects: dict[int, None] = {}  # open for less than PROVEN_MS, after an owner perhaps died of them
        self.free_bytes = 1 << 62  # of the disk
        self.unread_logs: dict[Incarnation, str] = {}  # dead server -> why the disk refuses to read its log now

    # --- time --------------------------------------------------------------------------------------

    def begin_start(self, now_ms: int) -> None:
        """Begin the first plan: phases of regions count from now on, and regions go where they were."""
        for place in self.places.values():
            place.index_phase(place.phase, now_ms)  # else since the clock's beginning
        self.balance.begin_start(now_ms)

    def note_free_bytes(self, free_bytes: int) -> None:
        self.free_bytes = free_bytes

    # --- servers -----------------------------------------------------------------------------------

    def server_up(self, server: Server, now_ms: int) -> None:
        if server.state is not ServerState.UP:
            server.come_up(now_ms)
            self.balance.servers_changed(now_ms)

    def server_fenced(self, server: Server, incarnation: Incarnation, now_ms: int) -> None:
        """Note that the incarnation answers nothing any more; a new one of that name may have started meanwhile."""
        if server.incarnation == incarnation:
            server.go_down(now_ms)
        self.balance.servers_changed(now_ms)

    def server(self, name: str) -> Server:
        found = self.servers.get(name)
        if found is None:
            found = self.servers[name] = Server(name)
        return found

    def is_up(self, name: str) -> bool:
        found = self.servers.get(name)
        return found is not None and found.state is ServerState.UP

    def is_alive(self, incarnation: Incarnation) -> bool:
        """Return whether the incarnation can be notified."""
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

    def info_of(self, region: int) -> RegionInfo:
        return self.places[region].info

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
        self.homes.leave(place)
        if place.server is not None:
            left = self.servers[place.server]
            left.index_region_left(place)
            self.zones.count_region(left, place.info.table, -1)
            self.load -= place.load
        place.index_server(name)
        self.set_write_fault(place, "")
        if name is not None:
            entered = self.server(name)
            entered.index_region(place)
            self.zones.count_region(entered, place.info.table, 1)
            self.load += place.load
        self.homes.enter(place)

    def set_ideal(self, place: Place, name: str | None, why: str) -> None:
        self.homes.leave(place)
        place.index_ideal(name, why)
        self.homes.enter(place)

    def set_write_fault(self, place: Place, why: str) -> None:
        place.measured.index_write_fault(why)
        if why:
            self.unwritable[place.info.region_id] = None
        else:
            self.unwritable.pop(place.info.region_id, None)

    def set_load(self, place: Place, load: float) -> None:
        if place.server is not None:
            self.servers[place.server].index_load(load - place.load)
            self.load += load - place.load
        place.index_load(load)

    def report_rates(self, place: Place, rates: RegionRates, now_ms: int) -> None:
        self.rate(place, score(rates), now_ms)
        place.measured.report_rates(rates)
        self.set_write_fault(place, rates.write_fault)

    def rate(self, place: Place, load: float, now_ms: int) -> None:
        """Average the load of the region, which has had ``load`` since it was rated last."""
        self.set_load(place, place.measured.average_load(load, now_ms))

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
        place.index_phase(phase, now_ms)
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
        self.server(source).index_move(1)
        self.server(target).index_move(1)

    def end_move(self, region: int) -> None:
        for name in self.moves.pop(region, ()):
            self.servers[name].index_move(-1)

    def begin_change(self, place: Place, partner: int | None, now_ms: int) -> None:
        """Begin a split of the region, or its merge with ``partner``."""
        assert place.server is not None, "it is open"
        place.begin_change(partner)
        self.changes[place.info.region_id] = place.server
        self.server(place.server).index_change(1)
        self.set_phase(place, Phase.CHANGING, now_ms)

    def end_change(self, region: int) -> None:
        server = self.changes.pop(region, None)
        if server is not None:
            self.servers[server].index_change(-1)

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
            assert (region in self.unwritable) == bool(place.measured.write_fault), "P2"
            assert (region in self.in_transition) == (place.phase in IN_TRANSITION), "P2"
            assert (region in self.closing) == (place.phase is Phase.CLOSING), "P2"
            if place.phase is Phase.HOMELESS:
                assert place.server is None, "P1"
            elif place.owner is not None and place.server is not None:
                assert place.server == place.owner.server.name, "P1"
            self.homes.check_place(place)
        self.zones.check(self.servers.values())
        assert all(self.places[region].attempts.deaths for region in self.suspects), "P2"
        for region in self.moves:
            assert self.places[region].phase in IN_TRANSITION, "P3"
