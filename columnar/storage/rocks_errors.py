"""Translation of RocksDB's errors to ours: rocksdict raises bare exceptions, told apart by words of their text."""

from __future__ import annotations

import os
from collections.abc import Callable
from shlex import quote
from typing import Final, TypeVar

import rocksdict

from columnar.errors import ColumnarError, DamagedData, DiskFails, HostError
from columnar.storage.api import StoreBusy, StoreClosed
from columnar.storage.data_folder import REGIONS, STAGING

T = TypeVar("T")

_FAILS: Final = "Input/output error"
# The system's message within RocksDB's text; the matter; the advice.
_KNOWN: Final = (
    ("No space left on device", "the disk is full", "free some room: writes are taken again within a second"),
    ("Disk quota exceeded", "the disk quota is used up", "free some room: writes are taken again within a second"),
    ("File too large", "a file may not grow any more", "raise the limit of file sizes (ulimit -f) and restart"),
    ("Read-only file system", "the disk takes no writes", "mount it for writing: writes are taken again then"),
    (
        "Too many open files",
        "no file descriptor is left",
        "close connections, or raise the limit (ulimit -n) and restart",
    ),
    (_FAILS, "the disk fails", "look at the machine's log; copy the data folder while it can be read"),
)
DATA_FOLDER_MOVED: Final = "the data folder was moved, or its disk is not mounted: put it back"


def repair_advice(path: str) -> str:
    """Say what to do about damage of a store, or of a file in it, at ``path``."""
    command = f"columnar repair --data {quote(data_of(path) or 'DIR')}"
    return f"run 'columnar check'; stop the store, and '{command}' saves what is readable, the rest comes from a backup"


def emptied(path: str) -> str:
    """Say what is the matter with the folder of a region, at ``path``, whose files are gone."""
    command = f"columnar repair --data {quote(data_of(path) or 'DIR')}"
    return (
        f"{path}: the folder of this region is empty, and a store was in it: all that was written to it is missing; "
        f"put its files back from a copy; or stop the store, and '{command}' puts an empty region there"
    )


def data_of(path: str) -> str:
    """Return the data folder that contains a region's folder or a copy of it, or an empty text if none does."""
    for folder in (STAGING, REGIONS):
        data, found, _ = os.path.abspath(path).rpartition(f"{os.sep}{folder}{os.sep}")
        if found:
            return data
    return ""


def translated(error: Exception, path: str) -> ColumnarError:
    text = str(error)
    if isinstance(error, rocksdict.DbClosedError):
        return StoreClosed(f"the store {path} is closed")
    if "Incomplete" in text or "stall" in text.lower():
        return StoreBusy("the engine is behind with flushing; try again shortly", path)
    for words, matter, advice in _KNOWN:
        if words in text:
            kind = DiskFails if words == _FAILS else HostError
            return kind(f"{matter} ({path}: {text}); {advice}")
    if "No such file" in text and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        return HostError(f"{path}: {text}; {DATA_FOLDER_MOVED}")
    if "Corruption" in text or "No such file" in text:
        return DamagedData(f"{path}: {text}; {repair_advice(path)}")
    return HostError(f"{path}: {text}")


def engine_call(call: Callable[[], T], path: str) -> T:
    """Call RocksDB and return the result; translates its errors to ours."""
    try:
        return call()
    except StoreClosed:
        raise
    except Exception as error:  # rocksdict raises bare exceptions
        raise translated(error, path) from error


def refused(error: OSError, what: str) -> HostError:
    """Return the error for a system call that failed; ``what`` says which operation failed."""
    text = f"{what}: {error.strerror}"
    for words, matter, advice in _KNOWN:
        if words == error.strerror:
            return HostError(f"{matter} ({text}); {advice}")
    return HostError(text)
