"""The followers on the open regions of a server (``regions.hooks.ChangeListener``).

A region that opens gets a follower for each subscription of its table, and loses its followers before it closes.  In
between, the followers take a step after each durable change.

Invariants:
    I1. A cursor without a subscription is removed only if its kind says that its registration is removed.
    I2. A fault of a follower keeps neither its region nor the region's other followers from their work.  A follower
        that could not begin is missing (``Followers.miss``); its beginning is retried until the region closes.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

from columnar.errors import ColumnarError, ProgramFault
from columnar.flows.at_hand import AllAtHand
from columnar.flows.delivery_state import pause_s
from columnar.flows.follower import Follower, Subscription, mark_beginning, restored
from columnar.flows.follower_name import of_key
from columnar.flows.followers import Followers, Key
from columnar.flows.handover import Handover
from columnar.flows.kinds import Kinds
from columnar.flows.log_upkeep import LogUpkeep
from columnar.flows.region_openings import RegionOpenings
from columnar.flows.subscriptions import Subscriptions
from columnar.model.region_info import RegionInfo
from columnar.regions.hooks import ChangeListener
from columnar.regions.log import change_record
from columnar.regions.log.log_tail import LogTails
from columnar.regions.region import Region
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS, UNEXPECTED, surviving

_log = logging.getLogger(__name__)

COUNTED_AT_ONCE: Final = 10_000  # records of a log
STEP_AGAIN_S: Final = 0.1  # after a step that met an unexpected exception
LOOP: Final = "the followers of a region"


class FollowerSteps:
    """Runs the steps of followers, each planned by its timer.  A step that met a fault is retried later (I2)."""

    def __init__(self, followers: Followers, upkeep: LogUpkeep) -> None:
        self._followers = followers
        self._upkeep = upkeep
        self._timers: dict[Follower, asyncio.TimerHandle] = {}

    def step_follower(self, follower: Follower) -> None:
        """Run the follower's next step now, unless its region is paused."""
        self.end_step(follower)
        if not self._followers.has(follower) or self._followers.is_paused(follower.region.info.region_id):
            return
        try:
            after_s = follower.step()
        except UNEXPECTED as fault:
            after_s = self._failed(follower, fault)
        else:
            FAULTS.went_well(LOOP)
        if after_s is not None:
            self._timers[follower] = asyncio.get_running_loop().call_later(after_s, self._step_again, follower)
        if follower.dirty:
            self._upkeep.soon(follower.region)

    def _failed(self, follower: Follower, fault: BaseException) -> float:
        """Report the fault; return the pause until the follower retries.  The region's other followers continue."""
        FAULTS.met(LOOP, fault)
        follower.state.note_error(ProgramFault(fault).wire_message)
        return STEP_AGAIN_S

    def _step_again(self, follower: Follower) -> None:
        try:
            self.step_follower(follower)
        except UNEXPECTED as fault:  # raised by the work before or after the step
            self.plan_again(follower, fault)

    def plan_again(self, follower: Follower, fault: BaseException) -> None:
        """Report a fault of the follower, and plan its next step after a pause."""
        after_s = self._failed(follower, fault)
        if (planned := self._timers.pop(follower, None)) is not None:
            planned.cancel()
        self._timers[follower] = asyncio.get_running_loop().call_later(after_s, self._step_again, follower)

    def end_step(self, follower: Follower) -> None:
        """Cancel the follower's next step."""
        timer = self._timers.pop(follower, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()


class LogReaders(Protocol):
    """Readers of change logs that keep their positions outside of the store: ``streams.local_changes``."""

    def changes_durable(self, region: Region) -> None: ...

    def region_closing(self, region: Region) -> None: ...

    def regions_replaced(self, gone: Iterable[int]) -> None: ...


class RegionFollowers(ChangeListener):
    def __init__(
        self,
        kinds: Kinds,
        subscriptions: Subscriptions,
        followers: Followers,
        upkeep: LogUpkeep,
        openings: RegionOpenings,
        background: Background,
        tails_bytes: int,
        at_hand_bytes: int,
    ) -> None:
        self._kinds = kinds
        self._subscriptions = subscriptions
        self._followers = followers
        self._upkeep = upkeep
        self._openings = openings
        self._background = background
        self._handover = Handover(followers, upkeep)
        self._tails = LogTails(tails_bytes)
        self._all_at_hand = AllAtHand(at_hand_bytes)
        self._steps = FollowerSteps(followers, upkeep)
        self.readers: LogReaders | None = None  # readers of logs without cursors, once there are any
        self._tries: dict[Key, asyncio.TimerHandle] = {}  # next tries to begin missing followers
        self.lock = asyncio.Lock()  # while it is held no subscription of a table begins or ends

    @property
    def changes_bytes(self) -> int:
        """The bytes of changes in memory, for followers."""
        return self._tails.size_bytes + self._all_at_hand.size_bytes

    # --- followers -----------------------------------------------------------------------------------

    def _follow(self, subscription: Subscription, region: Region) -> None:
        follower = self._followers.find((subscription.name, region.info.region_id))
        if follower is None:
            if subscription.prepare is not None:
                subscription.prepare(region)
            follower = subscription.follow(region, restored(region, subscription))
            follower.at_hand.share(self._all_at_hand)
            region.log.begin_tail(self._tails)  # ``drop`` ends the tail; so it begins only if the follower does
            self._followers.add_follower(follower)
        self.step_follower(follower)
        self._miss_no_more((subscription.name, region.info.region_id))

    def begin_follower(self, subscription: Subscription, region: Region, tries: int = 1) -> None:
        """Begin a follower on the region, if it has none; retry after a growing pause if that fails (I2)."""
        key = (subscription.name, region.info.region_id)
        self._miss_no_more(key)
        try:
            self._follow(subscription, region)
        except Exception as fault:  # noqa: BLE001 - after any fault the region serves and its other followers continue
            is_expected, after_s = isinstance(fault, ColumnarError), pause_s(tries)
            cause = fault.text if isinstance(fault, ColumnarError) else repr(fault)
            why = f"{subscription.name} cannot follow region {region.info.encoded}: {cause}"
            _log.error("%s; it tries again in %.1f s", why, after_s, exc_info=None if is_expected else fault)
            self._followers.miss(subscription.name, region, why)
            loop = asyncio.get_running_loop()
            self._tries[key] = loop.call_later(after_s, self._begin_again, subscription, region, tries + 1)

    def _begin_again(self, subscription: Subscription, region: Region, tries: int) -> None:
        key = (subscription.name, region.info.region_id)
        try:
            is_there = any(one is subscription for one in self._subscriptions.of_table(subscription.table))
            if is_there and region.is_open:
                self.begin_follower(subscription, region, tries)
            else:
                self._miss_no_more(key)
        except UNEXPECTED as fault:
            FAULTS.met(LOOP, fault)
            loop = asyncio.get_running_loop()
            self._tries[key] = loop.call_later(pause_s(tries), self._begin_again, subscription, region, tries + 1)

    def _miss_no_more(self, key: Key) -> None:
        self._followers.miss_no_more(key)
        timer = self._tries.pop(key, None)
        if timer is not None:
            timer.cancel()

    def drop(self, follower: Follower) -> None:
        if self._followers.has(follower):
            self._followers.discard(follower)
            if not self._followers.in_region(follower.region):
                follower.region.log.end_tail()
            self._steps.end_step(follower)
            follower.dropped()
            follower.at_hand.clear()
            self._followers.notify(follower.key)

    def step_follower(self, follower: Follower) -> None:
        """Run the follower's next step now, unless its region is paused."""
        self._steps.step_follower(follower)

    def close(self) -> None:
        self._steps.close()
        for timer in self._tries.values():
            timer.cancel()
        self._upkeep.close()

    # --- regions.hooks.ChangeListener ------------------------------------------------------------------

    def region_opened(self, region: Region) -> None:
        """Begin the region's followers, and count its log in the background.  No fault of a follower is raised (I2)."""
        self._forget_removed(region)
        for beginning in self._subscriptions.beginning(region.info.table):
            self._mark(beginning, region)
        for subscription in self._subscriptions.of_table(region.info.table):
            self.begin_follower(subscription, region)
        try:
            self._upkeep.opened(region)
        except ColumnarError as error:
            _log.warning("the log of region %s counts as needed until it is saved: %s", region.info.encoded, error.text)
        self._background.spawn(self._count_inherited(region))

    def _forget_removed(self, region: Region) -> None:
        """Drop the cursors of followers that were removed while the region was closed."""
        try:
            for name in map(of_key, region.log.cursors.cursor_names()):
                if self._kinds.is_removed(region, name):
                    self._kinds.forget_follower(region, name)
        except ColumnarError as error:
            _log.warning(
                "removed followers keep a place in region %s until it opens again: %s", region.info.encoded, error.text
            )

    def _mark(self, beginning: Subscription, region: Region) -> None:
        """Write a cursor for a subscription that is beginning while the region opens."""
        try:
            if region.log.cursors.number_of(beginning.name.key) == beginning.number:
                return
            self._kinds.forget_follower(region, beginning.name)
            mark_beginning(region, beginning.name, beginning.number)
        except ColumnarError as error:
            what = f"{beginning.name} begins with all that the log of region {region.info.encoded} has"
            _log.warning("%s: %s", what, error.text)

    async def _count_inherited(self, region: Region) -> None:
        """Count the records left by earlier openings, in steps, because backpressure must know their number."""
        more, failures = True, 0
        try:
            while more and region.is_open:
                try:
                    more = region.log.counts.count_step(COUNTED_AT_ONCE)
                except ColumnarError:
                    raise
                except Exception as fault:  # noqa: BLE001 - uncounted records would slow no writer
                    failures += 1
                    FAULTS.met(LOOP, fault)
                await asyncio.sleep(pause_s(failures) if failures else 0)
        finally:
            if region.is_open:
                self._upkeep.slow_writers(region)
                self._upkeep.soon(region)

    def changes_durable(self, region: Region) -> None:
        for follower in list(self._followers.in_region(region)):
            try:
                follower.lag.note_durable()
                self.step_follower(follower)
            except UNEXPECTED as fault:  # I2
                self._steps.plan_again(follower, fault)
        with surviving(LOOP):  # the writes are acknowledged, and the next group's must be, whatever is raised here
            self._upkeep.slow_writers(region)
            if self.readers is not None:
                self.readers.changes_durable(region)
        self._upkeep.soon(region)

    def may_close(self, region: Region) -> bool:
        is_whole = not self._followers.missing_at(region.info.region_id)
        return is_whole and all(follower.is_idle for follower in self._followers.in_region(region))

    def region_closing(self, region: Region) -> None:
        if not self.may_close(region):
            self._openings.open_later(region.info)
        self.region_leaving(region)

    def region_leaving(self, region: Region) -> None:
        self._upkeep.save(region)
        self._upkeep.forget_region(region)
        for key in self._followers.missing_at(region.info.region_id):
            self._miss_no_more(key)
        for follower in list(self._followers.in_region(region)):
            self.drop(follower)
        if self.readers is not None:
            with surviving(LOOP):
                self.readers.region_closing(region)

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        async with self.lock:
            yield

    async def quiesce_region(self, region: Region, patience_s: float) -> str:
        return await self._handover.quiesce_region(region, patience_s)

    def release(self, region: Region) -> None:
        self._followers.let_go(region.info.region_id)
        for follower in list(self._followers.in_region(region)):
            self.step_follower(follower)

    async def merge_obstacle(self, region: Region, patience_s: float) -> str:
        return await self._handover.merge_obstacle(region, patience_s)

    def merged_cursors(self, regions: Sequence[Region], read_to: change_record.Sequence) -> dict[str, bytes]:
        return self._handover.merged_cursors(regions, read_to)

    def regions_replaced(self, gone: Sequence[Region], fresh: Sequence[RegionInfo]) -> None:
        self._handover.regions_replaced(gone, fresh)
        if self.readers is not None:
            self.readers.regions_replaced([region.info.region_id for region in gone])
