"""The services of a master: changes of tables, namespaces, regions and snapshots, which servers forward.

A client's call arrives unchanged over the server's control link, and its answer returns over the same link.  The master
serves no rows; it knows tables from its catalogue, and regions from their folders.

Owned by the loop.
"""

from __future__ import annotations

import time
from typing import Any, Final, cast

from columnar.cluster.method_routing import METHOD_ROUTES, MethodRoute
from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.config import StandaloneConfig
from columnar.model.accounts import ROOT
from columnar.model.region_info import RegionInfo
from columnar.operations.descriptions import Descriptions
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.slow_log import SlowLog
from columnar.operations.table_operations import TableOperations
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable, Tables
from columnar.rights.rights_check import RightsHolder, check_of_tables
from columnar.roles.cluster_host import ClusterHost
from columnar.roles.leading import Leading
from columnar.storage.data_folder import DataFolder
from columnar.storage.region_folders import RegionFolders
from columnar.thrift.cluster_methods import ClusterMethods
from columnar.thrift.extension import ExtensionMethods, Facts
from columnar.thrift.feed_methods import FeedChangeMethods
from columnar.thrift.rights_methods import RightsMethods
from columnar.thrift.service import ThriftService
from columnar.thrift.snapshot_methods import SnapshotMethods
from columnar.thrift.tables import AdminMethods, RegionMethods, TableMethods
from columnar.thrift.trigger_methods import TriggerChangeMethods
from columnar.thrift.view_methods import ViewChangeMethods
from columnar.wire.server import WireServer

# Methods of both services that the master answers from its own state; ``method_routing`` says which are forwarded.
CATALOGUE_READ_METHODS: Final = frozenset(
    [
        "columnarListNamespaces",
        "columnarListNamespaceTables",
        "columnarDescribeNamespace",
        "listNamespaces",
        "listNamespaceDescriptors",
        "getNamespaceDescriptor",
        "getTableDescriptorsByNamespace",
        "getTableNamesByNamespace",
    ]
)


class KnownTables:
    """The catalogue's tables with the interface that ``Descriptions`` expects of a region server; no region is open."""

    def __init__(self, folders: RegionFolders) -> None:
        self.tables = Tables()
        self._folders = folders

    def folder_of(self, info: RegionInfo) -> str:
        return self._folders.path(info.encoded)

    def all_open(self) -> list[Any]:
        return []

    def open_count(self) -> int:
        return 0


class KnownOperations:
    """The operations that the parts of a service share, without operations on rows."""

    access = writes = upkeep = None

    def __init__(self, known: KnownTables) -> None:
        self.descriptions = Descriptions(cast(RegionServer, known))
        self.scanners = ScannerTable(time.monotonic, lease_s=1.0)


class MasterService:
    def __init__(self, config: StandaloneConfig, folder: DataFolder, leading: Leading, host: ClusterHost) -> None:
        self._config = config
        self._folder = folder
        self._leading = leading
        self._host = host
        self.known = KnownTables(leading.folders)
        self._operations = cast(TableOperations, KnownOperations(self.known))
        self._slow_log = SlowLog(self._operations.descriptions, self._operations.scanners, config.slow_request_ms)
        self._started_s = time.time()
        self._wires: list[WireServer] = []
        self._rights: RightsHolder | None = None
        if config.rights.is_on:
            self._rights = RightsHolder(config.rights.superusers)
            leading.changes.follow_rights = self._rights.take_record

    def take_slow_ms(self, slow_request_ms: int) -> None:
        """Log requests that take longer from now on."""
        self._slow_log.limit_s = slow_request_ms / 1_000
        for wire in self._wires:
            wire.slow_after_s = self._slow_log.limit_s

    def refresh(self, table: str) -> None:
        """Note that the catalogue has changed the table."""
        entry = self._leading.catalogue.tables.get(table)
        if entry is None:
            self.known.tables.remove(table)
        else:
            self.known.tables.install(ServedTable(entry.schema, entry.enabled, list(entry.regions)))

    def _address(self, _region: RegionInfo) -> tuple[str, int]:
        return self._config.host, self._config.port

    def thrift1(self, *, may_end_servers: bool) -> ThriftService:
        """Return the Thrift 1 service.

        Pass ``may_end_servers`` if its callers use the private socket or have presented a certificate.
        """
        operations, leading = self._operations, self._leading
        facts = Facts(self._folder.path, self._started_s, lambda: 0, dict, tuple)
        return ThriftService(
            operations.scanners,
            self._slow_log,
            TableMethods(operations, leading.changes, self._address, self._folder.cluster_id),
            ExtensionMethods(operations, cast(Any, None), leading.changes, facts),
            TriggerChangeMethods(leading.triggers),
            ViewChangeMethods(leading.views, leading.view_generations),
            FeedChangeMethods(leading.changes.feeds),
            AdminMethods(operations, leading.alterations, lambda _table: []),
            RegionMethods(operations.descriptions, cast(Any, self._host.requests)),
            SnapshotMethods(operations, leading.snapshots),
            RightsMethods(leading.rights, ROOT if may_end_servers else ""),
            ClusterMethods(operations.descriptions, leading.cluster, may_end_servers=may_end_servers),
        )

    def thrift2(self) -> ThriftService:
        from columnar.thrift2 import service as thrift2  # 2 MB that most stores do not need
        from columnar.thrift2.service import to_wire
        from columnar.thrift2.tables import AlterationMethods2, TableMethods2

        descriptions, leading = self._operations.descriptions, self._leading
        started_ms = int(self._started_s * 1000)
        return ThriftService(
            self._operations.scanners,
            self._slow_log,
            TableMethods2(descriptions, leading.alterations, self._address, self._folder.cluster_id, started_ms),
            AlterationMethods2(descriptions, leading.changes, leading.alterations),
            definition=thrift2.DEFINITION,
            to_wire=to_wire,
        )

    def wires(self) -> dict[int, WireServer]:
        """Return the wires by service, for calls that servers forward.  The wires do not listen."""
        has_certificates = bool(self._config.tls_client_ca)
        wires = {THRIFT1: WireServer(_only(self.thrift1(may_end_servers=has_certificates), THRIFT1))}
        if self._config.thrift2_port >= 0:
            from columnar.wire.idl2 import SERVICE2

            wires[THRIFT2] = WireServer(_only(self.thrift2(), THRIFT2), definition=SERVICE2)
        self._wires += wires.values()
        if self._rights is not None:  # a server has checked each call; the answers that list tables are cut here
            descriptions = self._operations.descriptions
            for number, wire in wires.items():
                wire.rights = check_of_tables(number, self._rights, descriptions.find_meant, descriptions.region_named)
        return wires

    def private_wire(self) -> WireServer:
        """Return the wire of the private socket."""
        self._wires.append(WireServer(_only(self.thrift1(may_end_servers=True), THRIFT1)))
        return self._wires[-1]


def _only(service: ThriftService, number: int) -> ThriftService:
    """Return ``service`` without the methods that a master cannot answer."""
    routes = METHOD_ROUTES[number]
    handlers = service.handlers.items()
    service.handlers = {
        name: handler
        for name, handler in handlers
        if routes[name] is MethodRoute.MASTER or name in CATALOGUE_READ_METHODS
    }
    return service
