"""(pure) A server's copy of the routes: names, for each row, its region and the incarnation that owns the region.

The copy is a guess: only the owner's own state decides whether it may answer (``regions.life.region_state``).

Invariants (``Routes.check_invariants``, and the model in tests/model/test_routes_model.py):
    R1. The regions of a table are ascending and cover all rows without hole or overlap.
    R2. Changes are applied in the order of their numbers, each whole or not at all; none is skipped.
    R3. The epoch of a region in the copy never falls.  It may be above the epoch in the master's change of the same
        number, because an owner that refused a call may have named a later owner.

A lookup is a bisection and copies nothing.  A change costs a bisection per route, and one shift of the table's list
if regions are added or removed.

Knows nothing of links, of time, and of the callers that wait for a route.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route, RoutesVersion


class _TableRoutes:
    __slots__ = ("routes", "starts")

    def __init__(self, routes: list[Route]) -> None:
        self.routes = routes  # ascending
        self.starts = [route.region.start for route in routes]  # of each route's region

    def place(self, region: RegionInfo) -> int:
        """Return the index of this very region, or -1 if the table has no such region."""
        at = bisect_left(self.starts, region.start)
        return at if at < len(self.routes) and self.routes[at].region == region else -1


class _Splice:
    """New routes that replace neighbouring routes of a table, from index ``start`` to ``end``."""

    __slots__ = ("end", "fresh", "start", "table")

    def __init__(self, table: str, start: int, end: int, fresh: list[Route]) -> None:
        self.table = table
        self.start = start
        self.end = end
        self.fresh = fresh


class Routes:
    """The copy of the routes.  Owned by the loop."""

    def __init__(self) -> None:
        self.number = 0  # of the last change in the copy; 0: there is no copy yet
        self._needs_all = True
        self._tables: dict[str, _TableRoutes] = {}

    # --- lookups -----------------------------------------------------------------------------------

    def find(self, table: str, row: bytes) -> Route | None:
        """Return the route of the region that holds the row, or None if the table is not known.  O(log regions)."""
        table_routes = self._tables.get(table)
        return table_routes.routes[bisect_right(table_routes.starts, row) - 1] if table_routes is not None else None

    def of(self, region: RegionInfo) -> Route | None:
        """Return the route of this very region, or None if the copy does not have the region."""
        table_routes = self._tables.get(region.table)
        if table_routes is None:
            return None
        at = table_routes.place(region)
        return table_routes.routes[at] if at >= 0 else None

    def of_table(self, table: str) -> Sequence[Route]:
        """Return all routes of a table, ascending; the caller must not keep the list across a wait."""
        table_routes = self._tables.get(table)
        return table_routes.routes if table_routes is not None else ()

    @property
    def tables(self) -> Iterable[str]:
        return self._tables.keys()

    # --- what the master sends ---------------------------------------------------------------------

    @property
    def report_version(self) -> RoutesVersion:
        return RoutesVersion(self.number, self._needs_all)

    def replace(self, all_routes: ReplaceRoutes) -> RoutesVersion:
        """Replace the copy by all routes.

        Raises ValueError, and changes nothing, if the routes do not cover a table exactly once.
        """
        by_table: dict[str, list[Route]] = {}
        for route in all_routes.routes:
            by_table.setdefault(route.region.table, []).append(self._latest(route))
        for routes in by_table.values():
            routes.sort(key=_start_of)
            fault = _fault(routes, b"", b"")
            if fault:
                raise ValueError(f"routes of table {routes[0].region.table}: {fault}")
        self._tables = {table: _TableRoutes(routes) for table, routes in by_table.items()}
        self.number = all_routes.number
        self._needs_all = False
        return self.report_version

    def apply(self, change: ChangeRoutes) -> RoutesVersion:
        """Apply the change that follows the last one.

        A change that is in the copy already is ignored.  A change after a missing one is refused.  A change that does
        not fit the regions of the copy is refused too, and from then on all routes are needed.
        """
        if self._needs_all or change.number != self.number + 1:
            return self.report_version
        planned = self._planned(change)
        if planned is None:
            self._needs_all = True
            return self.report_version
        splices, known = planned
        for splice in splices:
            self._put_in(splice)
        for route in known:
            self._raise(route)
        self.number = change.number
        return self.report_version

    def _planned(self, change: ChangeRoutes) -> tuple[list[_Splice], list[Route]] | None:
        """Return the splices to make, and the routes of regions that stay.  Returns None if the change does not fit."""
        gone: dict[str, list[RegionInfo]] = {}
        come: dict[str, list[Route]] = {}
        known: list[Route] = []
        for region in change.gone:
            gone.setdefault(region.table, []).append(region)
        for route in change.routes:
            if self.of(route.region) is not None:
                known.append(route)
            else:
                come.setdefault(route.region.table, []).append(route)
        splices: list[_Splice] = []
        for table in gone.keys() | come.keys():
            splice = self._splice(table, gone.get(table, []), come.get(table, []))
            if splice is None:
                return None
            splices.append(splice)
        return splices, known

    def _splice(self, table: str, gone: list[RegionInfo], fresh: list[Route]) -> _Splice | None:
        """Plan to replace ``gone``, which must be neighbours, by ``fresh``.

        Returns None unless the two cover the same rows.
        """
        table_routes = self._tables.get(table)
        fresh = sorted(fresh, key=_start_of)
        if table_routes is None:
            return None if gone or _fault(fresh, b"", b"") else _Splice(table, 0, 0, fresh)
        places = sorted(table_routes.place(region) for region in gone)
        if not places or places[0] < 0 or places != list(range(places[0], places[-1] + 1)):
            return None
        start, end = places[0], places[-1] + 1
        if not fresh:  # only a whole table is removed without a replacement
            return _Splice(table, 0, end, []) if end - start == len(table_routes.routes) else None
        if _fault(fresh, table_routes.starts[start], table_routes.routes[end - 1].region.end):
            return None
        return _Splice(table, start, end, fresh)

    def _put_in(self, splice: _Splice) -> None:
        table_routes = self._tables.get(splice.table)
        if table_routes is None:
            self._tables[splice.table] = _TableRoutes(splice.fresh)
        elif not splice.fresh:
            del self._tables[splice.table]
        else:
            table_routes.routes[splice.start : splice.end] = splice.fresh
            table_routes.starts[splice.start : splice.end] = [route.region.start for route in splice.fresh]

    # --- what owners say ---------------------------------------------------------------------------

    def moved(self, region: RegionInfo, server: Incarnation, epoch: int) -> bool:
        """Note that ``server`` owns the region at ``epoch``, as a refusal said.  Return whether that was new.

        A region that the copy does not have (it was split meanwhile) is skipped: its change will arrive.
        """
        known = self.of(region)
        if known is None or known.epoch >= epoch:
            return False
        self._raise(Route(region, server, epoch, known.ownership_period))
        return True

    def left(self, region: RegionInfo, server: Incarnation) -> None:
        """Note that the server has refused a call: if it was the region's source, it has closed the region."""
        known = self.of(region)
        if known is not None and known.source is not None and known.source.server == server:
            table_routes = self._tables[region.table]
            table_routes.routes[table_routes.place(region)] = replace(known, source=None)

    def _raise(self, route: Route) -> None:
        """Put the route into the copy, unless its epoch is below the epoch there (R3)."""
        table_routes = self._tables.get(route.region.table)
        if table_routes is None:
            return  # its table was removed in the same change
        at = table_routes.place(route.region)
        if at >= 0 and route.epoch >= table_routes.routes[at].epoch:
            table_routes.routes[at] = route

    def _latest(self, route: Route) -> Route:
        known = self.of(route.region)
        return known if known is not None and known.epoch > route.epoch else route

    # --- invariants --------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Assert R1.  O(regions)."""
        for table, table_routes in self._tables.items():
            assert table_routes.routes, table
            assert {route.region.table for route in table_routes.routes} == {table}, "R1"
            assert table_routes.starts == [route.region.start for route in table_routes.routes], "R1"
            assert not _fault(table_routes.routes, b"", b""), "R1"


def _start_of(route: Route) -> bytes:
    return route.region.start


def _fault(routes: Sequence[Route], start: bytes, end: bytes) -> str | None:
    """Return why the ascending routes do not cover the rows from ``start`` to ``end`` exactly once; None if they do."""
    if not routes:
        return "there is no region"
    if routes[0].region.start != start:
        return "no region begins at the first row"
    if routes[-1].region.end != end:
        return "no region ends at the last row"
    for left, right in pairwise(routes):
        if not left.region.end or left.region.end != right.region.start:
            return f"regions {left.region.encoded} and {right.region.encoded} are no neighbours"
    return None
