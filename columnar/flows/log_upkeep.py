"""Upkeep of change logs: saves cursors, trims records that all followers have passed, and slows writers.

Runs every SAVE_S while there is work, and after STEP_PAUSE_S if there is more to trim than one step takes.  Since there
are many regions, SAVED_AT_ONCE of them are processed per loop iteration.  Owned by the loop.

Invariants:
    I1. Cursors are saved before the records that they passed are trimmed, both by writes to the region's store.  A
        crash keeps a prefix of these writes, so no cursor ever stands before a trimmed record.
    I2. A record is removed when every promising follower (``Kind.promises``) has passed it and, with CHANGE_LOG, its
        time is over or more than CHANGE_LOG_BYTES are stored.  It stays longer for followers that promise nothing, but
        within CHANGE_LOG_BYTES and ``LogBounds.size_bytes``.
    I3. Writers are slowed for records that a promising follower still needs, never for records that are only kept.
    I4. A cursor without a follower counts like its follower, which may be starting, or be unreadable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sized
from itertools import islice
from typing import Final

from columnar.errors import ColumnarError, DamagedData
from columnar.flows.backpressure import NO_BACKPRESSURE, LogBounds, backpressure_of
from columnar.flows.delivery_cursor import needed_from
from columnar.flows.follower import Follower
from columnar.flows.follower_name import FollowerName, of_key
from columnar.flows.followers import Followers
from columnar.regions.log import change_record
from columnar.regions.log.change_log import TRIM_RECORDS
from columnar.regions.region import Region
from columnar.runtime.faults import FAULTS, UNEXPECTED
from columnar.runtime.planned_step import PlannedStep

_FIRST: Final = change_record.Sequence(0, 0, 0)
_log = logging.getLogger(__name__)

LOOP: Final = "the upkeep of change logs"
SAVE_S: Final = 0.5
SAVED_AT_ONCE: Final = 16  # regions, some 50 us each
STEP_PAUSE_S: Final = 0.05  # after a step of TRIM_RECORDS, some 10 ms of the loop


class LogUpkeep:
    def __init__(
        self,
        followers: Followers,
        promises: Callable[[FollowerName], bool],
        bounds: LogBounds,
    ) -> None:
        self._followers = followers
        self._promises = promises
        self._bounds = bounds
        self._unsaved: dict[int, Region] = {}
        self._timer = PlannedStep(LOOP, self.save_all)
        self._round: dict[int, Region] = {}  # regions of the last timer that are not processed yet
        self._next = PlannedStep(LOOP, self._save_some)
        self._closed = False
        self._saving_pauses = 0  # callers that want cursors unchanged on disk

    def pause_saving(self) -> None:
        """Save no cursor and trim no log until ``release``; no delivery begins meanwhile."""
        self._saving_pauses += 1

    @property
    def is_saving_paused(self) -> bool:
        return self._saving_pauses > 0

    def is_intake_paused(self, follower: Follower) -> bool:
        """Return whether no change of the follower's region may be taken up now."""
        return self.is_saving_paused or self._followers.is_paused(follower.region.info.region_id)

    def note_progress(self, follower: Follower) -> None:
        """Save the follower's cursor soon if it has moved, and notify callers that wait for it."""
        if follower.dirty:
            self.soon(follower.region)
        self._followers.notify(follower.key)

    def release(self) -> None:
        self._saving_pauses -= 1
        for region in list(self._unsaved.values()):
            self.soon(region)

    def soon(self, region: Region) -> None:
        self._unsaved[region.info.region_id] = region
        if not self._closed:
            self._timer.after(SAVE_S)

    def _trim_later(self, region: Region) -> None:
        """Plan to trim the rest after the other regions were processed."""
        self._unsaved[region.info.region_id] = region
        self._timer.cancel()
        if not self._closed:
            self._timer.after(STEP_PAUSE_S)

    def save_all(self) -> None:
        """Save all cursors in steps, between which other work of the loop runs."""
        self._round |= self._unsaved
        self._unsaved = {}
        if not self._next.is_planned:
            self._save_some()

    def _save_some(self) -> None:
        self._save_next(SAVED_AT_ONCE)
        if self._round:
            self._next.soon()

    def _save_next(self, most: int) -> None:
        for region_id in list(islice(self._round, most)):
            region = self._round.pop(region_id)
            try:
                self.save(region)
            except UNEXPECTED as fault:  # the other regions are saved, and this region with the next round
                FAULTS.met(LOOP, fault)
                self.soon(region)
            else:
                FAULTS.went_well(LOOP)

    def save(self, region: Region) -> None:
        if self._saving_pauses and not self._closed:
            self._unsaved[region.info.region_id] = region
            return
        try:
            for follower in self._followers.in_region(region):
                follower.save()
            if self._trim(region):
                self._trim_later(region)
        except ColumnarError as error:
            _log.warning("cursors of region %s are not saved now: %s", region.info.encoded, error.text)
        self.slow_writers(region)

    def _trim(self, region: Region) -> bool:
        """Trim one step of records (I2); return whether there is more to trim."""
        log, keep_s = region.log, region.table.change_log_s
        if keep_s is not None:
            if not log.retention.times():
                log.retention.vouch(log.written_to, region.now_ms, keep_s)
            log.retention.note(log.written_to, region.now_ms, keep_s)
        needs = self._needs(region)
        passed = self._passed(region, needs)
        if passed is None:
            return False
        waiting = self._waiting_for(region)
        if keep_s is None:
            log.retention.forget_marks()
            if waiting is None:
                return region.logging.trim(passed, region.now_ms) == TRIM_RECORDS
        more = self._keep(region, needs, passed)
        old = passed if keep_s is None else log.retention.older_than(region.now_ms, keep_s)
        if old is not None and waiting is not None:
            old = min(old, waiting)
        most_bytes = min(region.table.change_log_bytes, self._bounds.size_bytes)
        return region.logging.trim_kept(passed, old, most_bytes, region.now_ms) == TRIM_RECORDS or more

    def opened(self, region: Region) -> None:
        """Set which part of a newly opened region's log followers need, before the log is counted."""
        needs = self._needs(region)
        passed = self._passed(region, needs)
        is_kept = region.table.change_log_s is not None or self._waiting_for(region) is not None
        if passed is not None and is_kept:
            self._keep(region, needs, passed)

    def _needs(self, region: Region) -> dict[FollowerName, change_record.Sequence | None]:
        """Return the oldest record that each promising follower, or cursor without one (I4), may still read.

        None means that it may read all records.
        """
        found = {one.name: one.needed_from() for one in self._followers.in_region(region) if self._promises(one.name)}
        return found | {name: _needed_by_cursor(region, name) for name in self._without(region)}

    def _without(self, region: Region) -> list[FollowerName]:
        """Return the promising names that have a cursor but no follower here, or whose follower is missing."""
        cursors = region.log.cursors.cursor_names()
        keys = cursors.difference(one.name.key for one in self._followers.in_region(region))
        missing = [name for name, _ in self._followers.missing_at(region.info.region_id) if name.key not in cursors]
        return [name for name in (*map(of_key, keys), *missing) if self._promises(name)]

    def _passed(
        self, region: Region, needs: Mapping[FollowerName, change_record.Sequence | None]
    ) -> change_record.Sequence | None:
        """Return the sequence below which no follower needs records; None if all records are needed."""
        limits = [need for need in needs.values() if need is not None]
        if len(limits) < len(needs):
            return None
        return min(limits, default=region.log.written_to)

    def _waiting_for(self, region: Region) -> change_record.Sequence | None:
        """Return the oldest record that a follower which promises nothing may still read; None if there is none."""
        found = [one.needed_from() for one in self._followers.in_region(region) if not self._promises(one.name)]
        keys = region.log.cursors.cursor_names().difference(one.name.key for one in self._followers.in_region(region))
        if keys:
            found += [_needed_by_cursor(region, one) for one in map(of_key, keys) if not self._promises(one)]
        return min((one or _FIRST for one in found), default=None)

    def _keep(self, region: Region, needs: Sized, passed: change_record.Sequence) -> bool:
        if needs:
            return region.log.keep(passed)
        region.log.keep_all()
        return False

    def slow_writers(self, region: Region) -> None:
        """Slow the region's writers as far as its log is full of records still needed (``backpressure``)."""
        followers = self._followers.in_region(region)
        is_needed = any(self._promises(one.name) for one in followers) or bool(self._without(region))
        pressure = backpressure_of(*region.log.counts.needed, self._bounds) if is_needed else NO_BACKPRESSURE
        was_alarmed = bool(region.log_obstacle)
        region.write_delay_s, region.refuses_writes = pressure.delay_s, pressure.refuses
        region.log_obstacle = self._obstacle(region) if pressure.alarms else ""
        if pressure.alarms and not was_alarmed:
            _log.warning(
                "the change log of region %s of %s is %d %% full, writers are slowed: %s",
                region.info.encoded,
                region.info.table,
                pressure.share * 100,
                region.log_obstacle,
            )

    def _obstacle(self, region: Region) -> str:
        """Name the follower that lags most, the reason, and what to do."""
        needs = self._needs(region)
        name = min(needs, key=lambda name: needs[name] or _FIRST)
        follower = self._followers.find((name, region.info.region_id))
        missing = self._followers.missing_at(region.info.region_id).get((name, region.info.region_id))
        if missing is not None:
            return missing.why
        if follower is None:
            return f"{name} has a place in it and no registration that can be read; remove it"
        return follower.obstacle()

    def forget_region(self, region: Region) -> None:
        """Forget a region that is closing."""
        for regions in (self._unsaved, self._round):
            if regions.get(region.info.region_id) is region:
                del regions[region.info.region_id]

    def close(self) -> None:
        self._closed = True
        self._timer.cancel()
        self._next.cancel()
        self._round |= self._unsaved
        self._unsaved = {}
        self._save_next(len(self._round))


def _needed_by_cursor(region: Region, name: FollowerName) -> change_record.Sequence | None:
    """Return the oldest record that the cursor may need; None (all records) if it is unreadable or missing (I4)."""
    try:
        return needed_from(region.log.cursors.cursor(name.key) or b"")
    except DamagedData:
        return None
