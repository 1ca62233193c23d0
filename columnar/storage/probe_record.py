"""The file ``PROBED`` of a data folder: the types of file systems that a probe between two mounts has passed there.

    PROBED := JSON object {"passed": [TYPE ...]}, sorted, as in {"passed": ["fuse.example"]}

A node starts on a file system that nobody has measured with this store only if its type is in the file.
``columnar probe-root`` writes the file after a pass, and removes it after a fault.  The file tells nothing of the
options of the mounts: a mount with other options must be tried again.

All functions block, and raise OSError.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from columnar.errors import DamagedData
from columnar.storage.durable_files import sync_folder, write_durably

PROBED: Final = "PROBED"


def to_bytes(kinds: Iterable[str]) -> bytes:
    return json.dumps({"passed": sorted(kinds)}).encode() + b"\n"


def from_bytes(data: bytes) -> frozenset[str]:
    """Raises ValueError."""
    fields = json.loads(data)
    kinds = fields.get("passed") if isinstance(fields, dict) else None
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise ValueError("no list of types")
    return frozenset(kinds)


def read_passed(data: str) -> frozenset[str]:
    """Return the types that have passed in the folder.  Raises DamagedData too."""
    path = os.path.join(data, PROBED)
    try:
        with open(path, "rb") as file:
            return from_bytes(file.read())
    except FileNotFoundError:
        return frozenset()
    except ValueError as error:
        raise DamagedData(f"{path} is damaged ({error}): remove it, and try the folder again") from error


def note_passed(data: str, kinds: Iterable[str]) -> None:
    """Add the types to those that have passed; a damaged file is replaced."""
    passed = frozenset(kinds)
    with suppress(DamagedData):
        passed |= read_passed(data)
    write_durably(os.path.join(data, PROBED), to_bytes(passed), is_shared=True)


def forget_passed(data: str) -> bool:
    """Remove the file; return whether there was one."""
    try:
        os.unlink(os.path.join(data, PROBED))
    except FileNotFoundError:
        return False
    sync_folder(data)
    return True
