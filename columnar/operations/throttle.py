"""(pure) Request quotas of tables (attribute THROTTLE): a bucket of tokens for each limit; time is an argument.

    admit      a call begins if each of its buckets has a token (a request or a byte); otherwise it is refused, with
               the time until the first bucket without a token has one again
    charge     after the call its rows and bytes are charged.  A bucket may owe tokens then: a large answer is returned
               whole, and the next calls are refused until the bucket has filled again

A bucket begins full, holds at most one period's amount, and fills evenly.  In the long run no more than the limit
passes; in any one period at most twice the limit passes, plus the excess of the last calls.  HBase charges an estimate
from earlier calls before a call runs and corrects it afterwards, which in the long run gives the same.

Invariants:
    I1. A bucket's level is at most its amount.
    I2. A call that is refused takes no token from any bucket.

Knows nothing of clocks, regions and rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from columnar.errors import Throttled
from columnar.model.throttle_limits import Limit

# In the words and the order of HBase's RpcThrottlingException.
_EXCEEDED: Final = {
    ("", False): "number of requests exceeded",
    ("", True): "request size limit exceeded",
    ("write", False): "number of write requests exceeded",
    ("write", True): "write size limit exceeded",
    ("read", False): "number of read requests exceeded",
    ("read", True): "read size limit exceeded",
}
_ORDER: Final = list(_EXCEEDED)


class Bucket:
    """The tokens of one limit."""

    __slots__ = ("level", "limit", "seen_s")

    def __init__(self, limit: Limit, now_s: float) -> None:
        self.limit = limit
        self.level = float(limit.amount)  # below 0: owed
        self.seen_s = now_s

    def charge_tokens(self, tokens: int) -> None:
        self.level -= tokens

    def wait_ms(self, now_s: float) -> int:
        """Return the milliseconds until the bucket has a token; 0 if it has one."""
        limit = self.limit
        passed_s = max(0.0, now_s - self.seen_s)
        self.seen_s = max(self.seen_s, now_s)
        self.level = min(float(limit.amount), self.level + passed_s * limit.amount / limit.period_s)
        if self.level >= 1.0:
            return 0
        return max(1, ceil((1.0 - self.level) * limit.period_s * 1_000 / limit.amount))


class Throttle:
    """The limits of one table."""

    __slots__ = ("_buckets", "table")

    def __init__(self, table: str, limits: Sequence[Limit], now_s: float) -> None:
        self.table = table
        self._buckets = [Bucket(limit, now_s) for limit in sorted(limits, key=lambda limit: _ORDER.index(limit.kind))]

    def admit(self, writes: bool, now_s: float) -> None:
        """Admit a call that reads or writes.  Raises Throttled, with the time to wait, if a bucket has no token."""
        other = "read" if writes else "write"
        for bucket in self._buckets:
            if bucket.limit.scope != other:
                wait_ms = bucket.wait_ms(now_s)
                if wait_ms:
                    raise Throttled(self.table, _EXCEEDED[bucket.limit.kind], wait_ms, bucket.limit.text)

    def charge(self, writes: bool, requests: int, size_bytes: int) -> None:
        other = "read" if writes else "write"
        for bucket in self._buckets:
            if bucket.limit.scope != other:
                bucket.charge_tokens(size_bytes if bucket.limit.of_bytes else requests)

    def check_invariants(self) -> None:
        for bucket in self._buckets:
            assert bucket.level <= bucket.limit.amount, "I1"
