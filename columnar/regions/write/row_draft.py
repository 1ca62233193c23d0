"""The next state of one row: operations go in, in their order; puts and deletes for one batch come out.

A draft reads the columns that its operations touch and keeps their next state, so each
operation sees the effect of the earlier ones.  No key is written before ``emit``.

A column's state is its newest version, which is in the family's own space, and the older
versions in the space ``versions``.  Invariants:
    I1. The newest version has the highest timestamp of all versions of the column; without a newest version there are
        no older versions.
    I2. A put at a timestamp below the newest goes to the older versions, or is lost if the family
        keeps one version (design D3b).
    I3. With delete markers, a marker hides puts at timestamps below its own (design D5).
    I4. A put of a cell whose own time to live is over already has no effect: the cell would never be
        seen, and must not hide or displace visible cells.

    I5. Appends to one cell make one new version of it: the appended bytes are collected and packed once, so the cost
        of a mutation is its size and the size of its cells, however often it names a cell.
    I6. The appended cells of a draft have at most ``limits.APPENDED_BYTES``.

Timestamps follow HBase's HRegion: if the present cell lies in the future, increments and appends write 1 ms later, and
a checked put takes its timestamp (observed rows 21, 22).
"""

from __future__ import annotations

from typing import Final

from columnar.errors import CellTooBig, NotALong, RequestTooBig, abbreviate
from columnar.limits import APPENDED_BYTES, CELL_BYTES
from columnar.model.mutation import Append, Condition, Delete, Increment, Operation, Put
from columnar.regions.log.change_record import Entry, Kind
from columnar.regions.read.family_view import Views
from columnar.regions.write import contributions
from columnar.regions.write.column_draft import ColumnDraft, Growth
from columnar.regions.write.row_columns import RowColumns
from columnar.storage.api import Batch, Store
from columnar.storage.layout import (
    TIMESTAMP_MAX,
    pack_cell,
    pack_marker,
    timestamp_of,
)

_LONG_MIN: Final = -(1 << 63)
_U64: Final = 1 << 64


class RowDraft:
    """The next state of one row; see the module.

    ``markers`` says whether deletes leave markers, ``logged`` whether followers want ``entries``, the changes for the
    log; ``sequence`` goes into each cell.  ``all_older`` says that no cell of the row is newer than ``now_ms`` and no
    marker must stay: then a family that is deleted as a whole need not be read.  The families in ``known`` are read in
    any case, as a follower wants their previous cells.
    """

    def __init__(
        self,
        store: Store,
        views: Views,
        row: bytes,
        *,
        now_ms: int,
        sequence: int,
        markers: bool,
        logged: bool,
        all_older: bool = False,
        known: frozenset[bytes] = frozenset(),
    ) -> None:
        self._store = store
        self.table = views.table
        self._now = now_ms
        self._sequence = sequence
        self._markers = markers
        self._logged = logged
        self._all_older = all_older
        self._known = known
        self._growing: list[tuple[bytes, bytes]] = []
        self._appended_bytes = 0
        self.row = row
        self.timestamp = now_ms  # the timestamp of an operation that has none
        self.highest = 0  # the highest timestamp put
        self.columns = RowColumns(store, views, row)
        self.entries: list[Entry] = []
        # (column, new value, timestamp): in ``counters`` of each increment, in ``appended`` of each cell with appends.
        self.counters: list[tuple[bytes, bytes, int]] = []
        self.appended: list[tuple[bytes, bytes, int]] = []
        self.guarded: list[int] = []  # numbers of families in which a member was withdrawn

    def check(self, conditions: tuple[Condition, ...]) -> int | None:
        """Return the index of the first condition that fails, or None.

        If a checked cell lies in the future, the mutation takes its timestamp (observed row 22).
        """
        for index, condition in enumerate(conditions):
            column = self.columns.column(condition.family, condition.qualifier)
            seen = self.seen(column)
            if not condition.matches_cell(seen[0] if seen is not None else None):
                return index
            if column.newest is not None:
                self.timestamp = max(self.timestamp, timestamp_of(column.newest))
        return None

    def apply(self, operation: Operation) -> None:
        if isinstance(operation, Put):
            self._put(operation)
        elif isinstance(operation, Delete):
            if operation.exact:
                self._delete_versions(operation)
            elif operation.qualifier is None:
                self._delete_family(operation)
            else:
                self._delete_column(operation.family, operation.qualifier, operation.timestamp)
        elif isinstance(operation, Increment):
            self._increment(operation)
        elif isinstance(operation, Append):
            self._append(operation)
        else:
            contributions.contribute(self, operation)

    def _put(self, operation: Put) -> None:
        timestamp = self.timestamp if operation.timestamp is None else operation.timestamp
        ttl = operation.ttl_ms
        if ttl is not None and timestamp + ttl <= self._now:
            return  # I4
        self.highest = max(self.highest, timestamp)
        raw = pack_cell(timestamp, self._sequence, operation.value, operation.ttl_ms)
        column = self.columns.column(operation.family, operation.qualifier)
        if column.growth is not None:
            self._replaced(column, operation.family, operation.qualifier, timestamp)
        column.put(timestamp, raw, self._now)
        if self._logged:
            self.entries.append(Entry(Kind.PUT, operation.family, operation.qualifier, timestamp, operation.value))

    def _delete_column(self, family: bytes, qualifier: bytes, timestamp: int | None) -> None:
        at = self.timestamp if timestamp is None else timestamp
        column = self.columns.column(family, qualifier)
        if column.growth is not None:
            self._replaced(column, family, qualifier, at)
        column.delete(at, self._marker(at))
        if self._logged:
            self.entries.append(Entry(Kind.DELETE_COLUMN, family, qualifier, at, b""))

    def _marker(self, timestamp: int) -> bytes | None:
        return pack_marker(timestamp, self._sequence, self._now) if self._markers else None

    def _delete_family(self, operation: Delete) -> None:
        """Delete every column of the family, in the store and in this draft.

        O(columns of the family in the row), at most ROW_OPERATIONS; O(1) if the columns need not be known.
        """
        at = self.timestamp if operation.timestamp is None else operation.timestamp
        family = operation.family
        self.columns.read_family(family, self._all_older and at >= self._now and family not in self._known)
        marker = self._marker(at)
        for (name, qualifier), column in self.columns.by_name.items():
            if name == family and column.newest is not None:
                if column.growth is not None:
                    self._replaced(column, family, qualifier, at)
                column.delete(at, marker)
        if self._logged:
            self.entries.append(Entry(Kind.DELETE_FAMILY, family, b"", at, b""))

    def seen(self, column: ColumnDraft) -> tuple[bytes, int] | None:
        """Return value and timestamp of the version that a reader sees after the mutation, or None."""
        return column.seen(self._store, self._now)

    def seen_before(self, column: ColumnDraft) -> tuple[bytes, int] | None:
        return column.seen_before(self._store, self._now)

    def _delete_versions(self, operation: Delete) -> None:
        """Delete exactly one version, of a column or of every column of a family.

        Logs an entry for each such column.
        """
        family, at = operation.family, operation.timestamp
        if operation.qualifier is not None:
            touched = {operation.qualifier: self.columns.column(family, operation.qualifier)}
        else:
            self.columns.read_family(family)
            touched = {
                qualifier: column for (name, qualifier), column in self.columns.by_name.items() if name == family
            }
            at = self.timestamp if at is None else at
        for qualifier, column in touched.items():
            self._settle(column, family, qualifier)
            gone = column.delete_version(at, self._store, self._now)
            if gone is None:
                continue
            if column.newest is None:
                column.replace_newest(self._marker(gone))
            if self._logged:
                self.entries.append(Entry(Kind.DELETE_VERSION, family, qualifier, gone, b""))

    def _current(self, column: ColumnDraft) -> tuple[bytes | None, int]:
        """Return the value that a read-modify-write sees, and the timestamp of the cell that it writes."""
        if column.newest is None:
            return None, self.timestamp
        at = timestamp_of(column.newest)
        seen = self.seen(column)
        value = seen[0] if seen is not None else None
        return value, min(at + 1, TIMESTAMP_MAX) if at > self.timestamp else self.timestamp

    def _increment(self, operation: Increment) -> None:
        column = self.columns.column(operation.family, operation.qualifier)
        if column.growth is not None:
            self._settle(column, operation.family, operation.qualifier)
        value, timestamp = self._current(column)
        if value is not None and len(value) != 8:
            raise NotALong(len(value))
        old = int.from_bytes(value, "big", signed=True) if value is not None else 0
        wrapped = (old + operation.amount - _LONG_MIN) % _U64 + _LONG_MIN  # overflows as a Java long does
        fresh = wrapped.to_bytes(8, "big", signed=True)
        self._put_newest(column, operation.family, operation.qualifier, fresh, timestamp)
        self.counters.append((column.view.column_prefix + operation.qualifier, fresh, timestamp))

    def _append(self, operation: Append) -> None:
        family, qualifier = operation.family, operation.qualifier
        column = self.columns.column(family, qualifier)
        growth = column.growth
        if growth is not None:
            value_bytes = growth.begun_value()
            self._check_appended(qualifier, len(value_bytes) + len(operation.value), len(operation.value))
            value_bytes += operation.value
            return
        value, timestamp = self._current(column)
        size = len(operation.value) + (len(value) if value is not None else 0)
        self._check_appended(qualifier, size, size)
        grown = (value or b"") + operation.value
        raw = self._put_newest(column, family, qualifier, grown, timestamp)
        column.begin_growth(Growth(raw, len(self.entries) - 1, len(self.appended)))
        self._growing.append((family, qualifier))
        self.appended.append((column.view.column_prefix + qualifier, grown, timestamp))

    def _check_appended(self, qualifier: bytes, size_bytes: int, added_bytes: int) -> None:
        """Raise CellTooBig or RequestTooBig if the appended cells are too big; nothing was stored then."""
        if size_bytes > CELL_BYTES:
            raise CellTooBig(f"the appended value of {abbreviate(qualifier)}", size_bytes, CELL_BYTES)
        self._appended_bytes += added_bytes
        if self._appended_bytes > APPENDED_BYTES:
            raise RequestTooBig(
                f"the cells that are appended to have over {APPENDED_BYTES} bytes; nothing was stored, append to fewer "
                "columns in one call"
            )

    def _replaced(self, column: ColumnDraft, family: bytes, qualifier: bytes, timestamp: int) -> None:
        """End the appends to a cell that an operation at ``timestamp`` replaces; no effect if the cell is newer."""
        if column.newest is not None and timestamp >= timestamp_of(column.newest):
            self._settle(column, family, qualifier)

    def _settle(self, column: ColumnDraft, family: bytes, qualifier: bytes) -> None:
        """Pack the bytes that were appended to the column (I5)."""
        growth = column.end_growth()
        if growth is None or growth.value is None:
            return
        assert column.newest is growth.raw, "settled before anything takes its place"
        value, timestamp = bytes(growth.value), timestamp_of(growth.raw)
        column.replace_newest(pack_cell(timestamp, self._sequence, value))
        name = self.appended[growth.result][0]
        self.appended[growth.result] = (name, value, timestamp)
        if self._logged:
            self.entries[growth.entry] = Entry(Kind.PUT, family, qualifier, timestamp, value)

    def _put_newest(self, column: ColumnDraft, family: bytes, qualifier: bytes, value: bytes, timestamp: int) -> bytes:
        """Put a newest version; returns the packed cell."""
        self.highest = max(self.highest, timestamp)
        raw = pack_cell(timestamp, self._sequence, value)
        column.put(timestamp, raw, self._now)
        if self._logged:
            self.entries.append(Entry(Kind.PUT, family, qualifier, timestamp, value))
        return raw

    # --- cells that an operation of several cells reads and writes (``contributions``) -----------------

    @property
    def now_ms(self) -> int:
        return self._now

    def value_of(self, family: bytes, qualifier: bytes) -> bytes | None:
        """Return the value that a reader sees after the operations so far."""
        column = self.columns.column(family, qualifier)
        if column.growth is not None:
            self._settle(column, family, qualifier)
        return self._current(column)[0]

    def write_cell(self, family: bytes, qualifier: bytes, value: bytes) -> None:
        """Write the newest version, even if the present one lies in the future."""
        column = self.columns.column(family, qualifier)
        if column.growth is not None:
            self._settle(column, family, qualifier)
        self._put_newest(column, family, qualifier, value, self._current(column)[1])

    def remove_cell(self, family: bytes, qualifier: bytes) -> None:
        """Remove the cell with all versions, even if one lies in the future."""
        column = self.columns.column(family, qualifier)
        if column.growth is not None:
            self._settle(column, family, qualifier)
        if column.newest is None:
            return
        at = max(timestamp_of(column.newest), self.timestamp)
        column.delete(at, self._marker(at))
        if self._logged:
            self.entries.append(Entry(Kind.DELETE_COLUMN, family, qualifier, at, b""))

    def before(self, families: frozenset[bytes]) -> tuple[Entry, ...]:
        """Return the previous cells of the touched columns of ``families``."""
        found = []
        for (family, qualifier), column in self.columns.by_name.items():
            if family not in families or column.original is None:
                continue
            seen = self.seen_before(column)
            if seen is not None:
                found.append(Entry(Kind.PUT, family, qualifier, seen[1], seen[0]))
        return tuple(found)

    def emit(self, batch: Batch) -> None:
        for family, qualifier in self._growing:
            self._settle(self.columns.by_name[family, qualifier], family, qualifier)
        if self.columns.emptied:
            self.columns.emit_ranges(batch)
        for column in self.columns.by_name.values():
            column.emit(batch, self._store)

    @property
    def results(self) -> tuple[tuple[bytes, bytes, int], ...]:
        """Results of the increments, in their order; then of the appended cells, in the order of their first append."""
        return (*self.counters, *self.appended)
