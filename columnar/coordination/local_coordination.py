"""The coordination of a node whose servers are the whole cluster: no service, no thread, and a lease without an end.

The node is elected at once.  Its servers live and end with its process tree, so no node ends by time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Final

from columnar.coordination.api import CoordinationEvents
from columnar.coordination.lease_page import LeasePage
from columnar.coordination.node_record import LeaderRecord, MountRecord, NodeRecord
from columnar.coordination.server_page import ServerPages

NO_END_MS: Final = (1 << 63) // 1_000_000  # of the page: some 290 years after the machine's start


class NoMounts:
    """``MountRecords`` without a service: no other node could fence this one."""

    def list_mounts(self) -> tuple[Mapping[str, MountRecord], Mapping[str, MountRecord]]:
        return {}, {}

    def forget_mount(self, key: str) -> None:
        """Do nothing."""


class LocalCoordination:
    """``Coordination`` without a service."""

    def __init__(self, first_number: int = 0) -> None:
        """Take the highest number that was given before."""
        self.mounts = NoMounts()
        self._number = first_number
        self._lock = threading.Lock()  # guards the number
        self._events: CoordinationEvents | None = None
        self._record: NodeRecord | None = None
        self._epoch = 0  # 0: the node does not lead

    def next_number(self, floor: int = 0) -> int:
        with self._lock:
            self._number = max(self._number, floor) + 1
            return self._number

    async def start(
        self,
        record: NodeRecord,
        page: LeasePage,
        events: CoordinationEvents,
        servers: ServerPages,
        *,
        may_lead: bool,
        epoch_floor: int,
        client: str = "",
    ) -> None:
        """Take the lease and the leadership, with the epoch after ``epoch_floor``; events come after the return."""
        assert may_lead, "without a service there is no other leader"
        page.write_end(NO_END_MS)
        self._servers = servers
        self._events, self._record, self._epoch = events, record, epoch_floor + 1
        asyncio.get_running_loop().call_soon(self._report_election)

    def publish(self, record: NodeRecord) -> None:
        assert self._events is not None
        self._record = record
        self._events.nodes_changed(self.nodes)

    def leads(self) -> bool:
        return self._epoch > 0

    @property
    def nodes(self) -> Mapping[str, NodeRecord]:
        return {} if self._record is None else {self._record.key: self._record}

    def synced_lengths(self, server: str) -> Mapping[int, int]:
        return self._servers.synced_lengths(server)

    async def lift_epoch(self, minimum: int) -> int:
        if self._epoch < minimum:
            self._epoch = minimum
            self._report_leader()
        return self._epoch

    async def wait_unlisted_over(self) -> Mapping[str, NodeRecord]:
        """Return at once: what an earlier start named has ended, because this start holds the folder's lock."""
        return self.nodes

    def request_fence(self, key: str) -> None:
        raise AssertionError(f"{key} is this process")

    def local_address(self) -> str:
        return "127.0.0.1"

    async def withdraw(self) -> None:
        self._epoch = 0

    def _report_election(self) -> None:
        assert self._events is not None
        if self._epoch:
            self._report_leader()
            self._events.elected(self._epoch)
            self._events.nodes_changed(self.nodes)

    def _report_leader(self) -> None:
        assert self._events is not None
        assert self._record is not None
        self._events.leader_changed(LeaderRecord("", self._record.node, self._epoch, self._record.address))
