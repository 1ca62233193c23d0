"""Deletes of a range of rows: by one range delete in each region, or row by row if each delete must be logged.

If changes are logged (a trigger, CHANGE_LOG) or deletes leave markers, every row is deleted as a client would delete
it, so that triggers see the deletes and derived tables follow.  Otherwise the engine drops the range as a whole, at a
cost that does not depend on the number of rows.

A call does a bounded amount of work and returns the row at which to continue.  The call can be repeated: after a crash
the acknowledged deletes are durable and the other rows still exist.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from columnar.errors import NotServingRegion, RegionNotLocal
from columnar.model.mutation import Delete, RowMutation
from columnar.model.read import ReadSpec, projection
from columnar.model.region_info import RegionInfo
from columnar.operations.access import TableAccess
from columnar.regions.life.retry import STALL_TIMEOUT_S, retry_until_ready
from columnar.regions.read.row_reader import RowCursor, wire_cells
from columnar.regions.region import Region
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.storage.api import StoreClosed
from columnar.storage.layout import range_start

ROWS_PER_STEP: Final = 200  # deleted in one batch; the next batch waits for the fsync, so that writers get in between
ROWS_PER_CALL: Final = 10_000
EXAMINED_PER_STEP: Final = 2_000  # rows, including those without a visible cell
FULL_LOG_PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Deleted:
    """The progress of a delete.

    ``rows`` is None if a range was dropped as a whole; ``next_row`` is where to continue, None if all is done.
    """

    rows: int | None
    next_row: bytes | None


async def delete_rows(access: TableAccess, table: bytes, start: bytes, stop: bytes) -> Deleted:
    """Delete the rows ``start <= row < stop`` (empty: to the last row), each as it is when the call reaches it."""
    access.table(table).schema.check_written_by()
    counted: int | None = None
    row: bytes | None = start
    while row is not None and (counted or 0) < ROWS_PER_CALL:
        gone, not_local = await delete_owned(access, table, row, stop, ROWS_PER_CALL - (counted or 0))
        counted, row = _sum(counted, gone.rows), gone.next_row
        if not_local is not None:
            assert row is not None, "it is a row of the region that is elsewhere"
            gone = await access.remote(not_local).delete_rows(access.table(table), row, stop)
            counted, row = _sum(counted, gone.rows), gone.next_row
    return Deleted(counted, row)


def _sum(counted: int | None, rows: int | None) -> int | None:
    return counted if rows is None else (counted or 0) + rows


async def delete_owned(
    access: TableAccess, table: bytes, start: bytes, stop: bytes, max_rows: int = ROWS_PER_CALL
) -> tuple[Deleted, RegionNotLocal | None]:
    """Delete as ``delete_rows``, up to the first region that a different server owns; return also that error."""
    counted: int | None = None
    row: bytes | None = start
    while row is not None:
        served = access.table(table)
        info = served.holding(row)
        try:
            region = await access.opened(served, info)
            if region.can_delete_at_once(region.now_ms):
                if await _delete_at_once(access, served, info, row, stop):
                    row = _after(info, stop)
                continue
            await _room_in_log(access, served, region, row)
            gone, row = await _delete_step(access, served, info, row, stop)
        except StoreClosed:  # the region was closed meanwhile: continue with the reopened region
            continue
        except RegionNotLocal as not_local:
            return Deleted(counted, row), not_local
        except NotServingRegion:
            if info in access.table(table).regions:
                raise
            continue  # the region was split or merged meanwhile
        counted = (counted or 0) + gone
        if row is not None and counted >= max_rows:
            break
    return Deleted(counted, row), None


async def _delete_at_once(access: TableAccess, served: ServedTable, info: RegionInfo, row: bytes, stop: bytes) -> bool:
    """Drop the range in the region.

    Returns False, without effect, if by now changes are logged, or the region is being split or merged.
    """

    def step() -> asyncio.Future[None] | None:
        region = access.open_region(access.again(served), info)  # found again after a wait for the engine
        if not region.can_delete_at_once(region.now_ms):
            return None
        end = min((bound for bound in (stop, region.info.end) if bound), default=b"")
        return region.delete_at_once(max(row, region.info.start), end)

    synced = await retry_until_ready(step)
    if synced is None:
        return False
    await asyncio.shield(synced)
    return True


async def _room_in_log(access: TableAccess, served: ServedTable, region: Region, row: bytes) -> None:
    """Wait while the region's change log is full, at most STALL_TIMEOUT_S; then raise RegionTooBusy, as a put does.

    The call can be repeated then: a stuck trigger keeps the log full until an operator acts.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + STALL_TIMEOUT_S
    while region.refuses_writes and region.is_open:
        if loop.time() >= deadline_s:
            access.writable(served, row)
        await asyncio.sleep(FULL_LOG_PAUSE_S)


async def _delete_step(
    access: TableAccess, served: ServedTable, info: RegionInfo, row: bytes, stop: bytes
) -> tuple[int, bytes | None]:
    """Delete one batch of rows; return their number, and the row at which the next batch begins."""

    def step() -> tuple[int, bytes | None, Region, Applied | None]:
        region = access.open_region(access.again(served), info)  # unavailable if its requests are paused (for a split)
        doomed, after = _visible_rows(region, row, stop)
        if not doomed:
            return 0, after, region, None
        families = [family.bytes_name for family in region.table.families]
        mutations = [RowMutation(one, tuple(Delete(family, None) for family in families)) for one in doomed]
        return len(doomed), after, region, region.apply_many(mutations)

    count, after, region, applied = await retry_until_ready(step)
    if applied is not None:
        if applied.durable is not None:
            await asyncio.shield(applied.durable)
        if region.write_delay_s > 0:
            await asyncio.sleep(region.write_delay_s)
    await asyncio.sleep(0)
    return count, after


def _visible_rows(region: Region, row: bytes, stop: bytes) -> tuple[list[bytes], bytes | None]:
    spec = ReadSpec(projection(region.table, []))
    end = min((bound for bound in (stop, region.info.end) if bound), default=b"")
    low = range_start(max(row, region.info.start))
    cursor = RowCursor.over(
        region.store, region.views, spec.projection, low, range_start(end) if end else None, reverse=False
    )
    doomed, now_ms = list[bytes](), region.now_ms
    for _ in range(EXAMINED_PER_STEP):
        found = cursor.next_row()
        if found is None:
            return doomed, _after(region.info, stop)
        name, raw = found
        row = name
        if wire_cells(region.store, name, raw, spec, now_ms):
            doomed.append(name)
        if len(doomed) >= ROWS_PER_STEP:
            break
    return doomed, row + b"\x00"


def _after(info: RegionInfo, stop: bytes) -> bytes | None:
    """Return the first row of the next region, or None if the range ends before it."""
    return None if not info.end or (stop and info.end >= stop) else info.end
