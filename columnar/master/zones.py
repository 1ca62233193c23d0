"""(pure) Zones: parts of a site that may fail as a whole, each with servers.  A table's regions are spread over them.

    zone      what a node was told by ``--zone``; nodes without the option share the zone with the empty name
    weight    the sum of the weights of a zone's eligible servers
    quota     a zone's part of the regions that a table has in all zones, in proportion to the weight: a fraction
    surplus   the table's regions in the zone, less its quota; a negative surplus is a lack

``ZoneIndex`` counts regions for the state.  ``ZoneShares`` has the counts as a plan will leave them, and says which
zones a region may go to:

    an additional region    first to a zone that lacks a region or more, otherwise to any zone that has less than its
                            quota, by load
    a move for load         within its zone; to another zone only from one without a lack to one without a surplus
    a move for the table    from a zone with a surplus to a zone with a lack, if one of the two exceeds ``TOLERANCE``

So in a balanced cluster no zone is further than one region from its quota.  Every move for a table lowers the sum of
squared surpluses of its zones, and a move for load takes no zone beyond the tolerance: the two never undo each other.

With one zone all of this says nothing: every server is in it.

Knows nothing of the choice among the servers of a zone (``plan_draft``, ``balancing``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from columnar.master.placement_records import Server

TOLERANCE: Final = 1.0  # regions of a table
_EXACT: Final = 1e-6  # quotas are fractions, with errors of rounding


class ZoneIndex:
    """The number of regions of each table in each zone.

    Invariant: it is the sum over the zone's servers; a table or zone without regions has no entry.
    """

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, int]] = {}  # table -> zone -> regions

    def count_region(self, server: Server, table: str, by: int) -> None:
        self._count(server.zone, table, by)

    def change_zone(self, server: Server, zone: str) -> None:
        """Move the server with all its regions to the zone, if it was in a different one.  O(its tables)."""
        if zone == server.zone:
            return
        for table, regions in server.tables.items():
            self._count(server.zone, table, -regions)
            self._count(zone, table, regions)
        server.index_zone(zone)

    def _count(self, zone: str, table: str, by: int) -> None:
        zones = self.tables.get(table)
        if zones is None:
            zones = self.tables[table] = {}
        regions = zones.get(zone, 0) + by
        if regions:
            zones[zone] = regions
            return
        del zones[zone]
        if not zones:
            del self.tables[table]

    def check(self, servers: Iterable[Server]) -> None:
        found: dict[str, dict[str, int]] = {}
        for server in servers:
            for table, regions in server.tables.items():
                zones = found.setdefault(table, {})
                zones[server.zone] = zones.get(server.zone, 0) + regions
        assert found == self.tables, "P1"


class ZoneShares:
    """The zones of a draft: their weights, and each table's regions in them after the draft's moves so far."""

    def __init__(self, index: ZoneIndex, eligible: Iterable[Server]) -> None:
        self.weights: dict[str, float] = {}  # by zone, in the order of the servers
        for server in eligible:
            self.weights[server.zone] = self.weights.get(server.zone, 0.0) + server.weight
        self._weight = sum(self.weights.values())
        self._index = index
        self._shifted: dict[str, dict[str, int]] = {}  # table -> zone -> regions that this draft adds

    @property
    def is_single(self) -> bool:
        return len(self.weights) < 2

    def shift(self, table: str, source: str | None, target: str | None) -> None:
        """Note that the draft moves a region of the table; None: it comes from, or goes to, no zone."""
        if self.is_single:
            return
        shifted = self._shifted.setdefault(table, {})
        if source is not None:
            shifted[source] = shifted.get(source, 0) - 1
        if target is not None:
            shifted[target] = shifted.get(target, 0) + 1

    def surpluses(self, table: str, *, more: int = 0) -> dict[str, float]:
        """Return the surplus of each eligible zone, if the table had ``more`` regions whose zones are open."""
        counts, shifted = self._index.tables.get(table, {}), self._shifted.get(table, {})
        regions = {zone: counts.get(zone, 0) + shifted.get(zone, 0) for zone in self.weights}
        quota = (sum(regions.values()) + more) / self._weight
        return {zone: found - quota * self.weights[zone] for zone, found in regions.items()}

    def order(self, table: str, loads: dict[str, float]) -> list[str]:
        """Return the zones for an additional region of the table, best first.

        ``loads``: by zone, that of its least loaded server.
        """
        surpluses = self.surpluses(table, more=1)

        def rank(zone: str) -> tuple[int, float, float]:
            surplus = surpluses[zone]
            if surplus <= _EXACT - TOLERANCE:
                return 0, surplus, loads[zone]
            return (1, loads[zone], surplus) if surplus < -_EXACT else (2, surplus, loads[zone])

        return sorted(loads, key=rank)

    def lacks(self, table: str, zone: str) -> bool:
        """Return whether the zone has less than its quota of the table with one more region."""
        return self.surpluses(table, more=1)[zone] < -_EXACT

    def allowed(self, table: str, source: str) -> list[str]:
        """Return the zones to which a region of ``source`` may move for its load, with ``source`` itself."""
        surpluses = self.surpluses(table)
        if surpluses.get(source, 0.0) < -_EXACT:
            return [source]
        return [zone for zone, surplus in surpluses.items() if zone == source or surplus <= _EXACT]

    def next_move(self, table: str) -> tuple[str, str] | None:
        """Return the zones between which a region of the table should move, or None if they are balanced."""
        surpluses = self.surpluses(table)
        source = max(surpluses, key=surpluses.__getitem__)
        target = min(surpluses, key=surpluses.__getitem__)
        if max(surpluses[source], -surpluses[target]) <= TOLERANCE + _EXACT:
            return None
        return source, target

    def uneven_tables(self) -> list[str]:
        """Return the tables for which ``next_move`` has a move.  O(tables * zones)."""
        return [table for table in self._index.tables if self.next_move(table) is not None]
