"""Methods on tables and regions: create, drop, enable, disable, list, describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from columnar.errors import CallerError, TableNotFound, abbreviate
from columnar.model.region_info import RegionInfo
from columnar.operations.table_operations import TableOperations
from columnar.thrift import translate
from columnar.wire.idl import hbase

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.schema_changes import SchemaChanges

_TYPE_ONE = 1  # TThriftServerType.ONE: this is the Thrift 1 service


class TableMethods:
    def __init__(
        self,
        operations: TableOperations,
        changes: SchemaChanges,
        address_of: Callable[[RegionInfo], tuple[str, int]],
        cluster_id: str,
    ) -> None:
        """``address_of`` a region's server is called only by requests: before them the port may not be known."""
        self._descriptions = operations.descriptions
        self._upkeep = operations.upkeep
        self._changes = changes
        self._address_of = address_of
        self._cluster_id = cluster_id

    # --- changes -----------------------------------------------------------------------------------

    def createTable(self, _ctx: Any, table: bytes, families: Any) -> Any:
        if not families:
            raise CallerError(f"table {abbreviate(table or b'')} needs at least one column family")
        return self._changes.create(table or b"", [translate.family_from_wire(family) for family in families])

    def deleteTable(self, _ctx: Any, table: bytes) -> Any:
        return self._changes.drop(table)

    def columnarDropTable(self, _ctx: Any, table: bytes) -> Any:
        return self._changes.drop(table or b"", disable=True)

    def enableTable(self, _ctx: Any, table: bytes) -> Any:
        return self._changes.enable(table)

    def disableTable(self, _ctx: Any, table: bytes) -> Any:
        return self._changes.disable(table)

    # --- status ------------------------------------------------------------------------------------

    def isTableEnabled(self, _ctx: Any, table: bytes) -> bool:
        return self._descriptions.meant(table).enabled

    def getTableNames(self, _ctx: Any) -> list[bytes]:
        return list(self._descriptions.names_of_users())

    def getTableNamesWithIsTableEnabled(self, _ctx: Any) -> dict[bytes, bool]:
        return self._descriptions.names_of_users()

    def getColumnDescriptors(self, _ctx: Any, table: bytes) -> dict[bytes, Any]:
        schema = self._descriptions.meant(table).schema
        return {
            family.bytes_name + b":": translate.family_to_wire(hbase.ColumnDescriptor, family)
            for family in schema.families
        }

    def getTableRegions(self, _ctx: Any, table: bytes) -> list[Any]:
        """A table that is not there has none; it is no error (gateway behaviour 8)."""
        served = self._descriptions.find_meant(table)
        return [self._region(info) for info in served.regions] if served is not None else []

    def getRegionInfo(self, _ctx: Any, row: bytes) -> Any:
        """The region whose ``table,start,id`` is the last at or before ``row``."""
        table, _, rest = (row or b"").partition(b",")
        served = self._descriptions.find_meant(table)
        if served is None:
            raise TableNotFound(abbreviate(table))
        start = rest.rpartition(b",")[0] if b"," in rest else rest
        return self._region(served.holding(start))

    def _region(self, info: RegionInfo) -> Any:
        host, port = self._address_of(info)
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
        """Do nothing: the engine compacts continuously by itself."""
        self._descriptions.regions_named(name)

    def majorCompact(self, _ctx: Any, name: bytes) -> Any:
        return self._upkeep.major_compact(name)

    # --- the server --------------------------------------------------------------------------------

    def getThriftServerType(self, _ctx: Any) -> int:
        return _TYPE_ONE

    def getClusterId(self, _ctx: Any) -> str:
        return self._cluster_id
