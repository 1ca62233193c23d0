"""The nodes of a cluster as its leader uses them: each is the parent process of the servers of a machine.

    own node       is called directly
    other nodes    get messages over their links to the leader (``member_links``)

Facts of the servers of other nodes are polled every FACTS_S, so that a status never waits for a node.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.errors import CallerError, ColumnarError, RetryLater
from columnar.master.cluster_state import ClusterState
from columnar.model.node_messages import (
    ChangeLogLevels,
    DescribeServers,
    KillServer,
    NamedFacts,
    ProcessLevels,
    ServerFacts,
    StartServer,
    StopServer,
)
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import Address
from columnar.roles.member_links import RELINK_S, MemberLinks
from columnar.runtime.background import Background
from columnar.runtime.planned_step import PlannedStep

_log = logging.getLogger(__name__)

LOOP: Final = "the facts of servers"
KILL_S: Final = 5.0  # a node that has not ended a server by then is fenced: a slow fsync delays the end of a process
FACTS_S: Final = 1.0
NODE_LEVELS_S: Final = 7.0  # for the levels of a node and its servers, which has LEVELS_S for each
LEVELS_S: Final = 5.0
RequestLevels = Callable[[Incarnation, ChangeLogLevels], Awaitable[tuple[ProcessLevels, ...]]]
UNANSWERED: Final = "it has not answered; its levels are not known"
ENDED_NAMED: Final = 64  # servers that ended, named to all: a call waits for none of them


class OwnNode(Protocol):
    """The node of this process."""

    async def kill_server(self, server: Incarnation, why: str) -> None: ...

    async def stop_server(self, server: Incarnation) -> None: ...

    async def start_server(self, name: str) -> None: ...

    async def change_log_levels(self, message: ChangeLogLevels) -> tuple[ProcessLevels, ...]: ...

    def describe_servers(self, message: DescribeServers) -> tuple[NamedFacts, ...]:
        """Return the facts of the node's servers, and take what the leader says."""


@dataclass(frozen=True, slots=True)
class LeaderParts:
    """The parts of a leader that its nodes use."""

    fence_node: Callable[[Incarnation], None]  # requests that the lease of a node is ended
    # The state says which servers are drained until their next start, and gets the names of servers that living nodes
    # have and that were stopped under an earlier leader, or have not been started yet.
    state: ClusterState
    list_delays: Callable[[], tuple[str, ...]]  # sentences on what the leader waits for


class ClusterNodes:
    def __init__(
        self,
        own: OwnNode,
        own_name: Incarnation,
        links: MemberLinks,
        leader: LeaderParts,
    ) -> None:
        self._own = own
        self._own_name = own_name
        self._links = links
        self._leader = leader
        self.node_of: dict[Incarnation, Incarnation] = {}  # living servers -> their nodes
        # By node; empty: it has said that it has none.
        self._servers: dict[Incarnation, dict[Incarnation, None]] = {}
        self.zone_of: dict[Incarnation, str] = {}  # zones of the living nodes that have one
        self._home_of: dict[str, Incarnation] = {}  # a server's name -> the node that had it last
        self._facts: dict[str, ServerFacts] = {}  # of servers of other nodes, by name
        self.addresses: dict[Incarnation, Address] = {}  # of the living servers' own ports
        self.ended: deque[Incarnation] = deque(maxlen=ENDED_NAMED)
        self._background = Background(LOOP)
        self._polling: set[Incarnation] = set()  # nodes that have not answered yet
        self._step = PlannedStep(LOOP, self.poll_facts)

    # --- members -------------------------------------------------------------------------------------

    def add_server(self, server: Incarnation, node: Incarnation) -> None:
        self.node_of[server] = self._home_of[server.name] = node
        self._servers.setdefault(node, {})[server] = None

    def remove_server(self, server: Incarnation) -> None:
        node = self.node_of.pop(server, None)
        if node is not None:
            del self._servers[node][server]
            if not self._servers[node]:
                del self._servers[node]
        self.addresses.pop(server, None)
        if server not in self.ended:
            self.ended.append(server)

    def servers_of(self, node: Incarnation) -> frozenset[Incarnation]:
        """Return the node's living servers; each poll of the records asks this for each node."""
        return frozenset(self._servers.get(node, ()))

    def nodes(self) -> list[Incarnation]:
        """Return the other nodes that have living servers."""
        return [node for node, servers in self._servers.items() if servers and node != self._own_name]

    def list_nodes(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the node that had each server last, by the server's name, and the living nodes, this one first."""
        others = sorted(str(node) for node in self.zone_of if node != self._own_name)
        return {name: str(node) for name, node in sorted(self._home_of.items())}, (str(self._own_name), *others)

    def list_without_servers(self) -> frozenset[str]:
        """Return the living nodes that only may lead."""
        return frozenset(str(node) for node, servers in self._servers.items() if not servers)

    def forget_node(self, node: Incarnation) -> None:
        """Note that the node has ended, after its servers."""
        self.zone_of.pop(node, None)
        self._servers.pop(node, None)

    # --- processes -----------------------------------------------------------------------------------

    async def kill(self, server: Incarnation, why: str) -> None:
        """Have the server ended.  Its end is reported by its node's record, or by the end of its node's lease."""
        node = self.node_of.get(server)
        if node is None:
            return
        if node == self._own_name:
            await self._own.kill_server(server, why)
            return
        if not await self._have_killed(node, KillServer(server, why)):
            self._leader.fence_node(node)

    async def _have_killed(self, node: Incarnation, message: KillServer) -> bool:
        """Send ``message`` over this or the next link of the node; return whether it is done, or the server has ended.

        A kill may be repeated: the number of a server is given once.
        """
        server = message.server
        while server in self.node_of:  # else its end was reported, and its node may have other servers that live
            try:
                await asyncio.wait_for(self._links.request_server(node, message), KILL_S)
                return True
            except (NotSent, LinkBroke) as lost:
                is_behind = isinstance(lost, NotSent) and self._links.is_linked(node)
                if (is_behind or not await self._links.relinked(node, RELINK_S)) and server in self.node_of:
                    _log.warning("node %s cannot be reached to end server %s: the node is fenced", node, server)
                    return False
            except (TimeoutError, ColumnarError) as error:
                if server in self.node_of:
                    _log.error("node %s does not end server %s (%s): the node is fenced", node, server, _text(error))
                    return False
        return True

    async def stop_server(self, server: Incarnation) -> None:
        """Stop the server in order; return when it has ended.  Raises RetryLater if its node cannot be reached."""
        node = self.node_of.get(server)
        if node == self._own_name:
            await self._own.stop_server(server)
        elif node is not None:
            try:
                await self._links.request_server(node, StopServer(server))
            except (NotSent, LinkBroke):
                raise RetryLater(f"node {node}, which has server {server}, cannot be reached; try again") from None

    async def start_server(self, name: str) -> None:
        """Start the server at the node that had it last.  Raises RetryLater, CallerError."""
        node = self._home_of.get(name)
        if node == self._own_name:
            await self._own.start_server(name)
            return
        if node is None:
            raise CallerError(f"no node has had a server {name}; start it there")
        try:
            await self._links.request_server(node, StartServer(name))
        except (NotSent, LinkBroke):
            raise RetryLater(f"node {node}, which had server {name}, cannot be reached; try again") from None

    async def change_log_levels(self, changes: tuple[str, ...]) -> tuple[ProcessLevels, ...]:
        """Change the levels of loggers at all nodes and their servers; return those in force."""
        message = ChangeLogLevels(changes)
        others, request = sorted(self.zone_of.keys() - {self._own_name}, key=str), self._links.request_server
        found = await asyncio.gather(
            self._own.change_log_levels(message),
            *(change_levels_of(node, message, request, NODE_LEVELS_S) for node in others),
        )
        return tuple(one for answer in found for one in answer)

    # --- facts ---------------------------------------------------------------------------------------

    def facts(self, server: Incarnation) -> ServerFacts:
        """Return the facts of the server's process, of at most FACTS_S ago."""
        found = self._facts.get(server.name, ServerFacts())
        if self._home_of.get(server.name, self._own_name) == self._own_name:
            described = self._own.describe_servers(self._request_for(self._own_name))
            own: Mapping[str, ServerFacts] = {one.server: one.facts for one in described}
            found = own.get(server.name, ServerFacts())
        address = self.addresses.get(server)
        return found if address is None else replace(found, address=f"{address.host}:{address.port}")

    def _is_leaving(self, node: Incarnation) -> bool:
        """Return whether all servers of the node are drained until their next start."""
        servers = self._servers.get(node, ())
        return bool(servers) and self._leader.state.desired.operator_settings.until_restart.issuperset(servers)

    def _request_for(self, node: Incarnation) -> DescribeServers:
        return DescribeServers(self._is_leaving(node), next(iter(self._leader.list_delays()), ""))

    def poll_facts(self) -> None:
        """Request the facts of all nodes, now and every FACTS_S.

        Each hears whether it is to be left, and what the leader waits for.
        """
        self._step.after(FACTS_S)
        own = self._own.describe_servers(self._request_for(self._own_name))
        self._note_homes(self._own_name, own)
        for node in self.zone_of.keys() - {self._own_name}:
            self.poll_node(node)

    def poll_node(self, node: Incarnation) -> None:
        """Request the facts of a node's servers, unless it has not answered the last request."""
        if node not in self._polling:
            self._polling.add(node)
            self._background.spawn(self._poll(node))

    async def _poll(self, node: Incarnation) -> None:
        try:
            described = await self._links.request_server(node, self._request_for(node))
        except (NotSent, LinkBroke):
            return  # the next poll follows
        finally:
            self._polling.discard(node)
        self._facts.update({one.server: one.facts for one in described})
        self._note_homes(node, described)

    def _note_homes(self, node: Incarnation, described: Iterable[NamedFacts]) -> None:
        """Note which servers a living node has, those that are stopped included."""
        if node not in self.zone_of:
            return  # it has ended meanwhile
        servers = tuple(described)
        if not servers:
            self._servers.setdefault(node, {})
        for one in servers:
            if self._home_of.get(one.server) not in self.zone_of:
                self._home_of[one.server] = node
                self._leader.state.current.server(one.server)  # operators see it, and may start it

    async def close(self) -> None:
        self._step.cancel()
        self._background.close()
        await self._background.ended()


async def change_levels_of(
    member: Incarnation, message: ChangeLogLevels, request: RequestLevels, within_s: float
) -> tuple[ProcessLevels, ...]:
    """Have a node or a server change the levels of its loggers; one that does not answer is named in the answer."""
    try:
        async with asyncio.timeout(within_s):
            return await request(member, message)
    except (NotSent, LinkBroke, TimeoutError, ColumnarError):
        return (ProcessLevels(str(member), UNANSWERED),)


def _text(error: Exception) -> str:
    return error.text if isinstance(error, ColumnarError) else type(error).__name__
