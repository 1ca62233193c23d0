"""``--servers N``: a master with N region servers as child processes and the listening ports, on one machine.

The order of the start is lock, processes of the servers (which import modules meanwhile), catalogue, recovery of what
earlier starts left, numbers and settings of the servers, owners of all regions, ports.  The order of the stop is ports,
servers (concurrently, each like a standalone store), catalogue, lock.  The servers inherit the lock, so that a new
start is refused as long as any of them lives, and they die with this process.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from columnar.cluster.hello import Hello
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.refusals import Unknown
from columnar.config import StandaloneConfig
from columnar.connections.connection_dispatcher import ConnectionDispatcher, ConnectionRebalancer
from columnar.connections.listeners import Port, ReturnedConnections
from columnar.coordination.processes import Beat, Child
from columnar.coordination.socket_folder import SocketFolder
from columnar.errors import HostError
from columnar.master.cluster_control import ClusterControl
from columnar.master.cluster_state import ClusterState
from columnar.master.dead_servers import named_in
from columnar.master.placement_records import ServerState
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import Address, Addresses, CannotOpen, HandoverResult, Listening
from columnar.model.region_messages import Backfilled, Commit, Peer
from columnar.regions.region import Region
from columnar.roles.cluster_host import ClusterHost
from columnar.roles.cluster_owners import ClusterOwners
from columnar.roles.cluster_status_gatherer import ClusterStatusGatherer, TimedPlanner
from columnar.roles.decision_journal import DecisionJournal
from columnar.roles.leading import Leading
from columnar.roles.master_service import MasterService
from columnar.roles.mode_switch import FolderDeadServerLogs, to_servers
from columnar.roles.ports import THRIFT1_SERVICE, THRIFT2_SERVICE, read_tls
from columnar.roles.server_processes import ServerProcesses
from columnar.roles.supervised_servers import ControlSocket, SupervisedServers
from columnar.runtime import log_lines
from columnar.runtime.faults import surviving
from columnar.storage import server_folders
from columnar.storage.data_folder import SERVERS_SINCE, DataFolder
from columnar.storage.process_stores import ProcessStores
from columnar.storage.rocks import RocksEngine
from columnar.storage.watched_folder import WatchedFolder
from columnar.triggers.system_tables import SYSTEM_TABLES
from columnar.version import VERSION
from columnar.webui.cluster_status import PageStatus
from columnar.webui.server import Site
from columnar.webui.status import LoopRunner
from columnar.wire.browsers import Visitors

if TYPE_CHECKING:
    from columnar.wire.server import WireServer
    from columnar.wire.tls_protocol import Tls

_log = logging.getLogger(__name__)

START_S: Final = 60.0  # until all servers have said their first hello
MASTER: Final = "master"
JOURNAL_S: Final = 1.0


class ClientPorts:
    """The store's ports, at which clients connect; each connection is dispatched to a server."""

    def __init__(self, config: StandaloneConfig, dispatcher: ConnectionDispatcher) -> None:
        self._config = config
        self._dispatcher = dispatcher
        self._ports: list[Port] = []
        self.are_open = False

    def bind(self) -> None:
        """Bind the ports.  Call before servers choose free ports of their own."""
        host, port2 = self._config.host, self._config.thrift2_port
        self._ports.append(Port.bound(THRIFT1_SERVICE, host, self._config.port, "--port", self._dispatcher))
        if port2 >= 0:
            self._ports.append(Port.bound(THRIFT2_SERVICE, host, port2, "--thrift2-port", self._dispatcher))

    def open_ports(self) -> None:
        for port, option in zip(self._ports, ("--port", "--thrift2-port"), strict=False):
            port.listen(self._config.host, option)
        for port in self._ports:
            port.open()
        self.are_open = True

    def close_ports(self) -> None:
        for port in self._ports:
            port.close()

    @property
    def port(self) -> int:
        return self._ports[0].port

    @property
    def thrift2_port(self) -> int | None:
        return self._ports[1].port if len(self._ports) > 1 else None


class Supervisor:
    """The supervisor.  Call ``locked``, ``start``, then serve until ``stop``.  Owned by one event loop."""

    def __init__(
        self, config: StandaloneConfig, count: int, log_level: str, folder: DataFolder, tls: Tls | None
    ) -> None:
        """Pass the TLS of the pages, or None for plain text.  Servers read the certificate themselves."""
        self.config = config
        self.folder = folder
        self._count = count
        self._log_level = log_level
        self.connection_dispatcher = ConnectionDispatcher(self._taking)
        self.ports = ClientPorts(config, self.connection_dispatcher)
        self._returns: dict[Incarnation, ReturnedConnections] = {}
        self._addresses: dict[Incarnation, Address] = {}
        self._started_s = time.time()
        self.tls = tls
        self._was_renewed = False
        self._master: ClusterHost | None = None
        self._answers: PeerServer | None = None  # answers requests of servers
        self._journal = DecisionJournal(folder.path)
        self.fault: asyncio.Future[None]  # set if a server ended before the start was over

    @classmethod
    def locked(cls, config: StandaloneConfig, count: int, log_level: str) -> Supervisor:
        """Lock the data folder and read the certificate.  Raises HostError, with the folder unlocked."""
        folder = DataFolder.locked(config.data)
        try:
            return cls(config, count, log_level, folder, read_tls(config))
        except BaseException:
            folder.close()
            raise

    # --- start -----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start to serve.  Raises HostError or DamagedData, with no process left."""
        self.fault = asyncio.get_running_loop().create_future()
        async with AsyncExitStack() as undo:
            self._run_folder = SocketFolder.made()
            undo.callback(self._run_folder.remove)
            undo.callback(self.ports.close_ports)
            self.ports.bind()
            command = [sys.executable, *_safe_path(), "-m", "columnar.roles.regionserver_process"]
            lock, environment = self.folder.lock_descriptor, dict(os.environ)
            self.processes = ServerProcesses(command, environment, lock, self._settings)
            undo.push_async_callback(self.processes.kill)
            begun = [(f"s{n + 1}", self.processes.children.start_process()) for n in range(self._count)]
            self.stores = ProcessStores(self.folder, RocksEngine())
            self.stores.open()
            undo.callback(self.stores.close)
            self.watched_folder = WatchedFolder(self.config.data, self.stores.region_folders.room)
            undo.callback(self.watched_folder.close)
            self.watched_folder.begin()
            self.leading = Leading(self.stores, has_servers=True, until_writable=self.watched_folder.until_it_answers)
            self._epoch = await self.leading.open()
            undo.push_async_callback(self._close_catalogue)
            await self.leading.prepare()
            await self._lead()
            self.control.reports.follow_decisions(self._journal.read_decisions())
            for name, process in begun:
                await self.processes.join(name, process)
            await self._greeted()
            self.host.begin()
            await self.leading.start(SYSTEM_TABLES)
            await self.host.events.until(lambda: self.host.routes.publishing.is_complete)
            await self.leading.begin_background_work()
            self._control_socket = ControlSocket(self.service.private_wire(), self.folder, self._run_folder)
            await self._control_socket.open()
            undo.push_async_callback(self._control_socket.close)
            self.ports.open_ports()
            undo.pop_all()
        self.processes.children.keep_spare()
        self._journal_task = asyncio.create_task(self._keep_decisions())

    async def _keep_decisions(self) -> None:
        """Append new decisions to the journal once a second, until the stop."""
        while True:
            await asyncio.sleep(JOURNAL_S)
            with surviving("the journal of decisions"):
                fresh = self.control.reports.take_decisions()
                if fresh:
                    await asyncio.to_thread(self._journal.append, fresh)

    async def _lead(self) -> None:
        catalogue, data = self.leading.catalogue, self.folder.path
        self.stores.clock.observe(server_folders.newest_clock(data))
        invented = to_servers(catalogue, self.stores)
        self.folder.raise_format(SERVERS_SINCE)
        owners = catalogue.ownership.owners | invented
        regions = [(info, owners.get(info.region_id)) for entry in catalogue.tables.values() for info in entry.regions]
        self._planner = TimedPlanner()
        state = ClusterState(
            regions,
            catalogue.ownership.firm_seals(),
            catalogue.ownership.operator_settings,
            random.Random(),
            planner=self._planner,
        )
        for region in invented:
            state.current.set_ideal(state.current.places[region], None, "")  # no region can return to that process
        dead_logs = FolderDeadServerLogs(catalogue, self.stores, state.current.unread_logs, self.watched_folder)
        self.host = self._master = host = ClusterHost(
            state, catalogue, self.leading.sound, self.processes, dead_logs, self.stores.clock
        )
        self.owners = ClusterOwners(host, catalogue, self.processes)
        self.leading.lead(self.owners, self.config.trigger_modules)
        host.requests.lead(self.leading.region_changes)
        self.connection_rebalancer = ConnectionRebalancer(
            self.connection_dispatcher.open, self._taking, self.processes.request_server
        )
        self.leading.follow_catalogue(
            lambda failure: host.events.event(state.unsound(failure, host.events.now_ms())),
            lambda: host.events.event(state.sound(host.events.now_ms())),
        )
        servers = SupervisedServers(
            host, self.processes, self._addresses, self.connection_dispatcher.open.of, self.watched_folder.remark
        )
        self.leading.cluster = self.control = ClusterControl(servers, lambda: round(time.time() * 1_000))
        self.service = MasterService(self.config, self.folder, self.leading, host)
        host.tables.on_table = self.service.refresh
        host.tables.load()
        self._answers = make_master_answers(
            self.leading, self.service.wires(), self._listening, host.transitions.cannot_open
        )
        hello = Hello(self.folder.cluster_id, Incarnation(MASTER, self._epoch), leader_epoch=self._epoch)
        self.processes.follow(self, hello, catalogue.ownership.raise_epoch, self._answers)
        self.processes.regions_of = lambda name: len(state.current.server(name).regions)
        for server in {row.server for row in invented.values()}:
            host.events.event(state.fenced(server, (), (), host.events.now_ms(), asked=True))
        for server in sorted(named_in(catalogue, data)):
            await host.measured(server)

    def _settings(self, server: Incarnation) -> dict[str, Any]:
        config = {**asdict(self.config), "data": os.path.abspath(self.config.data)}
        return {
            "name": server.name,
            "number": server.number,
            "data": config["data"],
            "cluster_id": self.folder.cluster_id,
            "leader_epoch": self._epoch,
            "run_folder": self._run_folder.path,
            "servers": self._count,
            "log_level": self._log_level,
            "config": config,
            "clock_ms": self.stores.clock(),
        }

    async def _greeted(self) -> None:
        """Wait until every server is up.  Raises HostError if a server has ended instead."""
        servers = self.host.state.current.servers
        names = [f"s{n + 1}" for n in range(self._count)]
        up = asyncio.ensure_future(
            self.host.events.until(lambda: all(servers[one].state is ServerState.UP for one in names))
        )
        try:
            await asyncio.wait([up, self.fault], timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            if self.fault.done():
                self.fault.result()
            if not up.done():
                raise HostError(f"the servers did not start within {START_S:.0f} s")
        finally:
            up.cancel()

    # --- servers ---------------------------------------------------------------------------------------

    # The methods of ``server_processes.Events`` notify the ports first, then the master.

    def joined(self, server: Incarnation) -> None:
        self.connection_dispatcher.open.joined(server)
        channel = self.processes.living[server].child.connection_channel.dup()
        count_returned = partial(self.connection_dispatcher.open.count_returned, server)
        self._returns[server] = ReturnedConnections(
            channel, self.connection_dispatcher, count_returned, lambda: self._returned(server)
        )
        self._returns[server].open()
        self.host.joined(server)

    def heard(self, server: Incarnation, beat: Beat) -> None:
        self.connection_dispatcher.open.said(server, beat)
        if not self.config.tls_cert:  # TLS connections cannot be transferred
            self.connection_rebalancer.tick()
        self.host.heard(server, beat.iterations)

    async def linked(self, server: Incarnation) -> None:
        await self.host.linked(server)
        self.host.routes.send_message(server, self.addresses())

    def unlinked(self, server: Incarnation, why: str) -> None:
        self.host.unlinked(server, why)

    def _returned(self, server: Incarnation) -> None:
        """Forget the listener of a server that returns no more connections."""
        self._returns.pop(server, None)

    def handover_ended(self, server: Incarnation, result: HandoverResult) -> None:
        log = _log.warning if result.lost or result.scanners else _log.info
        text = "server %s hands over: %d connections go on at others, %d are closed; lost: %d, and %d open scanners"
        log(text, server, result.given, result.closed, result.lost, result.scanners)
        self.connection_dispatcher.open.ended(server)

    def ended(self, server: Incarnation, why: str, *, asked: bool) -> None:
        lost = self.connection_dispatcher.open.of(server)
        if lost and not self.processes.is_stopping:
            _log.warning("%d connections have ended with server %s", lost, server)
        self.connection_dispatcher.open.ended(server)
        if self._addresses.pop(server, None) is not None:
            self._send_addresses()
        if not self.ports.are_open and not self.fault.done() and self.processes.deaths.is_start_hopeless(server.name):
            text = f"server {server} did not start, it ended {why}; its last lines above say why"
            self.fault.set_exception(HostError(text))
            self.fault.exception()  # marks it as retrieved
        self.host.ended(server, why, asked=asked)

    async def _listening(self, server: Incarnation, said: Listening) -> None:
        """Note that the server's own ports are open, so that all servers may name them to clients."""
        self._addresses[server] = Address(server, said.host, said.port)
        self._send_addresses()
        if self._was_renewed:  # the server may have read the old certificate
            self.processes.living[server].child.signal(signal.SIGHUP)

    def renew_certificate(self) -> None:
        """Read the certificate again, here and in the servers.

        A starting server gets the signal later, because now the signal would kill it.
        """
        assert self.tls is not None, "the ports speak TLS"
        self.tls.certificate.renew()
        self._was_renewed = True
        for server in self._addresses:
            self.processes.living[server].child.signal(signal.SIGHUP)

    def _send_addresses(self) -> None:
        message = self.addresses()
        for one in self.host.routes.greeted:
            self.host.routes.send_message(one, message)

    def addresses(self) -> Addresses:
        return Addresses(tuple(self._addresses.values()))

    def _taking(self) -> dict[Incarnation, Child]:
        """Return the servers that take connections of clients, with their processes."""
        living, current = self.processes.living, self.host.state.current
        return {one: server.child for one, server in living.items() if current.is_alive(one) and not server.is_stopping}

    # --- pages -----------------------------------------------------------------------------------------

    def pages(self, hot_modules: Callable[[], str]) -> Site:
        """Return the pages of the store.  Call after ``start``.

        ``hot_modules`` returns a text on how the hot modules run.
        """
        return _Site(self, hot_modules)

    def status(self, hot_modules: Callable[[], str]) -> PageStatus:
        """Return the status for the pages.  Call on the loop."""
        kinds = Counter(one.kind for one in self.control.reports.transitions())
        tallies, tables = self.host.state.tallies, self.leading.catalogue.tables
        return PageStatus(
            version=VERSION,
            address=f"{self.config.host}:{self.ports.port}",
            data_folder=os.path.abspath(self.folder.path),
            uptime_s=time.time() - self._started_s,
            cluster=self.control.reports.cluster_status(),
            kinds=tuple(sorted(kinds.items())),
            fenced=self.host.fenced,
            hot_modules=hot_modules(),
            has_triggers_page=True,
            tables=tuple(self.control.reports.tables()),
            disabled=frozenset(name for name, entry in tables.items() if not entry.enabled),
            moves=tuple((reason.value, count) for reason, count in tallies.moves.items()),
            pauses=tuple((reason.value, pauses.numbers) for reason, pauses in tallies.pauses.items()),
            log_lines_dropped=log_lines.dropped(),
            planning=self._planner.times.numbers,
        )

    # --- stop ------------------------------------------------------------------------------------------

    def begin_stop(self) -> None:
        """Replace no server from now on, because a service manager may have signalled all processes."""
        self.processes.begin_stop()

    async def stop(self) -> None:
        await self._control_socket.close()
        self._journal_task.cancel()
        await asyncio.to_thread(self._journal.append, self.control.reports.take_decisions())
        self.ports.close_ports()
        for returned in list(self._returns.values()):  # each removes itself
            returned.close()
        self.connection_rebalancer.close()
        self.connection_dispatcher.close()
        self.leading.stop_copies()
        await self.leading.stop_changes()
        self.host.stop()
        await self.processes.stop()
        await self._close_catalogue()
        self.watched_folder.close()
        self.stores.close()
        await asyncio.get_running_loop().shutdown_default_executor()
        self._run_folder.remove()
        self.folder.close()

    async def _close_catalogue(self) -> None:
        if self._master is not None:
            self._master.stop()
            await self._master.close()
        if self._answers is not None:
            await self._answers.close()
        await self.leading.close(self._quiesce)

    async def _quiesce(self, region: Region) -> None:
        while not region.syncs.is_quiet and (under_way := self.stores.committer.pending_sync(region.store)) is not None:
            await asyncio.wait([under_way])


def make_master_answers(
    master: Peer,
    wires: Mapping[int, WireServer],
    listening: Callable[[Incarnation, Listening], Awaitable[None]],
    cannot_open: Callable[[Incarnation, CannotOpen], Awaitable[None]],
) -> PeerServer:
    """Return the master's handlers of requests and forwarded calls, which arrive over the links of its servers.

    ``wires`` are by service: THRIFT1 and, if it is served, THRIFT2.
    """
    answers = PeerServer(wires, lambda _table, _row: Unknown("the master serves no rows"), itertools.count(1))
    answers.register({Commit: master.request_peer, Backfilled: master.request_peer})
    answers.register_with_sender(Listening, listening)
    answers.register_with_sender(CannotOpen, cannot_open)
    return answers


class _Site:
    """The pages of the store."""

    def __init__(self, supervisor: Supervisor, hot_modules: Callable[[], str]) -> None:
        self._supervisor = supervisor
        self._hot_modules = hot_modules

    def sample(self, now_s: float) -> None:
        pass

    def pages(self, run_on_loop: LoopRunner, visitors: Visitors) -> Any:
        from columnar.webui.cluster_pages import cluster_pages  # imported at the first visit

        supervisor = self._supervisor
        address = f"{supervisor.config.host}:{supervisor.ports.port}"
        status = partial(supervisor.status, self._hot_modules)
        servers = ClusterStatusGatherer(run_on_loop, supervisor.host, supervisor.processes, supervisor.watched_folder)
        return cluster_pages(run_on_loop, supervisor.control.reports, status, servers, address, visitors)


def _safe_path() -> list[str]:
    """Return interpreter options with which child processes search for modules where this process does."""
    return ["-P"] if sys.flags.safe_path else []
