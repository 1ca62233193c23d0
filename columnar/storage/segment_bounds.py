"""``SYNCED`` in the folder of the server's log: for each segment, the length that was certainly on disk.

    SYNCED := slot slot slot slot                                128 bytes; big-endian
    slot   := "segment1" segment:u64 length:u64 crc32:u32 zeros    32 bytes; segment N has slot N mod 4
            | "removed1" segment:u64 zeros:u64 crc32:u32 zeros     the segment was removed

Readers end a segment before the first incomplete frame.  If that end is before ``length``, or if the segment of a slot
is missing, this is damage and not the effect of a power cut.

Invariants:
    B1. A length is stored after the fsync that covers it, in a file that is not synced (``fixed_file``).  So the length
        survives the process; a power cut may leave an older length.
    B2. The slot says that its segment was removed, on disk, before the segment is removed.  Older programs emptied it.
    B3. A slot with a wrong checksum is ignored; a folder without the file has no bounds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct
from threading import Lock
from typing import Final, Protocol
from zlib import crc32

from columnar.storage.durable_files import read_first
from columnar.storage.fixed_file import FixedFile, has_size, open_fixed
from columnar.storage.synced_bound import SYNCED

_WORD: Final = b"segment1"
_REMOVED: Final = b"removed1"
_SLOT: Final = Struct(">8sQQ")
_CHECKSUM: Final = Struct(">I")
SLOTS: Final = 4  # at most two segments, one more being removed, and one being begun
SLOT_BYTES: Final = 32
FILE_BYTES: Final = SLOTS * SLOT_BYTES
assert _SLOT.size + _CHECKSUM.size <= SLOT_BYTES, "on disk: a new layout needs a new word"


def slot_of(segment: int, length: int) -> bytes:
    body = _SLOT.pack(_WORD, segment, length)
    return (body + _CHECKSUM.pack(crc32(body))).ljust(SLOT_BYTES, b"\x00")


def removed_slot_of(segment: int) -> bytes:
    body = _SLOT.pack(_REMOVED, segment, 0)
    return (body + _CHECKSUM.pack(crc32(body))).ljust(SLOT_BYTES, b"\x00")


def lengths_in(data: bytes) -> dict[int, int]:
    """Return the lengths in the slots, by segment number."""
    return {segment: length for word, segment, length in _whole_slots(data) if word == _WORD}


def _whole_slots(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    for at in range(0, len(data) - SLOT_BYTES + 1, SLOT_BYTES):
        (checksum,) = _CHECKSUM.unpack_from(data, at + _SLOT.size)
        if checksum == crc32(data[at : at + _SLOT.size]):
            yield _SLOT.unpack_from(data, at)


def _is_removed_in(slot: bytes, segment: int) -> bool:
    """Tell whether the segment's slot is certainly newer than the removal of the segment."""
    return any(number > segment or (word == _REMOVED and number == segment) for word, number, _ in _whole_slots(slot))


class SyncedNotes(Protocol):
    """A second place for the bounds, outside the folder; its methods do no I/O."""

    def raise_synced(self, segment: int, length: int) -> None: ...

    def forget_segments(self, segments: list[int]) -> None: ...


class SegmentBounds:
    """The bounds of the segments in a folder.  Any thread may call the methods."""

    def __init__(self, folder: str, notes: SyncedNotes | None = None) -> None:
        """Pass ``notes``, which get each bound too, before it is stored."""
        self._folder = folder
        self._notes = notes
        self._path = os.path.join(folder, SYNCED)
        self._lock = Lock()  # guards the file
        self._file: FixedFile | None = None

    def read(self) -> dict[int, int]:
        """Return the bounds by segment number.  Raises OSError."""
        try:
            return lengths_in(read_first(self._path, FILE_BYTES))
        except FileNotFoundError:
            return {}

    def has_forgotten(self, segment: int) -> bool:
        """Tell whether the log's writer removed the segment, which is missing (B2).  Raises OSError."""
        slot = self._read_slot(segment)
        return slot == bytes(SLOT_BYTES) or _is_removed_in(slot, segment)

    def has_removed(self, segment: int) -> bool:
        """Tell whether the segment, which is missing, was certainly removed.  Raises OSError.

        Otherwise the folder may be seen as it was before the segment was begun, when its slot was empty.
        """
        return _is_removed_in(self._read_slot(segment), segment)

    def _read_slot(self, segment: int) -> bytes:
        at = segment % SLOTS * SLOT_BYTES
        try:
            return read_first(self._path, FILE_BYTES)[at : at + SLOT_BYTES]
        except FileNotFoundError:
            return b""

    def begin(self) -> None:
        """Open the file, in a folder that exists.  Raises OSError."""
        with self._lock:
            if self._file is not None:
                return
            self._file = open_fixed(self._path, FILE_BYTES, None if has_size(self._path, FILE_BYTES) else b"")

    def _store(self, at: int, slot: bytes) -> None:
        assert self._file is not None, "begun"
        self._file.store(at, slot)

    def raise_to(self, segment: int, length: int) -> None:
        """Raise the bound of the segment.  After an OSError the bound stays as it is, which is weaker, but correct."""
        with self._lock:
            if self._notes is not None:
                self._notes.raise_synced(segment, length)
            if self._file is not None:
                self._store(segment % SLOTS * SLOT_BYTES, slot_of(segment, length))

    def forget_segments(self, segments: list[int]) -> None:
        """Store, before the segments are removed, that they are.  Blocks; raises OSError."""
        if os.path.exists(self._path):
            self.begin()
        with self._lock:
            if self._notes is not None:
                self._notes.forget_segments(segments)
            if self._file is None:
                return
            data = self._file.read_bytes()
            bounded = lengths_in(data)
            for segment in segments:
                at = segment % SLOTS * SLOT_BYTES
                if not _is_removed_in(data[at : at + SLOT_BYTES], segment):
                    self._store(at, removed_slot_of(segment))
            if any(segment in bounded for segment in segments):
                self._file.sync_file()

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
