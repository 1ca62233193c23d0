"""(pure) A candidate for leader: it watches the leader's lease, takes it over, and fences holders while it leads.

    FOLLOWING     polls all records; becomes ACQUIRING if the leader's record is missing or stands still
    ACQUIRING     writes the leader's record through its own holder of the lease, with the epoch after the last one
    LEADING       renews, polls, and fences silent holders; a lost lease makes it FOLLOWING again

The leader's record is never deleted, so no two of its values have the same version (V2 of ``cas``), and no epoch is
given twice.

A candidate counts how long holders' records stand still while it follows, too.  So if a machine dies with both a leader
and a holder on it, the two waits overlap and cost only one.

Invariants:
    E1. A fence is conditioned on the leader's own record, at the version that the leader wrote last.  After a different
        candidate has taken the lease over, the fences of the former leader fail, however late they arrive.
    E2. A holder counts as ended only when its lease is over.  The lease of a silent holder is over when the holder is
        fenced, any other lease ``fence_ms`` after its record was deleted or found missing.
    E3. Requests are made one at a time, renewals first.

Knows nothing of stores, threads and processes; a caller makes each request and reports its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

LEADER_FOLDER: Final = "leader"
LEADER: Final = f"{LEADER_FOLDER}/leader"  # the key of the leader's record


class CandidateState(Enum):
    FOLLOWING = auto()
    ACQUIRING = auto()
    LEADING = auto()


@dataclass(frozen=True, slots=True)
class _Fence:
    key: str
    version: int
    is_silent: bool  # otherwise it renews, and is fenced on request


class Candidate:
    """A process that may lead.  ``draw_nonce`` returns a new nonce, never used before, for each attempt."""

    def __init__(self, times: LeaseTimes, draw_nonce: Callable[[], str]) -> None:
        self.epoch = 0  # of the leadership that is acquired or held; otherwise the last epoch seen
        self.ended: dict[str, int] = {}  # holders whose record is deleted -> the time at which their lease is over
        self._times = times
        self._draw_nonce = draw_nonce
        self._holders = LeaseWatcher(times)
        self._leader = LeaseWatcher(times)
        self._lease: LeaseHolder | None = None
        self._requested: set[str] = set()  # holders to be fenced though they renew
        self._fences: list[_Fence] = []  # found by the last good poll
        self._pending: Request | None = None
        self._poll_ms = 0  # when the next poll is due

    @property
    def state(self) -> CandidateState:
        if self._lease is None:
            return CandidateState.FOLLOWING
        return CandidateState.ACQUIRING if self._lease.until_ms == 0 else CandidateState.LEADING

    @property
    def nonce(self) -> str:
        """Return the nonce that this candidate writes into the leader's record, or an empty text while it follows."""
        return "" if self._lease is None else self._lease.nonce

    @property
    def versions(self) -> dict[str, int]:
        """Return the versions of the holders' records that the last good poll showed."""
        return self._holders.versions

    def leads(self, now_ms: int) -> bool:
        """Tell whether this candidate holds the lease now; a leader must check this after each of its actions."""
        return self._lease is not None and self._lease.is_valid(now_ms)

    def is_over(self, key: str, now_ms: int) -> bool:
        """Tell whether the lease of a holder is certainly over."""
        return key in self.ended and now_ms >= self.ended[key]

    def request_fence(self, key: str) -> None:
        """Request the fence of a holder, even if the holder renews its record."""
        self._requested.add(key)

    @property
    def is_waiting(self) -> bool:
        """Tell whether a request is under way."""
        return self._pending is not None

    @property
    def due_ms(self) -> int:
        """Return the time at which ``next_request`` has a request, if none is under way."""
        if self._fences:
            return 0
        return self._poll_ms if self._lease is None else min(self._lease.due_ms, self._poll_ms)

    def next_request(self, now_ms: int) -> Request | None:
        """Return the request to make now; None if one is under way, or if none is due before ``due_ms``."""
        if self._pending is not None:
            return None
        request = None if self._lease is None else self._lease.next_request(now_ms)
        if request is None:
            request = self._fence(now_ms)
        if request is None and now_ms >= self._poll_ms:
            self._poll_ms = now_ms + self._times.poll_ms
            request = PollRecords(has_leader=self._lease is None)
        self._pending = request
        return request

    def on_answer(self, answer: Answer, now_ms: int) -> None:
        request, self._pending = self._pending, None
        match request:
            case PollRecords():
                self._polled(answer, now_ms)
            case DeleteRecord():
                self._fenced(answer, now_ms)
            case _:
                assert self._lease is not None
                self._lease.on_answer(answer, now_ms)
                if self._lease.state is HolderState.LOST:
                    self._follow()

    # --- polls ---------------------------------------------------------------------------------------

    def _polled(self, answer: Answer, now_ms: int) -> None:
        if not isinstance(answer, WasPolled):
            self._holders.on_poll_failed()
            self._leader.on_poll_failed()
            self._poll_ms = max(self._poll_ms, now_ms + RETRY_MS)
            return
        for key in self._holders.on_polled(answer.versions, now_ms):
            self._end(key, now_ms + self._times.fence_ms)
        if self._lease is None:
            self._watch_leader(answer.leader, now_ms)
        silent = self._holders.silent(now_ms)
        self._fences = [_Fence(key, version, is_silent=True) for key, version in silent.items()]
        requested = self._requested & answer.versions.keys() - silent.keys()
        self._fences += [_Fence(key, answer.versions[key], is_silent=False) for key in sorted(requested)]

    def _watch_leader(self, found: Found | None, now_ms: int) -> None:
        self._leader.on_polled({} if found is None else {LEADER: found.version}, now_ms)
        if found is not None:
            self.epoch = found.epoch
        if found is None or LEADER in self._leader.silent(now_ms):
            over = None if found is None else found.version
            self._lease = LeaseHolder(LEADER, self._draw_nonce(), self._times, over=over)
            self.epoch += 1

    def _follow(self) -> None:
        self._lease = None
        self._leader = LeaseWatcher(self._times)
        self._fences = []

    # --- fences --------------------------------------------------------------------------------------

    def _fence(self, now_ms: int) -> Request | None:
        lease = self._lease
        if lease is None or lease.state is not HolderState.RENEWING or not lease.is_valid(now_ms):
            self._fences = []
        if not self._fences or lease is None or lease.version is None:
            return None
        fence = self._fences[0]
        return DeleteRecord(fence.key, fence.version, Condition(LEADER, lease.version))

    def _fenced(self, answer: Answer, now_ms: int) -> None:
        """Take the answered fence off the list; after a failure or unknown outcome the next poll shows the record."""
        fence = self._fences.pop(0)
        if isinstance(answer, Done):
            self._holders.on_deleted(fence.key)
            self._end(fence.key, now_ms if fence.is_silent else now_ms + self._times.fence_ms)

    def _end(self, key: str, over_ms: int) -> None:
        self._requested.discard(key)
        self.ended[key] = over_ms
