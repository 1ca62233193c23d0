"""Saving a backup into a repository: the files that the store does not have yet, then the manifest.

A table file that the newest backup has with the same path, size and time is not read again, because the engine never
changes a table file.  Any other file is read to learn its checksum; it is sent only if the store lacks it.  So a backup
that is begun again after an interruption sends what is missing.

Invariant:
    I1. The bytes that were sent are those of the checksum in the manifest: they are counted again as they are sent.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from columnar.backup.backup_manifest import Backup, SavedFile, name_of
from columnar.backup.backup_store import PIECE_BYTES
from columnar.backup.claims import Claim
from columnar.backup.repository import Progress, Repository
from columnar.errors import HostError
from columnar.storage.file_copies import TABLE_FILE, checksum


@dataclass(slots=True)
class Saving:
    """A backup under way.  Owned by one thread."""

    repository: Repository
    claim: Claim
    progress: Progress
    stored: dict[str, int]  # sizes of the objects in the store, by name
    known: dict[tuple[str, int, int], SavedFile]  # table files of the newest backup
    done: Counter[str] = field(default_factory=Counter)
    files: list[SavedFile] = field(default_factory=list)

    @classmethod
    def begun(cls, repository: Repository, claim: Claim, progress: Progress) -> Saving:
        newest = repository.newest()
        files = () if newest is None else newest.files
        known = {(file.path, file.bytes, file.mtime_ns): file for file in files if file.path.endswith(TABLE_FILE)}
        return cls(repository, claim, progress, repository.stored_sizes(), known)

    def add_file(self, source: str, place: str) -> None:
        """Save the file ``source`` as ``place`` of the data folder."""
        self.claim.renew_if_due()
        facts = os.stat(source)
        known = self.known.get((place, facts.st_size, facts.st_mtime_ns))
        file = known or SavedFile(place, facts.st_size, checksum(source), facts.st_mtime_ns)
        name, size = self.repository.object_of(file), self.repository.sealing.sealed_size(file.bytes)
        if self.stored.get(name) == size:
            self.done["reused_files"] += 1
            self.progress(file.bytes)
        else:
            pieces = self.repository.sealing.sealed(name, self._pieces(source, file))
            self.repository.store.put_pieces(name, pieces, size)
            self.stored[name] = size
            self.done["copied_files"] += 1
            self.done["copied_bytes"] += file.bytes
        self.files.append(file)

    def _pieces(self, source: str, file: SavedFile) -> Iterator[bytes]:
        found, size = hashlib.sha256(), 0
        with open(source, "rb") as reading:
            while piece := reading.read(PIECE_BYTES):
                self.claim.renew_if_due()
                found.update(piece)
                size += len(piece)
                yield piece
                self.progress(len(piece))
        if (size, found.hexdigest()) != (file.bytes, file.sha256):
            raise HostError(f"{source} changed while it was copied; begin the backup again")

    def finish(self, tables: tuple[str, ...], taken_ms: int, clock_ms: int) -> Backup:
        """Complete the backup.  Raises ClaimLost."""
        backup = Backup(name_of(taken_ms), taken_ms, tables, tuple(self.files), clock_ms)
        self.repository.put_backup(backup, self.claim)
        return backup
