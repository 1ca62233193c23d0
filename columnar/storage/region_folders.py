"""``DATA/regions``: the folder of each region, by the region's encoded name.

    regions/ENCODED             the region's store
    regions/ENCODED.G           the region's store, at generation G (``region_takeover``)
    regions/ENCODED.deleted     a store that is being removed; partial copies (``file_copies``) are removed too
    regions/meta                the catalogue's store, ``meta.G`` at generation G

Only a cluster of nodes has generations above 0 (``use_generations``).  Without them no method lists the folder for
one region.

Any thread may call the methods; they block while they use the disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from columnar.errors import DamagedData, HostError
from columnar.storage.api import Engine
from columnar.storage.data_folder import META, RESTORE_ADVICE, was_opened
from columnar.storage.durable_files import sync_folder_if_any
from columnar.storage.region_entries import Entry, entry_of, folder_name
from columnar.storage.region_takeover import entries_of_region, remove_halves, remove_older, take_over
from columnar.storage.rocks_errors import refused
from columnar.storage.watched_folder import Room, room_of


class RegionFolders:
    def __init__(self, root: str, engine: Engine) -> None:
        self.root = root
        self._engine = engine
        self._generation_of: Callable[[str], int] | None = None

    # --- paths in messages -----------------------------------------------------------------------------

    def shared_path(self, path: str) -> str:
        """Return ``path`` relative to the data folder, as in messages: other machines mount the folder elsewhere."""
        return os.path.relpath(path, os.path.dirname(self.root))

    def local_path(self, shared: str) -> str:
        """Return the path on this machine of a ``shared_path``."""
        return os.path.join(os.path.dirname(self.root), shared)

    # --- generations -------------------------------------------------------------------------------------

    def use_generations(self, generation_of: Callable[[str], int]) -> None:
        """Use the folder with ``generation_of``, which returns the generation of a region's folder by encoded name."""
        self._generation_of = generation_of

    def path(self, encoded: str, generation: int | None = None) -> str:
        """Return the path of the region's folder, at ``generation`` or, if that is None, at the region's generation."""
        if self._generation_of is None:
            return os.path.join(self.root, encoded)
        wanted = self._generation_of(encoded) if generation is None else generation
        return os.path.join(self.root, folder_name(encoded, wanted))

    def highest_generation(self, encoded: str) -> int:
        """Return the highest generation of any entry of the region, also a half-made one; 0 if it has none.

        Lists ``regions``.  Raises HostError.
        """
        return max((entry.generation for entry in self._entries(encoded)), default=0)

    def newest_generation(self, encoded: str) -> int:
        """Return the highest generation of which the region has a complete folder; 0 if it has none.

        Lists ``regions``.  Raises HostError.
        """
        return max((entry.generation for entry in self._entries(encoded) if entry.is_complete), default=0)

    def take_over(self, encoded: str, generation: int, epoch: int) -> bool:
        """Make the region's folder of ``generation``, if that is missing, out of the newest older one.

        Only the region's owner at ``epoch`` may call this (``region_takeover``).  Tells whether the folder was made.
        Raises FolderTakenOver if a higher generation exists, HostError.
        """
        return take_over(self.root, encoded, generation, epoch)

    def remove_older(self, encoded: str, generation: int) -> None:
        """Remove what the complete folder of ``generation`` has replaced.  Lists ``regions``.  Raises HostError."""
        remove_older(self.root, encoded, generation)

    def _entries(self, encoded: str) -> list[Entry]:
        try:
            return entries_of_region(self.root, encoded)
        except OSError as error:
            raise refused(error, f"cannot list {self.root}") from error

    # --- one region --------------------------------------------------------------------------------------

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
        return self._generation_of is None or not self._entries(encoded)

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
        """Remove the store and its folder, if they exist; large files take long to remove.  Raises HostError.

        Removes the folders of all generations.
        """
        if self._generation_of is not None:
            others = {entry.generation for entry in self._entries(encoded)} - {0}
            for generation in sorted(others):
                self._engine.destroy(self.path(encoded, generation))
            remove_halves(self.root, encoded)
        self._engine.destroy(os.path.join(self.root, encoded))

    def sync(self) -> None:
        """Sync ``regions``, so that its entries survive a power cut."""
        sync_folder_if_any(self.root)

    def catalogue(self, generation: int = 0) -> str:
        """Return the path of the catalogue's store at ``generation``; a leader has taken its folder over before.

        Raises DamagedData if the catalogue is missing or empty though it existed before.  The catalogue is made before
        every region, so regions or a note prove that it existed; a new catalogue would name no region.
        """
        path = os.path.join(self.root, folder_name(META, generation))
        names = os.listdir(self.root)
        regions = sum(entry_of(name).encoded != META for name in names)
        has_folder = os.path.basename(path) in names
        is_lost = not has_folder or self._engine.is_untouched(path) or self._engine.is_emptied(path)
        if is_lost and (regions or was_opened(path)):
            how = "is empty" if has_folder else "is missing"
            raise DamagedData(f"{path}, the catalogue of the {regions} regions beside it, {how}; {RESTORE_ADVICE}")
        return path

    def unnamed(self, named: Iterable[str]) -> list[str]:
        """Return the encoded names of folders that are neither the catalogue's nor in ``named``."""
        if not os.path.isdir(self.root):
            return []
        return sorted({entry_of(name).encoded for name in os.listdir(self.root)} - {META} - frozenset(named))

    def room(self) -> Room:
        """Return the room of the disk.  Raises OSError."""
        return room_of(self.root)

    def free_bytes(self) -> int:
        """Return the free bytes of the disk.  Raises OSError."""
        return self.room().free_bytes
