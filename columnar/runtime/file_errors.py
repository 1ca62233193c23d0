"""Tells OSErrors of files from OSErrors of sockets: files blame a folder or the output, sockets blame the store."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

from columnar.errors import HostError

_OF_SOCKETS: Final = (ConnectionError, TimeoutError, socket.gaierror, socket.herror, ssl.SSLError)
_NUMBERS_OF_SOCKETS: Final = frozenset(
    {
        errno.EADDRINUSE,
        errno.EADDRNOTAVAIL,
        errno.EAFNOSUPPORT,
        errno.EDESTADDRREQ,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EISCONN,
        errno.EMSGSIZE,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.ENOBUFS,
        errno.ENOTCONN,
        errno.ENOTSOCK,
        errno.EPROTO,
        errno.EPROTONOSUPPORT,
    }
)


def is_of_file(error: OSError) -> bool:
    """Return whether the error is of a file.

    The error's kind decides, because a full disk's error has no file name.
    """
    if isinstance(error, _OF_SOCKETS) or error.errno in _NUMBERS_OF_SOCKETS:
        return False
    return error.errno is not None


def said_of(error: OSError, folder: str = "") -> str:
    """Name the file or folder that cannot be used, the cause and the remedy, in one line.

    If the error has no file name and ``folder`` is empty, the line names the command's own output, because all work on
    files passes ``folder``.
    """
    where = error.filename if isinstance(error.filename, str) and error.filename else folder
    if not where:
        return f"cannot write the output: {error.strerror}; send it elsewhere, or make room for it"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write to {where}: {error.strerror}; free some space, or give another folder"
    return f"cannot use {where}: {error.strerror}; give another folder, or its rights to this user"


@contextmanager
def files_in(folder: str) -> Iterator[None]:
    """Raise HostError in place of OSErrors of files in ``folder``; OSErrors of sockets pass unchanged."""
    try:
        yield
    except OSError as error:
        if not is_of_file(error):
            raise
        raise HostError(said_of(error, folder)) from error


def end_with_line(program: str, error: OSError) -> NoReturn:
    """End a command after an error of a file or of its output, with one line and status 2; raise any other error."""
    if not is_of_file(error):
        raise error
    with suppress(OSError):  # standard error itself may be unwritable; then the line is lost
        sys.stderr.write(f"{program}: {said_of(error)}\n")
        sys.stderr.flush()
    _give_up_output()
    sys.exit(2)


def _give_up_output() -> None:
    """Discard the rest of the output; otherwise Python fails to write it again at exit, and prints lines about it."""
    with suppress(OSError):
        sys.stdout.flush()
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
