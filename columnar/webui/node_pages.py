"""The pages of a node that does not lead: who leads, the node's own servers, and whether it can take clients.

    /    /health    /ready    /live    /metrics

The pages of the whole cluster are at the node that leads (``cluster_pages``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jinja2 import Environment
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from werkzeug.wrappers import Request, Response

from columnar.model.measures import GAUGE, Family, by_label, single
from columnar.model.node_messages import NamedFacts
from columnar.webui.metrics import CONTENT_TYPE, FamilyCollector, exposition, metric_of
from columnar.webui.pages import REFRESH_S, Pages, health_of, live
from columnar.wire.browsers import Visitors


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """The status of a node; the fields of ``cluster_status.PageStatus`` that the frame of a page shows come first."""

    version: str
    address: str
    data_folder: str
    uptime_s: float
    node: str  # the incarnation
    leader: str  # the address of the leader, or an empty text if no leader is known
    leader_epoch: int
    leader_web: str  # the URL of the leader's pages, or an empty text if unknown
    servers: tuple[NamedFacts, ...]
    ready: int  # how many of them take connections
    faults: tuple[str, ...]  # sentences
    lease_left_s: float  # below 0: the lease does not hold
    hot_modules: str = ""
    has_triggers_page: bool = False
    is_leaving: bool = False  # it is drained until its next start

    @property
    def obstacles(self) -> tuple[str, ...]:
        """The reasons why the node cannot take clients, or without servers could not lead; none if it can."""
        found = list(self.faults)
        if not self.leader:
            found.append("no leader is known")
        if self.servers and not self.ready:
            found.append("no server of this node knows the routes of all tables yet")
        if self.lease_left_s <= 0:
            found.append("the lease of this node does not hold: answers wait")
        if self.is_leaving:
            found.append("this node is drained until its next start: take another one")
        return tuple(found)


def ready_of(obstacles: tuple[str, ...]) -> Response:
    """Return the answer of ``/ready``: 503 with a line for each obstacle, if there is one."""
    lines = [f"not ready: {one}\n" for one in obstacles]
    return Response("".join(lines) or "ready\n", 503 if lines else 200, mimetype="text/plain")


class NodePages(Pages):
    def __init__(
        self, status: Callable[[], NodeStatus], templates: Environment, store: str, visitors: Visitors | None
    ) -> None:
        """Pass ``status``, which may raise NotAnswering."""
        self._status = status
        self._templates = templates
        self._process = ProcessCollector(registry=None)
        self._registry = CollectorRegistry()
        self._registry.register(FamilyCollector(self._metrics))
        answers: dict[str, Callable[[Request], Response]] = {
            "/": lambda _: self._index(),
            "/health": lambda _: health_of(self._status().faults),
            "/ready": lambda _: ready_of(self._status().obstacles),
            "/live": lambda _: self._live(),
            "/metrics": lambda _: Response(exposition(self._registry), content_type=CONTENT_TYPE),
        }
        super().__init__(answers, store, visitors)

    def _index(self) -> Response:
        html = self._templates.get_template("node.html").render(status=self._status(), refresh_s=REFRESH_S)
        return Response(html, mimetype="text/html")

    def _live(self) -> Response:
        """Answer if the node's loop iterates."""
        self._status()
        return live()

    def _metrics(self) -> list[Metric]:
        return [*map(metric_of, families_of(self._status())), *self._process.collect()]


def families_of(status: NodeStatus) -> tuple[Family, ...]:
    """Return the families of a node's own ``/metrics``."""
    connections = [(one.server, one.facts.connections) for one in status.servers]
    lives = [(one.server, int(one.facts.pid > 0)) for one in status.servers]
    left_s = max(0.0, status.lease_left_s)
    return (
        single("columnar_lease_left_seconds", GAUGE, "Until the lease of this node ends, without a renewal.", left_s),
        single("columnar_node_ready", GAUGE, "1 if /ready answers 200.", int(not status.obstacles)),
        by_label("columnar_server_up", GAUGE, "1 if the server's process lives.", "server", lives),
        by_label("columnar_connections", GAUGE, "Connections of clients, by server.", "server", connections),
    )
