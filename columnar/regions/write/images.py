"""(pure) Images of a row in change records: the visible values of named columns before a change and after it.

A follower names the columns whose images it wants: for each family its qualifiers, or None for the whole family
(``Subscription.images``).  Records contain the union of the columns that the followers of their table wanted at the
time of the write, so a reader extracts its own part.

Invariants:
    I1. The images that ``images_of`` returns are exact: they have the visible value of each wanted column before and
        after the change, touched or not, and of no other column.  These images do not depend on the requests of other
        followers.
    I2. ``images_of`` returns None, never a part, if the record does not cover a wanted column.  Such records were
        written before the column was requested, or stand for no change (a backfill, a dead letter that is retried
        as its row is now).  The reader of such a record takes the row as it is now.
    I3. A table's policy lists the images that a follower needs before the follower's cursor is set (``flows.hub`` I1).
        So every change from the cursor on contains them.

A change of a cell's timestamp alone does not change its image.  Cells that expire vanish without a record.

Knows nothing of stores: ``change_logging`` makes images.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from columnar.regions.log.change_record import ChangeRecord, Entry, Images, Kind


class RowImages(NamedTuple):
    """The visible values before and after a change, by column (``family:qualifier``)."""

    before: dict[bytes, bytes]
    after: dict[bytes, bytes]


def images_of(record: ChangeRecord, wanted: Images) -> RowImages | None:
    """Return the images of the wanted columns, or None if the record lacks them (I2).  O(cells of the record)."""
    if (record.only_for is not None and not record.entries) or not covers(record.images or {}, wanted):
        return None
    before = {entry.family + b":" + entry.qualifier: entry.value for entry in record.before if _includes(wanted, entry)}
    after = before
    for entry in record.after:
        if _includes(wanted, entry):
            if after is before:
                after = dict(before)
            if entry.kind == Kind.PUT:
                after[entry.family + b":" + entry.qualifier] = entry.value
            else:
                after.pop(entry.family + b":" + entry.qualifier, None)
    return RowImages(before, after)


def covers(recorded: Images, wanted: Images) -> bool:
    """Tell whether ``recorded`` contains every wanted column."""
    for family, qualifiers in wanted.items():
        there = recorded.get(family, _NOTHING)
        if there is not None and (qualifiers is None or not qualifiers <= there):
            return False
    return True


def union(several: Iterable[Images]) -> dict[bytes, frozenset[bytes] | None]:
    found: dict[bytes, frozenset[bytes] | None] = {}
    for images in several:
        for family, qualifiers in images.items():
            known = found.get(family, _NOTHING)
            found[family] = None if known is None or qualifiers is None else known | qualifiers
    return found


def _includes(wanted: Images, entry: Entry) -> bool:
    qualifiers = wanted.get(entry.family, _NOTHING)
    return qualifiers is None or entry.qualifier in qualifiers


_NOTHING: frozenset[bytes] = frozenset()
