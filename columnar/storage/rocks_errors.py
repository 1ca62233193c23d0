"""The engine's errors as ours: rocksdict raises bare exceptions; the words RocksDB begins them with tell them apart."""

from __future__ import annotations

from typing import Final

import rocksdict

from columnar.errors import ColumnarError, DamagedData, DiskFails, HostError
from columnar.storage.api import StoreBusy, StoreClosed

_FAILS: Final = "Input/output error"
# What the system said, as it stands in the engine's text; what is the matter; what to do about it.
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
MEND: Final = "run 'columnar check'; 'columnar repair' saves what is readable, the rest comes from a backup"


def translated(error: Exception, path: str) -> ColumnarError:
    text = str(error)
    if isinstance(error, rocksdict.DbClosedError):
        return StoreClosed(f"the store {path} is closed")
    if "Incomplete" in text or "stall" in text.lower():
        busy = StoreBusy("the engine is behind with flushing; try again shortly")
        busy.store = path
        return busy
    for words, matter, advice in _KNOWN:
        if words in text:
            kind = DiskFails if words == _FAILS else HostError
            return kind(f"{matter} ({path}: {text}); {advice}")
    if "Corruption" in text or "No such file" in text:
        return DamagedData(f"{path}: {text}; {MEND}")
    return HostError(f"{path}: {text}")


def refused(error: OSError, what: str) -> HostError:
    """A folder could not be made or removed."""
    text = f"{what}: {error.strerror}"
    for words, matter, advice in _KNOWN:
        if words == error.strerror:
            return HostError(f"{matter} ({text}); {advice}")
    return HostError(text)
