"""The thread that watches all records, and leads if it may: polls, the leader's lease, fences.

The thread keeps the cluster's time, that of the fastest machine by the records, for the servers of this node
(``LeasePage.write_time_base``).  This time goes on by the time since the machine's start, so if a clock is set back,
timestamps do not stand still until it has caught up.  A time that is ahead by more than CLOCK_AHEAD_MS is not followed.

It reports what a poll has changed, and while it leads the nodes that have ended.  It stops while the event loop hangs
(``service_thread``), because a leader whose loop hangs must be replaced.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum, auto
from typing import Protocol

from columnar.clock import system_ms
from columnar.coordination.cas import CasStore
from columnar.coordination.clock_check import CLOCK_AHEAD_MS, SET_CLOCKS, ClusterClock
from columnar.coordination.election import Candidate, CandidateState
from columnar.coordination.lease import LeaseTimes, PollRecords
from columnar.coordination.lease_page import LeasePage, boot_ms
from columnar.coordination.node_record import LeaderRecord, NodeRecord, encode_record
from columnar.coordination.service_thread import LoopCalls, ServiceThread
from columnar.errors import ColumnarError


class CandidateEvents(Protocol):
    """Reports of the thread; called on the loop."""

    def nodes_changed(self, nodes: Mapping[str, NodeRecord]) -> None: ...

    def node_ended(self, key: str, record: NodeRecord, *, is_by_time: bool) -> None: ...

    def leader_changed(self, leader: LeaderRecord | None) -> None: ...

    def elected(self, epoch: int) -> None: ...

    def epoch_written(self, epoch: int) -> None: ...

    def unlisted_over(self, nodes: Mapping[str, NodeRecord]) -> None:
        """The lease of each node that ``nodes`` does not have is over, and ``nodes`` was read after the election."""

    def deposed(self, why: str) -> None: ...


class Resignation(Enum):
    NONE = auto()
    FOR_NOW = auto()  # until the leader's record says so
    FOR_EVER = auto()


class CandidateThread(ServiceThread):
    """``leads`` is for any thread, the slots are the loop's; all else is the thread's."""

    def __init__(
        self,
        connect: Callable[[], CasStore],
        times: LeaseTimes,
        calls: LoopCalls,
        candidate: Candidate,
        own: LeaderRecord,
        page: LeasePage,
        events: CandidateEvents,
        clock: ClusterClock,
    ) -> None:
        """Pass ``own``, the record of this node as a leader; nonce and epoch are the candidate's.

        The thread writes the ``clock``.
        """
        super().__init__("election of the leader", connect, times, calls)
        self._candidate = candidate
        self._own = own
        self._page = page
        self._clock = clock
        self._events = events
        self._lock = threading.Lock()  # guards the slots of fences
        self._to_fence: frozenset[str] = frozenset()
        self._minimum = 0  # the epoch to lift to; set by the loop
        self._resignation = Resignation.NONE  # set by the loop; the thread ends one for now
        self._until_ms = 0  # the end of the leader's lease; read by any thread
        self._last: dict[str, NodeRecord] = {}  # the last record of each node, until its end is reported
        self._reported = 0  # ``changes`` of the polled records
        self._leader: LeaderRecord | None = None  # as reported
        self._epoch = 0  # as reported; 0: this node does not lead
        self._has_unlisted = False  # ``unlisted_over`` is still to be reported

    # --- called on the loop, or from any thread ------------------------------------------------------

    def leads(self) -> bool:
        """Tell whether this node leads now, by the clock."""
        return self._resignation is Resignation.NONE and boot_ms() < self._until_ms

    @property
    def nodes(self) -> Mapping[str, NodeRecord]:
        """Return the records of the last poll, with their logs and clocks."""
        return self._polled.nodes

    def synced_lengths(self, server: str) -> Mapping[int, int]:
        """Return the synced lengths of the server's segments by the last record about it."""
        return self._polled.synced_lengths(server)

    def request_fence(self, key: str) -> None:
        with self._lock:
            self._to_fence |= {key}
        self.wake()

    def lift_epoch(self, minimum: int) -> None:
        self._minimum = max(self._minimum, minimum)
        self.wake()

    def resign(self) -> None:
        """Lead no more, from now on; the thread ends when the record says so, or the lease is over."""
        with self._lock:
            self._resignation = Resignation.FOR_EVER
        self.wake()

    def step_down(self) -> None:
        """Lead no more from now on, and leave the next leadership to others.  Call it while this node leads."""
        with self._lock:
            if self._resignation is Resignation.NONE:
                self._resignation = Resignation.FOR_NOW
        self.wake()

    # --- the thread ----------------------------------------------------------------------------------

    def _has_ended(self) -> bool:
        is_resigning = self._resignation is Resignation.FOR_EVER
        return is_resigning and self._candidate.has_resigned and not self._candidate.is_waiting

    def _step(self, store: CasStore) -> None:
        self._wake.clear()
        now_ms = boot_ms()
        if self._calls.is_hung():
            self._wait_for_loop(self._times.poll_ms)
            return
        candidate = self._candidate
        self._take_slots(now_ms)
        request = candidate.next_request(now_ms)
        if request is None:
            if not self._has_ended():
                self._wait(candidate.due_ms)
            return
        candidate.on_answer(self._answer_of(store, request, self._compose), boot_ms())
        self._until_ms = candidate.until_ms
        self._report_leadership()
        if isinstance(request, PollRecords):
            self._report_nodes()

    def _failed(self, error: ColumnarError) -> None:
        """Do nothing: the renewal thread reports a service that gives no answer."""

    def _take_slots(self, now_ms: int) -> None:
        if self._resignation is Resignation.FOR_EVER:
            self._candidate.resign(now_ms)
            return
        if self._resignation is Resignation.FOR_NOW:
            self._step_down(now_ms)
            return
        with self._lock:
            keys, self._to_fence = self._to_fence, frozenset()
        for key in keys if self._epoch else ():
            self._candidate.members.request_fence(key)
        if self._epoch and self._minimum > self._candidate.epoch:
            self._candidate.lift_epoch(self._minimum, now_ms)

    def _step_down(self, now_ms: int) -> None:
        """Vacate the leadership; when that is written, or lost, this node may lead again."""
        state = self._candidate.state
        if state is CandidateState.FOLLOWING:
            with self._lock:
                if self._resignation is Resignation.FOR_NOW:
                    self._resignation = Resignation.NONE
        elif state is not CandidateState.RESIGNING:
            self._candidate.step_down(now_ms)

    def _compose(self) -> bytes:
        return encode_record(self._own_record())

    def _own_record(self) -> LeaderRecord:
        candidate = self._candidate
        is_vacated = candidate.state is CandidateState.RESIGNING
        return replace(self._own, nonce=candidate.nonce, epoch=candidate.epoch, vacated=is_vacated)

    # --- reports -------------------------------------------------------------------------------------

    def _report_leadership(self) -> None:
        candidate, events, call = self._candidate, self._events, self._calls.call
        is_leading = candidate.state is CandidateState.LEADING
        if self._epoch and not is_leading:
            self._epoch, self._minimum = 0, 0
            call(
                events.deposed,
                "it resigned"
                if self._resignation is not Resignation.NONE
                else "another node took the leader's lease over",
            )
        if is_leading and not self._epoch and self.leads():  # not if the answer came when the lease was over
            self._epoch, self._has_unlisted = candidate.epoch, True
            self._set_leader(self._own_record())
            call(events.elected, candidate.epoch)
        if self._epoch and candidate.written_epoch > self._epoch:
            self._epoch = candidate.written_epoch
            self._set_leader(self._own_record())
            call(events.epoch_written, self._epoch)

    def _set_leader(self, leader: LeaderRecord | None) -> None:
        if leader != self._leader:
            self._leader = leader
            self._calls.call(self._events.leader_changed, leader)

    def _report_nodes(self) -> None:
        polled, call = self._polled, self._calls.call
        if self._candidate.state is CandidateState.FOLLOWING:
            self._set_leader(None if polled.leader is None or polled.leader.vacated else polled.leader)
        self._last.update(polled.nodes)
        if polled.changes != self._reported:
            self._reported = polled.changes
            call(self._events.nodes_changed, polled.nodes)
        now_ms = boot_ms()
        for key, ended in self._candidate.members.take_ended(now_ms).items():
            record = self._last.pop(key, None) or NodeRecord.of_key(key)
            if self._epoch:
                call(_report_end, self._events, key, record, ended.is_by_time)
        over_ms = self._candidate.unlisted_over_ms
        is_over = over_ms is not None and now_ms >= over_ms and polled.is_whole
        if is_over and self._has_unlisted and self._epoch:
            self._has_unlisted = False
            call(self._events.unlisted_over, polled.nodes)
        self._compare_clocks(polled.nodes)

    def _compare_clocks(self, nodes: Mapping[str, NodeRecord]) -> None:
        own_ms, since_start_ms = system_ms(), boot_ms()
        for record in nodes.values():
            ahead_ms = record.system_ms - own_ms
            if ahead_ms > CLOCK_AHEAD_MS:
                self._warnings.warn(
                    record.node,
                    f"the clock of node {record.node} is {ahead_ms // 1_000} s ahead of this machine's: {SET_CLOCKS}",
                )
        base_ms = self._clock.base_ms
        self._clock.note(nodes.values(), own_ms, since_start_ms)
        if self._clock.base_ms != base_ms:
            self._page.write_time_base(self._clock.base_ms)


def _report_end(events: CandidateEvents, key: str, record: NodeRecord, is_by_time: bool) -> None:
    events.node_ended(key, record, is_by_time=is_by_time)
