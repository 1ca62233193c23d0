"""A node: the parent process of the region servers of a machine, with its ports, and a candidate for leader.

    columnar standalone --servers N    the only node of its folder; it leads from the start to the stop
    columnar node                      one of several nodes, each with servers of its own; one of them leads
    columnar node --servers 0          of these, one that may lead, and serves no clients

The order of the start is lock, processes of the servers (which import modules meanwhile), lease, leader, numbers and
settings of the servers, owners of all regions, ports.  The order of the stop is ports, servers (concurrently, each like
a standalone store), catalogue, lease, lock.  The servers inherit the lock, so that a new standalone start is refused as
long as any of them lives, and they die with this process.

The node watches its servers and kills those that hang (``master.liveness``), whoever leads.

Owned by one event loop.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from columnar.config import NodeConfig, StandaloneConfig
from columnar.coordination.lease_page import LeasePage
from columnar.coordination.socket_folder import SocketFolder
from columnar.errors import HostError
from columnar.model.node_messages import JudgeVisitor, LiveSettings, Verdict
from columnar.model.owner import Incarnation
from columnar.roles.membership import Membership, NodeParts, SoleMembership
from columnar.roles.node_ports import NodePorts
from columnar.roles.node_site import NodeSite
from columnar.roles.own_servers import OwnServers, stuck_limit_ms
from columnar.roles.ports import read_tls
from columnar.roles.readiness import NodeFacts, start_failure
from columnar.roles.server_processes import ServerProcesses
from columnar.runtime.log_lines import flush
from columnar.runtime.stop_limit import StopLimit
from columnar.storage.cluster_file import check_cluster, read_cluster
from columnar.storage.data_folder import REGIONS, SERVER_LOG, DataFolder, is_new
from columnar.storage.file_systems import MountEvicted, client_of
from columnar.storage.watched_folder import Room, WatchedFolder, room_of
from columnar.webui.server import Site

if TYPE_CHECKING:
    from columnar.wire.tls_protocol import Tls

_log = logging.getLogger(__name__)

FENCED: Final = 4  # the exit status of a node whose lease is over, or whose mount was evicted
FLUSH_S: Final = 0.05  # for its last log line
START_S: Final = 60.0  # of a start: without an end while what holds it up has a name (``Node.delay``)
DELAY_CHECK_S: Final = 0.5  # between two checks of what holds a start up
REST_S: Final = 30.0  # of a stop, beyond the time of the servers: to reap them, for the lease, catalogue and threads


class Node:
    """A node.  Call ``locked``, ``start``, then serve until ``stop``."""

    def __init__(
        self,
        config: StandaloneConfig,
        settings: NodeConfig,
        folder: DataFolder,
        lease_page: LeasePage,
        tls: Tls | None,
        stuck_ms: int,
    ) -> None:
        """Pass the TLS of the pages, or None for plain text.  Servers read the certificate themselves.

        ``stuck_ms``: as for ``master.liveness.Liveness``.
        """
        self.config = config
        self.folder = folder
        self.tls = tls
        self._settings = settings
        self.lease_s = settings.lease_s
        self.is_leased = bool(settings.coordination)
        self.started_s = time.time()
        self.lease_page = lease_page
        command = [sys.executable, *_safe_path(), "-m", "columnar.roles.regionserver_process"]
        kept = (folder.lock_descriptor, lease_page.descriptor)
        processes = ServerProcesses(command, dict(os.environ), kept, self._server_settings)
        self.ports = NodePorts(config, processes, has_servers=settings.servers > 0)
        probe = _room_of_mount if settings.coordination else _room_of_disk
        self.watched_folder = WatchedFolder(config.data, partial(probe, config.data), self._end_now)
        self._names = [settings.server_name(n + 1) for n in range(settings.servers)]
        self.servers = OwnServers(self._names, processes, self.ports, lambda: self.watched_folder.is_stalled, stuck_ms)

    @classmethod
    def locked(cls, config: StandaloneConfig, settings: NodeConfig) -> Node:
        """Lock the data folder and read the certificate.  Raises HostError, with the folder unlocked."""
        folder = _locked_shared(config.data, settings) if settings.coordination else DataFolder.locked(config.data)
        try:
            return cls(config, settings, folder, LeasePage.create(), read_tls(config), stuck_limit_ms(config.data))
        except BaseException:
            folder.close()
            raise

    # --- start -----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start to serve.  Raises HostError or DamagedData, with no process left."""
        fault: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        processes = self.servers.processes
        async with AsyncExitStack() as undo:
            self._run_folder = SocketFolder.made()
            undo.callback(self._run_folder.remove)
            undo.callback(self.ports.close_ports)
            self.ports.bind()
            undo.push_async_callback(processes.kill)
            begun = [(name, processes.children.start_process()) for name in self._names]
            undo.callback(self.watched_folder.close)
            self.watched_folder.begin()
            self.membership = await self._make_membership()
            self.servers.follow(self.membership, self.folder.cluster_id, fault)
            undo.push_async_callback(self.membership.close)
            await self.membership.start()
            for name, process in begun:
                await processes.join(name, process)
            await self._until_served(fault)
            self.ports.open_ports()
            undo.pop_all()
        if self._names:
            processes.children.keep_spare()

    async def _make_membership(self) -> Membership:
        parts = NodeParts(
            self.config,
            self._settings,
            self.folder,
            self._run_folder,
            self.watched_folder,
            self.lease_page,
            self.servers,
            self.servers.pages,
            lambda: tuple(self.servers.processes.living),
            lambda: self.ports.ready,
            self.servers.name_leader,
            self._end_now,
            lambda: self.config,
        )
        if not self._settings.coordination:
            return SoleMembership(parts)
        from columnar.roles.leased_membership import LeasedMembership  # most stores have one node

        return await LeasedMembership.connect(parts)

    def _end_now(self, why: str) -> NoReturn:
        """End this process and its servers at once: the lease is over, or the folder was taken away.

        Others may own the servers' regions.
        """
        self.lease_page.write_end(0)
        _log.critical("this node was fenced: %s. It ends; start it again", why)
        self.servers.kill_all()
        flush(FLUSH_S)
        os._exit(FENCED)

    def _server_settings(self, server: Incarnation) -> dict[str, Any]:
        config = {**asdict(self.config), "data": os.path.abspath(self.config.data)}
        return {
            "name": server.name,
            "number": server.number,
            "data": config["data"],
            "cluster_id": self.folder.cluster_id,
            "run_folder": self._run_folder.path,
            "servers": self._settings.servers,
            "log": asdict(self._settings.log),
            "config": config,
            "clock_ms": self.membership.clock_ms(),
            **self.membership.peer_settings(),
        }

    async def _until_served(self, fault: asyncio.Future[None]) -> None:
        """Wait until every server takes connections and every region has a server.

        A node without servers waits until it is linked with a leader, which may be itself.  Raises HostError if a
        server has ended instead, or after START_S in which nothing named held the start up.
        """
        served = asyncio.ensure_future(self.membership.until_served())
        try:
            await self._wait_start([served, fault])
            if fault.done():
                fault.result()
            if not served.done():
                raise HostError(start_failure(self.facts(), START_S))
            await served
        finally:
            served.cancel()

    async def _wait_start(self, waited: list[asyncio.Future[None]]) -> None:
        """Wait for one of the futures, or until START_S have passed since the last named delay."""
        loop = asyncio.get_running_loop()
        until_s = logged_s = loop.time() + START_S
        while (now_s := loop.time()) < until_s:
            done, _ = await asyncio.wait(
                waited, timeout=min(DELAY_CHECK_S, until_s - now_s), return_when=asyncio.FIRST_COMPLETED
            )
            if done:
                return
            delay = self.delay()
            if delay:
                until_s = loop.time() + START_S
            if delay and loop.time() >= logged_s:
                logged_s = loop.time() + START_S
                _log.warning("the start takes longer than %.0f s, and goes on: %s", START_S, delay)

    def delay(self) -> str:
        """Return a sentence on what a start waits for, if it is known and no fault of this node; or an empty text."""
        standing = self.membership.standing()
        return standing.delay or self.watched_folder.remark() or ("" if standing.leader else self.servers.leader_delay)

    def facts(self) -> NodeFacts:
        """Return what the readiness of the node follows from."""
        standing = self.membership.standing()
        return NodeFacts(
            self.servers.is_leaving,
            self.lease_page.is_valid(),
            standing.service,
            self.watched_folder.remark(),
            len(self._names),
            len(self.ports.ready),
            standing.leader,
            tuple(map(str, self.servers.list_strays())),
        )

    @property
    def sqs_port(self) -> int | None:
        return self.ports.sqs_port

    @property
    def kafka_port(self) -> int | None:
        return self.ports.kafka_port

    # --- pages -----------------------------------------------------------------------------------------

    def take_settings(self, live: LiveSettings) -> None:
        """Take the settings that change while the store serves, and read the certificate again, also in the servers."""
        log = replace(self._settings.log, level=live.log_level, levels=live.log_levels)
        taken = {name: value for name, value in asdict(live).items() if not name.startswith("log_")}
        self.config = replace(self.config, **taken)
        self._settings = replace(self._settings, log=log)
        if self.tls is not None:
            self.tls.certificate.renew(live.tls_cert, live.tls_key)
        self.membership.take_settings(live)
        self.servers.take_settings(live)

    async def judge_visitor(self, visitor: JudgeVisitor) -> Verdict:
        """Decide whether a request for a page is answered, if rights are on."""
        return await self.servers.judge_visitor(visitor)

    def pages(self, hot_modules: Callable[[], str]) -> Site:
        """Return the pages of the store.  Call after ``start``.

        ``hot_modules`` returns a text on how the hot modules run.
        """
        return NodeSite(self, hot_modules)

    # --- stop ------------------------------------------------------------------------------------------

    def begin_stop(self) -> None:
        """Replace no server from now on, because a service manager may have signalled all processes."""
        self.servers.processes.begin_stop()

    async def stop(self) -> None:
        """Stop in order.

        If the servers or this process do not end in time, because the data folder stands still, this process ends as
        if it were killed: its servers die with it, and its lease is over later.
        """
        with StopLimit(self.servers.processes.stop_s(*self._names) + REST_S, self._run_folder.remove):
            self.ports.close()
            self.servers.watch.stop()
            await self.membership.begin_stop()
            await self.servers.processes.stop()
            await self.membership.close()
            await self.servers.close()
            self.watched_folder.close()
            await asyncio.get_running_loop().shutdown_default_executor()
            self._run_folder.remove()
            self.lease_page.close()
            self.folder.close()


def _locked_shared(data: str, settings: NodeConfig) -> DataFolder:
    """Lock the folder beside other nodes.  Raises HostError.

    A folder that nodes cannot share is refused first, a mount that was fenced, and one that is missing.  The first node
    replays what an earlier standalone process has left in its log.
    """
    from columnar.coordination.service_address import ServiceAddress
    from columnar.coordination.start_calls import StartCalls
    from columnar.roles.mode_switch import empty_server_log
    from columnar.storage.quick_probe import probe_quickly

    client_of(data)  # refuses a mount that was fenced
    if settings.probes_folder:
        for remark in probe_quickly(data):
            _log.warning("%s", remark)
    service = ServiceAddress.parse(settings.coordination)
    calls = StartCalls(service.connector(settings.lease_s, settings.access), str(service))
    calls.check_mounted(data, lambda: is_new(data))
    if os.path.isdir(os.path.join(data, SERVER_LOG)) and read_cluster(data) is None:
        folder = DataFolder.locked(data)
        try:
            empty_server_log(folder)
        finally:
            folder.close()
    folder = DataFolder.locked(data, is_shared=True)
    try:
        check_cluster(data, folder.cluster_id, settings.coordination)
    except BaseException:
        folder.close()
        raise
    return folder


def _room_of_disk(data: str) -> Room:
    return room_of(os.path.join(data, REGIONS))


def _room_of_mount(data: str) -> Room:
    """Return the room of the disk, if the mount is this machine's still.  Raises MountEvicted, HostError, OSError.

    A fence that came too late, or by hand, evicts a mount whose node lives.  The node can do nothing there any more.
    """
    client_of(data)
    try:
        return _room_of_disk(data)
    except OSError as error:
        if error.errno == errno.ESHUTDOWN:
            raise MountEvicted(data) from error
        raise


def _safe_path() -> list[str]:
    """Return interpreter options with which child processes search for modules where this process does."""
    return ["-P"] if sys.flags.safe_path else []
