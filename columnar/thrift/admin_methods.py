"""Our methods of administration: describe, alter, truncate, delete ranges, upkeep, namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from columnar.errors import CallerError, IllegalArgument
from columnar.master.alterations import Alterations
from columnar.model.alteration import TableChange
from columnar.model.attributes import OWN_COMPRESSION, attributes_of, with_attributes
from columnar.model.region_info import RegionInfo
from columnar.model.schema import FOR_EVER, Family, checked_family_name
from columnar.regions.region import Region
from columnar.regions.row_deletes import delete_rows
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.storage.api import StoreClosed
from columnar.storage.folders import size_of
from columnar.thrift.translate import checked_bound
from columnar.wire.idl import columnar

RegionsNamed = Callable[[bytes], list[tuple[ServedTable, RegionInfo]]]


class AdminMethods:
    def __init__(
        self,
        server: RegionServer,
        alterations: Alterations,
        regions_named: RegionsNamed,
        triggers_of: Callable[[str], list[str]],
    ) -> None:
        """``regions_named``: of a table or a region; ``triggers_of``: the names of a table's triggers."""
        self._server = server
        self._alterations = alterations
        self._regions_named = regions_named
        self._triggers_of = triggers_of

    # --- tables ------------------------------------------------------------------------------------

    def columnarTableExists(self, _ctx: Any, table: bytes) -> bool:
        return self._server.tables.find(table or b"") is not None

    def columnarDescribeTable(self, _ctx: Any, table: bytes) -> Any:
        served = self._server.tables.known(table or b"")
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

    def columnarTruncateTable(self, _ctx: Any, table: bytes, preserve_splits: bool) -> Any:
        return self._alterations.truncate(table or b"", bool(preserve_splits))

    async def columnarDeleteRows(self, _ctx: Any, table: bytes, start: bytes, stop: bytes) -> Any:
        first, last = checked_bound(start), checked_bound(stop)
        if last and first >= last:
            raise IllegalArgument("the range is empty: stop comes before start, or is start itself")
        if self._server.tables.enabled(table or b"").schema.is_system:
            raise IllegalArgument("rows of the system's tables are not deleted by hand")
        deleted = await delete_rows(self._server, table or b"", first, last)
        return columnar.DeletedRows(
            rows=-1 if deleted.rows is None else deleted.rows,
            done=deleted.next_row is None,
            nextRow=deleted.next_row or b"",
        )

    # --- upkeep ------------------------------------------------------------------------------------

    async def columnarRegions(self, _ctx: Any, table: bytes) -> Any:
        """Some 50 microseconds in a thread for each closed region."""
        served = self._server.tables.known(table or b"")
        opened = {region.info.region_id: region for region in self._server.open_regions_of(served.schema.name)}
        closed = {i.region_id: self._server.folder_of(i) for i in served.regions if i.region_id not in opened}
        sizes = await asyncio.get_running_loop().run_in_executor(None, _sizes, closed) if closed else {}
        return [self._region(info, opened.get(info.region_id), sizes) for info in served.regions]

    def _region(self, info: RegionInfo, region: Region | None, sizes: dict[int, int]) -> Any:
        is_open = region is not None and region.is_open
        return columnar.RegionStatus(
            name=info.name,
            encodedName=info.encoded.encode(),
            startKey=info.start,
            endKey=info.end,
            regionId=info.region_id,
            open=is_open,
            sizeBytes=region.store.size_bytes() if region is not None and is_open else sizes.get(info.region_id, 0),
            reads=region.reads if region is not None else 0,
            writes=region.writes if region is not None else 0,
            logRecords=region.log.records if region is not None else 0,
            logBytes=region.log.size_bytes if region is not None else 0,
        )

    def columnarFlush(self, _ctx: Any, name: bytes) -> Any:
        """Only open regions hold anything in memory."""
        opened = {region.info.region_id for region in self._server.all_open()}
        return self._each(name, self._server.flush, lambda info: info.region_id in opened)

    def columnarCompact(self, _ctx: Any, name: bytes, major: bool) -> Any:
        return self._each(name, self._server.major_compact if major else self._server.compact, lambda _: True)

    async def _each(
        self, name: bytes, work: Callable[[Region], Awaitable[None]], wanted: Callable[[RegionInfo], bool]
    ) -> None:
        """One region after the other; those that went away meanwhile are passed over."""
        for served, info in self._regions_named(name or b""):
            while wanted(info):
                current = self._server.tables.named(served.schema.name)
                if current is None or not current.enabled or info not in current.regions:
                    break
                try:
                    await work(self._server.open_region(current, info))
                    break
                except StoreClosed:  # it was closed meanwhile: open it again, if it is still there
                    continue

    # --- namespaces --------------------------------------------------------------------------------

    def columnarCreateNamespace(self, _ctx: Any, name: bytes) -> Any:
        return self._alterations.create_namespace(name or b"")

    def columnarDropNamespace(self, _ctx: Any, name: bytes) -> Any:
        return self._alterations.drop_namespace(name or b"")

    def columnarListNamespaces(self, _ctx: Any) -> list[bytes]:
        return [name.encode() for name in self._alterations.namespaces()]

    def columnarListNamespaceTables(self, _ctx: Any, name: bytes) -> list[bytes]:
        return [table.encode() for table in self._alterations.tables_of(name or b"")]


def _sizes(folders: dict[int, str]) -> dict[int, int]:
    return {region_id: size_of(folder) for region_id, folder in folders.items()}


def family_of(options: Any) -> Family:
    """FamilyOptions with our own defaults: one version, for ever, LZ4."""
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
    """What FamilyOptions say, by attribute; fields of their own go before the map."""
    given = {name.upper(): text for name, text in (options.attributes or {}).items()}
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
