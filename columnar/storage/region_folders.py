"""``DATA/regions``: the folder of each region, by the region's encoded name.

    regions/ENCODED             the region's store
    regions/ENCODED.deleted     being removed, as are those of partial copies (``file_copies``)
    regions/meta                the catalogue's store

Any thread may call it; methods that touch the disk block.
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
        """Tell whether the region's folder is gone from among the others.

        HostError: all are gone.  A folder that cannot be looked at is there: its opening meets the error.
        """
        if self.has(encoded):
            return False
        self._check_root()
        return True

    def is_untouched(self, encoded: str) -> bool:
        """The folder is there, and empty: no store was ever opened in it."""
        return self._engine.is_untouched(self.path(encoded))

    def make(self, encoded: Sequence[str]) -> None:
        """They are there after a power cut too.  HostError: the disk refuses."""
        self._engine.make_folders([self.path(one) for one in encoded])

    def make_beside_others(self, encoded: Sequence[str]) -> None:
        """``make``, only if the root is there: a data folder that was moved away is not created again."""
        self._check_root()
        self.make(encoded)

    def _check_root(self) -> None:
        if not self._engine.has_folder(self.root):
            raise HostError(f"{self.root} is missing, with all that was written; put it back")

    def destroy(self, encoded: str) -> None:
        """The store and its folder, if there are any; removing large files takes its time.  HostError."""
        self._engine.destroy(self.path(encoded))

    def sync(self) -> None:
        """The list of folders survives a power cut."""
        sync_folder_if_any(self.root)

    def catalogue(self) -> str:
        """Return the path of the catalogue's store.

        DamagedData if it is missing or empty though it was there: it is made before every region, and a new one would
        name no region.
        """
        path, entries = self.path(META), os.listdir(self.root)
        regions = len(entries) - (META in entries)
        is_lost = META not in entries or self._engine.is_untouched(path) or self._engine.is_emptied(path)
        if is_lost and (regions or was_opened(path)):
            how = "is empty" if META in entries else "is missing"
            raise DamagedData(f"{path}, the catalogue of the {regions} regions beside it, {how}; {RESTORE_ADVICE}")
        return path

    def unnamed(self, named: Iterable[str]) -> list[str]:
        """Names, without their ends, of folders that are neither the catalogue's nor in ``named``."""
        if not os.path.isdir(self.root):
            return []
        return sorted({bare(name) for name in os.listdir(self.root)} - {META} - frozenset(named))

    def room(self) -> Room:
        """OSError."""
        return room_of(self.root)

    def free_bytes(self) -> int:
        """OSError."""
        return self.room().free_bytes


def entries_of(encoded: str) -> list[str]:
    """The entries of ``regions`` that one region may have."""
    return [encoded, *(encoded + end for end in _ENDS)]


def bare(name: str) -> str:
    """The encoded name of the region that an entry of ``regions`` belongs to: a half made one is of its region."""
    for end in _ENDS:
        name = name.removesuffix(end)
    return name
