"""(pure) Events of tables at the master: their regions come, go, split and merge, or stay where they are for a copy.

    created, removed                    regions of a table came into the catalogue, or are gone from it
    changed, change_failed              a split or a merge is committed, or was called off
    pause_table_transitions, released   a copy of the table begins, or is over

Invariant: ``Current``, the ledger and the tallies have the same regions after each event.

Knows nothing of servers and of plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from columnar.master.instructions import Output
from columnar.master.owner_ledger import OwnerLedger
from columnar.master.placement import Current
from columnar.master.placement_records import Phase, Place
from columnar.master.plan_executor import PlanExecutor
from columnar.master.requests import Requests
from columnar.master.transitions import Transitions
from columnar.model.owner import Owner, first_owner
from columnar.model.region_info import RegionInfo


def add_region(current: Current, info: RegionInfo, owner: Owner | None, phase: Phase, now_ms: int = 0) -> Place:
    """Add a region; if it has an owner row, its home is the server that the row names."""
    place = Place(info, owner, phase, since_ms=now_ms)
    current.add_place(place)
    if owner is not None:
        current.set_ideal(place, owner.server.name, "")
    return place


class TableRegions:
    def __init__(
        self,
        current: Current,
        ledger: OwnerLedger,
        transitions: Transitions,
        requests: Requests,
        plans: PlanExecutor,
    ) -> None:
        self._current = current
        self._ledger = ledger
        self._transitions = transitions
        self._requests = requests
        self._plans = plans

    def created(self, infos: Sequence[RegionInfo], now_ms: int) -> list[Output]:
        """Add the regions of a new table, which the catalogue has without an owner."""
        for info in infos:
            add_region(self._current, info, None, Phase.HOMELESS, now_ms)
        return self._plans.end_event(now_ms)

    def removed(self, regions: Iterable[int], now_ms: int) -> list[Output]:
        """Remove regions that the catalogue does not have any more."""
        for region in regions:
            self._remove(region)
        return self._plans.end_event(now_ms)

    def _remove(self, region: int) -> None:
        if region in self._current.places:
            self._current.remove(region)
            self._transitions.tallies.stays_closed(region)
            self._ledger.drop(region)

    def successor_owner(self, region: int) -> Owner:
        """Return the owner row that the commit writes for each region that a split or merge of ``region`` makes."""
        owner = self._current.places[region].owner
        assert owner is not None, "it is changed by its owner"
        return first_owner(owner.server)

    def changed(self, gone: Sequence[int], fresh: Sequence[RegionInfo], now_ms: int) -> list[Output]:
        """Note that a split or a merge is committed, with ``successor_owner`` in the rows of ``fresh``."""
        old = [self._current.places[region] for region in gone]
        row, ideal, load = self.successor_owner(gone[0]), old[0].ideal, sum(place.load for place in old)
        self._requests.change_ended(gone, None)
        for region in gone:
            self._remove(region)
        for info in fresh:
            place = add_region(self._current, info, row, Phase.OPEN, now_ms)
            self._ledger.add_written(info.region_id, row)
            self._current.set_server(place, row.server.name)
            self._current.set_ideal(place, ideal, "")
            self._current.set_load(place, load / len(fresh))
            self._transitions.serves_on(place, now_ms)
        return self._plans.end_event(now_ms)

    def change_failed(self, regions: Sequence[int], why: str, now_ms: int) -> list[Output]:
        """Note that a split or a merge was called off: the old regions continue to serve."""
        self._requests.change_ended(regions, why)
        for region in regions:
            place = self._current.places.get(region)
            if place is None or place.phase is not Phase.CHANGING:
                continue
            self._current.end_change(region)
            place.measured.change_failed()
            self._transitions.serves_on(place, now_ms)
        return self._plans.end_event(now_ms)

    def pause_table_transitions(self, table: str, now_ms: int) -> list[Output]:
        """Begin no transition of the table's regions until ``released``: the table is being copied."""
        self._current.paused_tables.add(table)
        return self._plans.end_event(now_ms)

    def released(self, table: str, now_ms: int) -> list[Output]:
        self._current.paused_tables.discard(table)
        return self._plans.end_event(now_ms)
