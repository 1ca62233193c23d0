"""(pure) Consolidated changes: one change for all changes of a row within a read, for readers that are far behind.

Invariants (``tests/unit/streams/test_consolidation.py``):
    I1. A reader that applies the consolidated changes has the same newest cells as one that applies the changes singly,
        whether it goes by the order of entries or by their timestamps.
    I2. A change that is one of several of an atomic step (``more``) is left as it is, and nothing is consolidated
        across the step.

Within a row an entry goes if a later entry makes it ineffective: a put by a put of its column that is not older, any
entry of a column by a delete of the column or its family up to a timestamp that is not older.  Deletes of single
versions stay.  Images are the first before and the last after; sequence and stamp are the last.

Knows nothing of logs and filters.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from columnar.model.change_events import Image, Place
from columnar.regions.log.change_record import ChangeRecord, Kind, Sequence
from columnar.regions.log.change_record import Entry as LoggedEntry

Entry = tuple[int, bytes, int, bytes]  # kind, column (the family, if it is deleted), timestamp, value
ENTRY_BYTES: Final = 24  # of an entry beside its bytes
FEW_ENTRIES: Final = 16  # of a row; above, entries are made fewer when they have doubled
_NEVER: Final = -(1 << 64)  # before every timestamp


class StreamChange(NamedTuple):
    """A record as a reader wants it."""

    row: bytes
    sequence: Place
    stamp: int
    entries: list[Entry]
    before: Image | None
    after: Image | None
    more: bool


class _RowPuts:
    """The last record of a row that puts each time all cells of the record before, and so alone is the row's change."""

    __slots__ = ("record", "sequence", "size_bytes")

    def __init__(self, sequence: Sequence, record: ChangeRecord, size_bytes: int) -> None:
        self.sequence = sequence
        self.record = record
        self.size_bytes = size_bytes

    def replace_with(self, sequence: Sequence, record: ChangeRecord) -> bool:
        """Hold a later record instead, if it puts each cell anew and not at a lower timestamp."""
        entries, earlier = record.entries, self.record.entries
        if len(entries) != len(earlier):
            return False
        change = 0
        for entry, old in zip(entries, earlier, strict=True):
            kind, family, qualifier, timestamp, value = entry
            _, old_family, old_qualifier, old_timestamp, old_value = old
            if kind != Kind.PUT or qualifier != old_qualifier or family != old_family or timestamp < old_timestamp:
                return False
            change += len(value) - len(old_value)
        self.sequence = sequence
        self.record = record
        self.size_bytes += change
        return True

    def change(self) -> StreamChange:
        record = self.record
        entries = [(int(kind), b"%b:%b" % (f, q), timestamp, value) for kind, f, q, timestamp, value in record.entries]
        return StreamChange(record.row, self.sequence, record.stamp, entries, None, None, more=False)

    def take_change(self) -> StreamChange:
        change = self.change()
        return change._replace(entries=effective(change.entries))


class _RowChanges:
    """The changes of one row as one change: entries are appended, and made fewer when they are few or have doubled.

    So a change costs O(1) on average, however many columns of the row have changed.
    """

    __slots__ = ("_bound", "_change", "_entries", "size_bytes")

    def __init__(self, change: StreamChange) -> None:
        self._change = change
        self._entries = list(change.entries)
        self._bound = _bound_of(self._entries)
        self.size_bytes = size_of(change)

    def add_change(self, later: StreamChange) -> None:
        images = size_of_images(None, later.after) - size_of_images(None, self._change.after)
        self.size_bytes += images + size_of_entries(later.entries)
        self._change = later._replace(before=self._change.before)
        self._entries += later.entries
        if len(self._entries) > self._bound:
            self._entries = effective(self._entries)
            self._bound = _bound_of(self._entries)
            self.size_bytes = size_of(self._change._replace(entries=self._entries))

    def take_change(self) -> StreamChange:
        return self._change._replace(entries=effective(self._entries))


class Consolidation:
    def __init__(self) -> None:
        self._rows: dict[bytes, _RowChanges | _RowPuts] = {}  # in the order of their first changes
        self._ready: list[StreamChange] = []
        self.is_in_step = False  # further changes of an atomic step follow
        self.size_bytes = 0  # of all changes that are held, at most twice as much as is sent

    def add_record(self, sequence: Sequence, record: ChangeRecord) -> bool:
        """Add the next record of the log, all of which is wanted and without images, if it is of the simplest kind.

        Else it is left to ``add_change``, and False is returned: the simplest kind puts cells, first or in place of
        those that its row's last record has put.
        """
        if record.more_follows or self.is_in_step or record.only_for is not None or not record.entries:
            return False
        held = self._rows.get(record.row)
        if held is None:
            size = _size_of_puts(record.row, record.entries)
            if size:
                self._rows[record.row] = _RowPuts(sequence, record, size)
                self.size_bytes += size
            return bool(size)
        if not isinstance(held, _RowPuts):
            return False
        before = held.size_bytes
        if not held.replace_with(sequence, record):
            return False
        self.size_bytes += held.size_bytes - before
        return True

    def add_change(self, change: StreamChange) -> None:
        """Add the next change of the log."""
        if change.more or self.is_in_step:
            self._flush()
            self._ready.append(change)
            self.is_in_step = change.more
            self.size_bytes += size_of(change)
            return
        held = self._rows.get(change.row)
        if held is None:
            held = self._rows[change.row] = _RowChanges(change)
            self.size_bytes += held.size_bytes
            return
        before = held.size_bytes
        if isinstance(held, _RowPuts):
            held = self._rows[change.row] = _RowChanges(held.change())
        held.add_change(change)
        self.size_bytes += held.size_bytes - before

    def take_changes(self) -> list[StreamChange]:
        """Return all changes that are held, and hold them no longer."""
        self._flush()
        found, self._ready = self._ready, []
        self.size_bytes = 0
        return found

    def _flush(self) -> None:
        self._ready += [held.take_change() for held in self._rows.values()]
        self._rows = {}


def _bound_of(entries: list[Entry]) -> int:
    return 2 * len(entries) if len(entries) > FEW_ENTRIES else 0


def size_of(change: StreamChange) -> int:
    return len(change.row) + size_of_entries(change.entries) + size_of_images(change.before, change.after)


def size_of_entries(entries: list[Entry]) -> int:
    return sum([ENTRY_BYTES + len(column) + len(value) for _, column, _, value in entries])


def _size_of_puts(row: bytes, entries: tuple[LoggedEntry, ...]) -> int:
    """Return the size of a record as a change (``size_of``); 0 if an entry is no put."""
    size = len(row)
    for kind, family, qualifier, _, value in entries:
        if kind != Kind.PUT:
            return 0
        size += ENTRY_BYTES + len(family) + 1 + len(qualifier) + len(value)
    return size


def size_of_images(before: Image | None, after: Image | None) -> int:
    size = 0
    for image in (before, after):
        if image:
            size += sum([len(column) + len(value) for column, value in image.items()])
    return size


def effective(entries: list[Entry]) -> list[Entry]:
    """Return the entries of one row without those that a later one makes ineffective.  O(entries)."""
    if len(entries) < 2:
        return entries
    put: dict[bytes, int] = {}  # the highest timestamp of the later puts, by column
    deleted: dict[bytes, int] = {}  # of the later deletes, by column or family
    left: list[Entry] = []
    for entry in reversed(entries):
        kind, column, timestamp, _ = entry
        known = deleted.get(column, _NEVER)
        if kind != Kind.DELETE_FAMILY:
            known = max(known, deleted.get(column.partition(b":")[0], _NEVER))
        if kind == Kind.PUT:
            known = max(known, put.get(column, _NEVER))
            put[column] = max(timestamp, put.get(column, _NEVER))
        elif kind != Kind.DELETE_VERSION:
            deleted[column] = max(timestamp, deleted.get(column, _NEVER))
        if timestamp > known:
            left.append(entry)
    left.reverse()
    return left
