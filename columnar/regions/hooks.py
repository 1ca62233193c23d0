"""The hooks into which followers of changes plug: regions imports neither triggers nor streams.

A table with a consumer has a ``LogPolicy``: it says which families go into the change log, of which the cells before
a change are kept too, and of which columns both images are.  After each fsync of a region with a log the
server calls ``ChangeListener.changes_durable``; a listener reads the log from its own cursor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from columnar.model.region_info import RegionInfo
from columnar.regions.log import change_record

if TYPE_CHECKING:
    from columnar.regions.region import Region


@dataclass(frozen=True, slots=True)
class LogPolicy:
    families: frozenset[bytes]  # whose entries are recorded: a change of no other family makes a record
    before: frozenset[bytes]  # a subset: of which a record holds what its touched columns held
    images: change_record.Images = field(default_factory=dict)  # of which it holds both images; families are a subset
    askers: Mapping[bytes, str] = field(default_factory=dict)  # who asked for all of a family's images, for people
    # columns into which no put with a time to live goes, and for whom: by family and qualifier; None: all of the family
    lasting: Mapping[bytes, Mapping[bytes | None, str]] = field(default_factory=dict)


class ChangeListener(Protocol):
    def region_opened(self, region: Region) -> None:
        """A region with a log is open; what it logged before is still there to be read."""

    def changes_durable(self, region: Region) -> None:
        """More of the region's log is on disk.  Must return at once."""

    def may_close(self, region: Region) -> bool:
        """Whether nobody has anything left to read in its log: it may be closed when it is little used."""

    def region_closing(self, region: Region) -> None:
        """After this call nothing may touch the region."""

    # --- regions in whose place others will stand (``replacing``) ------------------------------------

    def changing(self) -> AbstractAsyncContextManager[None]:
        """While it is held nobody begins or ends to follow a table."""

    async def quiesce_region(self, region: Region, patience_s: float) -> str:
        """Take up nothing more of the region; returns when nothing is under way.  Else what still is, for people."""

    def release(self, region: Region) -> None:
        """The region stays after all: go on."""

    async def merge_obstacle(self, region: Region, patience_s: float) -> str:
        """Why what it has still to read cannot be carried over into another region, for people; empty: it can."""

    def merged_cursors(self, regions: Sequence[Region], read_to: change_record.Sequence) -> dict[str, bytes]:
        """The place of each consumer of a merged region: all up to ``read_to`` is read, what is open is named."""

    def region_leaving(self, region: Region) -> None:
        """Its cursors are saved; after this call nothing may touch the region.  It does not come back."""

    def regions_replaced(self, gone: Sequence[Region], fresh: Sequence[RegionInfo]) -> None:
        """``fresh`` stand in the place of ``gone``, and those with a log have been opened."""


class NoListener:
    def region_opened(self, region: Region) -> None:
        pass

    def changes_durable(self, region: Region) -> None:
        pass

    def may_close(self, region: Region) -> bool:
        return True

    def region_closing(self, region: Region) -> None:
        pass

    def changing(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def quiesce_region(self, region: Region, patience_s: float) -> str:
        return ""

    def release(self, region: Region) -> None:
        pass

    async def merge_obstacle(self, region: Region, patience_s: float) -> str:
        return ""

    def merged_cursors(self, regions: Sequence[Region], read_to: change_record.Sequence) -> dict[str, bytes]:
        return {}

    def region_leaving(self, region: Region) -> None:
        pass

    def regions_replaced(self, gone: Sequence[Region], fresh: Sequence[RegionInfo]) -> None:
        pass
