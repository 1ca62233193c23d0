"""Requests of clients to a master, and the splits and merges that its planner has decided.

    request     passed to ``ClusterState.add_request``; returns when the state answers it
    split, merge    requests of clients; the planner begins them when the regions are free
    begin       the planner begins a change (a split or merge): ``master.region_changes`` carries it out in its turn in
                the queue, and reports its commit here.  A change fails if its owner dies before the change ends, or
                if its regions had no owner meanwhile

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Coroutine
from typing import Any

from columnar.errors import CallerError, ColumnarError, NotServingRegion
from columnar.master import instructions as do
from columnar.master.region_changes import RegionChanges
from columnar.master.requests import GONE, regions_of
from columnar.model.owner import Incarnation, Owner
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionChange
from columnar.roles.hosted_tables import HostedTables
from columnar.roles.state_events import StateEvents

_log = logging.getLogger(__name__)


class ClusterRequests:
    """Requests and changes in progress; also the ``Owners`` of ``master.region_changes``."""

    def __init__(self, events: StateEvents, tables: HostedTables) -> None:
        self._events = events
        self._tables = tables
        self._state = events.state
        self._region_changes: RegionChanges | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[tuple[int, ...], asyncio.Future[None]]] = {}  # by request: its regions
        self._failures: dict[int, Exception] = {}  # failures of splits and merges, by region
        # Changes that were begun, bounded by the planner's throttle, and wait for their turn in the queue; by regions.
        self._queued_changes: dict[tuple[int, ...], tuple[do.Split | do.Merge, list[RegionInfo]]] = {}
        self._is_change_running = False
        self._made: dict[int, tuple[RegionInfo, ...]] = {}  # new regions, by region split or merged for a client

    def lead(self, changes: RegionChanges) -> None:
        self._region_changes = changes
        changes.owners = self

    # --- requests ------------------------------------------------------------------------------------

    async def request(self, request: do.Request) -> None:
        """Make the request; returns when it is done.

        Raises CallerError, NotServingRegion, or any error that a split or merge met.
        """
        if self._events.is_over:
            raise NotServingRegion("the store is stopping; try again")
        number = next(self._numbers)
        done = asyncio.get_running_loop().create_future()
        self._waiting[number] = (regions_of(request), done)
        try:
            self._events.event(self._state.add_request(number, request, self._events.now_ms()))
            await done
        except BaseException:
            for region in self._waiting[number][0]:  # results of other requests are kept
                if not any(region in regions for one, (regions, _) in self._waiting.items() if one != number):
                    self._made.pop(region, None)
            raise
        finally:
            del self._waiting[number]

    def answered(self, answer: do.Answer) -> None:
        regions, future = self._waiting.get(answer.request, ((), None))
        if future is None or future.done():
            return
        if answer.error is None:
            future.set_result(None)
            return
        failure = next((self._failures[one] for one in regions if one in self._failures), None)
        if failure is None:
            failure = NotServingRegion(GONE) if answer.error == GONE else CallerError(answer.error)
        future.set_exception(failure)
        future.exception()  # marks it as retrieved, because the requesting client may have disconnected

    def stop(self) -> None:
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(NotServingRegion("the store is stopping; try again"))
                future.exception()  # marks it as retrieved, because the requesting client may have disconnected

    async def split(self, parent: RegionInfo, row: bytes | None) -> list[RegionInfo]:
        """Split as ``RegionChanges.split`` does, once the planner begins the split."""
        await self.request(do.SplitRegion(parent.region_id, row))
        return list(self._made.pop(parent.region_id, ()))

    async def merge(self, one: RegionInfo, other: RegionInfo) -> RegionInfo:
        """Merge as ``RegionChanges.merge`` does, after both regions were moved to the same server."""
        if other.start < one.start:
            one, other = other, one
        await self.request(do.MergeRegions(one.region_id, other.region_id))
        self._made.pop(other.region_id, None)
        return self._made.pop(one.region_id)[0]

    # --- splits and merges that the planner has begun ------------------------------------------------

    def begin_change(self, change: do.Split | do.Merge) -> None:
        regions = (change.region,) if isinstance(change, do.Split) else change.regions
        self._queued_changes[regions] = (change, [self._state.current.places[region].info for region in regions])
        self._start_next_change()

    def _start_next_change(self) -> None:
        if self._is_change_running or not self._queued_changes or self._events.is_over:
            return
        assert self._region_changes is not None, "changes are led"
        regions = next(iter(self._queued_changes))
        change, infos = self._queued_changes.pop(regions)
        if isinstance(change, do.Split):
            work: Coroutine[Any, Any, Any] = self._region_changes.split(infos[0], change.row)
        else:
            work = self._region_changes.merge(infos[0], infos[1])
        self._is_change_running = True
        self._events.spawn(self._carry_out(regions, work))

    def owner_ended(self, server: Incarnation) -> None:
        """Fail the queued changes of the server's regions, which get a new owner now."""
        places = self._state.current.places
        for regions in list(self._queued_changes):
            found = [places[region].owner for region in regions if region in places]
            if any(owner is not None and owner.server == server for owner in found):
                del self._queued_changes[regions]
                self._failed(regions, NotServingRegion(f"server {server} died: nothing was changed; try again"))

    async def _carry_out(self, regions: tuple[int, ...], work: Coroutine[Any, Any, Any]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the requesting client gets the error, and the old regions serve on
            self._failed(regions, error)
        finally:
            self._is_change_running = False
            self._start_next_change()

    def _failed(self, regions: tuple[int, ...], error: Exception) -> None:
        text = error.text if isinstance(error, ColumnarError) else f"{type(error).__name__}: {error}"
        _log.warning("regions %s are not split or merged: %s", regions, text)
        if regions[0] not in self._state.current.places:
            return  # the change is committed nevertheless
        self._failures |= dict.fromkeys(regions, error)
        self._events.event(self._state.tables.change_failed(regions, text, self._events.now_ms()))
        for region in regions:
            self._failures.pop(region, None)

    def epoch_of(self, region: RegionInfo) -> int:
        """Return the epoch of the region's owner.  Raises NotServingRegion if the region no longer exists."""
        place = self._state.current.places.get(region.region_id)
        if place is None or place.owner is None:
            raise NotServingRegion(f"region {region.encoded} was dropped, split or merged meanwhile")
        return place.owner.epoch

    def successor_owner(self, region: RegionInfo) -> Owner | None:
        """Return the owner of the region's successors, or None.

        Raises NotServingRegion if the region no longer exists.
        """
        self.epoch_of(region)
        return self._state.tables.successor_owner(region.region_id)

    def committed(self, change: RegionChange) -> None:
        """Note that the catalogue has the change.  Publishes routes first, because requests wait for them."""
        row = self.successor_owner(change.gone[0])
        assert row is not None, "it has an owner"
        gone = [info.region_id for info in change.gone]
        if any(set(gone) & set(regions) for regions, _ in self._waiting.values()):
            self._made |= dict.fromkeys(gone, change.fresh)
        self._tables.replaced(change.gone[0].table, change.fresh, row)
        self._events.event(self._state.tables.changed(gone, change.fresh, self._events.now_ms()))
