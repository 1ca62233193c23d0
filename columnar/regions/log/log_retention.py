"""Retention of change-log records that no follower needs (table attribute CHANGE_LOG).

A record's own timestamp may be its writer's invention.  So from time to time the log notes its end together with the
time of the server's clock, as a mark in the space ``meta``:

    time/ ms:u64  ->  origin:u64 epoch:u32 n:u64        every record up to this sequence was written by ``ms``

Invariants:
    I1. ``older_than`` never names a record that is younger than the requested age.
    I2. At most MARKS + 2 marks are kept, however long records are retained.

``trimmed`` in ``meta`` is the last record that was removed, or the end of an empty log when ``vouch`` was called.
``trimmed`` shows whether the log is whole after a mark: whether no record after the mark was removed.

Knows nothing of clocks: the time is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Several
from itertools import islice
from struct import Struct
from typing import Final

from columnar.regions.log.change_record import Sequence, pack_key, unpack_key
from columnar.storage.api import Store
from columnar.storage.layout import END_OF_COLUMN
from columnar.storage.ownership import META_SPACE as META_SPACE

LOG_SPACE: Final = "log"
TIME: Final = b"time/"
TRIMMED: Final = b"trimmed"  # origin:u64 epoch:u32 n:u64; absent if only earlier versions removed records, or none did
_MS: Final = Struct(">Q")
MARKS: Final = 64  # over the requested time: records stay up to 1/64 longer


def mark(now_ms: int, written_to: Sequence) -> tuple[bytes, bytes]:
    """Return key and value of a mark, which says that everything up to ``written_to`` was written by ``now_ms``."""
    return TIME + _MS.pack(now_ms), pack_key(written_to)


def merged(
    logs: Several[tuple[list[int], Callable[[int], Sequence | None]]],
) -> list[tuple[int, Sequence]]:
    """Return the marks of a log that merges several logs: times, each with a sequence below all records written since.

    The merged log has the order of the sequences.  So at each time the lowest sequence of the logs' marks is below
    every later record of each log.  A time after which some log is not whole gets no mark.  Returns at most MARKS marks
    (I2).
    """
    found: list[tuple[int, Sequence]] = []
    for at_ms in sorted({at_ms for times, _ in logs for at_ms in times}):
        places = [before(at_ms) for _, before in logs]
        known = [place for place in places if place is not None]
        if len(known) == len(places):
            found.append((at_ms, min(known)))
    return found[:: 1 + len(found) // MARKS]


class LogRetention:
    """Owned by the loop's thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._marks: list[tuple[int, Sequence]] | None = None  # ascending; None: not read yet

    def _known(self) -> list[tuple[int, Sequence]]:
        if self._marks is None:
            found = self._store.scan(META_SPACE, TIME, TIME[:-1] + b"0")
            self._marks = [(_MS.unpack(key[len(TIME) :])[0], unpack_key(value)) for key, value in found]
        return self._marks

    def note(self, written_to: Sequence, now_ms: int, keep_s: int) -> None:
        """Mark that everything up to ``written_to`` is written at ``now_ms``, unless the last mark is recent."""
        marks = self._known()
        # The second mark comes with the first records, because the first one may be from before them (``vouch``).
        is_recent = len(marks) > 1 and now_ms - marks[-1][0] < keep_s * 1000 // MARKS
        if marks and (marks[-1][1] >= written_to or is_recent):
            return
        batch = self._store.batch()
        batch.put(META_SPACE, *mark(now_ms, written_to))
        self._store.write_batch(batch)
        marks.append((now_ms, written_to))

    def marks(self) -> list[tuple[int, Sequence]]:
        """Return each mark, ascending: a time and the end of the log at that time."""
        return list(self._known())

    def forget_marks(self) -> None:
        """Forget the marks: the table keeps no changes any more, so the marks would be wrong for later records."""
        if self._known():
            batch = self._store.batch()
            batch.delete_range(META_SPACE, TIME, TIME[:-1] + b"0")
            self._store.write_batch(batch)
            self._marks = []

    def older_than(self, now_ms: int, keep_s: int) -> Sequence | None:
        """Return a sequence: records below it were written more than ``keep_s`` ago.

        Returns None if no mark is so old.
        """
        marks = self._known()
        old = [mark for mark in marks if mark[0] < now_ms - keep_s * 1000]
        if not old:
            return None
        if len(old) > 1:
            batch = self._store.batch()
            batch.delete_range(META_SPACE, TIME, TIME + _MS.pack(old[-1][0]))
            self._store.write_batch(batch)
            del marks[: len(old) - 1]
        return old[-1][1]

    def trimmed_to(self) -> Sequence | None:
        """Return the last record that was removed, or None if none was, by this version."""
        trimmed = self._store.get(META_SPACE, TRIMMED)
        return None if trimmed is None else unpack_key(trimmed)

    # --- whole since a time -------------------------------------------------------------------------

    def before(self, time_ms: int) -> Sequence | None:
        """Return a sequence below every record written since that time, after which the log is whole, or None."""
        return next((at for ms, at in reversed(self._known()) if ms <= time_ms and self._is_whole(at)), None)

    def times(self) -> list[int]:
        """Return the times of the marks, ascending."""
        return [ms for ms, _ in self._known()]

    def earliest_whole_time(self) -> int | None:
        """Return the earliest time for which ``before`` finds a sequence, or None."""
        return next((ms for ms, at in self._known() if self._is_whole(at)), None)

    def earliest_whole_place(self) -> Sequence | None:
        """Return the sequence that ``before`` finds for the earliest time, or None."""
        return next((at for _, at in self._known() if self._is_whole(at)), None)

    def vouch(self, written_to: Sequence, now_ms: int, keep_s: int) -> None:
        """Mark an empty log as whole from now on, whatever it contained before; ``written_to``: the log's end."""
        if self.earliest_whole_time() is None and not self._has_records(None):
            batch = self._store.batch()
            batch.put(META_SPACE, TRIMMED, pack_key(written_to))
            self._store.write_batch(batch)
            self.note(written_to, now_ms, keep_s)

    def _is_whole(self, after: Sequence) -> bool:
        """Tell whether no record after ``after`` was removed: ``trimmed`` says so, or an older record is stored."""
        trimmed = self._store.get(META_SPACE, TRIMMED)
        if trimmed is not None:
            return trimmed <= pack_key(after)
        return self._has_records(pack_key(after) + END_OF_COLUMN)

    def _has_records(self, stop: bytes | None) -> bool:
        return any(True for _ in islice(self._store.scan(LOG_SPACE, b"", stop), 1))
