"""Exports: a copy of a table (``master.snapshots``) in a folder that any version and machine can import.

Blocks; for a command, in a process of its own.

``manifest.json`` has the schema of the table, its parts, and their contents:

    {"format": "columnar-export 1", "taken_ms": ..., "clock_ms": ..., "table": SCHEMA, "rows": N, "cells": N,
     "digest": HEX, "parts": [{"file": ..., "start": HEX, "end": HEX, "bytes": N, "rows": N, "cells": N}]}

``clock_ms`` is the highest timestamp that the store had given when the copy was made; older manifests lack it, and
readers use ``taken_ms`` instead.  SCHEMA is the table's JSON as in the catalogue.  Each part is a file of cells
(``cell_blocks``) with the rows ``start <= row < end`` of one region.  The manifest is written last: a folder without a
manifest is not a whole export.

Format versions, append only: 1 as above.
Golden bytes: tests/golden/export-manifest.txt; the page: docs/formats/backups.md.

Two tables have the same digest if, and practically only if, they have the same cells:

    digest := sum of SHA-256(cell) modulo 2^256, in hex
    cell   := row-length:u16 row family-length:u8 qualifier-length:u32 family qualifier
              timestamp:u64 ttl_ms:u64 (0: none) value                          integers big-endian

A sum does not depend on order, so the digests of regions, files and families can be computed separately and added;
neither the splits of a table nor its machine change the digest.  The digest is meant to find accidents, not cells that
are forged on purpose.

Golden: tests/golden/cell-digests.txt.

An import builds the regions of a new table as stores beside the server, which then adopts them at once.  No reader sees
the table before it is whole.  An import that was cut off leaves a folder in staging, which the server removes, and can
simply be repeated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from struct import Struct
from typing import Any, Final

from columnar.backup.cell_blocks import MAGIC, ExportedCell, packed_block, read_cells, unpacked_blocks
from columnar.backup.region_builder import build_region
from columnar.backup.region_reader import cells_of
from columnar.errors import CallerError, DamagedData, HostError
from columnar.master import snapshot_manifest
from columnar.master.snapshot_manifest import RegionCopy, SnapshotManifest
from columnar.model import schema
from columnar.model.schema import Table
from columnar.regions.read.family_view import views_of
from columnar.storage.api import Engine
from columnar.storage.durable_files import HALF, make_private, sync_file, sync_folder, write_durably

_MODULUS: Final = 1 << 256
_ROW: Final = Struct(">H")
_QUALIFIER: Final = Struct(">BI")
_STAMP: Final = Struct(">QQ")


class CellDigest:
    """The counts and the digest of cells; owned by one thread."""

    __slots__ = ("_last_row", "_sum", "cells", "rows", "value_bytes")

    def __init__(self) -> None:
        self._sum = 0
        self._last_row: bytes | None = None
        self.rows = 0
        self.cells = 0
        self.value_bytes = 0

    def add_cell(self, cell: ExportedCell) -> None:
        """Add a cell.  The cells of one row must come one after the other, because rows are counted so."""
        row, family, qualifier, timestamp, ttl_ms, value = cell
        head = _ROW.pack(len(row)) + row + _QUALIFIER.pack(len(family), len(qualifier)) + family + qualifier
        data = head + _STAMP.pack(timestamp, ttl_ms or 0) + value
        self._sum += int.from_bytes(sha256(data).digest(), "big")
        self.cells += 1
        self.value_bytes += len(value)
        if row != self._last_row:
            self._last_row = row
            self.rows += 1

    def include(self, other: CellDigest) -> None:
        """Add the counts and the digest of ``other``, which has different rows."""
        self._sum += other._sum
        self.rows += other.rows
        self.cells += other.cells
        self.value_bytes += other.value_bytes

    @property
    def hex(self) -> str:
        return f"{self._sum % _MODULUS:064x}"


FORMAT: Final = "columnar-export 1"
MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class Part:
    file: str
    start: bytes
    end: bytes
    size_bytes: int
    rows: int
    cells: int


@dataclass(frozen=True, slots=True)
class ExportManifest:
    taken_ms: int
    table: Table
    rows: int
    cells: int
    digest: str
    parts: tuple[Part, ...]
    clock_ms: int

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)


def to_json(manifest: ExportManifest) -> bytes:
    plain = {
        "format": FORMAT,
        "taken_ms": manifest.taken_ms,
        "clock_ms": manifest.clock_ms,
        "table": json.loads(schema.to_json(manifest.table)),
        "rows": manifest.rows,
        "cells": manifest.cells,
        "digest": manifest.digest,
        "parts": [
            {
                "file": part.file,
                "start": part.start.hex(),
                "end": part.end.hex(),
                "bytes": part.size_bytes,
                "rows": part.rows,
                "cells": part.cells,
            }
            for part in manifest.parts
        ],
    }
    return json.dumps(plain, indent=1, sort_keys=True).encode() + b"\n"


def from_json(data: bytes, path: str) -> ExportManifest:
    """Return the manifest in ``data``; ``path`` is for messages.

    Raises CallerError for an unknown format version, DamagedData if ``data`` is no manifest.
    """
    try:
        plain: dict[str, Any] = json.loads(data)
        if plain["format"] != FORMAT:
            raise CallerError(f"{path} is of format '{plain['format']}'; this version knows '{FORMAT}': upgrade")
        table = schema.from_json(json.dumps(plain["table"]).encode())
        parts = tuple(_part(part) for part in plain["parts"])
        taken_ms = plain["taken_ms"]
        counts = plain["rows"], plain["cells"], plain["digest"]
        return ExportManifest(taken_ms, table, *counts, parts, plain.get("clock_ms", taken_ms))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedData(f"{path} is no manifest of an export: {error}") from error


def _part(plain: dict[str, Any]) -> Part:
    if "/" in plain["file"]:
        raise ValueError(f"'{plain['file']}' is no name of a part")
    start, end = bytes.fromhex(plain["start"]), bytes.fromhex(plain["end"])
    return Part(plain["file"], start, end, plain["bytes"], plain["rows"], plain["cells"])


Progress = Callable[[int], None]  # bytes of values since the last call
PROGRESS_CELLS: Final = 2_000


def copy_manifest(folder: str) -> SnapshotManifest:
    """Read the manifest of the copy of a table in ``folder``."""
    path = os.path.join(folder, snapshot_manifest.MANIFEST)
    with open(path, "rb") as file:
        return snapshot_manifest.from_json(file.read(), path)


def empty_folder_for_export(folder: str) -> None:
    """Make the folder if missing; remove the remains of a cut-off export.  Raises CallerError if it has other files."""
    make_private(folder)
    present = os.listdir(folder)
    if any(not (name.startswith("part-") and name.endswith(".cells")) and name != MANIFEST + HALF for name in present):
        raise CallerError(f"the folder {folder} is not empty; choose another, or empty it first")
    for name in present:
        os.remove(os.path.join(folder, name))


def export_table(engine: Engine, copy: str, folder: str, progress: Progress) -> ExportManifest:
    """Write a part for each region, then the manifest."""
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
    write_durably(os.path.join(folder, MANIFEST), to_json(exported))
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
    """Read the manifest of an export.  Raises HostError if the manifest is missing, or the export was cut off."""
    path = os.path.join(folder, MANIFEST)
    try:
        with open(path, "rb") as file:
            return from_json(file.read(), path)
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
        digest.add_cell(cell)
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
