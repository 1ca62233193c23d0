"""The folders of stores that are not open, as the disk sees them.  Not for the loop: the disk may be slow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from columnar.storage.durable_files import sync_folder_if_any


def sync_logs(folder: str) -> None:
    """Sync a store's logs."""
    for name in os.listdir(folder):
        if name.endswith(".log"):
            sync_folder_if_any(os.path.join(folder, name))  # a file or a folder: the call is the same


def make_lasting(folder: str) -> None:
    """Make the folder and its parents; folders that were made survive a power cut.

    RocksDB syncs the files in a store's folder but not the folder's own directory entry: without that entry the
    whole store would be gone, with writes that were synced and acknowledged.
    """
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(os.path.abspath(folder))
    make_lasting(parent)
    with suppress(FileExistsError):  # another process was quicker; the lock decides between the two
        os.mkdir(folder)
    sync_folder_if_any(parent)


def make_private(folder: str) -> None:
    """``make_lasting`` of a folder that its user alone reads; one that is there and empty becomes so, too."""
    make_lasting(folder)
    if not os.listdir(folder):
        os.chmod(folder, 0o700)


def make_all_lasting(folders: Sequence[str]) -> None:
    """``make_lasting`` for many that stand side by side: one fsync for all."""
    if not folders:
        return
    parent = os.path.dirname(os.path.abspath(folders[0]))
    make_lasting(parent)
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    sync_folder_if_any(parent)


def make_lasting_within(folder: str) -> None:
    """``make_lasting`` in an existing folder.

    Raises FileNotFoundError if it is missing: the store was moved away, and a new one must not be begun in its place.
    """
    with suppress(FileExistsError):
        os.mkdir(folder)
    sync_folder_if_any(os.path.dirname(os.path.abspath(folder)))


def size_of(folder: str) -> int:
    """Bytes of the files in it; 0 where there is no such folder."""
    total = 0
    try:
        with os.scandir(folder) as files:
            for file in files:
                try:
                    total += file.stat(follow_symlinks=False).st_size
                except FileNotFoundError:
                    continue  # the engine removed it meanwhile
    except FileNotFoundError:
        return 0
    return total
