"""(pure) A family's schema as the hot path needs it, and the choice of the stored versions that a reader sees.

The rule, in this order (HBase after a major compaction; design 5):
    1. delete markers and cells past their own time to live are invisible;
    2. the family keeps the VERSIONS newest visible versions, without versions that are past the family's time
       to live and not among the MIN_VERSIONS newest;
    3. the reader sees the newest ``max_versions`` of the kept versions inside the time range of the read.

Knows nothing of the source of versions: callers pass them, newest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from columnar.errors import NoSuchColumnFamily
from columnar.model.schema import FOR_EVER, Family, Table
from columnar.storage.layout import CELL, MARKER, Stored, unpack


@dataclass(frozen=True, slots=True)
class FamilyView:
    name: bytes
    column_prefix: bytes  # ``family:``
    space: str
    number: int
    max_versions: int
    ttl_ms: int | None
    min_versions: int = 0


class Views(dict[bytes, FamilyView]):
    """The views by family name.

    Raises NoSuchColumnFamily for a missing family: it was dropped after the request was checked.
    """

    def __init__(self, table: str, views: dict[bytes, FamilyView]) -> None:
        super().__init__(views)
        self.table = table

    def __missing__(self, name: bytes) -> FamilyView:
        raise NoSuchColumnFamily(name, self.table)


def view_of(family: Family) -> FamilyView:
    ttl = family.ttl_s
    return FamilyView(
        family.bytes_name,
        family.bytes_name + b":",
        family.space,
        family.number,
        family.max_versions,
        None if ttl is None or ttl >= FOR_EVER else ttl * 1000,
        family.min_versions,
    )


def views_of(table: Table) -> Views:
    return Views(table.name, {family.bytes_name: view_of(family) for family in table.families})


def is_alive(stored: Stored, view: FamilyView, now_ms: int, kept: int) -> bool:
    """Tell whether the version is neither a marker nor past its time to live.

    ``kept`` is the number of newer alive versions of the same column (MIN_VERSIONS).
    """
    if stored.kind == MARKER or (stored.ttl_ms is not None and stored.timestamp + stored.ttl_ms <= now_ms):
        return False
    return view.ttl_ms is None or kept < view.min_versions or stored.timestamp + view.ttl_ms > now_ms


def visible_value(raw: bytes | None, view: FamilyView, now_ms: int) -> bytes | None:
    """Return the value of a newest version, or None if a reader does not see it."""
    if raw is None:
        return None
    if raw[0] == CELL and view.ttl_ms is None:
        return raw[17:]
    stored = unpack(raw)
    return stored.value if is_alive(stored, view, now_ms, 0) else None


def kept_versions(raws: Iterable[bytes], view: FamilyView, now_ms: int) -> Iterator[Stored]:
    """Apply rules 1 and 2 to one column's stored versions, newest first."""
    kept = 0
    for raw in raws:
        stored = unpack(raw)
        if is_alive(stored, view, now_ms, kept):
            yield stored
            kept += 1
            if kept >= view.max_versions:
                return
