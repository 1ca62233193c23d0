"""The topics of a server among its flows of data: records appended, their rate, and the time since the last one.

A look costs no read: the figures are those of the partitions in memory.  Owned by the loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from heapq import nlargest
from time import monotonic
from typing import Final, NamedTuple

from columnar.model.flow_status import NEVER_S, TOPIC, FlowStatus
from columnar.topics.partition import Partition

TOPICS_LISTED: Final = 100  # of a server, those with most records
RATE_S: Final = 5.0  # over which records are counted at least


class _Rate(NamedTuple):
    since_s: float
    appended: int  # then
    per_s: float


class TopicFlows:
    def __init__(self, partitions: Callable[[], Iterable[Partition]]) -> None:
        self._partitions = partitions
        self._rates: dict[bytes, _Rate] = {}

    def flow_statuses(self) -> list[FlowStatus]:
        """Return the topics that were used here, at most TOPICS_LISTED."""
        by_topic: dict[bytes, list[Partition]] = defaultdict(list)
        for partition in self._partitions():
            by_topic[partition.key.partition(b"\x00")[0]].append(partition)
        counts = {name: sum(one.appended for one in found) for name, found in by_topic.items()}
        now_s = monotonic()
        listed = nlargest(TOPICS_LISTED, counts, key=counts.__getitem__)
        self._rates = {name: self._rate_of(name, counts[name], now_s) for name in listed}
        return [_status_of(name, by_topic[name], counts[name], rate.per_s) for name, rate in self._rates.items()]

    def _rate_of(self, name: bytes, appended: int, now_s: float) -> _Rate:
        before = self._rates.get(name, _Rate(now_s, appended, 0.0))
        elapsed_s = now_s - before.since_s
        if elapsed_s < RATE_S:
            return before
        return _Rate(now_s, appended, max(0, appended - before.appended) / elapsed_s)


def _status_of(name: bytes, partitions: list[Partition], appended: int, rate_per_s: float) -> FlowStatus:
    topic = name.decode()
    last_ms = max(one.state().append_ms for one in partitions)
    now_ms = max(one.region.now_ms for one in partitions)
    return FlowStatus(
        TOPIC,
        topic,
        (f"{TOPIC}:{topic}",),
        (),
        rate_per_s=rate_per_s,
        delivered=appended,
        idle_s=max(0, now_ms - last_ms) / 1_000 if last_ms else NEVER_S,
    )
