"""Ingestion of whole rows as sorted files: all rows or none, as one change that every reader sees at once.

The engine ingests the files of each key space separately.  So the region writes the range of the coming rows to
``meta`` before it begins, and deletes that mark when all files are in:

    ingesting -> length:u32 first row, last row                          big-endian

Invariants:
    I1. Rows are ingested only into an empty range.
    I2. If ``ingesting`` is found at an opening, the range is emptied: a crash interrupted the ingestion.  While the
        mark may be stored, a write into the range deletes the mark in its own batch (``IngestionMark``), also after an
        ingestion that failed or whose caller is gone.  No file is ingested after such a write.
    I3. A region has one ingestion at a time, as it has one mark.
    I4. No other code runs on the loop between the first file and the last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

from columnar.errors import ColumnarError, NotServingRegion
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.read.family_view import FamilyView
from columnar.regions.spaces import delete_spans, row_after, row_spans
from columnar.storage.api import Batch, Store, StoreBusy

if TYPE_CHECKING:
    from columnar.regions.region import Region

INGESTING: Final = b"ingesting"
_LENGTH: Final = Struct(">I")


@dataclass(frozen=True, slots=True)
class IncomingRows:
    first: bytes
    last: bytes
    highest_timestamp: int
    rows: int
    files: Mapping[str, Sequence[str]]  # paths by key space


@dataclass(slots=True)
class Coming:
    """An ingestion whose mark may stand in ``meta``."""

    first: bytes
    last: bytes
    is_called_off: bool = False  # other rows were written into its range, and perhaps deleted again

    def call_off(self) -> None:
        self.is_called_off = True


class IngestionMark:
    """The ingestion of one region that was announced, while its mark may stand in ``meta``."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()  # held by the ingestion whose mark is in ``meta`` (I3)
        self.coming: Coming | None = None

    def announce(self, first: bytes, last: bytes) -> Coming:
        self.coming = Coming(first, last)
        return self.coming

    def remove(self) -> None:
        """Note that the mark is deleted."""
        self.coming = None

    def call_off(self, batch: Batch, rows: list[bytes]) -> None:
        """Call off the ingestion if one of ``rows`` is in its range: if the mark stayed, a crash would empty the range.

        Each such write deletes the mark, as the engine may have refused the batch of an earlier one.
        """
        coming = self.coming
        assert coming is not None, "looked at before"
        for row in rows:
            if coming.first <= row <= coming.last:
                batch.delete(META_SPACE, INGESTING)
                coming.call_off()
                return


def obstacles_of(region: Region) -> list[str]:
    """Return the reasons why rows cannot be ingested as files; they can be written in the ordinary way."""
    found = []
    if region.logging.row_policy is not None:
        found.append("its changes are logged for triggers or CHANGE_LOG, and sorted files leave no change records")
    if region.table.delete_markers_ms is not None:
        found.append("it keeps delete markers, against which each put must be compared")
    if region.syncs.touched is not None:
        found.append("the region is being split or merged, and what replaces it is told of single rows")
    return found


async def ingest(region: Region, incoming: IncomingRows) -> bool:
    """Ingest the rows, and return True after the fsync.

    Returns False, with no row ingested, if ``obstacles_of`` has a reason, if a row is outside the region, or if the
    range of the rows is not empty.
    """
    with region.work.kept_up():  # a split or merge would copy the mark
        async with region.ingestion.lock:
            region.check_writable()
            return _may_come(region, incoming) and await _ingest(region, incoming)


async def _ingest(region: Region, incoming: IncomingRows) -> bool:
    mark = _LENGTH.pack(len(incoming.first)) + incoming.first + incoming.last
    coming = region.ingestion.announce(incoming.first, incoming.last)
    await region.note(INGESTING, mark, incoming.highest_timestamp)
    came = await retry_until_ready(partial(_take_in, region, incoming, coming))
    await region.note(INGESTING, None, 0, incoming.rows if came else 0)
    region.ingestion.remove()  # not reached if one of these waits fails: the mark may be stored then (I2)
    return came


def _take_in(region: Region, incoming: IncomingRows, coming: Coming) -> bool:
    """Ingest all files, or return False.  Raises StoreBusy if the ingestion has not begun, or NotServingRegion."""
    if not region.is_open:
        raise NotServingRegion(f"region {region.info.encoded} was closed meanwhile; try again")
    if coming.is_called_off or not _may_come(region, incoming):
        return False
    try:
        region.store.files.ingest(incoming.files)
    except StoreBusy:
        raise
    except ColumnarError:  # some key spaces may have their files
        undo_cut_off(region.store, region.views)
        raise
    return True


def undo_cut_off(store: Store, views: Mapping[bytes, FamilyView]) -> bool:
    """Empty the range of an interrupted ingestion, at the opening of a region (I2).  Returns True if it emptied one."""
    mark = store.get(META_SPACE, INGESTING)
    if mark is None:
        return False
    length = _LENGTH.unpack_from(mark)[0]
    first, last = mark[4 : 4 + length], mark[4 + length :]
    batch = store.batch()
    delete_spans(store, batch, row_spans(views, first, row_after(last)))
    batch.delete(META_SPACE, INGESTING)
    store.write_batch(batch)
    store.sync()
    return True


def _may_come(region: Region, incoming: IncomingRows) -> bool:
    if obstacles_of(region) or not (
        region.info.contains_row(incoming.first) and region.info.contains_row(incoming.last)
    ):
        return False
    if not region.store.spaces.issuperset(incoming.files):
        return False  # a family was dropped meanwhile
    return all(
        next(iter(region.store.scan(space, start, stop)), None) is None
        for space, start, stop in row_spans(region.views, incoming.first, row_after(incoming.last))
    )
