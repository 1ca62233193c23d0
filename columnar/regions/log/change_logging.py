"""Logging of a region's changes: adds the records of writes to the change log and trims records from it.

Knows which families of a row are recorded (``hooks.LogPolicy``) and with which stamp (``RowStamps``).  The log itself
is ``change_log``.  Knows nothing of followers.

Invariant I1: timestamps that the region gives to writes of a row of a logged table rise strictly.  They are the stamps
of the row's records; trimming keeps the highest stamp of the trimmed records in ``meta``.

The images in a row's change record are read before the row is changed and taken from its draft afterwards.  Named
columns cost one ``multi_get`` for each family, together with the columns that the mutation touches.  A family that is
wanted as a whole costs O(its columns in the row) for each write of the row, so it is bounded: a write is refused that
finds or leaves more than IMAGE_CELLS or IMAGE_BYTES there.  A family that the table does not have, or no longer, has no
cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from columnar.errors import DamagedData, ImageTooBig, NotAllowed, abbreviate
from columnar.limits import IMAGE_BYTES, IMAGE_CELLS
from columnar.model.mutation import Contribute, Put, RowMutation
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_log import ChangeLog
from columnar.regions.log.change_record import MOST_HOPS, Appended, ChangeRecord, Entry, Kind, Sequence, is_old, unpack
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.write.applied import Step
from columnar.regions.write.row_draft import RowDraft
from columnar.storage.api import Batch, Store

STAMP: Final = b"stamp"  # in ``meta``: the highest given ahead of the clock, or whose record is gone
REMEMBERED_ROWS: Final = 4_096
OLD_AHEAD_MS: Final = 3_600_000  # cells of the region run ahead of the clock as far as their stamps do


_NOTHING: Final[frozenset[bytes]] = frozenset()
TRIGGER: Final = "trigger "  # begins the name of such a reader


def read_images(draft: RowDraft, mutation: RowMutation, policy: LogPolicy) -> None:
    """Before the first operation: the columns whose images are wanted are in the draft.  ImageTooBig."""
    if not any(one.family in policy.families or isinstance(one, Contribute) for one in mutation.operations):
        draft.columns.prefetch(mutation.operations)
        return
    draft.columns.prefetch(mutation.operations, policy.images)
    for family, qualifiers in policy.images.items():
        if qualifiers is None and not draft.columns.read_family_within(family, IMAGE_CELLS, IMAGE_BYTES):
            raise _too_big(draft, family, policy)


def check_lasting(draft: RowDraft, mutation: RowMutation, policy: LogPolicy) -> None:
    """Raise NotAllowed if a put would expire in a column with a follower: an expiry is not notified."""
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
    """After ``emit``: the cells of the images before, but for those in ``touched``, and what is another after."""
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
    """The cells of the family are within the bounds of an image after the mutation."""
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

    Triggers order what they derive from a row's records by the stamps, so stamps must rise whatever timestamps
    clients give to cells, however many records fall into a millisecond, and whatever clock the region is opened
    under.  They follow the clock, and run ahead of it if necessary.

    Invariants:
        I1. A row's stamp is higher than every one that it was given before, in this opening or an earlier one.
        I2. The mark ``meta/stamp`` and the last record of the log together are at or above every stamp given before
            this opening: a stamp ahead of the clock is marked in its own batch, a stamp trimmed from the log in the
            batch that trims it, and the last of the remaining records has the highest stamp, as the clock of one
            opening never goes back.
        I3. At most REMEMBERED_ROWS rows are remembered.

    Records of version 1 carry timestamps that clients invented: if the last record is one, stamps begin above every
    timestamp written ahead of the clock, except those more than OLD_AHEAD_MS ahead of it.

    Knows nothing of cells; the time is an argument.

    Owned by the loop's thread.
    """

    def __init__(self, store: Store, log: ChangeLog, future: int) -> None:
        """``future``: the highest timestamp that was written ahead of the clock before this opening."""
        self._store = store
        self._log = log
        self._future = future
        self._floor = -1  # at or above all stamps of rows that are not in ``_recent``; -1: not read yet
        self._highest = 0  # given ahead of the clock, or found
        self._recent: dict[bytes, int] = {}  # rows written in this very millisecond, or while the clock stood still

    def give(self, batch: Batch, row: bytes, now_ms: int) -> int:
        """The stamp of the row's next record, which is in ``batch`` (I1)."""
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

    def mark(self, now_ms: int) -> int:
        """At or above every stamp given so far."""
        if self._floor < 0:
            self._find_floor(now_ms)
        return max(self._highest, now_ms)

    def _find_floor(self, now_ms: int) -> None:
        """Once an opening, before its first record: a get and a seek."""
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
        """Forget rows whose stamp the clock has passed; if most are ahead, the lower half becomes the floor (I3)."""
        self._recent = {row: at for row, at in self._recent.items() if at >= now_ms}
        if len(self._recent) > REMEMBERED_ROWS // 2:
            floor = self._floor = max(self._floor, sorted(self._recent.values())[REMEMBERED_ROWS // 2])
            self._recent = {row: at for row, at in self._recent.items() if at > floor}


class ChangeLogging:
    """The logging of one region; owned by the loop's thread."""

    def __init__(self, log: ChangeLog, stamps: RowStamps) -> None:
        self.log = log
        self.stamps = stamps

    def record(
        self, batch: Batch, draft: RowDraft, sequence: Sequence, stamp: int, policy: LogPolicy, hops: int
    ) -> Appended | None:
        """Add the record of the draft, whose cells are emitted; None if none of its families is logged."""
        entries = tuple(entry for entry in draft.entries if entry.family in policy.families)
        if not entries:
            return None
        timestamp = max(entry.timestamp for entry in entries)
        before, hops = draft.before(policy.before), min(hops, MOST_HOPS)
        if not policy.images:
            record = ChangeRecord(draft.row, timestamp, entries, before, None, stamp, hops)
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
                images=policy.images,
                touched=len(before),
            )
        return self.log.append(batch, sequence, record)

    def add_records(self, batch: Batch, records: Iterable[ChangeRecord], now_ms: int) -> list[Step]:
        """Add records that stand for no mutation, with the stamps of changes made now, or their own if they have one.

        A record with a stamp of its own is a change that is logged again: the row's highest stamp stays marked.
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
        """The batch of these steps is in the store."""
        logged = [step.logged for step in steps if step.logged is not None]
        if logged:
            self.log.written(logged)

    def trim(self, below: Sequence, now_ms: int) -> int:
        """Remove records below ``below``, a bounded number; returns how many."""
        return self.log.trim(below, STAMP, self.stamps.mark(now_ms))

    def trim_kept(self, below: Sequence, old: Sequence | None, most_bytes: int, now_ms: int) -> int:
        """Trim records that only CHANGE_LOG keeps: records below ``old`` and the excess over ``most_bytes``."""
        return self.log.trim_kept(below, old, most_bytes, STAMP, self.stamps.mark(now_ms))
