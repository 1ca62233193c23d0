"""Methods on tables and regions: HBase's, and our own of administration (attributes, ranges, namespaces, splits)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from columnar.cluster.row_forms import RegionState
from columnar.errors import CallerError, IllegalArgument, TableNotFound, abbreviate
from columnar.model.attributes import OWN_COMPRESSION, TableChange, attributes_of, with_attributes
from columnar.model.inert_attributes import attribute_name
from columnar.model.region_info import RegionInfo
from columnar.model.schema import FOR_EVER, Family, checked_family_name
from columnar.operations.descriptions import Descriptions
from columnar.operations.row_deletes import delete_rows
from columnar.operations.table_operations import TableOperations
from columnar.thrift import translate
from columnar.thrift.translate import checked_bound
from columnar.wire.idl import columnar, hbase

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.alterations import Alterations
    from columnar.master.region_changes import RegionChanges
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
        """Pass ``address_of``, called only during requests, because the port may not be known before."""
        self._descriptions = operations.descriptions
        self._upkeep = operations.upkeep
        self._changes = changes
        self._address_of = address_of
        self._cluster_id = cluster_id

    # --- changes -----------------------------------------------------------------------------------

    def createTable(self, ctx: Any, table: bytes, families: Any) -> Any:
        if not families:
            raise CallerError(f"table {abbreviate(table or b'')} needs at least one column family")
        made = [translate.family_from_wire(family) for family in families]
        return self._changes.create(table or b"", made, creator=ctx.user)

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
        """Return the table's regions.  A missing table is not an error and has none (gateway behaviour 8)."""
        served = self._descriptions.find_meant(table)
        return [self._region(info) for info in served.regions] if served is not None else []

    def getRegionInfo(self, _ctx: Any, row: bytes) -> Any:
        """Return the last region whose name ``table,start,id`` is not greater than ``row``."""
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
        """Do nothing, because the engine compacts continuously by itself."""
        self._descriptions.regions_named(name)

    def majorCompact(self, _ctx: Any, name: bytes) -> Any:
        return self._upkeep.major_compact(name)

    # --- the server --------------------------------------------------------------------------------

    def getThriftServerType(self, _ctx: Any) -> int:
        return _TYPE_ONE

    def getClusterId(self, _ctx: Any) -> str:
        return self._cluster_id


class AdminMethods:
    def __init__(
        self,
        operations: TableOperations,
        alterations: Alterations,
        triggers_of: Callable[[str], list[str]],
    ) -> None:
        """Pass ``triggers_of``, which returns the names of a table's triggers."""
        self._access = operations.access
        self._descriptions = operations.descriptions
        self._upkeep = operations.upkeep
        self._alterations = alterations
        self._triggers_of = triggers_of

    # --- tables ------------------------------------------------------------------------------------

    def columnarTableExists(self, _ctx: Any, table: bytes) -> bool:
        return self._descriptions.find_meant(table) is not None

    def columnarDescribeTable(self, _ctx: Any, table: bytes) -> Any:
        served = self._descriptions.meant(table or b"")
        schema = served.schema
        return columnar.TableDescription(
            name=schema.name.encode(),
            enabled=served.enabled,
            families=[
                columnar.FamilyDescription(name=family.bytes_name, attributes=attributes_of(family))
                for family in schema.families
            ],
            attributes=dict(schema.attributes),
            regions=len(served.regions),
            triggers=self._triggers_of(schema.name),
        )

    def columnarAlterTable(self, _ctx: Any, table: bytes, change: Any) -> Any:
        if change is None:
            raise IllegalArgument("columnarAlterTable needs a TableChange")
        return self._alterations.alter(table or b"", _change_of(change))

    def columnarTruncateTable(self, _ctx: Any, table: bytes, preserve_splits: bool, enable: bool) -> Any:
        return self._alterations.truncate(table or b"", bool(preserve_splits), enable=bool(enable))

    async def columnarDeleteRows(self, _ctx: Any, table: bytes, start: bytes, stop: bytes) -> Any:
        first, last = checked_bound(start), checked_bound(stop)
        if last and first >= last:
            raise IllegalArgument("the range is empty: stop comes before start, or is start itself")
        schema = self._access.meant(table or b"").schema
        if schema.is_system:
            raise IllegalArgument("rows of the system's tables are not deleted by hand")
        deleted = await delete_rows(self._access, schema.name.encode(), first, last)
        return columnar.DeletedRows(
            rows=-1 if deleted.rows is None else deleted.rows,
            done=deleted.next_row is None,
            nextRow=deleted.next_row or b"",
        )

    # --- upkeep ------------------------------------------------------------------------------------

    async def columnarRegions(self, _ctx: Any, table: bytes) -> Any:
        served = self._descriptions.meant(table or b"")
        return [_region(state) for state in await self._descriptions.with_sizes([served])]

    def columnarFlush(self, _ctx: Any, name: bytes) -> Any:
        return self._upkeep.flush(name)

    def columnarCompact(self, _ctx: Any, name: bytes, major: bool) -> Any:
        return self._upkeep.major_compact(name) if major else self._upkeep.compact(name)

    # --- namespaces --------------------------------------------------------------------------------

    def columnarCreateNamespace(self, _ctx: Any, name: bytes, configuration: Any) -> Any:
        return self._alterations.create_namespace(name or b"", configuration)

    def columnarAlterNamespace(self, _ctx: Any, name: bytes, change: Any) -> Any:
        return self._alterations.alter_namespace(name or b"", change or {})

    def columnarDescribeNamespace(self, _ctx: Any, name: bytes) -> dict[str, str]:
        return self._alterations.configuration_of(name or b"")

    def columnarDropNamespace(self, _ctx: Any, name: bytes) -> Any:
        return self._alterations.drop_namespace(name or b"")

    def columnarListNamespaces(self, _ctx: Any) -> list[bytes]:
        return [name.encode() for name in self._alterations.namespaces()]

    def columnarListNamespaceTables(self, _ctx: Any, name: bytes) -> list[bytes]:
        return [table.encode() for table in self._alterations.tables_of(name or b"")]


def _region(state: RegionState) -> Any:
    return columnar.RegionStatus(
        name=state.info.name,
        encodedName=state.info.encoded.encode(),
        startKey=state.info.start,
        endKey=state.info.end,
        regionId=state.info.region_id,
        open=state.is_open,
        sizeBytes=state.size_bytes,
        reads=state.reads,
        writes=state.writes,
        logRecords=state.log_records,
        logBytes=state.log_bytes,
    )


def family_of(options: Any) -> Family:
    """Return the family that FamilyOptions describe, with our defaults: one version, no time to live, LZ4."""
    family = Family(checked_family_name(options.name or b""), compression=OWN_COMPRESSION)
    return with_attributes(family, _given(options))


def _change_of(change: Any) -> TableChange:
    changed: dict[str, dict[str, str]] = {}
    for options in change.changeFamilies or ():
        name = checked_family_name(options.name or b"")
        if name in changed:
            raise CallerError(f"family {name} is named twice")
        changed[name] = _given(options)
    return TableChange(
        add=tuple(family_of(options) for options in change.addFamilies or ()),
        change=changed,
        drop=frozenset(checked_family_name(name or b"") for name in change.dropFamilies or ()),
        attributes=dict(change.attributes or {}),
    )


def _given(options: Any) -> dict[str, str]:
    """Return the attributes that FamilyOptions give; a separate field takes precedence over the map of attributes."""
    given = {attribute_name(name): text for name, text in (options.attributes or {}).items()}
    ttl = options.ttlSeconds
    if ttl is not None:
        if ttl <= 0:
            raise IllegalArgument(f"a time to live is positive, not {ttl} s; leave it out for ever")
        given["TTL"] = str(min(ttl, FOR_EVER))
    if options.maxVersions is not None:
        if options.maxVersions <= 0:
            raise IllegalArgument(f"maximum versions must be positive, not {options.maxVersions}")
        given["VERSIONS"] = str(options.maxVersions)
    if options.compression:
        given["COMPRESSION"] = options.compression
    return given


T = TypeVar("T")


class RegionMethods:
    def __init__(self, descriptions: Descriptions, changes: RegionChanges) -> None:
        self._descriptions = descriptions
        self._changes = changes

    async def columnarSplit(self, _ctx: Any, table_or_region: bytes, row: bytes) -> list[bytes]:
        name = table_or_region or b""
        served = self._descriptions.find(name)
        if served is None:
            parent = self._descriptions.given_region(name)
        elif row:
            parent = served.holding(row)
        else:
            parent = await self._descriptions.largest_region(served)
        return [info.name for info in await _undisturbed(self._changes.split(parent, row or None))]

    async def columnarMerge(self, _ctx: Any, region: bytes, other: bytes) -> bytes:
        one, two = self._descriptions.given_region(region), self._descriptions.given_region(other)
        return (await _undisturbed(self._changes.merge(one, two))).name


async def _undisturbed(work: Coroutine[Any, Any, T]) -> T:
    """Complete the change even if the caller disconnects, because half a split is of no use."""
    return await asyncio.shield(asyncio.ensure_future(work))
