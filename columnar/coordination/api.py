"""The interface of a node's coordination: its lease, who lives, who leads.

``Coordination`` is what a node uses; ``CoordinationEvents`` is what it hears.  ``node_coordination`` implements it over
etcd or ZooKeeper.  A node whose servers are the whole cluster needs none of it: its lease has no end (``lease_page``).

Invariants:
    N1. A number is given at most once, whatever is killed (``next_number``).
    N2. Between ``elected`` and ``deposed`` the node leads, but only while ``leads()`` says so: a service that does not
        answer takes no leadership, it only interrupts it.  So a leader checks ``leads()`` after each of its actions.
    N3. ``node_ended`` is called at most once for a key, only while this node leads, and only when no server of the node
        answers any more.

Times are milliseconds of ``lease_page.boot_ms``.  Knows nothing of servers, regions and the catalogue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from columnar.coordination.clock_check import ClusterClock
from columnar.coordination.lease_page import LeasePage
from columnar.coordination.node_record import LeaderRecord, MountRecord, NodeRecord
from columnar.coordination.server_page import ServerPages
from columnar.coordination.start_calls import StartCalls
from columnar.errors import RetryLater


class NotLeading(RetryLater):
    """This node does not lead, or leads no more."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this node does not lead: {why}")


class CoordinationEvents(Protocol):
    """Events of a cluster, for a node.  Each method is called on the event loop, and must not block."""

    def nodes_changed(self, nodes: Mapping[str, NodeRecord]) -> None:
        """Take the records of all nodes, this one's too, by their keys ``nodes/NAME.INCARNATION``.

        Called if anything but logs and clocks has changed.  A record that is missing does not mean that the node
        has ended; only ``node_ended`` does.
        """

    def node_ended(self, key: str, record: NodeRecord, *, is_by_time: bool) -> None:
        """Take the last record of a node whose servers never answer again; called only while this node leads.

        ``is_by_time``: the lease ran out, so a server of the node may still run and write to its old folders.
        Otherwise the node withdrew after its servers had ended.
        """

    def leader_changed(self, leader: LeaderRecord | None) -> None:
        """Take the leader's record; it may be this node's own.  None: the leader has resigned."""

    def elected(self, epoch: int) -> None:
        """This node leads from now on."""

    def deposed(self, why: str) -> None:
        """This node leads no more.  It may be elected again, with a higher epoch."""

    def lease_lost(self, why: str) -> None:
        """This node was fenced.  Its servers answer nothing any more; the process must end."""

    def service_silent(self, since_ms: int, why: str) -> None:
        """The coordination service has not answered since then.  Servers withhold answers when the lease is over."""

    def service_answers(self, silent_ms: int) -> None:
        """The coordination service answers again, after so long."""


class MountRecords(Protocol):
    """The records of the nodes' mounts, and those of their leases.  The methods block; for any thread but the loop's.

    Each raises ColumnarError if the service does not answer.
    """

    def list_mounts(self) -> tuple[Mapping[str, MountRecord], Mapping[str, MountRecord]]:
        """Return the mounts of nodes that have a record of a lease, and all other mounts, by their keys."""

    def read_nodes(self) -> Mapping[str, NodeRecord]:
        """Return the records of all nodes' leases as they are now, by their keys."""

    def forget_mount(self, key: str) -> None:
        """Delete the record: nothing is left to be fenced."""


class Coordination(Protocol):
    """The coordination of a node.  All methods but those that say otherwise belong to the event loop."""

    clock: ClusterClock  # by the records of the nodes

    @property
    def start_calls(self) -> StartCalls:
        """Return the calls of the service that need neither the lease nor the leadership; not for the loop."""

    def next_number(self, floor: int = 0) -> int:
        """Return a number that was never given before, above ``floor``.  Blocks; for any thread but the loop's."""

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
        web: str = "",
    ) -> None:
        """Acquire the node's lease, and note the mount of its ``client``; returns when the lease is held.

        ``web``: the URL of the node's pages, for its record as a leader.

        The mount is noted after the lease is held, and before this node can lead.  Each renewal carries what
        ``servers`` says then.
        """

    def publish(self, record: NodeRecord) -> asyncio.Future[None]:
        """Renew with this record at once; the result is done when the service has this record or a later one."""

    def leads(self) -> bool:
        """Tell whether this node leads now, by the clock and without a call.  For any thread."""

    @property
    def nodes(self) -> Mapping[str, NodeRecord]:
        """Return the records as last polled, with their logs and clocks."""

    def synced_lengths(self, server: str) -> Mapping[int, int]:
        """Return the synced length of each segment of the server's log by the last record about the server.

        Also after the record is gone; none if no record told of the server lately.  For any thread.
        """

    async def lift_epoch(self, minimum: int) -> int:
        """Write the leader's record with an epoch of at least ``minimum``, and return the epoch.

        Raises NotLeading.  A leader calls this before its first act, with one more than the highest epoch that it has
        found in the data folder.
        """

    async def wait_unlisted_over(self) -> Mapping[str, NodeRecord]:
        """Wait until each node that the result does not name has ended, whatever names it; returns all others' records.

        The records were read after the election.  Raises NotLeading.  Takes at most ``fence_ms`` plus two polls after
        the election, and less if this process has watched for so long.
        """

    def step_down(self) -> None:
        """Lead no more from now on; ``deposed`` follows.  Does nothing if this node does not lead.

        Other nodes are elected first: this node leads again only after another one has led, or if for 2 ``fence_ms``
        none has taken the place.
        """

    def request_fence(self, key: str) -> None:
        """Fence a node though it renews; ``node_ended`` follows.  Does nothing if this node does not lead."""

    def local_address(self) -> str:
        """Return the IP address of this machine that is on its route to the service.  Blocks if a name is looked up."""

    async def withdraw(self) -> None:
        """Stop: vacate the leadership, withdraw the node's record, end the threads.  Call it after the servers' end.

        May be called again, and after ``lease_lost``.  Without a service that answers it takes 2 WITHDRAW_S; then the
        node's record stands until the leader fences it.
        """
