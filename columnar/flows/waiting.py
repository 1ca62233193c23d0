"""Waits until followers have passed given points of their logs.

The cost of a wait depends on the progress of its own followers alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from columnar.errors import IllegalArgument
from columnar.flows.follower import Follower
from columnar.flows.follower_name import FollowerName
from columnar.flows.followers import Followers, Key
from columnar.flows.region_openings import RegionOpenings
from columnar.flows.subscriptions import Subscriptions
from columnar.regions.log import change_record
from columnar.regions.log.change_record import SequenceRange
from columnar.regions.region import Region
from columnar.regions.server import RegionServer

HasPassed = Callable[[Follower], bool]
Targets = dict[Key, list[HasPassed]]
AWAITED_TOKENS: Final = 1_000  # of one wait, each of a different region
AWAITED_BYTES: Final = 128 * 1024  # of one wait's tokens, which are parsed in one step of the loop, in some 40 ms
STEP_S: Final = 0.005  # of looking up tokens, between which the loop serves others


class Waits:
    """Waits for deliveries of a server's followers.  Owned by the loop."""

    def __init__(
        self, server: RegionServer, followers: Followers, subscriptions: Subscriptions, openings: RegionOpenings
    ) -> None:
        self._server = server
        self._followers = followers
        self._subscriptions = subscriptions
        self._openings = openings

    async def wait(self, name: FollowerName, token: str, timeout_s: float) -> bool:
        """Wait until the changes of ``token`` (empty: all written so far) are delivered; return False on timeout.

        ``token`` may be several, joined by commas.  An empty name stands for all followers of its kind.  Rows of a
        backfill that are not logged yet count as written.
        """
        deadline = time.monotonic() + timeout_s
        is_there = await self._server.hosting.all_there(timeout_s)
        if token:
            found = await self._targets_of_all(name, checked_tokens(token), deadline, is_there=is_there)
            if found is None:
                return False
            targets = found
        else:
            if not is_there or not await self._openings.settled(deadline - time.monotonic()):
                return False
            preparing = [task for one in self._followers.of(name) if (task := one.preparing()) is not None]
            if preparing:
                await asyncio.wait(preparing, timeout=max(0.0, deadline - time.monotonic()))
            targets = self._targets(name)
        left_s = max(0.0, deadline - time.monotonic())
        return await until_passed(self._followers, targets, self._subscriptions.__contains__, left_s)

    def written_tables(self, token: str) -> set[str] | None:
        """Return the tables of the changes of ``token``; None if it is empty, or of a region that has been replaced."""
        origins = {changes.last.origin for changes in checked_tokens(token)} if token else set()
        regions = [info for served in self._server.tables.all() for info in served.regions]
        found = {info.region_id: info.table for info in regions if info.region_id in origins}
        return set(found.values()) if origins and len(found) == len(origins) else None

    async def _targets_of_all(
        self, name: FollowerName, tokens: Sequence[SequenceRange], deadline: float, *, is_there: bool
    ) -> Targets | None:
        """Return the followers to wait for; None if at the deadline regions that may have them were not open."""
        targets: Targets = {}
        step_ends = time.monotonic() + STEP_S
        for changes in tokens:
            origin = changes.last.origin
            if not self._followers.at(origin):
                heirs = self._later_regions(name, origin)
                if heirs and not (is_there and await self._openings.settled(deadline - time.monotonic(), heirs)):
                    return None
            for key, has_passed in self._targets_of(name, changes).items():
                targets.setdefault(key, []).append(has_passed)
            if time.monotonic() >= step_ends:
                await asyncio.sleep(0)
                step_ends = time.monotonic() + STEP_S
        return targets

    def _later_regions(self, name: FollowerName, origin: int) -> set[int]:
        """Return the ids of the region ``origin`` and of those that may have replaced it, in the follower's tables."""
        tables = [self._server.tables.find(table.encode()) for table in self._subscriptions.tables_of(name)]
        return {info.region_id for table in tables if table for info in table.regions if info.region_id >= origin}

    def _targets_of(self, name: FollowerName, changes: SequenceRange) -> dict[Key, HasPassed]:
        """Return the followers that may still have to deliver some of the changes.

        After a split or merge of the changes' region these are the followers whose log still has one of them.  Raises
        IllegalArgument if the store was restored, and only had the changes before.
        """
        origin = changes.last.origin
        found: Sequence[Follower] = self._followers.at(origin)
        _check_history([one.region for one in found or self._followers.of(name)], changes)
        if found:
            found = [one for one in found if one.name.kind == name.kind and name.name in ("", one.name.name)]
        else:
            found = [one for one in self._followers.of(name) if _inherited(one.region, changes)]
        missing = (
            key
            for key, one in self._followers.missing(name).items()
            if key[1] == origin or _inherited(one.region, changes)
        )
        return dict.fromkeys([*(one.key for one in found), *missing], lambda follower: follower.has_delivered(changes))

    def _targets(self, name: FollowerName) -> Targets:
        targets: Targets = {}
        for follower in self._followers.of(name):
            follower.region.syncs.sync_async_writes()
            targets[follower.key] = [partial(_has_passed, follower.region.log.last_to_wait_for)]
        for key, missing in self._followers.missing(name).items():
            missing.region.syncs.sync_async_writes()
            targets[key] = [partial(_has_passed, missing.region.log.last_to_wait_for)]
        return targets


def _has_passed(target: change_record.Sequence, follower: Follower) -> bool:
    return follower.has_passed(target)


def _check_history(regions: Iterable[Region], changes: SequenceRange) -> None:
    if any(region.log.is_lost(one) for region in regions for one in {*changes}):
        raise IllegalArgument(
            f"change {changes.token} is not of this store's history: the store was restored from a copy, and lacks "
            "what was written after the copy; begin a new session"
        )


def _inherited(region: Region, changes: SequenceRange) -> bool:
    """Return whether the region's log has some of the changes of an earlier region, perhaps to rows of the region."""
    first, last = changes
    if region.info.region_id <= first.origin:
        return False
    if first == last:
        record = region.log.record_at(first)
        return record is not None and region.info.contains_row(record.row)
    return region.log.first_from(first) <= last


async def until_passed(
    followers: Followers,
    targets: Mapping[Key, Sequence[HasPassed]],
    is_known: Callable[[FollowerName], bool],
    timeout_s: float,
) -> bool:
    """Wait until each follower has passed its targets, or its registration is removed; return False on timeout.

    A follower whose region is closed for the moment has not passed: it will return, or successors will replace it.
    """

    wanted = {key: list(has_passed) for key, has_passed in targets.items()}  # also of regions that were merged

    def is_done(key: Key) -> bool:
        follower = followers.find(key)
        if follower is None:
            return not is_known(key[0])
        return all(has_passed(follower) for has_passed in wanted[key])

    missing = {key for key in wanted if not is_done(key)}
    if not missing:
        return True
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    unwatch: list[Callable[[], None]] = []

    def on_progress(key: Key) -> None:
        if key in missing and is_done(key):
            missing.discard(key)
        if not missing and not done.done():
            done.set_result(None)

    def replaced(gone: frozenset[int], fresh: Sequence[int]) -> None:
        """Turn each wait for a replaced region into a wait for each of its successors."""
        heirs: set[Key] = set()
        for key in [key for key in missing if key[1] in gone]:
            missing.discard(key)
            for region_id in fresh:
                heir = (key[0], region_id)
                wanted.setdefault(heir, []).extend(wanted[key])
                heirs.add(heir)
        missing.update(heirs)
        unwatch.append(followers.watch(tuple(heirs), on_progress))
        for heir in heirs:
            on_progress(heir)

    unwatch += [followers.watch(tuple(missing), on_progress), followers.watch_regions(replaced)]
    try:
        await asyncio.wait_for(done, timeout_s)
        return True
    except TimeoutError:
        return False
    finally:
        for end in unwatch:
            end()


def checked_tokens(token: str) -> list[SequenceRange]:
    """Decode the tokens that a client wants to wait for.  Raises IllegalArgument if they are no sequences."""
    if len(token) > AWAITED_BYTES:
        raise IllegalArgument(
            f"tokens of {len(token)} characters: a wait takes at most {AWAITED_BYTES}; name each region's first and "
            "last change, as a session does"
        )
    try:
        found = change_record.parse_tokens(token)
    except ValueError:
        raise IllegalArgument(f"'{token[:40]}' is no sequence of ours") from None
    if len(found) > AWAITED_TOKENS:
        raise IllegalArgument(f"{len(found)} tokens of different regions: a wait takes at most {AWAITED_TOKENS}")
    return found
