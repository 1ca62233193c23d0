"""Small files and directory entries that survive a power cut.

    write_durably    writes a whole file: new content in ``PATH.new``, fsync, rename, fsync of the directory
    create_durably   makes a whole file unless it exists, also if several machines try it at the same time
    rename_durably   renames a file or folder, and syncs its directory
    read_first       reads the beginning of a file completely, or raises an error

RocksDB syncs its own files but not the directory entry of its folder.  Without ``sync_folder`` a power cut may undo the
making, renaming or removal of a file or folder.

All functions block for as long as the disk takes, and raise OSError.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

HALF: Final = ".new"  # suffix of a file or folder that is not complete yet
_PIECE_BYTES: Final = 16 * 1024 * 1024  # of one read


def write_durably(path: str, data: bytes, *, is_shared: bool = False) -> None:
    """Replace the file: after a crash it contains ``data`` or its previous content.  Two fsyncs.

    With ``is_shared`` several processes, also of other machines, may replace the file at the same time.
    """
    replace_file(path, data, sync=True, half=_unique_half(path) if is_shared else None)
    sync_folder(os.path.dirname(os.path.abspath(path)))


def create_durably(path: str, data: bytes, *, mode: int = 0o666) -> None:
    """Make the file with ``data`` unless it exists; of several processes that make it at once exactly one succeeds.

    The file is complete from the moment at which it exists.  Needs a file system with hard links.
    """
    half = _unique_half(path)
    handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(handle, "wb") as new:
            new.write(data)
            new.flush()
            os.fsync(new.fileno())
        with suppress(FileExistsError):
            os.link(half, path)
    finally:
        os.unlink(half)
    sync_folder(os.path.dirname(os.path.abspath(path)))


def _unique_half(path: str) -> str:
    from uuid import uuid4  # needed only where several processes share a folder

    return f"{path}.{uuid4().hex}{HALF}"


def replace_file(path: str, data: bytes, *, sync: bool, half: str | None = None) -> None:
    """Replace the file atomically; with ``sync`` the new content is on disk before the rename.

    The content is first written to ``half``.
    """
    half = half or path + HALF
    with open(half, "wb") as new:
        new.write(data)
        if sync:
            new.flush()
            os.fsync(new.fileno())
    os.replace(half, path)


def read_first(path: str, count: int | None = None) -> bytes:
    """Return the first ``count`` bytes of the file, or all if it is shorter or ``count`` is None.

    Raises OSError (EIO) if fewer bytes were read than the file has.  A short read looks like the end of the file; on a
    network file system it may only be the end of what this machine has cached.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        wanted = size if count is None else count
        pieces: list[bytes] = []
        found = 0
        while found < wanted and (piece := os.read(file, min(wanted - found, _PIECE_BYTES))):
            pieces.append(piece)
            found += len(piece)
    finally:
        os.close(file)
    if found < min(wanted, size):
        raise OSError(errno.EIO, f"only {found} bytes of its {size} could be read", path)
    return b"".join(pieces)


def size_of_file(path: str) -> int:
    """Return the size of the file, which is opened to learn it.

    A network file system asks its server for the size when a file is opened; for ``stat`` it may answer from the cache
    of this machine.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.fstat(file).st_size
    finally:
        os.close(file)


def rename_durably(source: str, target: str) -> None:
    """Rename a file or folder within its directory; a power cut does not restore the old name.  One fsync."""
    os.rename(source, target)
    sync_folder(os.path.dirname(os.path.abspath(target)))


def sync_file(path: str) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: str) -> None:
    """Sync the directory's entries, not the content of its files."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder_if_any(path: str) -> None:
    """``sync_folder``, unless the folder is missing (stores in memory) or cannot be opened (Windows)."""
    try:
        sync_folder(path)
    except (FileNotFoundError, PermissionError):
        return


def sync_logs(folder: str) -> None:
    """Sync the logs (``.log``) in a store's folder."""
    for name in os.listdir(folder):
        if name.endswith(".log"):
            sync_folder_if_any(os.path.join(folder, name))  # works for files too


def make_lasting(folder: str) -> None:
    """Make the folder and its parents if they are missing; the made folders survive a power cut.

    RocksDB syncs the files in a store's folder but not the folder's own directory entry.  Without the entry the whole
    store would be lost, with writes that were synced and acknowledged.
    """
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(os.path.abspath(folder))
    make_lasting(parent)
    with suppress(FileExistsError):  # a different process was faster; the folder's lock decides between the two
        os.mkdir(folder)
    sync_folder_if_any(parent)


def make_private(folder: str, beside: Collection[str] = ()) -> None:
    """Make the folder as ``make_lasting`` does; if it is empty, only its user may read it afterwards.

    A folder that has only files of the names ``beside`` counts as empty.
    """
    make_lasting(folder)
    if not set(os.listdir(folder)).difference(beside):
        os.chmod(folder, 0o700)


def make_all_lasting(folders: Sequence[str]) -> None:
    """Make folders as ``make_lasting`` does, with one fsync; all must have the same parent folder."""
    if not folders:
        return
    parent = os.path.dirname(os.path.abspath(folders[0]))
    make_lasting(parent)
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    sync_folder_if_any(parent)


def make_lasting_within(folder: str) -> None:
    """Make the folder as ``make_lasting`` does, in an existing parent folder.

    Raises FileNotFoundError if the parent is missing: then the store was moved away, and a new store must not be begun
    in its place.
    """
    with suppress(FileExistsError):
        os.mkdir(folder)
    sync_folder_if_any(os.path.dirname(os.path.abspath(folder)))


def size_of(folder: str) -> int:
    """Return the total size of the files in the folder, in bytes; 0 if the folder is missing."""
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
