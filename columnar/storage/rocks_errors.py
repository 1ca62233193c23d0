"""The engine's errors as ours: rocksdict raises bare exceptions, told apart by the words RocksDB begins its status with."""

from __future__ import annotations

import rocksdict

from columnar.errors import DamagedData, HostError
from columnar.storage.api import StoreBusy, StoreClosed


def translated(error: Exception, path: str) -> Exception:
    text = str(error)
    if isinstance(error, rocksdict.DbClosedError):
        return StoreClosed(f"the store {path} is closed")
    if "Incomplete" in text or "stall" in text.lower():
        return StoreBusy("the engine is behind with flushing; try again shortly")
    if "Corruption" in text:
        return DamagedData(f"{path}: {text}")
    return HostError(f"{path}: {text}")
