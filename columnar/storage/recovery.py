"""Replay of dead logs: writes a region's records into its store before the owner serves the region.

    make_prefix     before the store is opened: makes RocksDB's own log end at its first gap
    bring_in        when the store is open: writes the missing batches, then ``complete``, then syncs once

Records have complete values under marks, so replaying a log twice has the same effect as replaying it once.
``lacking``, which is pure, decides which batches a store needs; ``ownership`` decides which logs are unreplayed.

Invariant C4 of a cluster: an owner serves only after all unreplayed logs are in the store and ``complete`` is synced.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from columnar.errors import ColumnarError, DamagedData
from columnar.storage.api import Batch, Store, StoreBusy
from columnar.storage.data_folder import LOG_ENDS
from columnar.storage.dead_logs import DeadLogs, Found, LogOfRegion
from columnar.storage.durable_files import sync_folder_if_any
from columnar.storage.ownership import (
    COMPLETE,
    META_SPACE,
    LogPart,
    Ownership,
    complete_in,
    epoch_to_own,
    logs_to_replay,
    pack_complete,
)
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks_errors import repair_advice
from columnar.storage.server_log import (
    MARK_SPACE,
    Record,
    era_of_mark,
    floor_of,
    mark,
    marks_of,
    pack_floor,
)

_log = logging.getLogger(__name__)

Marks = Mapping[bytes, bytes]
_NO_FLOOR: Final = pack_floor(0)


class Opens(Protocol):
    """The part of an engine that opens stores."""

    def open_store(
        self, path: str, spaces: frozenset[str], options: None = None, ownership: Ownership | None = None
    ) -> Store: ...

    def open_reading(self, path: str) -> Store: ...


# --- decisions ---------------------------------------------------------------------------------------


def missing(found: Found, marks: Marks) -> Found:
    """Return the records that a store lacks; ``marks`` are the store's marks of this log."""
    newest = max(marks, default=None)
    floor = floor_of(newest, marks[newest]) if newest is not None else b""
    return [(wanted, record) for wanted, record in found if wanted > floor and wanted not in marks]


def has_hole(lost: Found, marks: Marks) -> bool:
    """Tell whether the store has a batch after a batch in ``lost``, so that its batches are no prefix (S2)."""
    newest = max(marks, default=b"")
    return any(wanted < newest for wanted, _ in lost)


def lacking(log: LogOfRegion, marks: Marks) -> list[tuple[tuple[bytes, bytes], Record]]:
    """Return the batches that the store still needs, with their marks as pairs, in order.

    Raises DamagedData if the store has a hole, or if the log lost a batch before one of its batches.  In a salvaged log
    these are no errors: the region is added to the log's gaps.
    """
    newest = max(marks, default=b"")
    lost = missing(log.found, marks)
    if has_hole(lost, marks) and log.gaps is not None:
        log.gaps.add(log.region)
        lost = [(wanted, record) for wanted, record in lost if wanted > newest]  # older ones would hide newer values
    elif has_hole(lost, marks):
        raise DamagedData(
            f"region {log.region} lost a batch amid others, which the server's log has; {repair_advice('')}"
        )
    there = log.marks.union(marks)
    wanting = []
    for wanted, record in lost:
        era = era_of_mark(wanted)
        floor = marks[newest] if newest and era_of_mark(newest) == era else _NO_FLOOR
        before = mark(era, record.previous)
        if record.previous and before not in there and (not newest or before > floor_of(newest, floor)):
            if log.gaps is None:
                text = f"the server's log has batch {record.number} of region {log.region}, and lost one before"
                raise DamagedData(f"{text}; {repair_advice('')}")
            log.gaps.add(log.region)
        wanting.append(((wanted, floor), record))
    return wanting


# --- the store ---------------------------------------------------------------------------------------


def complete_of(store: Store, region: str) -> int:
    return complete_in(store.get(META_SPACE, COMPLETE) if META_SPACE in store.spaces else None, region)


def has_unreplayed_writes(store: Store, logs: DeadLogs, ownership: Ownership) -> bool:
    """Tell whether ``store``, which may be open for reading only, lacks acknowledged writes of the region."""
    wanted = logs_to_replay(ownership, complete_of(store, ownership.region))
    return any(missing(log.found, _marks(store, log)) for log in _logs(logs, ownership, wanted))


def make_prefix(engine: Opens, path: str, logs: DeadLogs, ownership: Ownership) -> None:
    """Remove the batches after a gap in the store's own log, before the store at ``path`` is opened.

    RocksDB begins a new log file before it has synced the previous file, whose end a power cut may remove.  RocksDB
    recognises a torn record, but not a file that ends between two records.  In that case the batches in the new file
    were never synced: a dead log has them too, or they were never acknowledged.
    """
    while engine_logs := _logs_in(path):
        store = engine.open_reading(path)
        try:
            wanted = logs_to_replay(ownership, complete_of(store, ownership.region))
            found = [(log, _marks(store, log)) for log in _logs(logs, ownership, wanted)]
        finally:
            store.close()
        whole = [(log, marks) for log, marks in found if log.gaps is None]  # a salvaged log may lack removed batches
        if not any(has_hole(missing(log.found, marks), marks) for log, marks in whole):
            return
        newest = engine_logs[-1]
        _log.warning("%s is removed: it goes on after a gap; the server's log has what was acknowledged", newest)
        os.unlink(newest)
        sync_folder_if_any(path)


def bring_in(store: Store, logs: DeadLogs, ownership: Ownership) -> int:
    """Replay every unreplayed log into the store and sync the store; returns the epoch of the store's records.

    Raises DamagedData if a batch is missing or a later owner had the store; raises HostError.
    """
    region = ownership.region
    complete = complete_of(store, region)
    epoch = epoch_to_own(ownership, complete)
    wanted = logs_to_replay(ownership, complete)
    if not wanted:
        return epoch
    count = 0
    for log in _logs(logs, ownership, wanted):
        for pair, record in lacking(log, _marks(store, log)):
            _write(store, record, pair)
            count += 1
    batch = store.batch()
    batch.put(META_SPACE, COMPLETE, pack_complete(epoch, region))
    _write_batch(store, batch)
    store.sync()
    if count:
        _log.info("region %s: %d writes came from the server's log", region, count)
    return epoch


def _logs(logs: DeadLogs, ownership: Ownership, wanted: Sequence[tuple[str, frozenset[int]]]) -> Iterator[LogOfRegion]:
    for name, epochs in wanted:
        yield logs.of_region(name, ownership.region, epochs)


def _marks(store: Store, log: LogOfRegion) -> Marks:
    return dict(store.scan(MARK_SPACE, *marks_of(log.identity)))


def _write(store: Store, record: Record, pair: tuple[bytes, bytes]) -> None:
    batch = store.batch()
    for space, key, value, stop in record.operations:
        if value is not None:
            batch.put(space, key, value)
        elif stop is None:
            batch.delete(space, key)
        else:
            batch.delete_range(space, key, stop)
    batch.put(MARK_SPACE, *pair)
    _write_batch(store, batch)


def _write_batch(store: Store, batch: Batch) -> None:
    try:
        store.write_batch(batch)
    except StoreBusy:
        store.files.flush()
        store.write_batch(batch)


def _logs_in(path: str) -> list[str]:
    """Return the paths of RocksDB's logs that are not empty, the newest last."""
    try:
        with os.scandir(path) as found:
            return sorted(one.path for one in found if one.name.endswith(LOG_ENDS[0]) and one.stat().st_size)
    except FileNotFoundError:
        return []


# --- regions without requests ---------------------------------------------------------------------------


def recovering(engine: Opens, logs: DeadLogs, folders: RegionFolders, epoch: int) -> Iterator[None]:
    """Open each region that has unreplayed logs and was not opened meanwhile, as a sole owner; a step takes some 15 ms.

    If a region cannot be opened, or if it is unknown whether the region was dropped, the error is logged, and its logs
    stay unreplayed.
    """
    for region in list(logs.left):
        unreplayed_logs: tuple[LogPart, ...] = logs.unreplayed_parts(region)
        if not unreplayed_logs:
            continue
        owner = Ownership(region, epoch, unreplayed_logs, is_sole=True)
        try:
            if folders.was_dropped(region):
                logs.brought_in(region)
                continue
            engine.open_store(folders.path(region), frozenset(), None, owner).close()
        except ColumnarError as error:
            _log.error("region %s is not brought up to date with the server's log: %s", region, error.text)
        yield
    logs.settle()


def recover(engine: Opens, logs: DeadLogs, folders: RegionFolders) -> None:
    """Do all steps of ``recovering`` at once, in a process that owns no region.  Blocks."""
    for _ in recovering(engine, logs, folders, 0):
        pass
