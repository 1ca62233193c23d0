"""A region server's link to its node, the parent process, and its end of the channel for connections of clients.

    requests of the node     FollowLeader, LiveSettings, ChangeLogLevels, HandOver, ReturnConnections, JudgeVisitor
    reports to the node      TakesConnections, once the routes of all tables are known

When the link or the channel ends, the node has ended, and another server may own this server's regions soon: the
process must end immediately, before it answers any request.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from typing import cast

from columnar.cluster.hello import Hello, obstacle
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.refusals import Unknown
from columnar.coordination.processes import Beat
from columnar.model.node_messages import ChangeLogLevels, FollowLeader, LiveSettings, ProcessLevels, TakesConnections
from columnar.model.owner_messages import HandOver, HandoverResult, ReturnConnections
from columnar.operations.scanner_table import ScannerTable
from columnar.roles.leader_link import LeaderLink
from columnar.roles.ports import ServerPorts
from columnar.roles.server_connection_channel import ServerConnectionChannel
from columnar.runtime.background import Background
from columnar.runtime.log_lines import change_levels
from columnar.version import at_start, full


class NodeLink:
    def __init__(
        self,
        hello: Hello,
        leader: LeaderLink,
        on_orphaned: Callable[[str], None],
        on_settings: Callable[[LiveSettings], None],
        on_levels: Callable[[], None],
    ) -> None:
        """Pass ``leader``, which follows the leader that the node names.

        ``on_orphaned`` is called with the reason when the node has ended, ``on_settings`` with settings to take,
        ``on_levels`` when levels of loggers have changed.
        """
        self._hello = hello
        self._leader = leader
        self._on_orphaned = on_orphaned
        self._on_settings = on_settings
        self._on_levels = on_levels
        self.leader_epoch: Callable[[], int] = lambda: 0  # as in ``Beat``
        self.answers = PeerServer({}, lambda _table, _row: Unknown("a node sends no calls"), itertools.count(1))
        self._reports = Background("reports to the node")
        self._channel: ServerConnectionChannel | None = None
        self._link: PeerLink | None = None
        self._has_reported = False
        self._is_stopping = False

    async def open_link(
        self, control: socket.socket, channel: socket.socket, ports: ServerPorts, scanners: ScannerTable
    ) -> None:
        """Link with the node.  This object owns the non-blocking sockets from now on."""
        self._channel = ServerConnectionChannel(channel, ports, scanners, self._handle_end)
        self.answers.register(
            {
                FollowLeader: self._follow_leader,
                LiveSettings: self._take_settings,
                ChangeLogLevels: self._change_log_levels,
                HandOver: self._hand_over,
                ReturnConnections: self._return_connections,
            }
        )
        self._channel.begin()

        def made() -> PeerLink:
            return PeerLink(self._hello, self._obstacle, self.answers, lambda link: self._handle_end(link.why))

        factory = cast(Callable[[], asyncio.Protocol], made)
        _, link = await asyncio.get_running_loop().create_unix_connection(factory, sock=control)
        self._link = cast(PeerLink, link)

    def _obstacle(self, hello: Hello) -> str | None:
        return obstacle(hello, self._hello.cluster, 0)

    def _handle_end(self, why: str) -> None:
        if not self._is_stopping:
            self._on_orphaned(why)

    # --- requests of the node ------------------------------------------------------------------------

    async def _follow_leader(self, message: FollowLeader) -> None:
        self._leader.follow(message.epoch, message.address)

    async def _take_settings(self, message: LiveSettings) -> None:
        self._on_settings(message)

    async def _change_log_levels(self, message: ChangeLogLevels) -> tuple[ProcessLevels, ...]:
        levels = change_levels(message.changes)
        self._on_levels()
        return (ProcessLevels(str(self._hello.server), levels),)

    async def _hand_over(self, message: HandOver) -> HandoverResult:
        assert self._channel is not None, "it is there before the node is answered"
        return await self._channel.hand_over(message.within_ms / 1000)

    async def _return_connections(self, message: ReturnConnections) -> int:
        assert self._channel is not None, "as above"
        return await self._channel.part_with(message.connections, message.within_ms / 1000)

    # --- reports to the node -------------------------------------------------------------------------

    def beat(self, iterations: int) -> Beat:
        channel = self._channel
        if channel is None:
            return Beat(iterations)
        return Beat(iterations, channel.open, channel.taken, channel.given, self.leader_epoch())

    def report_routes(self) -> None:
        """Report, once, that this server knows the routes of all tables, and so can serve connections."""
        if not self._has_reported and self._link is not None:
            self._has_reported = True
            self._reports.spawn(self._link.send_request(TakesConnections(full(at_start()))))

    # --- the end -------------------------------------------------------------------------------------

    def begin_stop(self) -> None:
        """Take no more connections, and expect the end of the node from now on."""
        self._is_stopping = True
        if self._channel is not None:
            self._channel.close()

    async def close(self) -> None:
        """Answer no more requests of the node."""
        self._reports.close()
        await self.answers.close()
