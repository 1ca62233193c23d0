"""The key spaces of a region's store: the options of each, and their adaption to a change of the schema.

Invariants:
    I1. A space ``f:...`` that no family of the schema owns is invisible to readers: it is
        dropped when its family is, or at the next opening after a crash.
    I2. Older versions exist only of families that keep more than one version.  They are removed when
        VERSIONS is lowered to 1, or at the next opening, so that a later raise does not restore deleted versions.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, Literal

from columnar.model.schema import COMPRESSIONS, Family, Table
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import DEFAULT_OPTIONS, SpaceOptions, Store

_Compression = Literal["none", "snappy", "lz4", "zstd"]
_COMPRESSIONS: Final[dict[str, _Compression]] = {
    "NONE": "none",
    "SNAPPY": "snappy",
    "LZ4": "lz4",
    "GZ": "zstd",  # as small, in a fraction of the time; HBase's clients name it because it is always there
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
    """Older versions of all families share one space: it has the strongest compression among those that keep any."""
    options = {family.space: options_of_family(family) for family in table.families}
    keeping = [family.compression for family in table.families if family.max_versions > 1]
    if keeping:
        options[VERSIONS_SPACE] = SpaceOptions(_COMPRESSIONS[max(keeping, key=COMPRESSIONS.index)])
    return options


def follow_spaces(store: Store, before: Table, after: Table) -> None:
    """The spaces are those of ``after``.  How they are kept may still be as before (``untuned``)."""
    wanted = options_of_spaces(after)
    for name in wanted.keys() - store.spaces:
        store.add_space(name, wanted[name])
    kept = {family.space for family in after.families}
    for family in before.families:
        if family.space not in kept:
            store.drop_space(family.space)
    _drop_versions(store, after)


def untuned(store: Store, table: Table) -> dict[str, SpaceOptions]:
    """Spaces that are not kept as the schema says, and how they should be."""
    wanted = {VERSIONS_SPACE: DEFAULT_OPTIONS, **options_of_spaces(table)}
    return {name: one for name, one in wanted.items() if name in store.spaces and store.options_of(name) != one}


def drop_leftovers(store: Store, table: Table) -> None:
    """At an opening: what a crash, or a thread at work, left of families that are no more (I1, I2)."""
    owned = {family.space for family in table.families}
    for name in store.spaces:
        if name.startswith(_FAMILY_SPACES) and name not in owned:
            store.drop_space(name)
    _drop_versions(store, table)


def _drop_versions(store: Store, table: Table) -> None:
    """Older versions under every number that keeps none."""
    if next(iter(store.scan(VERSIONS_SPACE, b"", None)), None) is None:
        return
    keeping = sorted(family.number for family in table.families if family.max_versions > 1)
    batch = store.batch()
    for low, high in pairwise([-1, *keeping, _NUMBERS]):
        start, stop = _number(low + 1), _number(high)
        if next(iter(store.scan(VERSIONS_SPACE, start, stop)), None) is not None:
            batch.delete_range(VERSIONS_SPACE, start, stop)
    if batch.size_bytes():
        store.write(batch)


def _number(number: int) -> bytes:
    """Return the key prefix of the versions of a family; the last number plus one gives a prefix above every key."""
    return number.to_bytes(2, "big") if number < _NUMBERS else b"\xff\xff\xff"
