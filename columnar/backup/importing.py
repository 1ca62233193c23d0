"""An export becomes a new table: its regions are built as stores beside the server, which then adopts them at once.

No reader sees the table before it is whole: a run that was cut off leaves a folder in staging, which the server
removes, and can simply be begun again.

Blocks; for a command, in a process of its own.
"""

from __future__ import annotations

import os

from columnar.backup.cell_digest import CellDigest
from columnar.backup.export_manifest import ExportManifest
from columnar.backup.exporting import Progress, counted, part_cells
from columnar.backup.region_builder import build_region
from columnar.errors import DamagedData
from columnar.master import snapshot_manifest
from columnar.master.snapshot_manifest import RegionCopy, SnapshotManifest
from columnar.storage.api import Engine
from columnar.storage.durable_files import write_durably


def build_table(engine: Engine, folder: str, exported: ExportManifest, target: str, progress: Progress) -> CellDigest:
    """Build regions and manifest in ``target``, ready to be adopted.  Raises DamagedData if the export was changed."""
    whole = CellDigest()
    regions = []
    for part in exported.parts:
        name = part.file.partition(".")[0]
        digest = CellDigest()
        cells = counted(part_cells(folder, part), digest, progress)
        build_region(engine, os.path.join(target, name), exported.table, cells, exported.clock_ms)
        regions.append(RegionCopy(name, part.start, part.end, {}))
        whole.include(digest)
    if (whole.rows, whole.cells, whole.hex) != (exported.rows, exported.cells, exported.digest):
        raise DamagedData(f"{folder} is damaged: its cells are not those that were exported")
    manifest = SnapshotManifest("", exported.taken_ms, exported.table, tuple(regions), exported.clock_ms)
    write_durably(os.path.join(target, snapshot_manifest.MANIFEST), snapshot_manifest.to_json(manifest))
    return whole
