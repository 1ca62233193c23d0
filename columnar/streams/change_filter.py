"""(pure) The part of a table's changes that one reader wants, and its events.

Invariant I1: whatever the filter, an event has every wanted entry of its record and no other; a record without a wanted
entry makes no event.

Knows nothing of logs and regions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from columnar.errors import NotAllowed
from columnar.model.change_events import EventPacker
from columnar.model.change_stream import StreamSpec
from columnar.model.schema import Table
from columnar.model.trigger_scope import Scope, bytes_of_latin, scope_of
from columnar.regions.log.change_record import ChangeRecord, Kind, Sequence
from columnar.regions.write.images import images_of
from columnar.streams.consolidation import StreamChange

Wanted = Mapping[bytes, frozenset[bytes] | None]


class ChangeFilter:
    def __init__(self, spec: StreamSpec, table: Table) -> None:
        """Raises IllegalArgument, NotAllowed or NoSuchColumnFamily if the spec does not fit the table."""
        if table.is_system:
            raise NotAllowed(
                f"table {table.name} is of the system and keeps no changes for readers; columnar tables shows yours"
            )
        if spec.has_images and not table.logs_images:
            raise NotAllowed(
                f"the change log of table {table.name} has no images of rows, which before, after and where need: "
                f"columnar alter {table.name} --set CHANGE_LOG_IMAGES=true (changes from then on have them)"
            )
        self.spec = spec
        families = [family.bytes_name.decode("latin-1") for family in table.families]
        columns = [column.rstrip(b":").decode("latin-1") for column in spec.columns]
        for column in columns:
            table.family(bytes_of_latin(column.partition(":")[0]))
        self.scope: Scope = scope_of(families, columns, spec.where, (), images=spec.before or spec.after)
        self._touched = self.scope.touched
        self._is_everything = not spec.columns
        self.is_whole = self._is_everything and not self.scope.images  # wants all of each record of its rows
        self._has_every_row = not (spec.start_row or spec.stop_row or spec.parts > 1)
        self._packer = EventPacker()

    def has_row(self, row: bytes) -> bool:
        return self._has_every_row or self.spec.has_row(row)

    def change_of(self, sequence: Sequence, record: ChangeRecord) -> StreamChange | None:
        """Return the wanted part of a record whose row is wanted, or None if the record has no wanted change."""
        if record.only_for is not None:  # stands for no change
            return None
        entries = [
            (int(entry.kind), _column(entry.kind, entry.family, entry.qualifier), entry.timestamp, entry.value)
            for entry in record.entries
            if self._is_everything or self._is_wanted(entry.kind, entry.family, entry.qualifier)
        ]
        if not entries:
            return None
        before = after = None
        if self.scope.images:
            images = images_of(record, self.scope.images)
            if images is not None:
                if not self.scope.matches_row(images.after):
                    return None
                before = self._selected(images.before) if self.spec.before else None
                after = self._selected(images.after) if self.spec.after else None
        return StreamChange(record.row, sequence, record.stamp, entries, before, after, record.more_follows)

    def change_event(self, change: StreamChange) -> bytes:
        row, sequence, stamp, entries, before, after, more = change
        return self._packer.pack_change(row, sequence, stamp, entries, before, after, more=more)

    def _is_wanted(self, kind: int, family: bytes, qualifier: bytes) -> bool:
        wanted = self._touched.get(family, _NOTHING)
        return wanted is None or (bool(wanted) and (kind == Kind.DELETE_FAMILY or qualifier in wanted))

    def _selected(self, image: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
        """Return the part of an image that has the wanted columns: conditions may test others."""
        if self._is_everything:
            return image
        return {column: value for column, value in image.items() if self._is_wanted(Kind.PUT, *_split(column))}

    def row_event(self, row: bytes, sequence: Sequence, cells: Iterable[tuple[bytes, bytes, int]]) -> bytes | None:
        """Return the event of a row of a snapshot, or None if the row is not wanted.

        ``cells``: column, value and timestamp of the visible cells of the wanted columns, and of those that conditions
        test.
        """
        found = list(cells)
        if self.scope.conditions and not self.scope.matches_row({column: value for column, value, _ in found}):
            return None
        shown = [
            (column, timestamp, value)
            for column, value, timestamp in found
            if self._is_everything or self._is_wanted(Kind.PUT, *_split(column))
        ]
        return self._packer.pack_row(row, sequence, shown) if shown else None

    def forget_event(self, start: bytes, stop: bytes) -> bytes:
        return self._packer.pack_forget(start, stop)

    @property
    def read_columns(self) -> list[bytes]:
        """The columns that a snapshot reads; empty: all."""
        if self._is_everything:
            return []
        tested = [
            family + b":" + qualifier for family, columns in self.scope.tested.items() for qualifier in columns or ()
        ]
        wanted = [
            family if columns is None else family + b":" + qualifier
            for family, columns in self._touched.items()
            for qualifier in (columns or (b"",))
        ]
        whole = {one for one in wanted if b":" not in one}
        return [one for one in dict.fromkeys([*wanted, *tested]) if one in whole or one.partition(b":")[0] not in whole]


def _column(kind: int, family: bytes, qualifier: bytes) -> bytes:
    return family if kind == Kind.DELETE_FAMILY else family + b":" + qualifier


def _split(column: bytes) -> tuple[bytes, bytes]:
    family, _, qualifier = column.partition(b":")
    return family, qualifier


_NOTHING: frozenset[bytes] = frozenset()
