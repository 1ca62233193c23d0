"""A small file of constant size that is written in place while its owner lives.

    mapped     through a shared mapping, so that ``store`` needs no system call
    written    by ``pwrite``, if the file system supports no shared mappings (direct I/O of FUSE, some network mounts)

The choice is made when the file is opened; the bytes in the file are the same.  In both cases stored bytes survive the
process, are on disk only after ``sync_file``, and can be read by any process of the machine at once.  A process on a
different machine can read them when the file system passes them on, after ``sync_file`` or ``close`` at the latest.

A process that is killed may leave a part of a record, so every stored record needs its own checksum.

All functions may block as long as the disk takes, and raise OSError.  ``store`` to a mapped file does neither, but the
process gets SIGBUS if the disk fails under the page.  Any thread may call, one at a time.
"""

from __future__ import annotations

import errno
import logging
import os
from mmap import mmap
from typing import Final

from columnar.storage.durable_files import replace_file

_log = logging.getLogger(__name__)

_UNMAPPED: Final[set[int]] = set()  # devices for which the refusal was logged


class FixedFile:
    """An open file, made by ``open_fixed``."""

    __slots__ = ("_file", "_map", "_size")

    def __init__(self, mapping: mmap | None, file: int, size_bytes: int) -> None:
        """Take a mapping or a descriptor: ``mapping`` is None if the file is written, ``file`` -1 if it is mapped."""
        self._map = mapping
        self._file = file
        self._size = size_bytes

    @property
    def is_mapped(self) -> bool:
        return self._map is not None

    def store(self, at: int, data: bytes) -> None:
        """Store ``data``, which must fit, from byte ``at`` on."""
        if self._map is not None:
            self._map[at : at + len(data)] = data
        elif os.pwrite(self._file, data, at) != len(data):
            raise OSError(errno.EIO, "only a part of a record was written")

    def read_bytes(self) -> bytes:
        """Return the content of the whole file."""
        return self._map[: self._size] if self._map is not None else os.pread(self._file, self._size, 0)

    def sync_file(self) -> None:
        """Sync the file: all stored bytes are on disk when this returns."""
        if self._map is not None:
            self._map.flush()
        else:
            os.fdatasync(self._file)

    def close(self) -> None:
        """Release the file; further calls have no effect."""
        if self._map is not None:
            self._map.close()
            self._map = None
        elif self._file >= 0:
            os.close(self._file)
        self._file = -1


def open_fixed(path: str, size_bytes: int, initial: bytes | None) -> FixedFile:
    """Open the file for writing.

    ``initial`` is the beginning of a new file that replaces the present one; with None the file must exist with the
    right size.  The new file is written completely, not only extended, because storing to a page without a block on a
    full disk would fail.  The file is not synced.
    """
    if initial is not None:
        replace_file(path, initial.ljust(size_bytes, b"\x00"), sync=False)
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        mapping = mmap(file, size_bytes)
    except OSError as error:  # ENODEV as a rule; after any error the file can be written
        _say_unmapped(os.fstat(file).st_dev, path, str(error))
        return FixedFile(None, file, size_bytes)
    except BaseException:
        os.close(file)
        raise
    os.close(file)  # the mapping has a descriptor of its own
    return FixedFile(mapping, -1, size_bytes)


def _say_unmapped(device: int, path: str, why: str) -> None:
    """Log once for each file system that it refuses mappings."""
    if device not in _UNMAPPED:
        _UNMAPPED.add(device)
        _log.info(
            "%s, and others of its file system, are written by system calls: mapping them is refused: %s", path, why
        )


def has_size(path: str, size_bytes: int) -> bool:
    """Tell whether the file exists and has exactly ``size_bytes``."""
    try:
        return os.path.getsize(path) == size_bytes
    except FileNotFoundError:
        return False
