"""A region server's measures for its master, and its exchange of statuses with other servers.

Owned by the loop.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final, TypeVar

from columnar.cluster.peer_requests import (
    AppendedRecords,
    AppendRecords,
    OwnFigures,
    PushMessages,
    SettledLeases,
    SettleLeases,
    StoredMessages,
    TriggerStatuses,
    ViewStatuses,
)
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.peers import Peers
from columnar.cluster.request_forwarder import RequestForwarder
from columnar.cluster.routes import Routes
from columnar.cluster.row_forms import THRIFT2, Figures
from columnar.cluster.scatter_gather import gather_status
from columnar.flows.follower_name import TRIGGER
from columnar.model.flow_status import TriggerStatus, ViewStatus
from columnar.model.measures import COUNTER, GAUGE, Family, SlowRequest, by_label, single
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import Measures, SlowRequests
from columnar.model.region_messages import Message
from columnar.roles.ports import ServerPorts
from columnar.roles.serving import Serving
from columnar.webui import families
from columnar.webui.host import memory_bytes
from columnar.webui.status import gather

REMARKS: Final = 20  # about regions that stay closed, in one status
R = TypeVar("R")


class StatusExchange:
    """The exchange of the statuses that region servers request from each other."""

    def __init__(
        self,
        local_server: Incarnation,
        ports: ServerPorts,
        serving: Serving,
        routes: Routes,
        peers: Peers,
        servers: Callable[[], Collection[Incarnation]],
    ) -> None:
        """Pass ``servers``, which returns the living servers, including this one."""
        self._local_server = local_server
        self._ports = ports
        self._serving = serving
        self._routes = routes
        self._peers = peers
        self._servers = servers

    async def own_figures(self, _message: OwnFigures) -> Figures:
        return self._ports.extension.figures()

    async def check_views(self, message: Message[R]) -> R:
        answer: R = await self._serving.checks().answers[type(message)](message)
        return answer

    async def read_changes(self, message: Message[R]) -> R:
        cluster = self._ports.cluster
        assert cluster is not None, "another server sent the message"
        answer: R = await self._serving.changes(cluster.owners.change).answers[type(message)](message)
        return answer

    async def push_messages(self, message: PushMessages) -> StoredMessages:
        return await self._serving.messages.queues.pushes().push_local(message)

    async def settle_leases(self, message: SettleLeases) -> SettledLeases:
        return await self._serving.messages.queues.settling().settle_local(message)

    async def append_records(self, message: AppendRecords) -> AppendedRecords:
        cluster = self._ports.cluster
        assert cluster is not None, "another server sent the message"
        owners = cluster.owners
        return await self._serving.messages.topics.pushes(lambda: owners).append_local(message)

    async def slow_requests(self, _message: SlowRequests) -> tuple[SlowRequest, ...]:
        return tuple(replace(one, server=self._local_server.name) for one in self._ports.slow_log.recent)

    async def list_view_statuses(self, _message: ViewStatuses) -> tuple[ViewStatus, ...]:
        return self._serving.owner.views.view_statuses()

    async def views_of_others(self) -> tuple[list[ViewStatus], list[str]]:
        remote = [server for server in self._servers() if server != self._local_server]
        found, silent = await gather_status(remote, self._peers, ViewStatuses())
        return [status for statuses in found.values() for status in statuses], [str(server) for server in silent]

    def remarks(self) -> list[str]:
        found = (
            route.blocked_reason
            for table in self._routes.tables
            for route in self._routes.of_table(table)
            if route.blocked_reason
        )
        return list(islice(found, REMARKS))

    async def figures_of_others(self) -> tuple[list[Figures], list[str]]:
        remote = [server for server in self._servers() if server != self._local_server]
        found, silent = await gather_status(remote, self._peers, OwnFigures())
        return list(found.values()), [str(server) for server in silent]


class ServerMeasures:
    """The measures of a region server, which its master requests at each scrape.

    These are the measures of a standalone process, and the outcomes of the calls that the server forwarded to others.

    Owned by the loop.
    """

    def __init__(
        self,
        ports: ServerPorts,
        serving: Serving,
        commits: Callable[[], int],
        peer_server: PeerServer,
        request_forwarders: Mapping[int, RequestForwarder],
        triggers: Callable[[TriggerStatuses], Awaitable[Iterable[TriggerStatus]]],
    ) -> None:
        """Pass the request forwarders by service."""
        self._peer_server = peer_server
        self._request_forwarders = request_forwarders
        self._triggers = triggers
        self._flows = serving.trigger_manager.hub.flow_statuses
        self._sources = ports.sources(serving, commits)  # without triggers, whose dead letters are counted on disk

    async def measures(self, _message: Measures) -> tuple[Family, ...]:
        """Measure this server; takes some 20 us per open region."""
        statuses = tuple(await self._triggers(TriggerStatuses()))
        letters = {trigger.name: trigger.dead_letters for trigger in statuses}
        flows = tuple(
            replace(one, dead=letters.get(one.name, 0)) if one.kind == TRIGGER else one for one in self._flows()
        )
        status = replace(gather(self._sources), triggers=statuses, flows=flows)
        return (
            *families.of_process(status),
            families.open_regions(status),
            *families.of_triggers(status),
            *families.of_flows(status),
            *families.of_views(status),
            *families.of_streams(status),
            *self._of_peers(),
            *_of_host(),
        )

    def _of_peers(self) -> Iterator[Family]:
        forwarded = [
            ("thrift2." * (service == THRIFT2) + method, calls)
            for service, request_forwarder in self._request_forwarders.items()
            for method, calls in request_forwarder.forwarded_calls.items()
        ]
        about = "Calls of its clients that other servers answered, or the master."
        yield by_label("columnar_forwarded", COUNTER, about, "method", forwarded)
        about = "Calls of other servers about regions that it does not own."
        yield single("columnar_misdirected", COUNTER, about, self._peer_server.misdirected)


def _of_host() -> Iterator[Family]:
    yield single("process_resident_memory_bytes", GAUGE, "Resident memory size in bytes.", memory_bytes())
    about = "Total user and system CPU time spent in seconds."
    yield single("process_cpu_seconds", COUNTER, about, time.process_time())
    try:
        yield single("process_open_fds", GAUGE, "Number of open file descriptors.", len(os.listdir("/proc/self/fd")))
    except OSError:  # not on Linux
        return
