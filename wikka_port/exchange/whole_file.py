"""Files of an export on disk: whole under their names, or not there.

A file is written as NAME.part, synced, and renamed.  A process that is killed leaves NAME.part, which no reader takes
for a whole file and which is written anew; ``export_file`` goes on with one.

    FOLDER/ab/abcdef...     the content of the digest abcdef...; one that is there stays, so an export continues
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from wikka_port.exchange.records import FileRecord

PART: Final = ".part"
_READ_BYTES: Final = 256 * 1024


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file.  If the block raises, the path is as it was."""
    part = path.with_name(path.name + PART)
    try:
        with part.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, on systems that open folders."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def remove_others(top: Path, folder: Path, has: Callable[[str], bool]) -> None:
    """Remove the files in ``folder`` whose paths below ``top`` the export does not have, and folders without a file."""
    for place, folders, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(place, name)
            if not has(path.relative_to(top).as_posix()):
                path.unlink()
        for name in folders:
            with suppress(OSError):  # it is not empty
                Path(place, name).rmdir()


def clear_folder(folder: Path, stays: Callable[[str], bool]) -> None:
    """Remove what is in a folder, but for the names that stay."""
    for one in folder.iterdir():
        if stays(one.name):
            continue
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        else:
            one.unlink()


def sync_all() -> None:
    """Write everything to the disks, on systems that have a call for it: cheaper than a call for each of many files."""
    if hasattr(os, "sync"):
        os.sync()


class ContentFolder:
    """Contents of files by their digests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, record: FileRecord, content: Iterator[bytes]) -> None:
        """Store a content, unless one of this digest and size is there."""
        path = self.path_of(record.sha256)
        if path.is_file() and path.stat().st_size == record.size_bytes:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as stream:
            for piece in content:
                stream.write(piece)

    def find(self, sha256: str) -> Iterator[bytes]:
        """Return the bytes of a content; the file is opened when the first is read.  Raises FileNotFoundError."""
        path = self.path_of(sha256)
        if not path.is_file():
            raise FileNotFoundError(path)
        return _pieces(path)

    def path_of(self, sha256: str) -> Path:
        """Return the path at which a content lies, or would lie."""
        return self._folder / sha256[:2] / sha256


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while piece := stream.read(_READ_BYTES):
            yield piece
