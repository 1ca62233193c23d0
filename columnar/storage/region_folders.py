"""``DATA/regions``: the folder of each region, by the region's encoded name.

    regions/ENCODED             the region's store
    regions/ENCODED.deleted     a store that is being removed; partial copies (``file_copies``) are removed too
    regions/meta                the catalogue's store

Any thread may call the methods; they block while they use the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from columnar.errors import DamagedData, HostError
from columnar.storage.api import Engine
from columnar.storage.data_folder import META, RESTORE_ADVICE, was_opened
from columnar.storage.durable_files import HALF, sync_folder_if_any
from columnar.storage.file_copies import HALF_CHECKPOINT
from columnar.storage.watched_folder import Room, room_of

_ENDS: Final = (".deleted", HALF, HALF_CHECKPOINT)


class RegionFolders:
    def __init__(self, root: str, engine: Engine) -> None:
        self.root = root
        self._engine = engine

    def path(self, encoded: str) -> str:
        return os.path.join(self.root, encoded)

    def has(self, encoded: str) -> bool:
        return self._engine.has_folder(self.path(encoded))

    def was_dropped(self, encoded: str) -> bool:
        """Tell whether the region's folder is missing while ``regions`` exists.

        Raises HostError if ``regions`` itself is missing.  A folder that cannot be examined counts as existing, and
        its opening raises the error.
        """
        if self.has(encoded):
            return False
        self._check_root()
        return True

    def is_untouched(self, encoded: str) -> bool:
        """Tell whether the region's folder exists and is empty because no store was ever opened in it."""
        return self._engine.is_untouched(self.path(encoded))

    def make(self, encoded: Sequence[str]) -> None:
        """Make the regions' folders, which survive a power cut.  Raises HostError if the disk refuses."""
        self._engine.make_folders([self.path(one) for one in encoded])

    def make_beside_others(self, encoded: Sequence[str]) -> None:
        """Make the folders only if ``regions`` exists: a data folder that was moved away is not created again."""
        self._check_root()
        self.make(encoded)

    def _check_root(self) -> None:
        if not self._engine.has_folder(self.root):
            raise HostError(f"{self.root} is missing, with all that was written; put it back")

    def destroy(self, encoded: str) -> None:
        """Remove the store and its folder, if they exist; large files take long to remove.  Raises HostError."""
        self._engine.destroy(self.path(encoded))

    def sync(self) -> None:
        """Sync ``regions``, so that its entries survive a power cut."""
        sync_folder_if_any(self.root)

    def catalogue(self) -> str:
        """Return the path of the catalogue's store.

        Raises DamagedData if the catalogue is missing or empty though it existed before.  The catalogue is made before
        every region, so regions or a note prove that it existed; a new catalogue would name no region.
        """
        path, entries = self.path(META), os.listdir(self.root)
        regions = len(entries) - (META in entries)
        is_lost = META not in entries or self._engine.is_untouched(path) or self._engine.is_emptied(path)
        if is_lost and (regions or was_opened(path)):
            how = "is empty" if META in entries else "is missing"
            raise DamagedData(f"{path}, the catalogue of the {regions} regions beside it, {how}; {RESTORE_ADVICE}")
        return path

    def unnamed(self, named: Iterable[str]) -> list[str]:
        """Return the names, without suffixes, of folders that are neither the catalogue's nor in ``named``."""
        if not os.path.isdir(self.root):
            return []
        return sorted({bare(name) for name in os.listdir(self.root)} - {META} - frozenset(named))

    def room(self) -> Room:
        """Return the room of the disk.  Raises OSError."""
        return room_of(self.root)

    def free_bytes(self) -> int:
        """Return the free bytes of the disk.  Raises OSError."""
        return self.room().free_bytes


def entries_of(encoded: str) -> list[str]:
    """Return the names of all entries of ``regions`` that a region may have."""
    return [encoded, *(encoded + end for end in _ENDS)]


def bare(name: str) -> str:
    """Return the encoded name of the region to which an entry of ``regions`` belongs, also a half-made one."""
    for end in _ENDS:
        name = name.removesuffix(end)
    return name
