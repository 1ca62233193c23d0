"""One region becomes two: each begins as a checkpoint of the whole, and drops what is not its own when it opens.

A checkpoint links the engine's files and copies its small ones (1.5 ms, whatever the region's size);
what is not a daughter's is marked first and removed by range deletes at its opening (``row_range``).
Change log, cursors and marks are inherited whole by both: sequences carry the origin in which they were
given, and consumers take only rows of their own region.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from columnar.model.region_info import RegionInfo
from columnar.regions.middle_row import middle_row
from columnar.regions.region import Region
from columnar.regions.replacing import Replacement
from columnar.regions.row_range import mark_for_clipping, outside_spans


class Splitting(Replacement):
    """Of one region; see ``Replacement``."""

    async def middle(self) -> bytes | None:
        return await middle_row(self.regions[0])

    async def prepare(self) -> None:
        """While it serves: see that little is left in memory, so that the checkpoint is short."""
        await self.wait_for_upkeep()
        (parent,) = self.regions
        await parent.aside(parent.store.flush)

    async def make(self, daughters: Sequence[RegionInfo]) -> None:
        """While it is shut.  The folders are on disk when this returns."""
        (parent,) = self.regions
        mark_for_clipping(parent.store)
        await parent.aside(parent.store.flush)
        for info in daughters:
            self.check_pause()
            parent.store.checkpoint(self.server.folder_of(info))


async def clean_up(region: Region) -> None:
    """Give back the space of rows outside the region's range: only files that hold such rows are written anew."""
    for span in outside_spans(region.views, region.info):
        await region.aside(partial(region.store.compact_span, *span))
