"""``SYNCED`` in the folder of the server's log: the length of each segment that was surely on disk.

    SYNCED := slot slot slot slot                                128 bytes; big-endian
    slot   := "segment1" segment:u64 length:u64 crc32:u32 zeros    32 bytes; of segment N the slot N mod 4

A segment ends for its readers at the first frame that is not whole.  An end before ``length``, or a missing segment of
a slot, is damage and not the work of a power cut.

Invariants:
    B1. A length is stored after the fsync that covers it, to a file that is not synced (``fixed_file``): it survives
        the process, and a power cut may leave an older one.
    B2. A slot is emptied, on disk, before its segment is removed.
    B3. A slot whose checksum does not match is ignored, as is a folder without the file.
"""

from __future__ import annotations

import os
from struct import Struct
from threading import Lock
from typing import Final
from zlib import crc32

from columnar.storage.durable_files import read_first
from columnar.storage.fixed_file import FixedFile, has_size, open_fixed
from columnar.storage.synced_bound import SYNCED

_WORD: Final = b"segment1"
_SLOT: Final = Struct(">8sQQ")
_CHECKSUM: Final = Struct(">I")
SLOTS: Final = 4  # two segments at most, one being removed, and one being begun
SLOT_BYTES: Final = 32
FILE_BYTES: Final = SLOTS * SLOT_BYTES
assert _SLOT.size + _CHECKSUM.size <= SLOT_BYTES, "on disk: a new layout needs a new word"


def slot_of(segment: int, length: int) -> bytes:
    body = _SLOT.pack(_WORD, segment, length)
    return (body + _CHECKSUM.pack(crc32(body))).ljust(SLOT_BYTES, b"\x00")


def lengths_in(data: bytes) -> dict[int, int]:
    """By segment."""
    found = {}
    for at in range(0, len(data) - SLOT_BYTES + 1, SLOT_BYTES):
        word, segment, length = _SLOT.unpack_from(data, at)
        (checksum,) = _CHECKSUM.unpack_from(data, at + _SLOT.size)
        if word == _WORD and checksum == crc32(data[at : at + _SLOT.size]):
            found[segment] = length
    return found


class SegmentBounds:
    """Any thread."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, SYNCED)
        self._lock = Lock()  # guards the file
        self._file: FixedFile | None = None

    def read(self) -> dict[int, int]:
        """OSError."""
        try:
            return lengths_in(read_first(self._path, FILE_BYTES))
        except FileNotFoundError:
            return {}

    def has_forgotten(self, segment: int) -> bool:
        """Whether the segment, which is missing, was removed by the log's writer (B2).  OSError."""
        try:
            data = read_first(self._path, FILE_BYTES)
        except FileNotFoundError:
            return False
        at = segment % SLOTS * SLOT_BYTES
        slot = data[at : at + SLOT_BYTES]
        return slot == bytes(SLOT_BYTES) or bool(lengths_in(slot).keys() - {segment})

    def begin(self) -> None:
        """In the folder, which is there.  OSError."""
        with self._lock:
            if self._file is not None:
                return
            self._file = open_fixed(self._path, FILE_BYTES, None if has_size(self._path, FILE_BYTES) else b"")

    def _store(self, at: int, slot: bytes) -> None:
        assert self._file is not None, "begun"
        self._file.store(at, slot)

    def raise_to(self, segment: int, length: int) -> None:
        """Raise the bound of the segment.  OSError: it stays as it is, which is weaker, but correct."""
        with self._lock:
            if self._file is not None:
                self._store(segment % SLOTS * SLOT_BYTES, slot_of(segment, length))

    def forget_segments(self, segments: list[int]) -> None:
        """Before they are removed.  Blocks; OSError."""
        if os.path.exists(self._path):
            self.begin()
        with self._lock:
            if self._file is None:
                return
            data = self._file.read_bytes()
            bounded = lengths_in(data)
            for at in range(0, FILE_BYTES, SLOT_BYTES):
                if any(segment in segments for segment in lengths_in(data[at : at + SLOT_BYTES])):
                    self._store(at, bytes(SLOT_BYTES))
            if any(segment in bounded for segment in segments):
                self._file.sync_file()

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
