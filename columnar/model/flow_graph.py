"""(pure) The graph of flows: which table feeds which follower, and where each follower writes.

    place     a family of a table, "pages/body"; a whole table, "pages"; a queue or a topic, "queue:thumbs"
    flow      a trigger, a view, a feed, the consumer of a queue: it reads places and writes places
    edge      from one flow to a second one, if a place that the first writes overlaps a place that the second reads

Edges connect families: a flow that reads family ``own`` and writes family ``in`` of the same table does not feed
readers of ``own``.  A flow that names a table without a family counts as writing all its families.

Writes are declared by the flow or were observed; both make edges.  Writes through a trigger's client are neither
declared nor observed, so a cycle through them is not found.

Knows nothing of where definitions are kept and of how writes are observed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from columnar.errors import IllegalArgument, TriggerError
from columnar.model.trigger_registration import Registration

_INDENT: Final = 4


class Place(NamedTuple):
    table: str  # or queue:NAME, topic:NAME
    family: str = ""  # empty: the whole table

    def overlaps(self, other: Place) -> bool:
        return self.table == other.table and (not self.family or not other.family or self.family == other.family)

    def __str__(self) -> str:
        return f"{self.table}/{self.family}" if self.family else self.table


def place_of(text: str) -> Place:
    """Parse a place.  Raises IllegalArgument, with the correct form, for any other text."""
    table, slash, family = text.partition("/")
    if not table or (slash and not family) or "/" in family:
        raise IllegalArgument(f"place '{text}': write table, table/family, queue:NAME or topic:NAME")
    return Place(table, family)


@dataclass(frozen=True, slots=True)
class Flow:
    kind: str  # as of ``FollowerName``: trigger, view, ...
    name: str
    reads: tuple[Place, ...]
    writes: tuple[Place, ...] = ()
    seen: tuple[Place, ...] = ()  # observed writes that the flow does not declare

    @property
    def all_writes(self) -> tuple[Place, ...]:
        return (*self.writes, *(place for place in self.seen if place not in self.writes))

    def feeds(self, other: Flow) -> tuple[Place, Place] | None:
        """Return a place that this flow writes and an overlapping place that ``other`` reads, or None."""
        for written in self.all_writes:
            for read in other.reads:
                if written.overlaps(read):
                    return written, read
        return None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Measure:
    """The figures that the drawing shows beside a flow."""

    rate_per_s: float
    lag: int  # changes
    lag_s: float
    note: str = ""  # paused, building, 3 parked


@dataclass(frozen=True, slots=True)
class Cycle:
    """Flows that feed each other in a ring: the last flow feeds the first."""

    flows: tuple[Flow, ...]

    def __str__(self) -> str:
        parts = [str(self._into(0))]
        for at, flow in enumerate(self.flows):
            parts += [str(flow), str(self._into(at + 1))]
        return " -> ".join(parts)

    def _into(self, at: int) -> Place:
        """Return the place through which the flow at ``at`` is fed: the narrower of the overlapping two."""
        fed = self.flows[at - 1].feeds(self.flows[at % len(self.flows)])
        assert fed is not None, "the flows of a cycle feed each other"
        written, read = fed
        return written if written.family else read


class Graph:
    """Flows and their edges.  Constant; built in O(flows squared) when definitions change."""

    def __init__(self, flows: Iterable[Flow]) -> None:
        self.flows = tuple(sorted(flows, key=_name))
        self._fed_by_table: dict[str, list[Flow]] = {}
        for flow in self.flows:
            for table in {place.table for place in flow.reads}:
                self._fed_by_table.setdefault(table, []).append(flow)
        self._fed = {(flow.kind, flow.name): self._fed_by(flow) for flow in self.flows}

    def _fed_by(self, flow: Flow) -> tuple[Flow, ...]:
        tables = {place.table for place in flow.all_writes}
        near = {_name(other): other for table in tables for other in self._fed_by_table.get(table, ())}
        return tuple(near[name] for name in sorted(near) if flow.feeds(near[name]) is not None)

    def fed_by(self, flow: Flow) -> tuple[Flow, ...]:
        """Return the flows that read what ``flow`` writes, by name."""
        return self._fed[flow.kind, flow.name]

    def with_flow(self, flow: Flow) -> Graph:
        """Return the graph with ``flow``, which replaces the flow of the same kind and name if there is one."""
        return Graph([*(one for one in self.flows if _name(one) != _name(flow)), flow])

    def cycle_through(self, flow: Flow) -> Cycle | None:
        """Return the shortest cycle through the flow, counted as part of the graph, or None if there is none."""
        graph = self.with_flow(flow)
        came_from: dict[tuple[str, str], Flow] = {}
        waiting = deque([flow])
        while waiting:
            at = waiting.popleft()
            for other in graph.fed_by(at):
                if _name(other) == _name(flow):
                    return Cycle(_path_to(at, flow, came_from))
                if _name(other) not in came_from:
                    came_from[_name(other)] = at
                    waiting.append(other)
        return None

    def in_order(self) -> tuple[Flow, ...]:
        """Return the flows, each before the flows that it feeds; edges that close a cycle are ignored."""
        done: dict[tuple[str, str], None] = {}
        begun: set[tuple[str, str]] = set()
        for first in reversed(self.flows):  # keeps flows that do not feed each other in the order of names
            if _name(first) in begun:
                continue
            begun.add(_name(first))
            path = [(first, list(self.fed_by(first)))]
            while path:
                flow, left = path[-1]
                if not left:
                    done[_name(flow)] = None
                    path.pop()
                    continue
                other = left.pop()
                if _name(other) not in begun:
                    begun.add(_name(other))
                    path.append((other, list(self.fed_by(other))))
        by_name = {_name(flow): flow for flow in self.flows}
        return tuple(by_name[name] for name in reversed(done))

    # --- drawing -----------------------------------------------------------------------------------

    def drawing(self, measures: Mapping[tuple[str, str], Measure] | None = None) -> str:
        """Draw the graph for a terminal, in lines; ``measures`` are by kind and name.

        A flow that is reached a second time is only named there, with the note that it is drawn above.
        """
        lines: list[str] = []
        drawn: set[tuple[str, str]] = set()
        held = measures or {}
        fed = {_name(other) for flow in self.flows for other in self.fed_by(flow)}
        firsts = [flow for flow in self.in_order() if _name(flow) not in fed]
        for flow in (*firsts, *self.in_order()):  # then flows that only a cycle feeds
            if _name(flow) not in drawn:
                lines += [] if not lines else [""]
                lines.append(", ".join(map(str, flow.reads)))
                self._draw(flow, 0, held, drawn, lines)
        return "\n".join(lines) + "\n" if lines else "no flows\n"

    def _draw(
        self,
        first: Flow,
        depth: int,
        measures: Mapping[tuple[str, str], Measure],
        drawn: set[tuple[str, str]],
        lines: list[str],
    ) -> None:
        waiting = [(first, depth)]
        while waiting:
            flow, depth = waiting.pop()
            indent = " " * (_INDENT * depth)
            if _name(flow) in drawn:
                lines.append(f"{indent}-> {flow} (above)")
                continue
            drawn.add(_name(flow))
            lines.append(f"{indent}-> {flow}{_measured(measures.get(_name(flow)))}")
            for place in flow.all_writes:
                note = "" if place in flow.writes else " (seen, not declared)"
                lines.append(f"{indent}   {place}{note}")
            waiting += [(other, depth + 1) for other in reversed(self.fed_by(flow))]


def _name(flow: Flow) -> tuple[str, str]:
    return flow.kind, flow.name


def _path_to(last: Flow, first: Flow, came_from: Mapping[tuple[str, str], Flow]) -> tuple[Flow, ...]:
    path = [last]
    while _name(path[-1]) != _name(first):
        path.append(came_from[_name(path[-1])])
    return tuple(reversed(path))


def _measured(measure: Measure | None) -> str:
    if measure is None:
        return ""
    lag = f"lag {measure.lag:,}" + (f" ({measure.lag_s:.1f} s)" if measure.lag else "")
    return f"   {measure.rate_per_s:,.1f}/s  {lag}" + (f"  {measure.note}" if measure.note else "")


# --- triggers as flows -------------------------------------------------------------------------------


_TRIGGER: Final = "trigger"
_MESSAGES: Final = ("queue", "topic")  # before the colon of a place that no change log has
HOPS: Final = 16  # flows in a chain from a client's change; effects beyond are not written


def flow_of(registration: Registration, seen: Iterable[Place] = ()) -> Flow:
    """Return a trigger as a flow.  ``seen`` are the places that its effects were written to, declared or not."""
    reads = tuple(Place(registration.table, family) for family in registration.families)
    if registration.queue:
        reads = (Place(registration.name),)  # queue:NAME
    writes = tuple(map(place_of, registration.writes))
    return Flow(
        _TRIGGER, registration.name, reads, writes, tuple(place for place in seen if not _covers(writes, place))
    )


def _covers(writes: Iterable[Place], place: Place) -> bool:
    return any(one.table == place.table and one.family in ("", place.family) for one in writes)


def with_places(registration: Registration, tables: Collection[str]) -> Registration:
    """Return the registration with its writes in the stored form ``table/family``.

    A write may also be given as ``table:family``; the stored form has a slash because a table's name may hold a colon
    after its namespace.  Raises IllegalArgument if a table does not exist, or a queue or topic cannot have the name:
    whether there is one already is not asked, because a queue begins with its first message.
    """
    places = sorted({str(_place(text, tables)) for text in registration.writes})
    return replace(registration, writes=tuple(places))


def _place(text: str, tables: Collection[str]) -> Place:
    if text in tables:
        return Place(text)
    kind, _, name = text.partition(":")
    if kind in _MESSAGES and name:
        _check_name(kind, name)
        return Place(text)
    table, colon, family = text.rpartition(":")
    place = Place(table, family) if colon and family and table in tables else place_of(text)
    if place.table not in tables:
        raise IllegalArgument(f"trigger writes '{text}': there is no table {place.table}; create it first")
    return place


def _check_name(kind: str, name: str) -> None:
    if kind == "queue":
        from columnar.model.queue_place import checked_queue  # most triggers write tables

        checked_queue(name.encode())
    else:
        from columnar.model.topic import checked_name

        checked_name(name)


def check_no_cycle(registration: Registration, graph: Graph) -> None:
    """Raise IllegalArgument with the path if the trigger would run for its own changes, perhaps through other flows.

    Cycles through queues are allowed: a message may lead to the next one, and its pace is the queue's.
    """
    changes = Graph(map(_without_messages, graph.flows))
    cycle = None if registration.allow_cycle else changes.cycle_through(_without_messages(flow_of(registration)))
    if cycle is not None:
        raise IllegalArgument(
            f"trigger {registration.name} would follow its own changes: {cycle}; --allow-cycle adds it nevertheless, "
            f"and ends each such chain after {HOPS} changes"
        )


def _without_messages(flow: Flow) -> Flow:
    """Return the flow without its writes to queues and topics."""
    writes, seen = (
        tuple(place for place in places if place.table.partition(":")[0] not in _MESSAGES)
        for places in (flow.writes, flow.seen)
    )
    return replace(flow, writes=writes, seen=seen)


def check_seen(registration: Registration, place: Place, flows: Iterable[Flow]) -> None:
    """Raise TriggerError with the path if an effect into the undeclared place makes the trigger run again.

    ``flows`` is iterated only if that is possible.
    """
    declared = flow_of(registration, (place,))
    if not declared.seen or registration.allow_cycle:
        return
    cycle = Graph(flows).cycle_through(Flow(_TRIGGER, registration.name, declared.reads, declared.seen))
    if cycle is not None:
        raise TriggerError(
            f"trigger {registration.name} would run for its own changes: {cycle}; write elsewhere, or let it go round "
            f"at most {HOPS} times: columnar trigger add ... --allow-cycle with its other settings as they are"
        )
