"""The row that divides a region in two halves of about the same bytes, found from its store in steps.

A small region is read completely.  A large region is not read: the engine knows the first key, the last key and the
size of each of its files, and a few seeks between the two keys find rows that exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import islice, pairwise
from typing import Final, NamedTuple

from columnar.limits import MIB, STEP_CELLS
from columnar.model.region_info import RegionInfo
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.family_view import FamilyView
from columnar.regions.region import Region
from columnar.storage.api import FileSpan, Store
from columnar.storage.layout import END_OF_ROW, range_start, split_cell_key

WALKED_BYTES: Final = 16 * MIB  # a region up to this size is read from end to end, in steps: some 0.1 s
WALKED_ROWS: Final = 500_000  # of a region whose files show no two rows; the middle of the rows read is taken then
SEEKS_PER_FILE: Final = 16
FILES_SOUGHT_IN: Final = 256
_KEY_BYTES: Final = 24  # of a key that are taken as a number, after the common prefix of the file's keys


class Weight(NamedTuple):
    """About ``size_bytes`` of the region are at ``row``, or between it and the row of the next Weight."""

    row: bytes
    size_bytes: int


async def middle_row(region: Region) -> bytes | None:
    """The first row of the second half; None: the region has fewer than two rows."""
    weights: list[Weight] = []
    if region.store.size_bytes() > WALKED_BYTES:
        weights = _from_files(region)
    found = middle_of(weights, region.info)
    if found is None:
        found = middle_of(await _walked(region), region.info)
    return found


def middle_of(weights: list[Weight], info: RegionInfo) -> bytes | None:
    """The row of a weight that divides the bytes most evenly, never the region's first row."""
    by_row: dict[bytes, int] = {}
    for row, size in weights:
        if info.contains_row(row):
            by_row[row] = by_row.get(row, 0) + size
    rows = sorted(by_row)
    total, before, best = sum(by_row.values()), 0, None
    for earlier, row in pairwise(rows):
        before += by_row[earlier]
        distance = abs(total - 2 * before)
        if row > info.start and (best is None or distance < best[0]):
            best = (distance, row)
    return best[1] if best is not None else None


async def _walked(region: Region) -> list[Weight]:
    by_row: dict[bytes, int] = {}
    for view in region.views.values():
        place: bytes | None = range_start(region.info.start)
        while place is not None and len(by_row) < WALKED_ROWS:
            place = await retry_until_ready(partial(_walk_step, region, view, place, by_row))
            await asyncio.sleep(0)
    return [Weight(row, size) for row, size in by_row.items()]


def _walk_step(region: Region, view: FamilyView, place: bytes, by_row: dict[bytes, int]) -> bytes | None:
    stop = range_start(region.info.end) if region.info.end else None
    key = b""
    for key, raw in islice(region.store.scan(view.space, place, stop), STEP_CELLS):
        row = split_cell_key(key)[0]
        by_row[row] = by_row.get(row, 0) + len(key) + len(raw)
    return key + b"\x00" if key else None


def _from_files(region: Region) -> list[Weight]:
    found: list[Weight] = []
    for file in _family_files(region.store.files())[:FILES_SOUGHT_IN]:
        rows = sorted({row for key in _between(file) for row in _rows_at(region, key)})
        found += [Weight(row, file.size_bytes // len(rows)) for row in rows]
    return found


def _family_files(files: list[FileSpan]) -> list[FileSpan]:
    """Files of families' own spaces, largest first, known by their keys: the engine does not name a file's space.

    A cell's key contains the end of its row and never begins with 00 followed by anything but FF; keys of older
    versions and of the log begin with 00 and another byte, keys of ``meta`` contain no end of a row.
    """
    cells = [
        file for file in files if END_OF_ROW in file.first and (file.first[:1] != b"\x00" or file.first[1:2] == b"\xff")
    ]
    return sorted(cells, key=lambda file: file.size_bytes, reverse=True)


def _between(file: FileSpan) -> Iterator[bytes]:
    """The file's first key and keys after it, evenly spaced as numbers between its first and last key."""
    common = 0
    while common < min(len(file.first), len(file.last)) and file.first[common] == file.last[common]:
        common += 1
    low, high = (
        int.from_bytes(key[common : common + _KEY_BYTES].ljust(_KEY_BYTES, b"\x00"), "big")
        for key in (file.first, file.last)
    )
    yield file.first
    for step in range(1, SEEKS_PER_FILE):
        number = low + (high - low) * step // SEEKS_PER_FILE
        yield file.first[:common] + number.to_bytes(_KEY_BYTES, "big")


def _rows_at(region: Region, key: bytes) -> Iterator[bytes]:
    """The first row at or after ``key`` in each family."""
    low, high = range_start(region.info.start), range_start(region.info.end) if region.info.end else None
    for view in region.views.values():
        found = _first(region.store, view.space, max(low, key), high)
        if found is not None:
            yield split_cell_key(found)[0]


def _first(store: Store, space: str, start: bytes, stop: bytes | None) -> bytes | None:
    found = next(iter(store.scan(space, start, stop)), None)
    return found[0] if found is not None else None
