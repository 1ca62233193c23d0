"""The views of a process, which loads what keeps them when its master first tells of one.

A store without views knows that it has none, and forgets the cursors of those that it had.  Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from columnar.errors import TableNotEnabled
from columnar.flows.applier import Applier
from columnar.flows.follower import Kind
from columnar.flows.follower_name import FollowerName
from columnar.flows.governor import Governor
from columnar.flows.hub import Hub
from columnar.model.flow_graph import Flow
from columnar.model.view_look import ViewLook
from columnar.model.view_set import KIND, ViewSet
from columnar.regions.server import RegionServer

if TYPE_CHECKING:
    from columnar.views.keeper import ViewKeeper


def view_key(name: str) -> str:
    """The key of a view's followers, by which servers ask each other (``routing.asks.WaitForDelivery``)."""
    return FollowerName(KIND, name).key


class ViewsHere:
    def __init__(self, server: RegionServer, hub: Hub, applier: Applier, governor: Governor) -> None:
        self._server = server
        self._hub = hub
        self._applier = applier
        self._governor = governor
        self._told: ViewSet | None = None  # None: the master has not told of any yet
        self._keeper: ViewKeeper | None = None
        server.guards_needed_from = self.guards_needed_from
        hub.register(Kind(KIND, True, self._is_removed, flows=self._flows))

    @property
    def views(self) -> ViewSet:
        return self._told if self._told is not None else ViewSet()

    async def follow(self, told: ViewSet) -> None:
        """Keep these from now on (``PublishViews``)."""
        async with self._hub.lock:
            self._told = told
            self._server.tables.name_also(told.aliases())
            if told.all and self._keeper is None:
                from columnar.views.keeper import ViewKeeper  # most stores have no views

                self._keeper = ViewKeeper(self._hub, self._applier, self._governor)
            if self._keeper is not None:
                await self._keeper.follow(told)

    def _is_removed(self, _name: str, number: int) -> bool:
        return self._told is not None and self._told.is_removed(number)

    def _flows(self) -> list[Flow]:
        return [one.flow for one in self.views.in_use()]

    def shown(self, names: Iterable[str]) -> dict[str, list[int]]:
        """By view the regions here that have shown it all their rows (``ShownRegions``)."""
        keeper = self._keeper
        return {} if keeper is None else {name: keeper.shown(name) for name in names}

    def guards_needed_from(self, table: str) -> int | None:
        """When the oldest withdrawal was made that something under way may still meet (``regions.guards``).  ms.

        None: the table is no view.  0: all are needed, as while it is built.
        """
        served = self._server.tables.named(table)
        if served is None or not served.schema.kept_by:
            return None
        view = self.views.find(served.schema.kept_by)
        if view is None or view.state != "live" or self._keeper is None:
            return 0
        regions = [info for read in view.reads for info in self._server.tables.known(read.table.encode()).regions]
        return self._keeper.passed_ms(view.name, [info.region_id for info in regions])

    # --- copies ----------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """While the hub's cursors are held."""
        if self._keeper is not None:
            self._keeper.come_to_rest()

    def is_at_rest(self) -> bool:
        return self._keeper is None or self._keeper.is_at_rest()

    def go_on(self) -> None:
        if self._keeper is not None:
            self._keeper.go_on()

    # --- looks and waits -------------------------------------------------------------------------------

    def looks(self) -> tuple[ViewLook, ...]:
        return () if self._keeper is None else self._keeper.looks()

    def awaited_tables(self, name: str) -> list[str]:
        """The sources of the view.  ViewError, TableNotEnabled."""
        tables = [read.table for read in self.views.known(name).reads]
        for table in tables:
            if not self._server.tables.known(table.encode()).enabled:
                raise TableNotEnabled(table)
        return tables

    async def wait(self, name: str, token: str, timeout_s: float) -> bool:
        """Until the change ``token`` (empty: everything written now) is in the view; False: not in time."""
        self.awaited_tables(name)
        return await self._hub.waits.wait(FollowerName(KIND, name), token, timeout_s)
