"""Key ranges of rows: the spans of a store's spaces that contain the rows of a range, and their removal.

Invariant I1: the store of a region that is served contains rows of its range only; ``clip`` ensures that
before a copy of another region's store is served as a region with a narrower range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from columnar.model.region_info import RegionInfo
from columnar.regions.read.family_view import FamilyView
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import Batch, Store
from columnar.storage.layout import range_start

_NUMBER_BYTES: Final = 2

Span = tuple[str, bytes, bytes | None]  # space, first key, first key after; None: to the end


def clip(store: Store, views: Mapping[bytes, FamilyView], info: RegionInfo) -> None:
    """Remove the rows that are not the region's.  A few range deletes, whatever their number."""
    batch = store.batch()
    delete_spans(store, batch, outside_spans(views, info), non_empty_only=True)
    store.write(batch)


def delete_spans(store: Store, batch: Batch, spans: Iterable[Span], *, non_empty_only: bool = False) -> None:
    """Add a range delete for each span; ``non_empty_only``: only for spans that contain a key.

    A span without an end is read from its last key backwards, as a range delete needs an end.  Reading walks over
    deletes that were not compacted yet.
    """
    for space, first, stop in spans:
        if stop is None or non_empty_only:
            last = next(iter(store.scan_reverse(space, first, stop)), None)
            if last is None:
                continue
            stop = last[0] + b"\x00"
        batch.delete_range(space, first, stop)


def row_after(row: bytes) -> bytes:
    """The least row above ``row``: the end of a range that includes it."""
    return row + b"\x00"


def outside_spans(views: Mapping[bytes, FamilyView], info: RegionInfo) -> list[Span]:
    """Yield the spans of rows outside the region's range, whether there are any or not."""
    below = row_spans(views, b"", info.start) if info.start else []
    return below + (row_spans(views, info.end, b"") if info.end else [])


def row_spans(views: Mapping[bytes, FamilyView], start: bytes, end: bytes) -> list[Span]:
    """Yield the spans of the rows from ``start`` to ``end`` (empty: to the last), newest and older versions.

    The keys of a family's older versions begin with its number.
    """
    spans: list[Span] = []
    stop = range_start(end) if end else None
    for view in views.values():
        number = view.number.to_bytes(_NUMBER_BYTES, "big")
        following = (view.number + 1).to_bytes(_NUMBER_BYTES, "big")
        spans.append((view.space, range_start(start), stop))
        spans.append((VERSIONS_SPACE, number + range_start(start), following if stop is None else number + stop))
    return spans
