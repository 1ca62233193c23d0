"""Methods of the Thrift 2 service on tables, namespaces and regions, over ``master.schema_changes``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from columnar.errors import IllegalArgument, InvalidFamilyOperation, NamespaceNotFound, abbreviate
from columnar.model.attributes import TableChange, whole
from columnar.model.bounded_search import SEARCHES
from columnar.model.cell import checked_row
from columnar.model.java_patterns import PatternProblem, PatternTimeout, compiled
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, checked_family_name
from columnar.operations.descriptions import Descriptions
from columnar.regions.tables import ServedTable
from columnar.thrift2 import schema
from columnar.thrift2.translate import given
from columnar.wire.idl2 import hbase2

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.alterations import Alterations
    from columnar.master.schema_changes import SchemaChanges

_TYPE_TWO: Final = 2  # TThriftServerType.TWO: this is the Thrift 2 service
_DEFAULT: Final = "default"


class TableMethods2:
    def __init__(
        self,
        descriptions: Descriptions,
        alterations: Alterations,
        address_of: Callable[[RegionInfo], tuple[str, int]],
        cluster_id: str,
        started_ms: int,
    ) -> None:
        """Pass ``address_of``, called only during requests, because the port may not be known before."""
        self._descriptions = descriptions
        self._alterations = alterations
        self._address_of = address_of
        self._cluster_id = cluster_id
        self._started_ms = started_ms

    # --- status ------------------------------------------------------------------------------------

    def tableExists(self, _ctx: Any, name: Any) -> bool:
        return self._descriptions.find(schema.table_name(name)) is not None

    def isTableEnabled(self, _ctx: Any, name: Any) -> bool:
        return self._descriptions.known(schema.table_name(name)).enabled

    def isTableDisabled(self, _ctx: Any, name: Any) -> bool:
        return not self.isTableEnabled(_ctx, name)

    def isTableAvailable(self, _ctx: Any, name: Any) -> bool:
        """Return whether all regions of the table can be used; closed regions open at their first request."""
        served = self._descriptions.find(schema.table_name(name))
        return served is not None and served.enabled

    def isTableAvailableWithSplit(self, _ctx: Any, name: Any, splits: Any) -> bool:
        served = self._descriptions.find(schema.table_name(name))
        if served is None or not served.enabled:
            return False
        return not splits or sorted(splits) == [info.start for info in served.regions if info.start]

    def getTableDescriptor(self, _ctx: Any, name: Any) -> Any:
        return schema.table_to_wire(self._descriptions.known(schema.table_name(name)).schema)

    def getTableDescriptors(self, _ctx: Any, names: Any) -> list[Any]:
        """Return the descriptors of the named tables that exist."""
        found = [self._descriptions.find(schema.table_name(name)) for name in given(names, "list of tables")]
        return [schema.table_to_wire(served.schema) for served in found if served is not None]

    def getTableDescriptorsByPattern(self, _ctx: Any, pattern: str | None, system_too: bool | None) -> list[Any]:
        return [schema.table_to_wire(one.schema) for one in self._matching(pattern, bool(system_too))]

    def getTableNamesByPattern(self, _ctx: Any, pattern: str | None, system_too: bool | None) -> list[Any]:
        return [schema.table_name_to_wire(one.schema.name) for one in self._matching(pattern, bool(system_too))]

    def getTableDescriptorsByNamespace(self, _ctx: Any, name: str | None) -> list[Any]:
        return [schema.table_to_wire(one.schema) for one in self._within(name)]

    def getTableNamesByNamespace(self, _ctx: Any, name: str | None) -> list[Any]:
        return [schema.table_name_to_wire(one.schema.name) for one in self._within(name)]

    def _matching(self, pattern: str | None, system_too: bool) -> list[ServedTable]:
        """Return the tables whose whole name matches, with or without ``default:`` in the default namespace."""
        tables = self._descriptions.all() if system_too else self._descriptions.of_users()
        if pattern is None:
            return tables
        try:
            regex = compiled(pattern)
        except PatternProblem as problem:
            raise IllegalArgument(f"the pattern '{abbreviate(pattern.encode())}' {problem}") from None
        SEARCHES.begin_row()
        try:
            return [
                one
                for one in tables
                if regex.matches(one.schema.name)
                or (":" not in one.schema.name and regex.matches(f"{_DEFAULT}:{one.schema.name}"))
            ]
        except PatternTimeout as timeout:
            raise IllegalArgument(f"{timeout}, on the names of tables") from None

    def _within(self, name: str | None) -> list[ServedTable]:
        within = set(self._alterations.tables_of(_known_namespace(self._alterations, name).encode()))
        return [one for one in self._descriptions.all() if one.schema.name in within]

    # --- locations of rows -------------------------------------------------------------------------

    def getRegionLocation(self, _ctx: Any, table: bytes | None, row: bytes | None, _reload: bool | None) -> Any:
        """Return the region's location; an empty row means the first region."""
        served = self._descriptions.known(given(table, "table name"))
        return self._location(served.holding(checked_row(row) if row else b""))

    def getAllRegionLocations(self, _ctx: Any, table: bytes | None) -> list[Any]:
        """Return the locations of all regions.  As in HBase, a missing table is not an error and has none."""
        served = self._descriptions.find(given(table, "table name"))
        return [self._location(info) for info in served.regions] if served is not None else []

    def _location(self, info: RegionInfo) -> Any:
        host, port = self._address_of(info)
        return hbase2.THRegionLocation(
            serverName=hbase2.TServerName(hostName=host, port=port, startCode=self._started_ms),
            regionInfo=hbase2.THRegionInfo(
                regionId=info.region_id,
                tableName=info.table.encode(),
                startKey=info.start,
                endKey=info.end,
                offline=False,
                split=False,
                replicaId=0,
            ),
        )

    # --- the server --------------------------------------------------------------------------------

    def getThriftServerType(self, _ctx: Any) -> int:
        return _TYPE_TWO

    def getClusterId(self, _ctx: Any) -> str:
        return self._cluster_id

    def getSlowLogResponses(self, _ctx: Any, _servers: Any, _filter: Any) -> list[Any]:
        """Return an empty list, as an HBase without a slow log buffer does; slow requests are written to the log."""
        return []

    def clearSlowLogResponses(self, _ctx: Any, servers: Any) -> list[bool]:
        """Return for each server whether something was cleared: nothing ever is."""
        return [False for _ in servers or ()]


class AlterationMethods2:
    def __init__(self, descriptions: Descriptions, changes: SchemaChanges, alterations: Alterations) -> None:
        self._descriptions = descriptions
        self._changes = changes
        self._alterations = alterations

    def createTable(self, ctx: Any, descriptor: Any, splits: Any) -> Any:
        name, families, attributes = schema.table_from_wire(descriptor)
        return self._changes.create(name, families, attributes, list(splits or ()), creator=ctx.user)

    def deleteTable(self, _ctx: Any, name: Any) -> Any:
        return self._changes.drop(schema.table_name(name))

    def enableTable(self, _ctx: Any, name: Any) -> Any:
        return self._changes.enable(schema.table_name(name))

    def disableTable(self, _ctx: Any, name: Any) -> Any:
        return self._changes.disable(schema.table_name(name))

    def truncateTable(self, _ctx: Any, name: Any, preserve_splits: bool | None) -> Awaitable[None]:
        """Truncate the table and leave it enabled, as HBase does.  Unlike in HBase it need not be disabled first."""
        return _void(self._alterations.truncate(schema.table_name(name), bool(preserve_splits), enable=True))

    def addColumnFamily(self, _ctx: Any, name: Any, family: Any) -> Awaitable[None]:
        wanted, table = schema.family_from_wire(given(family, "column family")), schema.table_name(name)
        held = self._families_of(table)
        if wanted.name in held:
            raise InvalidFamilyOperation(f"table {abbreviate(table)} has a column family {wanted.name} already")
        return self._alterations.alter(table, TableChange(add=(wanted,)))

    def deleteColumnFamily(self, _ctx: Any, name: Any, family: bytes | None) -> Awaitable[None]:
        wanted, table = checked_family_name(given(family, "column family")), schema.table_name(name)
        held = self._families_of(table)
        _check_family_exists(wanted, table, held)
        if len(held) == 1:
            raise InvalidFamilyOperation(
                f"{wanted} is the only column family of table {abbreviate(table)}; drop the table"
            )
        return self._alterations.alter(table, TableChange(drop=frozenset({wanted})))

    def modifyColumnFamily(self, _ctx: Any, name: Any, family: Any) -> Awaitable[None]:
        wanted, table = schema.family_from_wire(given(family, "column family")), schema.table_name(name)
        held = self._families_of(table)
        _check_family_exists(wanted.name, table, held)
        return self._alterations.alter(table, TableChange(change={wanted.name: whole(wanted, held[wanted.name])}))

    def _families_of(self, table: bytes) -> dict[str, Family]:
        """Return the table's families.  Raises TableNotFound."""
        return {family.name: family for family in self._descriptions.known(table).schema.families}

    def modifyTable(self, _ctx: Any, descriptor: Any) -> Awaitable[None]:
        """Alter the table to match the descriptor.  Families that it does not name are deleted with their cells."""
        name, families, attributes = schema.table_from_wire(descriptor)
        held, known = self._descriptions.known(name).schema, self._families_of(name)
        change = TableChange(
            add=tuple(family for family in families if family.name not in known),
            change={family.name: whole(family, known[family.name]) for family in families if family.name in known},
            drop=frozenset(known.keys() - {family.name for family in families}),
            attributes={**dict.fromkeys(held.attributes, ""), **attributes},
        )
        return self._alterations.alter(name, change)

    # --- namespaces --------------------------------------------------------------------------------

    def listNamespaces(self, _ctx: Any) -> list[str]:
        return self._alterations.namespaces()

    def listNamespaceDescriptors(self, _ctx: Any) -> list[Any]:
        return [self._namespace_descriptor(name) for name in self._alterations.namespaces()]

    def getNamespaceDescriptor(self, _ctx: Any, name: str | None) -> Any:
        return self._namespace_descriptor(_known_namespace(self._alterations, name))

    def _namespace_descriptor(self, name: str) -> Any:
        return schema.namespace_to_wire(name, self._alterations.configuration_of(name.encode()))

    def createNamespace(self, _ctx: Any, descriptor: Any) -> Awaitable[None]:
        return self._alterations.create_namespace(*schema.namespace_from_wire(descriptor))

    def modifyNamespace(self, _ctx: Any, descriptor: Any) -> Awaitable[None]:
        """Replace the namespace's whole configuration by the descriptor's."""
        name, configuration = schema.namespace_from_wire(descriptor)
        return self._alterations.alter_namespace(name, configuration, replace=True)

    def deleteNamespace(self, _ctx: Any, name: str | None) -> Awaitable[None]:
        return self._alterations.drop_namespace(given(name, "namespace").encode())


def _known_namespace(alterations: Alterations, name: str | None) -> str:
    if name not in alterations.namespaces():
        raise NamespaceNotFound(abbreviate(given(name, "namespace").encode()))
    return name


def _check_family_exists(family: str, table: bytes, held: Collection[str]) -> None:
    if family not in held:
        raise InvalidFamilyOperation(f"Column family {family} does not exist in table {abbreviate(table)}")


async def _void(waiting: Awaitable[object]) -> None:
    await waiting
