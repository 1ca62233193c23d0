"""The files of a folder that somebody else made: only regular files within it, of bounded number and depth.

Links to other places, devices, pipes and sockets are left out and named.  A file is opened without following a link
and checked again once it is open, so that a file that was replaced meanwhile leads nowhere else.

Hidden files and folders, whose names begin with a dot, are left out, but for those that the caller names.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

from wikka_port.limits import FOLDER_DEPTH_MAX, FOLDER_ENTRIES_MAX

_PIECE_BYTES: Final = 256 * 1024
_NAMED_MAX: Final = 200


class NoRegularFile(OSError):
    """The path leads to no regular file of the folder."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    path: str  # relative to the folder, with slashes, as the file system has it
    size_bytes: int
    time_ms: int  # of its last change


@dataclass(slots=True)
class FolderReport:
    """Findings of a walk; each entry of a list is a line for a person."""

    left_out: list[str] = field(default_factory=list)
    hidden: int = 0

    def count_hidden(self) -> None:
        self.hidden += 1

    def leave_out(self, path: str, why: str) -> None:
        if len(self.left_out) < _NAMED_MAX:
            self.left_out.append(f"{path!a}: {why}")


class SourceFolder:
    """A folder, read only."""

    def __init__(self, root: Path, unhidden: Collection[str] = ()) -> None:
        """Take the names of hidden files and folders that are read, ``unhidden``."""
        self.root = root
        self._unhidden = frozenset(unhidden)

    def files(self, report: FolderReport, under: str = "") -> list[FoundFile]:
        """Return the regular files, ordered by path.  Raises OSError if the folder itself cannot be read."""
        found: list[FoundFile] = []
        entries = 0
        waiting = [(under, 0)]
        while waiting:
            folder, depth = waiting.pop()
            for entry in self._entries(folder, report, is_first=folder == under):
                entries += 1
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entries > FOLDER_ENTRIES_MAX:
                    report.leave_out(path, f"it and all further ones, for {FOLDER_ENTRIES_MAX:,} are the most")
                    return sorted(found, key=lambda one: one.path)
                if entry.name.startswith(".") and entry.name not in self._unhidden:
                    report.count_hidden()
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError as problem:
                    report.leave_out(path, problem.strerror or "it cannot be read")
                    continue
                if stat.S_ISDIR(status.st_mode):
                    if depth + 1 < FOLDER_DEPTH_MAX:
                        waiting.append((path, depth + 1))
                    else:
                        report.leave_out(path, f"folders within folders, deeper than {FOLDER_DEPTH_MAX}")
                elif stat.S_ISREG(status.st_mode):
                    found.append(FoundFile(path, status.st_size, status.st_mtime_ns // 1_000_000))
                else:
                    kind = "a link to another place" if stat.S_ISLNK(status.st_mode) else "no regular file"
                    report.leave_out(path, kind)
        return sorted(found, key=lambda one: one.path)

    def _entries(self, folder: str, report: FolderReport, *, is_first: bool) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / folder) as entries:
                yield from entries
        except OSError as problem:
            if is_first:
                raise
            report.leave_out(folder, problem.strerror or "it cannot be read")

    def open_file(self, path: str) -> BinaryIO:
        """Open a regular file of the folder for reading.  Raises OSError, NoRegularFile among them."""
        whole = self.root / path
        given = os.open(whole, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        if not stat.S_ISREG(os.fstat(given).st_mode):
            os.close(given)
            raise NoRegularFile(f"{path}: no regular file")
        return os.fdopen(given, "rb")

    def read_bytes(self, path: str, most: int) -> bytes:
        """Return up to ``most`` bytes of a file.  Raises OSError."""
        with self.open_file(path) as stream:
            return stream.read(most)

    def digest_of(self, path: str) -> tuple[str, int]:
        """Return SHA-256 and size of a file.  Raises OSError."""
        digest, size_bytes = sha256(), 0
        for piece in self.pieces_of(path):
            digest.update(piece)
            size_bytes += len(piece)
        return digest.hexdigest(), size_bytes

    def pieces_of(self, path: str) -> Iterator[bytes]:
        with self.open_file(path) as stream:
            while piece := stream.read(_PIECE_BYTES):
                yield piece
