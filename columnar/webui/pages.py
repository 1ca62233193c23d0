"""The WSGI application: ``/``, ``/metrics``, ``/health``, and the page's style and icon.

Read only.  Every answer forbids scripts, frames and foreign content; what the page shows goes
through a template that escapes (tables, rows and error texts come from strangers).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from prometheus_client import CollectorRegistry
from werkzeug.wrappers import Request, Response

from columnar.errors import shown
from columnar.webui.host import memory_bytes, sizes_of
from columnar.webui.metrics import CONTENT_TYPE, exposition, registry_of
from columnar.webui.status import NotAnswering, Status, TableLine

REFRESH_S: Final = 5
REGIONS_SHOWN: Final = 200  # of one table
_ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><g fill="#3b82c4">'
    '<rect x="1" y="6" width="3.6" height="9" rx="1"/><rect x="6.2" y="1" width="3.6" height="14" rx="1"/>'
    '<rect x="11.4" y="9" width="3.6" height="6" rx="1"/></g></svg>'
)
_SAFE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


StatusOf = Callable[[], Status]  # raises NotAnswering


@dataclass(frozen=True, slots=True)
class RegionRow:
    encoded: str
    start: str
    end: str
    is_open: bool
    reads: int
    writes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TableRow:
    line: TableLine
    size_bytes: int
    regions: tuple[RegionRow, ...]
    hidden_regions: int


class StatusPages:
    """One instance serves all requests, from any thread: it holds nothing that changes."""

    def __init__(self, status: StatusOf, ping: Callable[[], None], store: str = "") -> None:
        """``store``: its address, told to a client that took this port for the store's."""
        self._status = status
        self._ping = ping
        self._registry: CollectorRegistry = registry_of(status)
        self._headers = {**_SAFE_HEADERS, "X-Columnar-Store": store}
        self._page = _environment().get_template("status.html")
        self._answers: dict[str, Callable[[], Response]] = {
            "/": self._index,
            "/metrics": self._metrics,
            "/health": self._health,
            "/style.css": lambda: Response(_style(), mimetype="text/css"),
            "/icon.svg": lambda: Response(_ICON, mimetype="image/svg+xml"),
        }

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        response = self._answer(Request(environ))
        response.headers.update(self._headers)
        return response(environ, start_response)

    def _answer(self, request: Request) -> Response:
        answer = self._answers.get(request.path)
        if answer is None:
            return Response("There is /, /metrics and /health.\n", 404, mimetype="text/plain")
        if request.method not in ("GET", "HEAD"):
            return Response("This is for reading only.\n", 405, {"Allow": "GET, HEAD"}, mimetype="text/plain")
        try:
            return answer()
        except NotAnswering as error:
            return Response(f"unhealthy: {error}\n", 503, mimetype="text/plain")

    def _health(self) -> Response:
        self._ping()
        return Response("ok\n", mimetype="text/plain")

    def _metrics(self) -> Response:
        return Response(exposition(self._registry), content_type=CONTENT_TYPE)

    def _index(self) -> Response:
        status = self._status()
        html = self._page.render(
            status=status,
            tables=[_table_row(table) for table in status.tables],
            peak=max(status.rates, default=0.0),
            line=sparkline(status.rates),
            memory_bytes=memory_bytes(),
            refresh_s=REFRESH_S,
        )
        return Response(html, mimetype="text/html")


def _table_row(table: TableLine) -> TableRow:
    sizes = sizes_of(table)
    rows = [
        RegionRow(r.encoded, shown(r.start), shown(r.end), r.is_open, r.reads, r.writes, size)
        for r, size in zip(table.regions[:REGIONS_SHOWN], sizes, strict=False)
    ]
    return TableRow(table, sum(sizes), tuple(rows), max(0, len(table.regions) - REGIONS_SHOWN))


def sparkline(rates: tuple[float, ...], *, width: int = 600, height: int = 60) -> str:
    """The points of an SVG polyline; the newest at the right edge, the highest at the top."""
    top = max([*rates, 1.0])
    step = width / 119  # two minutes, however many of them there have been
    first = width - step * (len(rates) - 1)
    return " ".join(
        f"{first + n * step:.1f},{height - 2 - rate / top * (height - 4):.1f}" for n, rate in enumerate(rates)
    )


def bytes_text(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1_000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:.1f} TB"


def seconds_text(seconds: float) -> str:
    """A latency: the unit that leaves a readable number."""
    if math.isinf(seconds):
        return "> 10 s"
    return f"{seconds * 1_000:g} ms" if seconds < 1 else f"{seconds:g} s"


def duration_text(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _environment() -> Environment:
    environment = Environment(loader=PackageLoader("columnar.webui"), autoescape=True, undefined=StrictUndefined)
    environment.filters.update(
        {"bytes": bytes_text, "latency": seconds_text, "duration": duration_text, "number": lambda n: f"{n:,}"}
    )
    return environment


@cache
def _style() -> str:
    return (files("columnar.webui") / "templates" / "style.css").read_text(encoding="utf-8")
