"""(pure) ``manifest.json`` of an exported table: its schema, its parts, and what they hold.

    {"format": "columnar-export 1", "taken_ms": ..., "clock_ms": ..., "table": SCHEMA, "rows": N, "cells": N,
     "digest": HEX, "parts": [{"file": ..., "start": HEX, "end": HEX, "bytes": N, "rows": N, "cells": N}]}

``clock_ms`` is the highest timestamp that the store had given when the copy was made; older manifests lack it, and
``taken_ms`` stands for it.
SCHEMA is the table's JSON as in the catalogue.  Each part is a file of cells (``cell_blocks``) with the rows
``start <= row < end`` of one region.  The manifest is written last: a folder without one is no whole export.

Format versions, append only: 1 as above.
Golden bytes: tests/golden/export-manifest.txt; the page: docs/formats/backups.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from columnar.errors import CallerError, DamagedData
from columnar.model import schema
from columnar.model.schema import Table

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
    """CallerError for another format version, DamagedData for what is no manifest; ``path`` is for the message."""
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
