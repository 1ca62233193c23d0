"""(pure) A trigger as a flow of the graph: the families that it is registered on, and the places that it writes.

A registration names ``table``, ``table/family`` or ``table:family`` among its writes.  It is kept as ``table/family``:
the name of a table may hold a colon (its namespace).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from columnar.errors import IllegalArgument, TriggerError
from columnar.model.flow_graph import Flow, Graph, Place, place_of
from columnar.model.trigger_registration import Registration

KIND: Final = "trigger"
HOPS: Final = 16  # flows that a change of a client may lead through: effects of the change after it are not written


def flow_of(registration: Registration, seen: Iterable[Place] = ()) -> Flow:
    """``seen``: places that its effects went to, declared or not."""
    reads = tuple(Place(registration.table, family) for family in registration.families)
    writes = tuple(map(place_of, registration.writes))
    return Flow(KIND, registration.name, reads, writes, tuple(place for place in seen if not _covers(writes, place)))


def _covers(writes: Iterable[Place], place: Place) -> bool:
    return any(one.table == place.table and one.family in ("", place.family) for one in writes)


def with_places(registration: Registration, tables: Collection[str]) -> Registration:
    """With its writes as they are kept.  IllegalArgument: a table that there is not."""
    places = sorted({str(_place(text, tables)) for text in registration.writes})
    return replace(registration, writes=tuple(places))


def _place(text: str, tables: Collection[str]) -> Place:
    if text in tables:
        return Place(text)
    table, colon, family = text.rpartition(":")
    place = Place(table, family) if colon and family and table in tables else place_of(text)
    if place.table not in tables:
        raise IllegalArgument(f"trigger writes '{text}': there is no table {place.table}; create it first")
    return place


def check_no_cycle(registration: Registration, graph: Graph) -> None:
    """Raise IllegalArgument with the path if the trigger would run for its own changes, through other flows."""
    cycle = None if registration.allow_cycle else graph.cycle_through(flow_of(registration))
    if cycle is not None:
        raise IllegalArgument(
            f"trigger {registration.name} would follow its own changes: {cycle}; --allow-cycle adds it nevertheless, "
            f"and ends each such chain after {HOPS} changes"
        )


def check_seen(registration: Registration, place: Place, flows: Iterable[Flow]) -> None:
    """Raise TriggerError with the path if an effect into the undeclared place leads back to the trigger.

    ``flows``: called only if that is possible.
    """
    declared = flow_of(registration, (place,))
    if not declared.seen or registration.allow_cycle:
        return
    cycle = Graph(flows).cycle_through(Flow(KIND, registration.name, declared.reads, declared.seen))
    if cycle is not None:
        raise TriggerError(
            f"trigger {registration.name} would run for its own changes: {cycle}; write elsewhere, or let it go round "
            f"at most {HOPS} times: columnar trigger add ... --allow-cycle with its other settings as they are"
        )
