"""A repository of backups in a backup store: each backup is a list of files, and a shared file is stored once.

    FORMAT                  ``columnar-backup 1``, or ``columnar-backup 2`` and a line with the check of the key
    files/NAME              a file's bytes, under their checksum or, encrypted, under a name made of it (``sealing``)
    backups/NAME.json       the manifest of a backup (``backup_manifest``); ``NAME.sealed`` if it is encrypted
    locks/NAME.json         who saves or removes backups now (``claims``)

Invariants:
    I1. A manifest is put after every file that it names is durable.  An interrupted backup has no manifest, and its
        files are used by the next backup.
    I2. A file is removed only when no manifest names it and no backup is being saved.

Format versions, append only: 1 without encryption; 2 encrypted.  An older program refuses 2 by its FORMAT.
The page: docs/formats/backups.md.  Blocks; for a command.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from columnar.backup import backup_manifest
from columnar.backup.backup_manifest import NAME, Backup, SavedFile
from columnar.backup.backup_store import BackupStore, ObjectMissing, named
from columnar.backup.claims import Claim, claimed
from columnar.backup.sealing import KeySealing, PlainSealing, Sealing
from columnar.errors import CallerError, DamagedData, HostError

FORMAT_VERSIONS: Final = (1, 2)
_FORMAT: Final = "FORMAT"
FILES: Final = "files"
BACKUPS: Final = "backups"
REMOVED_AT_ONCE: Final = 1_000  # objects of one request, between two looks at the claim
Progress = Callable[[int], None]


class Repository:
    """Owned by one thread.  The sealing decides whether objects are encrypted."""

    def __init__(self, store: BackupStore, sealing: Sealing) -> None:
        """Take the store without a check; ``opened`` and ``made`` check it."""
        self.store = store
        self.sealing = sealing

    @classmethod
    def made(cls, store: BackupStore, key: bytes | None) -> Repository:
        """Return the repository, and begin one if the store is empty.  Raises CallerError if it has other objects."""
        if store.read_bytes(_FORMAT) is None and next(iter(store.list_objects("")), None) is None:
            store.put_bytes(_FORMAT, _sealing(key).format_line.encode() + b"\n")
            store.sync_objects()
        return cls.opened(store, key)

    @classmethod
    def opened(cls, store: BackupStore, key: bytes | None) -> Repository:
        """Return the repository.  Raises CallerError if there is none that this version knows, or the key is wrong."""
        found = store.read_bytes(_FORMAT)
        if found is None:
            raise CallerError(f"{store.address} has no backups: it has no FORMAT; choose another place")
        text = found.decode(errors="replace").strip()
        sealing = _sealing(key)
        if text == sealing.format_line:
            return cls(store, sealing)
        raise CallerError(f"{store.address} {_obstacle(text, key)}")

    # --- reading -----------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of the backups, the oldest first."""
        ending = self.sealing.manifest_ending
        found = (facts.name.removeprefix(f"{BACKUPS}/") for facts in self.store.list_objects(BACKUPS))
        names = (name.removesuffix(ending) for name in found if name.endswith(ending))
        return sorted(name for name in names if NAME.fullmatch(name))

    def read_backup(self, name: str) -> Backup:
        """Return the backup.  Raises CallerError if there is none of this name."""
        place = self._manifest(name)
        data = self.store.read_bytes(place) if NAME.fullmatch(name) else None
        if data is None:
            known = ", ".join(self.names()) or "none"
            raise CallerError(f"{self.store.address} has no backup {name}; there are {known}")
        plain = b"".join(self.sealing.unsealed(place, iter((data,))))
        return backup_manifest.from_json(name, plain, f"{self.store.address}/{place}")

    def newest(self) -> Backup | None:
        names = self.names()
        return self.read_backup(names[-1]) if names else None

    def chosen(self, name: str | None) -> Backup:
        """Return the backup of this name, or the newest.  Raises CallerError if there is none."""
        backup = self.read_backup(name) if name else self.newest()
        if backup is None:
            raise CallerError(f"{self.store.address} holds no backup yet")
        return backup

    def file_pieces(self, file: SavedFile) -> Iterator[bytes]:
        """Yield the bytes of a file; raises DamagedData, at the end at the latest, if they are not those saved."""
        name = self.object_of(file)
        found, size = hashlib.sha256(), 0
        for piece in self.sealing.unsealed(name, self.store.read_pieces(name)):
            found.update(piece)
            size += len(piece)
            yield piece
        if (size, found.hexdigest()) != (file.bytes, file.sha256):
            raise DamagedData(f"{self.store.address}/{name} is damaged: its checksum is not the one that was recorded")

    def fetch_file(self, file: SavedFile, target: str, progress: Progress) -> None:
        """Write a file of a backup to ``target``, synced.  Raises DamagedData or HostError."""
        try:
            with open(target, "wb") as writing:
                for piece in self.file_pieces(file):
                    writing.write(piece)
                    progress(len(piece))
                writing.flush()
                os.fsync(writing.fileno())
        except OSError as error:
            raise HostError(f"cannot restore {error.filename or target}: {error.strerror}") from error

    def object_of(self, file: SavedFile) -> str:
        return named(FILES, self.sealing.file_name(file.sha256))

    def stored_sizes(self) -> dict[str, int]:
        """Return the name and size of each file's object."""
        return {facts.name: facts.size_bytes for facts in self.store.list_objects(FILES)}

    def _manifest(self, name: str) -> str:
        return named(BACKUPS, name + self.sealing.manifest_ending)

    # --- writing -----------------------------------------------------------------------------------

    def put_backup(self, backup: Backup, claim: Claim) -> None:
        """Put the manifest, which completes the backup (I1)."""
        self.store.sync_objects()
        claim.confirm()
        place = self._manifest(backup.name)
        self.store.put_bytes(place, b"".join(self.sealing.sealed(place, iter((backup_manifest.to_json(backup),)))))
        self.store.sync_objects()
        try:
            claim.confirm()
        except BaseException:
            self.store.remove_objects([place])  # a removal may have begun before the manifest was there
            raise

    def keep(self, newest: int) -> int:
        """Remove all but the ``newest`` backups; return the number of removed ones."""
        names = self.names()
        doomed = names[: max(0, len(names) - newest)]
        self.remove_backups(doomed)
        return len(doomed)

    def remove_backups(self, names: Iterable[str]) -> int:
        """Remove backups, files that no backup needs, and remains of interrupted ones.  Returns the bytes removed.

        Raises CallerError if a backup is being saved, or there is no backup of such a name.
        """
        with claimed(self.store, "removing") as claim:
            known = set(self.names())
            doomed = sorted(set(names))
            for name in doomed:
                if name not in known:
                    raise CallerError(f"{self.store.address} has no backup {name}; 'columnar backup list' shows them")
            self.store.remove_objects([self._manifest(name) for name in doomed])
            return self._remove_unneeded(claim)

    def _remove_unneeded(self, claim: Claim) -> int:
        needed = set()
        for name in self.names():
            claim.renew_if_due()
            needed |= {self.object_of(file) for file in self.read_backup(name).files}
        sizes = self.stored_sizes()
        unneeded = sorted(sizes.keys() - needed)
        for at in range(0, len(unneeded), REMOVED_AT_ONCE):
            claim.confirm()
            claim.renew_if_due()
            self.store.remove_objects(unneeded[at : at + REMOVED_AT_ONCE])
        claim.confirm()
        self.store.remove_unfinished()
        return sum(sizes[name] for name in unneeded)

    # --- checking ----------------------------------------------------------------------------------

    def findings(self, backups: Iterable[Backup], progress: Progress, *, reads: bool = True) -> Iterator[str]:
        """Yield a line for each missing or damaged file; without ``reads`` only names and sizes are compared."""
        sizes = self.stored_sizes()
        seen: set[str] = set()
        for backup in backups:
            for file in backup.files:
                name = self.object_of(file)
                if name in seen:
                    continue
                seen.add(name)
                why = self._fault(file, sizes.get(name), progress, reads)
                if why:
                    yield f"{why}; it is {file.path} of backup {backup.name}"

    def _fault(self, file: SavedFile, size: int | None, progress: Progress, reads: bool) -> str:
        name = f"{self.store.address}/{self.object_of(file)}"
        expected = self.sealing.sealed_size(file.bytes)
        if size is None:
            return f"{name} is missing"
        if size != expected:
            return f"{name} is damaged: it has {size} bytes, {expected} were saved"
        try:
            for piece in self.file_pieces(file) if reads else ():
                progress(len(piece))
        except (DamagedData, ObjectMissing) as error:
            return error.text
        return ""


def _sealing(key: bytes | None) -> Sealing:
    return PlainSealing() if key is None else KeySealing(key)


def _obstacle(text: str, key: bytes | None) -> str:
    """Return why a repository with this FORMAT cannot be used with this key."""
    if text == PlainSealing.format_line:
        return "is not encrypted: leave --key-file out, or choose an empty place for encrypted backups"
    if text.startswith("columnar-backup 2\n"):
        if key is None:
            return "is encrypted: give its key with --key-file"
        return "is encrypted with another key: give the key file with which it was begun"
    first = text.splitlines()[0][:40] if text else ""
    return f"is of format '{first}'; this version knows 'columnar-backup {FORMAT_VERSIONS[-1]}': upgrade"
