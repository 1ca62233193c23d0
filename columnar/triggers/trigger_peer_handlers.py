"""Handlers of requests about the triggers on this server's regions, from gateways and the master's pages.

No request is forwarded.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from columnar.cluster.peer_requests import FlowStatuses, LogAgain, TriggerStatuses, Waited, WaitForDelivery
from columnar.errors import RegionNotLocal
from columnar.flows.follower_name import TRIGGER, of_key
from columnar.model.flow_status import FlowStatus, TriggerStatus
from columnar.model.region_info import RegionInfo
from columnar.regions.log.change_record import ChangeRecord, unpack
from columnar.regions.server import RegionServer
from columnar.triggers.trigger_manager import TriggerManager

_NOT_LOCAL = Waited(is_delivered=False, is_not_local=True)


class TriggerPeerHandlers:
    """Handlers by class of request, in ``answers``; each raises errors of ``columnar.errors``."""

    def __init__(
        self,
        manager: TriggerManager,
        server: RegionServer,
        change: Callable[[], asyncio.Future[None]],
    ) -> None:
        """``change`` returns a shared future that ends when the set of regions that this server owns changes."""
        self._manager = manager
        self._server = server
        self._change = change
        self.answers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {
            TriggerStatuses: self.trigger_statuses,
            FlowStatuses: self.flow_statuses,
            WaitForDelivery: self.wait_delivered,
            LogAgain: self.log_again,
        }

    async def trigger_statuses(self, _message: TriggerStatuses) -> tuple[TriggerStatus, ...]:
        letters = await self._manager.dead_letter_store.local_letter_counts()
        return tuple(replace(one, dead_letters=letters[one.name]) for one in self._manager.trigger_statuses())

    async def flow_statuses(self, _message: FlowStatuses) -> tuple[FlowStatus, ...]:
        letters = await self._manager.dead_letter_store.local_letter_counts()
        return tuple(
            replace(one, dead=letters[one.name]) if one.kind == TRIGGER else one
            for one in self._manager.hub.flow_statuses()
        )

    async def wait_delivered(self, message: WaitForDelivery) -> Waited:
        """Wait for the delivery.  The answer counts only if this server owned all the regions all the while."""
        epochs = self._epochs(message.regions)
        if epochs is None:
            return _NOT_LOCAL
        begun_s = asyncio.get_running_loop().time()
        try:
            await self._open(message.regions)
        except RegionNotLocal:
            return _NOT_LOCAL
        left_s = message.timeout_ms / 1_000 - (asyncio.get_running_loop().time() - begun_s)
        waiting = asyncio.ensure_future(self._delivered(message, max(0.0, left_s)))
        try:
            while not waiting.done():
                events: list[asyncio.Future[Any]] = [waiting, self._change()]
                await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
                if self._epochs(message.regions) != epochs:
                    return _NOT_LOCAL
            return Waited(waiting.result(), is_not_local=False)
        finally:
            waiting.cancel()

    async def _delivered(self, message: WaitForDelivery, timeout_s: float) -> bool:
        hub, name = self._manager.hub, of_key(message.trigger)
        is_delivered = await hub.wait_delivered(name, message.token, timeout_s)
        return is_delivered and (not message.saved or await hub.saved(name))

    def _epochs(self, regions: tuple[RegionInfo, ...]) -> list[int] | None:
        """Return the regions' epochs; None if this server does not own one of the regions."""
        state = self._server.hosting.state
        if not all(state.owns(info.region_id) for info in regions):
            return None
        return [state.epoch_of(info.region_id) for info in regions]

    async def _open(self, regions: tuple[RegionInfo, ...]) -> None:
        """Open the regions' stores: only an open region has followers, and a region may have moved here just now."""
        for info in regions:
            served = self._server.serving(info)
            if served is not None and not self._server.is_untouched(info):
                await self._server.opened(served, info)

    async def log_again(self, message: LogAgain) -> bool:
        try:
            record = unpack(message.change) if message.change else ChangeRecord(message.row, 0, (), (), message.trigger)
            await self._manager.dead_letter_store.log_again(message.table, record)
        except RegionNotLocal:
            return False
        return True
