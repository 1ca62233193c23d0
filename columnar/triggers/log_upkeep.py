"""Keeps the change logs of regions in order: cursors saved, what all have passed trimmed, writers slowed.

Every SAVE_S while there is work, and at once again where there is more to trim than one step takes.  Owned by the
loop.

Invariants:
    I1. Cursors are saved before what they passed is trimmed, both into the region's own log: a
        crash keeps a prefix of the two, so no cursor ever stands before a trimmed record.
    I2. A record goes when every consumer has passed it and, with CHANGE_LOG, its time is over or more than
        CHANGE_LOG_BYTES are there.  Where nobody has a cursor and nobody asked for a time, everything goes.
    I3. Writers are slowed for what a consumer still needs, never for what is only kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from columnar.errors import ColumnarError
from columnar.flows.delivery_state import needed_from
from columnar.regions import change_record
from columnar.regions.change_log import TRIM_RECORDS
from columnar.regions.region import Region
from columnar.triggers.consumer import Consumer
from columnar.triggers.log_brake import NO_BRAKE, LogBounds, brake_for

_FIRST: Final = change_record.Sequence(0, 0, 0)
_log = logging.getLogger(__name__)

SAVE_S: Final = 0.5
STEP_PAUSE_S: Final = 0.05  # after a step of TRIM_RECORDS, some 10 ms of the loop


class LogUpkeep:
    def __init__(
        self,
        consumers_in: Callable[[Region], Sequence[Consumer]],
        is_paused: Callable[[str], bool],
        bounds: LogBounds,
    ) -> None:
        self._consumers_in = consumers_in
        self._is_paused = is_paused
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

    def _go_on(self, region: Region) -> None:
        """There is more to trim: after others had their turn."""
        self._unsaved[region.info.region_id] = region
        if self._timer is not None:
            self._timer.cancel()
        if not self._closed:
            self._timer = asyncio.get_running_loop().call_later(STEP_PAUSE_S, self.save_all)

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
            if self._trim(region):
                self._go_on(region)
        except ColumnarError as error:
            _log.warning("cursors of region %s are not saved now: %s", region.info.encoded, error.text)
        self.brake(region)

    def _trim(self, region: Region) -> bool:
        """One step (I2); True: there is more to do."""
        log, keep_s = region.log, region.table.change_log_s
        if keep_s is not None:
            log.retention.note(log.written_to, region.now_ms, keep_s)
        passed = self._passed_by_all(region)
        if passed is None:
            return False
        if keep_s is None:
            return region.trim_log(passed) == TRIM_RECORDS
        more = self._keep(region, passed)
        old = log.retention.older_than(region.now_ms, keep_s)
        return region.trim_kept_log(old) == TRIM_RECORDS or more

    def _keep(self, region: Region, passed: change_record.Sequence) -> bool:
        if region.log.cursor_names():
            return region.log.keep(passed)
        region.log.keep_all()
        return False

    def _passed_by_all(self, region: Region) -> change_record.Sequence | None:
        """Records below it are needed by no consumer; None: all are needed."""
        limits = [consumer.needed_from() for consumer in self._consumers_in(region)]
        limits += [needed_from(state) for state in self._kept(region).values()]
        if not limits:
            return region.log.written_to
        return None if None in limits else min(limit for limit in limits if limit is not None)

    def _kept(self, region: Region) -> dict[str, bytes]:
        """Cursors that are followed by nobody: their trigger is being registered, or its registration is unreadable."""
        names = {consumer.registration.name for consumer in self._consumers_in(region)}
        return {name: region.log.cursors()[name] for name in region.log.cursor_names() - names}

    def opened(self, region: Region) -> None:
        """Before its log is counted: what of it consumers need."""
        passed = self._passed_by_all(region)
        if passed is not None and region.table.change_log_s is not None:
            self._keep(region, passed)

    def brake(self, region: Region) -> None:
        is_needed = bool(region.log.cursor_names() or self._consumers_in(region))
        brake = brake_for(*region.log.needed, self._bounds) if is_needed else NO_BRAKE
        was_alarmed = bool(region.log_obstacle)
        region.write_delay_s, region.refuses_writes = brake.delay_s, brake.refuses
        region.log_obstacle = self._obstacle(region) if brake.alarms else ""
        if brake.alarms and not was_alarmed:
            _log.warning(
                "the change log of region %s of %s is %d %% full, writers are slowed: %s",
                region.info.encoded,
                region.info.table,
                brake.share * 100,
                region.log_obstacle,
            )

    def _obstacle(self, region: Region) -> str:
        """Which trigger is farthest behind, why, and what to do."""
        needs = {consumer.registration.name: consumer.needed_from() for consumer in self._consumers_in(region)}
        needs |= {name: needed_from(state) for name, state in self._kept(region).items()}
        name = min(needs, key=lambda name: needs[name] or _FIRST)
        consumer = next((one for one in self._consumers_in(region) if one.registration.name == name), None)
        if consumer is None:
            return f"trigger {name} has a place in it and no registration that can be read; remove the trigger"
        error = consumer.state.last_error.strip()
        failed = f" (its last error: {error.rpartition(chr(10))[2]})" if error and consumer.state.open_count else ""
        if self._is_paused(name):
            return f"trigger {name} is paused{failed}; columnar trigger resume {name}, or remove it"
        return f"trigger {name} is behind{failed}; try again later"

    def forget(self, region: Region) -> None:
        """The region is closing."""
        if self._unsaved.get(region.info.region_id) is region:
            del self._unsaved[region.info.region_id]

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.save_all()
