r"""The catalogue: the table ``columnar:meta``, with a row for each table and a row for each region.

    row ``t/NAME``            info:schema = JSON of the table, info:state = enabled | disabled
    row ``r/NAME\0START\0ID``  info:region = JSON of the region
                               info:owner = JSON of its owner (``model.owner``); none in a standalone
    row ``d/ENCODED``          info:region = a region that was dropped, split or merged, or that no table has yet: its
                               folder is removed at the next start
    row ``ns/NAME``           info:state = enabled: a namespace; info:configuration = JSON of its configuration, if any;
                               ``default`` and the system's namespace have a row only if they have a configuration
    row ``n``                  info:next = the next region id, eight bytes
    rows ``e``, ``s/...``, ``w/...``  of a cluster (``ownership_rows``)
    rows ``u/...``             users and rights (``rights_rows``)
    rows ``tr/...``, ``vw/...``, ``fd/...``, ``alias/...``  triggers, views, feeds, and which generation of a view
                               readers see (``derivation_rows``)

A change of several rows (a table with its regions) is an atomic batch of the catalogue's only region, so no reader
ever sees half a table.

Pure except for the argument ``write``, a function that applies mutations and returns when they are on disk.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from columnar.errors import DamagedData, abbreviate
from columnar.master import derivation_rows, rights_rows
from columnar.master.catalogue_rows import (
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
from columnar.master.ownership_rows import OwnershipRows
from columnar.master.replacements import replaced
from columnar.master.rights_rows import StoredRights
from columnar.model import owner, region_info, rights, schema
from columnar.model.derivations import Triggers, ViewSet
from columnar.model.feeds import FeedSet
from columnar.model.mutation import RowMutation
from columnar.model.owner import Owner
from columnar.model.region_info import RegionInfo
from columnar.model.schema import DEFAULT_NAMESPACE, SYSTEM_NAMESPACE, Family, Table, make_table
from columnar.model.view_generations import base_of

META_TABLE: Final = "columnar:meta"
META_REGION_ID: Final = 1  # the only region that is in no catalogue
META_SCHEMA: Final = make_table(META_TABLE, [Family("info")])
_FIRST_REGION_ID: Final = 2
BUILT_IN_NAMESPACES: Final = frozenset({DEFAULT_NAMESPACE, SYSTEM_NAMESPACE})

Rows = Iterable[tuple[bytes, dict[bytes, bytes]]]  # row, column -> value
WriteRows: TypeAlias = Callable[[list[RowMutation]], Awaitable[None]]


@dataclass(slots=True)
class TableEntry:
    schema: Table
    enabled: bool
    regions: list[RegionInfo] = field(default_factory=list)  # ascending

    def change_schema(self, schema: Table) -> None:
        self.schema = schema

    def switch(self, enabled: bool) -> None:
        self.enabled = enabled

    def set_regions(self, regions: list[RegionInfo]) -> None:
        self.regions = regions

    def has_region(self, info: RegionInfo) -> bool:
        at = bisect_left(self.regions, info.start, key=_start)
        return at < len(self.regions) and self.regions[at] == info


class Namespaces:
    """Namespaces, each with its configuration."""

    def __init__(self, write: WriteRows) -> None:
        self._write = write
        self.names: set[str] = set(BUILT_IN_NAMESPACES)
        self.configurations: dict[str, Mapping[str, str]] = {}  # of namespaces that have one

    def take_row(self, row: bytes, cells: Mapping[bytes, bytes]) -> None:
        name = row.removeprefix(b"ns/").decode()
        self.names.add(name)
        if b"info:configuration" in cells:
            self.configurations[name] = json.loads(cells[b"info:configuration"])

    def stored_rows(self) -> dict[bytes, dict[bytes, bytes]]:
        written = (self.names - BUILT_IN_NAMESPACES) | self.configurations.keys()
        return {namespace_row(name): self._cells_of(name) for name in written}

    def _cells_of(self, name: str) -> dict[bytes, bytes]:
        return _namespace_cells(self.configurations.get(name, {}))

    async def create_namespace(self, name: str, configuration: Mapping[str, str] | None = None) -> None:
        await self.configure_namespace(name, configuration or {})

    async def configure_namespace(self, name: str, configuration: Mapping[str, str]) -> None:
        """Replace the whole configuration of the namespace, which is created if it is missing."""
        before = {} if name not in self.names else self._cells_of(name)
        wanted = _namespace_cells(configuration)
        await self._write([RowMutation(namespace_row(name), (*deletes(before, wanted), *puts(wanted)))])
        self.names.add(name)
        self.configurations.pop(name, None)
        if configuration:
            self.configurations[name] = configuration

    async def drop_namespace(self, name: str, *more: RowMutation) -> None:
        """Drop the namespace; ``more`` is written in the same batch."""
        await self._write([erase(namespace_row(name)), *more])
        self.names.discard(name)
        self.configurations.pop(name, None)


class StoredDerivations:
    """The set of each kind of derivation.  Writers hold ``DerivationChanges.lock``."""

    def __init__(self, write: WriteRows) -> None:
        self._write = write
        self._sets: dict[type[AnySet], AnySet] = {}

    def load(self, rows: Rows, tables: Collection[str]) -> None:
        self._sets = derivation_rows.sets_from(rows, tables)

    def stored_rows(self) -> dict[bytes, dict[bytes, bytes]]:
        return {row: cells for one in self._sets.values() for row, cells in derivation_rows.rows_of(one).items()}

    @property
    def triggers(self) -> Triggers:
        triggers = self._sets[Triggers]
        assert isinstance(triggers, Triggers)
        return triggers

    @property
    def views(self) -> ViewSet:
        views = self._sets[ViewSet]
        assert isinstance(views, ViewSet)
        return views

    @property
    def feeds(self) -> FeedSet:
        feeds = self._sets[FeedSet]
        assert isinstance(feeds, FeedSet)
        return feeds

    async def write_derivations(self, *sets: AnySet) -> None:
        """Write these sets; each replaces the former set of its kind."""
        mutations = self.changes_to(sets)
        if mutations:
            await self._write(mutations)
        self.take_written(sets)

    def changes_to(self, sets: Iterable[AnySet]) -> list[RowMutation]:
        return [change for one in sets for change in derivation_rows.changes(self._sets[type(one)], one)]

    def take_written(self, sets: Iterable[AnySet]) -> None:
        """Replace the former sets of these kinds.  Other kinds stay: their writers may have written meanwhile."""
        self._sets |= {type(one): one for one in sets}


class Catalogue:
    def __init__(self, rows: Rows, write: WriteRows) -> None:
        """``rows``: all rows of the catalogue on disk."""
        self._write = write
        self._rows_change = asyncio.Lock()  # held to remove rows of regions and to write owners into them
        self.tables: dict[str, TableEntry] = {}
        self.dropped: list[RegionInfo] = []
        self.namespaces = Namespaces(write)
        self.ownership = OwnershipRows(write, self._rows_change, self._has)
        self.derivations = StoredDerivations(write)
        self.rights = StoredRights(write)
        self._next_region_id = _FIRST_REGION_ID
        self._load(rows)

    def _load(self, rows: Rows) -> None:
        regions: list[RegionInfo] = []
        derived: list[tuple[bytes, dict[bytes, bytes]]] = []
        granted: list[tuple[bytes, dict[bytes, bytes]]] = []
        for row, cells in rows:
            try:
                if row.startswith(rights_rows.PREFIX):
                    rights_rows.record_from([(row, cells)])  # a damaged row is named in the error
                    granted.append((row, cells))
                else:
                    self._take(row, cells, regions, derived)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DamagedData(f"row {abbreviate(row)} of the catalogue is none of ours: {error!r}") from error
        for info in sorted(regions, key=_start):
            if info.table not in self.tables:
                raise DamagedData(f"row {abbreviate(region_row(info))} of the catalogue names a region of no table")
            self.tables[info.table].regions.append(info)
        self.derivations.load(derived, self.tables)
        self.rights.load(granted)

    def _take(
        self,
        row: bytes,
        cells: dict[bytes, bytes],
        regions: list[RegionInfo],
        derived: list[tuple[bytes, dict[bytes, bytes]]],
    ) -> None:
        """Load one row.  Raises what the decoders raise if the row is none of ours."""
        if row.startswith(b"t/"):
            table = schema.from_json(cells[b"info:schema"])
            self.tables[table.name] = TableEntry(table, cells[b"info:state"] == b"enabled")
        elif row.startswith(b"r/"):
            regions.append(region_info.from_json(cells[b"info:region"]))
            if region_row(regions[-1]) != row:
                raise ValueError("it holds another region")
            self.ownership.take_owner(regions[-1], cells)
        elif row.startswith(b"d/"):
            self.dropped.append(region_info.from_json(cells[b"info:region"]))
        elif row.startswith(b"ns/"):
            self.namespaces.take_row(row, cells)
        elif row.startswith(derivation_rows.PREFIXES):
            derived.append((row, cells))
        elif row == b"n":
            self._next_region_id = int.from_bytes(cells[b"info:next"], "big")
        else:
            self.ownership.take_row(row, cells)

    def _has(self, info: RegionInfo) -> bool:
        entry = self.tables.get(info.table)
        return entry is not None and entry.has_region(info)

    def regions(self) -> list[RegionInfo]:
        return [info for entry in self.tables.values() for info in entry.regions]

    async def alter(self, table: Table) -> TableEntry:
        """Give an existing table this schema."""
        granted = rights.without_families(self.rights.record, table.name, [one.name for one in table.families])
        mutations = [put(table_row(table.name), schema=schema.to_json(table)), *self.rights.changes_to(granted)]
        await self._write(mutations)
        self.rights.take_written(granted)
        entry = self.tables[table.name]
        entry.change_schema(table)
        return entry

    async def set_enabled(self, name: str, enabled: bool) -> None:
        await self._write([put(table_row(name), state=b"enabled" if enabled else b"disabled")])
        self.tables[name].switch(enabled)

    async def drop(self, name: str, *derivations: AnySet) -> list[RegionInfo]:
        """Remove the table; its regions are remembered as dropped until ``forget_dropped``.

        ``derivations``: for each kind of derivation whose set changes, the new set; it is written in the same batch.
        """
        regions, granted = self.tables[name].regions, self._granted_without(name, derivations)
        mutations = [erase(table_row(name)), *(erase(region_row(info)) for info in regions)]
        mutations += [put(dropped_row(info), region=region_info.to_json(info)) for info in regions]
        mutations += [*self.derivations.changes_to(derivations), *self.rights.changes_to(granted)]
        async with self._rows_change:
            await self._write(mutations)
            del self.tables[name]
            self.derivations.take_written(derivations)
            self.rights.take_written(granted)
            self.ownership.regions_went(regions)
        self.dropped += regions
        return regions

    def _granted_without(self, name: str, derivations: Sequence[AnySet]) -> rights.RightsRecord:
        """Return users and rights after the drop of the table.

        Grants of a view outlive a generation of it, as long as readers see another generation by the view's name.
        """
        record = self.rights.record
        views = next((one for one in derivations if isinstance(one, ViewSet)), self.derivations.views)
        if views.swap_of(name) is None:
            record = rights.without_table(record, name)
        view = base_of(name)
        if view != name and view not in self.tables and views.swap_of(view) is None:
            record = rights.without_table(record, view)
        return record

    def next_ids(self, count: int) -> list[int]:
        """Return ids that no region has had.  The next ``announce`` writes the counter to disk."""
        first = self._next_region_id
        self._next_region_id += count
        return list(range(first, first + count))

    @property
    def next_region_id(self) -> int:
        return self._next_region_id

    async def raise_ids(self, first: int) -> None:
        """Give no id below ``first`` from now on."""
        self._next_region_id = max(self._next_region_id, first)
        await self._write([self._next_id()])

    def _next_id(self) -> RowMutation:
        return put(b"n", next=u64(self._next_region_id))

    async def replace(self, gone: list[RegionInfo], fresh: list[RegionInfo], of: Owner | None = None) -> None:
        """Replace the regions ``gone`` by ``fresh`` in one write; the old regions are remembered as dropped.

        ``of``: the owner of every region in ``fresh``; None in a standalone.
        """
        entry = self.tables[gone[0].table]
        mutations = [erase(region_row(info)) for info in gone]
        mutations += [put(dropped_row(info), region=region_info.to_json(info)) for info in gone]
        owned = {} if of is None else {"owner": owner.to_json(of)}
        mutations += [put(region_row(info), region=region_info.to_json(info), **owned) for info in fresh]
        mutations += [erase(dropped_row(info)) for info in fresh]
        async with self._rows_change:
            await self._write(mutations)
            entry.set_regions(replaced(entry.regions, gone, fresh))
            self.ownership.regions_went(gone)
        if of is not None:
            self.ownership.regions_came(fresh, of)
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
        self,
        table: Table,
        regions: list[RegionInfo],
        *derivations: AnySet,
        enable: bool = False,
        creator: str = "",
    ) -> list[RegionInfo]:
        """Give the table this schema and these reserved regions; its old regions are dropped and returned.

        ``derivations``: as for ``drop``.  ``enable``: enable a disabled table by the same write.  ``creator``: a user
        who gets all rights on the table.
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
        kept = rights.without_families(self.rights.record, table.name, [one.name for one in table.families])
        granted = rights.with_creator(kept, creator, table.name)
        mutations += [*self.derivations.changes_to(derivations), *self.rights.changes_to(granted)]
        async with self._rows_change:
            await self._write(mutations)
            self.tables[table.name] = TableEntry(table, enabled, regions)
            self.derivations.take_written(derivations)
            self.rights.take_written(granted)
            self.ownership.regions_went(old)
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
        stay = [info for info in entry.regions if info not in leaving]
        entry.set_regions(sorted([*stay, *come], key=_start))
        self.ownership.regions_went(gone)

    async def forget_dropped(self, regions: list[RegionInfo]) -> None:
        if regions:
            await self._write([erase(dropped_row(info)) for info in regions])
            gone = set(regions)
            self.dropped = [info for info in self.dropped if info not in gone]

    def repairs(self, found: Rows) -> list[RowMutation]:
        """Return the mutations that restore this catalogue's rows on disk after a write of unknown outcome.

        ``found``: the rows on disk.  The result is never empty.  Regions that the catalogue does not know become
        dropped regions: they may have folders.  A dropped region stays dropped unless it serves, because its folder
        may have been made: regions are announced before their folders are made.
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
                (b"t/", b"r/", b"d/", b"ns/", b"s/", b"w/", *derivation_rows.PREFIXES, rights_rows.PREFIX)
            ):
                continue
            if not row.startswith(b"d/") or row in serving:
                changes[row] = erase(row)
            if row.startswith(b"r/"):
                info = region_info.from_json(cells[b"info:region"])
                changes[dropped_row(info)] = put(dropped_row(info), region=region_info.to_json(info))
        return [*changes.values(), self._next_id()]

    def _rows(self) -> dict[bytes, dict[bytes, bytes]]:
        """Return the rows that should be on disk, except for the next region id."""
        rows = {}
        for name, entry in self.tables.items():
            state = b"enabled" if entry.enabled else b"disabled"
            rows[table_row(name)] = {b"info:schema": schema.to_json(entry.schema), b"info:state": state}
            rows |= {region_row(info): self._region_cells(info) for info in entry.regions}
        rows |= {dropped_row(info): {b"info:region": region_info.to_json(info)} for info in self.dropped}
        rows |= self.ownership.stored_rows() | self.namespaces.stored_rows() | self.derivations.stored_rows()
        return rows | self.rights.stored_rows()

    def _region_cells(self, info: RegionInfo) -> dict[bytes, bytes]:
        return {b"info:region": region_info.to_json(info)} | self.ownership.owner_cells(info)


def strays(rows: Rows) -> tuple[list[bytes], list[tuple[bytes, dict[bytes, bytes]]]]:
    """Return the rows of regions whose table has no row, and all other rows: to inspect a damaged catalogue."""
    found = list(rows)
    tables = {row[2:] for row, _ in found if row.startswith(b"t/")}
    stray = [row for row, _ in found if row.startswith(b"r/") and row[2:].partition(b"\x00")[0] not in tables]
    return stray, [pair for pair in found if pair[0] not in stray]


def _namespace_cells(configuration: Mapping[str, str]) -> dict[bytes, bytes]:
    cells = {b"info:state": b"enabled"}
    if configuration:
        cells[b"info:configuration"] = json.dumps(dict(configuration), sort_keys=True).encode()
    return cells


def _start(info: RegionInfo) -> bytes:
    return info.start
