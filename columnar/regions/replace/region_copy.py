"""Copies of regions, and their conversion to another region's store: without the change log and its consumers.

``epoch``, ``stamp``, ``future`` and ``reached`` (``columnar.regions.region``) stay in ``meta``, so that sequences and
timestamps of the new region continue from those of the old region and never decrease.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from columnar.errors import RegionNotLocal, TableNotFound
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.life.region_state import State
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.log.change_log import LOG_SPACE
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.read.family_view import views_of
from columnar.regions.region import Region, spaces_of
from columnar.regions.server import RegionServer
from columnar.regions.spaces import options_of_spaces
from columnar.regions.write.guards import GUARDS
from columnar.regions.write.ingestion import undo_cut_off
from columnar.storage.api import Engine, Store, StoreClosed
from columnar.storage.file_copies import link_closed
from columnar.storage.rocks_errors import refused

KEPT: Final = (b"epoch", b"future", b"reached", b"stamp")


async def copy_region(server: RegionServer, info: RegionInfo, path: str) -> None:
    """Copy the region's store as it is now to ``path``.  Linking files blocks the loop some 5 ms; threads do the rest.

    A closed region whose store has every acknowledged write stays closed: no other code runs while its files are
    linked, so it cannot be opened meanwhile.
    """
    folder, engine = server.folder_of(info), server.hosting.engine
    if not server.hosting.state.owns(info.region_id):
        raise RegionNotLocal(info.table, info.encoded)  # its owner may have the store open
    is_closed = server.hosting.state.state(info.region_id) is State.NONE  # else a thread may still be closing it
    if is_closed and engine.exists(folder) and not server.hosting.ownership(info).unreplayed_logs:
        try:
            link_closed(folder, path)
        except OSError as error:
            raise refused(error, f"cannot copy the files of {folder}") from error
        return
    served = server.tables.find(info.table.encode())
    if served is None:
        raise TableNotFound(info.table)
    while True:
        try:
            await copy_open_region(await server.opened(served, info), path)
            break
        except StoreClosed:  # it was the least used of all; open it again
            continue
    if not served.enabled:
        await server.close_table(info.table)


async def copy_open_region(region: Region, path: str) -> None:
    """Copy an open region's store.  Waits for pending fsyncs, so no write in the copy can be lost by a crash now."""
    await region.aside(region.store.flush)
    waiting = region.sync_async_writes() or region.barrier_any()
    if waiting is not None:
        await asyncio.wait([waiting])
    await retry_until_ready(partial(region.store.checkpoint, path))


def forget_log_at(engine: Engine, path: str, table: Table) -> None:
    """Remove change log and cursors from the copy at ``path``.  Blocks.

    Its region may not have been opened since a crash, so the repair of every opening is done on the copy, too.
    """
    store = engine.open(path, spaces_of(table), options_of_spaces(table))
    try:
        undo_cut_off(store, views_of(table))
        forget_log(store)
    finally:
        store.close()


def forget_log(store: Store) -> None:
    """Remove change log and cursors from the store; synced when it returns."""
    if LOG_SPACE in store.spaces:
        store.drop_space(LOG_SPACE)
    store.add_space(LOG_SPACE)
    batch = store.batch()
    for key, _ in store.scan(META_SPACE, b"", None):
        if key not in KEPT and not key.startswith(GUARDS):
            batch.delete(META_SPACE, key)
    store.write(batch)
    store.sync()
