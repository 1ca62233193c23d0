"""(pure) ``backups/NAME.json``: the list of a backup's files, with size and checksum of each.

    {"format": "columnar-backup 1", "taken_ms": ..., "clock_ms": ..., "version": ..., "tables": [NAME],
     "files": [{"path", "bytes", "sha256", "mtime_ns"}]}

``path`` is the file's place in the data folder.  NAME is the time in UTC, so names sort by age.

Format versions, append only: 1 as above.  The page: docs/formats/backups.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from columnar.errors import CallerError, DamagedData
from columnar.version import VERSION

FORMAT: Final = "columnar-backup 1"
NAME: Final = re.compile(r"\d{8}T\d{6}\.\d{3}Z")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class SavedFile:
    path: str  # in the data folder
    bytes: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Backup:
    name: str
    taken_ms: int
    tables: tuple[str, ...]
    files: tuple[SavedFile, ...]
    clock_ms: int  # the highest timestamp that the store had given; of older backups ``taken_ms``

    @property
    def size_bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def name_of(taken_ms: int) -> str:
    """Return the name of a backup that was taken at this time."""
    moment = datetime.fromtimestamp(taken_ms / 1_000, UTC)
    return f"{moment:%Y%m%dT%H%M%S}.{taken_ms % 1_000:03}Z"


def to_json(backup: Backup) -> bytes:
    plain = {
        "format": FORMAT,
        "taken_ms": backup.taken_ms,
        "clock_ms": backup.clock_ms,
        "version": VERSION,
        "tables": list(backup.tables),
        "files": [asdict(file) for file in backup.files],
    }
    return json.dumps(plain, indent=1, sort_keys=True).encode() + b"\n"


def from_json(name: str, data: bytes, place: str) -> Backup:
    """Decode a manifest.  ``place`` is for messages.

    Raises CallerError for an unknown format version, and DamagedData if ``data`` is not a valid manifest.
    """
    try:
        plain: dict[str, Any] = json.loads(data)
        if plain["format"] != FORMAT:
            raise CallerError(f"{place} is of format '{plain['format']}'; this version knows '{FORMAT}': upgrade")
        files = tuple(SavedFile(**file) for file in plain["files"])
        if any(".." in file.path.split("/") or file.path.startswith("/") for file in files):
            raise ValueError("a path leads out of the data folder")
        if not all(_SHA256.fullmatch(file.sha256) for file in files):
            raise ValueError("a checksum is none")
        taken_ms = plain["taken_ms"]
        return Backup(name, taken_ms, tuple(plain["tables"]), files, plain.get("clock_ms", taken_ms))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedData(f"{place} is no list of a backup's files: {error}") from error
