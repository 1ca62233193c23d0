"""Records that followers have read but not delivered yet, so that a first delivery need not read the log again.

Invariants:
    I1. A follower keeps at most AT_HAND records with AT_HAND_BYTES; all followers of a server keep at most
        ALL_AT_HAND_BYTES.  A record that has no room is read from the log again when it is delivered.
    I2. A dropped follower keeps none.

Owned by the loop's thread.
"""

from __future__ import annotations

from typing import Final

from columnar.regions.log.change_record import ChangeRecord, Sequence

AT_HAND: Final = 1_024
AT_HAND_BYTES: Final = 1024 * 1024  # of values
ALL_AT_HAND_BYTES: Final = 64 * 1024 * 1024  # without it a thousand regions with lagging followers keep a gigabyte


class AllAtHand:
    """The bytes that all followers of a server keep."""

    __slots__ = ("bound_bytes", "size_bytes")

    def __init__(self, bound_bytes: int = ALL_AT_HAND_BYTES) -> None:
        self.bound_bytes = bound_bytes
        self.size_bytes = 0

    def add(self, size_bytes: int) -> None:
        """Count bytes that a follower keeps from now on, or if negative keeps no longer."""
        self.size_bytes += size_bytes


class AtHand:
    """The records of one follower."""

    __slots__ = ("_all", "_records", "_size_bytes")

    def __init__(self) -> None:
        self._all = AllAtHand()  # of this follower alone, until ``share``
        self._records: dict[Sequence, ChangeRecord] = {}
        self._size_bytes = 0

    def share(self, all_at_hand: AllAtHand) -> None:
        """Share a bound with all followers of the server.  Call before any record is kept."""
        assert not self._records, "what is kept is counted where it was"
        self._all = all_at_hand

    def keep(self, sequence: Sequence, record: ChangeRecord) -> None:
        """Keep the record if there is room."""
        if len(self._records) >= AT_HAND:
            return
        size = value_bytes(record)
        region_bytes, whole = self._size_bytes + size, self._all.size_bytes + size
        if region_bytes <= AT_HAND_BYTES and whole <= self._all.bound_bytes:
            self._records[sequence] = record
            self._size_bytes = region_bytes
            self._all.add(size)

    def take_record(self, sequence: Sequence) -> ChangeRecord | None:
        """Return the record and keep it no longer; return None if it was not kept."""
        record = self._records.pop(sequence, None)
        if record is not None:
            self._release_bytes(value_bytes(record))
        return record

    def clear(self) -> None:
        self._records.clear()
        self._release_bytes(self._size_bytes)

    def _release_bytes(self, size: int) -> None:
        self._size_bytes -= size
        self._all.add(-size)


def value_bytes(record: ChangeRecord) -> int:
    size = 0
    for entries in (record.entries, record.before, record.after):
        for entry in entries:
            size += len(entry.value)
    for send in record.sends:
        size += len(send.body)
    return size
