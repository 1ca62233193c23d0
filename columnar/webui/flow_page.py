"""``/flows``: a drawing, without script, of which table feeds which trigger and view, and a table of figures.

The drawing is a list of rows with arcs: places (tables) and flows from top to bottom, in the direction of the data.

    left    arcs from each place to the flows below it that it feeds, and from each flow to the places below it that
            it writes
    right   arcs that go back up, and so close a cycle

Heights and widths are computed here, because the SVG has no script.  However many flows there are, the list is as wide
as a phone's screen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from werkzeug.wrappers import Request, Response

from columnar.model.flow_status import FlowStatus, graph_of
from columnar.webui.cluster_status import PageStatus

FlowStatuses = tuple[Sequence[FlowStatus], Sequence[str]]  # status of flows, and names of servers that did not answer
MAX_LISTED_FLOWS: Final = 200


class FlowPage:
    """The page ``/flows``.  Constant after construction."""

    def __init__(
        self, read_flows: Callable[[], FlowStatuses], status: Callable[[], PageStatus], page: Callable[..., Response]
    ) -> None:
        """Pass functions that are called in the web thread; ``read_flows`` and ``status`` call the loop."""
        self._read_flows = read_flows
        self._status = status
        self._page = page

    def answer(self, _request: Request) -> Response:
        flows, silent = self._read_flows()
        return self._page(
            "flows.html",
            self._status(),
            flows=flows[:MAX_LISTED_FLOWS],
            drawing=drawing_of(flows),
            hidden=max(0, len(flows) - FLOWS_DRAWN),
            silent=silent,
        )


WIDTH: Final = 358  # of a phone's page
ROW: Final = 44
LEFT: Final = 70  # where texts begin, beside the left arcs
RIGHT: Final = 318
NAME_WIDTH: Final = RIGHT - LEFT - 10  # of names and figures, before the right arcs
NAME_SIZE: Final = 14
FIGURES_SIZE: Final = 12
# Widths of letters as a share of the font size, in the widest usual font; all other letters count as MIDDLE.
MIDDLE: Final = 0.64
_WIDTHS: Final = {**dict.fromkeys("ijlItfr.,:;|!'()[]/ -", 0.42), **dict.fromkeys("mwMWQO@%", 1.0)}
FLOWS_DRAWN: Final = 100


@dataclass(frozen=True, slots=True)
class Row:
    y: int  # of its middle
    name: str
    figures: str  # empty for a place
    is_ill: bool = False


@dataclass(frozen=True, slots=True)
class Arc:
    path: str  # of an SVG path
    is_upward: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    rows: tuple[Row, ...]
    arcs: tuple[Arc, ...]
    width: int
    height: int


def drawing_of(flows: Sequence[FlowStatus]) -> Drawing:
    by_name = {(look.kind, look.name): look for look in flows[:FLOWS_DRAWN]}
    order = [by_name[flow.kind, flow.name] for flow in graph_of(by_name.values()).in_order()]
    places: dict[str, int] = {}  # table -> row
    rows: list[Row] = []
    edges: list[tuple[int, int]] = []

    def place(text: str) -> int:
        table = text.partition("/")[0]
        if table not in places:
            places[table] = len(rows)
            rows.append(Row(_y(len(rows)), fitted(table, NAME_SIZE), ""))
        return places[table]

    for look in order:
        sources = {place(text) for text in look.reads}
        at = len(rows)
        name = fitted(f"{look.kind} {look.name}", NAME_SIZE)
        rows.append(Row(_y(at), name, fitted(_figures(look), FIGURES_SIZE), bool(look.dead or look.error)))
        edges += [(source, at) for source in sorted(sources)]
        edges += [(at, target) for target in sorted({place(text) for text in (*look.writes, *look.seen)})]
    arcs = tuple(_arc(a, b) for a, b in edges)
    return Drawing(tuple(rows), arcs, WIDTH, ROW * len(rows))


def _figures(look: FlowStatus) -> str:
    measure = look.measure
    lag = f"lag {measure.lag:,}" + (f" ({measure.lag_s:.1f} s)" if measure.lag else "")
    return f"{measure.rate_per_s:,.1f}/s, {lag}" + (f", {measure.note}" if measure.note else "")


def fitted(text: str, size: int, width: int = NAME_WIDTH) -> str:
    """Return the text, or as much of its beginning as is not wider than ``width`` pixels in letters of ``size``."""
    if sum(map(_width, text)) * size <= width:
        return text
    left = width / size - 1.0  # room for the ellipsis
    for at, letter in enumerate(text):
        left -= _width(letter)
        if left < 0:
            return text[:at].rstrip() + "…"
    return text


def _width(letter: str) -> float:
    if letter in _WIDTHS:
        return _WIDTHS[letter]
    return MIDDLE if ord(letter) < 0x1100 else 1.05  # letters of the Far East are squares


def _y(row: int) -> int:
    return ROW * row + ROW // 2


def _arc(start: int, end: int) -> Arc:
    """Return a curve, left of the texts if it goes down and right of them if it goes up; longer curves are wider."""
    a, b = _y(start), _y(end)
    bow = min(56, 14 + 7 * abs(end - start))
    is_upward = end < start
    x, out = (RIGHT, RIGHT + min(bow, WIDTH - RIGHT - 4)) if is_upward else (LEFT - 8, LEFT - 8 - bow)
    return Arc(f"M{x} {a}C{out} {a} {out} {b} {x} {b}", is_upward)
