"""Retention of change-log records that no follower needs (table attribute CHANGE_LOG).

A record's own timestamp may be its writer's invention; so the log notes from time to time its end at
a time of the server's clock.  In the space ``meta``:

    time/ ms:u64  ->  origin:u64 epoch:u32 n:u64        everything up to it was written by then

Invariants:
    I1. ``older_than`` never names a record that is younger than the requested age.
    I2. At most MARKS + 2 marks are kept, however long the time.

``trimmed`` in ``meta`` is the last record that was removed, or the end of an empty log when ``vouch`` was called, so
that a log can say whether it is whole after a mark.

Knows nothing of clocks: the time is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Several
from struct import Struct
from typing import Final

from columnar.regions.log.change_record import Sequence, pack_key, unpack_key
from columnar.storage.api import Store
from columnar.storage.ownership import META_SPACE as META_SPACE

TIME: Final = b"time/"
TRIMMED: Final = b"trimmed"  # origin:u64 epoch:u32 n:u64; absent if only earlier versions removed records, or none did
_MS: Final = Struct(">Q")
MARKS: Final = 64  # over the requested time: records stay up to 1/64 longer


def mark(now_ms: int, written_to: Sequence) -> tuple[bytes, bytes]:
    """Key and value that say: everything up to ``written_to`` was written by now."""
    return TIME + _MS.pack(now_ms), pack_key(written_to)


def merged(
    logs: Several[tuple[list[int], Callable[[int], Sequence | None]]],
) -> list[tuple[int, Sequence]]:
    """Marks of a log that has the records of several: their times, and the place before all that came since in each.

    The logs keep the order of their sequences, so the lowest of their places is before the records of every one.
    A time for which some log is not whole has no mark.  MARKS at most (I2).
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
        """Everything up to ``written_to`` is written at ``now_ms``."""
        marks = self._known()
        if marks and (marks[-1][1] >= written_to or now_ms - marks[-1][0] < keep_s * 1000 // MARKS):
            return
        batch = self._store.batch()
        batch.put(META_SPACE, *mark(now_ms, written_to))
        self._store.write_batch(batch)
        marks.append((now_ms, written_to))

    def marks(self) -> list[tuple[int, Sequence]]:
        """Times and how far the log went by then, ascending."""
        return list(self._known())

    def forget_marks(self) -> None:
        """Forget the marks: the table keeps no changes any more, so they would be wrong for later records."""
        if self._known():
            batch = self._store.batch()
            batch.delete_range(META_SPACE, TIME, TIME[:-1] + b"0")
            self._store.write_batch(batch)
            self._marks = []

    def older_than(self, now_ms: int, keep_s: int) -> Sequence | None:
        """Records below it were written more than ``keep_s`` ago; None: none is known to be."""
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
