"""The WSGI application: ``/``, ``/metrics``, ``/health``, ``/livez``, ``/readyz``, and the page's style and icon.

Read only.  On loopback only requests whose ``Host`` is this machine are answered (``wire.browsers``). Every answer
forbids scripts, frames and foreign content.  The templates escape all values, because names of tables, rows and error
texts come from strangers.

``StrictChannel`` refuses a request that states its length in two ways (RFC 9112, 6.1), with 400 and the end of its
connection: a proxy that uses the other length would take the end of the body for the next request.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from prometheus_client import CollectorRegistry
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from werkzeug.wrappers import Request, Response

from columnar.errors import abbreviate
from columnar.model.flow_status import silent_remark
from columnar.runtime.faults import FAULTS
from columnar.webui.host import memory_bytes, sizes_of
from columnar.webui.metrics import answer, registry_of
from columnar.webui.status import LIVE_PATHS, OLDER_PATHS, READY_PATHS, NotAnswering, Status, TableLine
from columnar.wire.browsers import Visitors, is_loopback

REFRESH_S: Final = 5
TABLES_PER_PAGE: Final = 100  # on the first page; a table's own page shows only the table
REGIONS_PER_PAGE: Final = 200  # of one table on its page, and of all tables together on the first page
MAX_LISTED_TRIGGERS: Final = 200
_ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><g fill="#3b82c4">'
    '<rect x="1" y="6" width="3.6" height="9" rx="1"/><rect x="6.2" y="1" width="3.6" height="14" rx="1"/>'
    '<rect x="11.4" y="9" width="3.6" height="6" rx="1"/></g></svg>'
)
_SAFE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
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


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The requested content of a page: the tables, or the regions of one table; ``page`` counts from 1."""

    table: str = ""
    page: int = 1

    @classmethod
    def from_request(cls, request: Request) -> PageRequest:
        text = request.args.get("page", "")
        page = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
        return cls(request.args.get("table", ""), max(1, page))

    def link(self, page: int) -> str:
        return "/?" + urlencode({"table": self.table, "page": page} if self.table else {"page": page})


class Pages:
    """Pages by their paths.  An instance is constant and serves all requests, from any thread."""

    def __init__(
        self, answers: dict[str, Callable[[Request], Response]], store: str, visitors: Visitors | None
    ) -> None:
        """Pass the store's address as ``store``; answers name it to clients that took this port for the store's."""
        self._visitors = visitors or Visitors()
        self._headers = {**_SAFE_HEADERS, "X-Columnar-Store": store}
        self._answers: dict[str, Callable[[Request], Response]] = {
            **answers,
            "/style.css": lambda _: Response(_style(), mimetype="text/css"),
            "/icon.svg": lambda _: Response(_ICON, mimetype="image/svg+xml"),
        }
        self._known = ", ".join(path.replace("*", "NAME") for path in answers if path not in OLDER_PATHS)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        response = self._answer(Request(environ))
        response.headers.update(self._headers)
        sent: Iterable[bytes] = response(environ, start_response)
        return sent

    def _answer(self, request: Request) -> Response:
        why = self._visitors.refuses_host(request.headers.get("Host"))
        if why is not None:
            return Response(f"{why}\n", 403, mimetype="text/plain")
        refused = self._refused_by_guard(request)
        if refused is not None:
            return refused
        above = request.path.rpartition("/")[0]
        answer = self._answers.get(request.path) or self._answers.get(f"{above}/*")
        if answer is not None and request.method not in ("GET", "HEAD"):
            return Response("This is for reading only.\n", 405, {"Allow": "GET, HEAD"}, mimetype="text/plain")
        try:
            return answer(request) if answer is not None else self._unknown(request)
        except NotAnswering as error:
            return Response(f"unhealthy: {error}\n", 503, mimetype="text/plain")

    def _refused_by_guard(self, request: Request) -> Response | None:
        guard = self._visitors.guard
        if guard is None or request.path in (*LIVE_PATHS, *READY_PATHS):
            return None
        host = request.remote_addr or ""
        is_private = request.scheme == "https" or is_loopback(host)
        refused = guard(request.headers.get("Authorization", ""), host, is_private)
        if refused is None:
            return None
        status, why = refused
        headers = {"WWW-Authenticate": 'Basic realm="columnar", charset="UTF-8"'} if status == 401 else {}
        return Response(f"{why}\n", status, headers, mimetype="text/plain")

    def _unknown(self, _request: Request) -> Response:
        """Return the answer for a path that is none of the pages; may raise NotAnswering."""
        *first, last = self._known.split(", ")
        return Response(f"There is {', '.join(first)} and {last}.\n", 404, mimetype="text/plain")


def health_of(*faults: Sequence[str], notes: Sequence[str] = ()) -> Response:
    """Return the answer of ``/health``: 503 with a line for each fault, if there is one; then the notes.

    Loops of this process that have stopped working are faults.  Recent exceptions that loops survived are notes.
    """
    lines = [f"unhealthy: {fault}\n" for found in (*faults, FAULTS.stuck()) for fault in found]
    text = [*(lines or ["ok\n"]), *(f"{note}\n" for note in (*notes, *FAULTS.recent()))]
    return Response("".join(text), 503 if lines else 200, mimetype="text/plain")


def ready_of(obstacles: Sequence[str]) -> Response:
    """Return the answer of ``/readyz``: 503 with the first obstacle in a sentence, if there is one."""
    text = f"not ready: {obstacles[0]}\n" if obstacles else "ready\n"
    return Response(text, 503 if obstacles else 200, mimetype="text/plain")


def live() -> Response:
    """Return the answer of ``/livez``; call once the loop has answered.  A restart would not end any other fault."""
    return Response("ok\n", mimetype="text/plain")


class StatusPages(Pages):
    def __init__(
        self,
        status: StatusOf,
        faults: Callable[[], Sequence[str]],
        page: Template,
        store: str,
        visitors: Visitors | None,
        more: Mapping[str, Callable[[Request], Response]],
        notes: Callable[[], Sequence[str]],
    ) -> None:
        """Pass the template of ``/`` as ``page``, and other pages by their paths as ``more``.

        ``faults`` returns the store's faults, ``notes`` what else ``/health`` says, or they raise NotAnswering.
        """
        self._status = status
        self._faults = faults
        self._notes = notes
        self._registry: CollectorRegistry = registry_of(status)
        self._page = page
        answers: dict[str, Callable[[Request], Response]] = {
            "/": self._index,
            "/metrics": lambda request: answer(self._registry, request),
            "/health": lambda _: self._health(),
            **dict.fromkeys(LIVE_PATHS, lambda _: self._live()),
            **dict.fromkeys(READY_PATHS, lambda _: self._ready()),
            **more,
        }
        super().__init__(answers, store, visitors)

    def _health(self) -> Response:
        return health_of(self._faults(), notes=self._notes())

    def _live(self) -> Response:
        """Answer ``/livez`` if the loop iterates."""
        self._faults()
        return live()

    def _ready(self) -> Response:
        """Answer ``/readyz`` if the loop iterates: readers are served whatever the disk does."""
        self._faults()
        return ready_of(())

    def _index(self, request: Request) -> Response:
        """Return the first page, whose size is bounded however many tables and regions there are."""
        status, requested = self._status(), PageRequest.from_request(request)
        lines = [line for line in status.tables if not requested.table or line.name == requested.table]
        if requested.table and not lines:
            return Response("There is no such table.\n", 404, mimetype="text/plain")
        count, at_once = (len(lines[0].regions), REGIONS_PER_PAGE) if requested.table else (len(lines), TABLES_PER_PAGE)
        pages = max(1, -(-count // at_once))
        page = min(requested.page, pages)
        first = (page - 1) * at_once
        rows = (
            _limited_table_rows(lines[first : first + at_once])
            if not requested.table
            else [_table_row(lines[0], first)]
        )
        html = self._page.render(
            status=status,
            tables=rows,
            asked=requested,
            page=page,
            pages=pages,
            triggers=status.triggers[:MAX_LISTED_TRIGGERS],
            peak=max(status.rates, default=0.0),
            line=sparkline(status.rates),
            memory_bytes=memory_bytes(),
            refresh_s=REFRESH_S,
        )
        return Response(html, mimetype="text/html")


def status_pages(
    status: StatusOf,
    faults: Callable[[], Sequence[str]],
    store: str = "",
    visitors: Visitors | None = None,
    more: Mapping[str, Callable[[Request], Response]] | None = None,
    notes: Callable[[], Sequence[str]] = tuple,
) -> StatusPages:
    """Return the application, with its template read from the package."""
    return StatusPages(status, faults, environment().get_template("status.html"), store, visitors, more or {}, notes)


def _limited_table_rows(lines: Sequence[TableLine]) -> list[TableRow]:
    left, rows = REGIONS_PER_PAGE, []
    for line in lines:
        rows.append(_table_row(line, 0, left))
        left -= len(rows[-1].regions)
    return rows


def _table_row(table: TableLine, first: int, at_most: int = REGIONS_PER_PAGE) -> TableRow:
    sizes = sizes_of(table)
    rows = [
        RegionRow(r.encoded, abbreviate(r.start), abbreviate(r.end), r.is_open, r.reads, r.writes, size)
        for r, size in zip(table.regions[first : first + at_most], sizes[first:], strict=False)
    ]
    return TableRow(table, sum(sizes), tuple(rows), len(table.regions) - len(rows))


def sparkline(rates: tuple[float, ...], *, width: int = 600, height: int = 60) -> str:
    """Return the points of an SVG polyline; the newest at the right edge, the highest at the top."""
    top = max([*rates, 1.0])
    step = width / 119  # the width is always two minutes, even if fewer have passed
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
    """Return a latency as text, in the unit that gives a readable number."""
    if math.isinf(seconds):
        return "> 10 s"
    return f"{seconds * 1_000:g} ms" if seconds < 1 else f"{seconds:g} s"


def clock_text(at_ms: float) -> str:
    """Return a Unix time in milliseconds as date and time of day, UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at_ms / 1_000))


def duration_text(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def environment() -> Environment:
    """Return the environment of the templates of all pages."""
    made = Environment(loader=PackageLoader("columnar.webui"), autoescape=True, undefined=StrictUndefined)
    made.filters.update(
        {
            "bytes": bytes_text,
            "latency": seconds_text,
            "duration": duration_text,
            "clock": clock_text,
            "number": lambda n: f"{n:,}",
            "unanswered": silent_remark,
        }
    )
    made.filters["key"] = unbroken
    return made


_BYTE: Final = re.compile(r"(\\x[0-9A-Fa-f]{2})")


def unbroken(text: str) -> Markup:
    """Return a row key, as ``shown`` writes it, such that browsers break lines beside ``\\x00``, not within."""
    return Markup("<wbr>").join(part for part in _BYTE.split(text) if part)


@cache
def _style() -> str:
    return (files("columnar.webui") / "templates" / "style.css").read_text(encoding="utf-8")


class _Parser(HTTPRequestParser):  # type: ignore[misc]  # waitress ships no types
    def parse_header(self, header_plus: bytes) -> None:
        """Parse the header.  Raises ParsingError, which is answered with 400."""
        super().parse_header(header_plus)
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            raise ParsingError("A request has either Content-Length or Transfer-Encoding, not both.")
        if "TRANSFER_ENCODING" in self.headers:  # waitress removes it if it understood the encoding
            raise ParsingError("Transfer-Encoding needs HTTP/1.1.")


class StrictChannel(HTTPChannel):  # type: ignore[misc]
    parser_class = _Parser
