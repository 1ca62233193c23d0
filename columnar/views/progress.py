"""(pure) Progress of the backfill of a source's region into a view: the rows done, and how many are unreadable.

A pass reads the rows of a region in pieces (runs of rows), while writers write and their changes are followed:

    gather    rows from ``done`` on are read, each as of the last sequence W that the log had then; no change of the
              log is taken meanwhile
    bound     the end of the piece is saved in the cursor, on disk: from now on changes of rows below it are wanted
    show      the rows' shares are written as of their W
    end       when the shares and all changes up to W are on disk in the view: ``done`` becomes the end of the piece

    show      the first pass; at its end the view has all rows of the region
    count     a pass that writes nothing: it counts unreadable rows after a split, as the parent's number is for both
    daughters

Invariants:
    I1. A share is sent only when its row is below a ``bound`` that is on disk.  So after a crash the changes of each
        row that the view may have are delivered from the cursor on without a gap.  If a piece is backfilled again, as
        of a later W, these changes have withdrawn the row from every group that it has left meanwhile.
    I2. ``bound`` never goes back: changes of rows below it are wanted for ever.
    I3. ``rejected`` counts the rows below ``done`` that cannot be read, as of the changes that are done.

Contributions bear their sequence.  So changes of the log need not be buffered until W is reached; in a stream without
sequences they would have to be.  The end of a piece waits for the changes up to W only for the sake of the count.

    kept := msgpack [1, region, rejected, rows, pass, done, bound]      in the follower's cursor (``delivery_state``)
    pass := 0 over | 1 shows | 2 shows, then counts | 3 counts          done, bound: rows; nil: to the end of the region

Knows nothing of regions, of logs and of the reading of rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from columnar.errors import DamagedData
from columnar.regions.log.change_record import Sequence

_VERSION: Final = 1


class Pass(IntEnum):
    OVER = 0
    SHOWS = 1
    SHOWS_THEN_COUNTS = 2
    COUNTS = 3


@dataclass(frozen=True, slots=True)
class Progress:
    region: int  # these numbers count its rows
    rejected: int = 0
    rows: int = 0  # that passes have backfilled
    walk: Pass = Pass.SHOWS
    done: bytes | None = b""
    bound: bytes | None = b""

    @property
    def is_backfilled(self) -> bool:
        return self.walk in (Pass.OVER, Pass.COUNTS)

    def wants(self, row: bytes) -> bool:
        """Return whether the view wants changes of the row."""
        return self.is_backfilled or self.bound is None or row < self.bound

    def bound_to(self, end: bytes | None) -> Progress:
        """Bound a piece that was read up to ``end`` (None: to the end of the region)."""
        if self.bound is None or (end is not None and end <= self.bound):
            return self
        return replace(self, bound=end)

    def piece_ended(self, end: bytes | None, rows: int, rejected: int) -> Progress:
        """End a piece.  ``rejected`` is the number of its rows that cannot be read now."""
        backfilled = rows if not self.is_backfilled else 0
        moved = replace(self, done=end, rows=self.rows + backfilled, rejected=self.rejected + rejected)
        if end is not None:
            return moved
        if self.walk is Pass.SHOWS_THEN_COUNTS:
            return replace(moved, walk=Pass.COUNTS, done=b"", bound=b"", rejected=0)
        return replace(moved, walk=Pass.OVER)

    def counted(self, more: int) -> Progress:
        return replace(self, rejected=self.rejected + more)

    def in_region(self, region: int, start: bytes) -> Progress:
        """Return the progress as a region has it.

        A daughter of a split begins with its parent's progress, whose numbers count the rows of both daughters.
        """
        if self.region == region:
            return self
        moved = replace(
            self, region=region, rows=self.rows // 2, done=_later(self.done, start), bound=_later(self.bound, start)
        )
        if not self.rejected and self.walk is not Pass.COUNTS:
            return moved  # neither daughter has an unreadable row
        if self.is_backfilled:
            return replace(moved, rejected=0, walk=Pass.COUNTS, done=start, bound=start)
        return replace(moved, walk=Pass.SHOWS_THEN_COUNTS)


def _later(row: bytes | None, start: bytes) -> bytes | None:
    return None if row is None else max(row, start)


def merged(parts: Iterable[Progress], region: int) -> Progress:
    """Merge the progress of regions that one region replaces; all of them are backfilled."""
    progresses = list(parts)
    assert all(one.is_backfilled for one in progresses), "a merge waits for builds"
    rejected, rows = sum(one.rejected for one in progresses), sum(one.rows for one in progresses)
    if any(one.walk is Pass.COUNTS for one in progresses):
        return Progress(region, 0, rows, Pass.COUNTS, b"", b"")
    return Progress(region, rejected, rows, Pass.OVER, None, None)


class Piece:
    """The rows of one piece, from their reading until the view has them.  Owned by the loop."""

    def __init__(self, start: bytes) -> None:
        self.end: bytes | None = start  # None: to the end of the region
        self.rows = 0
        self.rejected = 0  # unreadable rows of the piece, as of the changes that are done
        self.last: Sequence | None = None  # the W of its last rows
        self._ends: list[bytes] = []  # of each run of rows that were read at once
        self._read_at: list[Sequence] = []

    def gathered(self, end: bytes | None, at: Sequence, rows: int, rejected: int) -> None:
        """Note that the next ``rows`` rows, up to ``end``, were read as of ``at``."""
        if end is not None:
            self._ends.append(end)
        self._read_at.append(at)
        self.end, self.last = end, at
        self.rows, self.rejected = self.rows + rows, self.rejected + rejected

    def add_rejected(self, more: int) -> None:
        """Add ``more``, which may be negative, to the number of unreadable rows, for a change that is done."""
        self.rejected += more

    def counts(self, row: bytes, sequence: Sequence) -> bool:
        """Return whether a change of the row came after the row was read.  The row must not be below the piece."""
        if self.end is not None and row >= self.end:
            return False
        return bool(self._read_at) and sequence > self._read_at[bisect_right(self._ends, row)]


# --- bytes -------------------------------------------------------------------------------------------


def pack(progress: Progress) -> bytes:
    import msgpack  # as in ``delivery_state``

    numbers = (progress.region, progress.rejected, progress.rows, int(progress.walk))
    packed: bytes = msgpack.packb([_VERSION, *numbers, progress.done, progress.bound])
    return packed


def unpack(data: bytes) -> Progress:
    """Return the progress.  Raises DamagedData."""
    import msgpack

    try:
        version, region, rejected, rows, walk, done, bound = msgpack.unpackb(data)
        if version != _VERSION:
            raise DamagedData(f"progress of a view of version {version}; this program knows {_VERSION}: upgrade")
        return Progress(region, rejected, rows, Pass(walk), done, bound)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise DamagedData(f"progress of a view: {error}") from error
