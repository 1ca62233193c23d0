"""Split of a region into two daughters: each begins as a checkpoint of the whole, cut to its range.

A checkpoint links the engine's files and copies its small ones (1.5 ms, whatever the region's size); range deletes
remove the rows outside a daughter's range, and ``region_copier`` copies what is written meanwhile.  Both daughters
inherit change log, cursors and marks whole: sequences carry the origin in which they were given, and consumers take
only rows of their own region.
"""

from __future__ import annotations

from functools import partial

from columnar.model.region_info import RegionInfo
from columnar.regions.log.change_log import EPOCH
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.region import Region
from columnar.regions.replace.region_copier import RegionCopier
from columnar.regions.replace.region_replacement import Replacement
from columnar.regions.row_range import outside_spans
from columnar.storage.api import Store


class Splitting(Replacement):
    """Replaces a region by two; see ``Replacement``."""

    def make_copier(self) -> RegionCopier:
        (parent,) = self.regions
        return RegionCopier(self.server, parent, (), self.change.fresh, self.check_open)

    def finish(self, info: RegionInfo, store: Store) -> None:
        """``meta`` as the parent has it now; the daughter counts its own openings."""
        (parent,) = self.regions
        batch = store.batch()
        inherited = dict(parent.store.scan(META_SPACE, b"", None))
        for key, _ in store.scan(META_SPACE, b"", None):
            if key not in inherited:
                batch.delete(META_SPACE, key)
        for key, value in inherited.items():
            if key != EPOCH:
                batch.put(META_SPACE, key, value)
        for mark, highest in parent.highest_marks().items():
            batch.put(META_SPACE, mark, highest.to_bytes(8, "big"))
        store.write(batch)


async def clean_up(region: Region) -> None:
    """Reclaim the space of rows outside the region's range: only files with such rows are rewritten."""
    for span in outside_spans(region.views, region.info):
        await region.aside(partial(region.store.compact_span, *span))
