"""Copies of folders with finished files: by hard links if the file system has them, otherwise by copying.

RocksDB never changes a finished table file, so two folders may share it by a hard link.  Other files (MANIFEST, log,
options) are changed or replaced, so they are copied.

All functions block: they are for threads and commands, not for the loop.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from typing import Final

from columnar.errors import DamagedData
from columnar.storage.durable_files import HALF, rename_durably, sync_file, sync_folder

TABLE_FILE: Final = ".sst"
LOG_FILE: Final = ".log"
HALF_CHECKPOINT: Final = ".tmp"  # suffix of a checkpoint that the engine has not finished
_NOT_KEPT: Final = ("LOCK", "LOG")  # RocksDB's lock and its diagnostic messages, also ``LOG.old.N``
_BOUND: Final = "SYNCED"  # the bound of the synced part (``synced_bound``): it changes, so lasting copies lack it


def remove_tree(path: str, *, missing_ok: bool = False) -> None:
    """Remove a folder with its contents; with ``missing_ok`` removes what it can and ignores errors.

    A file that is gone already is no error: a thread of an earlier leader may be removing the same folder.
    """
    from shutil import rmtree  # it loads three compression libraries: 0.6 MB

    if missing_ok:
        rmtree(path, ignore_errors=True)
    elif sys.version_info >= (3, 12):
        rmtree(path, onexc=lambda _call, _path, error: _raise_unless_gone(error))
    else:
        rmtree(path, onerror=lambda _call, _path, found: _raise_unless_gone(found[1]))


def _raise_unless_gone(error: BaseException) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def dispose_tree(path: str, ending: str) -> None:
    """Remove a folder, if it exists, after a rename to a name of its own with ``ending``.

    Errors of the removal are ignored.  Another process, or a thread whose caller has given up, may be about to rename
    the folder to the name by which it counts as complete: then that folder is whole, or the rename fails, but it never
    lacks what was removed already.
    Raises OSError.
    """
    doomed = f"{path}.{secrets.token_hex(4)}{ending}"
    try:
        os.rename(path, doomed)
    except FileNotFoundError:
        return
    remove_tree(doomed, missing_ok=True)


def copy_contents(source: str, target: str) -> None:
    """Copy the bytes of one file, without a sync."""
    from shutil import copyfile

    copyfile(source, target)


def files_of(folder: str, *, with_bound: bool = False) -> list[str]:
    """Return the names of the store's files, ascending; ``with_bound`` includes the file ``SYNCED``."""
    left_out = _NOT_KEPT if with_bound else (*_NOT_KEPT, _BOUND)
    with os.scandir(folder) as found:
        return sorted(entry.name for entry in found if entry.is_file() and entry.name.split(".")[0] not in left_out)


def link_or_copy(source: str, target: str) -> None:
    """Link or copy the file to ``target``.  The content is on disk then, the folder's entry after ``sync_folder``."""
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
    """Link or copy a store's files to the new folder ``target``, atomically and durably."""
    half = target + HALF
    remove_tree(half, missing_ok=True)
    os.mkdir(half)
    for name in files_of(source):
        link_or_copy(os.path.join(source, name), os.path.join(half, name))
    sync_folder(half)
    rename_durably(half, target)


def link_closed(source: str, target: str) -> None:
    """Link the files of a closed store to ``target``, in some 1 ms.  The copy is not synced, and may be incomplete
    after a crash.

    The store's log is linked too: each of the two stores reads it at its opening and begins a new log.  The log has not
    been verified; the bound (``SYNCED``) is copied, so that the first opening of the copy verifies the log.
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
    """Return the file's SHA-256 in hexadecimal; computes it outside the interpreter lock."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(path: str, size_bytes: int, sha256: str) -> None:
    """Raise DamagedData if the file is missing, or if its size or checksum differs from the record."""
    try:
        found = os.path.getsize(path)
        if found != size_bytes:
            raise DamagedData(f"{path} has {found} bytes, {size_bytes} were recorded")
        if checksum(path) != sha256:
            raise DamagedData(f"{path} is damaged: its checksum is not the one that was recorded")
    except FileNotFoundError:
        raise DamagedData(f"{path} is missing") from None
