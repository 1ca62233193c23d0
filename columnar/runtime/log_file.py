"""The log file that all processes of a store share: appended by each, rotated by the one that fills it.

    PATH  PATH.1  PATH.2 ... PATH.COUNT        the present file, and older ones: the higher the number, the older

Each process has the file open by itself and appends its lines by one ``write`` with O_APPEND, which the kernel does not
mix with another process's.  A store has one file instead of a file for each process, because a reader then has the
lines of a store in their order in one place, and because servers have new names after each death.

Before each write a process compares the inode at PATH with its own.  So it follows a rotation by another process, by
logrotate (with or without ``copytruncate``) or by hand.  A process that logs nothing would keep the old file open: a
write of no line (SIGHUP) has it look.

The process whose write makes the file larger than ``size_bytes`` rotates it under ``flock`` of that very file, if it is
still at PATH: whoever comes second finds another inode there, or the lock taken, and goes on.  The file can be larger
than ``size_bytes`` by the writes of other processes in that moment.

A file that cannot be written (a full disk, a missing folder) ends nothing: lines are lost and counted (``line_queue``),
``on_trouble`` gets one line when that begins, and each later write tries again.

Invariants:
    F1. A line that counts as written is in PATH or one of the COUNT older files at that moment.  A process that was
        stopped between comparison and write could write to a file that was removed since; it looks after the write
        whether the file still has a name, and writes again if not.
    F2. A line is whole, unless the disk was full within it; then the rest of that line is a line of its own.

Owned by the queue's thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from columnar.runtime.line_queue import whole_lines

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
_MODE: Final = 0o640  # lines have row keys and addresses of clients


class LogFile:
    def __init__(
        self,
        path: str,
        size_bytes: int,
        count: int,
        on_trouble: Callable[[str], None],
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        """``size_bytes``: 0 for no rotation.  ``count``: older files that are kept, at least one."""
        self._path = path
        self._size_bytes = size_bytes
        self._count = count
        self._on_trouble = on_trouble
        self._write = write
        self._descriptor = -1
        self._is_torn = False  # the last write ended within a line
        self._trouble = ""  # the last reported one, until a write succeeds

    def open(self) -> None:
        """Open the file, and make it if it is missing.  Raises OSError."""
        self._close()
        self._descriptor = os.open(self._path, _FLAGS, _MODE)

    def write_lines(self, lines: Sequence[bytes]) -> int:
        try:
            written = self._append(b"".join(lines))
            if os.fstat(self._descriptor).st_nlink == 0:  # removed since the comparison, and the lines with it
                written = self._append(b"".join(lines))
        except _Torn as torn:
            self._report(f"cannot be written ({_text(torn.error)}); lines are lost, and counted, until it can")
            return whole_lines(lines, torn.written)
        except OSError as error:
            self._report(f"cannot be written ({_text(error)}); lines are lost, and counted, until it can")
            return 0
        self._rotate_if_full()
        return whole_lines(lines, written)

    def _append(self, data: bytes) -> int:
        """Append the data.  Returns its size.  Raises _Torn, OSError."""
        if not self._is_current():
            self.open()
        if self._is_torn:
            self._write(self._descriptor, b"\n")
            self._is_torn = False
        left = data
        while left:
            try:
                left = left[self._write(self._descriptor, left) :]
            except OSError as error:
                written = len(data) - len(left)
                self._is_torn = written > 0 and data[written - 1 : written] != b"\n"
                raise _Torn(error, written) from error
        return len(data)

    def _is_current(self) -> bool:
        """Return whether the open file is the one at PATH.  Raises OSError."""
        if self._descriptor < 0:
            return False
        try:
            at_path = os.stat(self._path)
        except FileNotFoundError:
            return False
        ours = os.fstat(self._descriptor)
        return (ours.st_dev, ours.st_ino) == (at_path.st_dev, at_path.st_ino)

    def _rotate_if_full(self) -> None:
        try:
            if self._size_bytes and os.fstat(self._descriptor).st_size >= self._size_bytes:
                self._rotate()
        except OSError as error:  # the lines are written; the next write tries again
            self._report(f"cannot be rotated ({_text(error)}); it grows until it can")
        else:
            self._trouble = ""

    def _rotate(self) -> None:
        """Rename the file, unless another process has or does; the next write opens a new one.  Raises OSError."""
        if os.name != "posix":
            return  # an open file has no other name elsewhere
        import fcntl

        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        try:
            if self._is_current():
                for number in range(self._count - 1, 0, -1):
                    with suppress(FileNotFoundError):
                        os.rename(f"{self._path}.{number}", f"{self._path}.{number + 1}")
                os.rename(self._path, f"{self._path}.1")  # last: until then no other process may rotate
        finally:
            self._close()  # which unlocks

    def _report(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._on_trouble(f"columnar: the log file {self._path} {trouble}")

    def _close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with suppress(OSError):  # as of a full disk, which the next write reports
                os.close(descriptor)


def _text(error: OSError) -> str:
    return error.strerror or str(error)


class _Torn(Exception):
    def __init__(self, error: OSError, written: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.written = written
