"""The comparison of a machine's clock with the clocks of the nodes that live: when a node starts, and in each poll.

Timestamps order the writes of a row, and a cluster gives them by its fastest clock.  So a node whose clock differs by
more than CLOCK_AHEAD_MS from the fastest one of the living nodes does not start.  Nodes that start at the same moment
are not compared; each warns of the other's clock later (``candidate_thread``).

While the node runs, ``ClusterClock`` has the cluster's time, and the offset of this machine's clock to the fastest one.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic, sleep
from typing import Final

from columnar.clock import system_ms
from columnar.coordination.cas import CasStore
from columnar.coordination.node_record import NODES, NodeRecord, decode_node_record
from columnar.errors import DamagedData, HostError

CLOCK_AHEAD_MS: Final = 30_000  # between two machines
SET_CLOCKS: Final = "set both clocks by one time server (chrony, ntpd)"
CHECK_S: Final = 0.1
WINDOW_MS: Final = 30_000  # of readings; a clock that was set right is known to be so after two windows at most


class ClusterClock:
    """The cluster's time, and the offset of this machine's clock.  Written by one thread, read by any.

    A record has its machine's clock when it was written, which is up to a renewal and a poll ago.  So a reading of the
    offset is too low by the record's age, and the highest one of a while is the nearest: within some milliseconds if
    the service answers as fast.
    """

    def __init__(self) -> None:
        self.base_ms = 0  # the cluster's time less that since the machine's start
        self._begun_ms = 0  # of the present window, since the machine's start
        self._highest_ms = 0  # of its readings
        self._last_ms = 0  # the highest of the window before

    def note(self, nodes: Iterable[NodeRecord], own_ms: int, since_start_ms: int) -> None:
        """Take the records of a poll, and this machine's clocks.  Times over CLOCK_AHEAD_MS ahead are not followed."""
        cluster_ms = max(own_ms, self.base_ms + since_start_ms)
        if cluster_ms - own_ms > CLOCK_AHEAD_MS:
            cluster_ms = own_ms  # this machine's clock was set back
        offset_ms = 0
        for record in nodes:
            offset_ms = max(offset_ms, record.system_ms - own_ms)
            if record.cluster_ms - own_ms <= CLOCK_AHEAD_MS:
                cluster_ms = max(cluster_ms, record.cluster_ms)
        self.base_ms = cluster_ms - since_start_ms
        if since_start_ms - self._begun_ms >= WINDOW_MS:
            self._last_ms, self._highest_ms, self._begun_ms = self._highest_ms, 0, since_start_ms
        self._highest_ms = max(self._highest_ms, offset_ms)

    def offset_ms(self) -> int:
        """Return the time from this machine's clock to the fastest one's; 0 if this one is the fastest."""
        return max(self._highest_ms, self._last_ms)


def check_clock(store: CasStore, fence_s: float) -> None:
    """Raise HostError if the fastest living node's clock differs by more than CLOCK_AHEAD_MS.

    A record that differs is believed only if it changes within ``fence_s``: its node lives.  Blocks as long.
    """
    first: dict[str, int] | None = None
    until_s = monotonic() + fence_s
    while True:
        stored = store.list_keys(NODES)
        first = {key: one.version for key, one in stored.items()} if first is None else first
        own_ms = system_ms()
        ahead = {key: _ahead_ms(one.value, own_ms) for key, one in stored.items()}
        doubted = {key: ahead_ms for key, ahead_ms in ahead.items() if ahead_ms is not None}
        if all(abs(ahead_ms) <= CLOCK_AHEAD_MS for ahead_ms in doubted.values()):
            return
        living = {key: ahead_ms for key, ahead_ms in doubted.items() if first.get(key) != stored[key].version}
        if monotonic() >= until_s:
            break
        sleep(CHECK_S)
    if living and abs(max(living.values())) > CLOCK_AHEAD_MS:
        key, ahead_ms = max(living.items(), key=lambda one: one[1])
        node = NodeRecord.of_key(key).node
        how = "behind" if ahead_ms > 0 else "ahead of"
        raise HostError(
            f"the clock of this machine is {abs(ahead_ms) // 1_000} s {how} that of node {node}, and clocks may be "
            f"{CLOCK_AHEAD_MS // 1_000} s apart at most: {SET_CLOCKS}, and start again"
        )


def _ahead_ms(value: bytes, own_ms: int) -> int | None:
    """Return how far the clock of the record's node is ahead; None if the record does not say."""
    try:
        record = decode_node_record(value)
    except DamagedData:
        return None
    return record.system_ms - own_ms if record.system_ms and not record.withdrawn else None
