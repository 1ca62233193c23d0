"""The feeds of a process, whose modules are loaded when its master first sends a feed.

A store without feeds knows that it has none, and forgets the cursors of dropped feeds.  Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from columnar.flows.follower import Kind
from columnar.flows.governor import Governor
from columnar.flows.hub import Hub
from columnar.model.feeds import FeedSet
from columnar.model.flow_graph import Flow
from columnar.model.flow_status import FEED, RUNNING
from columnar.regions.server import RegionServer

if TYPE_CHECKING:
    from columnar.topics.feed_manager import FeedManager
    from columnar.topics.topic_pushes import TopicPushes

SNAPSHOT = "snapshot"  # the state of a feed that sends the rows that were there


class LocalFeeds:
    def __init__(self, server: RegionServer, hub: Hub, governor: Governor) -> None:
        self._server = server
        self._hub = hub
        self._governor = governor
        self._assigned: FeedSet | None = None  # None: the master has not sent any yet
        self._manager: FeedManager | None = None
        self.pushes: Callable[[], TopicPushes] | None = None  # None: the ports are not there yet
        hub.register(
            Kind(
                FEED,
                False,
                self._is_removed,
                flows=self._flows,
                stands=self._stands,
                named=lambda name: self.feeds.named(name),
                awaited=self._awaited_tables,
            )
        )

    @property
    def feeds(self) -> FeedSet:
        return self._assigned if self._assigned is not None else FeedSet()

    async def follow_feeds(self, feeds: FeedSet) -> None:
        """Follow these feeds from now on (``PublishFeeds``)."""
        async with self._hub.lock:
            self._assigned = feeds
            if feeds.all and self._manager is None:
                from columnar.topics.feed_manager import FeedManager  # most stores have no feeds

                self._manager = FeedManager(self._server, self._hub, self._governor, lambda: self.pushes)
            if self._manager is not None:
                await self._manager.follow_feeds(feeds)

    async def schema_followed(self, table: str) -> None:
        """Have the feeds of the table follow its families."""
        if self._manager is not None:
            async with self._hub.lock:
                await self._manager.schema_followed(table)

    def _is_removed(self, name: str, number: int) -> bool:
        return self._assigned is not None and self._assigned.is_removed(name, number)

    def _flows(self) -> list[Flow]:
        return [one.flow for one in self.feeds.in_use()]

    def _stands(self, name: str) -> tuple[str, int]:
        is_whole = self._manager is None or self._manager.has_all_rows(name)
        return (RUNNING if is_whole else SNAPSHOT), 0

    def _awaited_tables(self, name: str) -> list[str]:
        """Return the table of the feed.  Raises FeedError."""
        return [self.feeds.known(name).table]
