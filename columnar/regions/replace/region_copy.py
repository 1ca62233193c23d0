"""Copies of regions, and what makes one another region's: without the change log and its consumers.

Kept in ``meta`` then: ``epoch``, ``stamp``, ``future`` and ``reached`` (``columnar.regions.region``), so that sequences
and timestamps of the new region go on from where the old one's were, never back.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from columnar.errors import RegionNotLocal, TableNotFound
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.life.hosting_state import State
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
    """The region's store as it is now at ``path``.  Linking files takes the loop some 5 ms; all else is in threads.

    A closed region that has all that was acknowledged stays closed: nothing else runs while its files are linked,
    so nobody opens it meanwhile.
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
    """The copy holds nothing that a crash of now would take back: what is being synced is waited for."""
    await region.aside(region.store.flush)
    waiting = region.sync_async_writes() or region.barrier_any()
    if waiting is not None:
        await asyncio.wait([waiting])
    await retry_until_ready(partial(region.store.checkpoint, path))


def forget_log_at(engine: Engine, path: str, table: Table) -> None:
    """Take change log and cursors out of the copy at ``path``.  Blocks.

    Its region may not have been opened since a crash: what every opening undoes is undone here, too.
    """
    store = engine.open(path, spaces_of(table), options_of_spaces(table))
    try:
        undo_cut_off(store, views_of(table))
        forget_log(store)
    finally:
        store.close()


def forget_log(store: Store) -> None:
    """Synced when it returns."""
    if LOG_SPACE in store.spaces:
        store.drop_space(LOG_SPACE)
    store.add_space(LOG_SPACE)
    batch = store.batch()
    for key, _ in store.scan(META_SPACE, b"", None):
        if key not in KEPT and not key.startswith(GUARDS):
            batch.delete(META_SPACE, key)
    store.write(batch)
    store.sync()
