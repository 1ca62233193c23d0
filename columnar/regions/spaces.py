"""The key spaces of a region's store: the options of each, their adaptation to a new schema, and the spans of rows.

Invariants:
    I1. A space ``f:...`` that no family of the schema owns is invisible to readers: it is dropped with its family, or
        at the next opening after a crash.
    I2. Older versions exist only of families that keep more than one version.  Older versions are removed when VERSIONS
        is lowered to 1, or at the next opening, so that a later raise does not restore deleted versions.
    I3. The store of a served region contains only rows of the region's range; ``clip`` ensures this before a copy of
        another region's store is served as a region with a narrower range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final, Literal

from columnar.model.region_info import RegionInfo
from columnar.model.schema import COMPRESSIONS, Family, Table
from columnar.regions.read.family_view import FamilyView
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import DEFAULT_OPTIONS, Batch, SpaceOptions, Store
from columnar.storage.layout import range_start

_Compression = Literal["none", "snappy", "lz4", "zstd"]
_COMPRESSIONS: Final[dict[str, _Compression]] = {
    "NONE": "none",
    "SNAPPY": "snappy",
    "LZ4": "lz4",
    "GZ": "zstd",  # as small, in a fraction of the time; HBase's clients name GZ because HBase always has it
    "ZSTD": "zstd",
}
_FAMILY_SPACES: Final = "f:"
_NUMBERS: Final = 1 << 16


def options_of_family(family: Family) -> SpaceOptions:
    cache: Literal["shared", "reserved", "none"] = "reserved" if family.in_memory else "shared"
    return SpaceOptions(
        compression=_COMPRESSIONS[family.compression],
        bloom=family.uses_bloom_filter,
        block_bytes=family.block_size,
        cache=cache if family.uses_block_cache else "none",
    )


def options_of_spaces(table: Table) -> dict[str, SpaceOptions]:
    """Return the options of each space.

    The older versions of all families share one space.  This space has the strongest compression among the families
    that keep older versions.
    """
    options = {family.space: options_of_family(family) for family in table.families}
    keeping = [family.compression for family in table.families if family.max_versions > 1]
    if keeping:
        options[VERSIONS_SPACE] = SpaceOptions(_COMPRESSIONS[max(keeping, key=COMPRESSIONS.index)])
    return options


def follow_spaces(store: Store, before: Table, after: Table) -> None:
    """Add and drop spaces, so that the store has the spaces of ``after``.

    The options may still differ (``untuned``).
    """
    wanted = options_of_spaces(after)
    for name in wanted.keys() - store.spaces:
        store.add_space(name, wanted[name])
    kept = {family.space for family in after.families}
    for family in before.families:
        if family.space not in kept:
            store.drop_space(family.space)
    _drop_versions(store, after)


def untuned(store: Store, table: Table) -> dict[str, SpaceOptions]:
    """Return the spaces whose options differ from the schema, with the options that the schema wants."""
    wanted = {VERSIONS_SPACE: DEFAULT_OPTIONS, **options_of_spaces(table)}
    return {name: one for name, one in wanted.items() if name in store.spaces and store.options_of(name) != one}


def leftovers(store: Store, table: Table) -> list[str]:
    """Return the spaces of dropped families."""
    owned = {family.space for family in table.families}
    return [name for name in store.spaces if name.startswith(_FAMILY_SPACES) and name not in owned]


def drop_leftovers(store: Store, table: Table) -> None:
    """Remove, at an opening, data of dropped families that a crash or a running thread left (I1, I2)."""
    for name in leftovers(store, table):
        store.drop_space(name)
    _drop_versions(store, table)


def _drop_versions(store: Store, table: Table) -> None:
    """Remove the older versions of dropped families and of families that keep none."""
    if next(iter(store.scan(VERSIONS_SPACE, b"", None)), None) is None:
        return
    keeping = sorted(family.number for family in table.families if family.max_versions > 1)
    batch = store.batch()
    for low, high in pairwise([-1, *keeping, _NUMBERS]):
        start, stop = _number(low + 1), _number(high)
        if next(iter(store.scan(VERSIONS_SPACE, start, stop)), None) is not None:
            batch.delete_range(VERSIONS_SPACE, start, stop)
    if batch.size_bytes():
        store.write_batch(batch)


def _number(number: int) -> bytes:
    """Return the key prefix of the versions of a family; the last number plus one gives a prefix above every key."""
    return number.to_bytes(2, "big") if number < _NUMBERS else b"\xff\xff\xff"


_NUMBER_BYTES: Final = 2

Span = tuple[str, bytes, bytes | None]  # space, first key, first key after; None: to the end


def clip(store: Store, views: Mapping[bytes, FamilyView], info: RegionInfo) -> None:
    """Remove the rows outside the region's range.  Costs a few range deletes, whatever the number of rows."""
    batch = store.batch()
    delete_spans(store, batch, outside_spans(views, info), non_empty_only=True)
    store.write_batch(batch)


def delete_spans(store: Store, batch: Batch, spans: Iterable[Span], *, non_empty_only: bool = False) -> None:
    """Add a range delete for each span; with ``non_empty_only`` only for each span that contains a key.

    A range delete needs an end, so the last key of a span without an end is read first.  This read walks over deletes
    that are not compacted yet.
    """
    for space, first, stop in spans:
        if stop is None or non_empty_only:
            last = next(iter(store.scan_reverse(space, first, stop)), None)
            if last is None:
                continue
            stop = last[0] + b"\x00"
        batch.delete_range(space, first, stop)


def row_after(row: bytes) -> bytes:
    """Return the least row above ``row``: the end of a range that includes ``row``."""
    return row + b"\x00"


def outside_spans(views: Mapping[bytes, FamilyView], info: RegionInfo) -> list[Span]:
    """Return the spans of rows outside the region's range, whether such rows exist or not."""
    below = row_spans(views, b"", info.start) if info.start else []
    return below + (row_spans(views, info.end, b"") if info.end else [])


def row_spans(views: Mapping[bytes, FamilyView], start: bytes, end: bytes) -> list[Span]:
    """Return the spans of the rows from ``start`` to ``end`` (empty: to the last), of newest and older versions.

    The keys of a family's older versions begin with the family's number.
    """
    spans: list[Span] = []
    stop = range_start(end) if end else None
    for view in views.values():
        number = view.number.to_bytes(_NUMBER_BYTES, "big")
        following = (view.number + 1).to_bytes(_NUMBER_BYTES, "big")
        spans.append((view.space, range_start(start), stop))
        spans.append((VERSIONS_SPACE, number + range_start(start), following if stop is None else number + stop))
    return spans
