"""(pure) The numbered changes of routes that a master sends to servers, made from owner rows that are on disk.

    stands                takes the regions that the catalogue has for a table; none if it was dropped
    owned                 takes an owner row that is on disk
    set_blocked_regions   takes the regions that no server serves before an operator assigns them, and the reasons
    take                  returns the change since the last one, to be sent to every server; None if nothing changed
    everything            returns all routes as of the last change, for a server that starts or lags

A table changes as a whole: its earlier regions stay in the routes until each of its new regions has an owner; then one
change removes the earlier regions and adds the new ones.  So a server's copy of the routes covers all rows of each
table at all times (``cluster.routes`` R1).

Invariants (``check_invariants``, and the model in tests/model/test_publishing_model.py):
    U1. A table is in the routes with all regions of one list of the catalogue, or not at all.
    U2. ``everything`` equals a copy that has applied every change.

An owner row costs one look-up.  The cost of a change is proportional to its content; a table whose regions change
costs its number of regions.

Knows nothing of links, of servers' copies, and of the notifications of owners.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from columnar.model.owner import Owner
from columnar.model.region_info import RegionInfo
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route, route_to


@dataclass(slots=True)
class _Standing:
    """A table, or a dropped table that still is in the routes."""

    wanted: dict[int, RegionInfo] = field(default_factory=dict)  # the regions that the catalogue has
    lacking: set[int] = field(default_factory=set)  # wanted regions without an owner yet
    out: dict[int, RegionInfo] = field(default_factory=dict)  # the regions that the routes have
    is_new: bool = False  # ``wanted`` differs from ``out``

    def replace_wanted(self, wanted: dict[int, RegionInfo], owned: Container[int]) -> None:
        """Set the regions that the catalogue has.  ``owned``: regions whose rows are on disk."""
        self.wanted = wanted
        self.lacking = {region for region in wanted if region not in owned}
        self.is_new = wanted.keys() != self.out.keys()

    def went_out(self) -> None:
        """Note that the routes have the wanted regions."""
        self.out, self.is_new = dict(self.wanted), False


class Publishing:
    """The routes that were sent to servers, and the changes that are due.  Owned by the loop."""

    def __init__(self, first: int = 0) -> None:
        """``first``: above the number of every change that another master published."""
        self.number = first + 1  # of the last change; a copy without any has number 0
        self._tables: dict[str, _Standing] = {}
        self._rows: dict[int, Route] = {}  # routes of wanted regions, by their rows on disk
        self._sent: dict[int, Route] = {}  # all routes as of the last change
        self._blocked_reasons: dict[int, str] = {}  # by region
        self._changed: dict[int, None] = {}  # regions in the routes whose row on disk has changed
        self._due: dict[str, None] = {}  # tables whose list of regions is to go out

    # --- events --------------------------------------------------------------------------------------

    def stands(self, table: str, regions: Sequence[RegionInfo]) -> None:
        standing = self._tables.setdefault(table, _Standing())
        wanted = {info.region_id: info for info in regions}
        for region in standing.wanted.keys() - wanted.keys():
            self._rows.pop(region, None)
        standing.replace_wanted(wanted, self._rows)
        self._update_due(table, standing)
        if not wanted and not standing.out:
            del self._tables[table]

    def owned(self, info: RegionInfo, owner: Owner) -> None:
        """Take an owner row that is on disk; ignore the row of a region that the catalogue does not have any more."""
        standing = self._tables.get(info.table)
        region = info.region_id
        if standing is None or region not in standing.wanted:
            return
        route = replace(route_to(info, owner), blocked_reason=self._blocked_reasons.get(region, ""))
        if self._rows.get(region) == route:
            return
        self._rows[region] = route
        standing.lacking.discard(region)
        if region in standing.out:
            self._changed[region] = None
        self._update_due(info.table, standing)

    def set_blocked_regions(self, regions: Mapping[int, str]) -> None:
        """Set all regions that are blocked now, each with its reason.  O(regions blocked now or before)."""
        before, self._blocked_reasons = self._blocked_reasons, dict(regions)
        for region in before.keys() | regions.keys():
            route = self._rows.get(region)
            if route is not None and route.blocked_reason != self._blocked_reasons.get(region, ""):
                self._rows[region] = replace(route, blocked_reason=self._blocked_reasons.get(region, ""))
                if region in self._tables[route.region.table].out:
                    self._changed[region] = None

    def _update_due(self, table: str, standing: _Standing) -> None:
        if standing.is_new and not standing.lacking:
            self._due[table] = None
        else:
            self._due.pop(table, None)

    # --- changes -------------------------------------------------------------------------------------

    def is_out(self, table: str) -> bool:
        """Return whether the routes have the table's regions as the catalogue does; true for an unknown table."""
        standing = self._tables.get(table)
        return standing is None or not standing.is_new

    @property
    def is_complete(self) -> bool:
        """Return whether the routes have every table as the catalogue does.  O(tables)."""
        return not any(standing.is_new for standing in self._tables.values())

    def take(self) -> ChangeRoutes | None:
        gone: list[RegionInfo] = []
        changed = self._changed
        self._changed = {}
        for table in self._due:
            standing = self._tables[table]
            left = standing.out.keys() - standing.wanted.keys()
            gone += [standing.out[region] for region in left]
            for region in left:
                del self._sent[region]
            changed |= dict.fromkeys(standing.wanted.keys() - standing.out.keys())
            standing.went_out()
            if not standing.out:
                del self._tables[table]
        self._due.clear()
        routes = [self._rows[one] for one in changed if one in self._rows and self._sent.get(one) != self._rows[one]]
        if not gone and not routes:
            return None
        self._sent |= {route.region.region_id: route for route in routes}
        self.number += 1
        return ChangeRoutes(self.number, tuple(gone), tuple(routes))

    def everything(self) -> ReplaceRoutes:
        return ReplaceRoutes(self.number, tuple(self._sent.values()))

    # --- invariants ----------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        out = [region for standing in self._tables.values() for region in standing.out]
        assert sorted(out) == sorted(self._sent), "U1"
        for standing in self._tables.values():
            assert standing.lacking == standing.wanted.keys() - self._rows.keys(), "U1"
            assert standing.is_new == (standing.out.keys() != standing.wanted.keys()), "U1"
