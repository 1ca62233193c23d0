"""Add and drop feeds (``derivation_changes``).  Owned by the loop.

    add     ADDING on disk -> every owner logs images for the feed and marks where it begins -> RUNNING on disk ->
            owners follow
    drop    one write of the catalogue -> owners end the feed's followers

Knows nothing of topics: a feed whose topic is not there waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from columnar.errors import DamagedData, FeedError, IllegalArgument, TableNotEnabled, TableNotFound
from columnar.master.catalogue import Catalogue
from columnar.master.derivation_changes import DerivationChanges
from columnar.master.trigger_changes import TriggerChanges
from columnar.model import region_messages as messages
from columnar.model.derivations import check_bounded
from columnar.model.feeds import FEEDS, Feed, FeedSet, check_table, checked, from_json
from columnar.model.flow_graph import Flow
from columnar.model.region_messages import Peer
from columnar.model.schema import SYSTEM_NAMESPACE, namespace_of

_log = logging.getLogger(__name__)


class FeedChanges(DerivationChanges[FeedSet]):
    def __init__(self, catalogue: Catalogue, owner: Peer, triggers: TriggerChanges) -> None:
        super().__init__(catalogue, owner, triggers.lock)
        triggers.checks.add_flows(self._flows)

    @property
    def derivations(self) -> FeedSet:
        return self._catalogue.derivations.feeds

    def publication(self) -> messages.PublishFeeds:
        return messages.PublishFeeds(self.derivations)

    async def publish(self) -> None:
        if self.derivations.were_any:
            await super().publish()

    async def forget_derivations(self, names: Sequence[str]) -> None:
        await self._catalogue.derivations.write_derivations(self.derivations.without(names))
        await self.publish()

    def _flows(self) -> list[Flow]:
        return [one.flow for one in self.derivations.usable()]

    async def add_feed(self, definition: bytes) -> None:
        """Add a feed; if the very same feed exists, nothing changes.

        Returns when the feed is on disk, and every later change is logged for it.
        """
        try:
            feed = checked(from_json(definition))
        except DamagedData as error:
            raise IllegalArgument(error.text) from None
        async with self.lock:
            await self.settle()
            existing = self.derivations.find(feed.name)
            if existing is not None:
                if existing.is_same(feed) and not existing.unusable_reason:
                    return
                drop = f"columnar feed drop {feed.name}"
                raise IllegalArgument(f"feed {feed.name} exists with another definition; drop it first ({drop})")
            if len(self.derivations.all) >= FEEDS:
                raise IllegalArgument(f"there are {FEEDS} feeds, as many as a store has: drop some")
            self._check_table(feed)
            await self._catalogue.derivations.write_derivations(self.derivations.adding(feed))
            await self.take_up([feed.name], "running")
        _log.info("feed %s writes the changes of table %s into topic %s", feed.name, feed.table, feed.topic)

    def _check_table(self, feed: Feed) -> None:
        entry = self._catalogue.tables.get(feed.table)
        if entry is None:
            raise TableNotFound(feed.table)
        if namespace_of(feed.table) == SYSTEM_NAMESPACE:
            raise IllegalArgument(f"{feed.table} is a table of the system; a feed is of a table of yours")
        if not entry.enabled:
            raise TableNotEnabled(feed.table)
        check_table(feed, entry.schema)
        whole = [family for family, qualifiers in feed.images(entry.schema).items() if qualifiers is None]
        check_bounded(entry.schema, whole, f"feed {feed.name}")

    async def drop_feed(self, name: str) -> None:
        """Drop the feed; what it has written stays in the topic.  Raises FeedError if there is none of the name."""
        async with self.lock:
            await self.settle()
            if self.derivations.find(name) is None:
                raise FeedError(f"there is no feed {name}; columnar feed list shows those there are")
            await self.forget_derivations([name])
        _log.info("feed %s dropped", name)
