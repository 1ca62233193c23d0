"""A region's store, read from end to end: every block's checksum, every value, every key, the log against the cells.

The engine compares each block with its checksum when it reads the block, so reading everything checks the files.
Beyond that the check verifies that
    * each key has a known form; rows outside the region's range are counted;
    * each value decodes;
    * older versions exist only beside a newest version, and are older than it (``regions.row_draft`` I1);
    * each record of the log decodes, and the log's last put of a cell is not newer than the cell;
    * each cursor decodes.

Keeps LAST_ROWS rows of the log in memory.  Blocks.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from columnar.checking.findings import Report, Severity
from columnar.errors import ColumnarError, DamagedData, abbreviate
from columnar.flows.delivery_cursor import unpack_cursor
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table
from columnar.regions.log.change_record import Kind, unpack_key
from columnar.regions.log.change_record import unpack as unpack_record
from columnar.regions.log.log_cursors import cursors_in
from columnar.regions.log.log_retention import LOG_SPACE, META_SPACE
from columnar.regions.read.family_view import FamilyView, views_of
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import Store
from columnar.storage.layout import (
    END_OF_ROW,
    cell_key,
    split_cell_key,
    split_version_key,
    timestamp_of,
    unpack,
)

LAST_ROWS: Final = 100_000  # of the log, whose last changes are compared with the cells
SAID: Final = 5  # findings of one kind in one region; the rest is counted


_LastPuts = OrderedDict[tuple[bytes, bytes], dict[bytes, int]]  # (family, row) -> qualifier -> timestamp


class RegionCheck:
    """The check of one open store, to be used once."""

    def __init__(self, store: Store, table: Table, info: RegionInfo, report: Report, place: str = "") -> None:
        """Take ``place``, which names the region in the report if table and folder are not its name for people."""
        self._store = store
        self._info = info
        self._views = views_of(table)
        self._report = report
        self._place = place or f"{table.name} {info.encoded}"
        self._counts: dict[str, int] = {}
        self._outside = 0

    def run(self) -> bool:
        """Check the store.  Returns False if a block could not be read, so that the region needs salvage."""
        whole = True
        for view in self._views.values():
            whole &= self._step(view.space, partial(self._family, view))
        whole &= self._step(VERSIONS_SPACE, self._versions)
        whole &= self._step(LOG_SPACE, self._log)
        whole &= self._step(META_SPACE, self._cursors)
        checked = {view.space for view in self._views.values()} | {VERSIONS_SPACE, LOG_SPACE, META_SPACE}
        for space in sorted(self._store.spaces - checked):
            whole &= self._step(space, partial(self._read, space))
        if self._outside:
            text = f"{self._outside} cells of rows outside its range, which nobody reads"
            self._report.add_finding(Severity.WARNING, self._place, text)
        for kind, count in self._counts.items():
            if count > SAID:
                self._report.add_finding(Severity.ERROR, self._place, f"{kind}: {count - SAID} more")
        return whole

    def _step(self, space: str, work: Callable[[], None]) -> bool:
        if space not in self._store.spaces:
            return True  # never written to since the family was added
        try:
            work()
        except DamagedData as error:
            text = f"damaged table file in {space}: {error.text}"
            self._report.add_finding(Severity.ERROR, self._place, text, "'columnar repair' saves what is readable")
            return False
        except ColumnarError as error:
            self._report.add_finding(Severity.ERROR, self._place, f"cannot read {space}: {error.text}")
            return False
        return True

    def _say(self, kind: str, text: str) -> None:
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count <= SAID:
            self._report.add_finding(Severity.ERROR, self._place, f"{kind}: {text}")

    # --- cells -------------------------------------------------------------------------------------

    def _family(self, view: FamilyView) -> None:
        totals = self._report.totals
        for key, raw in self._store.scan(view.space, b"", None):
            totals["cells"] += 1
            totals["value_bytes"] += len(raw)
            row, qualifier = split_cell_key(key)
            if cell_key(row, qualifier) != key or END_OF_ROW not in key or not row:
                self._say("a key that is none of ours", f"{abbreviate(key)} in {view.space}")
            elif not self._info.contains_row(row):
                self._outside += 1  # left by a split: no reader sees it
            if not _decodes(raw):
                self._say(
                    "a value that does not decode",
                    f"row {abbreviate(row)}, {abbreviate(view.column_prefix + qualifier)}",
                )

    def _versions(self) -> None:
        """Check the older versions.

        Newest and older versions have the same order, but a look-up for each older version is simpler, and these are
        few.
        """
        by_number = {view.number: view for view in self._views.values()}
        totals = self._report.totals
        column, newest = b"", None
        for key, raw in self._store.scan(VERSIONS_SPACE, b"", None):
            totals["older_versions"] += 1
            totals["value_bytes"] += len(raw)
            view = by_number.get(int.from_bytes(key[:2], "big"))
            if view is None or view.max_versions == 1:
                continue  # of a family that is no more or keeps one version now: the next sweep takes it
            if len(key) < 12 or not _decodes(raw):
                self._say("an older version that does not decode", abbreviate(key))
                continue
            name, timestamp = split_version_key(key)
            if key[:-8] != column:
                column, newest = key[:-8], self._store.get(view.space, name)
            row, qualifier = split_cell_key(name)
            where = f"row {abbreviate(row)}, {abbreviate(view.column_prefix + qualifier)}"
            if newest is None:
                self._say("an older version without a newest one", f"{where}, at {timestamp}")
            elif timestamp >= timestamp_of(newest) or timestamp != timestamp_of(raw):
                self._say("an older version with a time that cannot be", f"{where}, at {timestamp}")

    # --- log ---------------------------------------------------------------------------------------

    def _log(self) -> None:
        last: _LastPuts = OrderedDict()
        for key, raw in self._store.scan(LOG_SPACE, b"", None):
            self._report.totals["log_records"] += 1
            try:
                sequence, record = unpack_key(key), unpack_record(raw)
            except (DamagedData, ValueError, struct.error) as error:
                self._say("a change record that does not decode", f"{key.hex()}: {error}")
                continue
            if sequence.origin == self._info.region_id and not self._info.contains_row(record.row):
                self._say("a change record of a row outside the range", f"{abbreviate(record.row)} at {sequence.token}")
            for entry in record.entries:
                if entry.kind is Kind.DELETE_FAMILY:
                    last.pop((entry.family, record.row), None)
                elif entry.kind is Kind.PUT:
                    last.setdefault((entry.family, record.row), {})[entry.qualifier] = entry.timestamp
                else:
                    last.get((entry.family, record.row), {}).pop(entry.qualifier, None)
            while len(last) > LAST_ROWS:
                last.popitem(last=False)
        self._compare(last)

    def _compare(self, last: _LastPuts) -> None:
        """Compare the log's last puts with the cells: a cell may be deleted or expired, but not older than its put."""
        for (family, row), columns in last.items():
            view = self._views.get(family)
            if view is None or view.space not in self._store.spaces or not self._info.contains_row(row):
                continue
            for qualifier, timestamp in columns.items():
                newest = self._store.get(view.space, cell_key(row, qualifier))
                if newest is not None and timestamp_of(newest) < timestamp:
                    where = f"row {abbreviate(row)}, {abbreviate(view.column_prefix + qualifier)}"
                    self._say(
                        "a cell older than what the log tells of it", f"{where}: {timestamp_of(newest)} < {timestamp}"
                    )

    def _read(self, space: str) -> None:
        """Read a space for its checksums only: marks of the server log, which an opening reads, or a dropped family."""
        for _ in self._store.scan(space, b"", None):
            pass

    def _cursors(self) -> None:
        self._read(META_SPACE)
        for name, state in cursors_in(self._store).items():
            self._report.totals["cursors"] += 1
            try:
                unpack_cursor(state)
            except ColumnarError as error:
                self._say("a cursor that does not decode", f"{name}: {error}")


def _decodes(raw: bytes) -> bool:
    try:
        unpack(raw)
    except (ValueError, struct.error):
        return False
    return True
