"""(pure) The waits after which a write has passed through the flow graph to a flow, and on through those that it feeds.

    a flow that no other flow feeds     is waited for until it has the write itself
    every other flow                    after all flows that feed it, until it has everything that was written by then
    a served queue                      is not waited for, nor what its target writes: no order has its messages

The second wait covers more than the write: which of the earlier flows' own writes came from it is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from columnar.model.flow_graph import Flow, Graph, Place
from columnar.model.flow_status import PUSH

Step = tuple[Flow, str]  # the flow, and the token that it must have; empty: everything written when the step begins
_OUTBOX: Final = "outbox"  # the kind of the follower that carries out sends


def wait_steps(graph: Graph, wanted: Iterable[Flow], token: str, *, downstream: bool = False) -> list[Step]:
    """Return the waits, in order, after which each wanted flow has the writes of ``token`` (empty: all written so far).

    With ``downstream`` also each flow that these feed.  The wanted flows are of the graph.  A flow whose writes are
    neither declared nor observed feeds nobody here.  The outbox goes with a flow that a served queue feeds: which
    queues it sends to is known when it has sent.
    """
    feeders = _feeders(graph)

    def fed_by(flow: Flow) -> Collection[Flow]:
        return [other for other in graph.fed_by(flow) if other.kind != PUSH]

    def fed_from(flow: Flow) -> Collection[Flow]:
        return [other for other in feeders.get(flow, ()) if other.kind != PUSH]

    targets = _closure(wanted, fed_by) if downstream else set(wanted)
    awaited = _closure(targets, fed_from)
    if any(flow.kind == PUSH for flow in _closure(targets, lambda flow: feeders.get(flow, ()))):
        awaited |= _closure([flow for flow in graph.flows if flow.kind == _OUTBOX], fed_from)
    in_order = [flow for flow in graph.in_order() if flow in awaited and flow.kind != PUSH]
    return [(flow, "" if fed_from(flow) else token) for flow in in_order]


def queue_before(graph: Graph, flow: Flow, tables: Collection[str]) -> tuple[str, Place] | None:
    """Return a table of ``tables`` whose changes reach the flow through queues alone, and the last such queue.

    Returns None if there is no such table.
    """
    feeders = _feeders(graph)
    served = [one for one in _closure([flow], lambda one: feeders.get(one, ())) if one.kind == PUSH]
    if not served:
        return None
    direct = _closure([flow], lambda one: [other for other in feeders.get(one, ()) if other.kind != PUSH])
    apart = sorted(set(tables) - _tables(direct))
    last = [one for one in served if any(other in direct for other in graph.fed_by(one))]
    for table in apart:
        for queue in sorted(last, key=str):
            if table in _tables(_closure([queue], lambda one: feeders.get(one, ()))):
                return table, queue.reads[0]
    return None


def _feeders(graph: Graph) -> dict[Flow, list[Flow]]:
    found: dict[Flow, list[Flow]] = {}
    for flow in graph.flows:
        for other in graph.fed_by(flow):
            found.setdefault(other, []).append(flow)
    return found


def _tables(flows: Iterable[Flow]) -> set[str]:
    return {place.table for flow in flows for place in flow.reads}


def _closure(flows: Iterable[Flow], near: Callable[[Flow], Collection[Flow]]) -> set[Flow]:
    found: set[Flow] = set()
    left = list(flows)
    while left:
        flow = left.pop()
        if flow not in found:
            found.add(flow)
            left += near(flow)
    return found
