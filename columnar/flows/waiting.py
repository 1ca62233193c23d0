"""Waits until followers have passed given points of their logs.

The cost of a wait depends on the progress of its own followers alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from columnar.errors import IllegalArgument
from columnar.flows.follower import Follower
from columnar.flows.follower_name import FollowerName
from columnar.flows.followers import Followers, Key
from columnar.flows.region_openings import RegionOpenings
from columnar.flows.subscriptions import Subscriptions
from columnar.regions.log import change_record
from columnar.regions.region import Region
from columnar.regions.server import RegionServer

HasPassed = Callable[[Follower], bool]


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
        """Wait until the change ``token`` (empty: every change written so far) is delivered; return False on timeout.

        An empty name stands for all followers of its kind.  Rows of a backfill that are not logged yet count as
        written.
        """
        deadline = time.monotonic() + timeout_s
        if token:
            sequence = checked_token(token)
            await self._server.hosting.all_there(timeout_s)
            if not self._followers.at(sequence.origin):
                await self._openings.settled(deadline - time.monotonic(), sequence.origin)
            targets = self._targets_of(name, sequence)
        else:
            is_there = await self._server.hosting.all_there(timeout_s)
            if not is_there or not await self._openings.settled(deadline - time.monotonic()):
                return False
            preparing = [task for one in self._followers.of(name) if (task := one.preparing()) is not None]
            if preparing:
                await asyncio.wait(preparing, timeout=max(0.0, deadline - time.monotonic()))
            targets = self._targets(name)
        left_s = max(0.0, deadline - time.monotonic())
        return await until_passed(self._followers, targets, self._subscriptions.__contains__, left_s)

    def _targets_of(self, name: FollowerName, sequence: change_record.Sequence) -> dict[Key, HasPassed]:
        """Return the followers that may still have to deliver the change.

        After a split or merge of the change's region these are the followers whose log still has the change.
        """
        found: Sequence[Follower] = self._followers.at(sequence.origin)
        if found:
            found = [one for one in found if one.name.kind == name.kind and name.name in ("", one.name.name)]
        else:
            found = [one for one in self._followers.of(name) if _inherited(one.region, sequence)]
        missing = (key for key in self._followers.missing(name) if key[1] == sequence.origin)
        return dict.fromkeys([*(one.key for one in found), *missing], lambda follower: follower.has_delivered(sequence))

    def _targets(self, name: FollowerName) -> dict[Key, HasPassed]:
        targets: dict[Key, HasPassed] = {}
        for follower in self._followers.of(name):
            follower.region.syncs.sync_async_writes()
            targets[follower.key] = partial(_has_passed, follower.region.log.last_to_wait_for)
        for key, missing in self._followers.missing(name).items():
            missing.region.syncs.sync_async_writes()
            targets[key] = partial(_has_passed, missing.region.log.last_to_wait_for)
        return targets


def _has_passed(target: change_record.Sequence, follower: Follower) -> bool:
    return follower.has_passed(target)


def _inherited(region: Region, sequence: change_record.Sequence) -> bool:
    record = region.log.record_at(sequence)
    return record is not None and region.info.contains_row(record.row)


async def until_passed(
    followers: Followers, targets: Mapping[Key, HasPassed], is_known: Callable[[FollowerName], bool], timeout_s: float
) -> bool:
    """Wait until each follower has passed its target, or its registration is removed; return False on timeout.

    A follower whose region is closed for the moment has not passed: it will return, or successors will replace it.
    """

    wanted = {key: [has_passed] for key, has_passed in targets.items()}  # several per key if regions were merged

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


def checked_token(token: str) -> change_record.Sequence:
    """Decode the sequence that a client wants to wait for.  Raises IllegalArgument if it is no sequence."""
    try:
        return change_record.parse_token(token)
    except ValueError:
        raise IllegalArgument(f"'{token[:40]}' is no sequence of ours") from None
