"""The rows of a store that are none of its region's: known by a mark, removed at the opening.

A daughter of a split begins as a copy of the whole parent; a region into which another is being merged
holds the other's rows before they are its own.  Readers never see them, because every walk is cut to the
region's rows; but they must be gone before the region can ever grow over them.  So whoever is about to
make such a store puts the mark ``clip`` into ``meta`` first:

    meta  clip -> 01                   rows outside the region's range may be here

Invariant I1: rows outside the range of a region stand in its store only while the mark does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from columnar.model.region_info import RegionInfo
from columnar.regions.family_view import FamilyView
from columnar.regions.log_retention import META_SPACE
from columnar.regions.row_draft import VERSIONS_SPACE
from columnar.storage.api import Store
from columnar.storage.layout import range_start

CLIP_MARK: Final = b"clip"
_NUMBER_BYTES: Final = 2

Span = tuple[str, bytes, bytes]  # space, first key, first key after
OpenSpan = tuple[str, bytes, bytes | None]  # None: to the end


def mark_for_clipping(store: Store) -> None:
    """Before rows outside the range come in: a crash keeps a prefix, so the mark is there when they are."""
    batch = store.batch()
    batch.put(META_SPACE, CLIP_MARK, b"\x01")
    store.write(batch)


def clip_where_marked(store: Store, views: Mapping[bytes, FamilyView], info: RegionInfo) -> None:
    """Remove the rows that are not the region's, if there may be any.  A few range deletes, whatever their number."""
    if store.get(META_SPACE, CLIP_MARK) is not None:
        clip(store, views, info)


def clip(store: Store, views: Mapping[bytes, FamilyView], info: RegionInfo) -> None:
    batch = store.batch()
    for span in foreign_spans(store, views, info):
        batch.delete_range(*span)
    batch.delete(META_SPACE, CLIP_MARK)
    store.write(batch)


def foreign_spans(store: Store, views: Mapping[bytes, FamilyView], info: RegionInfo) -> list[Span]:
    """Key ranges in which there are rows below or above the region's.  Two seeks for each family and its versions."""
    found = []
    for space, first, last in row_spans(views, b"", b""):
        below = (space, first, first + range_start(info.start))
        if info.start and _has_any(store, below):
            found.append(below)
        if info.end:
            found += _above(store, space, first + range_start(info.end), last)
    return found


def _above(store: Store, space: str, first: bytes, last: bytes | None) -> Iterator[Span]:
    highest = next(iter(store.scan_back(space, first, last)), None)
    if highest is not None:
        yield space, first, highest[0] + b"\x00"


def _has_any(store: Store, span: Span) -> bool:
    return next(iter(store.scan(*span)), None) is not None


def outside_spans(views: Mapping[bytes, FamilyView], info: RegionInfo) -> list[OpenSpan]:
    """Where rows outside the region's range would be, whether there are any or not."""
    below = row_spans(views, b"", info.start) if info.start else []
    return below + (row_spans(views, info.end, b"") if info.end else [])


def row_spans(views: Mapping[bytes, FamilyView], start: bytes, end: bytes) -> list[OpenSpan]:
    """Of the rows from ``start`` to ``end`` (empty: to the last), newest and older versions.

    The older versions of a family begin with its number.
    """
    spans: list[OpenSpan] = []
    for view in views.values():
        number = view.number.to_bytes(_NUMBER_BYTES, "big")
        following = (view.number + 1).to_bytes(_NUMBER_BYTES, "big")
        stop = range_start(end) if end else None
        spans.append((view.space, range_start(start), stop))
        spans.append((VERSIONS_SPACE, number + range_start(start), number + stop if stop is not None else following))
    return spans
