"""The pages of a node: those of the whole cluster while it leads, otherwise pages that say who leads.

    /health              200 while the process works
    /readyz, /ready      200 if the node can take clients (``readiness``); otherwise 503

Owned by the loop, except the applications, which the web threads call.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from columnar.roles.cluster_status_gatherer import ClusterStatusGatherer
from columnar.roles.readiness import Readiness, leaderless_s
from columnar.runtime import log_lines
from columnar.version import full
from columnar.webui.cluster_status import PageStatus
from columnar.webui.status import READY_PATHS, LoopRunner
from columnar.wire.browsers import Visitors

if TYPE_CHECKING:
    from columnar.model.measures import Family
    from columnar.roles.leading_node import LeadingNode
    from columnar.roles.node import Node
    from columnar.webui.node_status import NodeStatus


class NodeSite:
    def __init__(self, node: Node, hot_modules: Callable[[], str]) -> None:
        """Pass ``hot_modules``, which returns a text on how the hot modules run."""
        self._node = node
        self._hot_modules = hot_modules
        self._readiness = Readiness(leaderless_s(node.lease_s))

    def sample(self, now_s: float) -> None:
        self.obstacles()

    def obstacles(self) -> tuple[str, ...]:
        """Return why the node is not ready."""
        return self._readiness.note(self._node.facts(), asyncio.get_running_loop().time())

    def pages(self, run_on_loop: LoopRunner, visitors: Visitors) -> Any:
        """Return the WSGI application.  Called in the web thread."""
        from columnar.webui.node_pages import NodePages  # imported at the first visit, as are the next
        from columnar.webui.pages import environment

        own = NodePages(lambda: run_on_loop(self.node_status), environment(), self._address, visitors)
        of_cluster: dict[int, Any] = {}  # by the epoch of the leadership; one at a time

        def application(environ: dict[str, Any], start_response: Any) -> Any:
            leading = self._node.membership.leading
            if leading is None or environ.get("PATH_INFO") in READY_PATHS:
                return own(environ, start_response)
            pages = of_cluster.get(leading.epoch)
            if pages is None:
                of_cluster.clear()
                pages = of_cluster[leading.epoch] = self._pages_of_cluster(leading, run_on_loop, visitors)
            return pages(environ, start_response)

        return application

    def _pages_of_cluster(self, leading: LeadingNode, run_on_loop: LoopRunner, visitors: Visitors) -> Any:
        from columnar.webui.cluster_pages import cluster_pages  # imported at the first visit, as is the next
        from columnar.webui.families import of_node

        servers = ClusterStatusGatherer(run_on_loop, leading.host, leading.links, self._node.watched_folder)
        status = partial(self._status, leading)

        def node_families() -> Iterable[Family]:
            return of_node(run_on_loop(self.node_status))

        reports = leading.control.reports
        return cluster_pages(run_on_loop, reports, status, servers, self._address, visitors, node_families)

    @property
    def _address(self) -> str:
        """Return the address for clients; empty for a node without servers."""
        port = self._node.ports.port
        return f"{self._node.config.host}:{port}" if port is not None else ""

    @property
    def _place(self) -> str:
        """Return what pages have in their title."""
        return self._address or f"node {self._node.membership.name()}, without servers"

    def _status(self, leading: LeadingNode) -> PageStatus:
        """Return the status for the pages.  Called on the loop."""
        reports, tables = leading.control.reports, leading.leading.catalogue.tables
        kinds = Counter(one.kind for one in reports.transitions())
        tallies = leading.host.state.tallies
        return PageStatus(
            version=full(),
            address=self._place,
            data_folder=os.path.abspath(self._node.folder.path),
            uptime_s=time.time() - self._node.started_s,
            cluster=reports.cluster_status(),
            kinds=tuple(sorted(kinds.items())),
            fenced=leading.host.fenced,
            hot_modules=self._hot_modules(),
            has_triggers_page=True,
            tables=tuple(reports.tables()),
            disabled=frozenset(name for name, entry in tables.items() if not entry.enabled),
            moves=tuple((reason.value, count) for reason, count in tallies.moves.items()),
            pauses=tuple((reason.value, pauses.numbers) for reason, pauses in tallies.pauses.items()),
            log_lines_dropped=log_lines.dropped(),
            planning=leading.planner.times.numbers,
        )

    def node_status(self) -> NodeStatus:
        """Return the status of this node.  Called on the loop."""
        from columnar.webui.node_status import LeaderStatus, LeaseStatus, NodeStatus

        node = self._node
        leader = node.membership.leader
        standing = node.membership.standing()
        faults = (standing.service, standing.catalogue, node.watched_folder.remark())
        is_own = node.membership.leading is not None
        web = node.membership.leader_web
        lease = LeaseStatus(node.lease_page.left_s(), standing.clock_offset_s) if node.is_leased else None
        return NodeStatus(
            version=full(),
            address=self._place,
            data_folder=os.path.abspath(node.folder.path),
            uptime_s=time.time() - node.started_s,
            node=node.membership.name(),
            leader=LeaderStatus(leader.address, leader.epoch, web, is_own) if leader is not None else LeaderStatus(),
            lease=lease,
            servers=node.servers.list_facts(),
            ready=len(node.ports.ready),
            faults=tuple(filter(None, faults)),
            obstacles=self.obstacles(),
            hot_modules=self._hot_modules(),
        )
