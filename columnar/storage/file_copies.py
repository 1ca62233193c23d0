"""Folders of finished files: linked where the file system can, copied where it cannot, with checksums.

An engine never changes a table file once it is written, so two folders may share one by a hard link;
its other files (manifest, log, options) it changes or replaces: they are copied.

Blocks: for threads and commands, not for the loop.
"""

from __future__ import annotations

import hashlib
import os
from typing import Final

from columnar.errors import DamagedData
from columnar.storage.durable_files import HALF, rename_durably, sync_file, sync_folder

TABLE_FILE: Final = ".sst"
LOG_FILE: Final = ".log"
HALF_CHECKPOINT: Final = ".tmp"  # suffix of a checkpoint that the engine has not finished
_NOT_KEPT: Final = ("LOCK", "LOG")  # the engine's own lock, and its diary, with ``LOG.old.N``
_BOUND: Final = "SYNCED"  # of what was synced (``synced_bound``): it changes, so copies that last do without


def remove_tree(path: str, *, missing_ok: bool = False) -> None:
    """Remove a folder and all in it; with ``missing_ok`` what can be removed, and no error."""
    from shutil import rmtree  # with three libraries of compression: 0.6 MB that an idle server needs not

    rmtree(path, ignore_errors=missing_ok)


def copy_contents(source: str, target: str) -> None:
    """The bytes of one file; not synced."""
    from shutil import copyfile

    copyfile(source, target)


def files_of(folder: str, *, with_bound: bool = False) -> list[str]:
    """Names of the files that make the store, ascending; ``with_bound``: and the one that shows what is missing."""
    left_out = _NOT_KEPT if with_bound else (*_NOT_KEPT, _BOUND)
    with os.scandir(folder) as found:
        return sorted(entry.name for entry in found if entry.is_file() and entry.name.split(".")[0] not in left_out)


def link_or_copy(source: str, target: str) -> None:
    """``target`` on disk when this returns; its folder's entry is for ``sync_folder``."""
    if source.endswith(TABLE_FILE):
        try:
            os.link(source, target)
            return
        except OSError:  # another file system, or one without links
            pass
    copy_file(source, target)


def copy_file(source: str, target: str) -> None:
    copy_contents(source, target)
    sync_file(target)


def link_folder(source: str, target: str) -> None:
    """A store's files in a new folder; ``target`` is there whole or not at all."""
    half = target + HALF
    remove_tree(half, missing_ok=True)
    os.mkdir(half)
    for name in files_of(source):
        link_or_copy(os.path.join(source, name), os.path.join(half, name))
    sync_folder(half)
    rename_durably(half, target)


def link_closed(source: str, target: str) -> None:
    """Link the files of a closed store to ``target``: some 1 ms, not synced, and partial after a crash.

    Its log is linked too: opening either store reads that log and begins a new one.  The log has not been verified;
    the bound is copied, so that the first opening of the copy verifies it.
    """
    os.mkdir(target)
    for name in files_of(source, with_bound=True):
        old, new = os.path.join(source, name), os.path.join(target, name)
        if name.endswith((TABLE_FILE, LOG_FILE)):
            try:
                os.link(old, new)
                continue
            except OSError:  # another file system, or one without links
                pass
        copy_contents(old, new)


def checksum(path: str) -> str:
    """SHA-256 in hex, outside the interpreter lock."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(path: str, size_bytes: int, sha256: str) -> None:
    """DamagedData where the file is missing or is not what was recorded."""
    try:
        found = os.path.getsize(path)
        if found != size_bytes:
            raise DamagedData(f"{path} has {found} bytes, {size_bytes} were recorded")
        if checksum(path) != sha256:
            raise DamagedData(f"{path} is damaged: its checksum is not the one that was recorded")
    except FileNotFoundError:
        raise DamagedData(f"{path} is missing") from None
