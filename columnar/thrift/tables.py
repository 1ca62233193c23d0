"""Methods on tables and regions: create, drop, enable, disable, list, describe."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from columnar.errors import CallerError, TableNotFound, shown
from columnar.master.schema_changes import SchemaChanges
from columnar.model.region_info import RegionInfo
from columnar.regions.patience import patiently
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.thrift import translate
from columnar.wire.idl import hbase

_TYPE_ONE = 1  # TThriftServerType.ONE: this is the Thrift 1 service


class TableMethods:
    def __init__(
        self, server: RegionServer, changes: SchemaChanges, address: Callable[[], tuple[str, int]], cluster_id: str
    ) -> None:
        """``address`` is asked for once calls come in: before that the port may not be known."""
        self._server = server
        self._tables = server.tables
        self._changes = changes
        self._address = address
        self._cluster_id = cluster_id

    # --- changes -----------------------------------------------------------------------------------

    def createTable(self, _ctx: Any, table: bytes, families: Any) -> Any:
        if not families:
            raise CallerError(f"table {shown(table or b'')} needs at least one column family")
        return self._changes.create(table or b"", [translate.family_from_wire(family) for family in families])

    def deleteTable(self, _ctx: Any, table: bytes) -> Any:
        return self._changes.drop(table)

    def enableTable(self, _ctx: Any, table: bytes) -> Any:
        return self._changes.enable(table)

    def disableTable(self, _ctx: Any, table: bytes) -> Any:
        return self._changes.disable(table)

    # --- looks -------------------------------------------------------------------------------------

    def isTableEnabled(self, _ctx: Any, table: bytes) -> bool:
        return self._tables.known(table).enabled

    def getTableNames(self, _ctx: Any) -> list[bytes]:
        return [served.schema.name.encode() for served in self._of_users()]

    def getTableNamesWithIsTableEnabled(self, _ctx: Any) -> dict[bytes, bool]:
        return {served.schema.name.encode(): served.enabled for served in self._of_users()}

    def _of_users(self) -> list[ServedTable]:
        return [served for served in self._tables.all() if not served.schema.is_system]

    def getColumnDescriptors(self, _ctx: Any, table: bytes) -> dict[bytes, Any]:
        schema = self._tables.known(table).schema
        return {
            family.bytes_name + b":": translate.family_to_wire(hbase.ColumnDescriptor, family)
            for family in schema.families
        }

    def getTableRegions(self, _ctx: Any, table: bytes) -> list[Any]:
        """Of a table that is not there: none, and no error (gateway behaviour 8)."""
        served = self._tables.find(table)
        return [self._region(info) for info in served.regions] if served is not None else []

    def getRegionInfo(self, _ctx: Any, row: bytes) -> Any:
        """The region whose ``table,start,id`` is the last at or before ``row``."""
        table, _, rest = (row or b"").partition(b",")
        served = self._tables.find(table)
        if served is None:
            raise TableNotFound(shown(table))
        start = rest.rpartition(b",")[0] if b"," in rest else rest
        return self._region(served.holding(start))

    def _region(self, info: RegionInfo) -> Any:
        host, port = self._address()
        return hbase.TRegionInfo(
            startKey=info.start,
            endKey=info.end,
            id=info.region_id,
            name=info.name,
            version=1,
            serverName=host.encode(),
            port=port,
        )

    # --- upkeep ------------------------------------------------------------------------------------

    def compact(self, _ctx: Any, name: bytes) -> None:
        """The engine compacts by itself all the time; there is nothing to hurry."""
        self.regions_named(name)

    def majorCompact(self, _ctx: Any, name: bytes) -> Any:
        """Really major: returns when surplus versions, expired cells and old markers are gone."""
        return self._major_compact(name)

    async def _major_compact(self, name: bytes) -> None:
        for served, info in self.regions_named(name):
            # The regions before took their time: the table may be disabled or gone by now.
            current = self._tables.find(served.schema.name.encode())
            if current is not None and current.enabled and info in current.regions:
                region = await patiently(partial(self._server.open_region, current, info))
                await self._server.major_compact(region)

    def regions_named(self, name: bytes) -> list[tuple[ServedTable, RegionInfo]]:
        """The regions of a table, or the one region, by its full or its encoded name (observed row 31)."""
        served = self._tables.find(name)
        if served is not None:
            return [(served, info) for info in served.regions]
        for candidate in self._tables.all():
            for info in candidate.regions:
                if name in (info.name, info.encoded.encode()):
                    return [(candidate, info)]
        raise TableNotFound(f"{shown(name or b'')}; neither a table nor a region has this name")

    # --- the server --------------------------------------------------------------------------------

    def getThriftServerType(self, _ctx: Any) -> int:
        return _TYPE_ONE

    def getClusterId(self, _ctx: Any) -> str:
        return self._cluster_id
