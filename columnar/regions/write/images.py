"""(pure) Images of a row in change records: what a reader saw of named columns before a change and after it.

A follower names the columns that it wants images of: of a family its qualifiers, or None for all of it
(``Subscription.images``).  Records hold the union of what the followers of their table wanted when they were written,
so a reader takes out its own part.

Invariants:
    I1. Images that ``images_of`` gives are exact: of each wanted column the visible value before and after the change,
        touched or not, and of no column else.  They do not depend on what other followers ask for.
    I2. ``images_of`` gives None, never a part, if the record does not cover a wanted column.  Such are records that
        were written before somebody asked for the column, and records that stand for no change (a backfill, a
        dead letter that is retried as its row is now).  Their reader takes the row as it is now.
    I3. A table's policy has the images before a follower's cursor is marked (``flows.hub`` I1), so a follower finds
        images in each change from its beginning on.

A change of a cell's timestamp alone is none of its image.  Cells that expire vanish without a record.

Knows nothing of stores: ``row_images`` makes images.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from columnar.regions.log.change_record import ChangeRecord, Entry, Images, Kind


class RowImages(NamedTuple):
    """By column, ``family:qualifier``."""

    before: dict[bytes, bytes]
    after: dict[bytes, bytes]


def images_of(record: ChangeRecord, wanted: Images) -> RowImages | None:
    """The images of the wanted columns; None: the record does not hold them (I2).  O(cells of the record)."""
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


def covers(held: Images, wanted: Images) -> bool:
    """Every wanted column is among those held."""
    for family, qualifiers in wanted.items():
        there = held.get(family, _NOTHING)
        if there is not None and (qualifiers is None or not qualifiers <= there):
            return False
    return True


def union(several: Iterable[Images]) -> dict[bytes, frozenset[bytes] | None]:
    found: dict[bytes, frozenset[bytes] | None] = {}
    for images in several:
        for family, qualifiers in images.items():
            held = found.get(family, _NOTHING)
            found[family] = None if held is None or qualifiers is None else held | qualifiers
    return found


def _includes(wanted: Images, entry: Entry) -> bool:
    qualifiers = wanted.get(entry.family, _NOTHING)
    return qualifiers is None or entry.qualifier in qualifiers


_NOTHING: frozenset[bytes] = frozenset()
