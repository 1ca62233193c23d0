"""(pure) A view as a flow of the graph: which families it reads, and that its writes lead back to none of them."""

from __future__ import annotations

from typing import Final

from columnar.errors import IllegalArgument
from columnar.model.flow_graph import Flow, Graph, Place
from columnar.model.view_definition import MEMBERS, ORDERED, TOTALS, View
from columnar.views.contributions import Rules

KIND: Final = "view"


def flow_of(view: View, rules: tuple[Rules, ...]) -> Flow:
    reads = {Place(one.table, family.decode("latin-1")) for one in rules for family in one.images}
    writes = tuple(Place(view.name, family.decode()) for family in (TOTALS, MEMBERS, ORDERED))
    return Flow(KIND, view.name, tuple(sorted(reads)), writes)


def check_no_cycle(flow: Flow, graph: Graph) -> None:
    """Raise IllegalArgument with the path if the view would follow its own changes, through others."""
    cycle = graph.cycle_through(flow)
    if cycle is not None:
        raise IllegalArgument(f"{flow} would follow its own changes: {cycle}")
