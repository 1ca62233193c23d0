"""The feeds of one owner of regions: followers of their tables, as the master assigns feeds (``local_feeds``).

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from columnar.errors import NotServingRegion
from columnar.flows.delivery_state import DeliveryState
from columnar.flows.follower import Subscription, mark_beginning
from columnar.flows.follower_name import FollowerName
from columnar.flows.governed_follower import FollowerServices
from columnar.flows.governor import Governor
from columnar.flows.hub import Hub
from columnar.model.feeds import Feed, FeedSet
from columnar.model.flow_status import FEED
from columnar.regions.log.change_record import Images
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.topics.feed_batch import Part
from columnar.topics.feed_follower import OPEN_FEED_CHANGES, FeedFollower
from columnar.topics.topic_pushes import TopicPushes

NO_FEEDS: Final = FeedSet()


class FeedManager:
    def __init__(
        self,
        server: RegionServer,
        hub: Hub,
        governor: Governor,
        pushes: Callable[[], Callable[[], TopicPushes] | None],
    ) -> None:
        """``pushes`` returns None while the process has no ports yet, and then what returns its topics."""
        self._server = server
        self._hub = hub
        self._pushes = pushes
        self._services = FollowerServices(
            governor, hub.upkeep.is_intake_paused, hub.listener.step_follower, hub.upkeep.note_progress, hub.figures
        )
        self._assigned = NO_FEEDS

    # --- notifications of the master -----------------------------------------------------------------

    async def follow_feeds(self, feeds: FeedSet) -> None:
        """Follow these feeds from now on.  Call it under the hub's lock."""
        steps = feeds.steps_from(self._assigned)
        self._assigned = feeds
        for feed in steps.gone:
            self._hub.unsubscribe(_name_of(feed))
        for feed, before in steps.followed:
            if before is None or not before.is_in_use:
                await self._hub.follow(self._subscription(feed))
        for feed in steps.begun:
            await self._hub.begin_subscription(self._subscription(feed))

    async def schema_followed(self, table: str) -> None:
        """Follow the families that the table has now.  Call it under the hub's lock."""
        for feed in self._assigned.in_use():
            if feed.table == table and not feed.columns:
                await self._hub.follow_anew(self._subscription(feed))

    def _subscription(self, feed: Feed) -> Subscription:
        name = _name_of(feed)
        served = self._server.tables.find(feed.table.encode())
        images: Images = {} if served is None else feed.images(served.schema)
        return Subscription(
            name,
            feed.number,
            feed.table,
            frozenset(images),
            frozenset(),
            partial(self._follower, name, feed, images),
            images=images,
            prepare=partial(_mark, name, feed.number),
            in_order=FeedFollower.in_order,
            open_changes=OPEN_FEED_CHANGES,
        )

    def _follower(
        self, name: FollowerName, feed: Feed, images: Images, region: Region, state: DeliveryState
    ) -> FeedFollower:
        return FeedFollower(name, feed, images, region, state, self._services, self._append)

    # --- services for followers ------------------------------------------------------------------------

    def _append(self, topic: str, parts: list[Part]) -> asyncio.Future[None]:
        return asyncio.ensure_future(self._append_all(topic, parts))

    async def _append_all(self, topic: str, parts: list[Part]) -> None:
        """Append the parts one after the other: a row may be in several."""
        make = self._pushes()
        if make is None:
            raise NotServingRegion("the server is starting")
        pushes = make()
        for producer, records in parts:
            await pushes.append(topic, producer, records)

    def has_all_rows(self, name: str) -> bool:
        """Tell whether the feed has sent the rows that were there in this server's open regions."""
        return all(one.is_prepared for one in self._hub.followers.of(FollowerName(FEED, name)))


def _name_of(feed: Feed) -> FollowerName:
    return FollowerName(FEED, feed.name)


def _mark(name: FollowerName, number: int, region: Region) -> None:
    """Begin the feed's cursor at the present end of the log, unless the region has a cursor of the feed."""
    if region.log.cursors.cursor(name.key) is None:
        mark_beginning(region, name, number)
