"""(pure) The holders of leases as a candidate sees them: who has a record, whose record must go, who has ended.

A candidate counts how long records stand still while it follows, too.  So if a machine dies with both a leader and a
holder on it, the two waits overlap and cost only one.

A record must go if its holder
    withdrew      its record says that its servers have ended; the lease is over with the record
    is silent     its version stood still for ``fence_ms``; the lease is over with the record
    is requested  it may renew; its lease is over ``fence_ms`` after a poll showed the version that was deleted first,
                  because no renewal after that version has succeeded

A record may also be missing in a poll, because a different leader deleted it.  Then the lease counts as over
``fence_ms`` after that poll, unless the record was withdrawn.

Invariants:
    M1. A holder counts as ended only when its lease is over.
    M2. A holder that renews is fenced only if it has been known for ``fence_ms``, so each candidate that polls without
        a gap of ``stale_ms`` has seen the holder.  Therefore a holder that no poll of a candidate has shown was deleted
        before the candidate's counts began, or has not been given anything by a leader (``unlisted_over_ms``).
    M3. All counts begin anew while the record of the candidate's own node stands still for half of ``fence_ms``.  So no
        holder is fenced for a time in which the service answers polls and takes no renewal, as an etcd without room.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from columnar.coordination.lease import LeaseTimes, LeaseWatcher, WasPolled


@dataclass(frozen=True, slots=True)
class Ended:
    """A holder whose record is deleted."""

    over_ms: int  # its lease is over from then on
    is_by_time: bool  # otherwise its record said that its servers had ended


@dataclass(frozen=True, slots=True)
class Fence:
    """A record to delete at this version."""

    key: str
    version: int
    over_ms: int  # the lease ends then, or with the record if that is later
    is_by_time: bool


class Membership:
    """The holders, from poll to poll."""

    def __init__(self, times: LeaseTimes, own: str = "") -> None:
        """Pass the key of the candidate's own node, whose record it renews; empty: it has none."""
        self.ended: dict[str, Ended] = {}  # by key, until ``take_ended`` returns them
        self._times = times
        self._own = own
        self._own_version: int | None = None
        self._own_since_ms = 0  # when that version was first seen
        self._watcher = LeaseWatcher(times)
        self._withdrawn: frozenset[str] = frozenset()  # as the last good poll showed
        self._requested: set[str] = set()  # to be fenced though they renew

    @property
    def versions(self) -> dict[str, int]:
        """Return the versions of the records that the last good poll showed."""
        return self._watcher.versions

    @property
    def unlisted_over_ms(self) -> int:
        """Return when the lease of each holder is over that ``versions`` does not name (M2)."""
        over_ms = self._watcher.anew_ms + self._times.fence_ms
        return max(over_ms, *(ended.over_ms for ended in self.ended.values())) if self.ended else over_ms

    def on_polled(self, answer: WasPolled, now_ms: int) -> list[Fence]:
        """Take a good poll; returns the records that a leader deletes."""
        self._check_own(answer.versions.get(self._own), now_ms)
        for key in self._watcher.on_polled(answer.versions, now_ms):
            is_by_time = key not in self._withdrawn
            self._end(key, now_ms + self._times.fence_ms if is_by_time else now_ms, is_by_time=is_by_time)
        self._withdrawn = answer.withdrawn
        return list(self._find_fences(now_ms))

    def _check_own(self, version: int | None, now_ms: int) -> None:
        """Begin the counts anew if the own node cannot renew (M3).

        Half of ``fence_ms`` is longer than a renewal takes that must find another server of the service, and so short
        that it is over before any record, which may have been renewed a little earlier, counts as silent.
        """
        if version != self._own_version:
            self._own_version, self._own_since_ms = version, now_ms
        elif version is not None and 2 * (now_ms - self._own_since_ms) >= self._times.fence_ms:
            self._watcher.on_poll_failed()

    def on_poll_failed(self) -> None:
        self._watcher.on_poll_failed()

    def on_deleted(self, fence: Fence, now_ms: int) -> None:
        """Note that this candidate has deleted the record."""
        self._watcher.on_deleted(fence.key)
        self._end(fence.key, max(now_ms, fence.over_ms), is_by_time=fence.is_by_time)

    def request_fence(self, key: str) -> None:
        """Request the fence of a holder even if it renews its record, once it is known for long enough (M2)."""
        self._requested.add(key)

    def forget_requests(self) -> None:
        self._requested.clear()

    def take_ended(self, now_ms: int) -> dict[str, Ended]:
        """Return the holders whose leases are over, by key, and forget them."""
        over = {key: ended for key, ended in self.ended.items() if now_ms >= ended.over_ms}
        for key in over:
            del self.ended[key]
        return over

    def _find_fences(self, now_ms: int) -> Iterator[Fence]:
        versions = self._watcher.versions
        silent = self._watcher.silent(now_ms).keys() - self._withdrawn
        requested = (self._requested & self._watcher.known(now_ms)) - silent - self._withdrawn
        for key in sorted(self._withdrawn):
            yield Fence(key, versions[key], now_ms, is_by_time=False)
        for key in sorted(silent):
            yield Fence(key, versions[key], now_ms, is_by_time=True)
        for key in sorted(requested):
            yield Fence(key, versions[key], self._watcher.over_ms(key), is_by_time=True)

    def _end(self, key: str, over_ms: int, *, is_by_time: bool) -> None:
        self._requested.discard(key)
        self.ended[key] = Ended(over_ms, is_by_time)
