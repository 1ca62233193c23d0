"""Regions whose disk takes no writes: opened for reading, and opened for writing when the disk takes writes again.

A region that cannot be opened because the disk is full, mounted read-only or out of descriptors is opened for
reading: that writes no files and finds all that was acknowledged.  Writers get the reason.  Every RETRY_S each such
region is closed; the next request opens it, for writing if the disk takes writes by then.  The server opens one
region without a request, so that a disk that takes writes again is noticed in any case.

These regions are refused as before, because a reader must not see their state: a region whose files are damaged, one
in the middle of an ingestion of sorted files (only an opening that writes can undo that), one whose last writes are in
the server's log only (possible after a power cut), one that lacks a family's space, and one whose disk reported a
failed read, write or fsync: the pages that such a disk returns afterwards cannot be trusted.

Owned by the loop.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Final

from columnar.clock import Clock
from columnar.errors import ColumnarError, DamagedData, HostError
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.life.opening import region_of
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.region import Region, spaces_of
from columnar.regions.write.ingestion import INGESTING
from columnar.storage.api import Engine
from columnar.storage.commit import Committer
from columnar.storage.ownership import Ownership
from columnar.storage.read_only import open_read_only

_log = logging.getLogger(__name__)

RETRY_S: Final = 1.0


_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class WriteFault:
    """A region that cannot be written, since a write, an fsync or an opening of it failed."""

    info: RegionInfo
    why: str
    passes: bool  # its disk may take writes again; False: its files are damaged


class ReadOnlyRegions:
    """Opens them, and remembers which were opened so."""

    def __init__(self, engine: Engine, committer: Committer, clock: Clock) -> None:
        self._engine = engine
        self._committer = committer
        self._clock = clock
        self.faults: dict[int, WriteFault] = {}  # by region id, until the region takes writes again
        self._said: dict[int, str] = {}  # region id -> the cause that was logged, until it takes writes again

    def opened(self, path: str, info: RegionInfo, table: Table, cause: HostError, ownership: Ownership) -> Region:
        """The region, for readers.  ``cause`` itself where not even that goes."""
        try:
            store = open_read_only(self._engine, path, cause)
        except (ColumnarError, OSError):
            raise cause from None
        if (
            not spaces_of(table) <= store.spaces
            or store.get(META_SPACE, INGESTING) is not None
            or self._engine.has_unreplayed_writes(store, ownership)
        ):
            store.close()
            raise cause
        region = region_of(store, info, table, self._committer, self._clock)
        store.is_opening = False
        region.refuse_writes(cause)
        kind = _NUMBERS.sub("", cause.text)  # each try has a file of another number
        if self._said.get(info.region_id) != kind:
            self._said[info.region_id] = kind
            _log.error("region %s of %s is read-only: %s", info.encoded, info.table, cause.text)
        return region

    def note(self, info: RegionInfo, failure: ColumnarError) -> None:
        """Remember why the region cannot be written, until it is opened for writing or forgotten."""
        self.faults[info.region_id] = WriteFault(info, failure.text, not isinstance(failure, DamagedData))

    def forget(self, region_id: int) -> None:
        self.faults.pop(region_id, None)
        self._said.pop(region_id, None)

    def takes_writes(self, info: RegionInfo) -> None:
        """Note that the region was opened for writing."""
        self.faults.pop(info.region_id, None)
        if self._said.pop(info.region_id, None) is not None:
            _log.warning("region %s of %s takes writes again", info.encoded, info.table)
