"""``servers/NAME.NUMBER/openings``: the regions that a server opened last, to find the cause of its death.

    openings := slot* boot                                  SLOTS of them; big-endian
    slot     := region:u64 ended:u64                        end of the opening, ns of the monotonic clock; 0: not yet
    boot     := byte[BOOT_BYTES]                            the start of the server's machine, UTF-8, filled with zeros

The notes find a region whose opening kills the process, and a region that kills the process a moment later.  The slots
outlive the process (``fixed_file``).  They are never synced, because they are not needed after a power cut.  An
opening takes the slot after the last one's, but none of an opening under way; there are fewer than SLOTS of these.
The preparation of a region's folder counts as an opening.  A half-written slot may name a region that does not exist,
or a time in the future; this does no harm, because the reader looks only for regions that it knows.

Invariants:
    N1. An opening under way counts, whoever reads the slots.
    N2. An opening that has ended counts only if the reader's machine, since the same start, was the server's: the
        monotonic clocks of two machines have nothing in common.  So the leader of a cluster on many machines finds a
        region that kills its server *after* the opening only if the server was on the leader's machine.
    N3. It never counts for a server that ended by time: its death is known a lease later, which is longer than
        LATELY_NS.

A file of an older program ends behind its slots, and its openings that ended do not count.  An older program reads the
slots alone.
"""

from __future__ import annotations

import logging
import os
import time
from struct import Struct
from typing import Final

from columnar.runtime.machine_boot import boot_id
from columnar.storage.fixed_file import FixedFile, open_fixed

_log = logging.getLogger(__name__)

NAME: Final = "openings"
SLOTS: Final = 64
LATELY_NS: Final = 500_000_000  # a death of the process within this time counts as the opening's fault
_SLOT: Final = Struct(">QQ")
_SLOTS_BYTES: Final = SLOTS * _SLOT.size
BOOT_BYTES: Final = 64  # a boot id has 36; what is longer is cut
FILE_BYTES: Final = _SLOTS_BYTES + BOOT_BYTES
assert (_SLOT.size, FILE_BYTES) == (16, 1_088), "read by the master of another version, perhaps"


class OpeningNotes:
    """The notes of this process.  Owned by the loop; costs an opening 2 us."""

    def __init__(self, file: FixedFile | None) -> None:
        """Take the file; with None, if the disk has no room for it, openings are not noted."""
        self._file = file
        self._last = 0  # the slot
        self._open_slots: dict[int, int] = {}  # slots by region

    @classmethod
    def begun(cls, folder: str) -> OpeningNotes:
        """Make a new file in the folder."""
        path = os.path.join(folder, NAME)
        try:
            return cls(open_fixed(path, FILE_BYTES, bytes(_SLOTS_BYTES) + _boot()))
        except OSError as error:
            _log.warning("%s cannot be made (%s): a region that ends its server is not found by it", path, error)
            return cls(None)

    def begins(self, region: int) -> None:
        taken = set(self._open_slots.values())
        following = ((self._last + step) % SLOTS for step in range(1, SLOTS + 1))
        self._last = self._open_slots[region] = next(slot for slot in following if slot not in taken)
        self._store(self._last, region, 0)

    def ends(self, region: int) -> None:
        """Note that the region's opening has ended, well or not."""
        self._store(self._open_slots.pop(region), region, time.monotonic_ns())

    def _store(self, slot: int, region: int, ended_ns: int) -> None:
        if self._file is None:
            return
        try:
            self._file.store(slot * _SLOT.size, _SLOT.pack(region, ended_ns))
        except OSError as error:
            _log.warning("openings are noted no more (%s): a region that ends its server is not found by them", error)
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def opened_at(folder: str, died_ns: int) -> frozenset[int]:
    """Return the regions that the server was opening when it died, or had opened within LATELY_NS before.

    ``died_ns`` is a time of this machine's monotonic clock (N2).  Raises OSError.
    """
    try:
        with open(os.path.join(folder, NAME), "rb") as file:
            data = file.read(FILE_BYTES)
    except FileNotFoundError:
        return frozenset()
    slots, boot = data[:_SLOTS_BYTES], data[_SLOTS_BYTES:]
    is_same_clock = boot == _boot()
    found = [_SLOT.unpack_from(slots, at) for at in range(0, len(slots) - _SLOT.size + 1, _SLOT.size)]
    return frozenset(
        region for region, ns in found if region and (not ns or (is_same_clock and died_ns - ns < LATELY_NS))
    )


def _boot() -> bytes:
    return boot_id().encode(errors="replace")[:BOOT_BYTES].ljust(BOOT_BYTES, b"\x00")
