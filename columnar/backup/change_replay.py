"""Replay of a table's change log onto an older copy of the table, until a moment.

The older copy and the later one are copies of all regions of one table, with their change logs.  A region of the older
copy has every record up to the end of its own log; later records come from the logs of the later copy, which may have
other regions, as daughters inherit the log of their parent and its sequences.  Records are applied to the older stores
in the order of each log, as the writes that they record, with their timestamps.

Invariants:
    I1. A record is applied if and only if the older copy lacks it and its stamp is at or below the moment.
    I2. If a log of the later copy lacks records that were written since the older copy, nothing is replayed; neither if
        the older copy has records of a timeline that the later copy's store left (``lost_changes``).

Records do not have the time to live of a cell, so cells that are replayed have none of their own.  Blocks; for a
command.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final

from columnar.errors import CallerError
from columnar.model.mutation import Delete, Operation, Put
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.log.change_record import ChangeRecord, Entry, Kind, pack_key, unpack, unpack_key
from columnar.regions.log.log_retention import LOG_SPACE, META_SPACE, TRIMMED, LogRetention
from columnar.regions.log.lost_changes import LostSpan, spans_in
from columnar.regions.read.family_view import views_of
from columnar.regions.region import spaces_of
from columnar.regions.spaces import options_of_spaces
from columnar.regions.write.drafting import FUTURE
from columnar.regions.write.ingestion import undo_cut_off
from columnar.regions.write.row_draft import RowDraft
from columnar.storage.api import Engine, Store

_SEQUENCE: Final = 0  # of cells that no mutation of a region wrote


class OlderCopy:
    """The stores of the older copy.  Owned by one thread."""

    def __init__(self, table: Table, stores: Sequence[tuple[RegionInfo, Store]], ends: Sequence[bytes]) -> None:
        """``stores`` by the first row of their regions; ``ends``: of their logs."""
        self._table = table
        self._views = views_of(table)
        self._starts = [info.start for info, _ in stores]
        self._stores = [store for _, store in stores]
        self._ends = ends
        self._highest = [0] * len(self._stores)
        self.applied = 0

    @classmethod
    def of_stores(cls, table: Table, stores: Sequence[tuple[RegionInfo, Store]]) -> OlderCopy:
        """Return the copy, after reading the logs to their ends."""
        return cls(table, stores, [_end_of_log(store) for _, store in stores])

    def check_history(self, lost: Sequence[LostSpan]) -> None:
        """Raise CallerError if the copy has records that the later copy's store ``lost`` by a restore (I2)."""
        if any(span.has(unpack_key(end)) for span in lost for end in self._ends if end):
            raise CallerError(
                f"between the two backups the store was restored from an older one, and lost changes of "
                f"{self._table.name} that the earlier backup has; restore one of the two"
            )

    def apply_record(self, key: bytes, record: ChangeRecord) -> None:
        """Apply the record, unless its region has it already."""
        place = bisect_right(self._starts, record.row) - 1
        if key <= self._ends[place]:
            return
        store = self._stores[place]
        draft = RowDraft(
            store,
            self._views,
            record.row,
            now_ms=record.stamp,
            sequence=_SEQUENCE,
            markers=self._table.delete_markers_ms is not None,
            logged=False,
        )
        for entry in record.entries:
            draft.apply(_operation(entry))
        batch = store.batch()
        draft.emit(batch)
        store.write_batch(batch)
        self._highest[place] = max(self._highest[place], draft.highest)
        self.applied += 1

    def finish_replay(self) -> None:
        """Note the highest timestamps, by which the regions compare later writes, and sync the stores."""
        for store, highest in zip(self._stores, self._highest, strict=True):
            batch = store.batch()
            known = int.from_bytes(store.get(META_SPACE, FUTURE) or b"", "big")
            batch.put(META_SPACE, FUTURE, max(known, highest).to_bytes(8, "big"))
            store.write_batch(batch)
            store.sync()


def replay_changes(
    engine: Engine,
    table: Table,
    older: tuple[str, Sequence[RegionInfo], int],
    later: tuple[str, Sequence[RegionInfo]],
    moment_ms: int,
) -> int:
    """Replay onto the copy ``older`` the records of ``later`` until the moment; return their number.

    A copy is a folder with one store for each region, under its encoded name; ``older`` has the time of its copy too.
    Raises CallerError if the log does not reach back to the older copy (I2).
    """
    folder, infos, taken_ms = older
    with ExitStack() as stack:
        logs = [_opened(engine, table, later[0], info, stack) for info in later[1]]
        for log in logs:
            if LogRetention(log).before(taken_ms) is None:
                raise CallerError(
                    f"the change log of {table.name} in the later backup does not reach back to the earlier one; "
                    "restore one of the backups, or keep changes longer with CHANGE_LOG"
                )
        copy = OlderCopy.of_stores(table, [(info, _opened(engine, table, folder, info, stack)) for info in infos])
        copy.check_history([span for log in logs for span in spans_in(log)])
        for log, info in zip(logs, later[1], strict=True):
            for key, record in _records(log, info, moment_ms):
                copy.apply_record(key, record)
        copy.finish_replay()
        return copy.applied


def _records(log: Store, info: RegionInfo, moment_ms: int) -> Iterator[tuple[bytes, ChangeRecord]]:
    """Yield the changes of the region's rows until the moment: daughters inherit records of each other's rows."""
    for key, data in log.scan(LOG_SPACE, b"", None):
        record = unpack(data)
        if info.contains_row(record.row) and record.only_for is None and record.stamp <= moment_ms:
            yield key, record


def _opened(engine: Engine, table: Table, folder: str, info: RegionInfo, stack: ExitStack) -> Store:
    """Open a store of a copy, repaired as at each opening."""
    store = engine.open_store(os.path.join(folder, info.encoded), spaces_of(table), options_of_spaces(table))
    stack.callback(store.close)
    undo_cut_off(store, views_of(table))
    return store


def _end_of_log(store: Store) -> bytes:
    """Return a key at or above every record that the store has or had, and below all later ones."""
    marks = LogRetention(store).marks()
    found = [store.get(META_SPACE, TRIMMED) or b"", *(pack_key(at) for _, at in marks[-1:])]
    for key, _ in store.scan(LOG_SPACE, b"", None):
        found[0] = max(found[0], key)
    return max(found)


def _operation(entry: Entry) -> Operation:
    if entry.kind is Kind.PUT:
        return Put(entry.family, entry.qualifier, entry.value, entry.timestamp)
    if entry.kind is Kind.DELETE_FAMILY:
        return Delete(entry.family, None, entry.timestamp)
    return Delete(entry.family, entry.qualifier, entry.timestamp, entry.kind is Kind.DELETE_VERSION)
