"""Backfills a view with the rows that a region of a source already has, piece after piece (``progress``).

A piece is a run of at most PIECE_ROWS successive rows.  The follower calls for steps and writes the shares of their
rows.  Owned by the loop.
"""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from columnar.errors import ColumnarError, NotAllowed, abbreviate
from columnar.model.read import Projection, ReadSpec
from columnar.regions.log.change_record import Images, Sequence
from columnar.regions.read.family_view import kept_versions
from columnar.regions.read.row_reader import RawRow, RowCursor, stored_versions, visible_cells
from columnar.regions.region import Region
from columnar.runtime.faults import FAULTS
from columnar.storage.layout import CELL, MARKER, range_start, unescape
from columnar.views.contributions import Rules, Share, contributions
from columnar.views.progress import Pass, Piece, Progress
from columnar.views.share_writes import ShareBatch

# --- pieces ------------------------------------------------------------------------------------------


STEP_ROWS: Final = 16  # read at once: some 0.5 ms
PIECE_ROWS: Final = 512  # each piece costs an fsync of the source
PIECE_BYTES: Final = 1024 * 1024  # of shares; the last step of a piece may exceed it


def read_spec(region: Region, images: Images) -> ReadSpec:
    """Return the ReadSpec of the columns that a view reads from a source."""
    families = [
        (family, None if columns is None else tuple(sorted(columns)))
        for family, columns in sorted(images.items())
        if family in region.views
    ]
    return ReadSpec(Projection(tuple(families)))


@dataclass(frozen=True, slots=True)
class ReadRow:
    at: Sequence
    shares: tuple[tuple[Rules, Share], ...]
    rejected: int


@dataclass(frozen=True, slots=True)
class Found:
    rows: list[ReadRow]  # only rows that have shares or cannot be read
    count: int
    end: bytes | None  # the first row that was not read; None if the region has no more rows


class PieceReader:
    """Reads one piece, from the row ``start`` on.  Owned by the loop."""

    def __init__(self, region: Region, rules: tuple[Rules, ...], images: Images, start: bytes) -> None:
        self._region = region
        self._rules = rules
        self._place = start
        self._count = self._size_bytes = 0
        self._spec = read_spec(region, images)

    @property
    def is_full(self) -> bool:
        return self._count >= PIECE_ROWS or self._size_bytes >= PIECE_BYTES

    def read_piece(self, at: Sequence) -> Found:
        """Read the next STEP_ROWS rows as they are now.  ``at`` is the present last sequence of the region's log."""
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
        """Raise NotAllowed if a cell of the row will expire, because no change would record that.

        Older versions count, too: a delete of the newest version makes them visible.
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


PIECE_BATCHES: Final = 4  # batches of one piece in flight at most
AGAIN_S: Final = 0.1  # after an unexpected exception


class Backfill:
    def __init__(
        self,
        progress: Progress,
        region: Region,
        rules: tuple[Rules, ...],
        images: Images,
        table: bytes,
        save: Callable[[], Future[None]],
        write: Callable[[ShareBatch, Callable[[ColumnarError | None], None]], None],
        go_on: Callable[[], None],
    ) -> None:
        """``save`` saves the cursor with the present ``progress``, durably.  ``write`` writes a batch to the view."""
        self.progress = progress
        self._region = region
        self._rules = rules
        self._images = images
        self._table = table
        self._save = save
        self._write = write
        self._schedule_step = go_on
        self._piece: Piece | None = None
        self._reader: PieceReader | None = None  # while the piece is read
        self._rows: list[ReadRow] = []  # of the piece, still to be written
        self._is_bound = False  # the piece's bound is on disk
        self._batches_in_flight = 0

    @property
    def is_over(self) -> bool:
        return self.progress.walk is Pass.OVER

    @property
    def is_quiet(self) -> bool:
        """Whether no change may be taken: a piece is being read, or its bound is not on disk yet."""
        return self._piece is not None and not self._is_bound

    def step(self) -> bool:
        """Read rows, or write a batch of the rows read.  Returns False if there is nothing to do now."""
        if self.is_over:
            return False
        if self._piece is None:
            start = max(self.progress.done or b"", self._region.info.start)
            self._piece, self._reader = Piece(start), PieceReader(self._region, self._rules, self._images, start)
        if self._reader is not None:
            self._gather(self._piece, self._reader)
            return True
        if self._is_bound and self._rows and self._batches_in_flight < PIECE_BATCHES:
            self._write_rows(self._piece)
            return True
        return False

    def pause(self) -> None:
        """Drop a piece whose bound is not on disk: its rows are read again."""
        if not self._is_bound:
            self._drop_piece()

    def _drop_piece(self) -> None:
        self._piece = self._reader = None
        self._rows, self._is_bound = [], False

    # --- a piece -------------------------------------------------------------------------------------

    def _gather(self, piece: Piece, reader: PieceReader) -> None:
        at = self._region.log.written_to
        found = reader.read_piece(at)
        self._rows += found.rows
        piece.gathered(found.end, at, found.count, sum(row.rejected for row in found.rows))
        if found.end is not None and not reader.is_full:
            return
        self._reader = None
        if self.progress.is_backfilled:  # a counting pass writes nothing, and all rows are wanted already
            self._rows = []
        self.progress = self.progress.bound_to(piece.end)
        self._save().add_done_callback(partial(self._saved, piece))

    def _saved(self, piece: Piece, saved: Future[None]) -> None:
        if self._piece is not piece:
            return
        try:
            self._is_bound = not saved.cancelled() and saved.exception() is None
            if not self._is_bound:
                self._drop_piece()
            self._schedule_step()
        except Exception as fault:  # noqa: BLE001 - no other task would continue the piece
            FAULTS.met("views", fault)
            get_running_loop().call_later(AGAIN_S, self._saved, piece, saved)

    def _write_rows(self, piece: Piece) -> None:
        batch, rows = ShareBatch(self._table), list[ReadRow]()
        self._batches_in_flight += 1
        try:
            while self._rows and not batch.is_full:
                row = self._rows.pop()
                rows.append(row)
                batch.add_record()
                for rules, share in row.shares:
                    batch.add_share(rules, share, row.at)
            self._write(batch, lambda error: self._written(piece, rows, error))
        except Exception:
            self._batches_in_flight -= 1
            self._rows += rows  # the piece ends only when all its rows are in the view
            raise

    def _written(self, piece: Piece, rows: list[ReadRow], error: ColumnarError | None) -> None:
        if self._piece is not piece:
            return
        self._batches_in_flight -= 1
        if error is not None:
            self._rows += rows

    def count(self, row: bytes, sequence: Sequence, more: int) -> bool:
        """Count a change that is done and makes ``more`` rows unreadable; return whether ``progress`` changed."""
        done = self.progress.done
        if self.is_over or done is None or row < done:
            self.progress = self.progress.counted(more)
            return True
        if self._piece is not None and self._piece.counts(row, sequence):
            self._piece.add_rejected(more)
        return False

    def end_piece(self, is_delivered_up_to: Callable[[Sequence], bool]) -> bool:
        """End the piece if the view has all its rows, and all changes up to its last sequence.  Returns whether it
        ended.

        ``is_delivered_up_to`` tells whether the view has all changes up to a sequence.
        """
        piece = self._piece
        if piece is None or not self._is_bound or self._rows or self._batches_in_flight:
            return False
        if piece.last is None or not is_delivered_up_to(piece.last):
            return False
        self.progress = self.progress.piece_ended(piece.end, piece.rows, piece.rejected)
        self._drop_piece()
        return True
