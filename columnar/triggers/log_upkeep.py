"""Keeps the change logs of regions in order: cursors saved, what all have passed trimmed, writers slowed.

Every SAVE_S while there is work.  Owned by the loop.

Invariants:
    I1. Cursors are saved before what they passed is trimmed, both into the region's own log: a
        crash keeps a prefix of the two, so no cursor ever stands before a trimmed record.
    I2. A record goes when every consumer has passed it and, with CHANGE_LOG, its time is over.
        Where nobody has a cursor and nobody asked for a time, everything goes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from columnar.errors import ColumnarError
from columnar.regions import change_record
from columnar.regions.change_log import TRIM_RECORDS
from columnar.regions.region import Region
from columnar.triggers.consumer import Consumer
from columnar.triggers.log_brake import NO_BRAKE, LogBounds, brake_for

_log = logging.getLogger(__name__)

SAVE_S: Final = 0.5


class LogUpkeep:
    def __init__(self, consumers_in: Callable[[Region], Sequence[Consumer]], bounds: LogBounds) -> None:
        self._consumers_in = consumers_in
        self._bounds = bounds
        self._unsaved: dict[int, Region] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._holds = 0  # who asked that cursors stand still on disk

    def hold(self) -> None:
        """No cursor is saved and nothing trimmed until ``release``; the feeder begins no call meanwhile."""
        self._holds += 1

    @property
    def is_held(self) -> bool:
        return self._holds > 0

    def release(self) -> None:
        self._holds -= 1
        for region in list(self._unsaved.values()):
            self.soon(region)

    def soon(self, region: Region) -> None:
        self._unsaved[region.info.region_id] = region
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(SAVE_S, self.save_all)

    def save_all(self) -> None:
        self._timer = None
        unsaved, self._unsaved = self._unsaved, {}
        for region in unsaved.values():
            self.save(region)

    def save(self, region: Region) -> None:
        if self._holds and not self._closed:
            self._unsaved[region.info.region_id] = region
            return
        try:
            for consumer in self._consumers_in(region):
                consumer.save()
            below = self._passed_by_all(region)
            if below is not None and region.trim_log(below) == TRIM_RECORDS:
                self.soon(region)  # there is more to trim
        except ColumnarError as error:
            _log.warning("cursors of region %s are not saved now: %s", region.info.encoded, error.text)
        self.brake(region)

    def _passed_by_all(self, region: Region) -> change_record.Sequence | None:
        """Records below it are needed by nobody (I2); None: all are needed."""
        log, keep_s = region.log, region.table.change_log_s
        consumers = self._consumers_in(region)
        if not {consumer.registration.name for consumer in consumers}.issuperset(log.cursors()):
            return None  # a trigger that is being registered has its place, but no consumer yet
        limits = [consumer.needed_from() for consumer in consumers]
        if keep_s is not None:
            log.retention.note(log.written_to, region.now_ms, keep_s)
            limits.append(log.retention.older_than(region.now_ms, keep_s))
        elif not limits:
            return log.written_to
        return None if None in limits else min(limit for limit in limits if limit is not None)

    def brake(self, region: Region) -> None:
        is_read = region.table.change_log_s is not None or self._consumers_in(region)
        brake = brake_for(region.log.records, region.log.size_bytes, self._bounds) if is_read else NO_BRAKE
        if brake.alarms and not region.log_alarmed:
            _log.warning(
                "the change log of region %s of %s is %d %% full: %d changes wait for its triggers; writers are slowed",
                region.info.encoded,
                region.info.table,
                brake.share * 100,
                region.log.records,
            )
        region.log_alarmed, region.write_delay_s, region.refuses_writes = brake.alarms, brake.delay_s, brake.refuses

    def forget(self, region: Region) -> None:
        """The region is closing."""
        if self._unsaved.get(region.info.region_id) is region:
            del self._unsaved[region.info.region_id]

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.save_all()
