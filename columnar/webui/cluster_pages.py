"""The pages of servers: who has what and why.  Read only, as ``pages``.

    /servers   /servers/NAME   /tables/NAME (the map of its regions)   /where   /transitions   /decisions   /requests

A cluster's master shows them with ``/triggers``, ``/metrics`` and ``/health``; a store that is one process beside its
status page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from jinja2 import Environment
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from werkzeug.wrappers import Request, Response

from columnar.errors import ColumnarError, TableNotFound, abbreviate
from columnar.model.cluster_status_records import UNKNOWN_MS, RegionStatus, RowStatus, busy_remark
from columnar.model.flow_status import FlowStatus
from columnar.model.measures import Family
from columnar.model.slow_request import SlowRequest
from columnar.model.trigger_status import TriggerStatus
from columnar.webui.cluster_families import of_cluster
from columnar.webui.cluster_status import PageStatus
from columnar.webui.flow_page import FlowPage
from columnar.webui.host import of_disk
from columnar.webui.metrics import CONTENT_TYPE, FamilyCollector, exposition, merged, metric_of
from columnar.webui.pages import (
    MAX_LISTED_TRIGGERS,
    REFRESH_S,
    REGIONS_PER_PAGE,
    Pages,
    duration_text,
    environment,
    health_of,
    live,
)
from columnar.webui.region_map import colour_of, legend_of, strip_of
from columnar.webui.request_page import RequestPage
from columnar.webui.server import LoopRunner
from columnar.webui.status import ClusterStatusSource
from columnar.webui.where import answered, link_to
from columnar.wire.browsers import Visitors

MAX_LISTED_TABLES: Final = 200
MAX_LISTED_TRANSITIONS: Final = 200
UNSERVED: Final = ("waiting", "failed")  # kinds of transitions: no server serves the region
MAX_LISTED_UNSERVED: Final = 20
MAX_LISTED_DECISIONS: Final = 20  # about one server or region


class Servers(Protocol):
    """The status of all servers.  The web thread calls, and is blocked for seconds at most.  Raises NotAnswering."""

    def measures(self) -> tuple[Mapping[str, Sequence[Family]], Sequence[str]]:
        """Return families by the server's name, and names of servers that did not answer."""

    def flows(self) -> tuple[Sequence[FlowStatus], Sequence[str]]:
        """Return the status of each flow, and names of servers that did not answer."""

    def slow_requests(self) -> tuple[Sequence[SlowRequest], Sequence[str]]:
        """Return the last slow requests of each server, and names of servers that did not answer."""

    def triggers(self) -> tuple[Sequence[TriggerStatus], Sequence[str]]:
        """Return the status of each trigger, and names of servers that did not answer."""


class ClusterStatusPages:
    """The pages by their paths, for an application to take in.  Constant after construction."""

    def __init__(
        self,
        run_on_loop: LoopRunner,
        source: ClusterStatusSource,
        status: Callable[[], PageStatus],
        templates: Environment,
    ) -> None:
        """``status``: on the loop."""
        self._run_on_loop = run_on_loop
        self._source = source
        self._status = status
        self._templates = templates
        self.answers: dict[str, Callable[[Request], Response]] = {
            "/servers": self._servers,
            "/servers/*": self._server,
            "/tables/*": self._table,
            "/where": self._where,
            "/transitions": self._transitions,
            "/decisions": self._decisions,
        }

    def page(self, template: str, status: PageStatus, *, renews: bool = True, **values: Any) -> Response:
        html = self._templates.get_template(template).render(
            status=status,
            refresh_s=REFRESH_S if renews else 0,
            age=age_text,
            key=key_text,
            where=link_to,
            colour=lambda server: colour_of(server, [one.name for one in status.cluster.servers]),
            **values,
        )
        return Response(html, mimetype="text/html")

    def _servers(self, _request: Request) -> Response:
        status, tables, transitions = self._run_on_loop(
            lambda: (self._status(), self._source.tables(), self._source.transitions())
        )
        busiest = max((one.load for one in status.cluster.servers), default=0.0)
        return self.page(
            "servers.html",
            status,
            tables=tables[:MAX_LISTED_TABLES],
            unserved=[one for one in transitions if one.kind in UNSERVED][:MAX_LISTED_UNSERVED],
            hidden=max(0, len(tables) - MAX_LISTED_TABLES),
            busiest=busiest,
        )

    def _server(self, request: Request) -> Response:
        name = _last_part(request)
        status, regions, decisions = self._run_on_loop(
            lambda: (self._status(), self._source.server_regions(name), self._source.decisions())
        )
        found = next((one for one in status.cluster.servers if one.name == name), None)
        if found is None:
            return _none(f"There is no server {name}; /servers shows them.")
        about = [one for one in decisions if one.server == name][:MAX_LISTED_DECISIONS]
        rows, page, pages = _slice(request, regions)
        return self.page("server.html", status, server=found, regions=rows, decisions=about, page=page, pages=pages)

    def _table(self, request: Request) -> Response:
        name = _last_part(request)
        try:
            status, regions = self._run_on_loop(lambda: (self._status(), self._source.regions(name)))
        except TableNotFound:
            return _none(f"There is no table {name}; /servers shows them.")
        except ColumnarError as error:
            return _none(error.text)
        servers = [one.name for one in status.cluster.servers]
        rows, page, pages = _slice(request, regions)
        return self.page(
            "table.html",
            status,
            name=name,
            count=len(regions),
            first=(page - 1) * REGIONS_PER_PAGE,
            strip=strip_of(rows, servers),
            legend=legend_of(rows, servers),
            regions=rows,
            size_bytes=sum(one.size_bytes for one in regions),
            load=sum(one.load for one in regions),
            page=page,
            pages=pages,
        )

    def _where(self, request: Request) -> Response:
        def find_row(table: str, row: bytes) -> RowStatus:
            return self._run_on_loop(lambda: self._source.row(table, row))

        answer = answered(request, find_row)
        status, tables = self._run_on_loop(lambda: (self._status(), self._source.tables()))
        names = [one.name for one in tables[:MAX_LISTED_TABLES]]
        decisions = answer.found.decisions[:MAX_LISTED_DECISIONS] if answer.found is not None else ()
        return self.page("where.html", status, renews=False, answer=answer, tables=names, decisions=decisions)

    def _transitions(self, _request: Request) -> Response:
        status, found = self._run_on_loop(lambda: (self._status(), self._source.transitions()))
        hidden = max(0, len(found) - MAX_LISTED_TRANSITIONS)
        return self.page("transitions.html", status, transitions=found[:MAX_LISTED_TRANSITIONS], hidden=hidden)

    def _decisions(self, _request: Request) -> Response:
        status, found = self._run_on_loop(lambda: (self._status(), self._source.decisions()))
        return self.page("decisions.html", status, decisions=found)


class ClusterPages(Pages):
    """The whole port of a cluster's master."""

    def __init__(
        self,
        run_on_loop: LoopRunner,
        source: ClusterStatusSource,
        status: Callable[[], PageStatus],
        servers: Servers,
        templates: Environment,
        store: str,
        visitors: Visitors | None,
    ) -> None:
        self._run_on_loop = run_on_loop
        self._status = status
        self._servers = servers
        self._process = ProcessCollector(registry=None)  # of the master's own process
        self._registry = CollectorRegistry()
        self._registry.register(FamilyCollector(self._metrics))
        status_pages = ClusterStatusPages(run_on_loop, source, status, templates)
        self._page, answers = status_pages.page, status_pages.answers
        own: dict[str, Callable[[Request], Response]] = {
            "/": answers["/servers"],
            "/metrics": lambda _: Response(exposition(self._registry), content_type=CONTENT_TYPE),
            "/health": lambda _: self._health(),
            "/live": lambda _: self._live(),
            "/triggers": lambda _: self._triggers(),
            "/requests": RequestPage(
                servers.measures, servers.slow_requests, lambda: run_on_loop(status), status_pages.page
            ).answer,
            "/flows": FlowPage(servers.flows, lambda: run_on_loop(status), status_pages.page).answer,
        }
        super().__init__({**own, **answers}, store, visitors)

    def _triggers(self) -> Response:
        triggers, silent = self._servers.triggers()
        lines = triggers[:MAX_LISTED_TRIGGERS]
        hidden = max(0, len(triggers) - MAX_LISTED_TRIGGERS)
        status = self._run_on_loop(self._status)
        return self._page("triggers.html", status, triggers=lines, hidden=hidden, silent=silent)

    def _metrics(self) -> list[Metric]:
        """Return the master's families, and with their name those of the servers that answer in time."""
        status = self._run_on_loop(self._status)
        of_servers, silent = self._servers.measures()
        own = map(metric_of, (*of_cluster(status, silent), *of_disk(status.data_folder)))
        return merged([*own, *self._process.collect()], of_servers)

    def _health(self) -> Response:
        """Whether the master's loops work, some server is up and every region serves; notes on busy servers."""
        status = self._run_on_loop(self._status)
        busy = [busy_remark(server) for server in status.cluster.servers if server.busy_ms]
        return health_of(() if status.up else ("no server is up",), status.cluster.faults, notes=busy)

    def _live(self) -> Response:
        """Whether the master's loop iterates: it replaces servers by itself."""
        self._run_on_loop(self._status)
        return live()


def cluster_pages(
    run_on_loop: LoopRunner,
    source: ClusterStatusSource,
    status: Callable[[], PageStatus],
    servers: Servers,
    store: str = "",
    visitors: Visitors | None = None,
) -> ClusterPages:
    """Return the application, with its pages read from the package."""
    return ClusterPages(run_on_loop, source, status, servers, environment(), store, visitors)


def _last_part(request: Request) -> str:
    return request.path.rpartition("/")[2]


def _none(text: str) -> Response:
    return Response(f"{text}\n", 404, mimetype="text/plain")


def _slice(request: Request, regions: Sequence[RegionStatus]) -> tuple[Sequence[RegionStatus], int, int]:
    """Return the regions of the page that was requested, which one it is, and how many there are."""
    text = request.args.get("page", "")
    page_number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
    pages = max(1, -(-len(regions) // REGIONS_PER_PAGE))
    page = min(max(1, page_number), pages)
    return regions[(page - 1) * REGIONS_PER_PAGE : page * REGIONS_PER_PAGE], page, pages


def age_text(age_ms: int) -> str:
    if age_ms == UNKNOWN_MS:
        return "unknown"
    return f"{age_ms / 1_000:.1f} s" if age_ms < 10_000 else duration_text(age_ms / 1_000)


def key_text(key: bytes) -> str:
    return abbreviate(key)
