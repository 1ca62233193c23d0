"""Rates of reads, writes and deliveries to triggers of each region of a server, since the previous poll.

The rates come from counters that regions keep anyway, at no cost for requests.  A region that was closed and
opened meanwhile counts from its opening.  Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from columnar.model.owner_messages import RegionRates
from columnar.regions.region import Region
from columnar.regions.server import RegionServer

SIZED_AT_ONCE: Final = 50  # regions without writes that are measured at one poll
_Counted: TypeAlias = tuple[Region, tuple[int, int, int]]  # reads, writes, deliveries


class RateMeter:
    def __init__(self, server: RegionServer, now_s: Callable[[], float], region_bytes: int) -> None:
        """``region_bytes`` is the size bound of a region whose table sets no bound."""
        self._server = server
        self._now_s = now_s
        self._region_bytes = region_bytes
        self._measured_s = now_s()
        self._counted: dict[int, _Counted] = {}  # by region id, at the last poll
        self._faults: dict[int, str] = {}  # by region id, at the last poll
        self._takes = 0
        self._due = (1, 0)  # number of shares of the regions, and the share that is measured now
        self._sizes: dict[int, int] = {}  # of all owned regions, when they were open last

    def take_rates(self, owned: Iterable[int]) -> tuple[RegionRates, ...]:
        """Return the rates since the last poll.  ``owned`` has the ids of all owned regions.  A closed region keeps its
        last size.

        Costs some 2 us for each open region.  A size costs the engine 50 us or more.  So a poll measures the regions
        that were written to and about SIZED_AT_ONCE other regions, whose sizes change by compactions and loads of
        files.
        """
        now_s = self._now_s()
        elapsed_s, self._measured_s = max(now_s - self._measured_s, 1e-3), now_s
        before, self._counted = self._counted, {}
        found = []
        wanted = frozenset(owned)
        self._faults = {fault.info.region_id: fault.why for fault in self._server.read_only.write_faults()}
        self._takes += 1
        shares = 1 + self._server.open_count() // SIZED_AT_ONCE
        self._due = (shares, self._takes % shares)
        for region in self._server.all_open():
            region_id = region.info.region_id
            if region_id in wanted:
                found.append(self._of(region, before.get(region_id), elapsed_s))
        closed = wanted - self._counted.keys()
        self._sizes = {region_id: size for region_id, size in self._sizes.items() if region_id in wanted}
        return (*found, *(self._of_closed(region_id) for region_id in sorted(closed)))

    def _of(self, region: Region, before: _Counted | None, elapsed_s: float) -> RegionRates:
        region_id, counts = region.info.region_id, (region.reads, region.writes, region.deliveries)
        earlier = before[1] if before is not None and before[0] is region else (0, 0, 0)
        self._counted[region_id] = region, counts
        shares, due = self._due
        if region_id not in self._sizes or counts[1] != earlier[1] or region_id % shares == due:
            self._sizes[region_id] = region.store.files.size_bytes()
        size = self._sizes[region_id]
        limit = (region.table.max_filesize or self._region_bytes) if region.table.may_split else 0
        reads, writes, deliveries = ((now - then) / elapsed_s for now, then in zip(counts, earlier, strict=True))
        fault = self._faults.get(region_id, "")
        return RegionRates(region_id, reads, writes, deliveries, size, limit, fault)

    def _of_closed(self, region_id: int) -> RegionRates:
        """A closed region does not grow, so it has no limit."""
        size, fault = self._sizes.get(region_id, 0), self._faults.get(region_id, "")
        return RegionRates(region_id, 0.0, 0.0, 0.0, size, 0, fault)
