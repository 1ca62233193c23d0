"""``SYNCED`` in a store's folder: a lower bound of the part of the store that was certainly on disk.

    SYNCED := slot slot                                              128 bytes; big-endian
    slot   := "synced 1" write_number:u64 sequence:u64 manifest:u64 length:u64 opened:u64 dropped:u64 crc32:u32
              zeros                                                  64 bytes

All writes up to ``sequence`` (RocksDB numbers each operation) were synced, and so were the first ``length`` bytes of
``MANIFEST-manifest``, which had ``opened`` bytes when the opening had ended.  The last operations up to ``dropped`` may
belong to a family that was being dropped; then they are in no file.

If the end of a log or of the MANIFEST is damaged or missing, RocksDB assumes that a power cut removed this end before
it was synced, and accepts that.  The bound distinguishes the two cases: data after it may be missing, data before it
may not (``rocks_verified``).

Invariants:
    I1. A value is stored only after the fsync that it describes.  The value itself is not synced (``fixed_file``), but
        survives the process.  A power cut, or a disk that refuses the write, may leave an older value, which is a
        weaker but correct bound.
    I2. (``manifest``, ``length``) never falls.  ``sequence`` falls only if a process was killed while it dropped a
        family: the next opening lowers it, because RocksDB then reuses the numbers of the last operations.
    I3. The slots are written alternately, so a process that is killed while it writes a slot leaves the previous slot.
        The slot with the higher ``write_number`` counts; a slot with a wrong checksum counts as never written.
    I4. Only ``dropped`` is on disk before the change that it describes; otherwise an older slot would require the
        writes that were dropped with a family.
    I5. A folder without the file, or with a damaged file, has no bound; such are copies, and stores of older programs.

Costs a store 3 us for each fsync (1 us more if it is not mapped), and one descriptor while it is open for writing.
"""

from __future__ import annotations

import os
from struct import Struct
from threading import Lock
from typing import Final, NamedTuple
from zlib import crc32

from columnar.storage.durable_files import read_first
from columnar.storage.fixed_file import FixedFile, has_size, open_fixed

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
        """The number of the last operation that must be found; 0 if unknown."""
        return self.sequence if self.sequence > self.dropped else 0


def slot_of(bound: Bound) -> bytes:
    body = _SLOT.pack(_WORD, *bound)
    return (body + _CHECKSUM.pack(crc32(body))).ljust(SLOT_BYTES, b"\x00")


def bound_in(data: bytes) -> Bound | None:
    """Return the bound in the newest undamaged slot, or None."""
    newest = None
    for at in range(0, len(data) - SLOT_BYTES + 1, SLOT_BYTES):
        word, *numbers = _SLOT.unpack_from(data, at)
        (checksum,) = _CHECKSUM.unpack_from(data, at + _SLOT.size)
        if word == _WORD and checksum == crc32(data[at : at + _SLOT.size]):
            found = Bound(*numbers)
            newest = found if newest is None or found.write_number > newest.write_number else newest
    return newest


def read_bound(folder: str) -> Bound | None:
    """Return the folder's bound, or None if it has none.  Raises OSError."""
    try:
        return bound_in(read_first(os.path.join(folder, SYNCED), FILE_BYTES))
    except FileNotFoundError:
        return None


def manifest_of(folder: str) -> tuple[int, str]:
    """Return number and path of the MANIFEST that ``CURRENT`` names.  Raises OSError, ValueError."""
    with open(os.path.join(folder, "CURRENT"), "rb") as file:
        text = file.read(100).decode("ascii")
    word, _, number = text.removesuffix("\n").partition("-")
    if word != "MANIFEST" or not number.isdigit() or text != f"MANIFEST-{number}\n":
        raise ValueError(f"CURRENT says {text!r}")
    return int(number), os.path.join(folder, text[:-1])


class BoundFile:
    """The file ``SYNCED`` of a store that is open for writing.  Any thread may call the methods."""

    def __init__(self, folder: str, bound: Bound, file: FixedFile) -> None:
        """Take the folder's file ``SYNCED``, which contains ``bound``."""
        self._folder = folder
        self._lock = Lock()  # guards the fields below
        self._file: FixedFile | None = file
        self._bound = bound

    @classmethod
    def opened(cls, folder: str) -> BoundFile:
        """Open the folder's file, which is made if it is missing or damaged.  Raises OSError."""
        found = read_bound(folder)
        path = os.path.join(folder, SYNCED)
        is_usable = found is not None and has_size(path, FILE_BYTES)
        bound = found or Bound()
        return cls(folder, bound, open_fixed(path, FILE_BYTES, None if is_usable else slot_of(bound)))

    def begin_bound(self, sequence: int) -> None:
        """Store the bound of an opening, which found and synced all operations up to ``sequence``.  Raises OSError."""
        with self._lock:
            self._store(sequence=sequence, dropped=min(sequence, self._bound.dropped))

    def raise_to(self, sequence: int) -> None:
        """Raise the bound: operations up to ``sequence`` are on disk.  After an OSError the bound stays as it is."""
        if sequence > self._bound.sequence:
            with self._lock:
                self._store(sequence=max(sequence, self._bound.sequence))

    def drops(self, sequence: int) -> None:
        """Note, before a family is dropped, that operations up to ``sequence`` may disappear with it.

        Blocks; raises OSError.
        """
        with self._lock:
            self._store(dropped=sequence)
            if self._file is not None:
                self._file.sync_file()

    def raise_manifest(self, *, sync: bool = True) -> None:
        """Raise the bound to the present length of the MANIFEST, which is synced first unless ``sync`` is False.

        Pass False only if no write to the MANIFEST can be unsynced.  Raises OSError.
        """
        number, path = manifest_of(self._folder)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            length = os.fstat(descriptor).st_size
            if (number, length) <= (self._bound.manifest, self._bound.length):
                return
            if sync:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        with self._lock:
            bound = self._bound
            if (number, length) > (bound.manifest, bound.length):
                opened = length if number != bound.manifest else bound.opened
                self._store(manifest=number, length=length, opened=opened)

    def _store(self, **changes: int) -> None:
        bound = self._bound._replace(write_number=self._bound.write_number + 1, **changes)
        if self._file is not None:
            self._file.store(bound.write_number % 2 * SLOT_BYTES, slot_of(bound))
        self._bound = (
            bound  # last: after a failed write the same slot is written again, and the other stays undamaged (I3)
        )

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
