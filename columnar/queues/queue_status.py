"""Shows what is in a queue without giving anything out: its first messages, and its counts.  Owned by the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import nlargest
from time import time_ns
from typing import Final

from columnar.model.flow_status import QUEUE, FlowStatus
from columnar.queues.desk import POP_BYTES, Desk, check_call, found_message
from columnar.queues.keys import LeaseCell, Settings, Subqueue
from columnar.queues.queue_rows import Found
from columnar.queues.queue_state import QueueState, Touched

QUEUES_LISTED: Final = 100  # of a server, among the flows of data


@dataclass(frozen=True, slots=True)
class QueueStats:
    messages: int
    ready: int
    in_flight: int
    delayed: int
    dead: int
    pushed: int
    committed: int
    oldest_ms: int  # how long ago the oldest ready message was pushed; 0: there is none
    push_rate_per_s: float  # over the last minute, by the server that owns the queue, as is the next
    commit_rate_per_s: float
    settings: Settings


def peek(desk: Desk, count: int) -> list[Found]:
    """Return messages in the order in which they are given out within each subqueue, without giving them out."""
    check_call(count, 0)
    desk.end_waits()
    desk.fill_subqueues()
    visible: list[Found] = []
    size = 0
    for subqueue, n in _first_messages(desk.state, count)[:count]:
        message = desk.rows.message(subqueue, n)
        if message is None or size > POP_BYTES:
            continue
        size += len(message.body)
        touched = desk.state.touched.get(n) or Touched(n, LeaseCell(0, 0, 0, subqueue))
        visible.append(found_message(touched, message))
    return visible


def stats_of(desk: Desk) -> QueueStats:
    desk.end_waits()
    desk.fill_subqueues()
    totals, state, waits = desk.totals, desk.state, desk.state.waits
    oldest = _oldest_message(state)
    age_ms = max(1, time_ns() // 1_000_000 - oldest // 1_000) if oldest else 0
    return QueueStats(
        totals.messages, totals.messages - waits.in_flight - waits.delayed, waits.in_flight, waits.delayed,
        totals.dead, totals.pushed, totals.committed, age_ms, desk.traffic.push_rate_per_s(desk.region.now_ms),
        desk.traffic.commit_rate_per_s(desk.region.now_ms), state.settings,
    )  # fmt: skip


class QueueFlows:
    """The queues of a server among its flows of data.

    The consumers of a queue read it, and its dead messages may go to another queue.  The lag is what is ready, retried
    is what is out or delayed.  A look costs no read: counts are those of the desks' memory.
    """

    def __init__(self, desks: Callable[[], Iterable[Desk]]) -> None:
        self._desks = desks

    def flow_statuses(self) -> list[FlowStatus]:
        """Return the queues that were used here, at most QUEUES_LISTED, those with most messages."""
        desks = nlargest(QUEUES_LISTED, self._desks(), key=lambda desk: desk.totals.messages)
        return [_flow_status_of(desk) for desk in desks]


def _flow_status_of(desk: Desk) -> FlowStatus:
    totals, waits, settings = desk.totals, desk.state.waits, desk.state.settings
    name = desk.queue.decode("latin-1")
    ready = max(0, totals.messages - waits.in_flight - waits.delayed)
    oldest = _oldest_message(desk.state) if ready else None
    return FlowStatus(
        QUEUE,
        name,
        (f"{QUEUE}:{name}",),
        (f"{QUEUE}:{settings.dead_to.decode('latin-1')}",) if settings.dead_to else (),
        lag_changes=ready,
        lag_seconds=max(0.0, time_ns() / 1e9 - oldest / 1e6) if oldest else 0.0,
        rate_per_s=desk.traffic.commit_rate_per_s(desk.region.now_ms),
        delivered=totals.committed,
        parked=waits.in_flight + waits.delayed,
        dead=totals.dead,
    )


def _first_messages(state_of: QueueState, count: int) -> list[tuple[Subqueue, int]]:
    """Return messages that are in memory, at most ``count`` of each kind: those that wait, then touched ones."""
    found: list[tuple[Subqueue, int]] = []
    for state in sorted(state_of.subqueues.values(), key=lambda one: one.key):
        found += [(state.key, n) for n in sorted(state.ready)[: count - len(found)]]
        if len(found) >= count:
            break
    known = {n for _, n in found}
    for touched in state_of.touched.values():
        if len(found) >= 2 * count:
            break
        if touched.n not in known:
            found.append((touched.subqueue, touched.n))
    return found


def _oldest_message(state_of: QueueState) -> int | None:
    """The lowest ``n`` of the ready messages in memory."""
    return min((state.ready[0] for state in state_of.subqueues.values() if state.ready), default=None)
