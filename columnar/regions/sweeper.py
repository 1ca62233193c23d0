"""Sweeps of a region: remove surplus versions, expired cells, old delete markers and old guards of members.

A sweep walks a region's key spaces in steps and deletes in small batches, so that requests are
served between two steps.  Reads do not depend on sweeps: they filter (``family_view``).  In the API a sweep is a major
compaction (HBase's ``StoreScanner`` with ``DROP_DELETES``), after which the engine also rewrites its files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import NamedTuple

from columnar.limits import STEP_CELLS
from columnar.model.contribution import GUARD_KINDS, guard_made_ms
from columnar.model.schema import Table
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.family_view import FamilyView, is_alive
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import Store
from columnar.storage.layout import (
    CELL,
    HEADER_BYTES,
    MARKER,
    marker_made_ms,
    split_version_key,
    unpack,
    version_end,
    version_prefix,
)


class _Versions(NamedTuple):
    """The position of a walk over the older versions."""

    start: bytes
    name: bytes  # of the cell at the position
    kept: int  # versions of this cell that stay, so far


async def sweep(
    store: Store,
    table: Table,
    views: dict[bytes, FamilyView],
    now_ms: int,
    is_current: Callable[[], bool] = lambda: True,
) -> int:
    """Sweep the region; returns the number of stored values removed.  Yields the loop after each step.

    Ends early if ``is_current`` says that the schema has changed meanwhile: the new schema may keep more.
    A step reads and deletes without an await in between, so a concurrent put is never removed.
    Older versions are removed first, as an expired newest version is removed only if it has no older versions.
    """
    gone = 0
    by_number = {view.number: view for view in views.values()}
    place: _Versions | None = _Versions(b"", b"", 0)
    while place is not None and is_current():
        count, place = await retry_until_ready(partial(_versions_step, store, by_number, now_ms, place))
        gone += count
        await asyncio.sleep(0)
    for view in views.values():
        start: bytes | None = b""
        while start is not None and is_current():
            count, start = await retry_until_ready(
                partial(_newest_step, store, view, now_ms, table.delete_markers_ms, start)
            )
            gone += count
            await asyncio.sleep(0)
    return gone


async def sweep_guards(
    store: Store, view: FamilyView, before_ms: int, is_current: Callable[[], bool] = lambda: True
) -> int:
    """Remove the guards of a family that were made before ``before_ms`` (``guards``).  Returns the number removed.

    No change is logged: a guard is no data.  Yields the loop after each step.
    """
    gone = 0
    start: bytes | None = b""
    while start is not None and is_current():
        count, start = await retry_until_ready(partial(_guards_step, store, view, before_ms, start))
        gone += count
        await asyncio.sleep(0)
    return gone


def _guards_step(store: Store, view: FamilyView, before_ms: int, start: bytes) -> tuple[int, bytes | None]:
    step = list(islice(store.scan(view.space, start, None), STEP_CELLS))
    doomed = []
    for key, raw in step:
        if raw[0] == CELL and raw.startswith(GUARD_KINDS, HEADER_BYTES):
            made_ms = guard_made_ms(raw[HEADER_BYTES:])
            if made_ms is not None and made_ms < before_ms and not _has_older(store, view, key):
                doomed.append(key)
    return _delete(store, view.space, doomed), step[-1][0] + b"\x00" if step else None


def needs_sweep(table: Table) -> bool:
    """Tell whether any data of this table can become invisible without being deleted."""
    return table.delete_markers_ms is not None or any(f.max_versions > 1 or f.ttl_s for f in table.families)


def _newest_step(
    store: Store, view: FamilyView, now_ms: int, markers_ms: int | None, start: bytes
) -> tuple[int, bytes | None]:
    """Remove expired newest versions without older versions (``row_draft``, I1), and expired markers."""
    step = list(islice(store.scan(view.space, start, None), STEP_CELLS))
    doomed = []
    for key, raw in step:
        stored = unpack(raw)
        if stored.kind == MARKER:
            if markers_ms is None or marker_made_ms(stored) + markers_ms <= now_ms:
                doomed.append(key)
        elif not is_alive(stored, view, now_ms, 0) and not _has_older(store, view, key):
            doomed.append(key)
    return _delete(store, view.space, doomed), step[-1][0] + b"\x00" if step else None


def _versions_step(
    store: Store, by_number: dict[int, FamilyView], now_ms: int, place: _Versions
) -> tuple[int, _Versions | None]:
    """Remove older versions that their family does not keep, and older versions of dropped families."""
    start, name, kept = place
    step = list(islice(store.scan(VERSIONS_SPACE, start, None), STEP_CELLS))
    doomed = []
    for key, raw in step:
        view = by_number.get(int.from_bytes(key[:2], "big"))
        if key[:-8] != name:
            name, kept = key[:-8], _newest_kept(store, view, key, now_ms)
        alive = view is not None and is_alive(unpack(raw), view, now_ms, kept)
        if view is None or not alive or kept >= view.max_versions:
            doomed.append(key)
        else:
            kept += 1
    return _delete(store, VERSIONS_SPACE, doomed), _Versions(step[-1][0] + b"\x00", name, kept) if step else None


def _has_older(store: Store, view: FamilyView, key: bytes) -> bool:
    if view.max_versions == 1:
        return False
    prefix = version_prefix(view.number, key)
    return next(iter(store.scan(VERSIONS_SPACE, prefix, version_end(prefix))), None) is not None


def _newest_kept(store: Store, view: FamilyView | None, key: bytes, now_ms: int) -> int:
    """Return 1 if the newest version, in the family's own space, counts as one of the kept versions, else 0."""
    newest = store.get(view.space, split_version_key(key)[0]) if view is not None else None
    return int(view is not None and newest is not None and is_alive(unpack(newest), view, now_ms, 0))


def _delete(store: Store, space: str, doomed: list[bytes]) -> int:
    if doomed:
        batch = store.batch()
        for key in doomed:
            batch.delete(space, key)
        store.write_batch(batch)
    return len(doomed)
