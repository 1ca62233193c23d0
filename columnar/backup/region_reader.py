"""The cells of a region's store that nobody writes to: every version a reader could see, row by row.

The store is a copy (``master.snapshots``) or a store that no process serves, so nothing here waits for
anybody.  Versions: those the family keeps and that have not expired at ``now_ms``; delete markers are none.
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
    """Yield rows ``start <= row < end`` (empty: to the last) by row, family, qualifier; the newest version first.

    A store may hold rows outside of its region's range, which a split left: no reader sees them.
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
    """Yield the rows of a store, newest values only."""
    if not engine.exists(path):
        raise HostError(f"{path} holds no store")
    store = engine.open_reading(path)
    try:
        rows: dict[bytes, dict[bytes, bytes]] = {}
        for cell in cells_of(store, views_of(table), 0):
            rows.setdefault(cell.row, {}).setdefault(cell.family + b":" + cell.qualifier, cell.value)
    finally:
        store.close()
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
    """The older versions of a family, walked once beside its newest ones: both stand in the order of cell keys."""

    def __init__(self, number: int, first: _Pair | None, others: Iterator[_Pair]) -> None:
        """``number``: the family's; ``others`` follow ``first``."""
        self._number = number
        self._items = others
        self._next = first

    def of(self, key: bytes) -> Iterator[bytes]:
        prefix = version_prefix(self._number, key)
        while self._next is not None and self._next[0] < prefix:
            self._next = next(self._items, None)  # its newest version is gone: nobody sees it
        while self._next is not None and self._next[0].startswith(prefix):
            yield self._next[1]
            self._next = next(self._items, None)


def _older(store: Store, view: FamilyView, keys: _Keys) -> _Older:
    number = view.number.to_bytes(2, "big")
    stop = (view.number + 1).to_bytes(2, "big") if keys[1] is None else number + keys[1]
    items = store.scan(VERSIONS_SPACE, number + keys[0], stop)
    return _Older(view.number, next(items, None), items)
