"""A folder whose ``CURRENT``, or the list of files that it names (``MANIFEST-N``), is not there.

Nothing was ever written to a store before the two and their names were on disk.  So what stands there without is
    * what a power cut left of a store that was being made, without data: the engine would not begin anew beside
      that, so it is removed;
    * or a store that lost the file: the engine would begin anew, and remove the table files that it does not know.
"""

from __future__ import annotations

import os
from typing import Final

from columnar.errors import DamagedData
from columnar.storage.file_copies import LOG_FILE, TABLE_FILE
from columnar.storage.rocks_errors import repair_advice
from columnar.storage.synced_bound import read_bound

CURRENT: Final = "CURRENT"


def remove_begun(path: str) -> None:
    """Where the store's head is missing the folder is empty when this returns.  DamagedData: it holds data; OSError."""
    for entry in begun(path):
        os.unlink(entry.path)


def begun(path: str) -> list[os.DirEntry[str]]:
    """The files of a store whose head is missing, which hold nothing; none if it is there.

    DamagedData: they hold something; OSError.
    """
    missing = _missing(path)
    if missing is None:
        return []
    with os.scandir(path) as found:
        files = [entry for entry in found if entry.is_file()]
    bound = read_bound(path)
    if bound is not None and bound.certain:
        raise DamagedData(f"{path}: the file {missing} is missing, and something was written; {repair_advice(path)}")
    for entry in files:
        if entry.name.endswith(TABLE_FILE) or (entry.name.endswith(LOG_FILE) and entry.stat().st_size):
            raise DamagedData(f"{path}: the file {missing} is missing, and others are there; {repair_advice(path)}")
    return files


def _missing(path: str) -> str | None:
    try:
        with open(os.path.join(path, CURRENT), encoding="ascii", errors="replace") as held:
            name = held.read(100).strip()
    except FileNotFoundError:
        return CURRENT
    return None if name and os.path.exists(os.path.join(path, name)) else name or CURRENT
