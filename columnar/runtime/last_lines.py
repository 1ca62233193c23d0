"""The last log lines of a process, in an unnamed file, which the parent process reads after the child's death.

    file   := slot[LAST_LINES] dump
    slot   := number:u64 length:u16 text:byte[LAST_LINE_BYTES]      little-endian; number: from 1; 0: empty
    dump   := text of ``faulthandler``: the stack of each thread at a signal like SIGSEGV or SIGABRT; mostly empty

Line n is in slot (n - 1) mod LAST_LINES, so the file never grows.  The process may be killed within a write, because
the reader omits an incomplete line.  Parent and child have the file open by a descriptor that the child inherits; the
system frees the file when both have closed it.

Knows nothing of logging and processes.
"""

from __future__ import annotations

import faulthandler
import os
from contextlib import suppress
from struct import Struct
from typing import Final

from columnar.limits import LAST_LINE_BYTES, LAST_LINES

DUMP_BYTES: Final = 4_096  # read of a dump at most; the thread at fault is first
_HEAD: Final = Struct("<QH")  # number, length
_SLOT_BYTES: Final = _HEAD.size + LAST_LINE_BYTES
_DUMP_AT: Final = LAST_LINES * _SLOT_BYTES


def lines_file() -> int:
    """Make a file.  Returns its descriptor; a child inherits only a descriptor that is passed on.  Raises OSError."""
    if hasattr(os, "memfd_create"):  # works even if no file system has room
        return os.memfd_create("columnar-last-lines", os.MFD_CLOEXEC)
    import tempfile  # imported only here: a server itself makes no file

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class LastLines:
    """The writer of the file.  Only one thread at a time may add lines."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._number = 0

    def dump_crashes(self) -> None:
        """Have a signal that crashes this process dump its threads here; the signal still ends the process."""
        os.lseek(self._descriptor, _DUMP_AT, os.SEEK_SET)
        faulthandler.enable(self._descriptor)

    def add_line(self, line: bytes) -> None:
        """Add a line in some microseconds.  Ignores errors, because the line is also in the log."""
        at = self._number % LAST_LINES * _SLOT_BYTES
        self._number += 1
        text = line[:LAST_LINE_BYTES]
        with suppress(OSError):
            os.pwrite(self._descriptor, _HEAD.pack(self._number, len(text)) + text, at)


def last_lines(descriptor: int) -> tuple[str, ...]:
    """Return the lines that a process left, newest last, then at most DUMP_BYTES of a dump.  Raises OSError."""
    slots = os.pread(descriptor, _DUMP_AT, 0)
    found: dict[int, bytes] = {}
    for at in range(0, len(slots) - _HEAD.size + 1, _SLOT_BYTES):
        number, length = _HEAD.unpack_from(slots, at)
        text = slots[at + _HEAD.size : at + _HEAD.size + length]
        is_of_slot = number > 0 and (number - 1) % LAST_LINES == at // _SLOT_BYTES
        if is_of_slot and len(text) == length <= LAST_LINE_BYTES:
            found[number] = text
    dump = os.pread(descriptor, DUMP_BYTES, _DUMP_AT).splitlines()
    return tuple(_escape_line(line) for line in (*(found[number] for number in sorted(found)), *dump) if line)


def _escape_line(line: bytes) -> str:
    text = line.decode(errors="backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
