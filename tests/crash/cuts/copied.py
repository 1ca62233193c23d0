"""Copies that a cut left, checked by the store's own code: every listed copy must be whole.

A snapshot, an export or a backup exists if its manifest does, a restored data folder if it has its name.  Each existing
copy is compared with its checksums and read from end to end, whether it had been acknowledged or not.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from columnar.backup.folder_store import FolderStore
from columnar.backup.repository import Repository
from columnar.backup.store_backup import restore_store
from columnar.backup.table_export import CellDigest, part_cells, read_manifest
from columnar.errors import CallerError, ColumnarError
from columnar.master import snapshot_manifest
from columnar.master.snapshot_manifest import MANIFEST
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.storage.file_copies import check_file
from tests.crash.cuts.copying import BACK, BACKUP, BACKUPS, EXPORT, EXPORTS, RESTORED, SNAPSHOT
from tests.crash.cuts.recording import DATA

SNAPSHOTS: Final = f"{DATA}/snapshots/"
_HALF: Final = (".taking", ".deleting", ".restoring")

Files = Mapping[str, bytes]
Rows = dict[bytes, dict[bytes, bytes]]
ReadRegion = Callable[[Files, Table, RegionInfo], Rows]
ReadStore = Callable[[Files], Rows]


class Damaged(Exception):
    """A copy that is listed and cannot be used."""


class Copies:
    """The reader of copies, owned by one thread; ``read_region`` and ``read_store`` open files, and raise Damaged."""

    def __init__(self, folder: Path, read_region: ReadRegion, read_store: ReadStore) -> None:
        self._folder = folder
        self._read_region = read_region
        self._read_store = read_store
        self._seen: dict[object, Rows | str] = {}

    def found(self, files: Files) -> Iterator[tuple[bytes, Rows]]:
        """Yield name and rows of each copy."""
        for name, held in _in_folders(files, SNAPSHOTS):
            if MANIFEST in held:
                yield SNAPSHOT + name.encode(), self._once(held, lambda held=held: self._snapshot(held))
        for name, held in _in_folders(files, f"{EXPORTS}/"):
            if MANIFEST in held:
                yield EXPORT + name.encode(), self._once(held, lambda held=held: self._export(held))
        for name, held in _in_folders(files, f"{RESTORED}/"):
            yield BACK + name.encode(), self._once(held, lambda held=held: self._read_store(held))
        yield from self._backups(_under(files, f"{BACKUPS}/"))

    def _once(self, files: Files, look: Callable[[], Rows]) -> Rows:
        """Return the rows of a copy, read once, because most cuts leave most copies as the previous cut left them."""
        key = frozenset((name, len(data), hash(data)) for name, data in files.items())
        found = self._seen.get(key)
        if found is None:
            try:
                found = self._seen[key] = look()
            except (ColumnarError, Damaged) as error:
                found = self._seen[key] = str(error) or type(error).__name__
        if isinstance(found, str):
            raise Damaged(found)
        return found

    def _snapshot(self, files: Files) -> Rows:
        folder = self._written(files)
        manifest = snapshot_manifest.from_json(files[MANIFEST], MANIFEST)
        rows: Rows = {}
        for region in manifest.regions:
            for name, facts in region.files.items():
                check_file(str(folder / region.folder / name), facts.size_bytes, facts.sha256)
            info = RegionInfo(manifest.table.name, 0, region.start, region.end)
            rows.update(self._read_region(_under(files, f"{region.folder}/"), manifest.table, info))
        return rows

    def _export(self, files: Files) -> Rows:
        folder = str(self._written(files))
        manifest = read_manifest(folder)
        digest, rows = CellDigest(), Rows()
        for part in manifest.parts:
            for cell in part_cells(folder, part):
                digest.add_cell(cell)
                row, family, qualifier, _, _, value = cell
                rows.setdefault(row, {}).setdefault(family + b":" + qualifier, value)  # the newest comes first
        if (digest.rows, digest.cells, digest.hex) != (manifest.rows, manifest.cells, manifest.digest):
            raise Damaged("the export's cells are not those of its manifest")
        return rows

    def _backups(self, files: Files) -> Iterator[tuple[bytes, Rows]]:
        """Yield for each backup the rows of the source in the store that is restored from it."""
        try:
            names = self._repository(files).names()
        except CallerError:
            return  # the folder itself was being made
        for name in names:
            needed = {place: data for place, data in files.items() if not place.startswith("backups/")}
            needed["backup"] = files[f"backups/{name}.json"]
            yield BACKUP + name.encode(), self._once(needed, lambda name=name: self._backup(files, name))

    def _backup(self, files: Files, name: str) -> Rows:
        source, target = self._repository(files), self._folder / "restored"
        shutil.rmtree(target, ignore_errors=True)
        restore_store(source, source.read_backup(name), str(target), lambda _: None)
        held = {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}
        return self._read_store(held)

    def _repository(self, files: Files) -> Repository:
        return Repository.opened(FolderStore(str(self._written(files))), None)

    def _written(self, files: Files) -> Path:
        folder = self._folder / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        write_files(folder, files)
        return folder


def write_files(folder: Path, files: Files) -> None:
    folder.mkdir(parents=True)
    for name, data in files.items():
        path = folder / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _under(files: Files, prefix: str) -> dict[str, bytes]:
    return {path[len(prefix) :]: data for path, data in files.items() if path.startswith(prefix) and path != prefix}


def _in_folders(files: Files, prefix: str) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield each folder directly under ``prefix``, except half-done ones by their names."""
    by_name: dict[str, dict[str, bytes]] = {}
    for path, data in _under(files, prefix).items():
        name, _, rest = path.partition("/")
        if not name.endswith(_HALF):
            by_name.setdefault(name, {})[rest] = data
    yield from by_name.items()
