"""Where in a store the rows of a range stand, and how those outside it are removed.

Invariant I1: the store of a region that is served holds rows of its range only; ``clip`` sees to that
before a copy of another region's store is served as a region with a narrower range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from columnar.model.region_info import RegionInfo
from columnar.regions.family_view import FamilyView
from columnar.regions.row_draft import VERSIONS_SPACE
from columnar.storage.api import Store
from columnar.storage.layout import range_start

_NUMBER_BYTES: Final = 2

Span = tuple[str, bytes, bytes | None]  # space, first key, first key after; None: to the end


def clip(store: Store, views: Mapping[bytes, FamilyView], info: RegionInfo) -> None:
    """Remove the rows that are not the region's.  A few range deletes, whatever their number."""
    batch = store.batch()
    for space, first, stop in outside_spans(views, info):
        last = next(iter(store.scan_back(space, first, stop)), None)
        if last is not None:
            batch.delete_range(space, first, last[0] + b"\x00")
    store.write(batch)


def outside_spans(views: Mapping[bytes, FamilyView], info: RegionInfo) -> list[Span]:
    """Where rows outside the region's range would be, whether there are any or not."""
    below = row_spans(views, b"", info.start) if info.start else []
    return below + (row_spans(views, info.end, b"") if info.end else [])


def row_spans(views: Mapping[bytes, FamilyView], start: bytes, end: bytes) -> list[Span]:
    """Of the rows from ``start`` to ``end`` (empty: to the last), newest and older versions.

    The older versions of a family begin with its number.
    """
    spans: list[Span] = []
    stop = range_start(end) if end else None
    for view in views.values():
        number = view.number.to_bytes(_NUMBER_BYTES, "big")
        following = (view.number + 1).to_bytes(_NUMBER_BYTES, "big")
        spans.append((view.space, range_start(start), stop))
        spans.append((VERSIONS_SPACE, number + range_start(start), following if stop is None else number + stop))
    return spans
