"""Triggers while regions are split and merged: brought to rest, carried over, and waits for them handed on.

What a region's consumers had delivered is in their cursors before its successors are made; what they had
not is still to be delivered by exactly one successor, the one that holds the row.  Invariants:
    I1. While a region is held nothing of it is in flight: no successor repeats what its parent had under way.
    I2. The cursor of a merged region has read everything before its first own sequence; what either parent
        had still to deliver is among its open changes, in the order of the rows.
    I3. A wait for a region that goes becomes a wait for those in its place, for the same changes.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

from columnar.flows.delivery_state import OPEN_CHANGES, Cursor, pack_cursor
from columnar.model.region_info import RegionInfo
from columnar.regions import change_record
from columnar.regions.region import Region
from columnar.triggers.consumer import Consumer
from columnar.triggers.feeder import Feeder, Key

CARRIED_CHANGES: Final = OPEN_CHANGES // 4  # of one trigger in one region: they become open ones of the merged


class Handover:
    def __init__(self, feeder: Feeder) -> None:
        self._feeder = feeder

    # --- regions.hooks.ChangeListener ----------------------------------------------------------------

    async def hold(self, region: Region, patience_s: float) -> str:
        """Returns when nothing of the region is in flight and its cursors are saved; else says what is."""
        feeder, region_id = self._feeder, region.info.region_id
        feeder.hold(region_id)

        def is_at_rest() -> bool:
            return not any(consumer.state.in_flight_count for consumer in feeder.consumers_at(region_id))

        if not await self._until(is_at_rest, self._keys(region), patience_s):
            busy = next(c for c in feeder.consumers_at(region_id) if c.state.in_flight_count)
            return f"trigger {busy.registration.name} has been running for {patience_s:g} s"
        feeder.upkeep.save(region)
        return ""

    def release(self, region: Region) -> None:
        self._feeder.let_go(region.info.region_id)

    async def merge_obstacle(self, region: Region, patience_s: float) -> str:
        feeder, region_id = self._feeder, region.info.region_id
        if any(consumer.needs_backfill for consumer in feeder.consumers_at(region_id)):
            return "a trigger has not yet seen all of its rows; wait with columnar trigger wait"
        kept = region.log.cursor_names() - {c.registration.name for c in feeder.consumers_at(region_id)}
        if kept:
            return f"{min(kept)} has a place in its log and no registration that can be read; remove the trigger"

        def is_short() -> bool:
            return all(consumer.lag_changes <= CARRIED_CHANGES for consumer in feeder.consumers_at(region_id))

        if not await self._until(is_short, self._keys(region), patience_s):
            return "a trigger is far behind; columnar trigger list shows which"
        return ""

    def merged_cursors(self, regions: Sequence[Region], read_to: change_record.Sequence) -> dict[str, bytes]:
        opened: dict[str, list[tuple[change_record.Sequence, int]]] = {}
        for region in regions:
            for consumer in self._feeder.consumers_in(region):
                opened.setdefault(consumer.registration.name, []).extend(still_open(consumer))
        return {name: pack_cursor(Cursor(read_to, tuple(sorted(changes)))) for name, changes in opened.items()}

    def regions_replaced(self, gone: Sequence[Region], fresh: Sequence[RegionInfo]) -> None:
        old = frozenset(region.info.region_id for region in gone)
        self._feeder.replaced(old, [info.region_id for info in fresh])

    # --- waiting -------------------------------------------------------------------------------------

    def waiting_for(self, name: str, sequence: change_record.Sequence) -> list[Consumer]:
        """The consumers that may still have to deliver the change; of all triggers for an empty name.

        Where its region has been split or merged these are the ones whose log has it still.
        """
        consumers: Iterable[Consumer] = self._feeder.consumers_at(sequence.origin)
        if not consumers:
            consumers = [c for c in self._feeder.consumers_of(name) if _inherited(c.region, sequence)]
        return [consumer for consumer in consumers if not name or consumer.registration.name == name]

    def _keys(self, region: Region) -> list[Key]:
        return [(c.registration.name, region.info.region_id) for c in self._feeder.consumers_in(region)]

    async def _until(self, condition: Callable[[], bool], keys: Sequence[Key], patience_s: float) -> bool:
        """Looks again at each progress of ``keys``."""
        if condition():
            return True
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def look(_: Key) -> None:
            if not done.done() and condition():
                done.set_result(None)

        unwatch = self._feeder.watch(keys, look)
        try:
            await asyncio.wait_for(done, patience_s)
        except TimeoutError:
            return condition()
        finally:
            unwatch()
        return True


def still_open(consumer: Consumer) -> list[tuple[change_record.Sequence, int]]:
    """Everything that the consumer has still to deliver, with the attempts it had; the log is on disk to its end."""
    state = consumer.state
    unread = consumer.region.log.read(state.read_to)
    fresh = [(sequence, 0) for sequence, record in islice(unread, OPEN_CHANGES) if consumer.is_mine(record)]
    return [*state.cursor().open, *fresh]


def _inherited(region: Region, sequence: change_record.Sequence) -> bool:
    record = region.log.record_at(sequence)
    return record is not None and region.info.holds(record.row)
