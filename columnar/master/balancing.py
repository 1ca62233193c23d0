"""(pure) Balance by load: chooses regions of overloaded servers, and the servers that they should move to.

    mean        the load of the eligible servers, divided by the sum of their weights
    zones       first each table's regions are spread over the zones (``zones``); then a region leaves its zone only if
                no zone gets further than one region from its quota of the table
    too much    a server over 1.2 times the mean; it gives away regions until it has 1.1 times the mean
    too little  a server under 0.5 times the mean; it is given regions up to 0.9 times the mean
    worth it    a move that lowers the higher load of source and target by 5 % of the mean; and moves that take a server
                from over 1.25 times the mean to less, so that a server stays over that only because of a single region

A server gives away, in this order: regions that fit on the server with the least load; the one region whose move lowers
the higher load of source and target most; a region for which a third server gets small regions of the target first.
The plan says what cannot be balanced.

A region that alone is too much displaces all other regions of its server.  It goes to a server that got few regions
lately: regions that came lately would stay beside it, and move again 5 minutes later.

A round plans up to 50 regions, and one more for every five servers.  It changes only their ideal server: the moves
follow under the throttles, and the next round waits until they are done.  A round does not choose a region that balance
moved within 5 minutes or an operator within an hour.  There is no round for 60 s after a server came or went.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import inf
from operator import attrgetter
from typing import Final

from columnar.master.instructions import Prefer
from columnar.master.placement_records import Place
from columnar.master.plan_draft import Draft

EVERY_MS: Final = 10_000
QUIET_MS: Final = 60_000  # after a server came or went
OF_A_ROUND: Final = 50
PER_SERVERS: Final = 5  # a round has an additional region for this many servers
TOO_MUCH: Final = 1.2
ENOUGH: Final = 1.1
TOO_LITTLE: Final = 0.5
FILLED: Final = 0.9
WORTH_IT: Final = 0.05
MOST: Final = 1.25
_LOAD: Final = attrgetter("load")
_NEARLY: Final = 0.05  # of the mean: servers with this much more than the least load are as good a target
_COMPARED: Final = 8  # such servers
_DEEP: Final = 0.2  # a server that gives away one large region may sink this far below ``ENOUGH``


# --- balance -----------------------------------------------------------------------------------------


def balance(draft: Draft) -> None:
    times, now_ms = draft.current.balance, draft.now_ms
    is_quiet = now_ms - times.balanced_ms >= EVERY_MS and now_ms - times.changed_ms >= QUIET_MS
    if not (is_quiet or draft.balances_now):
        return
    if any(_is_coming(draft, name) for name in draft.current.homes.astray):
        return
    draft.note_balance()
    if len(draft.eligible) > 1:
        round_ = _Round(draft)
        if round_.mean > 0:
            round_.spread_over_zones()
            round_.relieve_all()
            round_.fill_all()


def _is_coming(draft: Draft, name: str) -> bool:
    """Return whether moves to the server are pending that an earlier round chose."""
    if not draft.may_take(name):
        return False
    places = draft.current.places
    return any(places[region].why_ideal for region in draft.current.homes.astray[name])


class _Round:
    """The loads of servers, divided by their weights, as they will be after the moves chosen so far."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        servers = [draft.current.servers[name] for name in draft.eligible]
        self.mean = sum(one.load for one in servers) / sum(one.weight for one in servers)
        self._loads = {one.name: one.load / one.weight for one in servers}
        self._weights = {one.name: one.weight for one in servers}
        self._zones = {one.name: one.zone for one in servers}
        self._least: dict[str, list[tuple[float, str]]] = {}  # by zone
        for name, load in self._loads.items():
            self._least.setdefault(self._zones[name], []).append((load, name))
        for heap in self._least.values():
            heapify(heap)
        self._chosen: dict[int, tuple[Place, str]] = {}  # region -> its record and its new server

    # --- loads -------------------------------------------------------------------------------------

    @property
    def _left(self) -> int:
        return OF_A_ROUND + len(self._loads) // PER_SERVERS - len(self._chosen)

    def _least_loaded(self, apart_from: tuple[str, ...], place: Place | None = None) -> str | None:
        """Return the server with the least load, of those in zones to which ``place`` may move."""
        zones: Iterable[str] = self._least
        if place is not None and not self._draft.zones.is_single:
            assert place.server is not None, "it is open"
            zones = self._draft.zones.allowed(place.info.table, self._zones[place.server])
        found = [one for zone in zones if (one := self._least_of(self._least[zone], apart_from)) is not None]
        return min(found)[1] if found else None

    def _least_of(self, heap: list[tuple[float, str]], apart_from: tuple[str, ...]) -> tuple[float, str] | None:
        kept = []
        found = None
        while heap and found is None:
            load, name = heappop(heap)
            if self._loads[name] != load:
                continue  # an outdated entry: the heap also has one with the present load
            kept.append((load, name))
            found = (load, name) if name not in apart_from else None
        for entry in kept:
            heappush(heap, entry)
        return found

    def _choose(self, place: Place, server: str) -> None:
        assert place.server is not None
        self._shift(place, place.server, server)
        self._chosen[place.info.region_id] = (place, server)

    def _undo(self, places: list[Place]) -> None:
        for place in places:
            _, server = self._chosen.pop(place.info.region_id)
            assert place.server is not None
            self._shift(place, server, place.server)

    def _shift(self, place: Place, source: str, target: str) -> None:
        for name, load in ((source, -place.load), (target, place.load)):
            self._loads[name] += load / self._weights[name]
            heappush(self._least[self._zones[name]], (self._loads[name], name))
        self._draft.zones.shift(place.info.table, self._zones[source], self._zones[target])

    def _movable(self, name: str) -> list[Place]:
        """Return the regions that may move, most loaded first."""
        now_ms, chosen = self._draft.now_ms, self._chosen
        free = self._draft.free_places(name)
        found = [place for place in free if place.info.region_id not in chosen and place.may_settle(now_ms)]
        found.sort(key=_LOAD, reverse=True)
        return found

    def _after(self, place: Place, server: str) -> float:
        return self._loads[server] + place.load / self._weights[server]

    # --- zones -------------------------------------------------------------------------------------

    def spread_over_zones(self) -> None:
        """Move regions of each table from zones that have too many to zones that have too few."""
        zones = self._draft.zones
        if zones.is_single:
            return
        for table in zones.uneven_tables():
            while self._left > 0 and (ends := zones.next_move(table)) is not None:
                if not self._move_to_zone(table, *ends):
                    break  # its regions are moving, or stay for now

    def _move_to_zone(self, table: str, source: str, target: str) -> bool:
        """Move a region of the table; returns False if no region may move."""
        entry = self._least_of(self._least[target], ())
        assert entry is not None, "the zone has eligible servers"
        server, servers = entry[1], self._draft.current.servers
        donors = [name for name in self._loads if self._zones[name] == source and table in servers[name].tables]
        for donor in sorted(donors, key=self._loads.__getitem__, reverse=True):
            places = [place for place in self._movable(donor) if place.info.table == table]
            if places:
                enough = max(self._loads[donor], self.mean)
                place = next((one for one in places if self._after(one, server) <= enough), places[-1])
                self._choose(place, server)
                self._prefer_server(place, f"{_zone(source)} has more than its part of the regions of {table}")
                return True
        return False

    # --- servers with too much ---------------------------------------------------------------------

    def relieve_all(self) -> None:
        servers = self._draft.current.servers  # one without regions only expects some of other zones
        over = [name for name, load in self._loads.items() if load > TOO_MUCH * self.mean and servers[name].regions]

        def urgency(name: str) -> tuple[bool, float]:
            is_sole = self._largest(name).load > TOO_MUCH * self.mean * self._weights[name]
            return is_sole, -self._loads[name]  # a server that has too much by one region alone cannot be relieved

        over.sort(key=urgency)
        for name in over:
            if self._left > 0:
                self._relieve(name)

    def _largest(self, name: str) -> Place:
        places = self._draft.current.places
        return max(map(places.__getitem__, self._draft.current.servers[name].regions), key=_LOAD)

    def _relieve(self, name: str) -> None:
        before = self._loads[name]
        movable = self._movable(name)
        chosen = self._small_ones(name, movable)
        rest = [place for place in movable if place.info.region_id not in self._chosen]
        if self._loads[name] > TOO_MUCH * self.mean:
            chosen += self._large_one(name, rest) or self._after_making_room(name, rest)
        if before - self._loads[name] < WORTH_IT * self.mean and not self._loads[name] <= MOST * self.mean < before:
            self._undo([place for place in chosen if place.server == name])
            chosen = []
        if self._loads[name] > TOO_MUCH * self.mean and self._left > 0:
            self._say(name)
        times = before / self.mean
        for place in chosen:
            self._prefer_server(
                place, f"{place.server} has {times:.2f} times the mean load" if place.server == name else ""
            )

    def _small_ones(self, name: str, movable: list[Place]) -> list[Place]:
        chosen = []
        for place in movable:
            over = self._loads[name] - ENOUGH * self.mean
            if over <= 0 or self._left <= 0:
                break
            if place.load / self._weights[name] > over + _DEEP * self.mean:
                continue
            target = self._least_loaded((name,), place)
            if target is not None and self._after(place, target) <= ENOUGH * self.mean:
                self._choose(place, target)
                chosen.append(place)
        return chosen

    def _large_one(self, name: str, movable: list[Place]) -> list[Place]:
        if not movable or self._left <= 0:
            return []
        targets: dict[str, str | None] = {}  # by table: the least loaded server to which its regions may move

        def target_of(place: Place) -> str | None:
            table = place.info.table
            if table not in targets:
                targets[table] = self._least_loaded((name,), place)
            return targets[table]

        def higher(place: Place) -> float:
            target = target_of(place)
            rest = self._loads[name] - place.load / self._weights[name]
            return max(rest, self._after(place, target)) if target is not None else inf

        best = min(movable, key=higher)
        target = target_of(best)
        if target is None or higher(best) > self._loads[name] - WORTH_IT * self.mean:
            return []
        self._choose(best, self._emptiest(best, name, target))
        return [best]

    def _emptiest(self, place: Place, name: str, least: str) -> str:
        """Return the target for a large region of ``name``: the server whose unmovable regions have the least load.

        Candidates are the servers with hardly more load than ``least``.
        """
        found = [least]
        if place.load <= TOO_MUCH * self.mean * self._weights[least]:
            return least  # its regions may stay beside ``place``
        most = min(self._loads[least] + _NEARLY * self.mean, self._loads[name])
        while len(found) < _COMPARED:
            other = self._least_loaded((name, *found), place)
            if other is None or self._loads[other] > most:
                break
            found.append(other)
        worth_it = self._loads[name] - WORTH_IT * self.mean
        return min((one for one in found if self._after(place, one) <= worth_it), key=self._staying)

    def _staying(self, name: str) -> float:
        return self._loads[name] * self._weights[name] - sum(place.load for place in self._movable(name))

    def _after_making_room(self, name: str, movable: list[Place]) -> list[Place]:
        """Move small regions from the least loaded server until a large region of ``name`` fits there."""
        enough = [
            place
            for place in movable
            if self._loads[name] - place.load / self._weights[name] <= TOO_MUCH * self.mean
            and place.load / self._weights[name] <= ENOUGH * self.mean
        ]
        if not enough:
            return []
        large = enough[-1]
        target = self._least_loaded((name,), large)
        if target is None:
            return []
        chosen: list[Place] = []
        for place in self._movable(target):
            over = self._after(large, target) - TOO_MUCH * self.mean
            if over <= 0 or self._left <= 1:
                break
            third = self._least_loaded((name, target), place)
            if third is not None and self._after(place, third) <= ENOUGH * self.mean:
                self._choose(place, third)
                chosen.append(place)
        if self._after(large, target) > TOO_MUCH * self.mean:
            self._undo(chosen)
            return []
        for place in chosen:
            self._prefer_server(place, f"makes room for region {large.info.encoded} of {name}")
        self._choose(large, target)
        return [large]

    def _say(self, name: str) -> None:
        largest = self._largest(name)
        times = largest.load / self._weights[name] / self.mean
        if times > TOO_MUCH:
            text = f"region {largest.info.encoded} of {largest.info.table} alone is {times:.1f} times the mean load"
        else:
            times = self._loads[name] / self.mean
            text = f"{name} has {times:.2f} times the mean load, and nothing of it fits elsewhere"
        self._draft.remarks.append(text)

    # --- servers with too little -------------------------------------------------------------------

    def fill_all(self) -> None:
        richest = sorted(self._loads, key=lambda name: -self._loads[name])
        for donor in richest:
            target = self._least_loaded(())
            if target is None or self._loads[target] >= TOO_LITTLE * self.mean or self._left <= 0:
                return
            if self._loads[donor] <= self.mean:
                return
            self._fill(donor)

    def _fill(self, donor: str) -> None:
        for place in self._movable(donor):
            target = self._least_loaded((donor,))
            if target is None or self._loads[target] >= TOO_LITTLE * self.mean or self._left <= 0:
                return
            target = self._least_loaded((donor,), place)
            if target is None or self._loads[target] >= TOO_LITTLE * self.mean:
                continue
            after = self._after(place, target)
            donor_after = self._loads[donor] - place.load / self._weights[donor]
            if after <= FILLED * self.mean <= donor_after and after <= self._loads[donor] - WORTH_IT * self.mean:
                times = self._loads[target] / self.mean
                self._choose(place, target)
                self._prefer_server(place, f"{target} has {times:.2f} times the mean load")

    def _prefer_server(self, place: Place, why: str) -> None:
        if why:
            _, server = self._chosen[place.info.region_id]
            self._draft.instructions.append(Prefer(place.info.region_id, server, why))


def _zone(name: str) -> str:
    return f"zone {name}" if name else "the zone without a name"
