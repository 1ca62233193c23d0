"""The servers of a node: their processes, the watch of those that hang, and their way to the leader.

A server that hangs is killed, whoever leads (``master.liveness``).

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from columnar.cluster.hello import Hello
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.refusals import Unknown
from columnar.coordination.processes import Beat
from columnar.coordination.server_page import ServerPages
from columnar.errors import HostError
from columnar.master.liveness import STUCK_MS, STUCK_ON_NETWORK_MS
from columnar.model.node_messages import (
    ChangeLogLevels,
    DescribeServers,
    FollowLeader,
    JudgeVisitor,
    LiveSettings,
    NamedFacts,
    ProcessLevels,
    ServerFacts,
    TakesConnections,
    Verdict,
)
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import HandoverResult
from columnar.roles.cluster_loops import ServerWatch
from columnar.roles.cluster_nodes import LEVELS_S, change_levels_of
from columnar.roles.node_ports import NodePorts
from columnar.roles.server_processes import ServerProcesses, ending
from columnar.runtime.background import Background
from columnar.runtime.log_lines import change_levels
from columnar.storage.file_systems import is_network, mount_of

if TYPE_CHECKING:
    from columnar.roles.membership import Membership

_log = logging.getLogger(__name__)

NODE: Final = Incarnation("node", 1)  # as servers know their parent


def stuck_limit_ms(data: str) -> int:
    """Return after how long a server whose loop does not iterate hangs: longer on a network folder.  Blocks."""
    try:
        return STUCK_ON_NETWORK_MS if is_network(mount_of(data)) else STUCK_MS
    except OSError as error:
        _log.warning("the type of the file system of %s is unknown: %s", data, error)
        return STUCK_MS


class OwnServers:
    """The ``Events`` of ``server_processes``, and the ``OwnNode`` of ``cluster_nodes``."""

    def __init__(
        self,
        names: list[str],
        processes: ServerProcesses,
        ports: NodePorts,
        is_folder_stalled: Callable[[], bool],
        stuck_ms: int,
    ) -> None:
        self._names = names
        self.processes = processes
        self.pages = ServerPages()
        self._ports = ports
        self.watch = ServerWatch(
            lambda: int(asyncio.get_running_loop().time() * 1000),
            processes.has_worked,
            self._kill_soon,
            is_folder_stalled,
            stuck_ms,
        )
        self.answers = PeerServer({}, lambda _table, _row: Unknown("a node serves no rows"), itertools.count(1))
        self.answers.register_with_sender(TakesConnections, self._takes_connections)
        self._work = Background("the servers of this node")
        self._live: LiveSettings | None = None  # as they were taken last; servers start with what was in force then
        self.is_leaving = False  # as the leader said last: this node is drained until its next start
        self.leader_delay = ""  # as the leader said last: what it waits for
        self._versions: dict[Incarnation, str] = {}  # of living servers that take connections
        self._followed: dict[Incarnation, int] = {}  # epochs of the leaders that living servers follow, by their beats

    def follow(self, membership: Membership, cluster_id: str, fault: asyncio.Future[None]) -> None:
        """Report to ``membership``; ``fault`` is set if a server ends before the ports are open, and would again."""
        self._membership = membership
        self._fault = fault
        self.processes.follow(self, Hello(cluster_id, NODE), membership, self.answers)

    # The methods of ``server_processes.Events`` notify the ports first, then the cluster.

    def joined(self, server: Incarnation) -> None:
        self.pages.add_server(str(server), self.processes.living[server].child.page)
        self._ports.joined(server)
        self.watch.joined(server)
        self._membership.server_joined(server)

    def heard(self, server: Incarnation, beat: Beat) -> None:
        self._ports.heard(server, beat)
        self._followed[server] = beat.leader_epoch
        self.watch.heard(server, beat.iterations)

    async def linked(self, server: Incarnation) -> None:
        self._name_leader(server)
        if self._live is not None:  # it may have started before
            self._work.spawn(self._send(server, self._live))

    def unlinked(self, server: Incarnation, why: str) -> None:
        self._kill_soon(server, why)

    def handover_ended(self, server: Incarnation, result: HandoverResult) -> None:
        self._ports.handover_ended(server, result)

    def ended(self, server: Incarnation, why: str, *, asked: bool) -> None:
        self.pages.end_server(str(server))
        self.watch.left(server)
        self._followed.pop(server, None)
        self._versions.pop(server, None)
        self._ports.forget_server(server)
        if not self._ports.are_open and not self._fault.done() and self.processes.deaths.is_start_hopeless(server.name):
            text = f"server {server} did not start, it ended {why}; its last lines above say why"
            self._fault.set_exception(HostError(text))
            self._fault.exception()  # marks it as retrieved
        self._membership.server_ended(server, why, asked=asked)

    async def _takes_connections(self, server: Incarnation, message: TakesConnections) -> None:
        self._versions[server] = message.version
        self._ports.takes_connections(server)
        self._membership.note_ready()

    # --- the leader ----------------------------------------------------------------------------------

    def list_strays(self) -> tuple[Incarnation, ...]:
        """Return the living servers that are not linked with the leader, or have no routes of it."""
        leader = self._membership.leader
        epoch = leader.epoch if leader is not None else 1
        living = self.processes.living.items()
        return tuple(name for name, server in living if not server.is_stopping and self._followed.get(name, 0) < epoch)

    def name_leader(self) -> None:
        """Tell all servers which leader to follow."""
        for server in self.processes.living:
            self._name_leader(server)

    def _name_leader(self, server: Incarnation) -> None:
        leader = self._membership.leader
        if leader is not None:
            self._work.spawn(self._send(server, leader))

    async def _send(self, server: Incarnation, message: FollowLeader | LiveSettings) -> None:
        with suppress(NotSent, LinkBroke):  # its end is reported separately; its next link has the message again
            await self.processes.request_server(server, message)

    # --- the methods of ``cluster_nodes.OwnNode`` -----------------------------------------------------

    def _kill_soon(self, server: Incarnation, why: str) -> None:
        self._work.spawn(self.kill_server(server, why))

    async def kill_server(self, server: Incarnation, why: str) -> None:
        """Kill the server; returns when it was reaped and reported as ended, or at once if it does not live."""
        if server in self.processes.living and not self.processes.is_stopping:
            _log.warning("server %s is killed: %s", server, why)
        await self.processes.fence(server)

    async def stop_server(self, server: Incarnation) -> None:
        await self.processes.stop_one(server)

    async def start_server(self, name: str) -> None:
        await self.processes.start_one(name)

    def describe_servers(self, message: DescribeServers) -> tuple[NamedFacts, ...]:
        self.is_leaving, self.leader_delay = message.is_leaving, message.delay
        return self.list_facts()

    def list_facts(self) -> tuple[NamedFacts, ...]:
        """Return the facts of this node's servers."""
        living = {server.name: server for server in self.processes.living}
        return tuple(NamedFacts(name, self._facts(name, living.get(name))) for name in self._names)

    def _facts(self, name: str, server: Incarnation | None) -> ServerFacts:
        died = self.processes.deaths.last(name)
        death, lines = "", tuple[str, ...]()
        if died is not None:
            ago_s = asyncio.get_running_loop().time() - died.at_s
            death, lines = f"{died.who} died {ago_s:.0f} s ago, {ending(died.status)}", died.lines
        if server is None:
            return ServerFacts(last_death=death, last_lines=lines)
        return ServerFacts(
            self._versions.get(server, ""),
            "",
            self.processes.living[server].child.pid,
            self._ports.connections(server),
            self.watch.busy_ms(server),
            last_death=death,
            last_lines=lines,
        )

    # --- visitors, settings, the end -----------------------------------------------------------------

    async def judge_visitor(self, visitor: JudgeVisitor) -> Verdict:
        """Have a server decide; the same one while it lives and knows the rights, because it counts the refusals."""
        from columnar.rights.page_guard import NO_RIGHTS_YET  # most stores have no users

        undecided = Verdict(503, "no server of this node answers now, and they know who may see the pages; try again")
        for server in sorted(self.processes.living, key=str):
            with suppress(NotSent, LinkBroke):
                verdict = await self.processes.request_server(server, visitor)
                if verdict != NO_RIGHTS_YET:
                    return verdict
                undecided = verdict
        return undecided

    def take_settings(self, live: LiveSettings) -> None:
        """Have the servers take the settings, and read the certificate again; a starting server when it is linked."""
        self._live = live
        for server in self.processes.living:
            self._work.spawn(self._send(server, live))

    async def change_log_levels(self, message: ChangeLogLevels) -> tuple[ProcessLevels, ...]:
        """Change the levels of loggers of this process and its servers; return those in force.  Raises ValueError."""
        own = ProcessLevels(self._membership.name(), change_levels(message.changes))
        request = self.processes.request_server
        living = self.processes.living
        answers = await asyncio.gather(*(change_levels_of(one, message, request, LEVELS_S) for one in living))
        return own, *(one for answer in answers for one in answer)

    def kill_all(self) -> None:
        """Send SIGKILL to all processes, without waiting."""
        for child in self.processes.children.running:
            child.signal(signal.SIGKILL)

    async def close(self) -> None:
        """End the work for servers.  Call when no server is left."""
        self.watch.stop()
        await self.answers.close()
        self._work.close()
        await self._work.ended()
