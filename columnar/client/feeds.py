"""Feeds by a client: have the changes of a table written into a topic, list feeds, drop them.

connection.feeds.add("pages", topic="pages.changes", partitions=4)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from columnar.client.errors import StoreIllegalArgument, StoreIOError, WrongArgument, wrong_arguments
from columnar.model import flow_status
from columnar.model.feeds import DEBEZIUM_JSON, Feed, checked, list_from_json, to_json
from columnar.model.flow_status import FEED, FlowStatus

if TYPE_CHECKING:
    from columnar.client.connection import Connection


@dataclass(frozen=True, slots=True)
class FeedStatus:
    feed: Feed
    state: str  # adding, running, snapshot (sends the rows that were there), unusable
    lag_changes: int = 0
    lag_seconds: float = 0.0
    rate_per_s: float = 0.0
    delivered: int = 0  # changes and rows, since the servers started
    error: str = ""  # why it stands still, or what it met last
    silent_servers: tuple[str, ...] = ()  # these did not answer

    @property
    def name(self) -> str:
        return self.feed.name


class Feeds:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self,
        table: str,
        topic: str,
        *,
        name: str = "",
        format: str = DEBEZIUM_JSON,
        columns: Sequence[str] = (),
        values: Sequence[str] = (),
        start: str = "now",
        partitions: int = 0,
    ) -> bool:
        """Write each change of the table into the topic from now on; return whether the topic was made for it.

        ``name`` is that of the topic if it is not given.  ``columns`` are families or ``family:qualifier``, ``values``
        the forms of values (docs/topics.md).  With ``start="beginning"`` the rows that are there come first.  A topic
        that is missing is made with ``partitions``; without them this raises IllegalArgument.

        Adding an identical feed changes nothing; a different one under the same name raises IllegalArgument.
        """
        with wrong_arguments():
            feed = checked(Feed(name or topic, table, topic, format, tuple(columns), tuple(values), start))
        is_there = any(one.name == topic for one in self._connection.topics.list())
        if not is_there and not partitions:
            raise WrongArgument(f"there is no topic {topic}: give partitions (--partitions N), and it is made")
        is_made = not is_there and self._connection.topics.create(topic, partitions)
        try:
            self._connection.call("columnarFeedAdd", to_json(feed))
        except (StoreIllegalArgument, StoreIOError):
            if is_made:
                self._connection.topics.drop_topic(topic)
            raise
        return is_made

    def drop(self, name: str) -> None:
        """Drop the feed; its records stay in the topic.  Raises IllegalArgument if there is none of the name."""
        self._connection.call("columnarFeedDrop", name)

    def list(self) -> Sequence[FeedStatus]:
        """Return all feeds, by name."""
        feeds = list_from_json(self._connection.call("columnarFeeds"))
        if not feeds:
            return []
        flows, silent = flow_status.from_json(self._connection.flows())
        known = {one.name: one for one in flows if one.kind == FEED}
        return [_status_of(feed, known.get(feed.name), tuple(silent)) for feed in feeds]


def _status_of(feed: Feed, flow: FlowStatus | None, silent: tuple[str, ...]) -> FeedStatus:
    if feed.unusable_reason:
        return FeedStatus(feed, "unusable", error=feed.unusable_reason)
    if flow is None:
        return FeedStatus(feed, feed.state, silent_servers=silent)
    return FeedStatus(
        feed, flow.state, flow.lag_changes, flow.lag_seconds, flow.rate_per_s, flow.delivered, flow.error, silent
    )  # fmt: skip
