"""Copies the rows of one region into the store of its neighbour while both serve; then what was written meanwhile.

A first round walks the source from end to end; each later one takes the rows that were written since the
one before.  Each step reads and writes with nothing in between, so what it leaves is the row as it was at
one moment, and a row that changes later is in ``Region.touched`` for the next round.

Invariant I1: after a round in which nothing was touched, and with the source written to by nobody, the
target holds in the source's range exactly what the source holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Final

from columnar.errors import RegionTooBusy
from columnar.limits import KIB
from columnar.regions.patience import patiently
from columnar.regions.region import Region
from columnar.regions.row_draft import VERSIONS_SPACE
from columnar.regions.row_range import OpenSpan, row_spans
from columnar.storage.api import Batch, Store
from columnar.storage.layout import row_end, row_prefix, row_versions_range

COPY_CELLS: Final = 1_000  # of one step: some 2 ms
COPY_BYTES: Final = 512 * KIB
COPY_ROWS: Final = 100  # touched rows of one step
TOUCHED_ROWS: Final = 100_000  # waiting for the next round; over it the merge is called off


class RowCopy:
    """Owned by the loop.  ``stop`` must be called, whatever becomes of it."""

    def __init__(self, source: Region, target: Region, check: Callable[[], None]) -> None:
        """``check`` is called before each step and raises where the copying is to end."""
        self._source = source
        self._target: Store = target.store
        self._check = check
        source.touched = set()

    def stop(self) -> None:
        self._source.touched = None

    @property
    def waiting(self) -> int:
        """Rows that were written since they were copied."""
        return len(self._source.touched or ())

    async def everything(self) -> None:
        """The first round."""
        info = self._source.info
        for span in row_spans(self._source.views, info.start, info.end):
            place: bytes | None = span[1]
            while place is not None:
                self._check_bound()
                place = await patiently(partial(self._step, span, place))
                await asyncio.sleep(0)

    async def touched(self) -> None:
        """A later round: what was written since the last one began."""
        rows, self._source.touched = sorted(self._source.touched or ()), set()
        for first in range(0, len(rows), COPY_ROWS):
            self._check_bound()
            await patiently(partial(self._rows_step, rows[first : first + COPY_ROWS]))
            await asyncio.sleep(0)

    def _check_bound(self) -> None:
        self._check()
        if self.waiting > TOUCHED_ROWS:
            raise RegionTooBusy(
                f"region {self._source.info.encoded} is written to faster than it can be copied "
                f"({self.waiting} rows wait); merge it when there is less to do"
            )

    def _step(self, span: OpenSpan, place: bytes) -> bytes | None:
        space, _, stop = span
        batch, last = self._target.batch(), b""
        for key, raw in islice(self._source.store.scan(space, place, stop), COPY_CELLS):
            batch.put(space, key, raw)
            last = key
            if batch.size_bytes() >= COPY_BYTES:
                break
        if not last:
            return None
        self._target.write(batch)
        return last + b"\x00"

    def _rows_step(self, rows: list[bytes]) -> None:
        batch = self._target.batch()
        for row in rows:
            for view in self._source.views.values():
                self._even_out(batch, view.space, row_prefix(row), row_end(row))
                self._even_out(batch, VERSIONS_SPACE, *row_versions_range(view.number, row))
        self._target.write(batch)

    def _even_out(self, batch: Batch, space: str, start: bytes, stop: bytes) -> None:
        here = dict(self._source.store.scan(space, start, stop))
        there = dict(self._target.scan(space, start, stop))
        for key, raw in here.items():
            if there.get(key) != raw:
                batch.put(space, key, raw)
        for key in there.keys() - here.keys():
            batch.delete(space, key)
