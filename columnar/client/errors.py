"""Errors of a client under happybase's names: ``except IllegalArgument`` catches errors of the store and of the client.

The classes of errors:

    IOError, IllegalArgument, AlreadyExists   happybase's own classes, so that one ``except`` serves both libraries
    StoreIOError, ...                         their subclasses, which are raised; ``str(error)`` is the message
    WrongArgument                             an IllegalArgument raised by this library before it called the store
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import happybase
from thriftpy2.thrift import TException

from columnar import errors
from columnar.wire.idl import hbase

assert happybase.__version__  # importing happybase is what makes Hbase_thrift importable

import Hbase_thrift  # type: ignore[import-not-found]  # noqa: E402

IOError: Final[Any] = Hbase_thrift.IOError
IllegalArgument: Final[Any] = Hbase_thrift.IllegalArgument
AlreadyExists: Final[Any] = Hbase_thrift.AlreadyExists


class _Said(Exception):
    """An error whose ``str()`` is the message as text; ``message`` is happybase's, bytes or text as received."""

    message: bytes | str | None

    def __init__(self, message: bytes | str | None = None) -> None:
        Exception.__init__(self, message)
        self.message = message

    def __str__(self) -> str:
        message = self.message
        return message.decode(errors="replace") if isinstance(message, bytes) else message or ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class StoreIOError(_Said, IOError):  # type: ignore[misc]
    pass


class StoreIllegalArgument(_Said, IllegalArgument):  # type: ignore[misc]
    pass


class StoreAlreadyExists(_Said, AlreadyExists):  # type: ignore[misc]
    pass


class WrongArgument(StoreIllegalArgument, errors.IllegalArgument):
    """An argument is wrong; the store was not called."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@contextmanager
def wrong_arguments() -> Iterator[None]:
    """Raise WrongArgument if the model refuses an argument; used by ``with`` or as a decorator."""
    try:
        yield
    except errors.IllegalArgument as error:
        raise error if isinstance(error, WrongArgument) else WrongArgument(error.text) from None


_OURS: Final[dict[type[Any], type[_Said]]] = {
    IOError: StoreIOError,
    IllegalArgument: StoreIllegalArgument,
    AlreadyExists: StoreAlreadyExists,
    hbase.IOError: StoreIOError,
    hbase.IllegalArgument: StoreIllegalArgument,
    hbase.AlreadyExists: StoreAlreadyExists,
}


DECLARED: Final = tuple(_OURS)  # for ``except``


def as_ours(error: Any) -> Exception:
    """Return ``error`` as our subclass if the IDL declares its class; else return it unchanged."""
    made = _OURS.get(type(error))
    found: Exception = error if made is None else made(error.message)
    return found


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


class GroupConflict(Exception):
    """Each try of a transaction met changes of others to what it had read; nothing was written."""

    def __init__(self, group: bytes, tries: int) -> None:
        super().__init__(
            f"a transaction on the group of {group!r} met changes of others in each of its {tries} tries, and nothing "
            "was written: read less of the group, make groups smaller, or allow more tries"
        )
        self.group = group
        self.tries = tries


class LeaseNotFree(Exception):
    """Another program holds the lease, and has not given it back in time."""

    def __init__(self, name: bytes, wait_ms: int) -> None:
        super().__init__(
            f"lease {_readable(name)} was not free within {wait_ms} ms; wait longer, or see who holds it: "
            f"columnar lease show {_readable(name)}"
        )
        self.name = name


class LeaseLost(Exception):
    """The lease is not held any more: it was not renewed in time, or an operator has released it."""

    def __init__(self, name: bytes, holder: str) -> None:
        super().__init__(
            f"{holder} does not hold lease {_readable(name)} any more: another program may have it; stop what needs "
            "it, and acquire it again"
        )
        self.name = name


def _readable(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def hbase_class(error: Exception) -> str:
    """Return the HBase exception class that a server's message begins with, or an empty string."""
    message = getattr(error, "message", b"") or b""
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    head = text.partition(":")[0]
    return head.rpartition(".")[2] if head and " " not in head else ""
