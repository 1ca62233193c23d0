"""(pure) ``manifest.json`` of a snapshot: its table, its regions, and size and checksum of each file.

    {"format": "columnar-snapshot 1", "name": ..., "created_ms": ..., "clock_ms": ..., "table": SCHEMA,
     "regions": [{"folder": ..., "start": HEX, "end": HEX, "files": {NAME: {"bytes": N, "sha256": HEX}}}]}

``clock_ms`` is the highest timestamp that the snapshot's store had given when the copies were made.  Older manifests
lack it, and their ``created_ms`` is taken instead.
SCHEMA is the table's JSON as in the catalogue (``columnar.model.schema``).  The folder of the manifest also holds
one store for each region.  The manifest is written last: a folder without a manifest is no snapshot.

Invariants:
    I1. The regions cover all rows without hole or overlap, ascending.

Format versions, append only: 1 as above.
Golden bytes: tests/golden/snapshot-manifest.txt; the page: docs/formats/backups.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from columnar.errors import CallerError, DamagedData
from columnar.model import schema
from columnar.model.schema import Table

FORMAT: Final = "columnar-snapshot 1"
MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class FileFacts:
    size_bytes: int
    sha256: str  # empty if it was not computed: a copy that only lives as long as its reader


@dataclass(frozen=True, slots=True)
class RegionCopy:
    folder: str
    start: bytes
    end: bytes
    files: Mapping[str, FileFacts]


@dataclass(frozen=True, slots=True)
class SnapshotManifest:
    name: str
    created_ms: int
    table: Table
    regions: tuple[RegionCopy, ...]
    clock_ms: int

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for region in self.regions for file in region.files.values())

    @property
    def ranges(self) -> list[tuple[bytes, bytes]]:
        return [(region.start, region.end) for region in self.regions]


def covers_all(ranges: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return whether the ranges keep I1."""
    if not ranges or ranges[0][0] != b"" or ranges[-1][1] != b"":
        return False
    return all(left[1] == right[0] and left[1] for left, right in pairwise(ranges))


def to_json(manifest: SnapshotManifest) -> bytes:
    fields = {
        "format": FORMAT,
        "name": manifest.name,
        "created_ms": manifest.created_ms,
        "clock_ms": manifest.clock_ms,
        "table": json.loads(schema.to_json(manifest.table)),
        "regions": [
            {
                "folder": region.folder,
                "start": region.start.hex(),
                "end": region.end.hex(),
                "files": {
                    name: {"bytes": facts.size_bytes, "sha256": facts.sha256}
                    for name, facts in sorted(region.files.items())
                },
            }
            for region in manifest.regions
        ],
    }
    return json.dumps(fields, indent=1, sort_keys=True).encode() + b"\n"


def from_json(data: bytes, path: str) -> SnapshotManifest:
    """Decode a manifest.  ``path`` is for messages.

    Raises CallerError for an unknown format version, and DamagedData if ``data`` is not a valid manifest.
    """
    try:
        fields: dict[str, Any] = json.loads(data)
        if fields["format"] != FORMAT:
            raise CallerError(f"{path} is of format '{fields['format']}'; this version knows '{FORMAT}': upgrade")
        regions = tuple(_region(region) for region in fields["regions"])
        table = schema.from_json(json.dumps(fields["table"]).encode())
        created_ms = fields["created_ms"]
        manifest = SnapshotManifest(fields["name"], created_ms, table, regions, fields.get("clock_ms", created_ms))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedData(f"{path} is no manifest of a snapshot: {error}") from error
    if not covers_all(manifest.ranges):
        raise DamagedData(f"{path}: its regions have a hole or an overlap")
    return manifest


def _region(fields: dict[str, Any]) -> RegionCopy:
    folder = str(fields["folder"])
    if "/" in folder or folder.startswith("."):
        raise ValueError(f"'{folder}' is no folder of a region")
    files = {name: FileFacts(facts["bytes"], facts["sha256"]) for name, facts in fields["files"].items()}
    if any("/" in name for name in files):
        raise ValueError("a file has a path for a name")
    return RegionCopy(folder, bytes.fromhex(fields["start"]), bytes.fromhex(fields["end"]), files)
