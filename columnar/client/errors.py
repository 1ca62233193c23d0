"""What a client can hear from the server, by happybase's names."""

from __future__ import annotations

from typing import Any, Final

import happybase
from thriftpy2.thrift import TException

assert happybase.__version__  # importing happybase is what makes Hbase_thrift importable

import Hbase_thrift  # type: ignore[import-not-found]  # noqa: E402

IOError: Final[Any] = Hbase_thrift.IOError
IllegalArgument: Final[Any] = Hbase_thrift.IllegalArgument
AlreadyExists: Final[Any] = Hbase_thrift.AlreadyExists


class NotColumnar(TException):  # type: ignore[misc]
    """The server does not know our extension: it is a plain HBase, or an older Columnar."""

    def __init__(self, method: str, address: str) -> None:
        super().__init__(f"{address} does not know {method}: it is a plain HBase gateway, or an older Columnar")
        self.method = method
        self.address = address


class NotYet(Exception):
    """The view does not show the write yet; the same read may succeed later."""

    def __init__(self, view: str, token: str, timeout_ms: int) -> None:
        super().__init__(
            f"view {view} does not show the write {token} after {timeout_ms} ms; read again, or wait longer"
        )
        self.view = view
        self.token = token
        self.timeout_ms = timeout_ms


def hbase_class(error: Exception) -> str:
    """The HBase exception class that a server's message begins with, or an empty string."""
    message = getattr(error, "message", b"") or b""
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    head = text.partition(":")[0]
    return head.rpartition(".")[2] if head and " " not in head else ""
