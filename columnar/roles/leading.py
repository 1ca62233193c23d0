"""The role of a master: the catalogue and all changes of it.

    open        the catalogue is read, and the owner's epoch in it is raised
    lead        from now on an owner of regions is notified of the regions to serve
    prepare     folders and rows of older versions are upgraded
    start       all tables of the catalogue are served, including system tables, and triggers follow them
    begin       the rest of drops that a crash interrupted is removed, and regions split by size

Owned by one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from columnar.config import RIGHTS_OFF, RightsSettings
from columnar.errors import DamagedData
from columnar.master.alterations import Alterations
from columnar.master.catalogue import META_REGION_ID, META_SCHEMA, Catalogue
from columnar.master.derivation_rows import TRIGGERS_TABLE
from columnar.master.region_changes import RegionChanges
from columnar.master.rights_changes import RightsChanges
from columnar.master.schema_changes import SchemaChanges
from columnar.master.snapshots import Snapshots
from columnar.master.table_copies import CopyTools
from columnar.master.trigger_changes import TriggerChanges
from columnar.master.view_changes import Declaring, ViewChanges
from columnar.master.view_generations import ViewGenerations
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Backfilled, Message, Peer
from columnar.model.schema import Family, Table
from columnar.regions.life.opening import opened, opened_again
from columnar.regions.read.region_reads import rows_of
from columnar.regions.region import Region
from columnar.regions.replace.region_copier import forget_log_at
from columnar.roles.meta_region import CatalogueTerms, MetaRegion
from columnar.storage.data_folder import (
    ALL_FOLDERS_SINCE,
    META,
    NODES_SINCE,
    OF_ONE_PROCESS,
    REGIONS,
    RESTORE_ADVICE,
    VIEWS_SINCE,
)
from columnar.storage.process_stores import FolderStores
from columnar.storage.region_entries import folder_name
from columnar.storage.server_folders import has_incarnations

_log = logging.getLogger(__name__)


class Leading:
    def __init__(
        self,
        stores: FolderStores,
        *,
        has_servers: bool = False,
        terms: CatalogueTerms | None = None,
    ) -> None:
        """Pass ``has_servers`` if regions are owned by other processes and a planner decides about splits."""
        self._stores = stores
        self._terms = terms if terms is not None else CatalogueTerms()
        self._has_servers = has_servers
        self.folders = stores.region_folders
        self.cluster: Any = None  # ``master.cluster_control.ClusterControl`` if the master has servers

    async def open(self, at_least: int = 0) -> int:
        """Open the catalogue.  Returns the epoch at which owners serve from now on, which is at least ``at_least``.

        Raises HostError or DamagedData, with nothing left open.
        """
        if not self._terms.generation and self._stores.folder.format >= NODES_SINCE:
            from columnar.roles.mode_switch import from_nodes  # most folders were never served by nodes

            await asyncio.to_thread(from_nodes, self._stores.folder)
        path = self.folders.catalogue(self._terms.generation)
        self._meta = meta = MetaRegion(partial(self._opened, path), self._terms)
        meta.open_meta()
        try:
            return await self._read(meta, at_least)
        except BaseException:
            await meta.close(_quiet)
            raise

    async def _read(self, meta: MetaRegion, at_least: int) -> int:
        clock = self._stores.clock
        self.catalogue = self._catalogue(meta)
        await self._check_owners()
        meta.repairs_wanted = self.catalogue.repairs
        clock.observe(meta.newest_ms)  # otherwise a change of the catalogue would be older than the row that it changes
        if not self._has_servers and (self.catalogue.ownership.owners or has_incarnations(self._stores.folder.path)):
            from columnar.roles.mode_switch import to_one_process  # most folders were never served by several servers

            await to_one_process(self.catalogue, self._stores)
        return await self.catalogue.ownership.raise_epoch(at_least)

    def _catalogue(self, meta: MetaRegion) -> Catalogue:
        """Read the catalogue.

        Raises DamagedData, with a command for the repair, if a part of the catalogue cannot be read.
        """
        try:
            return Catalogue(meta.read_all(), meta.write_rows)
        except DamagedData as damage:
            place = f"{self._stores.folder.path}/{REGIONS}/{folder_name(META, self._terms.generation)}"
            raise DamagedData(f"{place}: {damage.text}; {RESTORE_ADVICE}") from damage

    async def _check_owners(self) -> None:
        """Raise DamagedData, with a command for the repair, if the catalogue contradicts the servers' logs."""
        catalogue, data = self.catalogue, self._stores.folder.path
        if catalogue.ownership.unread or (catalogue.ownership.owners and has_incarnations(data)):
            from columnar.master.dead_servers import check_owners  # most folders were never served by several servers

            await asyncio.to_thread(check_owners, catalogue, data)

    def _opened(self, path: str) -> Region:
        stores, info = self._stores, RegionInfo(META_SCHEMA.name, META_REGION_ID)
        ownership = stores.ownership(META, 0)  # the epoch rises above the one found, because no catalogue is read yet
        return opened(stores.engine, path, info, META_SCHEMA, stores.committer, stores.clock, ownership)

    def lead(self, owner: Peer, trigger_modules: tuple[str, ...], rights: RightsSettings = RIGHTS_OFF) -> None:
        catalogue, folders = self.catalogue, self.folders
        self.triggers = TriggerChanges(catalogue, owner, trigger_modules)
        self.changes = SchemaChanges(catalogue, owner, folders, self.triggers)
        self.rights = RightsChanges(catalogue, self.changes, rights.superusers, is_on=rights.is_on)
        self.views = ViewChanges(catalogue, owner, self.changes, _declaring, self._raise_for_views)
        self.view_generations = ViewGenerations(self.views)
        self.alterations = Alterations(catalogue, owner, self.changes)
        self.region_changes = RegionChanges(catalogue, self.changes, owner, folders)
        tools = CopyTools(self._meta.copy, partial(forget_log_at, self._stores.engine))
        data = self._stores.folder.path
        self.snapshots = Snapshots(data, catalogue, self.changes, owner, folders, tools, self._stores.clock)
        self._meta.on_repaired = [
            self.region_changes.catalogue_repaired,
            self.changes.catalogue_repaired,
            self.triggers.catalogue_repaired,
            self.views.catalogue_repaired,
            self.changes.feeds.catalogue_repaired,
        ]

    async def request_peer(self, message: Message[Any]) -> Any:
        """Answer the requests of region owners to their master, as a ``Peer``."""
        if isinstance(message, Backfilled):
            return await self.views.request_peer(message)
        return await self.region_changes.request_peer(message)

    async def prepare(self) -> None:
        """Upgrade folders and catalogue to this version.  Call before ``start``, while no region is served."""
        self._see_to_folders()
        if TRIGGERS_TABLE in self.catalogue.tables:
            from columnar.master import older_triggers  # needed only once for a folder

            await older_triggers.take_in(self.catalogue, self._rows_of)

    async def start(self, system_tables: tuple[tuple[str, Family], ...]) -> None:
        # In threads, because the folder may be slow: a leader whose loop stands still is fenced.
        await asyncio.to_thread(self.snapshots.sweep)
        await self.rights.start()
        await self.changes.start()
        await self.triggers.start()
        await self.views.start()
        await self.changes.feeds.start()
        self.view_generations.start()
        await asyncio.to_thread(self._warn_of_unnamed)
        for name, family in system_tables:
            if name not in self.catalogue.tables:
                await self.changes.create(name.encode(), [family], system=True)

    def _see_to_folders(self) -> None:
        """Make the folders of regions that older programs named without a folder.

        From then on a missing folder means that it was lost.
        """
        folder = self._stores.folder
        if folder.format < ALL_FOLDERS_SINCE:
            tables = self.catalogue.tables.values()
            self.folders.make([info.encoded for entry in tables for info in entry.regions])
        folder.raise_format(OF_ONE_PROCESS)

    async def _raise_for_views(self) -> None:
        await asyncio.to_thread(self._stores.folder.raise_format, VIEWS_SINCE)

    def _rows_of(self, table: Table, info: RegionInfo) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Return all rows of a region that no process serves.  Blocks."""
        if self.folders.is_untouched(info.encoded):
            return []
        stores, path = self._stores, self.folders.path(info.encoded)
        ownership = stores.ownership(info.encoded, self.catalogue.ownership.epoch)
        region = opened_again(stores.engine, path, info, table, stores.committer, stores.clock, ownership)
        try:
            return [(row, {column: value for column, value, _ in cells}) for row, cells in rows_of(region)]
        finally:
            region.close()

    def _warn_of_unnamed(self) -> None:
        """Warn of folders that no table names.  Blocks.

        Such a folder may be part of a table; only an operator may remove it.
        """
        tables = self.catalogue.tables.values()
        named = [info.encoded for entry in tables for info in entry.regions]
        named += [info.encoded for info in self.catalogue.dropped]
        unnamed = self.folders.unnamed(named)
        if unnamed:
            _log.warning(
                "%d folders under %s belong to no table, the first is %s; columnar repair moves them aside",
                len(unnamed),
                self.folders.root,
                unnamed[0],
            )

    async def begin_background_work(self) -> None:
        """Finish interrupted drops, and start splits by size.  Call when requests are served."""
        await self.changes.finish_drops()
        if not self._has_servers:
            self.region_changes.start()

    def follow_catalogue(self, unsound: Callable[[str], None], sound: Callable[[], None]) -> None:
        """Have ``unsound`` called with the reason if the catalogue becomes unwritable, and ``sound`` once repaired."""
        self._meta.on_unsound, self._meta.on_sound = unsound, sound

    async def sound(self) -> None:
        """Wait until the catalogue on disk equals the catalogue in memory."""
        await self._meta.sound()

    def stop_copies(self) -> None:
        """Stop copies under way before their next file."""
        self.snapshots.threads.stop_copies()

    async def stop_changes(self) -> None:
        """Begin no more splits or merges, and wait until those under way are finished or aborted."""
        await self.view_generations.close()
        await self.views.close()
        await self.region_changes.close()

    async def close(self, quiesce: Callable[[Region], Awaitable[None]]) -> None:
        """Close the catalogue.  Call when no region is open.

        ``quiesce`` returns when no write of a region waits for its fsync.
        """
        await self._meta.close(quiesce)


def _declaring() -> Declaring:
    from columnar.views import declaring  # most stores have no views

    return Declaring(declaring.declared, declaring.table_of)


async def _quiet(_region: Region) -> None:
    """Return immediately, because the region has no write under way."""
