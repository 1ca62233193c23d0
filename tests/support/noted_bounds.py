"""Notes of synced bounds: values stored to a mapped bound are also written to a file, where strace sees them."""

from __future__ import annotations

import os

from columnar.storage.segment_bounds import SegmentBounds
from columnar.storage.synced_bound import SYNCED, BoundFile


def note_bounds() -> None:
    """Note each stored bound, so that a simulated power cut finds a bound that covers unsynced data."""
    store = BoundFile._store

    def store_and_note(self: BoundFile, **changes: int) -> None:
        store(self, **changes)
        if self._file is not None:
            _note(self._folder, self._file.read_bytes())

    store_segment = SegmentBounds._store

    def store_segment_and_note(self: SegmentBounds, at: int, slot: bytes) -> None:
        store_segment(self, at, slot)
        if self._file is not None:
            _note(self._folder, self._file.read_bytes())

    BoundFile._store = store_and_note  # type: ignore[method-assign]
    SegmentBounds._store = store_segment_and_note  # type: ignore[method-assign]


def _note(folder: str, data: bytes) -> None:
    held = os.open(os.path.join(folder, f"{SYNCED}.noted"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.write(held, data)
    os.close(held)
