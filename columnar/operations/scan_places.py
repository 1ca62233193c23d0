"""(pure) Places of a scan: its beginning, the next keys of a region, and the places past a region or a range.

``spec`` is the scan's specification.  Places advance forwards, or in a reversed scan backwards.

Knows nothing of stores, rows and filters.
"""

from __future__ import annotations

from columnar.cluster.row_forms import Place
from columnar.model.read import ScanSpec
from columnar.model.region_info import RegionInfo
from columnar.model.row_ranges import RowRange, RowRanges
from columnar.storage.layout import range_start, row_end, row_prefix


def first_place(spec: ScanSpec) -> Place:
    row = spec.start or (None if spec.reversed else b"")
    return Place(row, False)


def is_one_row(spec: ScanSpec) -> bool:
    return bool(spec.start) and spec.start == spec.stop


def is_after_end(spec: ScanSpec, place: Place) -> bool:
    """Return whether a place, which must not be the scan's first, is past the scan's last row."""
    row, stop = place.row, spec.stop
    if is_one_row(spec):
        return True
    if not stop or row is None:
        return False
    return row <= stop if spec.reversed else row >= stop


def entered(spec: ScanSpec, place: Place, ranges: RowRanges) -> tuple[RowRange | None, Place | None]:
    """Return the next range of rows, and the place in that range or None if the scan is over."""
    moved, row = None, place.row
    if spec.reversed:
        bound = None if row is None else row if place.is_after_row else row + b"\0"
        found = ranges.last_below(bound)
        if found is not None and found.stop is not None and (bound is None or found.stop < bound):
            moved = Place(found.stop, True)
    else:
        assert row is not None, "a forward scan begins at a row"
        found = ranges.next_from(row + b"\0" if place.is_after_row else row)
        if found is not None and found.start > row:
            moved = Place(found.start, False)
    if found is None or (moved is not None and is_after_end(spec, moved)):
        return found, None
    return found, moved or place


def place_after_range(spec: ScanSpec, rows: RowRange | None) -> Place | None:
    """Return the place past the rows; None at the table's end, or if there are no such rows."""
    if rows is None or is_one_row(spec):
        return None
    if spec.reversed:
        return Place(rows.start, True) if rows.start else None
    return Place(rows.stop, False) if rows.stop is not None else None


def place_after_region(spec: ScanSpec, info: RegionInfo, rows: RowRange | None) -> Place | None:
    """Return the place past the region, or past ``rows`` if they end within it; None if the scan is over."""
    if is_one_row(spec):
        return None
    past = place_after_range(spec, rows)
    if past is not None and _is_in(past, info):
        return None if is_after_end(spec, past) else past
    stop = spec.stop
    if spec.reversed:
        ended = not info.start or bool(stop and info.start <= stop)
        return None if ended else Place(info.start, True)
    ended = not info.end or bool(stop and info.end >= stop)
    return None if ended else Place(info.end, False)


def key_bounds(spec: ScanSpec, place: Place, info: RegionInfo, rows: RowRange | None) -> tuple[bytes, bytes | None]:
    """Return the half-open bounds (low, high) of the region's keys to scan next; ``high`` None means to the end."""
    row = place.row
    low: bytes
    high: bytes | None
    if spec.reversed:
        low = row_prefix(spec.start) if is_one_row(spec) else row_end(spec.stop) if spec.stop else b""
        high = None if row is None else row_prefix(row) if place.is_after_row else row_end(row)
    else:
        assert row is not None, "a forward scan begins at a row"
        low = row_end(row) if place.is_after_row else range_start(row)
        high = row_end(spec.start) if is_one_row(spec) else range_start(spec.stop) if spec.stop else None
    low, high = _narrowed(low, high, info.start, info.end or None)
    return _narrowed(low, high, *rows) if rows is not None else (low, high)


def _narrowed(low: bytes, high: bytes | None, start: bytes, stop: bytes | None) -> tuple[bytes, bytes | None]:
    """Narrow the half-open bounds ``low`` and ``high`` of keys to the rows ``start <= row < stop``."""
    low = max(low, range_start(start))
    if stop is not None:
        end = range_start(stop)
        high = end if high is None else min(high, end)
    return low, high


def _is_in(past: Place, info: RegionInfo) -> bool:
    """Return whether the region has rows at the place, in the scan's direction."""
    row = past.row or b""
    return row > info.start if past.is_after_row else not info.end or row < info.end
