"""The messages of a feed on one region: of changes from its log, and of rows as they are.  Owned by the loop."""

from __future__ import annotations

from typing import Final

from columnar.errors import DamagedData
from columnar.model.debezium import ChangeImages, Debezium, forms_of
from columnar.model.feeds import Feed
from columnar.model.read import Projection, ReadSpec
from columnar.regions.log.change_record import ChangeRecord, Images, Kind, Sequence
from columnar.regions.read.row_reader import RowCursor, visible_cells
from columnar.regions.region import Region
from columnar.regions.write.images import images_of
from columnar.storage.layout import range_start
from columnar.topics.feed_batch import FeedBatch
from columnar.topics.feed_progress import FeedProgress

FEED_ROWS: Final = 64  # of a piece, read at once: some 3 ms


class FeedMessages:
    def __init__(self, feed: Feed, images: Images, region: Region) -> None:
        self._feed = feed
        self._images = images
        self._region = region
        self._debezium = Debezium(feed.table, forms_of(feed.values))
        families = [
            (family, None if columns is None else tuple(sorted(columns)))
            for family, columns in sorted(images.items())
            if family in region.views
        ]
        self._spec = ReadSpec(Projection(tuple(families)))

    def make_batch(self, before: FeedProgress) -> FeedBatch:
        return FeedBatch(self._feed.number, self._region.info.region_id, before)

    def touches(self, record: ChangeRecord) -> bool:
        """Return whether the change touched a column of the feed."""
        for entry in record.entries:
            qualifiers = self._images.get(entry.family, frozenset())
            if qualifiers is None or entry.qualifier in qualifiers:
                return True
            if qualifiers and entry.kind == Kind.DELETE_FAMILY:
                return True
        return False

    def add_change(self, batch: FeedBatch, sequence: Sequence, record: ChangeRecord) -> None:
        """Add the messages of a change to the batch.

        Raises DamagedData, NotDeclared or FeedError, and then the change is not in the batch.
        """
        recorded = record.images or {}  # without families that the table got later
        wanted = {family: columns for family, columns in self._images.items() if family in recorded}
        images = images_of(record, wanted) if wanted else None
        if images is None:
            raise DamagedData(f"change {sequence.token} was logged without what feed {self._feed.name} sends of it")
        change = ChangeImages(
            record.row, images.before, images.after, record.stamp, sequence.token, record.more_follows
        )  # fmt: skip
        messages = self._debezium.messages_of_change(change, self._region.now_ms)
        batch.add_change(sequence, record.row, [one.value for one in messages], record.stamp)

    def read_rows(self, batch: FeedBatch, start: bytes) -> FeedProgress:
        """Add the messages of the rows from ``start`` on to the batch, until it is full or has FEED_ROWS.

        Returns the progress with these rows.  Raises NotDeclared or FeedError.
        """
        region, at, now_ms = self._region, self._region.log.written_to, self._region.now_ms
        first = max(start, region.info.start)
        stop = range_start(region.info.end) if region.info.end else None
        projection = self._spec.projection
        cursor = RowCursor.over(region.store, region.views, projection, range_start(first), stop, reverse=False)
        end: bytes | None = first
        for _ in range(FEED_ROWS):
            found = cursor.next_row()
            if found is None:
                return FeedProgress(None, first, at)
            row, raw_row = found
            cells = {
                column: value for column, value, _ in visible_cells(region.store, row, raw_row, self._spec, now_ms)
            }
            if cells:
                message = self._debezium.message_of_row(row, cells, at.token, now_ms)
                batch.add_row(at, row, message.value, now_ms)
            end = row + b"\x00"
            if batch.is_full:
                break
        return FeedProgress(end, first, at)
