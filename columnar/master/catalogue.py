r"""The catalogue: the table ``columnar:meta``, with a row for each table and a row for each region (design D8).

    row ``t/NAME``            info:schema = JSON of the table, info:state = enabled | disabled
    row ``r/NAME\0START\0ID``  info:region = JSON of the region
    row ``d/ENCODED``          info:region = a region that was dropped, split or merged, or is not yet a table's: its
                               folder is removed at the next start
    row ``ns/NAME``           info:state = enabled: a namespace; ``default`` and the system's namespace have no row
    row ``n``                  info:next = the next region id, eight bytes
    row ``e``                  info:epoch = the epoch of this start's owner of all regions, eight bytes

A change of several rows (a table with its regions) is an atomic batch of the catalogue's only region (design D12), so
no reader ever sees half a table.

Pure except for a function that it is given, which applies mutations and returns when they are on disk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from columnar.master.replacements import replaced
from columnar.model import region_info, schema
from columnar.model.mutation import Delete, Operation, Put, RowMutation
from columnar.model.region_info import RegionInfo
from columnar.model.schema import DEFAULT_NAMESPACE, SYSTEM_NAMESPACE, Family, Table, make_table

META_TABLE: Final = "columnar:meta"
META_REGION_ID: Final = 1  # the only region that is in no catalogue
META_SCHEMA: Final = make_table(META_TABLE, [Family("info")])
_INFO: Final = b"info"
_FIRST_REGION_ID: Final = 2
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
        self.epoch = 0  # of the owner; 0: no owner has been named yet
        self._next_region_id = _FIRST_REGION_ID
        self._load(rows)

    def _load(self, rows: Rows) -> None:
        regions: list[RegionInfo] = []
        for row, cells in rows:
            if row.startswith(b"t/"):
                table = schema.from_json(cells[b"info:schema"])
                self.tables[table.name] = TableEntry(table, cells[b"info:state"] == b"enabled")
            elif row.startswith(b"r/"):
                regions.append(region_info.from_json(cells[b"info:region"]))
            elif row.startswith(b"d/"):
                self.dropped.append(region_info.from_json(cells[b"info:region"]))
            elif row.startswith(b"ns/"):
                self.namespaces.add(row[3:].decode())
            elif row == b"e":
                self.epoch = int.from_bytes(cells[b"info:epoch"], "big")
            elif row == b"n":
                self._next_region_id = int.from_bytes(cells[b"info:next"], "big")
        for info in sorted(regions, key=lambda info: info.start):
            self.tables[info.table].regions.append(info)

    async def raise_epoch(self) -> int:
        """Begin an epoch that no earlier owner had; it is on disk when this returns.

        Called once per start, before any region opens.
        """
        await self._write([_put(b"e", epoch=_u64(self.epoch + 1))])
        self.epoch += 1
        return self.epoch

    async def alter(self, table: Table) -> TableEntry:
        """Give an existing table this schema."""
        await self._write([_put(_table_row(table.name), schema=schema.to_json(table))])
        entry = self.tables[table.name]
        entry.schema = table
        return entry

    async def create_namespace(self, name: str) -> None:
        await self._write([_put(_namespace_row(name), state=b"enabled")])
        self.namespaces.add(name)

    async def drop_namespace(self, name: str) -> None:
        await self._write([_erase(_namespace_row(name))])
        self.namespaces.discard(name)

    async def set_enabled(self, name: str, enabled: bool) -> None:
        await self._write([_put(_table_row(name), state=b"enabled" if enabled else b"disabled")])
        self.tables[name].enabled = enabled

    async def drop(self, name: str) -> list[RegionInfo]:
        """Forget the table; its regions are remembered as dropped until ``forget_dropped``."""
        regions = self.tables[name].regions
        mutations = [_erase(_table_row(name)), *(_erase(_region_row(info)) for info in regions)]
        mutations += [_put(_dropped_row(info), region=region_info.to_json(info)) for info in regions]
        await self._write(mutations)
        del self.tables[name]
        self.dropped += regions
        return regions

    def next_ids(self, count: int) -> list[int]:
        """Ids that no region has had; on disk with the next write that names a region."""
        first = self._next_region_id
        self._next_region_id += count
        return list(range(first, first + count))

    def _next_id(self) -> RowMutation:
        return _put(b"n", next=_u64(self._next_region_id))

    async def replace(self, gone: list[RegionInfo], fresh: list[RegionInfo]) -> None:
        """Replace the regions ``gone`` by ``fresh`` in one write; the old regions are remembered as dropped."""
        entry = self.tables[gone[0].table]
        mutations = [_erase(_region_row(info)) for info in gone]
        mutations += [_put(_dropped_row(info), region=region_info.to_json(info)) for info in gone]
        mutations += [_put(_region_row(info), region=region_info.to_json(info)) for info in fresh]
        mutations += [_erase(_dropped_row(info)) for info in fresh]
        await self._write(mutations)
        entry.regions = replaced(entry.regions, gone, fresh)
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
        mutations = [_put(_dropped_row(info), region=region_info.to_json(info)) for info in regions]
        await self._write([*mutations, self._next_id()])

    async def adopt(self, table: Table, regions: list[RegionInfo]) -> list[RegionInfo]:
        """Give the table this schema and these reserved regions; its old regions are dropped and returned."""
        held = self.tables.get(table.name)
        old = held.regions if held is not None else []
        enabled = held.enabled if held is not None else True
        state = b"enabled" if enabled else b"disabled"
        mutations = [_put(_table_row(table.name), schema=schema.to_json(table), state=state)]
        mutations += [_put(_region_row(info), region=region_info.to_json(info)) for info in regions]
        mutations += [_erase(_dropped_row(info)) for info in regions]
        mutations += [_erase(_region_row(info)) for info in old]
        mutations += [_put(_dropped_row(info), region=region_info.to_json(info)) for info in old]
        await self._write(mutations)
        self.tables[table.name] = TableEntry(table, enabled, regions)
        self.dropped += old
        return old

    async def exchange(self, table: str, gone: list[RegionInfo], come: list[RegionInfo]) -> None:
        """Replace regions by reserved ones, without remembering the old regions as dropped: for repairs."""
        entry = self.tables[table]
        mutations = [_erase(_region_row(info)) for info in gone]
        mutations += [_put(_region_row(info), region=region_info.to_json(info)) for info in come]
        mutations += [_erase(_dropped_row(info)) for info in come]
        await self._write(mutations)
        entry.regions = sorted([info for info in entry.regions if info not in gone] + come, key=lambda info: info.start)

    async def forget_dropped(self, regions: list[RegionInfo]) -> None:
        if regions:
            await self._write([_erase(_dropped_row(info)) for info in regions])
            self.dropped = [info for info in self.dropped if info not in regions]

    def repairs(self, found: Rows) -> list[RowMutation]:
        """The mutations that restore this catalogue's rows on disk after a write of unknown outcome.

        ``found``: the rows on disk.  The result is never empty.  Regions that the catalogue does not know become
        dropped regions: they may have folders.  A dropped region stays dropped, unless it serves: folders are
        announced before they are made.
        """
        held, wanted = dict(found), self._rows()
        serving = {_dropped_row(info) for entry in self.tables.values() for info in entry.regions}
        changes = {
            row: RowMutation(row, tuple(_puts(cells))) for row, cells in wanted.items() if held.get(row) != cells
        }
        for row, cells in held.items():
            if row in wanted or not row.startswith((b"t/", b"r/", b"d/", b"ns/")):
                continue
            if not row.startswith(b"d/") or row in serving:
                changes[row] = _erase(row)
            if row.startswith(b"r/"):
                info = region_info.from_json(cells[b"info:region"])
                changes[_dropped_row(info)] = _put(_dropped_row(info), region=region_info.to_json(info))
        return [*changes.values(), self._next_id()]

    def _rows(self) -> dict[bytes, dict[bytes, bytes]]:
        """The rows that should be on disk, except for the next region id."""
        rows = {}
        for name, entry in self.tables.items():
            state = b"enabled" if entry.enabled else b"disabled"
            rows[_table_row(name)] = {b"info:schema": schema.to_json(entry.schema), b"info:state": state}
            rows |= {_region_row(info): {b"info:region": region_info.to_json(info)} for info in entry.regions}
        rows |= {_dropped_row(info): {b"info:region": region_info.to_json(info)} for info in self.dropped}
        if self.epoch:
            rows[b"e"] = {b"info:epoch": _u64(self.epoch)}
        rows |= {_namespace_row(name): {b"info:state": b"enabled"} for name in self.namespaces - BUILT_IN_NAMESPACES}
        return rows


def strays(rows: Rows) -> tuple[list[bytes], list[tuple[bytes, dict[bytes, bytes]]]]:
    """(rows of regions whose table has no row; all other rows), for the inspection of a damaged catalogue."""
    held = list(rows)
    tables = {row[2:] for row, _ in held if row.startswith(b"t/")}
    stray = [row for row, _ in held if row.startswith(b"r/") and row[2:].partition(b"\x00")[0] not in tables]
    return stray, [pair for pair in held if pair[0] not in stray]


def _table_row(name: str) -> bytes:
    return b"t/" + name.encode()


def _namespace_row(name: str) -> bytes:
    return b"ns/" + name.encode()


def _region_row(info: RegionInfo) -> bytes:
    return b"r/%s\x00%s\x00%d" % (info.table.encode(), info.start, info.region_id)


def _dropped_row(info: RegionInfo) -> bytes:
    return b"d/" + info.encoded.encode()


def _u64(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _put(row: bytes, **columns: bytes) -> RowMutation:
    operations: tuple[Operation, ...] = tuple(Put(_INFO, name.encode(), value) for name, value in columns.items())
    return RowMutation(row, operations)


def _puts(cells: Mapping[bytes, bytes]) -> list[Put]:
    return [Put(_INFO, column.removeprefix(b"info:"), value) for column, value in cells.items()]


def _erase(row: bytes) -> RowMutation:
    return RowMutation(row, (Delete(_INFO, None),))
