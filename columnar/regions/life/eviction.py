"""Eviction: closes regions if more regions are open than the bound allows.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import islice
from random import Random
from typing import Final, Protocol

from columnar.limits import FLUSHED_AT_ONCE
from columnar.regions.life.hosting import Hosting
from columnar.regions.life.region_state import Event, State
from columnar.regions.region import Region

MOST_CANDIDATES: Final = 16  # of each half, at one opening; regions that may not be closed are passed over


class Chance(Protocol):
    """The part of ``random.Random`` that ``to_close`` needs."""

    def sample(self, population: list[int], k: int) -> list[int]: ...


def to_close(by_use: Collection[int], surplus: int, rng: Chance) -> Iterator[int]:
    """Choose the regions to close if more regions are open than the bound allows.

        older half      least recently used; random regions of this half are closed
        younger half    closed only if no region of the older half may be closed, least recently used first

    The least recently used region would be the wrong choice for clients that cycle through more regions than may be
    open, as all clients do after a server has died: that region is the one that is wanted next, so every request would
    open a region.  With the random choice some 4 of 10 requests find their region open while a quarter more regions are
    in use than may be open.  Regions in constant use are in the younger half and stay open.

    ``by_use`` has the least recently used region first; its last region stays open.

    The caller closes ``surplus`` of the yielded regions and skips regions that may not be closed.  O(open regions),
    some 10 us per thousand.
    """
    older = list(islice(by_use, len(by_use) // 2))
    count = surplus + MOST_CANDIDATES
    yield from rng.sample(older, min(count, len(older)))
    last = min(len(older) + count, len(by_use) - 1)
    yield from list(islice(by_use, len(older), max(last, len(older))))


class Eviction:
    def __init__(self, hosting: Hosting, bound: int, is_idle: Callable[[Region], bool]) -> None:
        """``bound`` is the most regions that may be open.

        ``is_idle`` tells whether every follower has read the region's log.
        """
        self._hosting = hosting
        self._open = hosting.serving  # by region id, least used first
        self._bound = bound
        self._is_idle = is_idle
        self._flushing: dict[int, asyncio.Future[None]] = {}  # over the bound: being flushed, then closed
        self._chance = Random(1)  # seeded: the same requests close the same regions

    @property
    def has_room(self) -> bool:
        """Whether one more region may be open without closing another."""
        return len(self._open) < self._bound

    def close_surplus(self) -> None:
        """Close as many regions as are open above the bound; ``to_close`` chooses them.

        Clean regions are closed at once.  A flush waits for the disk, so up to FLUSHED_AT_ONCE other regions are
        flushed in a thread first.
        """
        surplus = len(self._open) - self._bound - len(self._flushing)
        if surplus <= 0:
            return
        for region_id in list(to_close(self._open, surplus, self._chance)):
            region = self._open[region_id]
            if not self.may_evict(region) or not self._is_idle(region):
                continue
            if region.store.files.is_clean or len(self._flushing) >= FLUSHED_AT_ONCE:
                self.evict(region)
            else:
                is_idle = partial(self._is_idle, region)  # a change may be logged while it is flushed
                self._flushing[region_id] = closing = asyncio.ensure_future(self._hosting.close(region, is_idle))
                closing.add_done_callback(partial(self._was_flushed, region_id))
            surplus -= 1
            if surplus == 0:
                return

    def _was_flushed(self, region_id: int, _closing: asyncio.Future[None]) -> None:
        del self._flushing[region_id]

    def may_evict(self, region: Region) -> bool:
        may_close = self._hosting.state_of(region) in (State.OPEN, State.READ_ONLY)
        may_close = may_close and region.info.region_id not in self._flushing
        return may_close and not region.work.running and region.syncs.is_quiet and not self._hosting.is_awaited(region)

    def evict(self, region: Region) -> None:
        """Close a quiet region; the next request opens it again."""
        self._hosting.report_event(region, Event.EVICTED)
