"""(pure) A plan in the making: instructions so far, slots that are left, and the server that a region should go to.

A draft does not change the state that it reads.  It counts the effects of its own instructions itself, so a plan of
many instructions spreads the regions.

    eligible servers   are up, not drained, not shunned; if there is none, shunned servers; if there is none, drained
                       servers
    next zone          lacks regions of the table (``zones``), if there are several zones
    next server        of the zone has the least load for its weight; among nearly equal loads the fewest regions of
                       the table
"""

from __future__ import annotations

from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Final, Protocol, TypeAlias

from columnar.master.instructions import Close, Give, Instruction, Merge, Plan, Reason, Split
from columnar.master.placement import PROVEN_MS, Current, Desired
from columnar.master.placement_records import Phase, Place, ServerState
from columnar.master.zones import ZoneShares

_NEARLY: Final = 0.02  # of the mean load: a smaller difference does not justify more regions of the table on a server
_COMPARED: Final = 4  # servers of nearly equal load
_QUEUE_COUNTS: Final = 2.0  # a region that waits to be opened counts as this many average regions: openings are slow


Entry: TypeAlias = tuple[float, float, str]  # of a server: its load divided by its weight, chance, its name


class Chance(Protocol):
    """The part of ``random.Random`` that a plan needs."""

    def random(self) -> float: ...


class Draft:
    def __init__(
        self, desired: Desired, current: Current, now_ms: int, rng: Chance, *, balances_now: bool = False
    ) -> None:
        """``balances_now``: a round of balance is due, whenever the last round was."""
        self.balances_now = balances_now
        self.desired = desired
        self.current = current
        self.now_ms = now_ms
        self.instructions: list[Instruction] = []
        self.remarks: list[str] = []
        self.has_balanced = False
        self._rng = rng
        self._wake_at_ms: int | None = None
        self._given: set[int] = set()
        self._moves = len(current.moves)
        self._moves_of: dict[str, int] = {}  # by this draft
        self._eligible: list[str] | None = None
        self._heaps: dict[str, list[Entry]] | None = None  # by zone
        self._tables: dict[tuple[str, str], int] = {}  # regions of a table that this draft gives to a server
        self._has_trial = False  # whether this draft gives a suspect to a server
        self._queued = 0.0  # the load that a region adds while it waits for its opening

    def plan(self) -> Plan:
        return Plan(tuple(self.instructions), tuple(self.remarks), self._wake_at_ms, self.has_balanced)

    def note_balance(self) -> None:
        """Note that the plan includes a round of balance."""
        self.has_balanced = True

    def wake(self, at_ms: int) -> None:
        if self._wake_at_ms is None or at_ms < self._wake_at_ms:
            self._wake_at_ms = at_ms

    # --- servers -----------------------------------------------------------------------------------

    @property
    def eligible(self) -> list[str]:
        """Names of servers that may be given regions."""
        if self._eligible is None:
            drained = self.desired.drained
            up = [server for server in self.current.servers.values() if server.state is ServerState.UP]
            kept = [server for server in up if server.name not in drained]
            sound = [server for server in kept if server.failures.shunned_until_ms <= self.now_ms]
            self._eligible = [server.name for server in sound or kept or up]
        return self._eligible

    @cached_property
    def _has_sound(self) -> bool:
        """Return whether any server is up, not drained and not shunned; the search stops at the first."""
        drained, servers = self.desired.drained, self.current.servers.values()
        return any(
            one.state is ServerState.UP and one.name not in drained and one.failures.shunned_until_ms <= self.now_ms
            for one in servers
        )

    def may_take(self, name: str) -> bool:
        """Return whether the server is eligible, without a check of all other servers."""
        server = self.current.servers.get(name)
        if server is None or server.state is not ServerState.UP:
            return False
        if name in self.desired.drained or server.failures.shunned_until_ms > self.now_ms:
            return not self._has_sound and name in self.eligible
        return True

    @cached_property
    def zones(self) -> ZoneShares:
        return ZoneShares(self.current.zones, map(self.current.servers.__getitem__, self.eligible))

    def _rankings(self) -> dict[str, list[Entry]]:
        """Return a heap of the eligible servers for each zone."""
        if self._heaps is None:
            current = self.current
            self._queued = _QUEUE_COUNTS * current.load / max(1, len(current.places))
            servers = [current.servers[name] for name in self.eligible]
            self._heaps = {}
            total = 0.0
            for one in servers:
                load = (one.load + self._queued * len(one.opening)) / one.weight
                total += load
                self._heaps.setdefault(one.zone, []).append((load, self._rng.random(), one.name))
            for heap in self._heaps.values():
                heapify(heap)
            self._near = _NEARLY * total / max(1, len(servers))
        return self._heaps

    def choose(self, place: Place, *, apart_from: tuple[str, ...] = (), with_slot: bool = False) -> str | None:
        """Return the server that the region should go to, and count the region for that server.

        Returns None if all eligible servers are in ``apart_from`` or lack a slot that ``with_slot`` asks for.  A region
        waits for a slot in a zone that lacks regions of its table, rather than go to another zone.
        """
        heaps, zones, table = self._rankings(), self.zones, place.info.table
        if zones.is_single:
            return self._choose_among(next(iter(heaps.values()), []), place, apart_from, with_slot)
        source = self.current.servers[place.server].zone if place.server is not None else None
        zones.shift(table, source, None)
        for zone in zones.order(table, {zone: heap[0][0] for zone, heap in heaps.items()}):
            found = self._choose_among(heaps[zone], place, apart_from, with_slot)
            if found is not None:
                zones.shift(table, None, zone)
                return found
            is_slot_lacking = with_slot and any(entry[2] not in apart_from for entry in heaps[zone])
            if is_slot_lacking and zones.lacks(table, zone):
                break
        zones.shift(table, None, source)
        return None

    def _choose_among(
        self, heap: list[Entry], place: Place, apart_from: tuple[str, ...], with_slot: bool
    ) -> str | None:
        table = place.info.table
        passed: list[Entry] = []
        best: tuple[int, Entry] | None = None
        compared = 0
        while heap and compared < _COMPARED:
            entry = heap[0]
            if best is not None and entry[0] > best[1][0] + self._near:
                break
            passed.append(heappop(heap))
            name = entry[2]
            if name in apart_from or (with_slot and not self.has_slot(name)):
                continue
            compared += 1
            regions = self.current.servers[name].tables.get(table, 0) + self._tables.get((name, table), 0)
            if best is None or regions < best[0]:
                best = (regions, entry)
                if not regions:
                    break  # none has fewer
        for entry in passed:
            heappush(heap, entry if best is None or entry is not best[1] else self._after(entry, place))
        return best[1][2] if best is not None else None

    def _after(self, entry: Entry, place: Place) -> Entry:
        """Return the server's entry with the region added."""
        load, _, name = entry
        key = (name, place.info.table)
        self._tables[key] = self._tables.get(key, 0) + 1
        more = (place.load + self._queued) / self.current.servers[name].weight
        return (load + more, self._rng.random(), name)

    def may_try(self, place: Place) -> bool:
        """Return whether a suspect may be opened now: no other suspect is being opened, or open and not yet proven.

        If so, the trial is reserved for this region.
        """
        current = self.current
        on_trial = [
            one for one in (*current.in_transition, *current.suspects) if current.places[one].attempts.is_suspect
        ]
        if self._has_trial or any(one != place.info.region_id for one in on_trial):
            self.wake(self.now_ms + PROVEN_MS)
            return False
        self._has_trial = True
        return True

    # --- moves -------------------------------------------------------------------------------------

    @property
    def has_slots(self) -> bool:
        return self._moves < self.desired.throttles.moves

    def has_slot(self, name: str, most: int | None = None) -> bool:
        most = self.desired.throttles.moves_per_server if most is None else most
        return self.current.servers[name].moves + self._moves_of.get(name, 0) < most

    def may_begin(self, place: Place) -> bool:
        """Return whether the region is open at a server that is up, and no transition of it begins in this draft."""
        if place.server is None or place.info.region_id in self._given or not self.current.is_free(place):
            return False
        return self.current.is_up(place.server)

    def free_places(self, name: str) -> list[Place]:
        """Return the server's regions that ``may_begin``, with a single check of the server: balance asks for many."""
        current, given = self.current, self._given
        if not current.is_up(name):
            return []
        places, paused_tables = current.places, current.paused_tables
        found = [places[region] for region in current.servers[name].regions if region not in given]
        return [place for place in found if place.phase is Phase.OPEN and place.info.table not in paused_tables]

    def may_leave(self, place: Place) -> bool:
        """Return whether the region may begin a move, and its server has a slot for a move."""
        return self.may_begin(place) and place.server is not None and self.has_slot(place.server)

    def begin(self, instruction: Close | Split | Merge, *regions: int) -> None:
        self._given.update(regions)
        self.instructions.append(instruction)

    def house(self, place: Place, server: str, why: str, reason: Reason) -> None:
        """Give ``server`` a region that has no owner."""
        self.instructions.append(Give(place.info.region_id, server, why, reason))

    def move(self, place: Place, server: str, why: str, reason: Reason) -> None:
        """Give ``server`` a region that a different server has."""
        assert place.server is not None, "it is open"
        assert place.server != server, "it is there"
        self._given.add(place.info.region_id)
        self.instructions.append(Give(place.info.region_id, server, why, reason))
        self._moves += 1
        for name in (place.server, server):
            self._moves_of[name] = self._moves_of.get(name, 0) + 1
