"""The followers of open regions, by name and by region; notifies callers of their progress.  Owned by the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from columnar.flows.follower import Follower
from columnar.flows.follower_name import FollowerName
from columnar.regions.region import Region

Key = tuple[FollowerName, int]  # name and region id
RegionWatcher = Callable[[frozenset[int], Sequence[int]], None]  # ids of replaced regions, ids of their successors


@dataclass(frozen=True, slots=True)
class Missing:
    """An open region on which a subscription has no follower for now, because a fault kept it from beginning."""

    region: Region
    why: str


class Followers:
    def __init__(self) -> None:
        self._by_name: dict[FollowerName, dict[int, Follower]] = {}  # by region id
        self._by_region: dict[int, list[Follower]] = {}
        self._missing: dict[Key, Missing] = {}
        self._paused_regions: set[int] = set()  # about to be replaced: none of their changes is taken for delivery
        self._watchers: dict[Key, list[Callable[[Key], None]]] = {}
        self._region_watchers: list[RegionWatcher] = []

    def add_follower(self, follower: Follower) -> None:
        name, region_id = follower.key
        self._by_name.setdefault(name, {})[region_id] = follower
        self._by_region.setdefault(region_id, []).append(follower)

    def discard(self, follower: Follower) -> None:
        """Remove a follower.  Raises KeyError or ValueError if it was not added."""
        name, region_id = follower.key
        self._by_region[region_id].remove(follower)
        if not self._by_region[region_id]:
            del self._by_region[region_id]
        del self._by_name[name][region_id]
        if not self._by_name[name]:
            del self._by_name[name]

    # --- status --------------------------------------------------------------------------------------

    def find(self, key: Key) -> Follower | None:
        return self._by_name.get(key[0], {}).get(key[1])

    def has(self, follower: Follower) -> bool:
        return self.find(follower.key) is follower

    def of(self, name: FollowerName) -> list[Follower]:
        """Return the followers called ``name`` on all open regions; with an empty name, all followers of the kind."""
        if name.name:
            return list(self._by_name.get(name, {}).values())
        return [
            one
            for follower_name, by_region in self._by_name.items()
            if follower_name.kind == name.kind
            for one in by_region.values()
        ]

    def in_region(self, region: Region) -> Sequence[Follower]:
        return self._by_region.get(region.info.region_id, ())

    def at(self, region_id: int) -> Sequence[Follower]:
        return self._by_region.get(region_id, ())

    # --- missing followers -----------------------------------------------------------------------------

    def miss(self, name: FollowerName, region: Region, why: str) -> None:
        """Note a missing follower until ``miss_no_more``: waits do not end before it begins; its status has ``why``."""
        self._missing[name, region.info.region_id] = Missing(region, why)

    def miss_no_more(self, key: Key) -> None:
        self._missing.pop(key, None)

    def missing(self, name: FollowerName) -> dict[Key, Missing]:
        """Return the missing followers called ``name`` on all open regions; with an empty name, all of the kind."""
        return {
            key: one
            for key, one in self._missing.items()
            if key[0] == name or (not name.name and key[0].kind == name.kind)
        }

    def missing_at(self, region_id: int) -> dict[Key, Missing]:
        return {key: one for key, one in self._missing.items() if key[1] == region_id}

    # --- regions that are replaced ---------------------------------------------------------------------

    def pause_region(self, region_id: int) -> None:
        self._paused_regions.add(region_id)

    def let_go(self, region_id: int) -> None:
        self._paused_regions.discard(region_id)

    def is_paused(self, region_id: int) -> bool:
        return region_id in self._paused_regions

    def replaced(self, gone: frozenset[int], fresh: Sequence[int]) -> None:
        """Note that regions ``fresh`` have replaced regions ``gone``, whose followers are dropped."""
        self._paused_regions -= gone
        for watcher in list(self._region_watchers):
            watcher(gone, fresh)

    # --- progress --------------------------------------------------------------------------------------

    def notify(self, key: Key) -> None:
        """Notify the watchers that the follower has made progress, or is dropped."""
        for watcher in list(self._watchers.get(key, ())):
            watcher(key)

    def watch(self, keys: Sequence[Key], watcher: Callable[[Key], None]) -> Callable[[], None]:
        """Call ``watcher`` after each progress of one of ``keys``, until the returned function is called."""
        for key in keys:
            self._watchers.setdefault(key, []).append(watcher)
        return partial(self._unwatch, keys, watcher)

    def watch_regions(self, watcher: RegionWatcher) -> Callable[[], None]:
        """Call ``watcher`` when regions are replaced, until the returned function is called."""
        self._region_watchers.append(watcher)
        return partial(self._region_watchers.remove, watcher)

    def _unwatch(self, keys: Sequence[Key], watcher: Callable[[Key], None]) -> None:
        for key in keys:
            self._watchers[key].remove(watcher)
            if not self._watchers[key]:
                del self._watchers[key]
