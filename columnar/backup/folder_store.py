"""A backup store in a folder of this machine, or of a file system that it mounts.

FOLDER/NAME             an object
FOLDER/.../.half-*      an object that is being written: renamed to its name after its fsync
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from columnar.backup.backup_store import PIECE_BYTES, ObjectFacts, ObjectMissing
from columnar.runtime.file_errors import files_in
from columnar.storage.durable_files import make_lasting, make_private, sync_folder

_HALF: Final = ".half-"
_OLD_HALF: Final = "half"  # of earlier versions, in ``files``


class FolderStore:
    """Owned by one thread.  Several processes may use one folder."""

    def __init__(self, path: str) -> None:
        """Take the path; the folder is made by the first object that is put."""
        self._path = os.path.abspath(path)
        self._unsynced: set[str] = set()  # folders with new names

    @property
    def address(self) -> str:
        return self._path

    def put_bytes(self, name: str, data: bytes) -> None:
        self.put_pieces(name, iter((data,)), len(data))

    def put_pieces(self, name: str, pieces: Iterator[bytes], size_bytes: int) -> None:
        with files_in(self._path):
            target = self._file(name)
            folder = os.path.dirname(target)
            if not os.path.isdir(folder):
                make_private(self._path)  # it has all that the data folder has
                make_lasting(folder)
            half = os.path.join(folder, f"{_HALF}{secrets.token_hex(8)}")
            try:
                _write_synced(half, pieces)
                os.replace(half, target)
            except BaseException:
                with suppress(OSError):
                    os.unlink(half)
                raise
            self._unsynced.add(folder)

    def sync_objects(self) -> None:
        with files_in(self._path):
            while self._unsynced:
                sync_folder(self._unsynced.pop())

    def read_bytes(self, name: str) -> bytes | None:
        with files_in(self._path):
            try:
                with open(self._file(name), "rb") as file:
                    return file.read()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def read_pieces(self, name: str) -> Iterator[bytes]:
        with files_in(self._path):
            try:
                file = open(self._file(name), "rb")  # noqa: SIM115 - closed below
            except FileNotFoundError:
                raise ObjectMissing(self.address, name) from None
        with file:
            while piece := self._read(file.fileno()):
                yield piece

    def _read(self, descriptor: int) -> bytes:
        with files_in(self._path):
            return os.read(descriptor, PIECE_BYTES)

    def list_objects(self, folder: str) -> Iterator[ObjectFacts]:
        with files_in(self._path):
            for parent, _, names in os.walk(os.path.join(self._path, folder)):
                for name in names:
                    if _is_half(parent, name):
                        continue
                    path = os.path.join(parent, name)
                    with suppress(FileNotFoundError):  # removed meanwhile
                        facts = os.stat(path)
                        place = os.path.relpath(path, self._path).replace(os.sep, "/")
                        yield ObjectFacts(place, facts.st_size, facts.st_mtime_ns // 1_000_000)

    def remove_objects(self, names: Sequence[str]) -> None:
        with files_in(self._path):
            for name in names:
                with suppress(FileNotFoundError):
                    os.unlink(self._file(name))
            # Else a power cut brings back the list of a backup whose files are gone.
            for folder in {os.path.dirname(self._file(name)) for name in names}:
                if os.path.isdir(folder):
                    sync_folder(folder)

    def remove_unfinished(self) -> None:
        with files_in(self._path):
            for parent, _, names in os.walk(self._path):
                for name in names:
                    if _is_half(parent, name):
                        os.unlink(os.path.join(parent, name))

    def _file(self, name: str) -> str:
        return os.path.join(self._path, *name.split("/"))


def _is_half(parent: str, name: str) -> bool:
    return name.startswith(_HALF) or (name == _OLD_HALF and os.path.basename(parent) == "files")


def _write_synced(path: str, pieces: Iterator[bytes]) -> None:
    with open(path, "wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
