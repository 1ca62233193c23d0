r"""The catalogue: the table ``columnar:meta``, with a row for each table and a row for each region (design D8).

    row ``t/NAME``            info:schema = JSON of the table, info:state = enabled | disabled
    row ``r/NAME\0START\0ID``  info:region = JSON of the region
                               info:owner = JSON of its owner (``model.owner``); none in a standalone
    row ``d/ENCODED``          info:region = a region that was dropped, split or merged, or is not yet a table's: its
                               folder is removed at the next start
    row ``ns/NAME``           info:state = enabled: a namespace; info:configuration = JSON of its configuration, if any;
                               ``default`` and the system's namespace have a row only with a configuration
    row ``n``                  info:next = the next region id, eight bytes
    rows ``s/...``, ``w/...``  logs of dead incarnations, and operator settings (``catalogue_rows``)
    rows ``tr/...``, ``vw/...``, ``alias/...``  triggers, views, and which generation readers see (``derivation_rows``)
    row ``e``                  info:epoch = the epoch of this start's owner of all regions, eight bytes

A change of several rows (a table with its regions) is an atomic batch of the catalogue's only region (design D12), so
no reader ever sees half a table.

Pure except for a function that it is given, which applies mutations and returns when they are on disk.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left, insort
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from columnar.errors import DamagedData, abbreviate
from columnar.master import catalogue_rows, derivation_rows
from columnar.master.catalogue_rows import (
    INFO,
    OperatorSettings,
    deletes,
    dropped_row,
    erase,
    namespace_row,
    put,
    puts,
    region_row,
    table_row,
    u64,
)
from columnar.master.derivation_rows import AnySet
from columnar.master.replacements import replaced
from columnar.model import owner, region_info, schema
from columnar.model.derivations import Triggers, ViewSet
from columnar.model.mutation import Delete, RowMutation
from columnar.model.owner import Incarnation, Owner
from columnar.model.region_info import RegionInfo
from columnar.model.schema import DEFAULT_NAMESPACE, SYSTEM_NAMESPACE, Family, Table, make_table
from columnar.storage.server_folders import Seal

if TYPE_CHECKING:  # a standalone writes no plans, and needs not their 0.3 MB
    from columnar.master.instructions import Write
    from columnar.model.owner_messages import Segments

META_TABLE: Final = "columnar:meta"
META_REGION_ID: Final = 1  # the only region that is in no catalogue
META_SCHEMA: Final = make_table(META_TABLE, [Family("info")])
_FIRST_REGION_ID: Final = 2
_NONE: Final = "which is none of ours"
BUILT_IN_NAMESPACES: Final = frozenset({DEFAULT_NAMESPACE, SYSTEM_NAMESPACE})

Rows = Iterable[tuple[bytes, dict[bytes, bytes]]]  # row, column -> value


@dataclass(slots=True)
class TableEntry:
    schema: Table
    enabled: bool
    regions: list[RegionInfo] = field(default_factory=list)  # ascending


class Catalogue:
    def __init__(self, rows: Rows, write: Callable[[list[RowMutation]], Awaitable[None]]) -> None:
        """``rows``: all that are on disk."""
        self._write = write
        self.tables: dict[str, TableEntry] = {}
        self.dropped: list[RegionInfo] = []
        self.namespaces: set[str] = set(BUILT_IN_NAMESPACES)
        self.configurations: dict[str, Mapping[str, str]] = {}  # of namespaces that have one
        self.owners: dict[int, Owner] = {}  # by region id; a region without an entry has had no owner
        self.sealed: dict[Incarnation, Segments] = {}
        self._sealed_by_older: set[Incarnation] = set()  # programs, at lengths of files
        self.unread: dict[bytes, str] = {}  # rows whose owner or seal does not decode: a repair can do without
        self.operator_settings = OperatorSettings()
        self._derived: dict[type[AnySet], AnySet] = {}  # the set of each kind of derivation
        self.epoch = 0  # of the owner; 0: no owner has been named yet
        self._next_region_id = _FIRST_REGION_ID
        self._epoch_change = asyncio.Lock()  # each caller's epoch is written before the next one is chosen
        self._rows_change = asyncio.Lock()  # rows of regions go or get owners: none gets one after it went
        self._load(rows)

    def _load(self, rows: Rows) -> None:
        regions: list[RegionInfo] = []
        derived: list[tuple[bytes, dict[bytes, bytes]]] = []
        for row, cells in rows:
            try:
                self._take(row, cells, regions, derived)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DamagedData(f"row {abbreviate(row)} of the catalogue is none of ours: {error!r}") from error
        for info in sorted(regions, key=_start):
            if info.table not in self.tables:
                raise DamagedData(f"row {abbreviate(region_row(info))} of the catalogue names a region of no table")
            self.tables[info.table].regions.append(info)
        self._derived = derivation_rows.sets_from(derived, self.tables)

    def _take(
        self,
        row: bytes,
        cells: dict[bytes, bytes],
        regions: list[RegionInfo],
        derived: list[tuple[bytes, dict[bytes, bytes]]],
    ) -> None:
        """Raise what decoders raise: the row is none of ours."""
        if row.startswith(b"t/"):
            table = schema.from_json(cells[b"info:schema"])
            self.tables[table.name] = TableEntry(table, cells[b"info:state"] == b"enabled")
        elif row.startswith(b"r/"):
            regions.append(region_info.from_json(cells[b"info:region"]))
            if region_row(regions[-1]) != row:
                raise ValueError("it holds another region")
            self._take_owner(regions[-1], cells)
        elif row.startswith(b"d/"):
            self.dropped.append(region_info.from_json(cells[b"info:region"]))
        elif row.startswith(b"ns/"):
            name = row[3:].decode()
            self.namespaces.add(name)
            if b"info:configuration" in cells:
                self.configurations[name] = json.loads(cells[b"info:configuration"])
        elif row.startswith(derivation_rows.PREFIXES):
            derived.append((row, cells))
        elif row.startswith(catalogue_rows.SEALED):
            self._take_seal(catalogue_rows.sealed_server(row), cells)
        elif row == catalogue_rows.OPERATOR_SETTINGS_ROW:
            self.operator_settings = catalogue_rows.operator_settings_from_json(cells[b"info:wishes"])
        elif row == b"e":
            self.epoch = int.from_bytes(cells[b"info:epoch"], "big")
        elif row == b"n":
            self._next_region_id = int.from_bytes(cells[b"info:next"], "big")

    def _take_owner(self, info: RegionInfo, cells: Mapping[bytes, bytes]) -> None:
        if b"info:owner" not in cells:
            return
        try:
            self.owners[info.region_id] = owner.from_json(cells[b"info:owner"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.unread[region_row(info)] = (
                f"the catalogue has an owner of region {info.encoded} of {info.table}, {_NONE}: {error!r}"
            )

    def _take_seal(self, server: Incarnation, cells: Mapping[bytes, bytes]) -> None:
        try:
            self.sealed[server] = catalogue_rows.sealed_from_json(cells[b"info:sealed"])
        except (ValueError, KeyError, TypeError) as error:
            self.unread[catalogue_rows.sealed_row(server)] = (
                f"the catalogue has a seal of the log of {server}, {_NONE}: {error!r}"
            )
        if b"info:whole" not in cells:
            self._sealed_by_older.add(server)

    async def raise_epoch(self) -> int:
        """Begin an epoch that no earlier owner had; it is on disk when this returns.

        Called once per start, before any region opens; by a cluster also for each start of a server, and servers that
        died together start together.
        """
        async with self._epoch_change:
            await self._write([put(b"e", epoch=u64(self.epoch + 1))])
            self.epoch += 1
            return self.epoch

    async def forget_servers(self) -> None:
        """Forget owners and dead logs: one process serves all regions, and no store lacks what a log has.

        The epoch rises above those of all owners, so that the next owner of each region is above them.
        """
        tables = self.tables.values()
        owned = [info for entry in tables for info in entry.regions if info.region_id in self.owners]
        epoch = max([self.epoch, *(row.epoch + 1 for row in self.owners.values())])
        mutations = [_without_owner(region_row(info)) for info in owned]
        mutations += [erase(catalogue_rows.sealed_row(server)) for server in self.sealed]
        mutations += [_without_owner(row) if row.startswith(b"r/") else erase(row) for row in self.unread]
        await self._write([*mutations, put(b"e", epoch=u64(epoch))])
        self.owners, self.sealed, self.unread, self.epoch = {}, {}, {}, epoch

    async def write_owners(self, write: Write) -> None:
        """Write the rows of a master's plan in one batch; rows of regions that no table has any more are left out."""
        async with self._rows_change:
            await self._write_owners(write)

    async def _write_owners(self, write: Write) -> None:
        owners = [(info, row) for info, row in write.owners if self._has(info)]
        mutations = [put(region_row(info), owner=owner.to_json(row)) for info, row in owners]
        sealed = {server: catalogue_rows.sealed_to_json(segments) for server, segments in write.sealed}
        mutations += [
            put(catalogue_rows.sealed_row(server), sealed=value, whole=b"1") for server, value in sealed.items()
        ]
        mutations += [erase(catalogue_rows.sealed_row(server)) for server in write.forgotten]
        if write.operator_settings is not None:
            mutations.append(
                put(
                    catalogue_rows.OPERATOR_SETTINGS_ROW,
                    wishes=catalogue_rows.operator_settings_to_json(write.operator_settings),
                )
            )
        if mutations:
            await self._write(mutations)
        self.owners |= {info.region_id: row for info, row in owners}
        self.sealed |= dict(write.sealed)
        self._sealed_by_older -= dict(write.sealed).keys()
        for server in write.forgotten:
            self.sealed.pop(server, None)
        self.operator_settings = write.operator_settings or self.operator_settings

    def seal_of(self, server: Incarnation) -> Seal | None:
        """The seal of the incarnation's log; None: it has none as yet, or it was damaged."""
        lengths = self.sealed.get(server)
        return None if lengths is None else Seal(lengths, is_of_files=server in self._sealed_by_older)

    def firm_seals(self) -> dict[Incarnation, Segments]:
        """The seals at lengths of whole frames, which are on disk."""
        return {one: lengths for one, lengths in self.sealed.items() if one not in self._sealed_by_older}

    def _has(self, info: RegionInfo) -> bool:
        entry = self.tables.get(info.table)
        if entry is None:
            return False
        at = bisect_left(entry.regions, info.start, key=_start)
        return at < len(entry.regions) and entry.regions[at] == info

    def _forget_owners(self, regions: Iterable[RegionInfo]) -> None:
        for info in regions:
            self.owners.pop(info.region_id, None)

    async def alter(self, table: Table) -> TableEntry:
        """Give an existing table this schema."""
        await self._write([put(table_row(table.name), schema=schema.to_json(table))])
        entry = self.tables[table.name]
        entry.schema = table
        return entry

    async def create_namespace(self, name: str, configuration: Mapping[str, str] | None = None) -> None:
        await self.configure_namespace(name, configuration or {})

    async def configure_namespace(self, name: str, configuration: Mapping[str, str]) -> None:
        """Give the namespace this configuration, and no other."""
        before = {} if name not in self.namespaces else self._namespace_cells(name)
        wanted = _namespace_cells(configuration)
        await self._write([RowMutation(namespace_row(name), (*deletes(before, wanted), *puts(wanted)))])
        self.namespaces.add(name)
        self.configurations.pop(name, None)
        if configuration:
            self.configurations[name] = configuration

    async def drop_namespace(self, name: str) -> None:
        await self._write([erase(namespace_row(name))])
        self.namespaces.discard(name)
        self.configurations.pop(name, None)

    def _namespace_cells(self, name: str) -> dict[bytes, bytes]:
        return _namespace_cells(self.configurations.get(name, {}))

    async def set_enabled(self, name: str, enabled: bool) -> None:
        await self._write([put(table_row(name), state=b"enabled" if enabled else b"disabled")])
        self.tables[name].enabled = enabled

    @property
    def triggers(self) -> Triggers:
        triggers = self._derived[Triggers]
        assert isinstance(triggers, Triggers)
        return triggers

    @property
    def views(self) -> ViewSet:
        views = self._derived[ViewSet]
        assert isinstance(views, ViewSet)
        return views

    async def write_derivations(self, *sets: AnySet) -> None:
        """Write these sets, which hold from now on.  Writers hold ``DerivationChanges.lock``."""
        mutations = self._changes_to(sets)
        if mutations:
            await self._write(mutations)
        self._set_derivations(sets)

    def _changes_to(self, sets: Iterable[AnySet]) -> list[RowMutation]:
        return [change for one in sets for change in derivation_rows.changes(self._derived[type(one)], one)]

    def _set_derivations(self, sets: Iterable[AnySet]) -> None:
        """Set those that were written: writers of other kinds may have written theirs meanwhile."""
        self._derived |= {type(one): one for one in sets}

    async def drop(self, name: str, *derivations: AnySet) -> list[RegionInfo]:
        """Forget the table; its regions are remembered as dropped until ``forget_dropped``.

        ``derivations``: those kinds that change, as they are from now on, written in the same batch.
        """
        regions = self.tables[name].regions
        mutations = [erase(table_row(name)), *(erase(region_row(info)) for info in regions)]
        mutations += [put(dropped_row(info), region=region_info.to_json(info)) for info in regions]
        mutations += self._changes_to(derivations)
        async with self._rows_change:
            await self._write(mutations)
            del self.tables[name]
            self._set_derivations(derivations)
            self._forget_owners(regions)
        self.dropped += regions
        return regions

    def next_ids(self, count: int) -> list[int]:
        """Ids that no region has had; on disk with the next write that names a region."""
        first = self._next_region_id
        self._next_region_id += count
        return list(range(first, first + count))

    def _next_id(self) -> RowMutation:
        return put(b"n", next=u64(self._next_region_id))

    async def replace(self, gone: list[RegionInfo], fresh: list[RegionInfo], of: Owner | None = None) -> None:
        """Replace the regions ``gone`` by ``fresh`` in one write; the old regions are remembered as dropped.

        ``of``: the owner of each of ``fresh``; None in a standalone.
        """
        entry = self.tables[gone[0].table]
        mutations = [erase(region_row(info)) for info in gone]
        mutations += [put(dropped_row(info), region=region_info.to_json(info)) for info in gone]
        owned = {} if of is None else {"owner": owner.to_json(of)}
        mutations += [put(region_row(info), region=region_info.to_json(info), **owned) for info in fresh]
        mutations += [erase(dropped_row(info)) for info in fresh]
        async with self._rows_change:
            await self._write(mutations)
            entry.regions = replaced(entry.regions, gone, fresh)
            self._forget_owners(gone)
        if of is not None:
            self.owners |= {info.region_id: of for info in fresh}
        self.dropped += gone

    async def reserve(self, table: str, ranges: list[tuple[bytes, bytes]]) -> list[RegionInfo]:
        """Make and announce future regions of ``table``, with fresh ids."""
        ids = self.next_ids(len(ranges))
        regions = [RegionInfo(table, one, start, end) for one, (start, end) in zip(ids, ranges, strict=True)]
        await self.announce(regions)
        return regions

    async def announce(self, regions: Sequence[RegionInfo]) -> None:
        """Record future regions, so that their folders may be made.

        Until ``adopt`` or ``replace`` names the regions, a restart removes the folders.
        """
        mutations = [put(dropped_row(info), region=region_info.to_json(info)) for info in regions]
        await self._write([*mutations, self._next_id()])

    async def adopt(
        self, table: Table, regions: list[RegionInfo], *derivations: AnySet, enable: bool = False
    ) -> list[RegionInfo]:
        """Give the table this schema and these reserved regions; its old regions are dropped and returned.

        ``derivations``: as of ``drop``.  ``enable``: a disabled table is enabled by the same write.
        """
        former = self.tables.get(table.name)
        old = former.regions if former is not None else []
        enabled = enable or former is None or former.enabled
        state = b"enabled" if enabled else b"disabled"
        mutations = [put(table_row(table.name), schema=schema.to_json(table), state=state)]
        mutations += [put(region_row(info), region=region_info.to_json(info)) for info in regions]
        mutations += [erase(dropped_row(info)) for info in regions]
        mutations += [erase(region_row(info)) for info in old]
        mutations += [put(dropped_row(info), region=region_info.to_json(info)) for info in old]
        mutations += self._changes_to(derivations)
        async with self._rows_change:
            await self._write(mutations)
            self.tables[table.name] = TableEntry(table, enabled, regions)
            self._set_derivations(derivations)
            self._forget_owners(old)
        self.dropped += old
        return old

    async def exchange(self, table: str, gone: list[RegionInfo], come: list[RegionInfo]) -> None:
        """Replace regions by reserved ones, without remembering the old regions as dropped: for repairs."""
        entry = self.tables[table]
        mutations = [erase(region_row(info)) for info in gone]
        mutations += [put(region_row(info), region=region_info.to_json(info)) for info in come]
        mutations += [erase(dropped_row(info)) for info in come]
        await self._write(mutations)
        leaving = set(gone)
        entry.regions = [info for info in entry.regions if info not in leaving]
        for info in come:
            insort(entry.regions, info, key=_start)
        self._forget_owners(gone)

    async def forget_dropped(self, regions: list[RegionInfo]) -> None:
        if regions:
            await self._write([erase(dropped_row(info)) for info in regions])
            gone = set(regions)
            self.dropped = [info for info in self.dropped if info not in gone]

    def repairs(self, found: Rows) -> list[RowMutation]:
        """The mutations that restore this catalogue's rows on disk after a write of unknown outcome.

        ``found``: the rows on disk.  The result is never empty.  Regions that the catalogue does not know become
        dropped regions: they may have folders.  A dropped region stays dropped, unless it serves: folders are
        announced before they are made.
        """
        stored, wanted = dict(found), self._rows()
        serving = {dropped_row(info) for entry in self.tables.values() for info in entry.regions}
        changes = {
            row: RowMutation(row, (*deletes(stored.get(row, {}), cells), *puts(cells)))
            for row, cells in wanted.items()
            if stored.get(row) != cells
        }
        for row, cells in stored.items():
            if row in wanted or not row.startswith(
                (b"t/", b"r/", b"d/", b"ns/", b"s/", b"w/", *derivation_rows.PREFIXES)
            ):
                continue
            if not row.startswith(b"d/") or row in serving:
                changes[row] = erase(row)
            if row.startswith(b"r/"):
                info = region_info.from_json(cells[b"info:region"])
                changes[dropped_row(info)] = put(dropped_row(info), region=region_info.to_json(info))
        return [*changes.values(), self._next_id()]

    def _rows(self) -> dict[bytes, dict[bytes, bytes]]:
        """The rows that should be on disk, except for the next region id."""
        rows = {}
        for name, entry in self.tables.items():
            state = b"enabled" if entry.enabled else b"disabled"
            rows[table_row(name)] = {b"info:schema": schema.to_json(entry.schema), b"info:state": state}
            rows |= {region_row(info): self._region_cells(info) for info in entry.regions}
        rows |= {dropped_row(info): {b"info:region": region_info.to_json(info)} for info in self.dropped}
        if self.epoch:
            rows[b"e"] = {b"info:epoch": u64(self.epoch)}
        written = (self.namespaces - BUILT_IN_NAMESPACES) | self.configurations.keys()
        rows |= {namespace_row(name): self._namespace_cells(name) for name in written}
        for server, segments in self.sealed.items():
            cells = rows[catalogue_rows.sealed_row(server)] = {b"info:sealed": catalogue_rows.sealed_to_json(segments)}
            if server not in self._sealed_by_older:
                cells[b"info:whole"] = b"1"
        if self.operator_settings != OperatorSettings():
            rows[catalogue_rows.OPERATOR_SETTINGS_ROW] = {
                b"info:wishes": catalogue_rows.operator_settings_to_json(self.operator_settings)
            }
        for one in self._derived.values():
            rows |= derivation_rows.rows_of(one)
        return rows

    def _region_cells(self, info: RegionInfo) -> dict[bytes, bytes]:
        cells = {b"info:region": region_info.to_json(info)}
        row = self.owners.get(info.region_id)
        return cells if row is None else cells | {b"info:owner": owner.to_json(row)}


def strays(rows: Rows) -> tuple[list[bytes], list[tuple[bytes, dict[bytes, bytes]]]]:
    """(rows of regions whose table has no row; all other rows), for the inspection of a damaged catalogue."""
    found = list(rows)
    tables = {row[2:] for row, _ in found if row.startswith(b"t/")}
    stray = [row for row, _ in found if row.startswith(b"r/") and row[2:].partition(b"\x00")[0] not in tables]
    return stray, [pair for pair in found if pair[0] not in stray]


def _namespace_cells(configuration: Mapping[str, str]) -> dict[bytes, bytes]:
    cells = {b"info:state": b"enabled"}
    if configuration:
        cells[b"info:configuration"] = json.dumps(dict(configuration), sort_keys=True).encode()
    return cells


def _without_owner(row: bytes) -> RowMutation:
    return RowMutation(row, (Delete(INFO, b"owner"),))


def _start(info: RegionInfo) -> bytes:
    return info.start
