"""(pure) The drawing of flows as a list of rows with arcs: places and flows from top to bottom, in the order of data.

    left    arcs from each place to the flows below that it feeds, and from each flow to the places below that it writes
    right   arcs that lead back up: they close a cycle

Heights and widths are those of an SVG without script.  The list is as wide as a phone, however many flows there are.
Knows nothing of templates and requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from columnar.model.flow_look import FlowLook, graph_of

WIDTH: Final = 358  # of a phone's page
ROW: Final = 44
LEFT: Final = 70  # of the texts; arcs stand beside them
RIGHT: Final = 318
NAME_LETTERS: Final = 26
FLOWS_DRAWN: Final = 100


@dataclass(frozen=True, slots=True)
class Row:
    y: int  # of its middle
    name: str
    figures: str  # empty: a place
    is_ill: bool = False


@dataclass(frozen=True, slots=True)
class Arc:
    path: str  # of an SVG path
    is_back: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    rows: tuple[Row, ...]
    arcs: tuple[Arc, ...]
    width: int
    height: int


def drawing_of(looks: Sequence[FlowLook]) -> Drawing:
    by_name = {(look.kind, look.name): look for look in looks[:FLOWS_DRAWN]}
    order = [by_name[flow.kind, flow.name] for flow in graph_of(by_name.values()).in_order()]
    places: dict[str, int] = {}  # table -> row
    rows: list[Row] = []
    edges: list[tuple[int, int]] = []

    def place(text: str) -> int:
        table = text.partition("/")[0]
        if table not in places:
            places[table] = len(rows)
            rows.append(Row(_y(len(rows)), _short(table), ""))
        return places[table]

    for look in order:
        sources = {place(text) for text in look.reads}
        at = len(rows)
        rows.append(Row(_y(at), _short(f"{look.kind} {look.name}"), _figures(look), bool(look.dead or look.error)))
        edges += [(source, at) for source in sorted(sources)]
        edges += [(at, target) for target in sorted({place(text) for text in (*look.writes, *look.seen)})]
    arcs = tuple(_arc(a, b) for a, b in edges)
    return Drawing(tuple(rows), arcs, WIDTH, ROW * len(rows))


def _figures(look: FlowLook) -> str:
    measure = look.measure
    lag = f"lag {measure.lag:,}" + (f" ({measure.lag_s:.1f} s)" if measure.lag else "")
    return f"{measure.rate_per_s:,.1f}/s, {lag}" + (f", {measure.note}" if measure.note else "")


def _short(text: str) -> str:
    return text if len(text) <= NAME_LETTERS else text[: NAME_LETTERS - 1] + "…"


def _y(row: int) -> int:
    return ROW * row + ROW // 2


def _arc(start: int, end: int) -> Arc:
    """A curve that is the wider the further it goes; down at the left of the texts, up at their right."""
    a, b = _y(start), _y(end)
    bow = min(56, 14 + 7 * abs(end - start))
    is_back = end < start
    x, out = (RIGHT, RIGHT + min(bow, WIDTH - RIGHT - 4)) if is_back else (LEFT - 8, LEFT - 8 - bow)
    return Arc(f"M{x} {a}C{out} {a} {out} {b} {x} {b}", is_back)
