"""Reads the rows of a region's pieces as a view sees them: their shares, as of the moment at which each was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from columnar.errors import NotAllowed, abbreviate
from columnar.model.read import Projection, ReadSpec
from columnar.regions.log.change_record import Images, Sequence
from columnar.regions.read.family_view import kept_versions
from columnar.regions.read.row_reader import RawRow, RowCursor, stored_versions, visible_cells
from columnar.regions.region import Region
from columnar.storage.layout import CELL, MARKER, range_start, unescape
from columnar.views.contributions import Rules, Share, contributions

STEP_ROWS: Final = 16  # read at once: some 0.5 ms
PIECE_ROWS: Final = 512  # each piece costs an fsync of the source
PIECE_BYTES: Final = 1024 * 1024  # of shares, except for one step's


@dataclass(frozen=True, slots=True)
class ReadRow:
    at: Sequence
    shares: tuple[tuple[Rules, Share], ...]
    rejected: int


@dataclass(frozen=True, slots=True)
class Found:
    rows: list[ReadRow]  # rows that matter: they have shares, or cannot be read
    count: int
    end: bytes | None  # the first row that was not read; None: the region has no more


class PieceReader:
    """From ``start`` on.  Owned by the loop."""

    def __init__(self, region: Region, rules: tuple[Rules, ...], images: Images, start: bytes) -> None:
        self._region = region
        self._rules = rules
        self._place = start
        self._count = self._size_bytes = 0
        self._spec = ReadSpec(
            Projection(
                tuple(
                    (family, None if columns is None else tuple(sorted(columns)))
                    for family, columns in sorted(images.items())
                    if family in region.views
                )
            )
        )

    @property
    def is_full(self) -> bool:
        return self._count >= PIECE_ROWS or self._size_bytes >= PIECE_BYTES

    def read(self, at: Sequence) -> Found:
        """The next rows as they are; ``at``: the last sequence of the region's log, now."""
        region = self._region
        stop = range_start(region.info.end) if region.info.end else None
        start = range_start(self._place)
        cursor = RowCursor.over(region.store, region.views, self._spec.projection, start, stop, reverse=False)
        rows: list[ReadRow] = []
        count, end = 0, None  # type: int, bytes | None
        while count < STEP_ROWS and (found := cursor.next_row()) is not None:
            row, raw_row = found
            self._check_lasting(row, raw_row)
            cells = visible_cells(region.store, row, raw_row, self._spec, region.now_ms)
            read = self._read(row, {column: value for column, value, _ in cells}, at)
            if read.shares or read.rejected:
                rows.append(read)
            count, end = count + 1, row + b"\x00"
        self._count += count
        if count < STEP_ROWS:
            end = None
        else:
            assert end is not None, "rows were read"
            self._place = end
        return Found(rows, count, end)

    def _check_lasting(self, row: bytes, raw_row: RawRow) -> None:
        """Check that no cell will expire, because no change would record it.  NotAllowed.

        Versions behind the newest count, too: a delete of that one makes them visible.
        """
        store, now_ms = self._region.store, self._region.now_ms
        for view, group in raw_row:
            for qualifier, raw in group:
                if raw[0] in (CELL, MARKER) and view.max_versions == 1:
                    continue
                versions = stored_versions(store, view, row, unescape(qualifier), raw)
                if any(one.ttl_ms is not None for one in kept_versions(versions, view, now_ms)):
                    column = abbreviate(view.column_prefix + unescape(qualifier))
                    raise NotAllowed(
                        f"row {abbreviate(row)} of {self._region.info.table} has a time to live in {column}, whose end "
                        "no view hears of; put the cell without one, delete it, or wait until it has ended"
                    )

    def _read(self, row: bytes, image: dict[bytes, bytes], at: Sequence) -> ReadRow:
        shares: list[tuple[Rules, Share]] = []
        rejected = 0
        for rules in self._rules:
            given = contributions(rules, row, image)
            rejected += bool(given.rejected)
            for share in given.shares.values():
                shares.append((rules, share))
                carried = sum(len(column) + len(value) for column, value in share.carry)
                self._size_bytes += len(share.group) + len(share.member) + carried + len(share.order or b"")
        return ReadRow(at, tuple(shares), rejected)
