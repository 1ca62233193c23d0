"""Warming: reads a store's files once, in a thread, before the engine opens them.

The engine holds the interpreter lock while it opens a store.  On a network file system the first opening of a file that
another machine had open waits for that machine's caches, for seconds.  After the same wait in a thread, which does not
hold the lock, the engine's opening takes as long as on a local disk.

Warming reads only the end of a table, with the index and the filter, which the engine reads at the opening.
"""

from __future__ import annotations

import os
from typing import Final

from columnar.limits import MIB
from columnar.storage.file_copies import TABLE_FILE, files_of

TABLE_END_BYTES: Final = 1 * MIB
_PIECE_BYTES: Final = 1 * MIB  # of one read


def warm(folder: str) -> int:
    """Read the store's files, and return the number of bytes.  Files that cannot be read are left to the opening.

    Blocks; costs an open, a read and a close for each file.
    """
    try:
        names = files_of(folder, with_bound=True)
    except OSError:
        return 0
    return sum(_read_through(os.path.join(folder, name)) for name in names)


def _read_through(path: str) -> int:
    count = 0
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        if path.endswith(TABLE_FILE):
            os.lseek(file, max(0, os.fstat(file).st_size - TABLE_END_BYTES), os.SEEK_SET)
        while piece := os.read(file, _PIECE_BYTES):
            count += len(piece)
    except OSError:
        return count
    finally:
        os.close(file)
    return count
