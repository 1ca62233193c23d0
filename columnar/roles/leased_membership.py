"""The membership of a node beside others: its lease over a coordination service, and the leader that it follows.

    joining     the node acquires its lease, and listens for links
    following   another node leads; servers of this node are told where
    leading     this node was elected (``leadership``)
    lost        the lease of this node is over: the process ends at once, and its servers with it

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from columnar.cluster.hello import Hello
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.link_listener import LinkListener, OnLink
from columnar.cluster.peer_address import TcpAddress
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.peers import LinkTerms
from columnar.cluster.refusals import Unknown
from columnar.config import StandaloneConfig
from columnar.coordination.api import Coordination
from columnar.coordination.node_coordination import NodeCoordination, connect
from columnar.coordination.node_record import LeaderRecord, NodeRecord
from columnar.coordination.service_address import ServiceAddress
from columnar.errors import ColumnarError, HostError
from columnar.model.node_messages import (
    AwaitRegions,
    ChangeLogLevels,
    DescribeServers,
    FollowLeader,
    KillServer,
    LiveSettings,
    NamedFacts,
    StartServer,
    StopServer,
)
from columnar.model.owner import Incarnation
from columnar.roles.cluster_nodes import OwnNode
from columnar.roles.fence_commands import CephFence, StorageFence, storage_fence
from columnar.roles.leader_link import LeaderLink
from columnar.roles.leadership import Leadership
from columnar.roles.leading_node import LeadingNode
from columnar.roles.membership import NodeParts, Standing
from columnar.roles.node_addresses import WILDCARDS, NodeAddress
from columnar.roles.operator_calls import open_operator_socket
from columnar.roles.ports import read_peer_tls
from columnar.storage.cluster_file import read_cluster, read_secret, write_cluster
from columnar.storage.data_folder import META, NODES_SINCE
from columnar.storage.file_systems import client_of
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_folders import highest_number

if TYPE_CHECKING:
    from columnar.wire.tls_context import PeerTls

_log = logging.getLogger(__name__)

LOOP: Final = "the leader of the cluster"
LEAD_AGAIN_S: Final = 2.0  # after the catalogue could not be opened
SERVED_AGAIN_S: Final = 0.05


class LeasedMembership:
    """The ``Membership`` of a node that has a lease."""

    def __init__(
        self,
        parts: NodeParts,
        coordination: Coordination,
        own: Incarnation,
        secret: bytes,
        tls: PeerTls | None,
        client: str,
    ) -> None:
        """Pass the node's own incarnation, whose number was never given before, and the cluster's secret.

        ``tls`` is that of links over TCP; None: they are plain.  ``client`` names the client of the file system.
        """
        self._parts = parts
        self._coordination = coordination
        self.own = own
        self._secret = secret
        self._tls = tls
        self._client = client
        self.leader: FollowLeader | None = None
        self.leader_web = ""
        self._address = NodeAddress(own.name)
        links = LinkTerms(secret=secret, tls=tls)
        self._leadership = Leadership(
            parts,
            coordination,
            own,
            links,
            self._follow_leader,
            self._note_change,
            storage_fence(parts.settings.fence_command, parts.config.data),
        )
        self._link = LeaderLink(Hello(parts.folder.cluster_id, own), make_node_answers(parts.own), self, links)
        self._own_servers: dict[Incarnation, None] = {}
        self._undo = AsyncExitStack()
        self._changed: asyncio.Future[None] | None = None  # done at the next change that ``until_served`` waits for

    @classmethod
    async def connect(cls, parts: NodeParts) -> LeasedMembership:
        """Return the membership over the service that the settings name.  Raises HostError, DamagedData."""
        settings, data = parts.settings, parts.config.data
        client = await asyncio.to_thread(client_of, data)
        _check_fence(storage_fence(settings.fence_command, data), data, client)
        coordination = await asyncio.to_thread(connect, settings.coordination, settings.lease_s, settings.access)
        await asyncio.to_thread(_claim_folder, parts, coordination)
        secret = await asyncio.to_thread(read_secret, parts.folder.path)
        floor = await asyncio.to_thread(highest_number, parts.folder.path)
        number = await asyncio.to_thread(coordination.next_number, floor)
        tls = await asyncio.to_thread(read_peer_tls, parts.config)
        return cls(parts, coordination, Incarnation(settings.name, number), bytes.fromhex(secret), tls, client)

    @property
    def leading(self) -> LeadingNode | None:
        return self._leadership.leading

    def name(self) -> str:
        return str(self.own)

    def standing(self) -> Standing:
        silence, catalogue = self._leadership.silence, self._leadership.delay()
        obstacle = self._link.obstacle() if self.leader is not None else "no node leads"
        if obstacle and self._address.remark:
            obstacle = f"{obstacle}; {self._address.remark}"
        early = self._link.delay() if self.leader is not None else ""
        return Standing(
            silence,
            catalogue,
            "" if self.leading is not None else catalogue or obstacle,
            silence or catalogue or early,
            self._coordination.clock.offset_ms() / 1_000,
        )

    # --- start ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        parts = self._parts
        address = await self._listen()
        self._undo.callback(self._link.close)
        zone, never_leads = parts.settings.zone, not parts.settings.may_lead
        self._record = NodeRecord("", self.own.name, self.own.number, address, zone=zone, never_leads=never_leads)
        folders = RegionFolders(parts.regions_path, RocksEngine())
        epoch_floor = await asyncio.to_thread(folders.highest_generation, META)
        await self._coordination.start(
            self._record,
            parts.lease_page,
            self._leadership,
            parts.pages,
            may_lead=parts.settings.may_lead,
            epoch_floor=epoch_floor,
            client=self._client,
            web=_web_url(parts.config, self._address.host),
        )
        self._undo.push_async_callback(self._coordination.withdraw)
        self._undo.push_async_callback(self._leadership.close)
        control = await open_operator_socket(parts, self.own.name, self._link)
        self._undo.push_async_callback(control.close)
        _log.info("node %s has its lease, and listens for links at %s", self.own, address)

    async def _listen(self) -> str:
        """Listen for links of servers and nodes; returns the address at which they reach this node."""
        host, port = self._parts.config.host, self._parts.settings.peer_port
        tls = self._tls.accepting if self._tls is not None else None
        listener = LinkListener(self._make_link, lambda _link: None, tls)
        try:
            await listener.listen(TcpAddress(host, port))
        except OSError as error:
            text = f"cannot listen on {host}:{port}: {error.strerror}; choose another with --peer-port"
            raise HostError(text) from error
        self._undo.push_async_callback(listener.wait_closed)
        self._undo.callback(listener.begin_close)
        if host in WILDCARDS:
            host = await asyncio.to_thread(self._coordination.local_address)
        service = ServiceAddress.parse(self._parts.settings.coordination)
        self._address.note_listening(host, listener.hosts, service.hosts)
        return str(TcpAddress(host, listener.port))

    def _make_link(self, on_ended: OnLink) -> PeerLink:
        if self.leading is not None:
            return self.leading.links.accept(on_ended)
        hello = Hello(self._parts.folder.cluster_id, self.own)
        refusing = PeerServer({}, _serves_nothing, itertools.count(1))
        return PeerLink(hello, lambda _hello: "this node does not lead", refusing, on_ended, secret=self._secret)

    def take_settings(self, live: LiveSettings) -> None:
        if self.leading is not None:
            self.leading.service.take_slow_ms(live.slow_request_ms)
        if self._tls is not None:
            self._tls.renew(live.tls_cert, live.tls_key)

    # --- this node's servers -------------------------------------------------------------------------

    async def number_server(self, name: str) -> Incarnation:
        server = Incarnation(name, await asyncio.to_thread(self._coordination.next_number))
        self._own_servers[server] = None
        try:
            await self._publish()
        except BaseException:
            self.forget_server(server)
            raise
        return server

    def forget_server(self, server: Incarnation) -> None:
        self._own_servers.pop(server, None)
        self._publish()

    def clock_ms(self) -> int:
        """Return the highest clock by the records; beyond it a region's own mark bounds its timestamps."""
        readings = (record.clock_ms for record in self._coordination.nodes.values())
        return max([self._parts.pages.read_pages().clock_ms, *readings])

    def peer_settings(self) -> dict[str, str]:
        return {"peer_host": self._address.host, "secret": self._secret.hex()}

    def server_joined(self, server: Incarnation) -> None:
        if self.leading is not None:
            self.leading.server_joined(server, self.own)

    def server_ended(self, server: Incarnation, why: str, *, asked: bool) -> None:
        self._own_servers.pop(server, None)
        self._publish()
        if self.leading is not None:
            self.leading.server_ended(server, why, asked=asked)

    def _publish(self) -> asyncio.Future[None]:
        """Have the record say which servers of this node live; the result is done when it does."""
        servers = tuple(sorted(map(str, self._own_servers)))
        self._record = replace(self._record, servers=servers)
        return self._coordination.publish(self._record)

    def note_ready(self) -> None:
        self._note_change()

    def _note_change(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done():
            changed.set_result(None)

    async def _until_change(self) -> None:
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    async def until_served(self) -> None:
        if not self._parts.settings.servers:  # regions may wait for the servers of other nodes
            while not self._link.is_open:
                await self._until_change()
            return
        while not (self._parts.living() and self._parts.ready().issuperset(self._parts.living())):
            await self._until_change()
        while True:
            try:
                await self._link.request_peer(AwaitRegions())
                return
            except (NotSent, LinkBroke, ColumnarError):
                await asyncio.sleep(SERVED_AGAIN_S)  # the next leader is asked

    # --- who leads -----------------------------------------------------------------------------------

    def _follow_leader(self, leader: LeaderRecord | None) -> None:
        self._address.compare(leader)
        if leader is None:
            self.leader, self.leader_web = None, ""
            return  # links stay as they are until the next leader
        self.leader, self.leader_web = FollowLeader(leader.epoch, leader.address), leader.web
        self._parts.name_leader()
        self._link.follow(leader.epoch, leader.address, leader.node)  # also if it is this node: there is one way

    # The methods of ``leader_link.LeaderEvents``.

    def leader_linked(self) -> None:
        self._note_change()

    def leader_lost(self, why: str) -> None:
        """Go on without a leader."""

    # --- the end -------------------------------------------------------------------------------------

    async def begin_stop(self) -> None:
        await self._leadership.begin_stop()

    async def close(self) -> None:
        await self._undo.aclose()


def make_node_answers(own: OwnNode) -> PeerServer:
    """Return the handlers of the leader's requests to a node that does not lead."""
    answers = PeerServer({}, _serves_nothing, itertools.count(1))

    async def describe(message: DescribeServers) -> tuple[NamedFacts, ...]:
        return own.describe_servers(message)

    answers.register(
        {
            KillServer: lambda message: own.kill_server(message.server, message.why),
            StopServer: lambda message: own.stop_server(message.server),
            StartServer: lambda message: own.start_server(message.name),
            DescribeServers: describe,
            ChangeLogLevels: own.change_log_levels,
        }
    )
    return answers


def _serves_nothing(_table: str, _row: bytes) -> Unknown:
    return Unknown("a node serves no rows")


def _web_url(config: StandaloneConfig, host: str) -> str:
    """Return the URL of a node's pages; empty if it has none, or the system chooses their port."""
    scheme = "https" if config.tls_cert else "http"
    return f"{scheme}://{TcpAddress(host, config.web_port)}/" if config.web_port > 0 else ""


def _check_fence(fence: StorageFence | None, data: str, client: str) -> None:
    """Raise HostError if this node could never be fenced as its options say."""
    if isinstance(fence, CephFence) and not client:
        why = "is not on CephFS, or its client is too old to name itself (before Linux 5.11, and ceph-fuse 16)"
        raise HostError(f"--fence-command cephfs: {data} {why}")


def _claim_folder(parts: NodeParts, coordination: NodeCoordination) -> None:
    """Have service and folder name each other, before this node takes a lease and may lead.  Blocks; raises HostError.

    Other programs know from then on that nodes share the folder.
    """
    path, cluster_id = parts.folder.path, parts.folder.cluster_id
    found = read_cluster(path)
    known_id = found.service_id if found is not None else ""
    service_id = coordination.start_calls.claim_folder(cluster_id, known_id, path)
    parts.folder.raise_format(NODES_SINCE)
    write_cluster(path, cluster_id, parts.settings.coordination, service_id)
