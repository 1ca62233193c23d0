"""Regions whose disk takes no writes are served to readers, and opened for writers when it does again.

A region that cannot be opened because the disk is full, mounted read-only or out of descriptors is opened for
reading: that writes nothing and finds all that was acknowledged.  Writers hear why.  Every RETRY_S each such
region is closed; whoever asks for it next opens it, for writing if that goes by then.

What a reader must not see is refused as before: a region whose files are damaged, one in the middle of taking
sorted files in (only an opening that writes can undo that), one whose last writes stand in the server's log only
(as can be after a power cut), one that lacks a family's space, and one whose disk
reported a failed read, write or fsync: what such a disk says of its pages afterwards is not to be believed.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from columnar.clock import Clock
from columnar.errors import ColumnarError, DamagedData, DiskFails, HostError
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.ingestion import INGESTING
from columnar.regions.log_retention import META_SPACE
from columnar.regions.region import Region, spaces_of
from columnar.storage.api import Engine, Store
from columnar.storage.commit import Committer
from columnar.storage.read_only import open_read_only

_log = logging.getLogger(__name__)

RETRY_S: Final = 1.0


class ReadOnlyRegions:
    def __init__(self, engine: Engine, committer: Committer, clock: Clock) -> None:
        self._engine = engine
        self._committer = committer
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._said: dict[int, str] = {}  # region id -> the cause that was logged

    def open(self, path: str, info: RegionInfo, table: Table, store: Store | None) -> Region:
        """The region; read-only where the host refuses more.  HostError, DamagedData where not even that goes."""
        if store is None and not self._engine.has_folder(path):
            raise DamagedData(
                f"{path}: the folder of this region of {info.table} is missing, with all that was written to it; "
                "put it back from a copy; 'columnar repair' puts an empty region there"
            )
        try:
            region = Region(self._engine, path, info, table, self._committer, self._clock, store)
        except DiskFails:
            raise
        except HostError as cause:
            if store is not None:
                raise
            return self._open_reading(path, info, table, cause)
        if self._said.pop(info.region_id, None) is not None:
            _log.warning("region %s of %s takes writes again", info.encoded, info.table)
        return region

    def _open_reading(self, path: str, info: RegionInfo, table: Table, cause: HostError) -> Region:
        try:
            store = open_read_only(self._engine, path, cause)
        except (ColumnarError, OSError):
            raise cause from None
        if (
            not spaces_of(table) <= store.spaces
            or store.get(META_SPACE, INGESTING) is not None
            or self._engine.is_behind(store, path)
        ):
            store.close()
            raise cause
        region = Region(self._engine, path, info, table, self._committer, self._clock, store)
        store.is_opening = False
        region.read_only(cause)
        if self._said.get(info.region_id) != cause.text:
            self._said[info.region_id] = cause.text
            _log.error("region %s of %s is read-only: %s", info.encoded, info.table, cause.text)
        return region

    def retry(self, close_all: Callable[[], None]) -> None:
        """Call ``close_all`` in a while, once for all who ask meanwhile."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(RETRY_S, self._due, close_all)

    def _due(self, close_all: Callable[[], None]) -> None:
        self._timer = None
        close_all()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
