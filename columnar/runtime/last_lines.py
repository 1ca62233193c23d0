"""The last lines of a process's log in a file without a name, which the process's starter reads at its death.

    file   := slot[LAST_LINES] dump
    slot   := number:u64 length:u16 text:byte[LAST_LINE_BYTES]      little-endian; number: from 1; 0: empty
    dump   := text of ``faulthandler``: where each thread was at a signal as SIGSEGV or SIGABRT; mostly none

Line n is in slot (n - 1) mod LAST_LINES, so the file never grows and a process may be killed at any byte: a line that
was not written whole is left out.  Both processes keep the file open by a descriptor that one inherits from the other;
the system frees the file with the last of them.

Knows nothing of logging and processes.
"""

from __future__ import annotations

import faulthandler
import os
from contextlib import suppress
from struct import Struct
from typing import Final

from columnar.limits import LAST_LINE_BYTES, LAST_LINES

DUMP_BYTES: Final = 4_096  # this much is read of a dump: the thread at fault comes first
_HEAD: Final = Struct("<QH")  # number, length
_SLOT_BYTES: Final = _HEAD.size + LAST_LINE_BYTES
_DUMP_AT: Final = LAST_LINES * _SLOT_BYTES


def lines_file() -> int:
    """Make a file and return its descriptor, which is inherited only by processes that name it.  OSError."""
    if hasattr(os, "memfd_create"):  # also where no file system has room
        return os.memfd_create("columnar-last-lines", os.MFD_CLOEXEC)
    import tempfile  # a server itself makes no file, and starts without it

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class LastLines:
    """The writer's end.  Lines are added by a single thread at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._number = 0

    def dump_crashes(self) -> None:
        """Enable the dump of a crashing signal of this process, which ends the process as before."""
        os.lseek(self._descriptor, _DUMP_AT, os.SEEK_SET)
        faulthandler.enable(self._descriptor)

    def add_line(self, line: bytes) -> None:
        """Add a line in some microseconds, without an error: a line that cannot be kept is in the log all the same."""
        at = self._number % LAST_LINES * _SLOT_BYTES
        self._number += 1
        text = line[:LAST_LINE_BYTES]
        with suppress(OSError):
            os.pwrite(self._descriptor, _HEAD.pack(self._number, len(text)) + text, at)


def last_lines(descriptor: int) -> tuple[str, ...]:
    """The lines that a process left, the newest last; of a dump at most DUMP_BYTES.  OSError."""
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
