"""(pure) A candidate for leader: it watches the leader's lease, takes it over, and fences holders while it leads.

    FOLLOWING     polls; becomes ACQUIRING if the leader's record is missing, stands still or is vacated
    ACQUIRING     writes the leader's record through its own holder of the lease, with the epoch after the last one
    LEADING       renews, polls, and fences silent holders; a lost lease makes it FOLLOWING again
    RESIGNING     acts no more, and writes that the record is vacated; then it is FOLLOWING, after ``resign`` for ever,
                  after ``step_down`` until another candidate has led, or none has taken the place for a while

A candidate that follows is a standby or an observer.  The longest living candidates, at most STANDBYS of them, are
standbys: each polls all records, so that its counts of silent holders are complete when it takes the leader's place.
An observer polls all records every OBSERVE_MS only, and the leader's record between; otherwise the bytes of all polls
would grow with the square of the number of nodes.  It takes the place of a leader ``stale_ms`` later than a standby
would, and then its counts begin anew, which is as safe and slower.

The leader's record is never deleted, so no two of its values have the same version (V2 of ``cas``), and no epoch is
given twice.  An epoch exceeds ``epoch_floor`` too: the highest that the candidate's data folder names, in case the
service has lost its records.  A leader that finds a higher one lifts its own (``lift_epoch``).

Invariants:
    E1. A fence is conditioned on the leader's own record, at the version that the leader wrote last.  After a different
        candidate has taken the lease over, the fences of the former leader fail, however late they arrive.
    E2. A leader acts under an epoch only after a record with that epoch was written (``written_epoch``).
    E3. Requests are made one at a time, renewals first.

Knows nothing of stores, threads and processes; a caller makes each request and reports its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from columnar.coordination.cas import Condition
from columnar.coordination.lease import (
    RETRY_MS,
    Answer,
    DeleteRecord,
    Done,
    Found,
    HolderState,
    LeaseHolder,
    LeaseTimes,
    LeaseWatcher,
    PollRecords,
    Request,
    WasPolled,
)
from columnar.coordination.membership import Fence, Membership

LEADER_FOLDER: Final = "leader"
LEADER: Final = f"{LEADER_FOLDER}/leader"  # the key of the leader's record
STANDBYS: Final = 5
OBSERVE_MS: Final = 5_000
ABSTAIN_FENCES: Final = 2


class CandidateState(Enum):
    FOLLOWING = auto()
    ACQUIRING = auto()
    LEADING = auto()
    RESIGNING = auto()


class Candidate:
    """A process that may lead.  ``draw_nonce`` returns a new nonce, never used before, for each attempt.

    Without ``may_lead`` it only polls.  ``key`` is that of its node's record, by which it finds out whether it is a
    standby; a candidate without a node is one.
    """

    def __init__(
        self,
        times: LeaseTimes,
        draw_nonce: Callable[[], str],
        *,
        may_lead: bool = True,
        epoch_floor: int = 0,
        key: str = "",
    ) -> None:
        self.epoch = 0  # of the leadership that is acquired or held; otherwise the last epoch seen
        self.written_epoch = 0  # the last one that a record of this candidate has certainly had
        self._times = times
        self._draw_nonce = draw_nonce
        self._may_lead = may_lead
        self._epoch_floor = epoch_floor
        self._polls = _Polls(times, key)
        self.members = Membership(times, key)
        self._leader = LeaseWatcher(times)
        self._lease: LeaseHolder | None = None
        self._fences: list[Fence] = []  # found by the last good poll
        self._sent_fence: Fence | None = None
        self._was_polled = False  # since the leadership was acquired
        self._sent_epoch = 0  # in the write of the leader's record that is under way
        self._pending: Request | None = None

    @property
    def state(self) -> CandidateState:
        if self._lease is None:
            return CandidateState.FOLLOWING
        if self._lease.is_releasing:
            return CandidateState.RESIGNING
        return CandidateState.ACQUIRING if self._lease.until_ms == 0 else CandidateState.LEADING

    @property
    def nonce(self) -> str:
        """Return the nonce that this candidate writes into the leader's record, or an empty text while it follows."""
        return "" if self._lease is None else self._lease.nonce

    def leads(self, now_ms: int) -> bool:
        """Tell whether this candidate holds the lease now; a leader must check this after each of its actions."""
        return self._lease is not None and self._lease.is_valid(now_ms)

    @property
    def has_resigned(self) -> bool:
        """Tell whether this candidate will never lead, and has no record to write."""
        return not self._may_lead and self._lease is None

    @property
    def until_ms(self) -> int:
        """Return the end of the leader's lease; 0 if this candidate does not lead."""
        return 0 if self._lease is None else self._lease.until_ms

    @property
    def unlisted_over_ms(self) -> int | None:
        """Return when the lease of each holder is over that ``members.versions`` does not name.

        None: this candidate does not lead, or has made no good poll since it was elected.  Holders that joined after
        that poll are not meant: no leader has given them anything.
        """
        is_known = self.state is CandidateState.LEADING and self._was_polled
        return self.members.unlisted_over_ms if is_known else None

    def lift_epoch(self, minimum: int, now_ms: int) -> None:
        """Write the leader's record with an epoch of at least ``minimum``; ``written_epoch`` tells when it is done."""
        if self._lease is not None and self.epoch < minimum:
            self.epoch = minimum
            self._lease.renew_at(now_ms)

    def resign(self, now_ms: int) -> None:
        """Lead no more, from now on and for ever; a held leadership is written as vacated."""
        self._may_lead = False
        self._fences = []
        if self._lease is not None:
            self._lease.release(now_ms)

    def step_down(self, now_ms: int) -> None:
        """Vacate a held leadership for others; if none of them takes it, this candidate leads again later."""
        self._fences = []
        if self._lease is not None:
            self._lease.release(now_ms)
            self._polls.abstain()

    @property
    def is_waiting(self) -> bool:
        """Tell whether a request is under way."""
        return self._pending is not None

    @property
    def due_ms(self) -> int:
        """Return the time at which ``next_request`` has a request, if none is under way."""
        if self._fences:
            return 0
        due_ms = self._polls.due_ms
        return due_ms if self._lease is None else min(self._lease.due_ms, due_ms)

    def next_request(self, now_ms: int) -> Request | None:
        """Return the request to make now; None if one is under way, or if none is due before ``due_ms``."""
        if self._pending is not None:
            return None
        request = None if self._lease is None else self._lease.next_request(now_ms)
        if request is None:
            request = self._fence(now_ms)
        if request is None:
            request = self._polls.next_poll(now_ms, is_following=self._lease is None)
        else:
            self._sent_epoch = self.epoch
        self._pending = request
        return request

    def on_answer(self, answer: Answer, now_ms: int) -> None:
        request, self._pending = self._pending, None
        match request:
            case PollRecords(_, has_holders):
                self._polled(answer, now_ms, has_holders=has_holders)
            case DeleteRecord():
                self._fenced(answer, now_ms)
            case _:
                assert self._lease is not None
                self._lease.on_answer(answer, now_ms)
                if isinstance(answer, Done):
                    self.written_epoch = self._sent_epoch
                    if self._sent_epoch < self.epoch:  # it was lifted meanwhile
                        self._lease.renew_at(now_ms)
                if self._lease.has_ended:
                    self._follow()

    # --- polls ---------------------------------------------------------------------------------------

    def _polled(self, answer: Answer, now_ms: int, *, has_holders: bool) -> None:
        if not isinstance(answer, WasPolled):
            self.members.on_poll_failed()
            self._leader.on_poll_failed()
            self._polls.on_poll_failed(now_ms)
            return
        if has_holders:
            self._fences = self.members.on_polled(answer, now_ms)
            self._was_polled = self._lease is not None
            self._polls.on_polled_all(answer.standbys, now_ms)
        if self._lease is None:
            self._watch_leader(answer.leader, now_ms)

    def _watch_leader(self, found: Found | None, now_ms: int) -> None:
        self._leader.on_polled({} if found is None else {LEADER: found.version}, now_ms)
        if found is not None:
            self.epoch = found.epoch
        is_free = found is None or found.is_vacated or LEADER in self._leader.silent(now_ms)
        if self._polls.may_succeed(now_ms, is_free=is_free) and self._may_lead:
            over = None if found is None else found.version
            self._lease = LeaseHolder(LEADER, self._draw_nonce(), self._times, over=over)
            self._was_polled = False
            self.epoch = max(self.epoch, self._epoch_floor) + 1

    def _follow(self) -> None:
        self._lease = None
        self.members.forget_requests()
        self._leader = LeaseWatcher(self._times)
        self._fences = []

    # --- fences --------------------------------------------------------------------------------------

    def _fence(self, now_ms: int) -> Request | None:
        lease = self._lease
        # A leader that could not write for half a lease fences nobody: a service that is full refuses all renewals.
        left_ms = 0 if lease is None or lease.state is not HolderState.RENEWING else lease.until_ms - now_ms
        if left_ms <= self._times.lease_ms // 2:
            self._fences = []
        if not self._fences or lease is None or lease.version is None:
            return None
        fence = self._sent_fence = self._fences.pop(0)
        return DeleteRecord(fence.key, fence.version, Condition(LEADER, lease.version))

    def _fenced(self, answer: Answer, now_ms: int) -> None:
        """Note the end of a fenced holder; after a failure or unknown outcome the next poll shows the record."""
        fence, self._sent_fence = self._sent_fence, None
        if isinstance(answer, Done) and fence is not None:
            self.members.on_deleted(fence, now_ms)


class _Polls:
    """The times of a candidate's polls: a standby polls all records, an observer does so every OBSERVE_MS."""

    def __init__(self, times: LeaseTimes, key: str) -> None:
        self.due_ms = 0
        self._times = times
        self._key = key
        self._is_standby = True
        self._all_due_ms = 0  # of an observer's next poll of all records
        self._free_ms: int | None = None  # since when nobody leads; None: somebody leads
        self._abstains = False  # this candidate has stepped down, and no other has led since

    def next_poll(self, now_ms: int, *, is_following: bool) -> PollRecords | None:
        if now_ms < self.due_ms:
            return None
        self.due_ms = now_ms + self._times.poll_ms
        has_holders = self._is_standby or not is_following or now_ms >= self._all_due_ms
        return PollRecords(has_leader=is_following, has_holders=has_holders)

    def on_poll_failed(self, now_ms: int) -> None:
        self.due_ms = max(self.due_ms, now_ms + RETRY_MS)

    def on_polled_all(self, standbys: frozenset[str] | None, now_ms: int) -> None:
        self._is_standby = not self._key or standbys is None or self._key in standbys
        self._all_due_ms = now_ms + OBSERVE_MS

    def abstain(self) -> None:
        """Leave the next free place to others for ABSTAIN_FENCES times the time in which they notice a dead leader."""
        self._abstains = True
        self._free_ms = None

    def may_succeed(self, now_ms: int, *, is_free: bool) -> bool:
        """Tell whether this candidate may take the leader's place, which is free or not: standbys come first."""
        if not is_free:
            self._free_ms = None
            self._abstains = False
            return False
        if self._free_ms is None:
            self._free_ms = now_ms
        free_ms = now_ms - self._free_ms
        if self._abstains:
            return free_ms >= ABSTAIN_FENCES * self._times.fence_ms
        return self._is_standby or free_ms >= self._times.stale_ms
