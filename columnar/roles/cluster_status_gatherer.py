"""Questions of a master to all its servers, for pages and metrics: what each says, and who said nothing in time.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, Final, TypeVar

from columnar.cluster.peer_requests import FlowStatuses, TriggerStatuses
from columnar.cluster.scatter_gather import STATUS_TIMEOUT_S, gather_status
from columnar.master.instructions import Plan
from columnar.master.placement import Current, Desired
from columnar.master.plan_draft import Chance
from columnar.master.planner import plan
from columnar.model import flow_status
from columnar.model.flow_status import FlowStatus
from columnar.model.histogram import Histogram
from columnar.model.measures import Family
from columnar.model.owner_messages import Measures, SlowRequests
from columnar.model.slow_request import SlowRequest
from columnar.model.trigger_status import TriggerStatus, merged
from columnar.roles.cluster_host import ClusterHost, Servers
from columnar.webui.server import LoopRunner
from columnar.webui.status import NotAnswering

T = TypeVar("T")

AWAITED_S: Final = STATUS_TIMEOUT_S + 1.0


class TimedPlanner:
    """``planner.plan``, measured."""

    def __init__(self) -> None:
        self.times = Histogram()

    def __call__(self, desired: Desired, current: Current, now_ms: int, rng: Chance) -> Plan:
        begun = perf_counter()
        try:
            return plan(desired, current, now_ms, rng)
        finally:
            self.times.observe(perf_counter() - begun)


class ClusterStatusGatherer:
    """``webui.cluster_pages.Servers``, over the loop of the master."""

    def __init__(self, run_on_loop: LoopRunner, host: ClusterHost, servers: Servers) -> None:
        """``run_on_loop`` runs a call on the loop; it is used by the web thread, in which public methods are called."""
        self._run_on_loop = run_on_loop
        self._host = host
        self._servers = servers

    def measures(self) -> tuple[dict[str, tuple[Family, ...]], list[str]]:
        return self._awaited(self._measures())

    def slow_requests(self) -> tuple[list[SlowRequest], list[str]]:
        return self._awaited(self._slow_requests())

    def triggers(self) -> tuple[list[TriggerStatus], list[str]]:
        return self._awaited(self._triggers())

    def flows(self) -> tuple[list[FlowStatus], list[str]]:
        return self._awaited(self._flows())

    def _awaited(self, question: Coroutine[Any, Any, T]) -> T:
        answer = asyncio.run_coroutine_threadsafe(question, self._run_on_loop(asyncio.get_running_loop))
        try:
            return answer.result(AWAITED_S)
        except TimeoutError:
            answer.cancel()
            raise NotAnswering(f"the servers have not answered for {AWAITED_S:g} s") from None

    async def _measures(self) -> tuple[dict[str, tuple[Family, ...]], list[str]]:
        found, silent = await gather_status(list(self._host.greeted), self._servers, Measures())
        return {server.name: families for server, families in found.items()}, [one.server.name for one in silent]

    async def _flows(self) -> tuple[list[FlowStatus], list[str]]:
        found, silent = await gather_status(list(self._host.greeted), self._servers, FlowStatuses())
        statuses = flow_status.merged(status for statuses in found.values() for status in statuses)
        return statuses, [one.by_name for one in silent]

    async def _slow_requests(self) -> tuple[list[SlowRequest], list[str]]:
        found, silent = await gather_status(list(self._host.greeted), self._servers, SlowRequests())
        return [one for part in found.values() for one in part], [one.by_name for one in silent]

    async def _triggers(self) -> tuple[list[TriggerStatus], list[str]]:
        found, silent = await gather_status(list(self._host.greeted), self._servers, TriggerStatuses())
        return merged(status for statuses in found.values() for status in statuses), [one.by_name for one in silent]
