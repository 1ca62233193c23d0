"""The owners of all regions behind one interface, which a master uses like the owner of a standalone process.

    to every server         Publish, Withdraw, CloseTable, CloseRegions, FollowSchema, PublishTriggers, ReloadFunctions,
                            Undelivered, Loads, LogReach, PublishViews, PublishFeeds, BackfilledRegions
    to the region's owner   MiddleRow, CopyRegion, ReclaimSpace, and the steps of a split or merge
    to any server           PrepareRegions, CheckFunction, CheckSource

A request to every server is answered when every linked server has answered.  A publication also waits for servers that
lived under an earlier master and have not linked yet (``wait_inherited``): their clients would not find the table.  A
server that dies meanwhile counts as done when it is fenced, because its replacement starts with the master's current
state.  A server that loses its link amid a request, a pause or a split is ended (``is_bound``); any other one links
again, and is greeted with the master's current state.  While deliveries are paused, a starting server gets
``PauseDeliveries`` before any region.  ``ReleaseDeliveries`` goes only to the servers whose deliveries are paused.

The steps of a split or merge go to the server that began it.  If that server died, the split or merge is over, and
leaves only folders that the catalogue has announced.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.errors import NotServingRegion, OutcomeUnknown, RetryLater
from columnar.master.catalogue import Catalogue
from columnar.model import region_messages as messages
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message, RegionChange
from columnar.roles.cluster_host import ClusterHost
from columnar.roles.cluster_servers import Servers

R = TypeVar("R")

OWNER_S: Final = 10.0  # the wait for a region that moves to a different server


class ClusterOwners:
    """The owners as a ``Peer`` of the master."""

    def __init__(self, host: ClusterHost, catalogue: Catalogue, servers: Servers) -> None:
        self._host = host
        self._catalogue = catalogue
        self._servers = servers
        self._published: dict[str, messages.Publish] = {}  # each table's last message; regions: see the catalogue
        self._holding: list[Incarnation] | None = None  # servers with paused deliveries; None if no pause is requested
        self._carriers: dict[RegionChange, Incarnation] = {}  # the server that carries out each change
        self._bound_requests: Counter[Incarnation] = Counter()  # requests whose outcome the server's link decides
        self._answers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {
            messages.Publish: self._publish,
            messages.Withdraw: self._withdraw,
            messages.PrepareRegions: self._of_any,
            messages.CheckFunction: self._check_function,
            messages.CheckSource: self._check_function,
            messages.Undelivered: self._undelivered,
            messages.LogReach: self._log_reach,
            messages.Loads: self._loads,
            messages.BackfilledRegions: self._list_backfilled_regions,
            messages.PauseDeliveries: self._pause_deliveries,
            messages.ReleaseDeliveries: self._release,
            messages.MiddleRow: self._of_region,
            messages.CopyRegion: self._copy,
            messages.ReclaimSpace: self._of_region,
            messages.BeginChange: self._begin,
            messages.FinishChange: self._finish,
            messages.CallOffChange: self._end,
            messages.SettleChange: self._end,
        }
        host.published = self.publish_of
        host.initial_message_for = self._first_of

    async def request_peer(self, message: Message[R]) -> R:
        answer: R = await self._answers.get(type(message), self._of_all)(message)
        return answer

    def is_bound(self, server: Incarnation) -> bool:
        """Return whether the server takes part in something that ends with its link: a request, a pause, a change."""
        return server in self._bound_requests or server in (self._holding or ()) or server in self._carriers.values()

    # --- tables --------------------------------------------------------------------------------------

    def publish_of(self, table: str) -> messages.Publish | None:
        """Return the table's message for a starting server, or None if the table no longer exists."""
        entry = self._catalogue.tables.get(table)
        if entry is None:
            return None
        published = self._published.get(table)
        is_enabled = entry.enabled if published is None else published.is_enabled
        return messages.Publish(entry.schema, is_enabled, tuple(entry.regions))

    async def _publish(self, message: messages.Publish) -> None:
        table = message.table.name
        self._published[table] = message
        await self._of_all(message)  # before any server is asked to open a region of the table
        fresh = self._host.tables.table_stands(table, message.regions)
        await self._host.tables.served(table, fresh)
        await self._host.tables.wait_inherited()

    async def _withdraw(self, message: messages.Withdraw) -> None:
        self._published.pop(message.table, None)
        self._host.tables.table_stands(message.table, ())
        await self._of_all(message)

    # --- all servers ---------------------------------------------------------------------------------

    async def _of_all(self, message: Message[R], servers: Sequence[Incarnation] | None = None) -> list[R]:
        """Return the answers of the living servers.  Raises a server's refusal when all have answered."""
        found = await self._answered(message, list(self._host.routes.greeted) if servers is None else list(servers))
        return _good(found.values())

    async def _answered(
        self, message: Message[R], servers: Sequence[Incarnation]
    ) -> dict[Incarnation, R | BaseException]:
        requests = (self._of_one(server, message) for server in servers)
        return dict(zip(servers, await asyncio.gather(*requests, return_exceptions=True), strict=True))

    async def _of_one(self, server: Incarnation, message: Message[R]) -> R:
        """Return the server's answer.

        If the server died, waits until it is fenced, then raises NotSent or LinkBroke.  So does a lost link: the server
        is bound by the request.  A server that has lost its link gets the request when it has linked again.
        """
        while True:
            try:
                return await self._send_bound(server, message)
            except NotSent:
                if self._servers.is_linked(server):
                    raise RetryLater(f"server {server} is behind with its requests; try again") from None
                if not await self._servers.relinked(server):
                    raise
            except LinkBroke:
                await self._servers.gone(server)
                raise

    async def _send_bound(self, server: Incarnation, message: Message[R]) -> R:
        self._bound_requests[server] += 1
        try:
            return await self._servers.request_server(server, message)
        finally:
            self._bound_requests[server] -= 1
            if not self._bound_requests[server]:
                del self._bound_requests[server]

    async def _undelivered(self, message: messages.Undelivered) -> dict[str, int]:
        found: Counter[str] = Counter()
        for answer in await self._of_all(message):
            found.update(answer)
        return dict(found)

    async def _log_reach(self, message: messages.LogReach) -> int:
        return max(await self._of_all(message), default=0)

    async def _check_function(self, message: messages.CheckFunction | messages.CheckSource) -> str | None:
        """Check with the first living server that answers."""
        for server in list(self._host.routes.greeted):
            answers = await self._of_all(message, [server])
            if answers:
                return answers[0]
        raise RetryLater("no server is up; try again")

    async def _loads(self, message: messages.Loads) -> tuple[messages.RegionLoad, ...]:
        return tuple(load for answer in await self._of_all(message) for load in answer)

    async def _list_backfilled_regions(self, message: messages.BackfilledRegions) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for answer in await self._of_all(message):
            for view, regions in answer.items():
                found.setdefault(view, []).extend(regions)
        return found

    async def _pause_deliveries(self, message: messages.PauseDeliveries) -> None:
        holding = self._holding = []  # starting servers join it (``_first_of``)
        try:
            found = await self._answered(message, list(self._host.routes.greeted))
            holding += [server for server, answer in found.items() if answer is None]
            _good(found.values())
        except BaseException:
            await self._release(messages.ReleaseDeliveries())
            raise

    async def _release(self, message: messages.ReleaseDeliveries) -> None:
        holding, self._holding = self._holding or [], None
        await self._of_all(message, holding)

    def _first_of(self, server: Incarnation) -> messages.PauseDeliveries | None:
        """Have a server that starts during a pause join it; else it could deliver changes that earlier copies lack."""
        if self._holding is None:
            return None
        self._holding.append(server)
        return messages.PauseDeliveries()

    async def _of_any(self, message: Message[None]) -> None:
        """Send ``message`` to one server.  The work only saves time later, and is skipped if that server dies."""
        server = next(iter(self._host.routes.greeted), None)
        if server is not None:
            await self._of_all(message, [server])

    # --- one region ----------------------------------------------------------------------------------

    async def _owner(self, region: RegionInfo) -> Incarnation:
        """Return the server that serves the region, waiting up to OWNER_S for it.

        Raises RetryLater if the region is in transition for longer.  Raises NotServingRegion if the region's owner died
        during a split or merge, which keeps the region at that owner.
        """

        def is_settled() -> bool:
            return self._host.tables.owner_of(region) is not None or self._host.tables.is_changing(region)

        if not is_settled():
            try:
                await asyncio.wait_for(self._host.events.until(is_settled), OWNER_S)
            except TimeoutError:
                raise RetryLater(f"region {region.encoded} of {region.table} is not served now; try again") from None
        found = self._host.tables.owner_of(region)
        if found is None:
            # The region gets a new owner only when the split or merge is over, so the latter must not wait for one.
            raise NotServingRegion(f"the server of region {region.encoded} died: nothing was changed; try again")
        return found

    async def _of_region(self, message: messages.MiddleRow | messages.CopyRegion | messages.ReclaimSpace) -> Any:
        server = await self._owner(message.region)
        try:
            return await self._of_one(server, message)
        except (NotSent, LinkBroke):
            raise RetryLater(f"server {server} died before it was done; try again") from None

    async def _copy(self, message: messages.CopyRegion) -> None:
        self._host.tables.pause_table_transitions(message.region.table)
        try:
            await self._of_region(message)
        finally:
            self._host.tables.release(message.region.table)

    async def _begin(self, message: messages.BeginChange) -> None:
        owners = {await self._owner(region) for region in message.change.gone}
        if len(owners) > 1:
            raise NotServingRegion("the two regions are at different servers now; try again")
        self._carriers[message.change] = server = owners.pop()
        try:
            await self._of_one(server, message)
        except (NotSent, LinkBroke):
            raise NotServingRegion(f"server {server} died before it was done: nothing was changed; try again") from None

    async def _finish(self, message: messages.FinishChange) -> float:
        server = self._carriers[message.change]
        try:
            pause_s = await self._of_one(server, message)
        except NotSent:
            raise NotServingRegion(f"server {server} died before it was done: nothing was changed; try again") from None
        except LinkBroke:
            raise OutcomeUnknown(f"server {server} died in the middle of it; ask for the regions") from None
        del self._carriers[message.change]
        return pause_s

    async def _end(self, message: messages.CallOffChange | messages.SettleChange) -> None:
        server = self._carriers.pop(message.change, None)
        if server is not None:
            await self._of_all(message, [server])


def _good(answers: Iterable[R | BaseException]) -> list[R]:
    """Return the answers of living servers; raise the refusal of a server."""
    found = list(answers)
    for answer in found:
        if isinstance(answer, BaseException) and not isinstance(answer, NotSent | LinkBroke):
            raise answer
    return [answer for answer in found if not isinstance(answer, BaseException)]
