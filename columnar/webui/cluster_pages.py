"""The pages of a cluster's master: ``/servers`` (also ``/``), ``/metrics``, ``/health``.  Read only, as ``pages``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jinja2 import Template
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from werkzeug.wrappers import Request, Response

from columnar.webui.cluster_status import ClusterStatus
from columnar.webui.metrics import CONTENT_TYPE, exposition
from columnar.webui.pages import REFRESH_S, Pages, environment
from columnar.wire.browsers import Visitors


class ClusterCollector(Collector):
    """Calls ``status`` at each scrape."""

    def __init__(self, status: Callable[[], ClusterStatus]) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        return []  # else the registry would scrape once just to learn the names

    def collect(self) -> Iterator[Metric]:
        status = self._status()
        up = GaugeMetricFamily("columnar_server_up", "Whether the server serves.", labels=["server"])
        regions = GaugeMetricFamily("columnar_server_regions", "Regions that it owns.", labels=["server"])
        for server in status.servers:
            name = server.name.partition(".")[0]
            up.add_metric([name], int(server.state == "up"))
            regions.add_metric([name], server.regions)
        yield up
        yield regions
        yield GaugeMetricFamily("columnar_regions", "Regions of all tables.", value=status.regions)
        yield GaugeMetricFamily("columnar_unassigned_regions", "Regions without an owner.", value=status.unassigned)
        yield GaugeMetricFamily("columnar_transitions", "Regions on their way.", value=status.under_way)
        yield CounterMetricFamily("columnar_fenced", "Servers that died or were killed.", value=status.fenced)
        yield GaugeMetricFamily("columnar_uptime_seconds", "Since the start.", value=status.uptime_s)


class ClusterPages(Pages):
    def __init__(
        self,
        status: Callable[[], ClusterStatus],
        ping: Callable[[], None],
        page: Template,
        store: str,
        visitors: Visitors | None,
    ) -> None:
        self._status = status
        self._ping = ping
        self._page = page
        self._registry = CollectorRegistry()
        self._registry.register(ClusterCollector(status))
        ProcessCollector(registry=self._registry)  # of the master's own process
        answers = {
            "/": self._servers,
            "/servers": self._servers,
            "/metrics": lambda _: Response(exposition(self._registry), content_type=CONTENT_TYPE),
            "/health": lambda _: self._health(),
        }
        super().__init__(answers, store, visitors)

    def _health(self) -> Response:
        """Whether the master's loop iterates, and some server is up."""
        self._ping()
        if any(server.state == "up" for server in self._status().servers):
            return Response("ok\n", mimetype="text/plain")
        return Response("unhealthy: no server is up\n", 503, mimetype="text/plain")

    def _servers(self, _request: Request) -> Response:
        html = self._page.render(status=self._status(), refresh_s=REFRESH_S)
        return Response(html, mimetype="text/html")


def cluster_pages(
    status: Callable[[], ClusterStatus], ping: Callable[[], None], store: str = "", visitors: Visitors | None = None
) -> ClusterPages:
    """The application, with its page read from the package."""
    return ClusterPages(status, ping, environment().get_template("servers.html"), store, visitors)
