"""RPC handlers of a region server for requests of its master, by the message's class.

    regions     Holding, OpenRegion, CloseRegion, RenumberRegion, Rates  ``regions.life.region_assigner``
    tables, changes, copies, triggers                                    ``region_owner``
    routes      ChangeRoutes, ReplaceRoutes, Addresses                   ``cluster.routes``

Requests are begun in the order in which the master sent them.  Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from columnar.clock import Clock
from columnar.cluster.routes import Routes
from columnar.errors import NotServingRegion
from columnar.model import owner_messages as owners
from columnar.model import region_messages as regions
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.region_location import Location, NewOwner
from columnar.model.route import ChangeRoutes, ReplaceRoutes, RoutesVersion
from columnar.operations.scanner_table import slot_of_server
from columnar.regions.life.region_assigner import RegionAssigner
from columnar.regions.life.region_state import Why
from columnar.regions.region_rates import RateMeter
from columnar.regions.tables import Tables
from columnar.roles.region_owner import RegionOwner

Answers: TypeAlias = Mapping[type[Any], Callable[[Any], Awaitable[Any]]]
AnswersBySender: TypeAlias = Mapping[type[Any], Callable[[Incarnation, Any], Awaitable[Any]]]

# Requests of which something stays until the leader ends it, or that settle what an earlier leader left.
_OF_THE_LEADER: Final = (regions.Publish, regions.BeginChange, regions.PauseDeliveries)


class ServerRpcHandlers:
    """The handlers of a master's requests."""

    def __init__(
        self,
        local_server: Incarnation,
        owner: RegionOwner,
        region_assigner: RegionAssigner,
        routes: Routes,
        tables: Tables,
        rates: RateMeter,
        clock: Clock,
    ) -> None:
        self._local_server = local_server
        self._owner = owner
        self._region_assigner = region_assigner
        self._routes = routes
        self._tables = tables
        self._rates = rates
        self._clock = clock
        self._addresses: dict[Incarnation, owners.Address] = {}
        # Called with tables after each change of their routes or of their regions on this server.
        self.on_routes: Callable[[Iterable[str]], None] = lambda _tables: None
        self.on_ended: Callable[[Incarnation], None] = lambda _server: None  # may be called again with the same server
        self.on_all_routes: Callable[[], None] = lambda: None  # called when a leader has sent the routes of all tables
        self.answers: Answers = {
            **{kind: answer for kind, answer in owner.answers.items() if kind not in _OF_THE_LEADER},
            owners.Rates: self._take_rates,
            owners.Addresses: self._take_addresses,
            ChangeRoutes: self._change_routes,
            ReplaceRoutes: self._replace_routes,
            regions.Withdraw: self._withdraw,
            regions.CloseTable: self._close_table,
            regions.CloseRegions: self._close_regions,
            regions.FinishChange: self._finish_change,
        }
        # Handlers that also get the sender: the leader, whose number is its epoch.
        self.answers_by_leader: AnswersBySender = {
            owners.Holding: self._holding,
            owners.OpenRegion: self._open,
            owners.CloseRegion: self._close,
            owners.RenumberRegion: self._renumber,
            **{kind: self._by_the_leader(owner.answers[kind]) for kind in _OF_THE_LEADER},
        }

    def _by_the_leader(self, answer: Callable[[Any], Awaitable[Any]]) -> Callable[[Incarnation, Any], Awaitable[Any]]:
        """Return the handler for requests of the leader that is followed.

        A request of an earlier leader may begin after the end of its link, which has ended that leader's work.
        """

        async def answer_leader(leader: Incarnation, message: Any) -> Any:
            if leader.number < self._owner.changing.leader():
                raise NotServingRegion(Why.OLD_LEADER.value)
            return await answer(message)

        return answer_leader

    def locate(self, region: RegionInfo) -> Location | None:
        """Return the server that answers for the region now, or None if it or its address is unknown.

        While the region moves, that is the previous owner, unless this server is the previous owner.
        """
        route = self._routes.of(region)
        if route is None:
            return None
        period = route.ownership_period
        if route.source is not None and route.source.server != self._local_server:
            period = route.source
        address = self._addresses.get(period.server)
        if address is None:
            return None
        server = period.server
        return Location(region.start, region.end, server.name, server.number, address.host, address.port, period.epoch)

    def new_owner(self, table: str, row: bytes) -> NewOwner | None:
        """Return the owner to name to a client that calls owners itself; None if this server knows no other one."""
        route = self._routes.find(table, row)
        if route is None or route.blocked_reason:
            return None
        found = self.locate(route.region)
        if found is None or Incarnation(found.server, found.incarnation) == self._local_server:
            return None
        return NewOwner(found.host, found.port, found.incarnation, found.epoch)

    def peer_address_of(self, server: Incarnation) -> str:
        """Return the address for links to the server as text, or an empty text if unknown."""
        found = self._addresses.get(server)
        return found.peer if found is not None else ""

    def server_of_slot(self, slot: int) -> Incarnation | None:
        """Return the living server whose scanners have ``slot`` in their ids, or None if unknown."""
        return next((server for server in self._addresses if slot_of_server(server) == slot), None)

    def servers(self) -> list[Incarnation]:
        """Return the servers known to live, including this one."""
        return list(self._addresses)

    # --- regions -------------------------------------------------------------------------------------

    async def _holding(self, leader: Incarnation, _message: owners.Holding) -> owners.Holdings:
        held = self._region_assigner.state.holdings(leader.number)
        if held is None:
            raise NotServingRegion(Why.OLD_LEADER.value)
        tables = tuple(table.schema.name for table in self._tables.all())
        return replace(held, tables=tables, has_routes=self._routes.number > 0, clock_ms=self._clock())

    async def _open(self, leader: Incarnation, message: owners.OpenRegion) -> None:
        self._clock.observe(message.clock_ms)
        await self._region_assigner.open_region(message, leader.number)
        self.on_routes((message.region.table,))

    async def _close(self, leader: Incarnation, message: owners.CloseRegion) -> owners.GivenUp:
        given_up = await self._region_assigner.close(message, leader.number)
        self.on_routes((message.region.table,))
        return replace(given_up, clock_ms=self._clock())

    async def _renumber(self, leader: Incarnation, message: owners.RenumberRegion) -> None:
        self._clock.observe(message.clock_ms)
        await self._region_assigner.renumber(message, leader.number)
        self.on_routes((message.region.table,))

    async def _take_rates(self, _message: owners.Rates) -> tuple[owners.RegionRates, ...]:
        return self._rates.take_rates(self._region_assigner.state.serving())

    async def _withdraw(self, message: regions.Withdraw) -> None:
        served = self._tables.named(message.table)
        await self._owner.answers[regions.Withdraw](message)
        if served is not None:
            self._region_assigner.dropped(served.regions)

    async def _close_table(self, message: regions.CloseTable) -> None:
        await self._owner.answers[regions.CloseTable](message)
        self._region_assigner.forget_dropped()

    async def _finish_change(self, message: regions.FinishChange) -> float:
        try:
            blocked_s: float = await self._owner.answers[regions.FinishChange](message)
            return blocked_s
        finally:
            self._region_assigner.forget_dropped()

    async def _close_regions(self, message: regions.CloseRegions) -> None:
        await self._owner.answers[regions.CloseRegions](message)
        self._region_assigner.dropped(message.regions)

    # --- routes --------------------------------------------------------------------------------------

    async def _change_routes(self, message: ChangeRoutes) -> RoutesVersion:
        come = {route.region.table for route in message.routes if self._routes.of(route.region) is None}
        version = self._routes.apply(message)
        if version.number == message.number:
            gone = {info.table for info in message.gone}
            touched = gone | {route.region.table for route in message.routes}
            # New owners of the same regions change no table, and hundreds arrive after a server's death.
            self._follow(table for table in touched if table in come or table in gone or self._lags(table))
            self._region_assigner.dropped(message.gone)
            self.on_routes(touched)
        return version

    async def _replace_routes(self, message: ReplaceRoutes) -> RoutesVersion:
        before = frozenset(self._routes.tables)
        version = self._routes.replace(message)
        self._follow(self._routes.tables)
        self.on_routes(before.union(self._routes.tables))
        self.on_all_routes()
        return version

    def _lags(self, table: str) -> bool:
        """Return whether a split or merge on this server kept the table from following the routes."""
        served = self._tables.named(table)
        return served is not None and len(served.regions) != len(self._routes.of_table(table))

    def _follow(self, names: Iterable[str]) -> None:
        """Set the regions of tables to those of the routes, except during splits and merges that end here soon."""
        for name in names:
            served = self._tables.named(name)
            routes = self._routes.of_table(name)
            if served is None or not routes:
                continue
            named = [route.region for route in routes]
            self._owner.changing.settle_table(name, named)
            found = self._owner.changing.regions_of(name, named)
            if found != served.regions:
                served.replace_regions(found)

    async def _take_addresses(self, message: owners.Addresses) -> None:
        self._addresses = {one.server: one for one in message.servers}
        for server in message.ended:
            self.on_ended(server)
