"""Reading the cells of a region's store that no process writes to: every version that a reader could see, row by row.

The store is a copy (``master.snapshots``) or a store that no process serves, so this module takes no locks.  It yields
the versions that the family keeps and that have not expired at ``now_ms``, and no delete markers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

from columnar.backup.cell_blocks import ExportedCell
from columnar.errors import HostError
from columnar.model.schema import Table
from columnar.regions.read.family_view import FamilyView, kept_versions, views_of
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import Engine, Store
from columnar.storage.layout import range_start, split_cell_key, version_prefix

_Pair = tuple[bytes, bytes]
_Keys = tuple[bytes, bytes | None]  # from, below


def cells_of(
    store: Store, views: Mapping[bytes, FamilyView], now_ms: int, start: bytes = b"", end: bytes = b""
) -> Iterator[ExportedCell]:
    """Yield the cells of rows ``start <= row < end`` by row, family, qualifier, the newest version first.

    An empty ``end`` means to the last row.  A split may have left rows outside of the region's range, which no reader
    sees.
    """
    keys = range_start(start), range_start(end) if end else None
    present = [view for _, view in sorted(views.items()) if view.space in store.spaces]
    families = [_family_cells(store, view, now_ms, keys) for view in present]
    if len(families) == 1:
        yield from families[0]
        return
    # By row and family: within a row the families come one after the other.
    yield from heapq.merge(*families, key=itemgetter(0, 1))


def read_rows(engine: Engine, path: str, table: Table) -> Iterable[tuple[bytes, dict[bytes, bytes]]]:
    """Return the rows of a store with their newest values only."""
    if not engine.exists(path):
        raise HostError(f"{path} holds no store")
    store = engine.open_reading(path)
    try:
        return rows_in(store, table)
    finally:
        store.close()


def rows_in(store: Store, table: Table) -> Iterable[tuple[bytes, dict[bytes, bytes]]]:
    """Return the rows of an open store with their newest values only."""
    rows: dict[bytes, dict[bytes, bytes]] = {}
    for cell in cells_of(store, views_of(table), 0):
        rows.setdefault(cell.row, {}).setdefault(cell.family + b":" + cell.qualifier, cell.value)
    return rows.items()


def _family_cells(store: Store, view: FamilyView, now_ms: int, keys: _Keys) -> Iterator[ExportedCell]:
    older = _older(store, view, keys) if view.max_versions > 1 and VERSIONS_SPACE in store.spaces else None
    name = view.name
    for key, raw in store.scan(view.space, *keys):
        row, qualifier = split_cell_key(key)
        raws = [raw] if older is None else [raw, *older.of(key)]
        for stored in kept_versions(raws, view, now_ms):
            yield ExportedCell(row, name, qualifier, stored.timestamp, stored.ttl_ms, stored.value)


class _Older:
    """The older versions of a family, read in step with the newest versions, as both have the order of cell keys."""

    def __init__(self, number: int, first: _Pair | None, others: Iterator[_Pair]) -> None:
        """Take the family's ``number``; the items of ``others`` follow ``first``."""
        self._number = number
        self._items = others
        self._next = first

    def of(self, key: bytes) -> Iterator[bytes]:
        prefix = version_prefix(self._number, key)
        while self._next is not None and self._next[0] < prefix:
            self._next = next(self._items, None)  # without a newest version no reader sees it
        while self._next is not None and self._next[0].startswith(prefix):
            yield self._next[1]
            self._next = next(self._items, None)


def _older(store: Store, view: FamilyView, keys: _Keys) -> _Older:
    number = view.number.to_bytes(2, "big")
    stop = (view.number + 1).to_bytes(2, "big") if keys[1] is None else number + keys[1]
    items = store.scan(VERSIONS_SPACE, number + keys[0], stop)
    return _Older(view.number, next(items, None), items)
