"""The batches that a store wrote to RocksDB since its last fsync began, as records for the log of the server.

Invariants:
    I1. ``take`` returns all batches that were written since the last ``take``, in order, or None.
    I2. Every batch carries a mark.  After a batch that was not noted, no later batch is recorded until
        ``take`` is called.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Final

from columnar.storage.server_log import MARK, MARKS_END, Operation, Written, mark, pack_floor

FEW_MARKS: Final = 16  # up to this one by one, more as a range: expensive for reads, but only a start reads marks
CAPTURED_BYTES: Final = 256 * 1024  # of one store between two fsyncs; more is not written to the server's log


class Capture:
    """The capture of a store's batches.  Owned by the loop, except ``synced``, which the syncing thread sets."""

    __slots__ = (
        "_era",
        "_floor",
        "_marks",
        "_number",
        "_operation_bytes",
        "_operations",
        "_records",
        "_stamp",
        "_whole",
        "epoch",
        "epochs",
        "last",
        "region",
        "synced",
    )

    def __init__(self, region: str, epoch: int, era: bytes, stamp: Callable[[], int]) -> None:
        """Begin a capture; batches that were written before are in no record.

        ``epoch`` is the epoch of the region's owner.  ``stamp`` returns the next batch number of the run that ``era``
        names.
        """
        self.region = region
        self.epoch = epoch
        self.epochs = [epoch]  # epochs of its records, ascending; the last is the owner's
        self._era = era
        self._stamp = stamp
        self._operations: list[Operation] = []  # of the batch that is being written to the engine
        self._operation_bytes = 0
        self._number = 0  # of that batch
        self._records: list[Written] = []
        self._whole = False
        self._marks: deque[int] = deque()  # numbers of marks in the store: none before its first batch
        self.last = stamp()  # number of the last batch that was written
        self._floor = self.last
        self.synced = self.last  # batches up to this number are on disk in the store's own log

    def renumber(self, epoch: int) -> None:
        """Label batches that are written from now on with the owner's next epoch."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.epochs.append(epoch)

    def note_synced(self, number: int) -> None:
        """Note that the batches with numbers up to ``number`` are on disk in the store's own log."""
        self.synced = max(self.synced, number)

    def note(self, operations: Sequence[Operation], size_bytes: int) -> None:
        """Record operations of the next batch."""
        self._operation_bytes += size_bytes
        if self._operation_bytes > CAPTURED_BYTES:
            self.missed()
        if self._whole:
            self._operations += operations

    def mark(self) -> tuple[bytes, bytes]:
        """Return the mark, as key and value, that the next batch must carry.  Each mark has a new number."""
        self._number = self._stamp()
        self._floor = max(self._floor, self.synced)  # it never falls, because marks below it are deleted
        return mark(self._era, self._number), pack_floor(self._floor)

    def outdated(self) -> tuple[list[bytes], tuple[bytes, bytes] | None]:
        """Return the marks that the batch of the last ``mark`` must delete: single keys, or a half-open range."""
        if not self._marks:
            return [], (MARK, MARKS_END)  # marks of earlier openings and runs, and of other servers' logs
        floor = self._floor
        old = list(takewhile(lambda number: number <= floor, self._marks))
        if len(old) > FEW_MARKS:
            return [], (mark(self._era, old[0]), mark(self._era, old[-1] + 1))
        return [mark(self._era, number) for number in old], None

    def batch_written(self) -> None:
        """Record the noted and marked batch, which is written to RocksDB."""
        marks = self._marks
        if self._whole:
            previous = marks[-1] if marks else 0
            self._records.append((self.region, self.epoch, self._number, previous, self._operations))
            self._operations = []
        while marks and marks[0] <= self._floor:
            marks.popleft()
        marks.append(self._number)
        self.last = self._number

    def missed(self) -> None:
        """Discard the records, because a batch that was not noted is being or was written (I2)."""
        self._whole = False
        self._records = []
        self._operations = []

    def take(self) -> list[Written] | None:
        """Return the records since the last call, or None if they are incomplete, so that the store must be synced.

        The caller must append the records to the server's log or sync the store: until then the batches written before
        are not on disk.
        """
        assert not self._operations, "the store is settled first"
        records, self._records = self._records, []
        was_whole, self._whole = self._whole, True
        self._operation_bytes = 0
        return records if was_whole else None
