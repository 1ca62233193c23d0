"""A backup of a whole store: which files it has, and a data folder made of it.

A copy of a region has all writes that its server's log had.  The catalogue of a backup still names the servers, and the
folder of each named server must exist (``storage.server_folders``).

A restored store begins a new timeline (``regions.log.lost_changes``): it gives no sequence of a change, and no id of a
region, that the store gave after the backup, so positions and tokens from then are recognised.

Blocks; for a command.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final

from columnar import clock
from columnar.backup.backup_manifest import Backup
from columnar.backup.claims import claimed
from columnar.backup.region_reader import read_rows, rows_in
from columnar.backup.repository import Progress, Repository
from columnar.backup.saving import Saving
from columnar.errors import CallerError, HostError
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.log.lost_changes import Timeline, begin_timeline
from columnar.regions.read.family_view import views_of
from columnar.regions.region import spaces_of
from columnar.regions.spaces import options_of_spaces
from columnar.regions.write.drafting import FUTURE
from columnar.regions.write.ingestion import undo_cut_off
from columnar.regions.write.row_draft import RowDraft
from columnar.storage.api import Engine, Store
from columnar.storage.data_folder import META, REGIONS
from columnar.storage.durable_files import make_private, rename_durably, sync_folder, write_durably
from columnar.storage.file_copies import files_of
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_opening import begin_opening
from columnar.storage.server_folders import STANDALONE, make_spent

if TYPE_CHECKING:
    from columnar.master.catalogue import Catalogue
    from columnar.model.mutation import RowMutation
    from columnar.model.schema import Table
    from columnar.model.trigger_registration import Registration

_SEQUENCE: Final = 0  # of cells that no mutation of a region wrote


def save_store(
    repository: Repository, copy: str, data: str, tables: Iterable[str], taken_ms: int, progress: Progress
) -> tuple[Backup, Counter[str]]:
    """Save a backup: ``regions`` from ``copy``, everything else from the data folder ``data``.

    Raises DamagedData if a region of the copy lost synced data, and CallerError while backups are being removed.
    """
    with claimed(repository.store, "saving") as claim:
        saving = Saving.begun(repository, claim, progress)
        for name in ("FORMAT", "cluster-id"):
            saving.add_file(os.path.join(data, name), name)
        for region in sorted(os.listdir(os.path.join(copy, REGIONS))):
            folder = os.path.join(copy, REGIONS, region)
            begin_opening(folder, reads_only=True)  # it may not have been opened since it was damaged
            for name in files_of(folder):
                saving.add_file(os.path.join(folder, name), f"{REGIONS}/{region}/{name}")
        clock_ms = clock.read(data) or taken_ms  # after the copies were made
        return saving.finish(tuple(sorted(tables)), taken_ms, clock_ms), saving.done


def restore_store(
    repository: Repository, backup: Backup, data: str, progress: Progress, *, paused: bool = False
) -> list[Registration]:
    """Restore a data folder to ``data``, whole or not at all; every byte is compared with its checksum.

    Returns the triggers and served queues that deliver from the store's start on, by name; or, if ``paused``, those
    that would and are paused.  Raises CallerError if ``data`` is not empty.
    """
    data = os.path.abspath(data)
    if os.path.isdir(data) and os.listdir(data):
        raise CallerError(f"{data} is not empty: a backup is restored into a new folder; choose another --data")
    half = data + ".restoring"
    shutil.rmtree(half, ignore_errors=True)
    try:
        delivering = _restore_into(half, repository, backup, progress, paused=paused)
        if os.path.isdir(data):
            os.rmdir(data)
        rename_durably(half, data)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)  # remains on a full disk
        raise
    return delivering


def _restore_into(
    half: str, repository: Repository, backup: Backup, progress: Progress, *, paused: bool
) -> list[Registration]:
    make_private(half)
    for file in backup.files:
        target = os.path.join(half, *file.path.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        repository.fetch_file(file, target, progress)
    write_durably(os.path.join(half, clock.NAME), clock.packed(backup.clock_ms))
    make_folders_of_servers(half)
    delivering = _begin_timeline(half, max(backup.clock_ms, time.time_ns() // 1_000_000), paused=paused)
    for folder, _, _ in os.walk(half):
        sync_folder(folder)
    return delivering


def make_folders_of_servers(data: str) -> None:
    """Make the folders of the servers that the catalogue names.  Blocks.  Raises HostError or DamagedData."""
    from columnar.master.dead_servers import named_in

    path = os.path.join(data, REGIONS, META)
    if not RocksEngine().exists(path):
        return  # a backup of nothing
    named = [str(one) for one in sorted(named_in(catalogue_at(path), data)) if one.name != STANDALONE]
    try:
        make_spent(data, named)
    except OSError as error:
        raise HostError(f"cannot make folders in {data}: {error.strerror}") from error


def _begin_timeline(data: str, now_ms: int, *, paused: bool) -> list[Registration]:
    """Begin a new timeline in the catalogue and in each region of the folder; return what delivers, or is paused.

    ``now_ms``: at or above the clock of the store that wrote the folder.  Costs an opening of each region.  Raises
    HostError or DamagedData.
    """
    engine = RocksEngine()
    path = os.path.join(data, REGIONS, META)
    if not engine.exists(path):
        return []  # a backup of nothing
    catalogue = catalogue_at(path)
    timeline = Timeline.from_restore(now_ms, catalogue.next_region_id)
    triggers = catalogue.derivations.triggers
    delivering = [one.registration for one in triggers.usable() if one.state == "running"]

    async def change(held: Catalogue) -> None:
        await held.raise_ids(timeline.first_id)
        resting = held.derivations.triggers
        for one in delivering if paused else ():
            resting = resting.with_state(one.name, "paused")
        await held.derivations.write_derivations(resting)

    change_catalogue(engine, data, now_ms, change)
    for entry in catalogue.tables.values():
        for info in entry.regions:
            path = os.path.join(data, REGIONS, info.encoded)
            if not engine.has_folder(path):
                continue  # the region's opening reports it
            store = engine.open_store(path, spaces_of(entry.schema), options_of_spaces(entry.schema))
            try:
                begin_timeline(store, info.region_id, timeline)
            finally:
                store.close()
    return delivering


def catalogue_at(path: str) -> Catalogue:
    """Return the catalogue in the store at ``path``, to be read only.  Blocks.  Raises HostError or DamagedData."""
    from columnar.master.catalogue import META_SCHEMA, Catalogue, strays

    _, rows = strays(read_rows(RocksEngine(), path, META_SCHEMA))
    return Catalogue(rows, _no_writes)


async def _no_writes(_mutations: list[RowMutation]) -> None:
    raise AssertionError("the catalogue is only read")


def change_catalogue(
    engine: Engine, data: str, now_ms: int, change: Callable[[Catalogue], Coroutine[Any, Any, None]]
) -> None:
    """Change the catalogue of a data folder that no process serves, as a master would.  Blocks.

    ``now_ms``: at or above the clock of the store that wrote the catalogue.  Every change is on disk on return.  Raises
    HostError or DamagedData.
    """
    from columnar.master.catalogue import META_SCHEMA, Catalogue, strays

    path = os.path.join(data, REGIONS, META)
    store = engine.open_store(path, spaces_of(META_SCHEMA), options_of_spaces(META_SCHEMA))
    try:
        undo_cut_off(store, views_of(META_SCHEMA))
        writes = _CatalogueWrites(store, META_SCHEMA, now_ms)
        _, rows = strays(rows_in(store, META_SCHEMA))
        coroutine = change(Catalogue(rows, writes.write))
        try:
            coroutine.send(None)  # nothing in it waits
        except StopIteration:
            pass
        else:
            raise AssertionError("a change of a catalogue that no process serves waits for nothing")
        store.sync()
    finally:
        store.close()


class _CatalogueWrites:
    """Owned by one thread."""

    def __init__(self, store: Store, schema: Table, now_ms: int) -> None:
        self._store = store
        self._now_ms = now_ms
        self._views = views_of(schema)

    async def write(self, mutations: list[RowMutation]) -> None:
        """Write the mutations in one batch."""
        batch = self._store.batch()
        for mutation in mutations:
            draft = RowDraft(
                self._store, self._views, mutation.row, now_ms=self._now_ms, sequence=_SEQUENCE, markers=False,
                logged=False,
            )  # fmt: skip
            for operation in mutation.operations:
                draft.apply(operation)
            draft.emit(batch)
        known = int.from_bytes(self._store.get(META_SPACE, FUTURE) or b"", "big")
        batch.put(META_SPACE, FUTURE, max(known, self._now_ms).to_bytes(8, "big"))
        self._store.write_batch(batch)
