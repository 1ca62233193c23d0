"""The columns of one row that a draft reads, each once, in their next state (``column_draft``).

Owned by the loop; no key is written before ``RowDraft.emit``.
"""

from __future__ import annotations

from typing import Final

from columnar.errors import RequestTooBig, abbreviate
from columnar.limits import ROW_OPERATIONS
from columnar.model.mutation import Append, Contribute, Operation
from columnar.regions.log.change_record import Images
from columnar.regions.read.family_view import FamilyView, Views
from columnar.regions.write.column_draft import VERSIONS_SPACE, ColumnDraft
from columnar.storage.api import Batch, Store
from columnar.storage.layout import escape, row_end, row_prefix, row_versions_range, unescape

WIDE_ROW: Final = 1_000  # columns; a family with more is deleted by one range delete


class RowColumns:
    def __init__(self, store: Store, views: Views, row: bytes) -> None:
        self._store = store
        self._views = views
        self._row = row
        self._prefix = row_prefix(row)
        self.emptied: set[bytes] = set()  # families that one range delete empties
        self.by_name: dict[tuple[bytes, bytes], ColumnDraft] = {}  # by family and qualifier

    def column(self, family: bytes, qualifier: bytes) -> ColumnDraft:
        draft = self.by_name.get((family, qualifier))
        if draft is None:
            view = self._views[family]
            key = self._prefix + escape(qualifier)
            raw = None if family in self.emptied else self._store.get(view.space, key)
            draft = self.by_name[family, qualifier] = ColumnDraft(view, key, raw)
        return draft

    def prefetch(self, operations: tuple[Operation, ...], images: Images | None = None) -> None:
        """Read all named columns in one call per family, which is cheaper than one by one.

        Columns of appends are not read here, as their cells may be large (``row_draft`` I6).
        """
        wanted: dict[bytes, dict[bytes, None]] = {}
        for operation in operations:
            if isinstance(operation, Contribute):
                for family, qualifier in ((operation.family, operation.source), *operation.totals):
                    if (family, qualifier) not in self.by_name:
                        wanted.setdefault(family, {})[qualifier] = None
                continue
            if operation.qualifier is None or isinstance(operation, Append):
                continue
            if (operation.family, operation.qualifier) not in self.by_name:
                wanted.setdefault(operation.family, {})[operation.qualifier] = None
        for family, named in (images or {}).items():
            for qualifier in named or ():
                if (family, qualifier) not in self.by_name and family in self._views:
                    wanted.setdefault(family, {})[qualifier] = None
        for family, qualifiers in wanted.items():
            view = self._views[family]
            keys = [self._prefix + escape(qualifier) for qualifier in qualifiers]
            for qualifier, key, raw in zip(qualifiers, keys, self._store.multi_get(view.space, keys), strict=True):
                self.by_name[family, qualifier] = ColumnDraft(view, key, raw)

    def read_family(self, family: bytes, all_go: bool = False) -> None:
        """Read every column of the family that is in the store.

        ``all_go`` says that all columns are to be deleted.  If the family has more than WIDE_ROW columns, none is read
        and one range delete removes them.
        """
        if family in self.emptied:
            return
        view, prefix = self._views[family], self._prefix
        left = WIDE_ROW if all_go else ROW_OPERATIONS
        found: dict[tuple[bytes, bytes], ColumnDraft] = {}
        for key, raw in self._store.scan(view.space, prefix, row_end(self._row)):
            left -= 1
            if left < 0 and all_go:
                self.emptied.add(family)
                return
            if left < 0:
                raise RequestTooBig(
                    f"row {abbreviate(self._row)} has over {ROW_OPERATIONS} columns, too many to delete in one step; "
                    "nothing was deleted, delete its columns by name in several calls"
                )
            qualifier = unescape(key[len(prefix) :])
            if (family, qualifier) not in self.by_name:
                found[family, qualifier] = ColumnDraft(view, key, raw)
        self.by_name.update(found)

    def read_family_within(self, family: bytes, most_columns: int, most_bytes: int) -> bool:
        """Read all columns of the family.  Returns False if these have more than ``most_columns`` or ``most_bytes``.

        Delete markers count as columns, and the bytes of qualifiers count, too.  A family that is missing from the
        table has no columns.
        """
        view = self._views.get(family)
        if view is None:
            return True
        for key, raw in self._store.scan(view.space, self._prefix, row_end(self._row)):
            qualifier = unescape(key[len(self._prefix) :])
            most_columns -= 1
            most_bytes -= len(qualifier) + len(raw)
            if most_columns < 0 or most_bytes < 0:
                return False
            if (family, qualifier) not in self.by_name:
                self.by_name[family, qualifier] = ColumnDraft(view, key, raw)
        return True

    def view(self, family: bytes) -> FamilyView:
        """Return the view of the family.  Raises NoSuchColumnFamily."""
        return self._views[family]

    def has_family(self, family: bytes) -> bool:
        return family in self._views

    def emit_ranges(self, batch: Batch) -> None:
        """Add a range delete for each emptied family."""
        for family in self.emptied:
            view = self._views[family]
            batch.delete_range(view.space, self._prefix, row_end(self._row))
            if view.max_versions > 1:
                batch.delete_range(VERSIONS_SPACE, *row_versions_range(view.number, self._row))
