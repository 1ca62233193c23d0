"""Everything in one process: opens the folder, starts what must run, stops it in order.

Start: lock, format, catalogue, system tables, port.  Stop: trigger worker, port (calls in flight are answered, or
ended when their time of grace is over), regions (synced and closed), threads, lock.  Each is finished before the
next begins, so that nothing of this process is at work in the folder when another may have it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from columnar.clock import ClockFile, StoreClock, system_ms
from columnar.config import StandaloneConfig
from columnar.errors import HostError
from columnar.flows.backpressure import LogBounds
from columnar.flows.hub import Hub
from columnar.master.alterations import Alterations
from columnar.master.catalogue import META_REGION_ID, META_SCHEMA, Catalogue
from columnar.master.region_changes import RegionChanges
from columnar.master.schema_changes import SchemaChanges
from columnar.master.snapshots import CopyTools, Snapshots
from columnar.meta_region import MetaRegion
from columnar.model.region_info import RegionInfo
from columnar.operations.scanners import ScannerTable
from columnar.operations.slow_log import SlowLog
from columnar.operations.table_operations import TableOperations
from columnar.region_owner import RegionOwner
from columnar.regions.opening import opened
from columnar.regions.region_copy import forget_log_at
from columnar.regions.server import RegionServer
from columnar.storage.commit import Committer
from columnar.storage.data_folder import ALL_FOLDERS_SINCE, FORMAT_VERSIONS, DataFolder, newest_write_ms
from columnar.storage.descriptors import stores_within
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_log_files import open_server_log
from columnar.thrift.admin_methods import AdminMethods
from columnar.thrift.checks import CheckMethods
from columnar.thrift.extension import ExtensionMethods, Facts
from columnar.thrift.other_door import OtherDoor
from columnar.thrift.reads import ReadMethods
from columnar.thrift.region_methods import RegionMethods
from columnar.thrift.scans import ScanMethods
from columnar.thrift.service import ThriftService
from columnar.thrift.snapshot_methods import SnapshotMethods
from columnar.thrift.tables import TableMethods
from columnar.thrift.trigger_methods import TriggerMethods
from columnar.thrift.writes import WriteMethods
from columnar.triggers.keeper import TriggerKeeper
from columnar.triggers.registration import SYSTEM_TABLES
from columnar.version import VERSION
from columnar.webui.counters import RequestCounters
from columnar.webui.status import Sources, TriggerLine
from columnar.wire.browsers import Visitors
from columnar.wire.idl import SERVICE
from columnar.wire.server import WireServer

if TYPE_CHECKING:
    from columnar.wire.private_socket import PrivateSocket
    from columnar.wire.tls_door import Tls

_log = logging.getLogger(__name__)

SCANNER_SWEEP_S: Final = 5.0
RECOVERY_PAUSE_S: Final = 0.03  # between two regions that are brought up to date, each some 15 ms of the loop
CLOCK_GRAIN_MS: Final = 20  # a file's time may be so much behind the clock by which it was written
STOP_GRACE_S: Final = 5.0  # for calls in flight


class Standalone:
    """Owned by one event loop: ``start``, then serve until ``stop``."""

    def __init__(self, config: StandaloneConfig) -> None:
        self.config = config
        self.folder = DataFolder(config.data)
        self._started_s = time.time()
        self._timers: list[asyncio.TimerHandle] = []
        self.counters = RequestCounters()
        self.wire2: WireServer | None = None  # of the Thrift 2 service, where it is served
        self._private: PrivateSocket | None = None  # of the trigger worker, where the port speaks TLS
        self.tls = self._make_tls()
        self.visitors = Visitors.of(config.host, config.allow_origins)

    def _make_tls(self) -> Tls | None:
        config = self.config
        if not config.tls_cert:
            return None
        from columnar.wire import tls_context, tls_door  # most stores have no use for them

        files = tls_context.TlsFiles(config.tls_cert, config.tls_key, config.tls_client_ca)
        return tls_door.Tls(tls_context.ServerTls(files))

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._clock_file = ClockFile(self.folder.path)
        self._clock = clock = StoreClock(system_ms, self._clock_file.keep)
        self._engine = RocksEngine()
        regions_folder = os.path.join(self.folder.path, "regions")
        clock.observe(self._newest_ms())  # it may look at the times of files: before any is written
        self._server_log = self._engine.server_log = open_server_log(self.folder)
        self._committer = Committer(loop, log=self._server_log)
        self.server = RegionServer(
            self._engine,
            regions_folder,
            self._committer,
            clock,
            open_regions=stores_within(self.config.open_regions),
        )
        meta_info = RegionInfo(META_SCHEMA.name, META_REGION_ID)
        meta_path = self.server.folders.catalogue()
        self._meta = meta = MetaRegion(
            lambda: opened(self._engine, meta_path, meta_info, META_SCHEMA, self._committer, clock)
        )
        meta.open()
        self.catalogue = Catalogue(meta.read_all, meta.write)
        meta.changes_wanted = self.catalogue.mending
        clock.observe(meta.newest_ms)  # else a change of the catalogue would lose against what it changes
        hub = Hub(self.server, LogBounds(self.config.log_records, self.config.log_bytes))
        self.keeper = TriggerKeeper(self.server, hub, self.config.trigger_modules)
        self.server.listener = hub.listener
        self.server.hosting.state.epoch = await self.catalogue.raise_epoch()
        owner = RegionOwner(self.server, self.keeper, self.config.region_bytes)
        folders = self.server.folders
        self.changes = SchemaChanges(self.catalogue, owner, folders)
        self.alterations = Alterations(self.catalogue, owner, self.changes)
        tools = CopyTools(meta.copy, partial(forget_log_at, self._engine))
        self.snapshots = Snapshots(self.folder.path, self.catalogue, self.changes, owner, folders, tools, clock)
        self.snapshots.sweep()
        self._see_to_folders()
        await self.changes.start()
        self._warn_of_unnamed()
        self.region_changes = RegionChanges(self.catalogue, self.changes, owner, folders)
        owner.follow(self.region_changes)
        owner.changing.at = lambda step: self.region_changes.at(step)
        meta.on_mended = [self.region_changes.catalogue_mended, self.changes.catalogue_mended]
        for name, family in SYSTEM_TABLES:
            if name not in self.catalogue.tables:
                await self.changes.create(name.encode(), [family], system=True)
        self.keeper.load()
        self.scanners = ScannerTable(time.monotonic, lease_s=self.config.scanner_lease_s)
        self.operations = TableOperations(self.server, self.scanners)
        await self._listen()
        self.keeper.start(_reachable(self.config.host), self.port, await self._listen_privately())
        await self.changes.finish_drops()
        self.server.upkeep.start_sweeping()
        self.region_changes.start()
        self._recovery = asyncio.ensure_future(self._recover())
        self._sweep_scanners()

    async def _recover(self) -> None:
        """After a crash: regions that nobody asks for get what the server's log has of them, too."""
        behind = len(self._server_log.left)
        for _ in self._server_log.recovering(self._engine):
            await asyncio.sleep(RECOVERY_PAUSE_S)
        if behind:
            _log.info("%d regions are up to date with the server's log", behind - len(self._server_log.left))

    def _see_to_folders(self) -> None:
        """Older programs named regions before they had folders: from now on one that is missing was lost."""
        if self.folder.format < ALL_FOLDERS_SINCE:
            tables = self.catalogue.tables.values()
            self.server.folders.make([info.encoded for entry in tables for info in entry.regions])
        self.folder.raise_format(FORMAT_VERSIONS[-1])

    def _newest_ms(self) -> int:
        """The highest timestamp that was given in this folder; an older program's left the times of its files only."""
        return self._clock_file.highest_ms or newest_write_ms(self.folder.path) + CLOCK_GRAIN_MS

    def _warn_of_unnamed(self) -> None:
        """They may be all that is left of a table: nothing but a person's word removes them."""
        tables = self.catalogue.tables.values()
        named = [info.encoded for entry in tables for info in entry.regions]
        named += [info.encoded for info in self.catalogue.dropped]
        unnamed = self.server.folders.unnamed(named)
        if unnamed:
            _log.warning(
                "%d folders under %s belong to no table, the first is %s; columnar repair moves them aside",
                len(unnamed),
                self.server.folders.root,
                unnamed[0],
            )

    async def _listen(self) -> None:
        operations = self.operations
        writes = WriteMethods(operations)
        ids = itertools.count(1)  # scanners are known by the connection that opened them
        thrift2 = OtherDoor(_thrift2_definition, "Thrift 2", lambda: self.thrift2_port)
        facts = Facts(VERSION, self.folder.path, self._started_s, self._connections, self.counters.calls)
        self.slow_log = SlowLog(operations.descriptions, self.scanners, self.config.slow_request_ms)
        self.service = ThriftService(
            self.scanners,
            self.slow_log,
            ReadMethods(operations),
            writes,
            CheckMethods(operations),
            ScanMethods(operations),
            TableMethods(operations, self.changes, lambda: (self.config.host, self.port), self.folder.cluster_id),
            ExtensionMethods(operations, writes, self.changes, facts),
            TriggerMethods(self.keeper),
            AdminMethods(operations, self.alterations, self._triggers_of),
            RegionMethods(operations.descriptions, self.region_changes),
            SnapshotMethods(operations, self.snapshots),
            other_door=thrift2,
        )
        self.wire = WireServer(
            self.service,
            self.counters,
            connection_ids=ids,
            elsewhere=thrift2.where_is,
            tls=self.tls,
            visitors=self.visitors,
        )
        await self._open_port(self.wire, self.config.port, "--port")
        if self.config.thrift2_port >= 0:
            await self._listen_thrift2(ids)

    async def _listen_thrift2(self, ids: Iterator[int]) -> None:
        from columnar.thrift2 import service as thrift2  # 2 MB that most stores have no use for

        thrift1 = OtherDoor(lambda: SERVICE, "Thrift 1", lambda: self.port)
        facts = thrift2.Facts(lambda: (self.config.host, self.port), self.folder.cluster_id, self._started_s)
        service = thrift2.make(self.operations, self.slow_log, self.changes, self.alterations, facts, thrift1)
        self.wire2 = WireServer(
            service,
            self.counters.of_service("thrift2."),
            definition=thrift2.DEFINITION,
            connection_ids=ids,
            elsewhere=thrift1.where_is,
            tls=self.tls,
            visitors=self.visitors,
        )
        await self._open_port(self.wire2, self.config.thrift2_port, "--thrift2-port")

    async def _listen_privately(self) -> PrivateSocket | None:
        """For the trigger worker, which has no certificate."""
        if self.tls is None:
            return None
        from columnar.wire.private_socket import PrivateSocket

        try:
            self._private = PrivateSocket()
        except OSError as error:
            raise HostError(f"cannot make a socket for the trigger worker: {error}; set TMPDIR") from error
        await self.wire.serve_privately(self._private.listening)
        return self._private

    async def _open_port(self, wire: WireServer, port: int, option: str) -> None:
        try:
            await wire.start(self.config.host, port)
        except OSError as error:
            raise HostError(
                f"cannot listen on {self.config.host}:{port}: {error.strerror}; choose another with {option}"
            ) from error

    def _triggers_of(self, table: str) -> list[str]:
        return [one.name for one in self.keeper.registrations() if one.table == table]

    def _connections(self) -> int:
        return int(self.wire.connections) + (self.wire2.connections if self.wire2 is not None else 0)

    @property
    def thrift2_port(self) -> int | None:
        """None where the Thrift 2 service is not served."""
        return self.wire2.port if self.wire2 is not None else None

    @property
    def port(self) -> int:
        return int(self.wire.port)

    def sources(self) -> Sources:
        """Where the status page and the metrics look; after ``start``."""
        return Sources(
            version=VERSION,
            address=f"{self.config.host}:{self.port}",
            data_folder=os.path.abspath(self.folder.path),
            started_s=self._started_s,
            descriptions=self.operations.descriptions,
            scanners=self.scanners,
            counters=self.counters,
            connections=self._connections,
            commits=lambda: self._committer.syncs,
            slow_requests=lambda: self.slow_log.count,
            triggers=self._trigger_lines,
            held=self._held,
        )

    def _held(self) -> dict[str, int]:
        wires = [self.wire, self.wire2] if self.wire2 is not None else [self.wire]
        return {
            "input": sum(wire.input_bytes for wire in wires),
            "output": sum(wire.output_bytes for wire in wires),
            "gathered": self.server.gathering.total_bytes,
            "scanners": self.scanners.size_bytes,
        }

    def _trigger_lines(self) -> list[TriggerLine]:
        return [
            TriggerLine(
                s.name, s.table, s.function, s.state, s.lag_changes, s.lag_seconds, s.parked, s.letters, s.error
            )
            for s in self.keeper.summaries()
        ]

    def _sweep_scanners(self) -> None:
        self.scanners.expire()
        loop = asyncio.get_running_loop()
        self._timers = [loop.call_later(SCANNER_SWEEP_S, self._sweep_scanners)]

    async def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._recovery.cancel()
        await self.keeper.close()  # before the port: a call cut off by it would count as failed
        if self.tls is not None:
            self.tls.handshakes.close()
        if self.wire2 is not None:
            await self.wire2.close(STOP_GRACE_S)
        self.snapshots.stop()
        await self.wire.close(STOP_GRACE_S)
        if self._private is not None:
            self._private.close()
        await self.region_changes.close()
        await self.server.close()
        await self._meta.close(self.server.hosting.quiesce)
        self._committer.close()
        self._server_log.close()
        self._clock.settle()
        self._clock_file.close()
        await asyncio.get_running_loop().shutdown_default_executor()  # what a thread is at belongs to this process
        self.folder.close()


def _thrift2_definition() -> Any:
    from columnar.wire.idl2 import SERVICE2

    return SERVICE2


def _reachable(host: str) -> str:
    """The address at which a process of this machine reaches a server that listens on ``host``."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - compared, not bound
