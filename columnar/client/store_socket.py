"""A client's socket: thriftpy2's, whose errors say what became of the connection once it was open.

    NoAnswer              nothing came, or could be sent, within the timeout; it is a ``TimeoutError``
    ConnectionResetError  the other side has ended the connection, also where the system says "broken pipe":
                          command lines take a ``BrokenPipeError`` for the end of the reader of their own output

Errors of the opening, and an end of the stream, are thriftpy2's ``TTransportException``.
"""

from __future__ import annotations

import errno
import os

from thriftpy2.transport import TSocket


class NoAnswer(TimeoutError):
    """The outcome of the call is unknown."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds


class StoreSocket(TSocket):  # type: ignore[misc]
    socket_timeout: float | None  # seconds

    def read(self, sz: int) -> bytes:
        try:
            data: bytes = super().read(sz)
        except (BrokenPipeError, TimeoutError) as error:
            raise _said(error, self.socket_timeout) from error
        return data

    def write(self, buf: bytes) -> None:
        try:
            super().write(buf)
        except (BrokenPipeError, TimeoutError) as error:
            raise _said(error, self.socket_timeout) from error


def _said(error: OSError, timeout_s: float | None) -> OSError:
    if isinstance(error, TimeoutError) and error.errno is None and timeout_s is not None:
        return NoAnswer(timeout_s)
    # The system has an ETIMEDOUT of its own, for another side that is not reached any more.
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
