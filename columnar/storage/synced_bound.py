"""``SYNCED`` in a store's folder: how much of the store was on disk for sure, a lower bound of it.

    SYNCED := slot slot                                              128 bytes; big-endian
    slot   := "synced 1" turn:u64 sequence:u64 manifest:u64 length:u64 opened:u64 dropped:u64 crc32:u32 zeros
                                                                     64 bytes

All writes up to ``sequence`` (RocksDB's number of each operation) were synced, as were the first ``length`` bytes of
``MANIFEST-manifest``; it had ``opened`` bytes when its opening was over.  The last operations up to ``dropped`` may be
of a family that was being dropped, and then stand nowhere.

A damaged or missing end of a log, or of the list of files, looks to RocksDB like one that a power cut took before
it was synced, and is forgiven.  The bound tells the two apart: what is behind it may be missing, what is before it may
not (``rocks_verified``).

Invariants:
    I1. A value is stored only after the fsync that it tells of.  The store goes to a mapped page and is not synced: it
        survives the process.  A power cut may leave any older value, which is a weaker bound, and right.
    I2. (``manifest``, ``length``) never falls.  ``sequence`` falls only with an opening after a process that was killed
        while it dropped a family: RocksDB gives the numbers of its last operations again.
    I3. The slots are written in turn, so a process that is killed within a store leaves the one before.  The slot
        with the higher turn counts; one whose checksum does not match counts as never written.
    I4. ``dropped`` alone is on disk before what it tells of: else an older slot would miss what went with a family.
    I5. A folder without the file, or with a damaged one, has no bound: copies, and what older programs made.

Costs a store 3 us for each fsync, and one descriptor while it is open for writing.
"""

from __future__ import annotations

import os
from mmap import mmap
from struct import Struct
from threading import Lock
from typing import Final, NamedTuple
from zlib import crc32

from columnar.storage.durable_files import has_size, map_fixed

SYNCED: Final = "SYNCED"
_WORD: Final = b"synced 1"
_SLOT: Final = Struct(">8sQQQQQQ")
_CHECKSUM: Final = Struct(">I")
SLOT_BYTES: Final = 64
FILE_BYTES: Final = 2 * SLOT_BYTES
assert _SLOT.size + _CHECKSUM.size <= SLOT_BYTES, "on disk: a new layout needs a new word"


class Bound(NamedTuple):  # a tuple: each fsync makes one
    write_number: int = 0
    sequence: int = 0
    manifest: int = 0
    length: int = 0
    opened: int = 0
    dropped: int = 0

    @property
    def certain(self) -> int:
        """Of the last operation that must be found; 0: nobody knows it."""
        return self.sequence if self.sequence > self.dropped else 0


def slot_of(bound: Bound) -> bytes:
    body = _SLOT.pack(_WORD, *bound)
    return (body + _CHECKSUM.pack(crc32(body))).ljust(SLOT_BYTES, b"\x00")


def bound_in(data: bytes) -> Bound | None:
    """The newest whole slot; None: there is none."""
    newest = None
    for at in range(0, len(data) - SLOT_BYTES + 1, SLOT_BYTES):
        word, *numbers = _SLOT.unpack_from(data, at)
        (checksum,) = _CHECKSUM.unpack_from(data, at + _SLOT.size)
        if word == _WORD and checksum == crc32(data[at : at + _SLOT.size]):
            found = Bound(*numbers)
            newest = found if newest is None or found.write_number > newest.write_number else newest
    return newest


def read_bound(folder: str) -> Bound | None:
    """OSError."""
    try:
        with open(os.path.join(folder, SYNCED), "rb") as held:
            return bound_in(held.read(FILE_BYTES))
    except FileNotFoundError:
        return None


def manifest_of(folder: str) -> tuple[int, str]:
    """Number and path of the list of files that ``CURRENT`` names.  OSError, ValueError."""
    with open(os.path.join(folder, "CURRENT"), "rb") as held:
        text = held.read(100).decode("ascii")
    word, _, number = text.removesuffix("\n").partition("-")
    if word != "MANIFEST" or not number.isdigit() or text != f"MANIFEST-{number}\n":
        raise ValueError(f"CURRENT says {text!r}")
    return int(number), os.path.join(folder, text[:-1])


class BoundFile:
    """Of a store that is open for writing; any thread."""

    def __init__(self, folder: str, bound: Bound, mapping: mmap) -> None:
        """``mapping`` is that of the folder's file, which says ``bound``."""
        self._folder = folder
        self._lock = Lock()  # guards what follows
        self._map: mmap | None = mapping
        self._bound = bound

    @classmethod
    def mapped(cls, folder: str) -> BoundFile:
        """Map the folder's file, which is made where it is missing or damaged.  OSError."""
        found = read_bound(folder)
        path = os.path.join(folder, SYNCED)
        is_usable = found is not None and has_size(path, FILE_BYTES)
        bound = found or Bound()
        return cls(folder, bound, map_fixed(path, FILE_BYTES, None if is_usable else slot_of(bound)))

    def begin(self, sequence: int) -> None:
        """An opening found all operations up to it, and synced them."""
        with self._lock:
            self._store(sequence=sequence, dropped=min(sequence, self._bound.dropped))

    def raise_to(self, sequence: int) -> None:
        """Operations up to it are on disk."""
        if sequence > self._bound.sequence:
            with self._lock:
                self._store(sequence=max(sequence, self._bound.sequence))

    def drops(self, sequence: int) -> None:
        """Before a family goes, with its writes up to now.  Blocks; OSError."""
        with self._lock:
            self._store(dropped=sequence)
            if self._map is not None:
                self._map.flush()

    def raise_manifest(self, *, sync: bool = True) -> None:
        """As far as the list of files is now.  ``sync``: False where nothing of it can be on its way.  OSError."""
        number, path = manifest_of(self._folder)
        held = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            length = os.fstat(held).st_size
            if (number, length) <= (self._bound.manifest, self._bound.length):
                return
            if sync:
                os.fdatasync(held)
        finally:
            os.close(held)
        with self._lock:
            bound = self._bound
            if (number, length) > (bound.manifest, bound.length):
                opened = length if number != bound.manifest else bound.opened
                self._store(manifest=number, length=length, opened=opened)

    def _store(self, **changes: int) -> None:
        bound = self._bound = self._bound._replace(write_number=self._bound.write_number + 1, **changes)
        if self._map is not None:
            at = bound.write_number % 2 * SLOT_BYTES
            self._map[at : at + SLOT_BYTES] = slot_of(bound)

    def close(self) -> None:
        with self._lock:
            if self._map is not None:
                self._map.close()
                self._map = None
