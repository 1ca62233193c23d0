"""(pure) Decisions about leases, and how long a server regards each lease as held.

    acquire   token 0               a free or expired lease is given, with the next token; also to its own holder
    renew     the holder's token    the lease is held for another time to live from now on, which is never a shorter one
    release   the token, ttl 0      the lease is free
    look      token 0, ttl 0        nothing changes

A row has no time.  The server that owns the row counts a lease's time to live on its own steady clock from the moment
at which it first saw the row as it is: from its own decision, or, after the region came from another server or a
restart, from the first call about the lease.  A stored state differs after each change (``model.lease``), so what a
server counted before the region was elsewhere is never applied to a newer state.

Invariants:
    L1. Tokens rise by one with each acquisition and never fall.  The caller stores a decision before it answers, so a
        token is given once, whatever server decides.
    L2. A holder that counts its time to live from before it sent its last successful call loses the lease, by its own
        steady clock, before any server gives it to another.  The wall clock is used nowhere.
    L3. At most LEASES_TIMED times are kept.  A lease whose time was forgotten is held for its full time to live anew.

Knows nothing of rows, regions and waiting.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from columnar.model.lease import Lease

LEASES_TIMED: Final = 100_000


class LeaseRequest(NamedTuple):
    holder: bytes
    ttl_ms: int
    token: int


class Decision(NamedTuple):
    is_held: bool  # by the caller, from now on
    lease: Lease  # as it is after the decision
    is_changed: bool  # ``lease`` must be durable before the answer


def decide(stored: Lease, request: LeaseRequest, *, is_expired: bool) -> Decision:
    """Decide a request about a lease of the state ``stored``."""
    # A holder that misses the answer still counts on its earlier, perhaps longer, time to live.
    ttl_ms = max(request.ttl_ms, stored.ttl_ms if stored.holder == request.holder else 0)
    is_holder = request.token != 0 and stored.token == request.token and stored.holder == request.holder
    if request.ttl_ms == 0:
        if not is_holder:
            return Decision(False, stored, False)
        return Decision(False, Lease(stored.token, b"", 0, stored.renewal + 1), True)
    if request.token:
        if not is_holder:
            return Decision(False, stored, False)
        return Decision(True, Lease(stored.token, stored.holder, ttl_ms, stored.renewal + 1), True)
    if stored.holder and stored.holder != request.holder and not is_expired:
        return Decision(False, stored, False)
    return Decision(True, Lease(stored.token + 1, request.holder, ttl_ms, 0), True)


class LeaseTimes:
    """The times until which a server regards leases as held, by its steady clock."""

    def __init__(self) -> None:
        self._ends: OrderedDict[bytes, tuple[Lease, float]] = OrderedDict()  # name -> state as first seen, its end

    def end_of(self, name: bytes, lease: Lease, now_s: float) -> float:
        """Return when the lease ends; an unknown state is held for its time to live from ``now_s`` on."""
        if not lease.holder:
            self._ends.pop(name, None)
            return now_s
        known = self._ends.get(name)
        if known is not None and known[0] == lease:
            return known[1]
        end_s = now_s + lease.ttl_ms / 1_000
        self._ends[name] = (lease, end_s)
        self._ends.move_to_end(name)
        if len(self._ends) > LEASES_TIMED:
            self._ends.popitem(last=False)
        return end_s
