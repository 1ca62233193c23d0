"""A client's socket: thriftpy2's, with errors that say why an open connection failed.

The errors of a socket:

    NoAnswer              nothing was received, or could be sent, within the timeout; a ``TimeoutError``
    ConnectionResetError  the server ended the connection; raised also if the system reports "broken pipe", because
                          command lines take a ``BrokenPipeError`` for the end of their own output's reader
    NotConnected          the connection could not be opened, has ended, or is closed; a ``TTransportException`` of
                          thriftpy2, whose text is its message
    NotSignedIn           a NotConnected: the user was refused (``sasl_socket``)
"""

from __future__ import annotations

import errno
import os

from thriftpy2.transport import TSocket, TTransportException


class NoAnswer(TimeoutError):
    """No answer came within the timeout; the outcome of the call is unknown."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds


class NotConnected(TTransportException):  # type: ignore[misc]
    message: str

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"

    def __reduce__(self) -> tuple[type[NotConnected], tuple[int, str]]:
        return type(self), (self.type, self.message)


class NotSignedIn(NotConnected):
    """The server has refused the user, or is none that takes users."""


class StoreSocket(TSocket):  # type: ignore[misc]
    socket_timeout: float | None  # seconds

    def open(self) -> None:
        try:
            super().open()
        except TTransportException as error:
            cause = error.__context__  # thriftpy2 omits the system's reason
            why = f": {cause.strerror or cause}" if isinstance(cause, OSError) else ""
            place = self.unix_socket or f"{self.host}:{self.port}"
            raise NotConnected(NotConnected.NOT_OPEN, f"cannot connect to {place}{why}") from None

    def read(self, sz: int) -> bytes:
        self._check_open()
        try:
            data: bytes = super().read(sz)
        except (BrokenPipeError, TimeoutError) as error:
            raise _said(error, self.socket_timeout) from error
        except TTransportException as error:
            if error.type != TTransportException.END_OF_FILE:
                raise
            raise NotConnected(error.type, f"the other side has ended the connection ({error.message})") from None
        return data

    def _check_open(self) -> None:
        if self.sock is None:
            raise NotConnected(NotConnected.NOT_OPEN, "the connection is closed; open() opens it again")

    def write(self, buf: bytes) -> None:
        self._check_open()
        try:
            super().write(buf)
        except (BrokenPipeError, TimeoutError) as error:
            raise _said(error, self.socket_timeout) from error


def _said(error: OSError, timeout_s: float | None) -> OSError:
    if isinstance(error, TimeoutError) and error.errno is None and timeout_s is not None:
        return NoAnswer(timeout_s)
    # The system itself raises ETIMEDOUT if the server can no longer be reached.
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
