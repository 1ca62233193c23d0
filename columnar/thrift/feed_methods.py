"""Our methods on feeds: changes go to the master, the list is what this server follows.  Loaded at first use."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from columnar.errors import IllegalArgument
from columnar.model.feeds import list_to_json

if TYPE_CHECKING:
    from columnar.master.feed_changes import FeedChanges  # a server of a cluster has no master within
    from columnar.topics.local_feeds import LocalFeeds


class FeedChangeMethods:
    """The methods on feeds that the master serves."""

    def __init__(self, changes: FeedChanges) -> None:
        self._changes = changes

    def columnarFeedAdd(self, _ctx: Any, definition: bytes) -> Awaitable[None]:
        if not definition:
            raise IllegalArgument("columnarFeedAdd needs a definition, as JSON")
        return self._changes.add_feed(definition)

    def columnarFeedDrop(self, _ctx: Any, name: str) -> Awaitable[None]:
        return self._changes.drop_feed(name or "")


class FeedMethods(FeedChangeMethods):
    def __init__(self, changes: FeedChanges, local: LocalFeeds) -> None:
        super().__init__(changes)
        self._local = local

    def columnarFeeds(self, _ctx: Any) -> bytes:
        return list_to_json(self._local.feeds)
