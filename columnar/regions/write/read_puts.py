"""Puts of many rows into families that keep one version: what stands there is read with one call for each key space.

The puts are those that ``unread_puts`` does not take: they bear timestamps of their own, or their table keeps delete
markers, so the cell that stands there decides whether a put is written (``row_draft`` I2, I3).  The bytes are those
that ``RowDraft`` comes to for each row.  A row whose changes are logged, a row alone, and any operation but a put are
left to ``RowDraft``.

Cost: a key and a comparison for each cell, and one call of the engine for each key space.
"""

from __future__ import annotations

from columnar.model.mutation import Put, RowMutation, RowWrite
from columnar.regions.read.family_view import FamilyView, Views, visible_value
from columnar.storage.api import Batch, Store
from columnar.storage.layout import MARKER, cell_head, escape, row_prefix, timestamp_of

Places = list[tuple[FamilyView, bytes, int]]  # of the cells of a row: family, key, place among the keys of its space


class Present:
    """The rows of one batch that may be put so, and what stands in their cells."""

    __slots__ = ("rows", "values")

    def __init__(self, rows: list[Places | None], values: dict[str, list[bytes | None]]) -> None:
        self.rows = rows  # one for each mutation, in order; None: left to RowDraft
        self.values = values  # by space


def read(store: Store, views: Views, mutations: list[RowWrite]) -> Present:
    """``mutations``: of different rows.  NoSuchColumnFamily; errors of the store."""
    keys: dict[str, list[bytes]] = {}
    rows = [_places(views, mutation, keys) for mutation in mutations]
    return Present(rows, {space: store.multi_get(space, named) for space, named in keys.items()})


def _places(views: Views, mutation: RowWrite, keys: dict[str, list[bytes]]) -> Places | None:
    if not isinstance(mutation, RowMutation) or mutation.conditions:
        return None
    prefix = row_prefix(mutation.row)
    found: list[tuple[FamilyView, bytes]] = []
    seen: set[tuple[bytes, bytes]] = set()
    for operation in mutation.operations:
        if type(operation) is not Put or operation.ttl_ms is not None:
            return None
        view = views[operation.family]
        if view.max_versions != 1:
            return None
        found.append((view, prefix + escape(operation.qualifier)))
        seen.add((operation.family, operation.qualifier))
    if len(seen) < len(found):
        return None  # a later put of a column sees the one before
    places: Places = []
    for view, key in found:
        named = keys.get(view.space)
        if named is None:
            named = keys[view.space] = []
        places.append((view, key, len(named)))
        named.append(key)
    return places


def put(
    batch: Batch, mutation: RowMutation, places: Places, values: dict[str, list[bytes | None]], now_ms: int, number: int
) -> int:
    """Add the row's cells to the batch; the highest of their timestamps.  ``number``: the sequence as cells have it."""
    highest = 0
    for operation, (view, key, at) in zip(mutation.operations, places, strict=True):
        assert isinstance(operation, Put), "looked at before"
        timestamp = now_ms if operation.timestamp is None else operation.timestamp
        if timestamp > highest:
            highest = timestamp
        present = values[view.space][at]
        if present is None or timestamp >= timestamp_of(present) or _has_expired(present, view, now_ms):
            batch.put(view.space, key, cell_head(timestamp, number) + operation.value)
    return highest


def _has_expired(present: bytes, view: FamilyView, now_ms: int) -> bool:
    """The cell that outranks the put is no marker, and no reader sees it any more."""
    return present[0] != MARKER and visible_value(present, view, now_ms) is None
