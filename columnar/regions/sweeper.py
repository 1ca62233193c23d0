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
from columnar.storage.layout import MARKER, unpack


async def sweep(store: Store, table: Table, views: dict[bytes, FamilyView], now_ms: int) -> int:
    """Returns how many stored values went.  Gives way to others after each step."""
    gone = 0
    for view in views.values():
        gone += await _sweep_newest(store, view, now_ms, table.delete_markers_ms)
    by_number = {view.number: view for view in views.values()}
    return gone + await _sweep_versions(store, by_number, now_ms)


async def _sweep_newest(store: Store, view: FamilyView, now_ms: int, markers_ms: int | None) -> int:
    """Expired newest versions of families that keep one, and markers past their time."""
    gone, start = 0, b""
    while True:
        step = list(islice(store.scan(view.space, start, None), STEP_CELLS))
        if not step:
            return gone
        doomed = []
        for key, raw in step:
            stored = unpack(raw)
            if stored.kind == MARKER:
                if markers_ms is None or stored.timestamp + markers_ms <= now_ms:
                    doomed.append(key)
            elif view.max_versions == 1 and not is_alive(stored, view, now_ms):
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
                name, kept = key[:-8], 1  # the newest version stands elsewhere and counts as kept
            alive = view is not None and is_alive(unpack(raw), view, now_ms)
            if view is None or not alive or kept >= view.max_versions:
                doomed.append(key)
            else:
                kept += 1
        gone += _delete(store, VERSIONS_SPACE, doomed)
        start = step[-1][0] + b"\x00"
        await asyncio.sleep(0)


def _delete(store: Store, space: str, doomed: list[bytes]) -> int:
    if doomed:
        batch = store.batch()
        for key in doomed:
            batch.delete(space, key)
        store.write(batch)
    return len(doomed)
