"""The servers of other nodes by their records, as they are reported to a leader.

    a server in a record       lives
    a server struck off        was reaped by its node
    all servers of a node      have ended by time when its lease is over, or have been reaped when it withdrew

The leader's own node reports its servers directly.

Invariant: a server that a leader counts as ended is never taken back by that leader.  If it lives after all, it is
ended, because it may serve regions that others get.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping

from columnar.coordination.api import Coordination
from columnar.coordination.node_record import NodeRecord
from columnar.model.owner import Incarnation, incarnation_of
from columnar.roles.leading_node import LeadingNode
from columnar.roles.membership import NodeParts

_log = logging.getLogger(__name__)


class MemberFeed:
    def __init__(self, parts: NodeParts, coordination: Coordination, own: Incarnation) -> None:
        self._parts = parts
        self._coordination = coordination
        self._own = own
        self._nodes: Mapping[str, NodeRecord] = {}
        # Nodes that ended since the election; a start that fails is repeated.  None: regions are assigned.
        self._ended: list[tuple[Incarnation, NodeRecord, bool]] | None = []

    # --- reports of the coordination -----------------------------------------------------------------

    def nodes_changed(self, nodes: Mapping[str, NodeRecord], leading: LeadingNode | None) -> None:
        self._nodes = nodes
        if leading is not None:
            self.feed(leading)

    def node_ended(
        self, node: Incarnation, record: NodeRecord, leading: LeadingNode | None, *, is_by_time: bool
    ) -> None:
        if self._ended is not None:
            self._ended.append((node, record, is_by_time))
        if leading is not None:
            self._end_node(leading, node, record, is_by_time)

    def begin_term(self) -> None:
        """Forget the nodes that ended before: the records of the new term lack them."""
        self._ended = []

    def note_assigned(self) -> None:
        """Note that regions are assigned, so the start is not repeated."""
        self._ended = None

    # --- the start of a leader -----------------------------------------------------------------------

    async def find_living(self) -> Collection[Incarnation]:
        """Return the servers of all nodes by their records as they are now, and those of this node."""
        records = await asyncio.to_thread(self._coordination.start_calls.read_nodes)
        named = {incarnation_of(server) for record in records.values() for server in record.servers}
        return named.union(self._parts.living())

    def members_of(self, records: Mapping[str, NodeRecord]) -> dict[Incarnation, Incarnation]:
        """Return the servers that live by the records, and those of this node, with their nodes."""
        found = {
            incarnation_of(server): Incarnation(record.node, record.incarnation)
            for record in records.values()
            for server in record.servers
        }
        found = {server: node for server, node in found.items() if node != self._own}
        return {**found, **dict.fromkeys(self._parts.living(), self._own)}

    def take_members(self, leading: LeadingNode, members: Mapping[Incarnation, Incarnation]) -> None:
        """Report the servers that lived when the leader began, and then all that has happened since."""
        leading.node_joined(self._own, self._parts.settings.zone)
        for server, node in members.items():
            if node != self._own:
                record = self._nodes.get(NodeRecord("", node.name, node.number, "").key)
                leading.node_joined(node, "" if record is None else record.zone)
            self._join(leading, server, node)
        living = self._parts.living()
        for server, node in members.items():
            if node == self._own and server not in living:
                leading.server_ended(server, "while this node began to lead", asked=False)
        for server in living:
            if server not in members:
                leading.server_joined(server, self._own)
        self.feed(leading)
        for node, record, is_by_time in self._ended or ():
            self._end_node(leading, node, record, is_by_time)

    # --- a leader ------------------------------------------------------------------------------------

    def feed(self, leading: LeadingNode) -> None:
        """Report what the records of other nodes say about servers."""
        for record in self._nodes.values():
            node = Incarnation(record.node, record.incarnation)
            if node == self._own or record.withdrawn:
                continue
            leading.node_joined(node, record.zone)
            leading.stores.clock.observe(record.clock_ms)
            servers = frozenset(map(incarnation_of, record.servers))
            known = leading.nodes.servers_of(node)
            for server in sorted(known - servers):
                leading.server_ended(server, "and its node has reaped it", asked=False)
            for server in sorted(servers - known):
                self._join(leading, server, node)

    def _join(self, leading: LeadingNode, server: Incarnation, node: Incarnation) -> None:
        """Report a living server.  A server that counts as ended gets no region again."""
        if not leading.host.has_ended(server):
            leading.server_joined(server, node)
        elif server not in leading.nodes.node_of:
            leading.nodes.add_server(server, node)
            leading.host.events.spawn(self._end_counted(leading, server))

    async def _end_counted(self, leading: LeadingNode, server: Incarnation) -> None:
        """End a server that counts as ended, if a record that is read now has it."""
        records = await asyncio.to_thread(self._coordination.start_calls.read_nodes)
        if any(str(server) in record.servers for record in records.values()):
            _log.error("server %s lives, and counts as ended: it is killed", server)
            await leading.nodes.kill(server, "the leader has counted it as ended")

    def _end_node(self, leading: LeadingNode, node: Incarnation, record: NodeRecord, is_by_time: bool) -> None:
        log = _log.warning if is_by_time else _log.info
        log("node %s has ended: %s", node, "its lease is over" if is_by_time else "it has withdrawn")
        # Its servers may have given timestamps after its last renewal, until the lease was over.
        lease_ms = record.lease_ms or round(self._parts.settings.lease_s * 1_000)
        leading.stores.clock.observe(record.clock_ms + (lease_ms if is_by_time else 0))
        for server in sorted(leading.nodes.servers_of(node) | set(map(incarnation_of, record.servers))):
            leading.server_ended(server, f"with node {node}", asked=not is_by_time, is_by_time=is_by_time)
        leading.node_ended(node)
