"""Puts whose rows need not be read: by the clock, of families that keep one version.

Present cells of the row cannot matter: the put ones are the newest (invariant I1 of ``drafting``), no older version
is kept, and no follower wants the change.  The written cells equal those of ``RowDraft``.

Invariant: the remembered columns of the last rows belong to these views.  Cost: a cell of a bulk load is
a key, a value and the engine's call.
"""

from __future__ import annotations

from columnar.model.mutation import Put, RowMutation, RowPuts
from columnar.regions.read.family_view import Views
from columnar.storage.api import Batch
from columnar.storage.layout import cell_head, escape, pack_cell, row_prefix

Places = list[tuple[str, bytes]]  # of the columns of a row, in order: its space and the end of its key


class UnreadPuts:
    def __init__(self, views: Views) -> None:
        self._views = views
        self._columns: tuple[tuple[bytes, bytes], ...] | None = None
        self._places: Places | None = None

    def can_put(self, mutation: RowMutation) -> bool:
        views = self._views
        for operation in mutation.operations:  # no all() over a generator, as in _wants_sync
            if type(operation) is not Put or operation.timestamp is not None:
                return False
            if views[operation.family].max_versions != 1:
                return False
        return True

    def put(self, batch: Batch, mutation: RowMutation, now_ms: int, number: int) -> None:
        """Put a row for which ``can_put`` is true; ``number`` is the sequence as cells have it."""
        prefix, views = row_prefix(mutation.row), self._views
        head = cell_head(now_ms, number)
        for operation in mutation.operations:
            assert isinstance(operation, Put), "looked at before"
            if operation.ttl_ms is None:
                raw = head + operation.value
            else:
                raw = pack_cell(now_ms, number, operation.value, operation.ttl_ms)
            batch.put(views[operation.family].space, prefix + escape(operation.qualifier), raw)

    def places(self, columns: tuple[tuple[bytes, bytes], ...]) -> Places | None:
        """Return the places of these columns, or None if one of their families keeps more than one version."""
        if columns is not self._columns:
            self._columns, self._places = columns, self._found(columns)
        return self._places

    def _found(self, columns: tuple[tuple[bytes, bytes], ...]) -> Places | None:
        places: Places = []
        for family, qualifier in columns:
            view = self._views[family]
            if view.max_versions != 1:
                return None
            places.append((view.space, escape(qualifier)))
        return places


def put_row(batch: Batch, mutation: RowPuts, places: Places, now_ms: int, number: int) -> None:
    """Put all cells of a row of a bulk load."""
    prefix, head = row_prefix(mutation.row), cell_head(now_ms, number)
    assert len(places) == len(mutation.values), "a value for each column"
    for (space, end_of_key), value in zip(places, mutation.values):  # noqa: B905 - asserted; with strict it is a slow loop
        batch.put(space, prefix + end_of_key, head + value)
