"""A row that costs more than one step: it is read in slices, as of the moment at which the reading began.

All iterators, also those of older versions, are made at the beginning (storage promise S3), so no iterator sees a write
between two slices.  The iterators keep the region's store open, so the region ends them before it is closed; the caller
then reads the row again from its present region.

Knows nothing of replies, filters and loop iterations (``operations.wide_reads``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from columnar.errors import ColumnarError
from columnar.model.read import ReadSpec
from columnar.regions.read.family_view import FamilyView
from columnar.regions.read.row_reader import Cells, Group, Pairs, WireCell, seen_versions, wants_newest
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import PAIR_COST
from columnar.storage.layout import (
    CELL,
    cell_key,
    escape,
    row_end,
    row_prefix,
    row_versions_range,
    unescape,
    version_end,
    version_prefix,
)
from columnar.storage.stored_cells import VALUE_AT, StoredCells

if TYPE_CHECKING:
    from columnar.regions.region import Region


class ReadingEnded(ColumnarError):
    """The region was closed during the reading: the row is to be read again."""


class _Family:
    """The unread rest of the row in one family."""

    def __init__(self, view: FamilyView, wanted: frozenset[bytes] | None, pairs: Pairs, older: Pairs) -> None:
        """``wanted`` are escaped qualifiers; ``older`` yields the older versions of all columns."""
        self.view = view
        self.wanted = wanted
        self.pairs = pairs
        self.older = older
        self.ahead: tuple[bytes, bytes] | None = None  # an older version, read already, of a later column

    def versions(self, row: bytes, qualifier: bytes, newest: bytes) -> Iterator[bytes]:
        """Yield the versions of one column, newest first.  Columns must be requested in ascending order."""
        yield newest
        prefix = version_prefix(self.view.number, cell_key(row, qualifier))
        end = version_end(prefix)
        found = self.ahead if self.ahead is not None else next(self.older, None)
        while found is not None and found[0] < end:
            if found[0] >= prefix:  # else the reader of its column stopped before it
                yield found[1]
            found = next(self.older, None)
        self.ahead = found


def _family(region: Region, row: bytes, family: bytes, qualifiers: tuple[bytes, ...] | None) -> _Family:
    store, view = region.store, region.views[family]
    wanted = None if qualifiers is None else frozenset(escape(one) for one in qualifiers)
    pairs = store.scan(view.space, row_prefix(row), row_end(row))
    older: Pairs = iter(())
    if view.max_versions > 1:
        older = store.scan(VERSIONS_SPACE, *row_versions_range(view.number, row))
    return _Family(view, wanted, pairs, older)


class WideRow:
    """The reading of one wide row.  Owned by the loop; one use."""

    def __init__(
        self, region: Region, row: bytes, spec: ReadSpec, families: Iterable[_Family], *, all_versions: bool
    ) -> None:
        """Called by ``begun``."""
        self._region = region
        self._row = row
        self._cut = len(row_prefix(row))
        self._spec = spec
        self._now_ms = region.now_ms
        self._most = (1 << 60) if all_versions else spec.max_versions
        self._is_newest = wants_newest(spec) and not all_versions
        self._families = deque(families)
        self._has_ended = False

    @staticmethod
    def begun(region: Region, row: bytes, spec: ReadSpec, *, all_versions: bool) -> WideRow:
        """Begin to read a row; the caller must call ``end`` afterwards.

        With ``all_versions`` read every version in the time range that its family keeps, as filters see them.
        """
        families = [_family(region, row, family, names) for family, names in spec.projection.families]
        made = WideRow(region, row, spec, families, all_versions=all_versions)
        region.on_leave.add(made.end)  # its iterators keep the store open
        region.count_read()
        return made

    @property
    def is_done(self) -> bool:
        return not self._families and not self._has_ended

    def take(self, cost: int) -> Cells:
        """Return the visible cells, columns ascending, of the next pairs that cost ``cost``; empty if none is visible.

        Raises ReadingEnded if the region was closed.
        """
        if self._has_ended:
            raise ReadingEnded("the region was closed")
        family = self._families[0]
        group, left, is_plain = self._group(family, cost)
        if left >= 0:
            self._families.popleft()
        view = family.view
        if is_plain and self._is_newest and view.ttl_ms is None:
            size = sum(len(name) + len(raw) for name, raw in group) + len(group) * (len(view.column_prefix) - VALUE_AT)
            return StoredCells([(view.column_prefix, group)], len(group), size)
        cells: list[WireCell] = []
        for escaped, raw in group:
            qualifier = unescape(escaped)
            versions = family.versions(self._row, qualifier, raw)
            seen = seen_versions(versions, view, qualifier, self._spec, self._now_ms)
            cells += [(cell.column, cell.value, cell.timestamp) for cell in islice(seen, self._most)]
        return cells

    def _group(self, family: _Family, cost: int) -> tuple[Group, int, bool]:
        """Return the next wanted pairs, the rest of ``cost`` (below 0: pairs may follow), and whether all are plain."""
        group: Group = []
        cut, wanted, left, is_plain = self._cut, family.wanted, cost, True
        for key, raw in family.pairs:
            left -= PAIR_COST + len(raw)
            qualifier = key[cut:]
            if wanted is None or qualifier in wanted:
                group.append((qualifier, raw))
                is_plain = is_plain and raw[0] == CELL and 0 not in qualifier
            if left < 0:
                break
        return group, left, is_plain

    def end(self) -> None:
        """End the reading and release the store."""
        self._has_ended = True
        self._families.clear()
        self._region.on_leave.discard(self.end)
