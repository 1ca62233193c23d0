"""The folder for the files of ``make test``: in memory if there is room; ``python -m`` prints the folder.

Tests make a hundred thousand files and fsync most of them.  On a disk that takes a fifth of their CPU time, and half of
their waiting if other processes use the disk.  ``make test-deep`` stays on the disk.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

FOLDER: Final = Path("/dev/shm")
ROOM: Final = 4 << 30  # bytes, many times what the tests have at once


def memory_folder() -> str:
    """Return the folder of temporary files in memory, else the usual one."""
    return str(FOLDER) if _is_fit() else tempfile.gettempdir()


def _is_fit() -> bool:
    """Return whether the folder has room and can hold compiled libraries, which containers often forbid to execute."""
    if not os.access(FOLDER, os.W_OK | os.X_OK) or os.statvfs(FOLDER).f_flag & os.ST_NOEXEC:
        return False
    available = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    is_free = available is not None and int(available[1]) * 1024 > 2 * ROOM
    return is_free and shutil.disk_usage(FOLDER).free > ROOM


if __name__ == "__main__":
    print(memory_folder())
