"""A table of a backup, or as it was at a moment, in a staging folder from which a store adopts it under any name.

The catalogue in the backup says which regions the table had; only their files are fetched, each compared with its
checksum.  As in a snapshot the change log and its cursors are left out: the new table begins a log of its own, without
triggers.

Blocks; for a command.
"""

from __future__ import annotations

import os

from columnar.backup.backup_manifest import Backup, name_of
from columnar.backup.change_replay import replay_changes
from columnar.backup.repository import Progress, Repository
from columnar.backup.store_backup import catalogue_at
from columnar.errors import CallerError, DamagedData
from columnar.master import snapshot_manifest
from columnar.master.snapshot_manifest import MANIFEST, RegionCopy, SnapshotManifest
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.replace.region_copier import forget_log_at
from columnar.storage.data_folder import META, REGIONS
from columnar.storage.durable_files import sync_folder, write_durably
from columnar.storage.rocks import RocksEngine


def fetch_table(repository: Repository, backup: Backup, table: str, folder: str, progress: Progress) -> int:
    """Fetch the table's regions into ``folder``, with a manifest, ready to be adopted; return the bytes fetched.

    Raises CallerError if the backup does not have the table, and DamagedData if a file is missing or damaged.
    """
    schema, infos, total = _fetch_regions(repository, backup, table, folder, progress)
    _make_adoptable(folder, schema, infos, backup.taken_ms, backup.clock_ms)
    return total


def fetch_table_at(
    repository: Repository, moment_ms: int, table: str, folder: str, progress: Progress
) -> tuple[Backup, int, int]:
    """Fetch the table as it was at a moment: an earlier backup, and the changes that a later one has in its log.

    Returns the earlier backup, the bytes fetched and the number of changes.  Raises CallerError if no backup was taken
    before or after the moment, or the change log does not reach from one to the other.
    """
    earlier, later = _around(repository, moment_ms, table)
    schema, infos, size = _fetch_regions(repository, earlier, table, folder, progress)
    beside = os.path.join(folder, "later")
    os.mkdir(beside)
    later_schema, later_infos, more = _fetch_regions(repository, later, table, beside, progress)
    if schema.change_log_s is None or schema.families != later_schema.families:
        raise CallerError(
            f"table {table} had no CHANGE_LOG in backup {earlier.name}, or other families in {later.name}; restore one "
            "of these backups instead of a moment between them"
        )
    changes = replay_changes(RocksEngine(), schema, (folder, infos, earlier.taken_ms), (beside, later_infos), moment_ms)
    _make_adoptable(folder, schema, infos, earlier.taken_ms, later.clock_ms)
    return earlier, size + more, changes


def _around(repository: Repository, moment_ms: int, table: str) -> tuple[Backup, Backup]:
    """Return the last backup of the table before the moment, and the first one after it."""
    moment = name_of(moment_ms)  # names sort by age
    names = repository.names()
    earlier = next((one for one in reversed(names) if one <= moment), None)
    later = next((one for one in names if one > moment), None)
    if earlier is None or later is None:
        which = "before" if earlier is None else "after"
        advice = "" if earlier is None else ": make one now, which has the changes since the last one"
        raise CallerError(f"{repository.store.address} has no backup of {table} from {which} that moment{advice}")
    return repository.read_backup(earlier), repository.read_backup(later)


def _fetch_regions(
    repository: Repository, backup: Backup, table: str, folder: str, progress: Progress
) -> tuple[Table, list[RegionInfo], int]:
    """Fetch the stores of a table's regions; return its schema, its regions and their size."""
    catalogue = catalogue_at(_fetch_region(repository, backup, META, folder, progress)[0])
    entry = catalogue.tables.get(table)
    if entry is None or entry.schema.is_system:
        known = ", ".join(backup.tables) or "none"
        raise CallerError(f"backup {backup.name} has no table {table}; its tables are {known}")
    sizes = [_fetch_region(repository, backup, info.encoded, folder, progress)[1] for info in entry.regions]
    return entry.schema, list(entry.regions), sum(sizes)


def _make_adoptable(folder: str, schema: Table, infos: list[RegionInfo], taken_ms: int, clock_ms: int) -> None:
    """Remove the logs, and write the manifest by which a store adopts the regions."""
    for info in infos:
        forget_log_at(RocksEngine(), os.path.join(folder, info.encoded), schema)
    regions = tuple(RegionCopy(info.encoded, info.start, info.end, {}) for info in infos)
    manifest = SnapshotManifest("", taken_ms, schema, regions, clock_ms)
    write_durably(os.path.join(folder, MANIFEST), snapshot_manifest.to_json(manifest))


def _fetch_region(
    repository: Repository, backup: Backup, region: str, folder: str, progress: Progress
) -> tuple[str, int]:
    """Fetch the files of a region; return the path of its store, and its size."""
    prefix = f"{REGIONS}/{region}/"
    files = [file for file in backup.files if file.path.startswith(prefix)]
    if not files:
        raise DamagedData(f"backup {backup.name} has no files of region {region}; try an older one")
    path = os.path.join(folder, region)
    os.mkdir(path)
    for file in files:
        repository.fetch_file(file, os.path.join(path, os.path.basename(file.path)), progress)
    sync_folder(path)
    return path, sum(file.bytes for file in files)
