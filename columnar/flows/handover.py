"""Handover of followers when regions are split and merged: followers quiesce, and successors take over.

A region's followers save their progress in their cursors before the region's successors are made.  Each remaining
change is delivered by exactly one successor, which holds the change's row.  Invariants:
    I1. While a region is paused none of its changes is in flight, so no successor repeats a delivery that its parent
        had begun.
    I2. The cursor of a merged region has read everything before the region's first own sequence.  Each change that a
        parent had still to deliver is open in this cursor; the changes of a row keep their order.
    I3. A wait for a replaced region becomes a wait for the same changes in its successors.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from columnar.flows.delivery_cursor import Cursor, Progress, pack_cursor
from columnar.flows.delivery_state import OPEN_CHANGES
from columnar.flows.follower import Follower
from columnar.flows.follower_name import FollowerName, of_key
from columnar.flows.followers import Followers, Key
from columnar.flows.log_upkeep import LogUpkeep
from columnar.model.region_info import RegionInfo
from columnar.regions.log import change_record
from columnar.regions.region import Region

CARRIED_CHANGES: Final = OPEN_CHANGES // 4  # of one follower in one region: they become open in the merged region


class Handover:
    def __init__(self, followers: Followers, upkeep: LogUpkeep) -> None:
        self._followers = followers
        self._upkeep = upkeep

    async def quiesce_region(self, region: Region, patience_s: float) -> str:
        """Return an empty text when no change of the region is in flight and its cursors are saved.

        If changes are still in flight after ``patience_s``, return a text that names their follower.
        """
        region_id = region.info.region_id
        self._followers.pause_region(region_id)
        for follower in self._followers.at(region_id):
            follower.pause_intake()

        def is_region_quiescent() -> bool:
            return all(follower.is_quiescent for follower in self._followers.at(region_id))

        if not await self._until(is_region_quiescent, self._keys(region), patience_s):
            busy = next(one for one in self._followers.at(region_id) if not one.is_quiescent)
            return f"{busy.name} has been running for {patience_s:g} s"
        self._upkeep.save(region)
        return ""

    async def merge_obstacle(self, region: Region, patience_s: float) -> str:
        region_id = region.info.region_id
        found = self._followers.at(region_id)
        unprepared = next((one for one in found if not one.is_prepared), None)
        if unprepared is not None:
            return f"{unprepared.name} has not yet seen all of its rows; columnar {unprepared.name.kind} list shows it"
        missing = next(iter(self._followers.missing_at(region_id).values()), None)
        if missing is not None:
            return missing.why
        without = region.log.cursors.cursor_names() - {follower.name.key for follower in found}
        if without:
            return f"{of_key(min(without))} has a place in its log and no registration that can be read; remove it"

        def is_short() -> bool:
            return all(follower.lag.changes <= CARRIED_CHANGES for follower in self._followers.at(region_id))

        if not await self._until(is_short, self._keys(region), patience_s):
            return "a trigger is far behind; columnar trigger list shows which"
        return ""

    def merged_cursors(self, regions: Sequence[Region], read_to: change_record.Sequence) -> dict[str, bytes]:
        opened: dict[FollowerName, list[tuple[change_record.Sequence, int]]] = {}
        progress: dict[FollowerName, list[Progress]] = {}
        due: dict[FollowerName, list[tuple[change_record.Sequence, int]]] = {}
        by_name: dict[FollowerName, list[Follower]] = {}
        for region in regions:
            for follower in self._followers.in_region(region):
                by_name.setdefault(follower.name, []).append(follower)
                opened.setdefault(follower.name, []).extend(follower.still_open(OPEN_CHANGES))
                cursor = follower.state.cursor()
                progress.setdefault(follower.name, []).extend(cursor.progress)
                due.setdefault(follower.name, []).extend(cursor.due)
        return {
            name.key: pack_cursor(
                Cursor(
                    read_to,
                    tuple(sorted(changes)),
                    tuple(sorted(progress[name])),
                    by_name[name][0].carried(by_name[name], read_to.origin),
                    tuple(sorted(due[name])),
                )
            )
            for name, changes in opened.items()
        }

    def regions_replaced(self, gone: Sequence[Region], fresh: Sequence[RegionInfo]) -> None:
        old = frozenset(region.info.region_id for region in gone)
        self._followers.replaced(old, [info.region_id for info in fresh])

    def _keys(self, region: Region) -> list[Key]:
        return [follower.key for follower in self._followers.in_region(region)]

    async def _until(self, condition: Callable[[], bool], keys: Sequence[Key], patience_s: float) -> bool:
        """Wait until ``condition`` holds, checked at each progress of ``keys``; return False after ``patience_s``."""
        if condition():
            return True
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def on_progress(_: Key) -> None:
            if not done.done() and condition():
                done.set_result(None)

        unwatch = self._followers.watch(keys, on_progress)
        try:
            await asyncio.wait_for(done, patience_s)
        except TimeoutError:
            return condition()
        finally:
            unwatch()
        return True
