"""The owner of regions as masters use it, with a handler for each message of ``model.region_messages``.

Uses the region server, and the triggers, views and feeds of the same process.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.errors import NotServingRegion, OutcomeUnknown, RetryLater
from columnar.model import region_messages as messages
from columnar.model.region_messages import Message, Peer
from columnar.regions.replace.region_changes import ChangingRegions
from columnar.regions.replace.region_copier import copy_region
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.topics.local_feeds import LocalFeeds
from columnar.triggers.trigger_manager import TriggerManager
from columnar.views.local_views import LocalViews

if TYPE_CHECKING:
    from columnar.rights.rights_check import RightsHolder

CALLS_TIMEOUT_S: Final = 40.0  # above the default time limit of a trigger's call
CALLS_POLL_S: Final = 0.01

R = TypeVar("R")


class RegionOwner:
    """Handles messages of the master, and sends it requests: to commit splits and merges, and to check views."""

    def __init__(
        self, server: RegionServer, manager: TriggerManager, region_bytes: int, rights: RightsHolder | None = None
    ) -> None:
        """Pass None as ``rights`` if rights are off."""
        self._rights = rights
        self._server = server
        self._trigger_manager = manager
        self.views = LocalViews(server, manager.hub, manager.applier, manager.governor)
        self.views.on_backfilled = self._report_backfilled
        self.feeds = LocalFeeds(server, manager.hub, manager.governor)
        self._master: Peer | None = None
        self._delivery_pauses = 0
        self.changing = ChangingRegions(server, self._commit, region_bytes)
        self.answers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {
            messages.Publish: self._publish,
            messages.Withdraw: self._withdraw,
            messages.CloseTable: lambda message: server.close_table(message.table),
            messages.CloseRegions: lambda message: server.close_regions(list(message.regions)),
            messages.FollowSchema: self._follow_schema,
            messages.PrepareRegions: lambda message: server.openings.prepare(message.table, list(message.regions)),
            messages.PublishTriggers: lambda message: manager.follow_triggers(message.triggers),
            messages.PublishRights: self._follow_rights,
            messages.CheckFunction: lambda message: manager.check_function(message.function),
            messages.CheckSource: lambda message: manager.check_source(message.functions),
            messages.ReloadFunctions: lambda _message: manager.reload(),
            messages.Undelivered: lambda message: manager.undelivered(message.table, message.triggers),
            messages.LogReach: lambda message: manager.reach(message.table),
            messages.PublishViews: lambda message: self.views.follow_views(message.views),
            messages.PublishFeeds: lambda message: self.feeds.follow_feeds(message.feeds),
            messages.BackfilledRegions: self._list_backfilled_regions,
            messages.PauseDeliveries: self._pause_deliveries,
            messages.ReleaseDeliveries: self._release_deliveries,
            messages.CopyRegion: self._copy_region,
            messages.MiddleRow: lambda message: self.changing.middle(message.region),
            messages.BeginChange: lambda message: self.changing.begin_change(message.change),
            messages.FinishChange: lambda message: self.changing.finish(message.change),
            messages.CallOffChange: self._call_off_change,
            messages.SettleChange: self._settle_change,
            messages.ReclaimSpace: lambda message: self.changing.reclaim_space(message.region),
            messages.Loads: self._loads,
        }

    async def _follow_rights(self, message: messages.PublishRights) -> None:
        if self._rights is not None:
            self._rights.take_record(message.record)

    async def request_peer(self, message: Message[R]) -> R:
        answer: R = await self.answers[type(message)](message)
        return answer

    def follow_master(self, master: Peer, leader: Callable[[], int] = lambda: 0) -> None:
        """Send requests to this master from now on.  ``leader`` returns the epoch at which it leads."""
        self.leader_ended()
        self._master = master
        self.changing.leader = leader

    def leader_linked(self) -> None:
        """Report again which views being built have all rows of local regions: reports may be lost with a link."""
        building = [view.name for view in self.views.views.all if view.state == "building"]
        for view, regions in self.views.backfilled_regions(building).items():
            if regions:
                self._report_backfilled(view)

    def leader_ended(self) -> None:
        """End the work of a master whose link has ended: call off splits and merges, and release deliveries.

        Regions stay as they are.  A split or merge whose commit was requested and not answered stays blocked until the
        next master publishes its tables.
        """
        self.changing.leader_ended()
        while self._delivery_pauses:
            self._release()

    async def _copy_region(self, message: messages.CopyRegion) -> None:
        await copy_region(self._server, message.region, self._server.folders.local_path(message.path))

    async def _commit(self, change: messages.RegionChange) -> None:
        assert self._master is not None, "whoever tells of a change answers for it"
        try:
            await self._master.request_peer(messages.Commit(change))
        except NotSent:
            raise NotServingRegion("no master leads now, so nothing was changed; try again") from None
        except LinkBroke as broke:
            raise OutcomeUnknown("the link to the master broke before it answered") from broke

    # --- tables ------------------------------------------------------------------------------------

    async def _publish(self, message: messages.Publish) -> None:
        self.changing.settle_table(message.table.name, message.regions)
        regions = self.changing.regions_of(message.table.name, list(message.regions))
        self._server.tables.install(ServedTable(message.table, message.is_enabled, regions))
        self._trigger_manager.hub.table_installed(message.table.name)

    async def _withdraw(self, message: messages.Withdraw) -> None:
        """Close the table and all its stores, because the master removes their folders next."""
        self._server.tables.remove(message.table)
        await self._server.close_table(message.table)

    async def _follow_schema(self, message: messages.FollowSchema) -> None:
        await self._server.upkeep.follow_schema(message.table)
        self._trigger_manager.hub.schema_followed(message.table)
        await self.feeds.schema_followed(message.table)

    # --- triggers ----------------------------------------------------------------------------------

    async def _pause_deliveries(self, _message: messages.PauseDeliveries) -> None:
        """Pause deliveries and wait for calls under way, because such a call may read data newer than a copy."""
        dispatcher = self._trigger_manager.dispatcher
        self._delivery_pauses += 1
        self._trigger_manager.hub.upkeep.pause_saving()
        self.views.quiesce_views()
        deadline_s = asyncio.get_running_loop().time() + CALLS_TIMEOUT_S
        while dispatcher.calls_in_flight() or not self.views.has_quiesced():
            if not self._delivery_pauses:
                raise RetryLater("the master that copies leads no more; try again")
            if asyncio.get_running_loop().time() > deadline_s:
                await self.request_peer(messages.ReleaseDeliveries())
                raise RetryLater(f"triggers or views are still at work after {CALLS_TIMEOUT_S:.0f} s; try again")
            await asyncio.sleep(CALLS_POLL_S)

    async def _release_deliveries(self, _message: messages.ReleaseDeliveries) -> None:
        if self._delivery_pauses:  # none is left if the master that paused them leads no more
            self._release()

    def _release(self) -> None:
        self._delivery_pauses -= 1
        self._trigger_manager.hub.upkeep.release()
        self._trigger_manager.dispatcher.deliver()
        self.views.resume_views()

    async def _list_backfilled_regions(self, message: messages.BackfilledRegions) -> dict[str, list[int]]:
        return self.views.backfilled_regions(message.views)

    def _report_backfilled(self, view: str) -> None:
        if self._master is not None:
            self._trigger_manager.hub.background.spawn(_say(self._master, messages.Backfilled(view)))

    # --- replacement of regions ----------------------------------------------------------------------

    async def _call_off_change(self, message: messages.CallOffChange) -> None:
        self.changing.call_off(message.change)
        self.changing.settle(message.change)  # the master commits it no more

    async def _settle_change(self, message: messages.SettleChange) -> None:
        self.changing.settle(message.change)

    async def _loads(self, _message: messages.Loads) -> tuple[messages.RegionLoad, ...]:
        return self.changing.loads()


async def _say(master: Peer, message: Message[None]) -> None:
    with suppress(NotSent, LinkBroke):  # ``leader_linked`` reports again
        await master.request_peer(message)
