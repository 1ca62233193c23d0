"""A folder without ``CURRENT``, the file that says which others make the store.

Nothing was ever written to a store before its ``CURRENT`` was on disk.  So what stands there without one is
    * what a power cut left of a store that was being made, without data: the engine would not begin anew beside an
      empty log of it, so it is removed;
    * or a store that lost the file: the engine would begin anew, and remove the table files that it does not know.
"""

from __future__ import annotations

import os

from columnar.errors import DamagedData
from columnar.storage.file_copies import LOG_FILE, TABLE_FILE
from columnar.storage.rocks_errors import MEND


def remove_begun(path: str) -> None:
    """The folder is empty when this returns.  DamagedData: there is data in it; OSError."""
    with os.scandir(path) as found:
        files = [entry for entry in found if entry.is_file()]
    for entry in files:
        if entry.name.endswith(TABLE_FILE) or (entry.name.endswith(LOG_FILE) and entry.stat().st_size):
            raise DamagedData(f"{path}: the file CURRENT is missing, and others are there; {MEND}")
    for entry in files:
        os.unlink(entry.path)
