"""Logging of a region's changes: adds the records of writes to the change log and trims records from it.

Knows which families of a row are recorded (``hooks.LogPolicy``) and with which stamp (``row_stamps``).  The log itself
is ``change_log``.  Knows nothing of followers.

Invariant I1: timestamps that the region gives to writes of a row of a logged table rise strictly.  They are the stamps
of the row's records; trimming keeps the highest stamp of the trimmed records in ``meta``.
"""

from __future__ import annotations

from collections.abc import Iterable

from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_log import ChangeLog
from columnar.regions.log.change_record import MOST_HOPS, Appended, ChangeRecord, Sequence
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.write import row_images
from columnar.regions.write.applied import Step
from columnar.regions.write.row_draft import RowDraft
from columnar.regions.write.row_stamps import STAMP, RowStamps
from columnar.storage.api import Batch


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
            cells, after = row_images.taken(draft, policy, before)
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

    def add(self, batch: Batch, records: Iterable[ChangeRecord], now_ms: int) -> list[Step]:
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
