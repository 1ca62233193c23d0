"""Copies of a table's regions: for snapshots, and in staging folders for commands of this machine.

A copy has one store for each region, as the region was at the moment of its copy.  Each row is consistent; rows of
different regions are from different moments.  The table serves while it is copied.

Owned by the loop; all work on files runs in threads (``CopyThreads``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from columnar.clock import Clock
from columnar.errors import ColumnarError, IllegalArgument, NotServingRegion, TableNotFound, abbreviate
from columnar.master import snapshot_manifest
from columnar.master.catalogue import Catalogue
from columnar.master.schema_changes import SchemaChanges
from columnar.master.snapshot_manifest import MANIFEST, FileFacts, RegionCopy, SnapshotManifest
from columnar.master.staging import Staging
from columnar.model import region_messages as messages
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Peer
from columnar.model.schema import Table, table_name_text
from columnar.storage.data_folder import META, REGIONS
from columnar.storage.durable_files import sync_file, sync_folder, write_durably
from columnar.storage.file_copies import checksum, files_of
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks_errors import refused

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CopyTools:
    """Functions that work on copies on this machine, whoever made them."""

    copy_catalogue: Callable[[str], Awaitable[None]]  # copies it to this path
    forget_log: Callable[[str, Table], None]  # removes log and cursors from the copy at this path; blocks


class CopyThreads:
    """Threads that work on files of copies, until the server stops."""

    def __init__(self, folder: str) -> None:
        """``folder``: the data folder, for messages."""
        self._folder = folder
        self._stopping = False  # set on the loop, read in any thread

    def stop_copies(self) -> None:
        """Abort copies because the server stops: each ends at its next file, and its folder is removed."""
        self._stopping = True

    def check_not_stopping(self) -> None:
        """Raise NotServingRegion if the server is stopping.  May be called in any thread."""
        if self._stopping:
            raise NotServingRegion("the server is stopping; repeat it when it serves again")

    async def run_in_thread(self, work: Callable[[], T], *, tidying: bool = False) -> T:
        """Run ``work`` in a thread.  Raises HostError if the system refuses.

        Unless ``tidying``, raises NotServingRegion if the server is stopping.
        """
        if not tidying:
            self.check_not_stopping()
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work)
        except OSError as error:
            raise refused(error, f"copies under {self._folder}") from error


class TableCopies:
    def __init__(
        self,
        catalogue: Catalogue,
        changes: SchemaChanges,
        owner: Peer,
        folders: RegionFolders,
        threads: CopyThreads,
        tools: CopyTools,
        clock: Clock,
    ) -> None:
        self._catalogue = catalogue
        self._changes = changes
        self._owner = owner
        self._folders = folders
        self._threads = threads
        self._tools = tools
        self._clock = clock

    async def copy_table(self, name: str, table: bytes, folder: str) -> SnapshotManifest:
        """Copy a table's regions into ``folder``; none of the copies is verified yet."""
        async with self._changes.lock:
            text = table_name_text(table)
            if text not in self._catalogue.tables:
                raise TableNotFound(abbreviate(table))
            entry = self._catalogue.tables[text]
            if entry.schema.is_system and name:
                raise IllegalArgument(
                    f"{entry.schema.name} is a table of the system; 'columnar backup' takes all of them"
                )
            created_ms = self._clock()
            for info in entry.regions:
                self._threads.check_not_stopping()
                await self._copy_region(info, folder)
            regions = tuple(RegionCopy(info.encoded, info.start, info.end, {}) for info in entry.regions)
            return SnapshotManifest(name, created_ms, entry.schema, regions, self._clock())

    async def copy_everything(self, folder: str) -> None:
        """Copy all regions, then the catalogue.  Triggers pause and cannot be changed, as the catalogue names them."""
        async with self._changes.triggers.lock:
            await self._owner.request_peer(messages.PauseDeliveries())
            try:
                await self._copy_regions(os.path.join(folder, REGIONS))
            finally:
                await self._owner.request_peer(messages.ReleaseDeliveries())

    async def _copy_regions(self, folder: str) -> None:
        """Copy the system's tables first: a dead letter that they lack by then has its effect in the later copies."""
        async with self._changes.lock:
            await self._threads.run_in_thread(lambda: os.mkdir(folder))
            for entry in sorted(self._catalogue.tables.values(), key=lambda entry: not entry.schema.is_system):
                for info in entry.regions:
                    self._threads.check_not_stopping()
                    await self._copy_region(info, folder)
            await self._tools.copy_catalogue(os.path.join(folder, META))

    async def _copy_region(self, info: RegionInfo, folder: str) -> None:
        path = self._folders.shared_path(os.path.join(folder, info.encoded))
        await self._owner.request_peer(messages.CopyRegion(info, path))

    def finish_copies(self, manifest: SnapshotManifest, folder: str) -> SnapshotManifest:
        """Finish a snapshot, in a thread: remove logs, compute checksums, write the manifest."""
        regions = []
        for region in manifest.regions:
            path = os.path.join(folder, region.folder)
            self._threads.check_not_stopping()
            self._tools.forget_log(path, manifest.table)
            for name in files_of(path):
                sync_file(os.path.join(path, name))
            sync_folder(path)
            regions.append(replace(region, files=self._facts_of(path)))
        finished = replace(manifest, regions=tuple(regions))
        write_durably(os.path.join(folder, MANIFEST), snapshot_manifest.to_json(finished))
        return finished

    def _facts_of(self, folder: str) -> dict[str, FileFacts]:
        """Return size and checksum of each file of a store.  Call it in a thread."""
        found = {}
        for name in files_of(folder):
            self._threads.check_not_stopping()
            path = os.path.join(folder, name)
            found[name] = FileFacts(os.path.getsize(path), checksum(path))
        return found


class Staged(NamedTuple):
    token: str
    folder: str  # absolute


class StagedCopies:
    """Copies in staging folders, for commands of this machine."""

    def __init__(self, folder: str, copies: TableCopies, threads: CopyThreads) -> None:
        self.staging = Staging(folder)
        self._copies = copies
        self._threads = threads

    async def stage_copy(self, table: bytes) -> Staged:
        """Copy a table's regions, with a manifest, into a staging folder that the caller releases."""
        return await self._staged(lambda token: self._copy_into(token, table))

    async def stage_empty(self) -> Staged:
        return await self._staged(_nothing)

    async def stage_everything(self) -> Staged:
        """Copy all regions, and the catalogue that names exactly these, into ``regions`` of a staging folder."""
        return await self._staged(lambda token: self._copies.copy_everything(self.staging.path(token)))

    async def _staged(self, fill: Callable[[str], Awaitable[None]]) -> Staged:
        token = await self._threads.run_in_thread(self.staging.make)
        try:
            await fill(token)
        except (OSError, ColumnarError):
            await self.release_staged(token)
            raise
        return Staged(token, self.staging.hand_out(token))

    async def _copy_into(self, token: str, table: bytes) -> None:
        manifest = await self._copies.copy_table("", table, self.staging.path(token))
        path = self.staging.path(token, MANIFEST)
        await self._threads.run_in_thread(lambda: write_durably(path, snapshot_manifest.to_json(manifest)))

    async def release_staged(self, token: str) -> None:
        await self._threads.run_in_thread(lambda: self.staging.remove_staged(token), tidying=True)


async def _nothing(_token: str) -> None:
    pass
