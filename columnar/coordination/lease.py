"""(pure) Leases by compare-and-set: a holder renews a record, a watcher finds records that stand still.

    holder      writes its record every ``renew_ms``, at the version that it wrote last.  It holds the lease until
                ``lease_ms`` after the moment at which it SENT the last renewal that succeeded
    watcher     polls all records every ``poll_ms``.  If it has seen a record at the same version for ``fence_ms``, the
                record may be deleted at that version: the holder's lease is over, and the holder can never renew it

    state of a holder   its next request                       next state

    JOINING             create, or put over a former record    RENEWING; LOST by a conflict; UNSURE
    RENEWING            put, when it is due                    RENEWING; UNSURE by a conflict or an unknown outcome
    UNSURE              read                                   RENEWING if the record has its nonce, else LOST
    LOST                none: the holder was fenced, or came too late
    RELEASED            none: the record says that the holder has given the lease up (``release``)

Invariants (the law of tests/simulation/lease_world.py):
    L1. While a lease is valid, its holder sent a renewal less than ``lease_ms`` ago, by the holder's clock, and that
        renewal succeeded.
    L2. A record is fenced only if its version stood still for ``fence_ms`` of the watcher's clock.  The version was
        sent before the watcher saw it.  So if the rates of the two clocks differ by less than ``fence_ms / lease_ms``,
        the lease ended before the record was deleted.
    L3. All counts begin anew after a poll that failed, or that comes ``stale_ms`` after the last good poll.  So no
        holder is fenced for a time in which no holder could renew.
    L4. A conflict does not prove a fence: an earlier renewal, whose answer was lost, may have raised the version.
        The nonce decides; a clone of the holder (a restored virtual machine) has a different nonce.
    L5. After LOST a holder sends nothing.  Its key is not used again.
    L6. From ``release`` on the lease is not valid.  Only then is the record written that says so.  So who reads that
        record need not wait for the end of the lease.

A renewal of unknown outcome may take effect at any later time; it does not extend the lease.

Times are arguments, in milliseconds of a clock that goes on while the machine sleeps (CLOCK_BOOTTIME).  Knows nothing
of stores, bytes of records, threads and processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from columnar.coordination.cas import Condition

LEASE_MS: Final = 1_500
RETRY_MS: Final = 50  # after a request that could not be made


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    lease_ms: int
    renew_ms: int
    poll_ms: int
    fence_ms: int  # exceeds lease_ms by more than the rates of two clocks differ
    stale_ms: int  # after such a gap between good polls the service may have been down, so versions stood still

    @classmethod
    def of_lease(cls, lease_ms: int = LEASE_MS) -> LeaseTimes:
        return cls(lease_ms, lease_ms // 6, lease_ms // 15, lease_ms * 11 // 10, lease_ms * 4 // 10)


# --- requests to the store, and their answers ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateRecord:
    """Create the record, which has the holder's nonce."""

    key: str


@dataclass(frozen=True, slots=True)
class PutRecord:
    """Replace the record, if it is at ``version``, by a record with the holder's nonce."""

    key: str
    version: int


@dataclass(frozen=True, slots=True)
class ReadRecord:
    key: str


@dataclass(frozen=True, slots=True)
class DeleteRecord:
    """Fence: delete the record at ``version`` if ``also`` holds: the leader's own record is at its last version."""

    key: str
    version: int
    also: Condition | None


@dataclass(frozen=True, slots=True)
class PollRecords:
    """List the records of all holders, of the leader, or of both."""

    has_leader: bool
    has_holders: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """A record that was read: its version, its holder's nonce; of the leader's record also the epoch."""

    version: int
    nonce: str
    epoch: int = 0
    is_vacated: bool = False  # the leader has resigned


@dataclass(frozen=True, slots=True)
class Done:
    """The write took effect; ``version`` is the record's new version, or 0 if the record was deleted."""

    version: int = 0


@dataclass(frozen=True, slots=True)
class WasRead:
    found: Found | None


@dataclass(frozen=True, slots=True)
class WasPolled:
    versions: Mapping[str, int]  # of the records of holders
    leader: Found | None
    withdrawn: frozenset[str] = frozenset()  # keys of holders whose record says that they gave the lease up
    standbys: frozenset[str] | None = None  # keys of holders that are to follow the leader closely; None: all


class Failed(Enum):
    """The request did not succeed, or its outcome is unknown."""

    CONFLICT = auto()
    UNAVAILABLE = auto()  # nothing was done
    UNKNOWN = auto()


Request = CreateRecord | PutRecord | ReadRecord | DeleteRecord | PollRecords
Answer = Done | WasRead | WasPolled | Failed


# --- the holder ----------------------------------------------------------------------------------


class HolderState(Enum):
    JOINING = auto()
    RENEWING = auto()  # the record was this holder's at the last answer; ``is_valid`` tells of the lease
    UNSURE = auto()
    LOST = auto()
    RELEASED = auto()


class LeaseHolder:
    """The holder of a lease, from the first write of its record to its end; at most one request is under way."""

    def __init__(self, key: str, nonce: str, times: LeaseTimes, *, over: int | None = None) -> None:
        """Begin to join.  ``over`` is the version of the record to take over; if None, the record must be missing."""
        self.key = key
        self.nonce = nonce  # in each record that this holder writes, and in no others
        self.state = HolderState.JOINING
        self.version = over
        self.until_ms = 0
        self.due_ms = 0  # of the next request
        self.is_releasing = False  # the record to write must say that the lease was given up
        self._times = times
        self._is_new = over is None
        self._sent_release = False  # the request that is under way was composed with ``is_releasing``
        self._sent_ms: int | None = None  # of the request that is under way
        self._failed_writes = 0  # since the last one that succeeded

    def is_valid(self, now_ms: int) -> bool:
        return now_ms < self.until_ms

    @property
    def has_ended(self) -> bool:
        """Tell whether the holder is LOST or RELEASED, after which it sends nothing."""
        return self.state in (HolderState.LOST, HolderState.RELEASED)

    def renew_at(self, now_ms: int) -> None:
        """Make the next request due at ``now_ms``, if it is due later."""
        self.due_ms = min(self.due_ms, now_ms)

    def release(self, now_ms: int) -> None:
        """Give the lease up: it is not valid from now on, and the next record says so."""
        self.is_releasing = True
        self.until_ms = 0
        self.renew_at(now_ms)

    def next_request(self, now_ms: int) -> Request | None:
        """Return the request to make now, and count it as sent; None if none is due before ``due_ms``, or ever."""
        if self.has_ended or self._sent_ms is not None or now_ms < self.due_ms:
            return None
        self._sent_ms, self._sent_release = now_ms, self.is_releasing
        if self.state is HolderState.UNSURE:
            return ReadRecord(self.key)
        if self.state is HolderState.JOINING and self._is_new:
            return CreateRecord(self.key)
        assert self.version is not None
        return PutRecord(self.key, self.version)

    def on_answer(self, answer: Answer, now_ms: int) -> None:
        """Take the answer to the request that is under way."""
        assert self._sent_ms is not None, "no request is under way"
        sent_ms, self._sent_ms = self._sent_ms, None
        match answer:
            case Done(version):
                self._renewed(version, sent_ms)
            case WasRead(found):
                self._read(found, now_ms)
            case Failed.UNAVAILABLE:
                self.due_ms = now_ms + RETRY_MS
            case Failed.CONFLICT if self.state is HolderState.JOINING:
                self._lose()
            case Failed():
                self._failed_writes += self.state is not HolderState.UNSURE
                self.due_ms = now_ms + (RETRY_MS if self.state is HolderState.UNSURE else 0)
                self.state = HolderState.UNSURE
            case _:
                raise AssertionError(f"{answer} answers no request of a holder")

    def _renewed(self, version: int, sent_ms: int) -> None:
        self.state = HolderState.RELEASED if self._sent_release else HolderState.RENEWING
        self.version = version
        self._failed_writes = 0
        if not self.is_releasing:
            self.until_ms = sent_ms + self._times.lease_ms
            self.due_ms = sent_ms + self._times.renew_ms

    def _read(self, found: Found | None, now_ms: int) -> None:
        """Continue with the version of the holder's own record; the end of the lease does not change.

        The holder is LOST if the record is missing or has a different nonce.
        """
        if found is None or found.nonce != self.nonce:
            self._lose()
            return
        self.state = HolderState.RENEWING
        self.version = found.version
        self.due_ms = now_ms + (RETRY_MS if self._failed_writes > 1 else 0)  # the service may refuse each write

    def _lose(self) -> None:
        self.state = HolderState.LOST
        self.until_ms = 0


# --- the watcher ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Seen:
    version: int
    since_ms: int  # when the version was first seen, or counts began anew
    first_ms: int  # when the key was first seen


class LeaseWatcher:
    """The records that polls have shown, each with its version and the time since which the version stands."""

    def __init__(self, times: LeaseTimes) -> None:
        self._times = times
        self._seen: dict[str, _Seen] = {}
        self._polled_ms: int | None = None  # the last good poll; None: none since a poll failed
        self.anew_ms = 0  # the good poll at which counts began, after which no poll failed or came late

    @property
    def versions(self) -> dict[str, int]:
        return {key: seen.version for key, seen in self._seen.items()}

    def on_polled(self, versions: Mapping[str, int], now_ms: int) -> frozenset[str]:
        """Take the answer to a poll, which came at ``now_ms``; returns the keys whose records have disappeared."""
        is_anew = self._polled_ms is None or now_ms - self._polled_ms >= self._times.stale_ms
        self._polled_ms = now_ms
        if is_anew:
            self.anew_ms = now_ms
        gone = frozenset(self._seen.keys() - versions.keys())
        for key in gone:
            del self._seen[key]
        for key, version in versions.items():
            seen = self._seen.get(key)
            if seen is None or seen.version != version or is_anew:
                self._seen[key] = _Seen(version, now_ms, now_ms if seen is None else seen.first_ms)
        return gone

    def on_poll_failed(self) -> None:
        self._polled_ms = None

    def silent(self, now_ms: int) -> dict[str, int]:
        """Return the versions that may be fenced, by key.  Call this right after a good poll."""
        if self._polled_ms is None:
            return {}
        fence_ms = self._times.fence_ms
        return {key: seen.version for key, seen in self._seen.items() if now_ms - seen.since_ms >= fence_ms}

    def over_ms(self, key: str) -> int:
        """Return when the lease is over if the record is deleted at the version that the last poll showed."""
        return self._seen[key].since_ms + self._times.fence_ms

    def known(self, now_ms: int) -> frozenset[str]:
        """Return the keys that were first seen at least ``fence_ms`` ago."""
        fence_ms = self._times.fence_ms
        return frozenset(key for key, seen in self._seen.items() if now_ms - seen.first_ms >= fence_ms)

    def on_deleted(self, key: str) -> None:
        """Forget a record that this watcher's process has deleted."""
        self._seen.pop(key, None)
