"""Gathers status from all servers of a master for pages and metrics, with the servers that did not answer in time.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Final, TypeVar

from columnar.cluster.peer_requests import FlowStatuses, TriggerStatuses
from columnar.cluster.scatter_gather import STATUS_TIMEOUT_S, Unanswered, gather_status
from columnar.master.instructions import Plan
from columnar.master.placement import Current, Desired
from columnar.master.plan_draft import Chance
from columnar.master.planner import plan
from columnar.model.flow_status import FlowStatus, TriggerStatus, merged, merged_flows
from columnar.model.histogram import Histogram
from columnar.model.measures import Family, SlowRequest
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import Measures, SlowRequests
from columnar.model.region_messages import Message
from columnar.roles.cluster_host import ClusterHost
from columnar.roles.cluster_servers import Servers
from columnar.storage.watched_folder import Room, WatchedFolder
from columnar.webui.status import LoopRunner, NotAnswering

R = TypeVar("R")

AWAITED_S: Final = STATUS_TIMEOUT_S + 1.0


class TimedPlanner:
    """``planner.plan`` with measured durations."""

    def __init__(self) -> None:
        self.times = Histogram()

    def __call__(self, desired: Desired, current: Current, now_ms: int, rng: Chance) -> Plan:
        begun = perf_counter()
        try:
            return plan(desired, current, now_ms, rng)
        finally:
            self.times.observe(perf_counter() - begun)


class ClusterStatusGatherer:
    """The implementation of ``webui.cluster_pages.Servers``, over the loop of the master."""

    def __init__(self, run_on_loop: LoopRunner, host: ClusterHost, servers: Servers, folder: WatchedFolder) -> None:
        """Pass ``run_on_loop``, which runs a call on the loop.  The web thread calls the public methods."""
        self._run_on_loop = run_on_loop
        self._folder = folder
        self._host = host
        self._servers = servers

    def room(self) -> Room | None:
        return self._folder.room  # a value that the loop replaces

    def measures(self) -> tuple[dict[str, tuple[Family, ...]], list[str]]:
        found, silent = self._gather(Measures())
        return {server.name: families for server, families in found.items()}, [one.server.name for one in silent]

    def slow_requests(self) -> tuple[list[SlowRequest], list[str]]:
        found, silent = self._gather(SlowRequests())
        return [one for part in found.values() for one in part], [one.by_name for one in silent]

    def triggers(self) -> tuple[list[TriggerStatus], list[str]]:
        found, silent = self._gather(TriggerStatuses())
        return merged(status for statuses in found.values() for status in statuses), [one.by_name for one in silent]

    def flows(self) -> tuple[list[FlowStatus], list[str]]:
        found, silent = self._gather(FlowStatuses())
        statuses = merged_flows(status for statuses in found.values() for status in statuses)
        return statuses, [one.by_name for one in silent]

    def _gather(self, message: Message[R]) -> tuple[dict[Incarnation, R], list[Unanswered]]:
        async def gathered() -> tuple[dict[Incarnation, R], list[Unanswered]]:
            return await gather_status(list(self._host.routes.greeted), self._servers, message)

        answer = asyncio.run_coroutine_threadsafe(gathered(), self._run_on_loop(asyncio.get_running_loop))
        try:
            return answer.result(AWAITED_S)
        except TimeoutError:
            answer.cancel()
            raise NotAnswering(f"the servers have not answered for {AWAITED_S:g} s") from None
