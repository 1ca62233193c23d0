"""The journal of systemd, by its native protocol: a datagram for each record, with fields beside its message.

    datagram := field*
    field    := NAME "=" value "\n"                      if the value has no line end
              | NAME "\n" size:u64 value "\n"            little-endian; any bytes

    example     b"MESSAGE=stopped\nPRIORITY=6\nSYSLOG_IDENTIFIER=columnar\n"

The socket is JOURNAL_SOCKET.  A record that is too large for a datagram is sent as the descriptor of a sealed memfd
without data (systemd.io/JOURNAL_NATIVE_PROTOCOL).

    MESSAGE             the message, and after it the traceback: several lines are one entry
    PRIORITY            of syslog: 7 debug, 6 info, 4 warning, 3 error, 2 critical
    SYSLOG_IDENTIFIER   columnar
    CODE_FILE CODE_LINE CODE_FUNC
    COLUMNAR_LOGGER COLUMNAR_ROLE COLUMNAR_SERVER COLUMNAR_BUILD

The journal itself adds time, process, unit and user.
"""

from __future__ import annotations

import array
import errno
import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import Final

from columnar.runtime.line_queue import cut
from columnar.runtime.log_format import Speaker, exception_text

JOURNAL_SOCKET: Final = "/run/systemd/journal/socket"
STREAM: Final = "JOURNAL_STREAM"  # of the environment: DEVICE:INODE of a standard error that is the journal's
IDENTIFIER: Final = "columnar"
_SIZE: Final = Struct("<Q")
_PRIORITIES: Final = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_DEBUG: Final = 7
_TOO_LARGE: Final = (errno.EMSGSIZE, errno.ENOBUFS)


def is_journal(descriptor: int, environment: Mapping[str, str]) -> bool:
    """Return whether the descriptor is the journal's stream, as systemd says in JOURNAL_STREAM."""
    device, _, inode = environment.get(STREAM, "").partition(":")
    if not device.isdigit() or not inode.isdigit():
        return False
    with suppress(OSError):
        found = os.fstat(descriptor)
        return (found.st_dev, found.st_ino) == (int(device), int(inode))
    return False


def priority(level: int) -> int:
    return next((number for least, number in _PRIORITIES if level >= least), _DEBUG)


class JournalEntry:
    """A record as a datagram."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    def encode(self, record: logging.LogRecord) -> bytes:
        return b"".join(self._fields(record))

    def _fields(self, record: logging.LogRecord) -> Iterator[bytes]:
        exception = exception_text(record)
        message = record.getMessage()
        yield _field("MESSAGE", f"{message}\n{exception}" if exception else message)
        yield _field("PRIORITY", str(priority(record.levelno)))
        yield _field("SYSLOG_IDENTIFIER", IDENTIFIER)
        yield _field("CODE_FILE", record.pathname)
        yield _field("CODE_LINE", str(record.lineno))
        yield _field("CODE_FUNC", record.funcName or "")
        yield _field("COLUMNAR_LOGGER", record.name)
        speaker = self._speaker
        for name, value in (("ROLE", speaker.role), ("SERVER", speaker.server), ("BUILD", speaker.build)):
            if value:
                yield _field(f"COLUMNAR_{name}", value)


def _field(name: str, text: str) -> bytes:
    value = cut(text.encode(errors="backslashreplace"))
    if b"\n" not in value:
        return name.encode() + b"=" + value + b"\n"
    return name.encode() + b"\n" + _SIZE.pack(len(value)) + value + b"\n"


class JournalSocket:
    """The sink of the journal.  A journal that is missing loses the line; one that stalls stalls the thread alone."""

    def __init__(self, path: str = JOURNAL_SOCKET) -> None:
        self._path = path

    def write_lines(self, lines: Sequence[bytes]) -> int:
        written = 0
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            for line in lines:
                self._send(sender, line)
                written += 1
        return written

    def _send(self, sender: socket.socket, datagram: bytes) -> None:
        try:
            sender.sendto(datagram, self._path)
        except OSError as error:
            if error.errno not in _TOO_LARGE or not hasattr(os, "memfd_create"):
                raise
            self._send_memory(sender, datagram)

    def _send_memory(self, sender: socket.socket, datagram: bytes) -> None:
        import fcntl

        memory = os.memfd_create("columnar-log", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            with open(memory, "wb", closefd=False) as file:
                file.write(datagram)
            seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)  # the journal refuses memory that could still change
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))
            sender.sendmsg([b""], [rights], 0, self._path)
        finally:
            os.close(memory)
