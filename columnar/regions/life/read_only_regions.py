"""A region whose disk takes no writes is opened for reading, and for writing when the disk takes writes again.

If a region cannot be opened because the disk is full or mounted read-only, or file descriptors have run out, the region
is opened for reading.  Such an opening writes no files and finds every acknowledged write.  Writers get the reason.
Every RETRY_S each such region is closed; the next request opens it, for writing if the disk takes writes by then.  The
server opens one region without a request, so that a disk that takes writes again is noticed in any case.

Three kinds of regions are refused to readers, too, because a reader must not see their state: regions with damaged
files, regions that ``opening.opened_for_reading`` refuses, and regions whose disk reported a failed read, write or
fsync. The pages that such a disk returns afterwards cannot be trusted.

Owned by the loop.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from columnar.errors import ColumnarError, DamagedData, HostError
from columnar.model.region_info import RegionInfo
from columnar.regions.life.region_state import State
from columnar.regions.region import Region
from columnar.runtime.faults import FAULTS
from columnar.runtime.planned_step import PlannedStep

if TYPE_CHECKING:
    from columnar.regions.server import RegionServer

_log = logging.getLogger(__name__)

LOOP: Final = "openings of regions for writers"
RETRY_S: Final = 1.0
_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class WriteFault:
    """A region that cannot be written, because a write, an fsync or an opening of the region failed."""

    info: RegionInfo
    why: str
    passes: bool  # the disk may take writes again; False if files are damaged


class ReadOnlyRegions:
    def __init__(self, server: RegionServer) -> None:
        self._server = server
        self._faults: dict[int, WriteFault] = {}  # by region id, until the region takes writes again
        self._said: dict[int, str] = {}  # region id -> the cause that was logged, until it takes writes again
        self._retry = PlannedStep(LOOP, self._retry_all)

    def note_fault(self, info: RegionInfo, failure: ColumnarError) -> None:
        """Remember why the region cannot be written, and plan to open it for writing again."""
        self._faults[info.region_id] = WriteFault(info, failure.text, not isinstance(failure, DamagedData))
        self.plan_retry()

    def note_reading(self, info: RegionInfo, cause: HostError) -> None:
        """Note that the region was opened for reading."""
        kind = _NUMBERS.sub("", cause.text)  # each attempt names a file of a different number
        if self._said.get(info.region_id) != kind:
            self._said[info.region_id] = kind
            _log.error("region %s of %s is read-only: %s", info.encoded, info.table, cause.text)

    def note_writing(self, info: RegionInfo) -> None:
        """Note that the region was opened for writing."""
        self._faults.pop(info.region_id, None)
        if self._said.pop(info.region_id, None) is not None:
            _log.warning("region %s of %s takes writes again", info.encoded, info.table)

    @property
    def has_faults(self) -> bool:
        return bool(self._faults)

    def write_faults(self) -> list[WriteFault]:
        """Return the faults of regions that this server owns and that cannot be written."""
        for region_id, fault in list(self._faults.items()):
            if not self._server.owns(fault.info) or self._server.serving(fault.info) is None:
                del self._faults[region_id]  # it was moved, split, merged, dropped or disabled
                self._said.pop(region_id, None)
        return list(self._faults.values())

    # --- writers again -----------------------------------------------------------------------------

    def plan_retry(self) -> None:
        """Plan to open the regions for writing, if the disk takes writes by then."""
        self._retry.after(RETRY_S)

    def stop(self) -> None:
        self._retry.cancel()

    def _retry_all(self) -> None:
        for region in self._server.all_open():
            try:
                self._retry_one(region)
            except Exception as fault:  # noqa: BLE001 - without a retry it would stay read-only for ever
                FAULTS.met(LOOP, fault)
                self.plan_retry()
        self.open_faulty()

    def _retry_one(self, region: Region) -> None:
        server = self._server
        if server.hosting.state_of(region) is not State.READ_ONLY:
            return
        if server.eviction.may_evict(region):
            server.eviction.evict(region)
            server.open_for_consumers(region)
        else:
            self.plan_retry()

    def open_faulty(self) -> None:
        """Open a closed region whose disk took no writes, to notice without requests when the disk takes writes."""
        faults = (fault.info for fault in self.write_faults() if fault.passes)
        closed = next((info for info in faults if not self._server.is_open(info)), None)
        served = self._server.serving(closed) if closed is not None else None
        if closed is not None and served is not None:
            with suppress(ColumnarError):  # RegionUnavailable: it is being opened
                self._server.open_region(served, closed)
            self.plan_retry()
