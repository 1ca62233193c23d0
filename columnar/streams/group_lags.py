"""How far groups of readers are in the changes of tables: committed positions against the ends of the regions' logs.

The lag of a group at a server is the number of records in the logs of its open regions behind the group's commits.
Records that the group does not want count, too.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from columnar.flows.position import Range
from columnar.model.flow_status import READERS, RUNNING, FlowStatus
from columnar.regions.region import Region
from columnar.streams.group_rows import GroupRows
from columnar.streams.groups import Group

LAG_COUNTED: Final = 10_000  # records of a region
LAG_READERS: Final = 1_000  # groups of one server's flows
SNAPSHOT: Final = "snapshot"  # the state of a group that still reads the rows that were there


async def local_statuses(rows: GroupRows, regions: Sequence[Region]) -> list[FlowStatus]:
    """Return the groups of the tables of these regions, with the lag in these regions alone."""
    by_table: dict[str, list[Region]] = {}
    for region in regions:
        by_table.setdefault(region.info.table, []).append(region)
    found: list[FlowStatus] = []
    for table, mine in sorted(by_table.items()):
        for name, group in await rows.groups(table):
            if len(found) < LAG_READERS:
                found.append(_status_of(table, name, group, mine))
                await asyncio.sleep(0)
    return found


def _status_of(table: str, name: str, group: Group, regions: Sequence[Region]) -> FlowStatus:
    places = [one for part in group.ranges for one in part.place]
    lag, is_whole = 0, True
    for region in regions:
        if not region.is_open:
            continue
        mine = _places_in(region, places)
        is_whole = is_whole and all(one.x is None for one in mine)
        read_to = [one.p for one in mine if one.p is not None]
        if read_to:
            lag += region.log.count_after(min(read_to), LAG_COUNTED)
    return FlowStatus(
        READERS, f"{name}@{table}", (table,), (), state=RUNNING if is_whole else SNAPSHOT, lag_changes=lag
    )  # fmt: skip


def _places_in(region: Region, places: Sequence[Range]) -> list[Range]:
    """Return the places, ascending by their first rows, that have rows of the region."""
    found: list[Range] = []
    for at, one in enumerate(places):
        stop = places[at + 1].start if at + 1 < len(places) else b""
        if (not region.info.end or one.start < region.info.end) and (not stop or stop > region.info.start):
            found.append(one)
    return found
