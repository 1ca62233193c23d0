"""Puts of many rows whose changes are logged with images: present cells are read with one call for each key space.

The clock gives the puts their timestamps, their families keep one version, and followers want only images of named
columns.  Record and cells equal those of ``RowDraft`` and ``change_logging``, but are made directly from the puts and
the present cells, without an object for each column and without reading a cell twice.  Every other row is left to
``RowDraft``, as is a row in which a cell lies ahead of the stamp.

Cost: the engine reads a key for each put cell and for each cell of an image.
"""

from __future__ import annotations

from columnar.model.mutation import Put, RowMutation, RowWrite
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import MOST_HOPS, ChangeRecord, Entry, Kind
from columnar.regions.read.family_view import FamilyView, Views, visible_value
from columnar.storage.api import Batch, Store
from columnar.storage.layout import cell_head, escape, row_prefix, timestamp_of

Column = tuple[bytes, bytes]  # family, qualifier
Values = dict[str, dict[bytes, bytes | None]]  # by space and key: the cell as it is stored


class _Place:
    """A column whose images are wanted.  Constant."""

    __slots__ = ("end", "family", "qualifier", "view")

    def __init__(self, family: bytes, qualifier: bytes, view: FamilyView) -> None:
        self.family = family
        self.qualifier = qualifier
        self.view = view
        self.end = escape(qualifier)  # the end of its key, after the row


class LoggedPuts:
    """The fast path under one policy and one schema.  Constant."""

    def __init__(self, views: Views, policy: LogPolicy, markers: bool) -> None:
        """``markers`` says whether deletes leave markers."""
        self.policy = policy
        self._views = views
        self._wanted: list[_Place] = []
        self._columns: set[Column] = set()
        self._accepts_any = bool(policy.images) and not policy.before and not markers
        for family, qualifiers in policy.images.items():
            view = views.get(family)
            if qualifiers is None or (view is not None and view.max_versions != 1):
                self._accepts_any = False
            elif view is not None:
                for qualifier in qualifiers:
                    self._wanted.append(_Place(family, qualifier, view))
                    self._columns.add((family, qualifier))

    def plain_puts(self, mutations: list[RowWrite]) -> list[RowMutation | None]:
        """Return each row that can be handled here, with None for each other row.  Raises NoSuchColumnFamily."""
        if not self._accepts_any:
            return [None] * len(mutations)
        return [self._accept(mutation) for mutation in mutations]

    def _accept(self, mutation: RowWrite) -> RowMutation | None:
        if not isinstance(mutation, RowMutation) or mutation.conditions or mutation.sends:
            return None
        families, seen = self.policy.families, set[Column]()
        for operation in mutation.operations:
            if type(operation) is not Put or operation.timestamp is not None or operation.ttl_ms is not None:
                return None
            if self._views[operation.family].max_versions != 1 or operation.family not in families:
                return None
            seen.add((operation.family, operation.qualifier))
        is_accepted = bool(seen) and len(seen) == len(mutation.operations)  # a later put of a column sees the first put
        return mutation if is_accepted else None

    def read_images(self, store: Store, mutations: list[RowMutation | None]) -> Values:
        """Read the present cells of the columns that are put and of the columns whose images are wanted."""
        keys: Values = {}
        for mutation in mutations:
            if mutation is None:
                continue
            prefix = row_prefix(mutation.row)
            for operation in mutation.operations:
                assert isinstance(operation, Put), "looked at before"
                _named(keys, self._views[operation.family].space)[prefix + escape(operation.qualifier)] = None
            for place in self._wanted:
                _named(keys, place.view.space)[prefix + place.end] = None
        for space, named in keys.items():
            wanted = list(named)
            keys[space] = dict(zip(wanted, store.multi_get(space, wanted), strict=True))
        return keys

    def is_newest(self, mutation: RowMutation, values: Values, stamp: int) -> bool:
        """Tell whether no present cell of the put columns lies ahead of the stamp."""
        prefix, views = row_prefix(mutation.row), self._views
        for operation in mutation.operations:
            assert isinstance(operation, Put), "looked at before"
            present = values[views[operation.family].space][prefix + escape(operation.qualifier)]
            if present is not None and timestamp_of(present) > stamp:
                return False
        return True

    def put_row(self, batch: Batch, mutation: RowMutation, values: Values, stamp: int, number: int) -> ChangeRecord:
        """Add a row's cells to the batch and return its record.

        ``number`` is the sequence in the form that cells have.
        """
        prefix, views, head = row_prefix(mutation.row), self._views, cell_head(stamp, number)
        entries: list[Entry] = []
        after: list[Entry] = []
        for operation in mutation.operations:
            assert isinstance(operation, Put), "looked at before"
            view, key = views[operation.family], prefix + escape(operation.qualifier)
            batch.put(view.space, key, head + operation.value)
            entry = Entry(Kind.PUT, operation.family, operation.qualifier, stamp, operation.value)
            entries.append(entry)
            is_wanted = (operation.family, operation.qualifier) in self._columns
            if is_wanted and visible_value(values[view.space][key], view, stamp) != operation.value:
                after.append(entry)
        before: list[Entry] = []
        for place in self._wanted:
            raw = values[place.view.space][prefix + place.end]
            value = visible_value(raw, place.view, stamp)
            if raw is not None and value is not None:
                before.append(Entry(Kind.PUT, place.family, place.qualifier, timestamp_of(raw), value))
        return ChangeRecord(
            mutation.row,
            stamp,
            tuple(entries),
            tuple(before),
            None,
            stamp,
            min(mutation.hops, MOST_HOPS),
            tuple(after),
            images=self.policy.images,
        )


def _named(keys: Values, space: str) -> dict[bytes, bytes | None]:
    named = keys.get(space)
    if named is None:
        named = keys[space] = {}
    return named
