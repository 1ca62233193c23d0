"""Logging of a region's changes: adds the records of writes to the change log and trims records from it.

Knows which families of a row are recorded (``hooks.LogPolicy``) and with which stamp (``RowStamps``).  The log itself
is in ``change_log``.  Knows nothing of followers.

Invariant I1: in a logged table the timestamps that the region gives to the writes of a row rise strictly.  These
timestamps are the stamps of the row's records; trimming keeps the highest stamp of the trimmed records in ``meta``.

The images before a change are read before the row is changed; the images after it are taken from the row's draft.
Images of named columns cost one ``multi_get`` for each family, which also reads the columns that the mutation touches.
The image of a whole family costs O(columns of the family in the row) for each write of the row, so it is bounded: a
write is refused if the row has more than IMAGE_CELLS or IMAGE_BYTES in the family before or after the write.  A family
that is missing from the table has no cells.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from columnar.errors import ColumnarError, DamagedData, ImageTooBig, NotAllowed, abbreviate
from columnar.limits import IMAGE_BYTES, IMAGE_CELLS
from columnar.model.mutation import Contribute, Put, RowMutation
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_log import ChangeLog
from columnar.regions.log.change_record import MOST_HOPS, Appended, ChangeRecord, Entry, Kind, Sequence, is_old, unpack
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.write.applied import Step
from columnar.regions.write.row_draft import RowDraft
from columnar.storage.api import Batch, Store

STAMP: Final = b"stamp"  # in ``meta``: the highest stamp given ahead of the clock or trimmed from the log
REMEMBERED_ROWS: Final = 4_096
_log = logging.getLogger(__name__)
OLD_AHEAD_MS: Final = 3_600_000  # the region's own timestamps run ahead of the clock as far as its stamps


_NOTHING: Final[frozenset[bytes]] = frozenset()
TRIGGER: Final = "trigger "  # begins the name of a reader that is a trigger


def read_images(draft: RowDraft, mutation: RowMutation, policy: LogPolicy) -> None:
    """Read the columns of the images into the draft, before its first operation.  Raises ImageTooBig."""
    if not any(one.family in policy.families or isinstance(one, Contribute) for one in mutation.operations):
        draft.columns.prefetch(mutation.operations)
        return
    draft.columns.prefetch(mutation.operations, policy.images)
    for family, qualifiers in policy.images.items():
        if qualifiers is None and not draft.columns.read_family_within(family, IMAGE_CELLS, IMAGE_BYTES):
            raise _too_big(draft, family, policy)


def check_lasting(draft: RowDraft, mutation: RowMutation, policy: LogPolicy) -> None:
    """Raise NotAllowed if a put would expire in a column with a follower: no follower is notified of an expiry."""
    for operation in mutation.operations:
        if isinstance(operation, Put) and operation.ttl_ms is not None and operation.family in policy.lasting:
            readers = policy.lasting[operation.family]
            reader = readers.get(operation.qualifier) or readers.get(None)
            if reader is not None:
                column = abbreviate(operation.family + b":" + operation.qualifier)
                either = ", or let the trigger allow it (--allow-expiry)" if reader.startswith(TRIGGER) else ""
                raise NotAllowed(
                    f"a put into {column} of {draft.table} has a time to live: {reader} reads the family, and would "
                    f"not hear of its end; put it without one{either}"
                )


def take_images(
    draft: RowDraft, policy: LogPolicy, touched: tuple[Entry, ...]
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Return the images before and after a change; call after ``emit``.

    The images before the change begin with ``touched``; the images after it have only the columns whose value changed.
    """
    images, known = policy.images, {(entry.family, entry.qualifier) for entry in touched}
    before, after = list(touched), []
    for (family, qualifier), column in draft.columns.by_name.items():
        qualifiers = images.get(family, _NOTHING)
        if qualifiers is not None and qualifier not in qualifiers:
            continue
        old, new = draft.seen_before(column), draft.seen(column)
        if old is not None and (family, qualifier) not in known:
            before.append(Entry(Kind.PUT, family, qualifier, old[1], old[0]))
        if new is not None and (old is None or new[0] != old[0]):
            after.append(Entry(Kind.PUT, family, qualifier, new[1], new[0]))
        elif new is None and old is not None:
            after.append(Entry(Kind.DELETE_COLUMN, family, qualifier, draft.timestamp, b""))
    for family, qualifiers in images.items():
        if qualifiers is None and not _is_within(draft, family):
            raise _too_big(draft, family, policy)
    return tuple(before), tuple(after)


def _is_within(draft: RowDraft, family: bytes) -> bool:
    """Tell whether the family's cells are within the bounds of an image after the mutation."""
    cells = size_bytes = 0
    for (name, qualifier), column in draft.columns.by_name.items():
        if name == family and column.newest is not None:
            cells += 1
            size_bytes += len(qualifier) + len(column.newest)
    return cells <= IMAGE_CELLS and size_bytes <= IMAGE_BYTES


def _too_big(draft: RowDraft, family: bytes, policy: LogPolicy) -> ImageTooBig:
    return ImageTooBig(draft.table, draft.row, family, policy.askers.get(family, "a follower of the table"))


class RowStamps:
    """Stamps of the records of a logged table: times that rise strictly with each record of a row.

    Triggers order the data that they derive from a row's records by the stamps.  So stamps must rise whatever
    timestamps clients give to cells, however many records fall into a millisecond, and whatever clock the region is
    opened under.  Stamps follow the clock, and run ahead of it if necessary.

    Invariants:
        I1. A row's stamp is higher than every stamp that the row was given before, in this opening or an earlier one.
        I2. The higher of the mark ``meta/stamp`` and the stamp of the log's last record is at or above every stamp
            given before this opening.  A stamp ahead of the clock is marked in its own batch, a stamp trimmed from the
            log in the batch that trims it.  The last of the remaining records has their highest stamp, as the clock of
            one opening never goes back.
        I3. At most REMEMBERED_ROWS rows are remembered.

    Records of version 1 carry timestamps that clients invented: if the last record is of version 1, stamps begin above
    every timestamp that was written up to OLD_AHEAD_MS ahead of the clock.

    Knows nothing of cells; the time is an argument.

    Owned by the loop's thread.
    """

    def __init__(self, store: Store, log: ChangeLog, future: int) -> None:
        """``future`` is the highest timestamp that was written ahead of the clock before this opening."""
        self._store = store
        self._log = log
        self._future = future
        self._floor = -1  # at or above all stamps of rows that are not in ``_recent``; -1: not read yet
        self._highest = 0  # the highest stamp given ahead of the clock, or found at the opening
        self._recent: dict[bytes, int] = {}  # rows written in this very millisecond, or while the clock stood still

    def give(self, batch: Batch, row: bytes, now_ms: int) -> int:
        """Return the stamp of the row's next record, which goes into ``batch`` (I1)."""
        if self._floor < 0:
            self._find_floor(now_ms)
        last = self._recent.get(row, self._floor)
        stamp = now_ms
        if last >= now_ms:
            stamp = last + 1
            if stamp > self._highest:
                self._highest = stamp
            batch.put(META_SPACE, STAMP, self._highest.to_bytes(8, "big"))
        if len(self._recent) >= REMEMBERED_ROWS:
            self._forget(now_ms)
        self._recent[row] = stamp
        return stamp

    def give_step(self, batch: Batch, rows: list[bytes], now_ms: int) -> int:
        """Return the one stamp of the next records of all ``rows``, which are changed as one step (I1).

        A restore to a moment takes records by their stamps, and so takes all of the step or nothing.
        """
        if self._floor < 0:
            self._find_floor(now_ms)
        stamp = now_ms
        for row in rows:
            stamp = max(stamp, self._recent.get(row, self._floor) + 1)
        if stamp > now_ms:
            if stamp > self._highest:
                self._highest = stamp
            batch.put(META_SPACE, STAMP, self._highest.to_bytes(8, "big"))
        for row in rows:
            if len(self._recent) >= REMEMBERED_ROWS:
                self._forget(now_ms)
            self._recent[row] = stamp
        return stamp

    def mark(self, now_ms: int) -> int:
        """Return a time at or above every stamp given so far."""
        if self._floor < 0:
            self._find_floor(now_ms)
        return max(self._highest, now_ms)

    def _find_floor(self, now_ms: int) -> None:
        """Find the floor, once per opening, before its first record.  Costs a get and a seek."""
        mark = self._store.get(META_SPACE, STAMP)
        self._floor = self._highest = max(int.from_bytes(mark or b"", "big"), self._last_stamp(now_ms))

    def _last_stamp(self, now_ms: int) -> int:
        try:
            data = self._log.last_record()
            record = unpack(data) if data is not None else None
        except DamagedData:  # readers of the log report it; writers need only the mark
            return 0
        if data is None or record is None:
            return 0
        if is_old(data):
            return min(max(record.stamp, self._future), now_ms + OLD_AHEAD_MS)
        return record.stamp

    def _forget(self, now_ms: int) -> None:
        """Forget rows whose stamp the clock has passed.

        If more than half of REMEMBERED_ROWS remain, the floor rises, so that rows with lower stamps can go, too (I3).
        """
        self._recent = {row: at for row, at in self._recent.items() if at >= now_ms}
        if len(self._recent) > REMEMBERED_ROWS // 2:
            floor = self._floor = max(self._floor, sorted(self._recent.values())[REMEMBERED_ROWS // 2])
            self._recent = {row: at for row, at in self._recent.items() if at > floor}


class ChangeLogging:
    """The logging of one region; owned by the loop's thread."""

    def __init__(self, log: ChangeLog, stamps: RowStamps) -> None:
        self.log = log
        self.stamps = stamps
        self.row_policy: LogPolicy | None = None  # of every change; None: a change logs its sends alone
        self._reported_n = 0  # followers know of the records of this opening up to this number

    def follow_policy(self, policy: LogPolicy | None) -> None:
        is_for_sends = policy is not None and policy.sends and not policy.families
        self.row_policy = None if is_for_sends else policy

    def has_news(self) -> bool:
        """Tell whether followers are to be woken after an fsync: the outbox alone is woken for its own records."""
        if self.row_policy is not None:
            return True
        last = self.log.last_logged
        return last is not None and last.n > self._reported_n

    def note_reported(self, n: int) -> None:
        """Note that followers were woken for the records of this opening up to ``n``, which are durable."""
        self._reported_n = n

    def record(
        self,
        batch: Batch,
        draft: RowDraft,
        sequence: Sequence,
        stamp: int,
        policy: LogPolicy,
        mutation: RowMutation,
        more_follows: bool = False,
    ) -> Appended | None:
        """Add the record of a draft whose cells are emitted.

        Returns None if none of its families is logged, and the mutation sends nothing.
        ``more_follows`` says that the next record is of the same atomic step.
        """
        entries = tuple(entry for entry in draft.entries if entry.family in policy.families)
        hops, sends = min(mutation.hops, MOST_HOPS), mutation.sends
        if not entries:
            if not sends:
                return None
            record = ChangeRecord(draft.row, stamp, (), (), None, stamp, hops, sends=sends, more_follows=more_follows)
            return self.log.append(batch, sequence, record)
        timestamp = max(entry.timestamp for entry in entries)
        before = draft.before(policy.before)
        if not policy.images:
            record = ChangeRecord(draft.row, timestamp, entries, before, None, stamp, hops, sends=sends)
        else:
            cells, after = take_images(draft, policy, before)
            record = ChangeRecord(
                draft.row,
                timestamp,
                entries,
                cells,
                None,
                stamp,
                hops,
                after=after,
                sends=sends,
                images=policy.images,
                touched=len(before),
            )
        return self.log.append(batch, sequence, record.but(more_follows=True) if more_follows else record)

    def add_records(self, batch: Batch, records: Iterable[ChangeRecord], now_ms: int) -> list[Step]:
        """Add records that stand for no mutation.  A record without a stamp gets the stamp of a change made now.

        A record with a stamp keeps it: it is a change that is logged again, and the row's highest stamp stays marked.
        """
        steps = []
        for record in records:
            sequence = self.log.next()
            stamped = record
            if record.stamp:
                batch.put(META_SPACE, STAMP, self.stamps.mark(now_ms).to_bytes(8, "big"))
            else:
                stamped = record.but(stamp=self.stamps.give(batch, record.row, now_ms))
            steps.append(Step(sequence, stamped.timestamp, (), None, self.log.append(batch, sequence, stamped)))
        return steps

    def written(self, steps: list[Step]) -> None:
        """Note that the batch of these steps is in the store."""
        logged = [step.logged for step in steps if step.logged is not None]
        if logged:
            self.log.written(logged)

    def note_coverage(self, start: bytes, now_ms: int, keep_s: int | None) -> None:
        """Note whether every change of the region, whose first row is ``start``, is logged from now on.

        ``keep_s`` is how long changes are kept for readers; None: not every change is logged.
        """
        coverage, retention = self.log.coverage, self.log.retention
        try:
            if keep_s is not None:
                if not coverage.segments():  # an empty log can be read from this moment on
                    retention.vouch(self.log.written_to, now_ms, keep_s)
                coverage.begin_coverage(start, retention.earliest_whole_place() or self.log.written_to)
            elif coverage.end_coverage():
                retention.forget_marks()  # a log that begins again cannot be replayed from an earlier time
        except (
            ColumnarError
        ) as error:  # the store is for reading only, or broken: it is opened again, and notes it then
            _log.warning("the coverage of a change log is not noted now: %s", error.text)

    def note_end(self) -> None:
        """Note the end of the log before a copy of the store, in which it is the end of what readers may have read."""
        try:
            if self.log.coverage.segments():
                self.log.note_end()
        except ColumnarError as error:  # a copy of what the disk refuses to change is better than none
            _log.warning("the end of a change log is not noted in a copy: %s", error.text)

    def trim(self, below: Sequence, now_ms: int) -> int:
        """Remove a bounded number of records below ``below``.  Returns the number removed."""
        return self.log.trim(below, STAMP, self.stamps.mark(now_ms))

    def trim_kept(self, below: Sequence, old: Sequence | None, most_bytes: int, now_ms: int) -> int:
        """Trim records that only CHANGE_LOG keeps: records below ``old`` and the excess over ``most_bytes``."""
        return self.log.trim_kept(below, old, most_bytes, STAMP, self.stamps.mark(now_ms))
