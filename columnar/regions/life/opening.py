"""Opening a region: its store, the repair of what a crash cut off in it, and what the region begins with.

Blocks for some 6 ms, during which the engine holds the interpreter lock.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass
from shlex import quote
from typing import Final

from columnar.clock import Clock
from columnar.errors import ColumnarError, DamagedData, HostError
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.log.change_log import begin_log
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.read.family_view import views_of
from columnar.regions.region import CLOCK_MARK, ClockHighWaterMark, Region, spaces_of
from columnar.regions.spaces import drop_leftovers, options_of_spaces
from columnar.regions.write.drafting import FUTURE
from columnar.regions.write.guards import Guards, read_marks
from columnar.regions.write.ingestion import INGESTING, undo_cut_off
from columnar.storage.api import Engine, Store
from columnar.storage.commit import Committer
from columnar.storage.data_folder import check_place
from columnar.storage.ownership import Ownership
from columnar.storage.read_only import open_read_only
from columnar.storage.rocks_errors import data_of


def opened(
    engine: Engine, path: str, info: RegionInfo, table: Table, committer: Committer, clock: Clock,
    ownership: Ownership | None = None,
) -> Region:  # fmt: skip
    """The region at ``path``, which is made where it is missing.  HostError, DamagedData."""
    store = engine.open_store(path, spaces_of(table), options_of_spaces(table), ownership)
    try:
        return region_of(store, info, table, committer, clock)
    except BaseException:
        store.close()
        raise


def opened_again(
    engine: Engine, path: str, info: RegionInfo, table: Table, committer: Committer, clock: Clock,
    ownership: Ownership,
) -> Region:  # fmt: skip
    """``opened``, for a region that the catalogue names: without its folder all that was written to it is lost."""
    if not engine.has_folder(path):
        check_place(os.path.dirname(os.path.dirname(os.path.abspath(path))))
        command = f"columnar repair --data {quote(data_of(path) or 'DIR')}"
        raise DamagedData(
            f"{path}: the folder of this region of {info.table} is missing, with all that was written to it; "
            f"put it back from a copy; or stop the store, and '{command}' puts an empty region there"
        )
    return opened(engine, path, info, table, committer, clock, ownership)


def region_of(store: Store, info: RegionInfo, table: Table, committer: Committer, clock: Clock) -> Region:
    """The region in a store that is open."""
    drop_leftovers(store, table)
    undo_cut_off(store, views_of(table))
    log = begin_log(store, info.region_id)
    reached_ms = _number(store, CLOCK_MARK)
    clock.observe(reached_ms)
    reached, guards = ClockHighWaterMark(store, clock, reached_ms), Guards(read_marks(store))
    return Region(info, table, store, log, reached, guards, _number(store, FUTURE), committer, clock)


def _number(store: Store, key: bytes) -> int:
    return int.from_bytes(store.get(META_SPACE, key) or b"", "big")


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
    """Regions whose disk takes no writes: opened for reading, and opened for writing when the disk takes writes again.

    A region that cannot be opened because the disk is full, mounted read-only or out of descriptors is opened for
    reading: that writes no files and finds all that was acknowledged.  Writers get the reason.  Every RETRY_S each such
    region is closed; the next request opens it, for writing if the disk takes writes by then.  The server opens one
    region without a request, so that a disk that takes writes again is noticed in any case.

    These regions are refused as before, because a reader must not see their state: a region whose files are damaged,
    one in the middle of an ingestion of sorted files (only an opening that writes can undo that), one whose last writes
    are in the server's log only (possible after a power cut), one that lacks a family's space, and one whose disk
    reported a failed read, write or fsync: the pages that such a disk returns afterwards cannot be trusted.

    Owned by the loop.

    Opens them, and remembers which were opened so.
    """

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
        store.refuse_writes()
        region.refuse_writes(cause)
        kind = _NUMBERS.sub("", cause.text)  # each try has a file of another number
        if self._said.get(info.region_id) != kind:
            self._said[info.region_id] = kind
            _log.error("region %s of %s is read-only: %s", info.encoded, info.table, cause.text)
        return region

    def note(self, info: RegionInfo, failure: ColumnarError) -> None:
        """Remember why the region cannot be written, until it is opened for writing or forgotten."""
        self.faults[info.region_id] = WriteFault(info, failure.text, not isinstance(failure, DamagedData))

    def forget_region(self, region_id: int) -> None:
        self.faults.pop(region_id, None)
        self._said.pop(region_id, None)

    def takes_writes(self, info: RegionInfo) -> None:
        """Note that the region was opened for writing."""
        self.faults.pop(info.region_id, None)
        if self._said.pop(info.region_id, None) is not None:
            _log.warning("region %s of %s takes writes again", info.encoded, info.table)
