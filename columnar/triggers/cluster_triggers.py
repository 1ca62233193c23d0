"""Triggers over the regions of several servers, at a gateway.

The gateway gathers status from all servers, waits for deliveries at all owners, and logs a retry at the row's owner.
A wait succeeds when each region of the trigger's table was confirmed by a server that owned the region from the moment
of the request on.  If a region moved, split or merged meanwhile, the request is sent to the new owners.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from columnar.cluster.link_errors import LinkBroke
from columnar.cluster.peer_requests import FlowStatuses, LogAgain, TriggerStatuses, Waited, WaitForDelivery
from columnar.cluster.scatter_gather import (
    NOTHING_DONE,
    STATUS_TIMEOUT_S,
    Owners,
    choose_server,
    gather_status,
    request_owner,
)
from columnar.flows.follower_name import OUTBOX, TRIGGER
from columnar.model.derivations import VIEW
from columnar.model.flow_graph import Flow
from columnar.model.flow_status import FEED, PUSH, FlowStatus, TriggerStatus, merged, merged_flows
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message
from columnar.regions.log.change_record import ChangeRecord, pack
from columnar.triggers.trigger_peer_handlers import TriggerPeerHandlers

S = TypeVar("S")

_IN_WAITS: Final = (TRIGGER, VIEW, FEED, OUTBOX, PUSH)
PAUSE_S: Final = 0.1  # until owners that could not answer are requested again, unless the routes change earlier


class ClusterTriggers:
    def __init__(
        self, handlers: TriggerPeerHandlers, owners: Owners, servers: Callable[[], Iterable[Incarnation]]
    ) -> None:  # fmt: skip
        """``servers`` returns all servers that live, as far as this server knows."""
        self._local_handlers = handlers
        self._owners = owners
        self._servers = servers

    async def trigger_statuses(self) -> tuple[list[TriggerStatus], list[str]]:
        """Return one status for each trigger, and the servers that were silent for STATUS_TIMEOUT_S."""
        statuses, silent = await self._gather_status(
            TriggerStatuses(), self._local_handlers.trigger_statuses(TriggerStatuses())
        )
        return merged(statuses), silent

    async def flow_statuses(self) -> tuple[list[FlowStatus], list[str]]:
        """Return one status for each flow, and the servers that were silent for STATUS_TIMEOUT_S."""
        statuses, silent = await self._gather_status(FlowStatuses(), self._local_handlers.flow_statuses(FlowStatuses()))
        return merged_flows(statuses), silent

    async def all_flows(self, timeout_s: float) -> list[Flow] | None:
        """Return the flows with the writes that any server has observed; None if a server was silent for so long."""
        now_s = asyncio.get_running_loop().time
        deadline_s = now_s() + timeout_s
        while True:
            change = self._owners.change()
            statuses, silent = await self.flow_statuses()
            if not silent:
                return [one.flow for one in statuses if one.kind in _IN_WAITS]
            left_s = deadline_s - now_s()
            if left_s <= 0:
                return None
            await asyncio.wait([change], timeout=min(PAUSE_S, left_s))

    async def _gather_status(
        self, message: Message[tuple[S, ...]], local_answer: Awaitable[tuple[S, ...]]
    ) -> tuple[list[S], list[str]]:
        """Return the statuses of all servers, the local ones first, and the silent servers."""
        remote = [server for server in self._servers() if server != self._owners.local_server]
        (found, silent), local = await asyncio.gather(
            gather_status(remote, self._owners, message, STATUS_TIMEOUT_S), local_answer
        )
        return [*local, *(status for statuses in found.values() for status in statuses)], [str(one) for one in silent]

    # --- waits ---------------------------------------------------------------------------------------

    async def wait_delivered(
        self, tables: Iterable[str], name: str, token: str, timeout_s: float, *, saved: bool = False
    ) -> bool:
        """Do ``TriggerManager.wait`` over all regions of ``tables``; ``saved`` is ``WaitForDelivery.saved``."""
        now_s = asyncio.get_running_loop().time
        deadline_s = now_s() + timeout_s
        tables, vouched, tries = tuple(tables), set[RegionInfo](), 0
        while True:
            change, left_ms = self._owners.change(), max(0, round((deadline_s - now_s()) * 1_000))
            owed = self._owed(tables, vouched, tries)
            if not owed:
                return True
            requests = [
                (server, WaitForDelivery(name, token, left_ms, tuple(one), saved)) for server, one in owed.items()
            ]
            for request, answer in zip(
                requests, await asyncio.gather(*(self._request_wait(*request) for request in requests)), strict=True
            ):
                if answer.is_delivered:
                    vouched.update(request[1].regions)
                elif not answer.is_not_local:
                    return False
            left_s = deadline_s - now_s()
            if left_s <= 0:
                return not self._owed(tables, vouched, 0)
            if self._owed(tables, vouched, 0):
                tries += 1
                await asyncio.wait([change], timeout=min(PAUSE_S, left_s))

    def _owed(
        self, tables: tuple[str, ...], vouched: set[RegionInfo], tries: int
    ) -> dict[Incarnation, list[RegionInfo]]:
        """Return the unconfirmed regions, by the server to which their request goes."""
        found: dict[Incarnation, list[RegionInfo]] = {}
        for table in tables:
            for route in self._owners.routes_of(table):
                if route.region not in vouched:
                    found.setdefault(choose_server(route, tries), []).append(route.region)
        return found

    async def _request_wait(self, server: Incarnation, request: WaitForDelivery) -> Waited:
        try:
            return await self._owners.request_server(server, request)
        except (*NOTHING_DONE, LinkBroke):
            return Waited(is_delivered=False, is_not_local=True)

    # --- retries -------------------------------------------------------------------------------------

    async def log_again(self, table: str, record: ChangeRecord) -> None:
        """Log the change at the row's owner.  A change logged twice is delivered twice: triggers must tolerate it."""
        row, change = record.row, pack(record) if record.stamp else b""
        message = LogAgain(table, row, record.only_for or "", change)
        await request_owner(self._owners, table, row, message, lambda is_done: not is_done)
