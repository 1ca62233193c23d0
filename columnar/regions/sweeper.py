"""Remove what no reader sees any more: surplus versions, expired cells, old delete markers.

A sweep walks a region's key spaces in steps and deletes in small batches, so that others are
served between two steps; at its end the engine compacts.  Reads never need it: they filter
(``family_view``).  It is what the API calls a major compaction (HBase's ``StoreScanner`` with
``DROP_DELETES``).
"""

from __future__ import annotations

import asyncio
from itertools import islice

from columnar.limits import STEP_CELLS
from columnar.model.schema import Table
from columnar.regions.family_view import FamilyView, is_alive
from columnar.regions.row_draft import VERSIONS_SPACE
from columnar.storage.api import Store
from columnar.storage.layout import MARKER, marker_made_ms, split_version_key, unpack, version_end, version_prefix


async def sweep(store: Store, table: Table, views: dict[bytes, FamilyView], now_ms: int) -> int:
    """Returns how many stored values went.  Gives way to others after each step."""
    gone = await _sweep_versions(store, {view.number: view for view in views.values()}, now_ms)
    for view in views.values():
        gone += await _sweep_newest(store, view, now_ms, table.delete_markers_ms)
    return gone


async def _sweep_newest(store: Store, view: FamilyView, now_ms: int, markers_ms: int | None) -> int:
    """Expired newest versions with no older ones behind them, and markers past their time.

    Where there are older ones the newest must stay (``row_draft``, I1).
    """
    gone, start = 0, b""
    while True:
        step = list(islice(store.scan(view.space, start, None), STEP_CELLS))
        if not step:
            return gone
        doomed = []
        for key, raw in step:
            stored = unpack(raw)
            if stored.kind == MARKER:
                if markers_ms is None or marker_made_ms(stored) + markers_ms <= now_ms:
                    doomed.append(key)
            elif not is_alive(stored, view, now_ms) and not _has_older(store, view, key):
                doomed.append(key)
        gone += _delete(store, view.space, doomed)
        start = step[-1][0] + b"\x00"
        await asyncio.sleep(0)


async def _sweep_versions(store: Store, by_number: dict[int, FamilyView], now_ms: int) -> int:
    """Older versions beyond what their family keeps, and those of families that are no more."""
    gone, start = 0, b""
    name, kept = b"", 0
    while True:
        step = list(islice(store.scan(VERSIONS_SPACE, start, None), STEP_CELLS))
        if not step:
            return gone
        doomed = []
        for key, raw in step:
            view = by_number.get(int.from_bytes(key[:2], "big"))
            if key[:-8] != name:
                name, kept = key[:-8], _newest_kept(store, view, key, now_ms)
            alive = view is not None and is_alive(unpack(raw), view, now_ms)
            if view is None or not alive or kept >= view.max_versions:
                doomed.append(key)
            else:
                kept += 1
        gone += _delete(store, VERSIONS_SPACE, doomed)
        start = step[-1][0] + b"\x00"
        await asyncio.sleep(0)


def _has_older(store: Store, view: FamilyView, key: bytes) -> bool:
    if view.max_versions == 1:
        return False
    prefix = version_prefix(view.number, key)
    return next(iter(store.scan(VERSIONS_SPACE, prefix, version_end(prefix))), None) is not None


def _newest_kept(store: Store, view: FamilyView | None, key: bytes, now_ms: int) -> int:
    """1 where the newest version, which stands in the family's own space, takes one of the places."""
    newest = store.get(view.space, split_version_key(key)[0]) if view is not None else None
    return int(view is not None and newest is not None and is_alive(unpack(newest), view, now_ms))


def _delete(store: Store, space: str, doomed: list[bytes]) -> int:
    if doomed:
        batch = store.batch()
        for key in doomed:
            batch.delete(space, key)
        store.write(batch)
    return len(doomed)
