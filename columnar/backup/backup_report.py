"""The report of a backup: a small file for programs that show when the last backup was made, as a wiki does.

    {"format": "columnar-backup-report 1", "backup": NAME, "place": PLACE, "taken_ms": ..., "tables": 3, "files": 12,
     "bytes": 4096, "checked_ms": 0, "checked": "", "errors": 0}

``columnar backup take --report FILE`` replaces the file after a backup is whole, so a failed run leaves the report of
the last good one.  ``columnar backup check --report FILE`` notes the result of a check: ``checked`` is "whole" after
each file was read, "quick" after names and sizes were compared, and "" if the backup was not checked.  The check of an
older backup than the report's leaves the report as it is.

Format versions, append only: 1 as above.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

from columnar.backup.backup_manifest import Backup
from columnar.storage.durable_files import write_durably

FORMAT: Final = "columnar-backup-report 1"
WHOLE, QUICK = "whole", "quick"


def report_of(backup: Backup, place: str) -> dict[str, Any]:
    """Return the report of a backup that was not checked."""
    return {
        "format": FORMAT,
        "backup": backup.name,
        "place": place,
        "taken_ms": backup.taken_ms,
        "tables": len(backup.tables),
        "files": len(backup.files),
        "bytes": backup.size_bytes,
        "checked_ms": 0,
        "checked": "",
        "errors": 0,
    }


def write_report(path: str, report: Mapping[str, Any]) -> None:
    """Replace the file.  Raises OSError."""
    write_durably(path, json.dumps(report, indent=1, sort_keys=True).encode() + b"\n")


def note_check(path: str, backup: Backup, place: str, *, now_ms: int, reads: bool, errors: int) -> bool:
    """Note the check of a backup; return False, with nothing written, if the report is of a newer backup.

    A quick check without errors does not replace the result of one that read everything.  Raises OSError.
    """
    there = read_report(path)
    if there.get("backup", "") > backup.name:
        return False
    if not reads and not errors and (there.get("backup"), there.get("checked")) == (backup.name, WHOLE):
        return False
    checked = {"checked_ms": now_ms, "checked": WHOLE if reads else QUICK, "errors": errors}
    write_report(path, {**report_of(backup, place), **checked})
    return True


def read_report(path: str) -> dict[str, Any]:
    """Return the report in a file, {} if there is none, or one of another format.  Raises OSError."""
    if not os.path.exists(path):
        return {}
    with open(path, "rb") as file:
        try:
            found = json.loads(file.read())
        except ValueError:
            return {}
    return found if isinstance(found, dict) and found.get("format") == FORMAT else {}
