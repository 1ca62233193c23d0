"""(pure) The declaration of a view, checked against its sources, the other views and the graph of flows.

Knows nothing of the catalogue's rows and of the servers that keep a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from columnar.errors import DamagedData, IllegalArgument, TableNotFound
from columnar.model.attributes import OWN_COMPRESSION
from columnar.model.derivations import KeptView, Reads, ViewSet, check_bounded
from columnar.model.flow_graph import Flow, Graph
from columnar.model.schema import Family, Table, make_table
from columnar.model.view_definition import (
    MEMBERS,
    ORDERED,
    TOTALS,
    Source,
    View,
    bound,
    check_families,
    checked,
    from_json,
    to_json,
)
from columnar.model.view_generations import base_of, role_of
from columnar.views.contributions import Rules, rules_of


def declared(data: bytes, view_set: ViewSet, tables: Mapping[str, Table], graph: Graph) -> KeptView:
    """Return the view that the JSON declares, with its sources bound; it has no state and no number yet.

    Raises IllegalArgument, TableNotFound or NoSuchColumnFamily, which say what is wrong and what would be right.
    """
    views = _definitions(view_set)
    view = bound(_of_live_generations(checked(_read(data)), view_set), views)
    for source in view.sources:
        if source.table not in tables:
            raise TableNotFound(source.table)
    rules = rules_of(view)
    kept = kept_as(view, rules)
    check_no_cycle(kept.flow, graph)
    for one in rules:
        check_bounded(tables[one.table], one.families_read, f"view {view.name}")
    for read in kept.reads:
        check_families(view.name, tables[read.table], frozenset(name.encode("latin-1") for name in read.families))
    return kept


def kept_as(view: View, rules: Iterable[Rules]) -> KeptView:
    """Return the view as the catalogue keeps it; ``rules`` are the rules of its sources."""
    families: dict[str, set[bytes]] = {}
    for one in rules:
        families.setdefault(one.table, set()).update(one.images)
    reads = [
        Reads(table, tuple(name.decode("latin-1") for name in sorted(names)))
        for table, names in sorted(families.items())
    ]
    return KeptView(view.name, to_json(view), tuple(reads))


def check_no_cycle(flow: Flow, graph: Graph) -> None:
    """Raise IllegalArgument with the path if the view would follow its own changes, through other flows."""
    cycle = graph.cycle_through(flow)
    if cycle is not None:
        raise IllegalArgument(f"{flow} would follow its own changes: {cycle}")


def _read(data: bytes) -> View:
    try:
        return from_json(data)
    except DamagedData as error:  # here the caller's fault
        raise IllegalArgument(error.text) from error


def _of_live_generations(view: View, view_set: ViewSet) -> View:
    """Replace each source that is a view by the table that the view's readers see.

    Raises IllegalArgument if a source is a generation that readers do not see: it will be dropped.
    """

    def live(source: Source) -> Source:
        table = view_set.live_table(source.table)
        if view_set.find(table) is not None and role_of(table, view_set.swaps) != "live":
            raise IllegalArgument(
                f"{source.table} is no source: readers of view {base_of(table)} do not see it, and it will be dropped; "
                f"follow {base_of(table)}"
            )
        return source if table == source.table else replace(source, table=table)

    return replace(view, source=live(view.source), join=None if view.join is None else live(view.join))


def _definitions(view_set: ViewSet) -> dict[str, View]:
    """Return the definitions of all usable views by the names of their tables."""
    return {one.name: definition_of(one) for one in view_set.all if not one.unusable_reason}


def definition_of(kept: KeptView) -> View:
    """Return the view's definition.  Raises DamagedData."""
    return from_json(kept.definition)


def table_of(kept: KeptView) -> Table:
    """Return the schema of the view's table; only its maintainer writes it."""
    families = [Family(name.decode(), compression=OWN_COMPRESSION) for name in (TOTALS, MEMBERS, ORDERED)]
    made = make_table(kept.name, families)
    return Table(made.name, made.families, made.attributes, made.next_number, kept.name)
