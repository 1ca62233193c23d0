"""A folder whose ``CURRENT``, or the list of files that it names (``MANIFEST-N``), is missing.

A store takes no write before the two files and their names are on disk.  So such a folder contains either
    * the remains of a store that was being made at a power cut, without data: the engine would not create a store
      beside them, so they are removed;
    * or a store that lost the file: the engine would create a new one, and remove the table files unknown to it.
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
    """Empty the folder if the store's head is missing.  DamagedData: there is data in it; OSError."""
    for entry in begun(path):
        os.unlink(entry.path)


def begun(path: str) -> list[os.DirEntry[str]]:
    """Return the files, without data, of a store whose head is missing; none if the head is there.

    DamagedData: there is data in them; OSError.
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
        with open(os.path.join(path, CURRENT), encoding="ascii", errors="replace") as file:
            name = file.read(100).strip()
    except FileNotFoundError:
        return CURRENT
    return None if name and os.path.exists(os.path.join(path, name)) else name or CURRENT
