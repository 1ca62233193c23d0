"""A copy of a table (``master.snapshots``) into a folder that any version and any machine can read.

Blocks; for a command, in a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from columnar.backup import export_manifest
from columnar.backup.cell_blocks import MAGIC, ExportedCell, packed_block, read_cells, unpacked_blocks
from columnar.backup.cell_digest import CellDigest
from columnar.backup.export_manifest import MANIFEST, ExportManifest, Part
from columnar.backup.region_reader import cells_of
from columnar.errors import CallerError, DamagedData, HostError
from columnar.master import snapshot_manifest
from columnar.master.snapshot_manifest import RegionCopy, SnapshotManifest
from columnar.regions.read.family_view import views_of
from columnar.storage.api import Engine
from columnar.storage.durable_files import HALF, sync_file, sync_folder, write_durably
from columnar.storage.folders import make_private

Progress = Callable[[int], None]  # bytes of values since the last call
PROGRESS_CELLS: Final = 2_000


def copy_manifest(folder: str) -> SnapshotManifest:
    """Read the manifest of the copy of a table in ``folder``."""
    path = os.path.join(folder, snapshot_manifest.MANIFEST)
    with open(path, "rb") as file:
        return snapshot_manifest.from_json(file.read(), path)


def empty_folder_for_export(folder: str) -> None:
    """Make the folder if missing; remove what a cut-off export left.  Raises CallerError if it has other files."""
    make_private(folder)
    present = os.listdir(folder)
    if any(not (name.startswith("part-") and name.endswith(".cells")) and name != MANIFEST + HALF for name in present):
        raise CallerError(f"the folder {folder} is not empty; choose another, or empty it first")
    for name in present:
        os.remove(os.path.join(folder, name))


def export_table(engine: Engine, copy: str, folder: str, progress: Progress) -> ExportManifest:
    """Write a part for each region, and the manifest last."""
    manifest = copy_manifest(copy)
    empty_folder_for_export(folder)
    whole = CellDigest()
    parts = []
    for number, region in enumerate(manifest.regions):
        digest = CellDigest()
        name = f"part-{number:05}.cells"
        cells = _region_cells(engine, copy, manifest, region)
        size = _write_part(os.path.join(folder, name), counted(cells, digest, progress))
        parts.append(Part(name, region.start, region.end, size, digest.rows, digest.cells))
        whole.include(digest)
    counts = whole.rows, whole.cells, whole.hex
    exported = ExportManifest(manifest.created_ms, manifest.table, *counts, tuple(parts), manifest.clock_ms)
    sync_folder(folder)
    write_durably(os.path.join(folder, MANIFEST), export_manifest.to_json(exported))
    return exported


def digest_of(engine: Engine, copy: str, progress: Progress) -> CellDigest:
    """Compute the digest of the copy of a table in ``copy``."""
    manifest = copy_manifest(copy)
    whole = CellDigest()
    for region in manifest.regions:
        digest = CellDigest()
        for _ in counted(_region_cells(engine, copy, manifest, region), digest, progress):
            pass
        whole.include(digest)
    return whole


def read_manifest(folder: str) -> ExportManifest:
    """Read the manifest of an export.  Raises HostError if there is none, or it was cut off."""
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, "rb") as file:
            return export_manifest.from_json(file.read(), path)
    except FileNotFoundError:
        raise HostError(f"{folder} holds no whole export: it has no {MANIFEST}; export the table again") from None
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from error


def part_cells(folder: str, part: Part) -> Iterator[ExportedCell]:
    """Yield every cell of a part.  Raises DamagedData if the part is not whole."""
    path = os.path.join(folder, part.file)
    try:
        with open(path, "rb") as file:
            count = 0
            for cell in read_cells(file, path):
                count += 1
                yield cell
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from error
    if count != part.cells:
        raise DamagedData(f"{path} holds {count} cells; its manifest says {part.cells}")


def counted(cells: Iterator[ExportedCell], digest: CellDigest, progress: Progress) -> Iterator[ExportedCell]:
    """Yield the cells, and add each to ``digest``."""
    reported = 0
    for number, cell in enumerate(cells, 1):
        digest.add(cell)
        yield cell
        if number % PROGRESS_CELLS == 0:
            progress(digest.value_bytes - reported)
            reported = digest.value_bytes
    progress(digest.value_bytes - reported)


def _region_cells(engine: Engine, copy: str, manifest: SnapshotManifest, region: RegionCopy) -> Iterator[ExportedCell]:
    store = engine.open_reading(os.path.join(copy, region.folder))
    try:
        yield from cells_of(store, views_of(manifest.table), manifest.created_ms, region.start, region.end)
    finally:
        store.close()


def _write_part(path: str, cells: Iterator[ExportedCell]) -> int:
    """Write a part; a block is packed in a thread while the next one is read."""
    with open(path, "wb") as file, ThreadPoolExecutor(1) as packer:
        file.write(MAGIC)
        packing: Future[bytes] | None = None
        for block in unpacked_blocks(cells):
            before, packing = packing, packer.submit(packed_block, block)
            if before is not None:
                file.write(before.result())
        if packing is not None:
            file.write(packing.result())
        size = file.tell()
    sync_file(path)
    return size
