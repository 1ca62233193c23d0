"""Snapshots of a table: take, list, clone, restore, delete.

A snapshot is a copy of each region (``table_copies``).  Table files are shared with the table by hard links, so a
snapshot costs as much disk as the table changes afterwards.  Change log and cursors are not copied: a clone and a
restored table begin a log of their own.

Each change is wholly done or wholly undone after a crash:
    take      is made under ``NAME.TOKEN.taking`` and renamed last, acknowledged when the name is on disk
    clone     its regions are in the catalogue as dropped, until one write of the catalogue gives them to the table
    restore   as a clone; the same write drops the regions that the table had
    delete    renames to ``NAME.deleting`` first, and removes files when that is on disk

A thread of an earlier leader may still be at work on a snapshot that its leader began to take.  It knows only the name
with its own TOKEN, and what is half done is renamed before it is removed: nothing that lacks a file gets the name NAME.

Owned by the loop; all work on files runs in threads.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from columnar.clock import Clock
from columnar.errors import (
    CallerError,
    IllegalArgument,
    NotAllowed,
    SnapshotExists,
    SnapshotNotFound,
)
from columnar.master import snapshot_manifest
from columnar.master.catalogue import Catalogue
from columnar.master.schema_changes import SchemaChanges, check_groups_whole, check_not_kept, check_regions
from columnar.master.snapshot_manifest import MANIFEST, SnapshotManifest
from columnar.master.table_copies import CopyThreads, CopyTools, StagedCopies, TableCopies
from columnar.model.region_messages import Peer
from columnar.model.schema import Table, checked_table_name, namespace_of
from columnar.storage.data_folder import SNAPSHOTS, STAGING
from columnar.storage.durable_files import make_lasting_within, rename_durably
from columnar.storage.file_copies import (
    check_file,
    dispose_tree,
    link_folder,
    remove_tree,
)
from columnar.storage.region_folders import RegionFolders

_log = logging.getLogger(__name__)

_NAME: Final = re.compile(r"[A-Za-z0-9_][\w.-]{0,99}", re.ASCII)
_TAKING: Final = ".taking"
_DELETING: Final = ".deleting"


class Snapshots:
    def __init__(
        self,
        folder: str,
        catalogue: Catalogue,
        changes: SchemaChanges,
        owner: Peer,
        folders: RegionFolders,
        tools: CopyTools,
        clock: Clock,
    ) -> None:
        self._folder = os.path.join(folder, SNAPSHOTS)
        self._region_folders = folders
        self.threads = self._threads = CopyThreads(folder)
        self._copies = TableCopies(catalogue, changes, owner, folders, self._threads, tools, clock)
        self.staged = StagedCopies(os.path.join(folder, STAGING), self._copies, self._threads)
        self._catalogue = catalogue
        self._changes = changes
        self._clock = clock
        self._in_use: Counter[str] = Counter()

    def sweep(self) -> None:
        """Remove what a crash left half done.  Call it at the start, before the first request; it blocks."""
        self.staged.staging.sweep(0.0)
        if os.path.isdir(self._folder):
            for name in os.listdir(self._folder):
                if name.endswith(_TAKING):
                    dispose_tree(os.path.join(self._folder, name), _DELETING)
                elif name.endswith(_DELETING):
                    remove_tree(os.path.join(self._folder, name), missing_ok=True)

    # --- take, list, delete ------------------------------------------------------------------------

    async def take_snapshot(self, name: str, table: bytes) -> SnapshotManifest:
        """Take a snapshot; it is whole on disk when this returns.  Raises SnapshotExists or TableNotFound."""
        checked_name(name)
        if self._in_use[name]:
            raise CallerError(f"snapshot {name} is in use by another command; wait until it has ended")
        with self._using(name):
            if await self._threads.run_in_thread(partial(os.path.exists, self._path(name))):
                raise SnapshotExists(f"snapshot {name} exists already; delete it first, or choose another name")
            work = f"{self._path(name)}.{secrets.token_hex(4)}{_TAKING}"
            try:
                await self._threads.run_in_thread(lambda: self._begun(work))
                manifest = await self._copies.copy_table(name, table, work)
                manifest = await self._threads.run_in_thread(lambda: self._copies.finish_copies(manifest, work))
                await self._threads.run_in_thread(lambda: rename_durably(work, self._path(name)))
            finally:
                await self._threads.run_in_thread(lambda: dispose_tree(work, _DELETING), tidying=True)
        _log.info("snapshot %s of %s: %d bytes", name, manifest.table.name, manifest.size_bytes)
        return manifest

    def _begun(self, work: str) -> None:
        """Make the empty folder ``work``."""
        make_lasting_within(self._folder)
        os.mkdir(work)

    async def all(self) -> list[SnapshotManifest]:
        """List the snapshots by name."""
        return await self._threads.run_in_thread(self._listed)

    def _listed(self) -> list[SnapshotManifest]:
        if not os.path.isdir(self._folder):
            return []
        return [
            self._read(name) for name in sorted(os.listdir(self._folder)) if _NAME.fullmatch(name) and self._is(name)
        ]

    def _is(self, name: str) -> bool:
        return not name.endswith((_TAKING, _DELETING)) and os.path.exists(os.path.join(self._path(name), MANIFEST))

    async def delete(self, name: str) -> None:
        checked_name(name)
        if self._in_use[name]:
            raise CallerError(f"snapshot {name} is in use by another command; wait until it has ended")
        with self._using(name):
            await self._threads.run_in_thread(lambda: self._remove(name))
        _log.info("snapshot %s deleted", name)

    def _remove(self, name: str) -> None:
        """Delete the snapshot.  The rename is on disk before a file is removed: a power cut leaves all or nothing."""
        if not self._is(name):
            raise SnapshotNotFound(f"there is no snapshot {name}; 'columnar snapshot list' shows those there are")
        doomed = self._path(name) + _DELETING
        rename_durably(self._path(name), doomed)
        remove_tree(doomed)

    # --- clone and restore -------------------------------------------------------------------------

    async def clone(self, name: str, table: bytes) -> None:
        """Make a table with the snapshot's schema and rows; no trigger follows it.

        Raises TableExists or SnapshotNotFound.
        """
        text = checked_table_name(table)
        async with self._verified(name) as manifest, self._changes.lock:
            self._changes.check_free(text)
            await self._adopt(self._path(name), manifest, replace(manifest.table, name=text, kept_by=""))
        _log.info("table %s cloned from snapshot %s", text, name)

    async def restore(self, name: str) -> None:
        """Restore the snapshot's table to its state in the snapshot, also if the table was dropped.

        Raises CallerError if triggers watch the table: the rows that they derived would no longer equal a
        recomputation.
        """
        async with self._verified(name) as manifest, self._changes.triggers.lock, self._changes.lock:
            table = manifest.table.name
            watchers = self._changes.triggers.watchers(table)
            if watchers:
                names = ", ".join(one.name for one in watchers)
                raise CallerError(
                    f"table {table} is watched by {names}: what they derive from it would be wrong after "
                    "a restore. Remove them with 'columnar trigger remove', restore, empty what they derived, and add "
                    "them again from the beginning"
                )
            self._check_views(table)
            if table in self._catalogue.tables:
                self._changes.check_namespace(namespace_of(table))
            else:
                self._changes.check_free(table)  # a dropped table counts as an additional table of its namespace
            await self._adopt(self._path(name), manifest, replace(manifest.table, kept_by=""))
        _log.info("table %s restored from snapshot %s", table, name)

    def _check_views(self, table: str) -> None:
        """Raise NotAllowed if ``table`` is a view, or if a view reads it.

        Raises it too if readers of a view see a different table by the name ``table``.
        """
        entry = self._catalogue.tables.get(table)
        if entry is not None:
            check_not_kept(entry.schema, "restored")
        if self._catalogue.derivations.views.swap_of(table) is not None:
            raise NotAllowed(
                f"{table} is a view and is not restored as a table: drop it with columnar view drop {table}"
            )
        feeds = self._catalogue.derivations.feeds.readers(table)
        if feeds:
            feed = feeds[0].name
            raise NotAllowed(
                f"table {table} is not restored: feed {feed} would not hear of it; drop the feed "
                f"(columnar feed drop {feed}), restore, and add it again --from beginning"
            )
        readers = self._catalogue.derivations.views.readers(table)
        if readers:
            view = readers[0].name
            raise NotAllowed(
                f"table {table} is not restored: view {view} would no longer follow from it; drop the view "
                f"(columnar view drop {view}), restore, and add the view again"
            )

    async def adopt_staged(self, token: str, table: bytes) -> None:
        """Make a table out of regions that a command built in staging, with a manifest beside them."""
        text = checked_table_name(table)
        path = self.staged.staging.known(token)
        manifest = await self._threads.run_in_thread(lambda: _read_manifest(path))
        async with self._changes.lock:
            self._changes.check_free(text)
            await self._adopt(path, manifest, replace(manifest.table, name=text, kept_by=""))
        await self._threads.run_in_thread(lambda: self.staged.staging.remove_staged(token))
        _log.info("table %s imported", text)

    async def _adopt(self, folder: str, manifest: SnapshotManifest, table: Table) -> None:
        """Make the copies a table's regions; the caller holds the lock.

        The store's clock is set forward to the clock that stamped the rows, if it is behind that.
        """
        before = self._catalogue.tables.get(table.name)
        more = len(manifest.ranges) - (len(before.regions) if before is not None else 0)
        check_regions(self._catalogue, table.name, more)
        check_groups_whole(table, [start for start, _ in manifest.ranges])
        self._clock.observe(manifest.clock_ms)
        async with self._changes.announced(table.name, manifest.ranges) as regions:
            for copy, info in zip(manifest.regions, regions, strict=True):
                source, target = os.path.join(folder, copy.folder), self._region_folders.path(info.encoded)
                await self._threads.run_in_thread(partial(link_folder, source, target))
        async with self._changes.losing(table.name):
            old = await self._catalogue.adopt(table, regions)
        await self._changes.publish(self._catalogue.tables[table.name])
        if old:
            await self._changes.close_dropped(old)

    @asynccontextmanager
    async def _verified(self, name: str) -> AsyncIterator[SnapshotManifest]:
        """Yield the manifest after comparing every file with it; the snapshot cannot be deleted meanwhile."""
        checked_name(name)
        with self._using(name):
            yield await self._threads.run_in_thread(lambda: self._verify(name))

    def _verify(self, name: str) -> SnapshotManifest:
        manifest = self._read(name)
        for region in manifest.regions:
            for file, facts in region.files.items():
                self._threads.check_not_stopping()
                check_file(os.path.join(self._path(name), region.folder, file), facts.size_bytes, facts.sha256)
        return manifest

    # --- names and files ---------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _read(self, name: str) -> SnapshotManifest:
        if not self._is(name):
            raise SnapshotNotFound(f"there is no snapshot {name}; 'columnar snapshot list' shows those there are")
        return _read_manifest(self._path(name))

    @contextmanager
    def _using(self, name: str) -> Iterator[None]:
        self._in_use[name] += 1
        try:
            yield
        finally:
            self._in_use[name] -= 1


def checked_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name.endswith((_TAKING, _DELETING)):
        raise IllegalArgument(f"snapshot name '{name[:40]}': use up to 100 letters, digits, '_', '-' and '.'")
    return name


def _read_manifest(folder: str) -> SnapshotManifest:
    path = os.path.join(folder, MANIFEST)
    with open(path, "rb") as file:
        return snapshot_manifest.from_json(file.read(), path)
