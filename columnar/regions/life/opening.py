"""Opening a region: opens its store, undoes what a crash interrupted, and makes the region with its stored marks.

An opening blocks for some 6 ms, during which the engine holds the interpreter lock.
"""

from __future__ import annotations

import os
from shlex import quote

from columnar.clock import Clock
from columnar.errors import ColumnarError, DamagedData, HostError
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.log.change_log import begin_log
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.read.family_view import views_of
from columnar.regions.region import CLOCK_MARK, ClockHighWaterMark, Region, spaces_of
from columnar.regions.spaces import drop_leftovers, leftovers, options_of_spaces
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
    """Open the region at ``path``; make its store if it is missing.  Raises HostError or DamagedData."""
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
    """Open a region that the catalogue names, as ``opened`` does.

    Raises DamagedData if the region's folder is missing: everything that was written to the region is missing then.
    """
    if not engine.has_folder(path):
        check_place(os.path.dirname(os.path.dirname(os.path.abspath(path))))
        command = f"columnar repair --data {quote(data_of(path) or 'DIR')}"
        raise DamagedData(
            f"{path}: the folder of this region of {info.table} is missing, with all that was written to it; "
            f"put it back from a copy; or stop the store, and '{command}' puts an empty region there"
        )
    return opened(engine, path, info, table, committer, clock, ownership)


def region_of(store: Store, info: RegionInfo, table: Table, committer: Committer, clock: Clock) -> Region:
    """Make the region of an open store, after removing leftovers from the store."""
    log = begin_log(store, info.region_id)
    if leftovers(store, table):  # their cells go without a record; the new epoch is behind every position
        log.end_replays(log.written_to)
    drop_leftovers(store, table)
    undo_cut_off(store, views_of(table))
    reached_ms = _number(store, CLOCK_MARK)
    clock.observe(reached_ms)
    reached, guards = ClockHighWaterMark(store, clock, reached_ms), Guards(read_marks(store))
    return Region(info, table, store, log, reached, guards, _number(store, FUTURE), committer, clock)


def opened_for_reading(
    engine: Engine, path: str, info: RegionInfo, table: Table, committer: Committer, clock: Clock,
    ownership: Ownership, cause: HostError,
) -> Region:  # fmt: skip
    """Open the region for readers; writers get ``cause``.  Raises ``cause`` if readers must not see the region, either.

    Readers must not see three kinds of regions: a region in the middle of an ingestion of sorted files (only an opening
    that writes can undo it), a region whose last writes are only in the server log (possible after a power cut), and a
    region that lacks a family's space.
    """
    try:
        store = open_read_only(engine, path, cause)
    except (ColumnarError, OSError):
        raise cause from None
    if (
        not spaces_of(table) <= store.spaces
        or store.get(META_SPACE, INGESTING) is not None
        or engine.has_unreplayed_writes(store, ownership)
    ):
        store.close()
        raise cause
    region = region_of(store, info, table, committer, clock)
    store.refuse_writes()
    region.refuse_writes(cause)
    return region


def _number(store: Store, key: bytes) -> int:
    return int.from_bytes(store.get(META_SPACE, key) or b"", "big")
