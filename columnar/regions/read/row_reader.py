"""Read rows from a store: one row, or row after row, as cells a reader sees.

This module returns cells in three shapes: ``StoredCells`` and ``WireCell`` (column, value, timestamp), which the reply
codec packs as they are, and ``model.cell.Cell`` with older versions, for filters.

All iterators of one call are made before any write can come between, so all families of a row are read as of the same
moment (storage promise S3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from columnar.limits import STEP_BYTES
from columnar.model.cell import Cell
from columnar.model.read import ALL_TIME, Projection, ReadSpec
from columnar.regions.read.family_view import FamilyView, kept_versions
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import PAIR_COST, Store
from columnar.storage.layout import (
    CELL,
    END_OF_ROW,
    cell_key,
    escape,
    head_of,
    row_end,
    row_prefix,
    timestamp_of,
    unescape,
    version_end,
    version_prefix,
)
from columnar.storage.overlay import NO_BOUND
from columnar.storage.stored_cells import VALUE_AT, StoredCells

WireCell = tuple[bytes, bytes, int]  # column, value, timestamp
Cells = list[WireCell] | StoredCells  # what a reader without a filter sees of a row, column ascending
Group = list[tuple[bytes, bytes]]  # escaped qualifier, stored newest version; ascending
Pairs = Iterator[tuple[bytes, bytes]]  # keys and values of the engine
RawRow = list[tuple[FamilyView, Group]]
_Head = tuple[bytes, Group, FamilyView, Iterator[tuple[bytes, Group]]]  # a family's next row, and the rows after it
Views = Mapping[bytes, FamilyView]
STEP_COST: Final = STEP_BYTES  # the bound of one step, counted as ``Store.range_within`` does
WIDE: Final[Group] = []  # stands for the cells of a row that costs too much


class RowIsWide(Exception):
    """The row costs more than a step: ``wide_row`` has to read it.  Never reaches a client."""

    def __init__(self, row: bytes) -> None:
        super().__init__(row)
        self.row = row


def fetch_row(store: Store, views: Views, row: bytes, projection: Projection, cost: int = NO_BOUND) -> RawRow:
    """Return the stored newest versions of one row, by family.

    Raises RowIsWide if a family costs more than ``cost``.
    """
    found: RawRow = []
    prefix = row_prefix(row)
    for family, qualifiers in projection.families:
        view = views[family]
        if qualifiers is None:
            cut = len(prefix)
            pairs = store.range_within(view.space, prefix, row_end(row), cost)
            if pairs is None:
                raise RowIsWide(row)
            group = [(key[cut:], raw) for key, raw in pairs]
        elif len(qualifiers) == 1:
            escaped = escape(qualifiers[0])
            raw = store.get(view.space, prefix + escaped)
            group = [(escaped, raw)] if raw is not None else []
        else:
            if len(qualifiers) * PAIR_COST > cost:
                raise RowIsWide(row)
            names = [escape(qualifier) for qualifier in qualifiers]
            raws = store.multi_get(view.space, [prefix + name for name in names])
            group = [(name, raw) for name, raw in zip(names, raws, strict=True) if raw is not None]
        if group:
            found.append((view, group))
    return found


def wants_newest(spec: ReadSpec) -> bool:
    """Tell whether a reader sees exactly the newest cell of each column."""
    return spec.time_range == ALL_TIME and spec.max_versions == 1 and not spec.family_ranges


def visible_cells(
    store: Store, row: bytes, raw_row: RawRow, spec: ReadSpec, now_ms: int, most: int = NO_BOUND
) -> Cells:
    """Return the visible cells as ``wire_cells`` does, or in their stored form if every cell can be sent in it."""
    if not wants_newest(spec):
        return wire_cells(store, row, raw_row, spec, now_ms, most)
    groups: list[tuple[bytes, Group]] = []
    count, size = 0, 0
    for view, group in raw_row:
        if view.ttl_ms is not None:
            return wire_cells(store, row, raw_row, spec, now_ms)
        for qualifier, raw in group:
            if raw[0] != CELL or 0 in qualifier:
                return wire_cells(store, row, raw_row, spec, now_ms)
            size += len(qualifier) + len(raw)
        groups.append((view.column_prefix, group))
        count += len(group)
        size += len(group) * (len(view.column_prefix) - VALUE_AT)
    return StoredCells(groups, count, size)


def wire_cells(
    store: Store, row: bytes, raw_row: RawRow, spec: ReadSpec, now_ms: int, most: int = NO_BOUND
) -> list[WireCell]:
    """Return the cells that a reader without a filter sees: columns ascending, the newest requested versions of each.

    Raises RowIsWide if there are more than ``most``.
    """
    cells: list[WireCell] = []
    newest = wants_newest(spec)
    for view, group in raw_row:
        prefix = view.column_prefix
        for qualifier, raw in group:
            if newest and raw[0] == CELL and view.ttl_ms is None:
                name = unescape(qualifier) if 0 in qualifier else qualifier
                cells.append((prefix + name, raw[VALUE_AT:], timestamp_of(raw)))
            else:
                versions = column_versions(store, view, row, unescape(qualifier), raw, spec, now_ms)
                for cell in islice(versions, spec.max_versions):
                    cells.append((cell.column, cell.value, cell.timestamp))
                if len(cells) > most:
                    raise RowIsWide(row)
    return cells


def filter_cells(
    store: Store, row: bytes, raw_row: RawRow, spec: ReadSpec, now_ms: int, most: int = NO_BOUND
) -> list[Cell]:
    """Return the cells that a filter sees: every version in the time range that its family keeps (observed row 13).

    Raises RowIsWide if there are more than ``most``.
    """
    cells: list[Cell] = []
    for view, group in raw_row:
        for qualifier, raw in group:
            cells += islice(column_versions(store, view, row, unescape(qualifier), raw, spec, now_ms), most + 1)
            if len(cells) > most:
                raise RowIsWide(row)
    return cells


def valueless_cells(
    store: Store, row: bytes, raw_row: RawRow, spec: ReadSpec, now_ms: int, most: int = NO_BOUND
) -> list[Cell]:
    """Return ``filter_cells`` with empty values, for a filter that needs no values: large values are not copied."""
    heads: RawRow = [(view, [(qualifier, head_of(raw)) for qualifier, raw in group]) for view, group in raw_row]
    cells = filter_cells(store, row, heads, spec, now_ms, most)
    if any(view.max_versions > 1 for view, _ in raw_row):
        return [Cell(cell.family, cell.qualifier, cell.timestamp, b"") for cell in cells]
    return cells


def column_versions(
    store: Store, view: FamilyView, row: bytes, qualifier: bytes, raw: bytes, spec: ReadSpec, now_ms: int
) -> Iterator[Cell]:
    """Yield the versions of one column, newest first, that the family keeps and the time range contains.

    Lazy: older versions are read only when the reader gets that far.
    """
    return seen_versions(stored_versions(store, view, row, qualifier, raw), view, qualifier, spec, now_ms)


def seen_versions(
    raws: Iterable[bytes], view: FamilyView, qualifier: bytes, spec: ReadSpec, now_ms: int
) -> Iterator[Cell]:
    """Yield versions as ``column_versions`` does, from the given stored versions (newest first).  Lazy."""
    low, high = spec.range_of(view.name) if spec.family_ranges else spec.time_range
    for stored in kept_versions(raws, view, now_ms):
        if stored.timestamp < low:
            return
        if stored.timestamp < high:
            yield Cell(view.name, qualifier, stored.timestamp, stored.value)


def stored_versions(store: Store, view: FamilyView, row: bytes, qualifier: bytes, raw: bytes) -> Iterator[bytes]:
    """Yield the stored versions of a column, newest first; ``raw``: the newest version.  Lazy."""
    yield raw
    if view.max_versions > 1:
        prefix = version_prefix(view.number, cell_key(row, qualifier))
        for _, older in store.scan(VERSIONS_SPACE, prefix, version_end(prefix)):
            yield older


def read_column(
    store: Store, view: FamilyView, row: bytes, qualifier: bytes, spec: ReadSpec, now_ms: int, most: int = NO_BOUND
) -> list[tuple[bytes, int]]:
    """Return (value, timestamp) of at most ``spec.max_versions`` versions of one column, newest first.

    Raises RowIsWide as ``wire_cells`` does.
    """
    raw = store.get(view.space, cell_key(row, qualifier))
    if raw is None:
        return []
    if spec.max_versions == 1 and spec.time_range == ALL_TIME and raw[0] == CELL and view.ttl_ms is None:
        return [(raw[VALUE_AT:], timestamp_of(raw))]
    found = column_versions(store, view, row, qualifier, raw, spec, now_ms)
    seen = [(cell.value, cell.timestamp) for cell in islice(found, min(spec.max_versions, most + 1))]
    if len(seen) > most:
        raise RowIsWide(row)
    return seen


def newest_seen(
    store: Store, view: FamilyView, row: bytes, qualifier: bytes, raw: bytes, now_ms: int
) -> tuple[bytes, int] | None:
    """Return value and timestamp of the newest version of a column that a reader sees; ``raw``: the stored newest one.

    A version whose own time to live is over hides no older version.
    """
    if raw[0] == CELL and view.ttl_ms is None:
        return raw[VALUE_AT:], timestamp_of(raw)
    for stored in kept_versions(stored_versions(store, view, row, qualifier, raw), view, now_ms):
        return stored.value, stored.timestamp
    return None


def latest_timestamp(store: Store, row: bytes, raw_row: RawRow, now_ms: int) -> int | None:
    """Return the newest timestamp among a row's visible cells, or None if no cell is visible."""
    found = None
    for view, group in raw_row:
        for qualifier, raw in group:
            seen = newest_seen(store, view, row, unescape(qualifier), raw, now_ms)
            if seen is not None and (found is None or seen[1] > found):
                found = seen[1]
    return found


class RowCursor:
    """A cursor over the rows of a key range, in one direction, as of the moment at which it was made."""

    __slots__ = ("_heads", "_pick", "_walked")

    def __init__(self, heads: list[_Head], walked: list[int], *, reverse: bool) -> None:
        """``heads`` has one head for each family with rows; ``walked`` is shared with the heads' generators."""
        self._pick = max if reverse else min
        self._walked = walked
        self._heads = heads

    @staticmethod
    def over(
        store: Store,
        views: Views,
        projection: Projection,
        low: bytes,
        high: bytes | None,
        *,
        reverse: bool,
        cost: int = NO_BOUND,
    ) -> RowCursor:
        """Return a cursor over ``low <= key < high`` in cell keys, with ``reverse`` downwards from ``high``.

        ``cost`` is the most that the cells of a row may cost in one family.
        """
        heads: list[_Head] = []
        walked = [0]
        for family, qualifiers in projection.families:
            view = views[family]
            items = store.scan_reverse(view.space, low, high) if reverse else store.scan(view.space, low, high)
            wanted = None if qualifiers is None else frozenset(escape(qualifier) for qualifier in qualifiers)
            groups = _groups(items, wanted, walked, cost, reverse=reverse)
            head = next(groups, None)
            if head is not None:
                heads.append((head[0], head[1], view, groups))
        return RowCursor(heads, walked, reverse=reverse)

    @property
    def walked(self) -> int:
        """Stored cells passed so far, including cells that the scan does not want."""
        return self._walked[0]

    def _advance(self, view: FamilyView, groups: Iterator[tuple[bytes, Group]]) -> None:
        head = next(groups, None)
        if head is not None:
            self._heads.append((head[0], head[1], view, groups))

    def next_row(self) -> tuple[bytes, RawRow] | None:
        """Return (row, its stored newest versions by family), or None at the end of the range.

        A row without a wanted cell is returned with an empty group: a step of a scan must be able to end there.  Raises
        RowIsWide, which ends the cursor, if a family of the row costs more than one row may.
        """
        if not self._heads:
            return None
        if len(self._heads) == 1:
            escaped, group, view, groups = self._heads.pop()
            if group is WIDE:
                raise RowIsWide(unescape(escaped))
            self._advance(view, groups)
            return unescape(escaped), [(view, group)]
        escaped = self._pick(head[0] for head in self._heads)
        taken = [head for head in self._heads if head[0] == escaped]
        for head in taken:
            if head[1] is WIDE:
                raise RowIsWide(unescape(escaped))
        self._heads = [head for head in self._heads if head[0] != escaped]
        for _, _, view, groups in taken:
            self._advance(view, groups)
        taken.sort(key=lambda head: head[2].name)
        return unescape(escaped), [(view, group) for _, group, view, _ in taken]


def _groups(
    items: Iterator[tuple[bytes, bytes]],
    wanted: frozenset[bytes] | None,
    walked: list[int],
    cost: int,
    *,
    reverse: bool,
) -> Iterator[tuple[bytes, Group]]:
    """Group a family's cells by row, up to the first row that costs more than ``cost`` (WIDE).

    Adds the number of cells read to ``walked``.  This is no method: a method's generator and its cursor would refer to
    each other, and an unfinished generator would keep its store open until the garbage collector came by.
    """
    prefix, cut, group, passed = b"", 0, [], 0  # type: bytes, int, Group, int
    left = cost
    for key, raw in items:
        if not (cut and key.startswith(prefix)):
            if cut:
                walked[0] += passed
                yield prefix[:-2], group[::-1] if reverse else group
            cut = key.index(END_OF_ROW) + 2
            prefix, group, passed, left = key[:cut], [], 0, cost
        passed += 1
        left -= PAIR_COST + len(raw)
        if left < 0 and passed > 1:
            walked[0] += passed
            yield prefix[:-2], WIDE
            return
        qualifier = key[cut:]
        if wanted is None or qualifier in wanted:
            group.append((qualifier, raw))
    if cut:
        walked[0] += passed
        yield prefix[:-2], group[::-1] if reverse else group
