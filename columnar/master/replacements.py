"""(pure) Plans of splits and merges: the regions of a table that replace other regions of it.

A table's regions are ascending and cover all rows without hole or overlap (``hole_or_overlap`` checks that);
every plan here preserves that.  Nothing here knows how rows get from the old regions to the new ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from columnar.errors import IllegalArgument, abbreviate
from columnar.limits import ROW_KEY_BYTES
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionLoad
from columnar.model.row_groups import RowGroups


@dataclass(frozen=True, slots=True)
class Plan:
    """A replacement of regions: together ``fresh`` hold exactly the rows of ``gone``."""

    gone: tuple[RegionInfo, ...]
    fresh: tuple[RegionInfo, ...]


def split_plan(parent: RegionInfo, row: bytes, ids: Sequence[int]) -> Plan:
    """Plan a split into the rows before ``row`` and the rows from ``row`` on.

    Raises IllegalArgument if one of the new regions could hold no row.
    """
    check_split(parent, row)
    low, high = ids
    return Plan(
        (parent,),
        (
            RegionInfo(parent.table, low, parent.start, row),
            RegionInfo(parent.table, high, row, parent.end),
        ),
    )


def check_split(parent: RegionInfo, row: bytes) -> None:
    if not 0 < len(row) <= ROW_KEY_BYTES:
        raise IllegalArgument(f"a region splits at a row of 1 to {ROW_KEY_BYTES} bytes, not {len(row)}")
    if row == parent.start:
        raise IllegalArgument(
            f"row {abbreviate(row)} is the first that region {parent.encoded} may hold; choose a later one"
        )
    if not parent.contains_row(row):
        raise IllegalArgument(
            f"row {abbreviate(row)} is outside region {parent.encoded}, which holds {abbreviate(parent.start)} to "
            f"{abbreviate(parent.end) or 'the end'}"
        )


def split_between_groups(parent: RegionInfo, row: bytes, groups: RowGroups | None) -> bytes:
    """Return the row at which a split asked for at ``row`` cuts no group: the first row of the group of ``row``.

    Raises IllegalArgument if the region begins with that group.
    """
    if groups is None:
        return row
    group = groups.group_of(row)
    if group <= parent.start:
        raise IllegalArgument(
            f"row {abbreviate(row)} is of the group {abbreviate(group)}, with which region {parent.encoded} begins, "
            f"and ROW_GROUP={groups} keeps a group in one region; choose a row of a later group"
        )
    return group


def merge_plan(left: RegionInfo, right: RegionInfo, region_id: int) -> Plan:
    """Plan a merge of two regions, given in any order.  Raises IllegalArgument unless they are neighbours."""
    if right.start < left.start:
        left, right = right, left
    check_merge(left, right)
    return Plan((left, right), (RegionInfo(left.table, region_id, left.start, right.end),))


def check_merge(left: RegionInfo, right: RegionInfo) -> None:
    if right.start < left.start:
        left, right = right, left
    if left == right:
        raise IllegalArgument(f"a region is merged with its neighbour, not with itself ({left.encoded})")
    if left.table != right.table:
        raise IllegalArgument(f"region {left.encoded} is of {left.table}, {right.encoded} of {right.table}")
    if not left.end or left.end != right.start:
        raise IllegalArgument(
            f"regions {left.encoded} and {right.encoded} are no neighbours: one ends at "
            f"{abbreviate(left.end) or 'the end'}, the other begins at {abbreviate(right.start)}"
        )


def replaced(
    regions: Sequence[RegionInfo], gone: Sequence[RegionInfo], fresh: Sequence[RegionInfo]
) -> list[RegionInfo]:
    """Return the table's regions after the change, ascending.  ``gone`` are neighbours; ``fresh`` cover their rows."""
    first = bisect_left(regions, gone[0].start, key=lambda info: info.start)
    assert tuple(regions[first : first + len(gone)]) == tuple(gone), "neighbours, ascending"
    return [*regions[:first], *fresh, *regions[first + len(gone) :]]


def hole_or_overlap(regions: Sequence[RegionInfo]) -> str | None:
    """Describe the first hole or overlap of a table's ascending regions; None if they cover all rows exactly once."""
    if not regions or regions[0].start:
        return "no region begins at the first row"
    if regions[-1].end:
        return f"no region holds the rows from {abbreviate(regions[-1].end)} on"
    for left, right in pairwise(regions):
        if left.end != right.start:
            what = "overlap" if not left.end or left.end > right.start else "leave a hole"
            return f"regions {left.encoded} and {right.encoded} {what} at {abbreviate(right.start)}"
    return None


# --- by size -------------------------------------------------------------------------------------------


def due(loads: Iterable[RegionLoad], tried: dict[int, int], free_bytes: int) -> RegionInfo | None:
    """Return the region to split next: the one furthest over its limit.  Returns None if none is due.

    ``tried``: by region id, the size at which a region could not be split; it is not due until it has grown by half.
    A split needs no disk space at first, but reclaiming space after it rewrites up to the whole region: a region is not
    due unless more than twice its size is free.
    """
    over = [
        load
        for load in loads
        if load.size_bytes > load.limit_bytes
        and load.size_bytes * 2 < free_bytes
        and load.size_bytes > tried.get(load.info.region_id, 0) * 3 // 2
    ]
    return max(over, key=lambda load: load.size_bytes / load.limit_bytes).info if over else None
