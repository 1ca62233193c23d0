"""A model of a row by HBase's rules: a plain dictionary, written independently of the store's code.

The rules (HBase's reference 2.6, the design's sections 3 and 5):
    * a column holds versions by timestamp; a put at a taken timestamp replaces that version;
    * a family keeps its VERSIONS newest; with VERSIONS 1 an older put loses at once, unless the
      newer cell has expired;
    * a delete of a column or a family removes all versions at or below its timestamp; on a table
      with DELETE_MARKERS it also hides later puts below its timestamp in the columns it removed;
    * an exact delete removes one version that a reader sees and uncovers none that the family had dropped;
    * increments, appends and checked mutations go past a cell that lies in the future;
    * a family's time to live hides older cells, except its MIN_VERSIONS newest; a cell's own time to
      live may be shorter and always hides the cell;
    * a dropped family loses its cells; a family whose VERSIONS become 1 keeps the newest;
    * a cell put after the end of its own life changes nothing, and a mutation of such cells alone is no change;
    * the operations of a mutation apply in the order given, all or none.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from columnar.model.mutation import Append, Delete, Increment, Put, RowMutation
from columnar.model.read import ReadSpec
from columnar.model.schema import Table

Column = tuple[bytes, bytes, bytes]  # row, family, qualifier
Version = tuple[bytes, int | None]  # value, the cell's own time to live


class Refused(Exception):
    """The mutation is a caller's mistake, and nothing was changed."""


@dataclass
class RowModel:
    table: Table
    cells: dict[Column, dict[int, Version]] = field(default_factory=dict)
    markers: dict[Column, int] = field(default_factory=dict)
    log: list[bytes] = field(default_factory=list)  # rows of the changes, in order
    stamps: dict[bytes, int] = field(default_factory=dict)  # of each row, the time of its last mutation

    def clone(self) -> RowModel:
        return RowModel(self.table, copy.deepcopy(self.cells), dict(self.markers), list(self.log), dict(self.stamps))

    # --- reading -----------------------------------------------------------------------------------

    def _alive(self, family: bytes, timestamp: int, version: Version, now: int, rank: int = 0) -> bool:
        lives = [ttl for ttl in (version[1],) if ttl is not None]
        seconds = self.table.family(family).ttl_s
        if seconds is not None and rank >= self.table.family(family).min_versions:
            lives.append(seconds * 1000)
        return not lives or timestamp + min(lives) > now

    def versions(self, row: bytes, family: bytes, qualifier: bytes, now: int) -> list[tuple[int, bytes]]:
        """Return (timestamp, value) of the versions that the family keeps, newest first."""
        held = self.cells.get((row, family, qualifier), {})
        alive: list[tuple[int, bytes]] = []
        for at, version in sorted(held.items(), reverse=True):
            if self._alive(family, at, version, now, len(alive)):
                alive.append((at, version[0]))
        return alive[: self.table.family(family).max_versions]

    def alter(self, table: Table) -> None:
        numbers = {family.number for family in self.table.families} & {family.number for family in table.families}
        kept = {family.bytes_name: family for family in table.families if family.number in numbers}
        self.cells = {column: held for column, held in self.cells.items() if column[1] in kept}
        for column, held in self.cells.items():
            if kept[column[1]].max_versions == 1:
                self.cells[column] = {at: version for at, version in held.items() if at == max(held)}
        self.table = table

    def row(self, row: bytes, now: int, low: int = 0, high: int = 1 << 63) -> list[tuple[bytes, bytes, int]]:
        """Return (column, value, timestamp) of the newest version in the range, columns ascending."""
        found = []
        for r, family, qualifier in sorted(self.cells):
            if r == row:
                seen = [v for v in self.versions(row, family, qualifier, now) if low <= v[0] < high]
                found += [(family + b":" + qualifier, value, at) for at, value in seen[:1]]
        return found

    def versions_in(self, row: bytes, now: int, spec: ReadSpec) -> list[tuple[bytes, bytes, int]]:
        """Return (column, value, timestamp) of the newest versions in the family's range, columns ascending."""
        found = []
        for r, family, qualifier in sorted(self.cells):
            low, high = dict(spec.family_ranges).get(family, spec.time_range)
            seen = [v for v in self.versions(row, family, qualifier, now) if r == row and low <= v[0] < high]
            found += [(family + b":" + qualifier, value, at) for at, value in seen[: spec.max_versions]]
        return found

    def rows(self) -> list[bytes]:
        return sorted({row for row, _, _ in self.cells})

    # --- writing -----------------------------------------------------------------------------------

    def apply(self, mutation: RowMutation, now: int, *, logged: bool) -> tuple[int | None, list[bytes]]:
        """Apply; return the index of the failed condition, and new values of increments, then of appended cells."""
        stamp = now
        for index, condition in enumerate(mutation.conditions):
            column = (mutation.row, condition.family, condition.qualifier)
            seen = self.versions(*column, now)
            if not condition.matches_cell(seen[0][1] if seen else None):
                return index, []
            stamp = max(stamp, self._newest(column) or 0)
        fresh, counters, told = self.clone(), [], False
        appended: list[bytes] = []
        growing: dict[Column, int] = {}  # cells that appends have made and nothing has replaced: where in ``appended``
        for operation in mutation.operations:
            if isinstance(operation, Put):
                at = stamp if operation.timestamp is None else operation.timestamp
                if operation.ttl_ms is not None and at + operation.ttl_ms <= now:
                    continue
                column = (mutation.row, operation.family, operation.qualifier)
                fresh._replaced(growing, operation, at)
                fresh._put(column, at, (operation.value, operation.ttl_ms), now)
            elif isinstance(operation, Delete) and operation.exact:
                fresh._replaced(growing, operation, None)
                told |= fresh._delete_exactly(mutation.row, operation, stamp, now)
                continue
            elif isinstance(operation, Delete):
                at = stamp if operation.timestamp is None else operation.timestamp
                fresh._replaced(growing, operation, at)
                fresh._delete(mutation.row, operation, at)
            elif isinstance(operation, Increment):
                fresh._replaced(growing, operation, None)
                counters.append(fresh._modify(mutation.row, operation, stamp, now))
            else:
                column = (mutation.row, operation.family, operation.qualifier)
                place = growing.get(column)
                if place is None:
                    growing[column] = len(appended)
                    appended.append(fresh._modify(mutation.row, operation, stamp, now))
                else:  # one new version, however many appends make it
                    newest = fresh._newest(column)
                    appended[place] += operation.value
                    fresh.cells[column][newest] = (appended[place], None)
            told = True
        if logged and told:
            fresh.log.append(mutation.row)
        self.cells, self.markers, self.log = fresh.cells, fresh.markers, fresh.log
        self.stamps[mutation.row] = now
        return None, counters + appended

    def apply_group(
        self, mutations: list[RowMutation], now: int, *, logged: bool
    ) -> tuple[int | None, int | None, list[list[bytes]]]:
        """Apply mutations of different rows, all or none; return the row and condition that failed, and the values."""
        fresh = self.clone()
        told: list[list[bytes]] = []
        for number, mutation in enumerate(mutations):
            failed, _ = fresh.clone().apply(RowMutation(mutation.row, (), mutation.conditions), now, logged=logged)
            if failed is not None:
                return number, failed, []
        for mutation in mutations:
            _, values = fresh.apply(mutation, now, logged=logged) if mutation.operations else (None, [])
            told.append(values)
        self.cells, self.markers, self.log, self.stamps = fresh.cells, fresh.markers, fresh.log, fresh.stamps
        return None, None, told

    def _replaced(self, growing: dict[Column, int], operation: Any, at: int | None) -> None:
        """Forget appended cells that ``operation`` replaces (with ``at`` None always), so that appends begin anew."""
        for column in list(growing):
            named = operation.family == column[1] and operation.qualifier in (None, column[2])
            newest = self._newest(column)
            if named and (at is None or newest is None or at >= newest):
                del growing[column]

    def _newest(self, column: Column) -> int | None:
        stamps = [*self.cells.get(column, {}), *([self.markers[column]] if column in self.markers else [])]
        return max(stamps, default=None)

    def _put(self, column: Column, at: int, version: Version, now: int) -> None:
        if self.markers.get(column, -1) > at:
            return
        held = self.cells.setdefault(column, {})
        if self.table.family(column[1]).max_versions == 1:
            for other, existing in list(held.items()):
                if other > at and self._alive(column[1], other, existing, now):
                    return
            held.clear()
            self.markers.pop(column, None)
        held[at] = version

    def _delete(self, row: bytes, operation: Delete, at: int) -> None:
        for column in list(self.cells.keys() | self.markers.keys()):
            if column[:2] == (row, operation.family) and operation.qualifier in (None, column[2]):
                self._delete_column(column, at)
        if operation.qualifier is not None:
            self._delete_column((row, operation.family, operation.qualifier), at)

    def _delete_exactly(self, row: bytes, operation: Delete, stamp: int, now: int) -> bool:
        """Return whether the version existed: otherwise nothing has changed and no change is recorded."""
        found = False
        at = stamp if operation.qualifier is None and operation.timestamp is None else operation.timestamp
        for column in [c for c in self.cells if c[:2] == (row, operation.family)]:
            seen = self.versions(*column, now)
            gone = seen[0][0] if at is None and seen else at
            if operation.qualifier in (None, column[2]) and gone in dict(seen):
                assert gone is not None
                found = True
                self.cells[column] = {t: v for t, v in self.cells[column].items() if t in dict(seen) and t != gone}
                if not self.cells[column]:
                    del self.cells[column]
                    if self.table.delete_markers_ms is not None:
                        self.markers[column] = max(gone, self.markers.get(column, gone))
        return found

    def _delete_column(self, column: Column, at: int) -> None:
        held = self.cells.get(column, {})
        left = {other: version for other, version in held.items() if other > at}
        self.cells[column] = left
        if not left:
            del self.cells[column]
            if self.table.delete_markers_ms is not None:
                self.markers[column] = max(at, self.markers.get(column, at))

    def _modify(self, row: bytes, operation: Increment | Append, stamp: int, now: int) -> bytes:
        column = (row, operation.family, operation.qualifier)
        newest = self._newest(column)
        at = newest + 1 if newest is not None and newest > stamp else stamp
        seen = self.versions(*column, now)
        held = seen[0][1] if seen else None
        if isinstance(operation, Increment):
            if held is not None and len(held) != 8:
                raise Refused
            total = (int.from_bytes(held or b"", "big", signed=True) + operation.amount + (1 << 63)) % (1 << 64)
            value = (total - (1 << 63)).to_bytes(8, "big", signed=True)
        else:
            value = (held or b"") + operation.value
        self._put(column, at, (value, None), now)
        return value
