"""The store's last backup, from the report that ``columnar backup --report FILE`` writes (``docs/backup.md``).

Nothing is worked out here: without the file, or with one of another form, nothing is known, and the page says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from wikka_port.texts import _

FORMAT: Final = "columnar-backup-report 1"
BYTES_MAX: Final = 100_000  # of the file; a report has some hundred


class NoReport(Exception):
    """Nothing is known of a backup; ``str()`` says why, for the operator."""


@dataclass(frozen=True, slots=True)
class LastBackup:
    backup: str  # its name
    place: str
    taken_ms: int
    tables: int
    files: int
    bytes: int
    checked_ms: int  # 0: it was not checked
    checked: Literal["", "quick", "whole"]  # "quick": names and sizes alone
    errors: int  # that the check found


def last_backup(path: Path) -> LastBackup:
    """Return the report in a file.  Raises NoReport."""
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except FileNotFoundError:
        raise NoReport(_("{path} is not there: no backup has reported yet", path=str(path))) from None
    except OSError as problem:
        raise NoReport(_("{path} cannot be read: {why}", path=str(path), why=problem.strerror or "")) from None
    try:
        found: dict[str, Any] = json.loads(data) if len(data) <= BYTES_MAX else {}
        if found.pop("format") != FORMAT:
            raise ValueError("another format")
        report = LastBackup(**found)
        names = (report.backup, report.place, report.checked)
        numbers = (report.taken_ms, report.tables, report.files, report.bytes, report.checked_ms, report.errors)
        if not all(isinstance(one, str) for one in names) or not all(_is_number(one) for one in numbers):
            raise ValueError("other types")
        if report.checked not in ("", "quick", "whole"):
            raise ValueError("an unknown check")
    except (AttributeError, KeyError, TypeError, ValueError):
        raise NoReport(_("{path} is no report of columnar backup of this version", path=str(path))) from None
    return report


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
