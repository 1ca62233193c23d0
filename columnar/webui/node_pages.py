"""The pages of a node that does not lead: who leads, the node's own servers, and whether it can take clients.

    /    /health    /readyz, /ready    /livez, /live    /metrics

The pages of the whole cluster are at the node that leads (``cluster_pages``).  A visitor of any other path is sent
there; 307 keeps the method.  If the leader's address is not known, 404 says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import quote, urlsplit

from jinja2 import Environment
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from werkzeug.wrappers import Request, Response

from columnar.model.measures import GAUGE, Family, by_label
from columnar.webui.families import of_node
from columnar.webui.metrics import FamilyCollector, answer, metric_of
from columnar.webui.node_status import NodeStatus
from columnar.webui.pages import REFRESH_S, Pages, health_of, live, ready_of
from columnar.webui.status import LIVE_PATHS, READY_PATHS
from columnar.wire.browsers import Visitors

_PATH: Final = "/:@!$&'()*+,;="  # RFC 3986, 3.3: what a path may have as it is, beside letters, digits and -._~


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
            **dict.fromkeys(READY_PATHS, lambda _: ready_of(self._status().obstacles)),
            **dict.fromkeys(LIVE_PATHS, lambda _: self._live()),
            "/metrics": lambda request: answer(self._registry, request),
        }
        super().__init__(answers, store, visitors)

    def _index(self) -> Response:
        html = self._templates.get_template("node.html").render(status=self._status(), refresh_s=REFRESH_S)
        return Response(html, mimetype="text/html")

    def _unknown(self, request: Request) -> Response:
        leader = self._status().leader
        # The address that the visitor used is this node's own: it leads without its catalogue, or has the leader's.
        if leader.web and urlsplit(leader.web).netloc != request.host and request.method in ("GET", "HEAD"):
            path = quote(request.environ["PATH_INFO"].encode("latin-1"), safe=_PATH)  # as WSGI has bytes
            query = quote(request.query_string, safe=_PATH + "?%")
            place = f"{leader.web.rstrip('/')}{path}{'?' if query else ''}{query}"
            return Response(f"{place}\n", 307, {"Location": place}, mimetype="text/plain")
        here = super()._unknown(request).get_data(as_text=True).rstrip()
        where = f"{leader.address} leads, {leader.web or 'whose pages have no known address'}" if leader.address else ""
        text = f"{here} The other pages are at the node that leads: {where or 'no node leads now'}.\n"
        return Response(text, 404, mimetype="text/plain")

    def _live(self) -> Response:
        """Answer if the node's loop iterates."""
        self._status()
        return live()

    def _metrics(self) -> list[Metric]:
        return [*map(metric_of, families_of(self._status())), *self._process.collect()]


def families_of(status: NodeStatus) -> tuple[Family, ...]:
    """Return the families of the page of a node that does not lead, for which no other page has its servers."""
    connections = [(one.server, one.facts.connections) for one in status.servers]
    lives = [(one.server, int(one.facts.pid > 0)) for one in status.servers]
    return (
        *of_node(status),
        by_label("columnar_server_up", GAUGE, "1 if the server's process lives.", "server", lives),
        by_label("columnar_connections", GAUGE, "Connections of clients, by server.", "server", connections),
    )
