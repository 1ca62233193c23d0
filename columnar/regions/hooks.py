"""The hooks for followers of changes: ``regions`` imports neither triggers nor streams.

A table with a consumer has a ``LogPolicy``.  The policy names the families that go into the change log, the families
whose previous cells are recorded too, and the columns that are recorded before and after each change.  After each fsync
of a region with a log the server calls ``ChangeListener.changes_durable``; a listener reads the log from its own
cursor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from columnar.model.region_info import RegionInfo
from columnar.regions.log import change_record

if TYPE_CHECKING:
    from columnar.regions.region import Region


@dataclass(frozen=True, slots=True)
class LogPolicy:
    families: frozenset[bytes]  # their entries are recorded: a change in other families makes no record
    before: frozenset[bytes]  # a subset of them: records contain the previous cells of touched columns
    images: change_record.Images = field(default_factory=dict)  # columns recorded before and after, in a subset too
    askers: Mapping[bytes, str] = field(default_factory=dict)  # family -> follower that requested all its images
    # by family and qualifier: the follower for which a put with a time to live is refused; None: for any column of it
    lasting: Mapping[bytes, Mapping[bytes | None, str]] = field(default_factory=dict)
    sends: bool = False  # the sends of changes are recorded, of changes without other followers, too
    is_whole: bool = False  # every change of the table is logged, also for readers that come later (CHANGE_LOG)


class ChangeListener:
    """The calls that a region server makes for the followers of changes.  By default each call does nothing."""

    def region_opened(self, region: Region) -> None:
        """Note that a region with a log is open; the changes that it logged before are still to be read."""

    def changes_durable(self, region: Region) -> None:
        """Note that more of the region's log is on disk.  Must return immediately."""

    def may_close(self, region: Region) -> bool:
        """Tell whether every follower has read the region's log, so that a little-used region may be closed."""
        return True

    def region_closing(self, region: Region) -> None:
        """Release the region: no follower may touch it after this call."""

    # --- regions that are replaced by successors (``region_replacement``) -----------------------------

    def changing(self) -> AbstractAsyncContextManager[None]:
        """Return a context in which no follower of a table is added or removed."""
        return nullcontext()

    async def quiesce_region(self, region: Region, patience_s: float) -> str:
        """Stop taking up the region's changes and wait until none is in flight.

        Returns an empty string, or after ``patience_s`` a text for people that says what is still in flight.
        """
        return ""

    def release(self, region: Region) -> None:
        """Take up the region's changes again after ``quiesce_region``: the region stays."""

    async def merge_obstacle(self, region: Region, patience_s: float) -> str:
        """Return a text that says why a merged region cannot take the unread changes over; empty if it can."""
        return ""

    def merged_cursors(self, regions: Sequence[Region], read_to: change_record.Sequence) -> dict[str, bytes]:
        """Return the cursor of each consumer of a merged region.

        A cursor counts changes up to ``read_to`` as read, and names the open changes of its consumer.
        """
        return {}

    def region_leaving(self, region: Region) -> None:
        """Save the region's cursors and release the region for ever: no follower may touch it after this call."""

    def regions_replaced(self, gone: Sequence[Region], fresh: Sequence[RegionInfo]) -> None:
        """Note that the regions ``fresh`` have replaced the regions ``gone``.  Each fresh region with a log is open."""
