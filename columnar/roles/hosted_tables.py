"""The regions of tables at a master: those of the catalogue, their servers, and whether they serve.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from columnar.master.catalogue import Catalogue
from columnar.master.placement_records import Phase
from columnar.model.owner import Incarnation, Owner
from columnar.model.region_info import RegionInfo
from columnar.roles.route_broadcast import RouteBroadcast
from columnar.roles.state_events import StateEvents

WAITING: Final = frozenset({Phase.HOMELESS, Phase.WRITING, Phase.OPENING})  # of a new, unserved region


async def _not_at_all() -> None:
    """Do not wait: no server lived before this master."""


class HostedTables:
    def __init__(self, events: StateEvents, routes: RouteBroadcast, catalogue: Catalogue) -> None:
        self.on_table: Callable[[str], None] = lambda _table: None  # called after a change in the catalogue
        self.wait_inherited: Callable[[], Awaitable[None]] = _not_at_all  # called before a publication returns
        self._events = events
        self._routes = routes
        self._catalogue = catalogue
        self._tables: dict[str, tuple[int, ...]] = {}  # the regions of each table in ``state``

    def table_stands(self, table: str, regions: Sequence[RegionInfo]) -> list[RegionInfo]:
        """Set the regions that the table has now in the catalogue: none if it was dropped.  Returns the new regions."""
        places = self._events.state.current.places
        wanted = tuple(info.region_id for info in regions)
        fresh = [info for info in regions if info.region_id not in places]
        gone = sorted(set(self._tables.get(table, ())) - set(wanted))
        self._stands(table, regions)
        if not fresh and not gone:
            return []
        if gone:
            self._events.event(self._events.state.tables.removed(gone, self._events.now_ms()))
        if fresh:
            self._events.event(self._events.state.tables.created(fresh, self._events.now_ms()))
        self._routes.publish_routes()
        return fresh

    def _stands(self, table: str, regions: Sequence[RegionInfo]) -> None:
        self._routes.publishing.stands(table, regions)
        if regions:
            self._tables[table] = tuple(info.region_id for info in regions)
        else:
            self._tables.pop(table, None)
        self.on_table(table)

    def load(self) -> None:
        """Load the catalogue's tables, and the owners' rows on disk from which ``state`` was made."""
        for table, entry in self._catalogue.tables.items():
            self._stands(table, entry.regions)
        for place in self._events.state.current.places.values():
            if place.phase is Phase.OFFLINE and place.owner is not None:  # no write publishes it: the start would wait
                self._routes.publishing.owned(place.info, place.owner)
        self._routes.publish_blocked_regions()

    def load_owners(self) -> None:
        """Publish the rows on disk of all regions, before planning begins: living servers still have regions.

        A route to a server that has ended is replaced when the region has its next owner.
        """
        for place in self._events.state.current.places.values():
            if place.owner is not None:
                self._routes.publishing.owned(place.info, place.owner)
        self._routes.publish_routes()

    async def served(self, table: str, fresh: Sequence[RegionInfo]) -> None:
        """Wait until the table's routes are published, and each region in ``fresh`` has opened or failed to open."""
        waiting = [info.region_id for info in fresh]

        def is_so() -> bool:
            """Check only one waiting region, because there are as many events as regions."""
            places = self._events.state.current.places
            while waiting and (waiting[-1] not in places or places[waiting[-1]].phase not in WAITING):
                waiting.pop()
            return not waiting and self._routes.publishing.is_out(table)

        await self._events.until(is_so)

    def replaced(self, table: str, fresh: Sequence[RegionInfo], row: Owner) -> None:
        """Note that ``fresh``, with the owner ``row``, have replaced regions of the table in the catalogue."""
        self._stands(table, self._catalogue.tables[table].regions)
        for info in fresh:
            self._routes.publishing.owned(info, row)
        self._routes.publish_routes()

    def pause_table_transitions(self, table: str) -> None:
        """Begin no transition of the table's regions until ``release``, because the table is being copied."""
        self._events.event(self._events.state.tables.pause_table_transitions(table, self._events.now_ms()))

    def release(self, table: str) -> None:
        self._events.event(self._events.state.tables.released(table, self._events.now_ms()))

    def owner_of(self, region: RegionInfo) -> Incarnation | None:
        """Return the server that serves the region now; None if the region is in transition or closed."""
        place = self._events.state.current.places.get(region.region_id)
        if place is None or place.owner is None or place.phase not in (Phase.OPEN, Phase.CHANGING):
            return None
        return place.owner.server if self._events.state.current.is_alive(place.owner.server) else None

    def is_changing(self, region: RegionInfo) -> bool:
        """Return whether the region is being split or merged, so that no other transition of it may begin."""
        place = self._events.state.current.places.get(region.region_id)
        return place is not None and place.phase is Phase.CHANGING
