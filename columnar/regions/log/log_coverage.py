"""The coverage of a region's change log: from which sequence on the log has every change of each range of rows.

Readers that promise nothing (change streams) keep a position and no cursor.  So the log must tell whether it still has
every change after a position, also after CHANGE_LOG was unset and set again, and after a merge of two regions.

    covered -> count:u16 (start:u16-length bytes  origin:u64 epoch:u32 n:u64)*            in the space ``meta``

A segment covers the rows from its start to the next segment's start: the log has every change of these rows after the
segment's sequence.  The key exists as long as the table has CHANGE_LOG.

Invariants:
    I1. Before a write of the region is not logged, the key is removed; both go through the region's store, which keeps
        their order.  The key is written again at the present end of the log.
    I2. The batch that removes records from the log raises each segment to the last of them.
    I3. Starts ascend; a region's daughters and heirs take the segments over (``region_replacement``).

Knows nothing of tables and followers.  Owned by the loop.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from columnar.errors import DamagedData
from columnar.regions.log.change_record import KEY_BYTES, Sequence, pack_key, unpack_key
from columnar.storage.api import Batch, Store
from columnar.storage.ownership import META_SPACE

COVERED: Final = b"covered"
_COUNT: Final = struct.Struct(">H")
MOST_SEGMENTS: Final = 1_024  # of a region that was merged often; neighbours become one segment above it


class Segment(NamedTuple):
    start: bytes
    after: Sequence  # the log has every later change of the segment's rows


def pack_segments(segments: Iterable[Segment]) -> bytes:
    """Return the bytes of the segments, at most MOST_SEGMENTS: above that, neighbours are joined, the later counts."""
    found: list[Segment] = []
    for one in segments:
        if not found or found[-1].after != one.after:
            found.append(one)
    while len(found) > MOST_SEGMENTS:
        found = [
            Segment(pair[0].start, max(one.after for one in pair))
            for pair in (found[at : at + 2] for at in range(0, len(found), 2))
        ]
    parts = [_COUNT.pack(len(found))]
    for one in found:
        parts += [_COUNT.pack(len(one.start)), one.start, pack_key(one.after)]
    return b"".join(parts)


def unpack_segments(data: bytes) -> tuple[Segment, ...]:
    """Return the segments.  Raises DamagedData if the bytes are none."""
    try:
        (count,), at = _COUNT.unpack_from(data), _COUNT.size
        found = []
        for _ in range(count):
            (length,) = _COUNT.unpack_from(data, at)
            at += _COUNT.size + length
            found.append(Segment(data[at - length : at], unpack_key(data[at : at + KEY_BYTES])))
            at += KEY_BYTES
        if at != len(data) or not found:
            raise DamagedData("coverage of a change log: it has another length than it says")
        return tuple(found)
    except struct.error as error:
        raise DamagedData(f"coverage of a change log: {error}") from error


def clipped(segments: Iterable[Segment], start: bytes, end: bytes) -> tuple[Segment, ...]:
    """Return the segments of the rows ``start <= row < end`` (empty: all); the first begins at ``start``."""
    found: list[Segment] = []
    for one in segments:
        if one.start <= start:
            found = [Segment(start, one.after)]
        elif not end or one.start < end:
            found.append(one)
    return tuple(found)


class LogCoverage:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._segments: tuple[Segment, ...] | None = None  # None: not read yet
        self._is_read = False

    def segments(self) -> tuple[Segment, ...]:
        """Return the segments, ascending; empty if the log does not have every change.  Raises DamagedData."""
        if not self._is_read:
            data = self._store.get(META_SPACE, COVERED)
            self._segments = unpack_segments(data) if data is not None else ()
            self._is_read = True
        return self._segments or ()

    def begin_coverage(self, start: bytes, after: Sequence) -> None:
        """Note that the log has every change after ``after``, unless that is noted already."""
        if not self.segments():
            self._write((Segment(start, after),))

    def end_coverage(self) -> bool:
        """Note that changes are not logged from now on (I1).  Returns False if they were not logged before either."""
        if not self.segments():
            return False
        self._write(())
        return True

    def raise_to(self, batch: Batch, last: Sequence) -> None:
        """Add to the batch, which removes the records up to ``last``, what is covered after it (I2)."""
        segments = self.segments()
        if segments:
            self._segments = tuple([Segment(one.start, max(one.after, last)) for one in segments])
            batch.put(META_SPACE, COVERED, pack_segments(self._segments))

    def _write(self, segments: tuple[Segment, ...]) -> None:
        batch = self._store.batch()
        if segments:
            batch.put(META_SPACE, COVERED, pack_segments(segments))
        else:
            batch.delete(META_SPACE, COVERED)
        self._store.write_batch(batch)
        self._segments, self._is_read = segments, True
