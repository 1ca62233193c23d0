"""The membership of a node in its cluster: who leads, which servers live, and what this node has to do with either.

    SoleMembership     the only node of a folder (``standalone --servers N``): it leads from the start to the stop
    LeasedMembership   one of several nodes (``leased_membership``)

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final, Protocol

from columnar.cluster.link_listener import LinkListener
from columnar.cluster.peer_address import UnixAddress
from columnar.config import NodeConfig, StandaloneConfig
from columnar.coordination.lease_page import LeasePage
from columnar.coordination.server_page import ServerPages
from columnar.coordination.socket_folder import ListeningPath, SocketFolder
from columnar.errors import HostError
from columnar.master.placement_records import ServerState
from columnar.memory_plan import CATALOGUE
from columnar.model.node_messages import FollowLeader, LiveSettings
from columnar.model.owner import Incarnation
from columnar.roles.cluster_nodes import OwnNode
from columnar.roles.leading_node import LeaderTerms, LeadingNode
from columnar.roles.meta_region import CatalogueTerms
from columnar.runtime.own_thread import call_in_own_thread
from columnar.storage import run_file
from columnar.storage.data_folder import REGIONS, DataFolder
from columnar.storage.process_stores import ProcessStores
from columnar.storage.rocks import RocksEngine
from columnar.storage.watched_folder import WatchedFolder
from columnar.wire.server import WireServer

_log = logging.getLogger(__name__)

CONTROL: Final = "control"
_BACKLOG: Final = 16
REMOVAL_S: Final = 1.0  # of the run file, at a stop; a file that stays is as after a kill
_GRACE_S: Final = 1.0  # for calls in flight at a stop
LEADER: Final = "leader"  # the leader's socket in the run folder
SOLE: Final = Incarnation("node", 1)


@dataclass(frozen=True, slots=True)
class NodeParts:
    """The parts of a node that its membership uses."""

    config: StandaloneConfig
    settings: NodeConfig
    folder: DataFolder
    run_folder: SocketFolder
    watched_folder: WatchedFolder
    lease_page: LeasePage
    own: OwnNode
    pages: ServerPages  # of this node's servers
    living: Callable[[], tuple[Incarnation, ...]]  # servers of this node
    ready: Callable[[], frozenset[Incarnation]]  # of them, those that take connections
    name_leader: Callable[[], None]  # tells them all who leads
    end_now: Callable[[str], None]  # ends this process and its servers at once, with the reason: the lease is over
    current_config: Callable[[], StandaloneConfig]  # with the settings that were taken meanwhile

    @property
    def regions_path(self) -> str:
        return os.path.join(self.config.data, REGIONS)


@dataclass(frozen=True, slots=True)
class Standing:
    """The relations of a node to its cluster.  A text is a sentence without an end; it is empty if all is well."""

    service: str = ""  # the coordination service does not answer
    catalogue: str = ""  # what this node waits for before it leads
    leader: str = ""  # why there is no link to a leader, and this node does not lead with its catalogue open
    delay: str = ""  # what a start waits for, if only time or an operator can end it
    clock_offset_s: float = 0.0  # from this machine's clock to the fastest one's


class Membership(Protocol):
    leader: FollowLeader | None  # the leader that servers follow now
    leader_web: str  # the URL of its pages; empty if it has none

    @property
    def leading(self) -> LeadingNode | None:
        """Return the leader's part, if this node leads, and its catalogue is open."""

    def name(self) -> str:
        """Return the node's incarnation as text."""

    def take_settings(self, live: LiveSettings) -> None:
        """Take the settings, if this node leads, and read the certificate of the links between nodes again."""

    def standing(self) -> Standing: ...

    async def start(self) -> None:
        """Join the cluster.  Returns when servers can be numbered.  Raises HostError, DamagedData."""

    async def number_server(self, name: str) -> Incarnation:
        """Return an incarnation for a start of a server that is never given again.

        Returns when every node can know that the server may live.  So a server that has a folder, and is in no record
        that is read after the folder was seen, does not live.
        """

    def forget_server(self, server: Incarnation) -> None:
        """Note that no process was started for the number."""

    def clock_ms(self) -> int:
        """Return a timestamp above which a server that starts now gives all of its own."""

    def peer_settings(self) -> dict[str, str]:
        """Return the fields of ``config.RegionServerConfig`` by which servers of several nodes reach each other."""

    def server_joined(self, server: Incarnation) -> None: ...

    def server_ended(self, server: Incarnation, why: str, *, asked: bool) -> None:
        """Note that this node has reaped the server."""

    def note_ready(self) -> None:
        """Note that ``NodeParts.ready`` has changed."""

    async def until_served(self) -> None:
        """Wait until the servers of this node can take clients: every region has a server.

        Without servers: until the node is linked with a leader.
        """

    async def begin_stop(self) -> None:
        """Begin no more changes of the cluster.  Call before the servers stop."""

    async def close(self) -> None:
        """Leave the cluster.  Call when no server is left."""


class ControlSocket:
    """The private socket of a node, whose callers may end servers: RUN/control.

    Only processes of the store's user may enter the folder RUN.  A run file names it: DATA/run.json, or beside other
    nodes DATA/nodes/NAME/run.json.
    """

    def __init__(self, wire: WireServer, folder: DataFolder, run_folder: SocketFolder, place: str) -> None:
        """Pass ``place``, the folder of the run file."""
        self._wire = wire
        self._folder = folder
        self._place = place
        self._run_folder = run_folder
        self._path = os.path.join(run_folder.path, CONTROL)
        self._listening = ListeningPath(self._path, self._listen)

    async def open_socket(self) -> None:
        """Open the socket.  Raises HostError if the socket or its file cannot be made."""
        await self._listen()
        made = run_file.RunFile(os.getpid(), self._folder.cluster_id, self._path)
        await call_in_own_thread(lambda: run_file.write(self._place, made), "run file")
        run_file.write(self._run_folder.path, replace(made, data=self._folder.path))
        self._listening.begin()

    async def _listen(self) -> None:
        self._run_folder.lock()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(self._path)
            os.chmod(self._path, 0o600)
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            raise HostError(f"cannot listen on {self._path}: {error.strerror}; set TMPDIR") from error
        await self._wire.serve_privately(listening)

    async def close(self) -> None:
        await self._remove_file()
        await self._listening.close()
        await self._wire.close(_GRACE_S)

    async def _remove_file(self) -> None:
        """Remove the run file, which a folder that stands still may hold up: a node's lease must not end meanwhile."""
        try:
            async with asyncio.timeout(REMOVAL_S):
                await call_in_own_thread(lambda: run_file.remove(self._place), "run file")
        except TimeoutError:
            _log.warning("%s stays: the folder does not answer", os.path.join(self._place, run_file.NAME))


class SoleMembership:
    """The folder is locked exclusively, so there is no other node, and the page of the lease has no end.

    A server has ended when this process has reaped it.  Servers reach the leader over a Unix socket.
    """

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self.leader: FollowLeader | None = None
        self.leader_web = ""  # this node leads itself
        self.leading: LeadingNode | None = None
        self._served: asyncio.Future[None] | None = None  # done at the next change of ``ready``
        self._undo = AsyncExitStack()
        self._control: ControlSocket | None = None

    def name(self) -> str:
        return str(SOLE)

    def take_settings(self, live: LiveSettings) -> None:
        """Take the settings; links of one machine have no certificate."""
        if self.leading is not None:
            self.leading.service.take_slow_ms(live.slow_request_ms)

    def standing(self) -> Standing:
        return Standing(leader="" if self.leading is not None else "this node has not opened the catalogue yet")

    async def start(self) -> None:
        parts = self._parts
        parts.lease_page.write_endless()
        self._stores = ProcessStores(parts.folder, RocksEngine.planned(CATALOGUE))
        self._stores.open()
        self._undo.callback(self._stores.close)
        catalogue = CatalogueTerms(parts.watched_folder.until_it_answers)
        terms = LeaderTerms(catalogue, synced_lengths=parts.pages.synced_lengths)
        leading = LeadingNode(parts.current_config(), self._stores, parts.watched_folder, terms)
        await leading.start(parts.own, SOLE, _find_none_living)
        self.leading = leading
        self._undo.push_async_callback(leading.close)
        await self._listen()

    async def _listen(self) -> None:
        leading, path = self.leading, os.path.join(self._parts.run_folder.path, LEADER)
        assert leading is not None, "it leads"
        address = UnixAddress(path)
        listener = LinkListener(leading.links.accept, lambda _link: None)

        async def listen() -> None:
            self._parts.run_folder.lock()
            await listener.listen(address)

        listening = ListeningPath(path, listen)
        try:
            await listen()
        except OSError as error:
            raise HostError(f"cannot listen on {path}: {error.strerror}; set TMPDIR to a shorter path") from error
        listening.begin()
        self._undo.push_async_callback(listener.wait_closed)
        self._undo.callback(listener.begin_close)
        self._undo.push_async_callback(listening.close)
        self.leader = FollowLeader(leading.epoch, str(address))
        self._parts.name_leader()

    async def number_server(self, name: str) -> Incarnation:
        assert self.leading is not None, "it leads"
        return Incarnation(name, await self.leading.leading.catalogue.ownership.raise_epoch())

    def forget_server(self, server: Incarnation) -> None:
        """Do nothing: only this node knows of it."""

    def clock_ms(self) -> int:
        return self._stores.clock()

    def peer_settings(self) -> dict[str, str]:
        return {}

    def server_joined(self, server: Incarnation) -> None:
        if self.leading is not None:
            self.leading.server_joined(server, SOLE)

    def server_ended(self, server: Incarnation, why: str, *, asked: bool) -> None:
        if self.leading is not None:
            self.leading.server_ended(server, why, asked=asked)

    def note_ready(self) -> None:
        served, self._served = self._served, None
        if served is not None and not served.done():
            served.set_result(None)

    async def until_served(self) -> None:
        leading = self.leading
        assert leading is not None, "it leads"
        servers = leading.host.state.current.servers
        names = [self._parts.settings.server_name(n + 1) for n in range(self._parts.settings.servers)]
        await leading.host.events.until(
            lambda: all(name in servers and servers[name].state is ServerState.UP for name in names)
        )
        await leading.begin_assignment()
        while not self._parts.ready().issuperset(self._parts.living()):
            self._served = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._served)
        self._control = ControlSocket(
            leading.service.private_wire(), self._parts.folder, self._parts.run_folder, self._parts.folder.path
        )
        await self._control.open_socket()

    async def begin_stop(self) -> None:
        if self._control is not None:
            await self._control.close()
        if self.leading is not None:
            await self.leading.stop_changes()

    async def close(self) -> None:
        await self._undo.aclose()


async def _find_none_living() -> frozenset[Incarnation]:
    """Return no server: those of earlier starts died with the process that held the lock."""
    return frozenset()
