"""A small file of constant size that is written in place while its owner lives.

    mapped     through a shared mapping: a store takes no system call
    written    by ``pwrite``, if the file system shares no mappings (direct I/O of FUSE, some network mounts)

The choice is made when the file is opened.  The bytes and their places are the same.  In both, what was stored
survives the process, is on disk only after ``sync_file``, and is read by any process of the machine at once.  A process
of another machine reads it when the file system passes it on: after ``sync_file`` or ``close`` at the latest.

A process that is killed may leave a part of a record, so every record that is stored has a checksum of its own.

All functions may block as long as the disk takes, and raise OSError.  A mapped store does neither, unless the disk
fails under the page (SIGBUS).  Any thread, one at a time.
"""

from __future__ import annotations

import errno
import logging
import os
from mmap import mmap
from typing import Final

from columnar.storage.durable_files import replace_file

_log = logging.getLogger(__name__)

_UNMAPPED: Final[set[int]] = set()  # devices that this process has logged


class FixedFile:
    """An open file; ``open_fixed`` makes one."""

    __slots__ = ("_file", "_map", "_size")

    def __init__(self, mapping: mmap | None, file: int, size_bytes: int) -> None:
        """``mapping``: None: the file is written.  ``file``: its descriptor, or -1 if it is mapped."""
        self._map = mapping
        self._file = file
        self._size = size_bytes

    @property
    def is_mapped(self) -> bool:
        return self._map is not None

    def store(self, at: int, data: bytes) -> None:
        """Store ``data``, which fits, at the byte ``at``."""
        if self._map is not None:
            self._map[at : at + len(data)] = data
        elif os.pwrite(self._file, data, at) != len(data):
            raise OSError(errno.EIO, "only a part of a record was written")

    def read_bytes(self) -> bytes:
        """Return all of the file."""
        return self._map[: self._size] if self._map is not None else os.pread(self._file, self._size, 0)

    def sync_file(self) -> None:
        """Return when all that was stored is on disk."""
        if self._map is not None:
            self._map.flush()
        else:
            os.fdatasync(self._file)

    def close(self) -> None:
        """Release the file, once or more often."""
        if self._map is not None:
            self._map.close()
            self._map = None
        elif self._file >= 0:
            os.close(self._file)
        self._file = -1


def open_fixed(path: str, size_bytes: int, initial: bytes | None) -> FixedFile:
    """Open the file for writing.  ``initial`` replaces a file of another size; None requires the right size already.

    The new file is written whole, not only extended: a page that has no block on the disk could not be stored to.
    It is not synced.
    """
    if initial is not None:
        replace_file(path, initial.ljust(size_bytes, b"\x00"), sync=False)
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        mapping = mmap(file, size_bytes)
    except OSError as error:  # ENODEV as a rule; whatever it is, the file itself can be written
        _say_unmapped(os.fstat(file).st_dev, path, str(error))
        return FixedFile(None, file, size_bytes)
    except BaseException:
        os.close(file)
        raise
    os.close(file)  # the mapping has a descriptor of its own
    return FixedFile(mapping, -1, size_bytes)


def _say_unmapped(device: int, path: str, why: str) -> None:
    """Log it once for each file system."""
    if device not in _UNMAPPED:
        _UNMAPPED.add(device)
        _log.info(
            "%s, and others of its file system, are written by system calls: mapping them is refused: %s", path, why
        )


def has_size(path: str, size_bytes: int) -> bool:
    """Whether there is such a file and it has exactly ``size_bytes``."""
    try:
        return os.path.getsize(path) == size_bytes
    except FileNotFoundError:
        return False
