"""The pages about servers: which server has which regions, and why.  Read only, as ``pages``.

    /servers   /servers/NAME   /tables/NAME (the map of its regions)   /where   /transitions   /decisions   /requests

A cluster's master shows them with ``/triggers``, ``/metrics`` and ``/health``; a standalone store shows them beside its
status page.

The map of a table shows its regions as a strip in the order of their keys:

    width    the region's size, with a minimum so that no region vanishes
    colour   the region's server, by the server's place in the list of all servers
    shade    the region's load relative to the busiest region's

Positions are percentages, so the strip is as wide as the page and its labels stay legible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from jinja2 import Environment
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from werkzeug.wrappers import Request, Response

from columnar.errors import ColumnarError, TableNotFound, abbreviate, printable
from columnar.model.cell import checked_row
from columnar.model.cluster_status_records import OPEN, UNKNOWN_MS, RegionStatus, RowStatus, busy_remark
from columnar.model.flow_status import FlowStatus, TriggerStatus
from columnar.model.measures import Family, SlowRequest
from columnar.storage.watched_folder import Room
from columnar.webui.cluster_status import PageStatus
from columnar.webui.families import of_cluster
from columnar.webui.flow_page import FlowPage
from columnar.webui.host import of_room
from columnar.webui.metrics import FamilyCollector, answer, merged, metric_of
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
from columnar.webui.request_page import RequestPage
from columnar.webui.status import LIVE_PATHS, ClusterStatusSource, LoopRunner
from columnar.wire.browsers import Visitors

MAX_LISTED_TABLES: Final = 200
MAX_LISTED_TRANSITIONS: Final = 200
UNSERVED: Final = ("waiting", "failed")  # kinds of transitions in which no server serves the region
MAX_LISTED_UNSERVED: Final = 20
MAX_LISTED_DECISIONS: Final = 20  # about one server or region


class Servers(Protocol):
    """The status of all servers.

    All methods are called in the web thread, block for a few seconds at most, and raise NotAnswering.
    """

    def measures(self) -> tuple[Mapping[str, Sequence[Family]], Sequence[str]]:
        """Return the metric families by server's name, and the names of servers that did not answer."""

    def room(self) -> Room | None:
        """Return the free space of the data folder's disk at the last probe, or None if unknown.  Never blocks."""

    def flows(self) -> tuple[Sequence[FlowStatus], Sequence[str]]:
        """Return the status of each flow, and names of servers that did not answer."""

    def slow_requests(self) -> tuple[Sequence[SlowRequest], Sequence[str]]:
        """Return the last slow requests of each server, and names of servers that did not answer."""

    def triggers(self) -> tuple[Sequence[TriggerStatus], Sequence[str]]:
        """Return the status of each trigger, and names of servers that did not answer."""


class ClusterStatusPages:
    """The pages by their paths, to be included in an application.  Constant after construction."""

    def __init__(
        self,
        run_on_loop: LoopRunner,
        source: ClusterStatusSource,
        status: Callable[[], PageStatus],
        templates: Environment,
    ) -> None:
        """Pass ``status``, which is called on the loop."""
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
            return self._run_on_loop(lambda: self._source.locate_row(table, row))

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
    """All pages of the web port of a cluster's master."""

    def __init__(
        self,
        run_on_loop: LoopRunner,
        source: ClusterStatusSource,
        status: Callable[[], PageStatus],
        servers: Servers,
        templates: Environment,
        store: str,
        visitors: Visitors | None,
        node: Callable[[], Iterable[Family]],
    ) -> None:
        """Pass ``node``, which returns the metric families of the master's own node."""
        self._node = node
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
            "/metrics": lambda request: answer(self._registry, request),
            "/health": lambda _: self._health(),
            **dict.fromkeys(LIVE_PATHS, lambda _: self._live()),
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
        """Return the families of the master and of its node, and those of servers that answer in time.

        A server's families are labelled with its name.
        """
        status = self._run_on_loop(self._status)
        of_servers, silent = self._servers.measures()
        own = map(metric_of, (*of_cluster(status, silent), *self._node(), *of_room(self._servers.room())))
        return merged([*own, *self._process.collect()], of_servers)

    def _health(self) -> Response:
        """Answer 503 if a loop of the master failed, no server is up or a region does not serve; name busy servers."""
        status = self._run_on_loop(self._status)
        busy = [busy_remark(server) for server in status.cluster.servers if server.busy_ms]
        return health_of(() if status.up else ("no server is up",), status.cluster.faults, notes=busy)

    def _live(self) -> Response:
        """Answer ``/livez`` if the master's loop iterates.  Failed servers do not count: the master replaces them."""
        self._run_on_loop(self._status)
        return live()


def cluster_pages(
    run_on_loop: LoopRunner,
    source: ClusterStatusSource,
    status: Callable[[], PageStatus],
    servers: Servers,
    store: str = "",
    visitors: Visitors | None = None,
    node: Callable[[], Iterable[Family]] = tuple,
) -> ClusterPages:
    """Return the application, with its templates read from the package."""
    return ClusterPages(run_on_loop, source, status, servers, environment(), store, visitors, node)


def _last_part(request: Request) -> str:
    return request.path.rpartition("/")[2]


def _none(text: str) -> Response:
    return Response(f"{text}\n", 404, mimetype="text/plain")


def _slice(request: Request, regions: Sequence[RegionStatus]) -> tuple[Sequence[RegionStatus], int, int]:
    """Return the regions on the requested page, the page's number, and the number of pages."""
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


FIRST_ROW: Final = b"\0"
LINKED_BYTES: Final = 2_000
_ESCAPE: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a search for a row: ``found`` or ``error``, or neither if nothing was searched."""

    table: str
    row: str
    found: RowStatus | None = None
    error: str = ""


def row_of(text: str) -> bytes:
    """Return the row key that a person typed; ``\\xNN`` stands for the byte NN."""
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode("utf-8", "surrogateescape"))


def link_to(table: str, start: bytes) -> str:
    """Return the address that looks up the region that begins with ``start``; its table's if ``start`` is too long."""
    row = {"row": printable(start)} if len(start) <= LINKED_BYTES else {}
    return f"/where?{urlencode({'table': table, **row})}"


def answered(request: Request, build_row_status: Callable[[str, bytes], RowStatus]) -> Answer:
    """Search the row of the request; ``build_row_status`` raises ColumnarError if table or region is missing."""
    table, row = request.args.get("table", "").strip(), request.args.get("row", "")
    if not table:
        return Answer(table, row)
    try:
        return Answer(table, row, build_row_status(table, checked_row(row_of(row) or FIRST_ROW)))
    except ColumnarError as error:
        return Answer(table, row, error=error.wire_message)


COLOURS: Final = 8  # of servers; the ninth server has the first's colour, and is told apart by its name
_LEAST: Final = 0.25  # the width of an empty region, as a share of the mean size
_LABEL_PERCENT: Final = 9.0  # a narrower region has no label
_PALEST: Final = 0.25


@dataclass(frozen=True, slots=True)
class Stretch:
    """A region as drawn on the strip."""

    region: RegionStatus
    left: float  # percent
    width: float
    colour: int  # 1 to COLOURS; 0 if no server serves the region
    shade: float  # 0 to 1
    label: str  # empty if it has no room

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


@dataclass(frozen=True, slots=True)
class Legend:
    server: str
    colour: int
    regions: int
    load: float


def colour_of(server: str, servers: Sequence[str]) -> int:
    return servers.index(server) % COLOURS + 1 if server in servers else 0


def strip_of(regions: Sequence[RegionStatus], servers: Sequence[str]) -> list[Stretch]:
    """Return the strip that shows ``regions``, given in the order of their keys.

    ``servers`` has the names of all servers in an order that does not change.
    """
    if not regions:
        return []
    least = 1 + _LEAST * sum(one.size_bytes for one in regions) / len(regions)
    weights = [max(least, one.size_bytes) for one in regions]
    whole, busiest = sum(weights), max(one.load for one in regions)
    found, left = [], 0.0
    for look, weight in zip(regions, weights, strict=True):
        width = 100 * weight / whole
        shade = _PALEST + (1 - _PALEST) * (look.load / busiest if busiest > 0 else 0.0)
        label = (look.server or "nobody") if width >= _LABEL_PERCENT else ""
        if label and look.state != OPEN:
            label = look.state.lower()
        found.append(Stretch(look, left, width, colour_of(look.server, servers), shade, label))
        left += width
    return found


def legend_of(regions: Sequence[RegionStatus], servers: Sequence[str]) -> list[Legend]:
    """Return the servers that have some of the regions, and last an entry for regions without a server."""
    found = []
    for name in (*servers, ""):
        owned = [one for one in regions if one.server == name]
        if owned:
            found.append(Legend(name or "nobody", colour_of(name, servers), len(owned), sum(one.load for one in owned)))
    return found
