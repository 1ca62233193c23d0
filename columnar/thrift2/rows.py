"""Rows by the Thrift 2 service: gets, puts, deletes, counters, appends and checks.

Everything that writes goes through ``thrift.rows.RowMethods.write``, everything that reads through the
region's ``get_row`` or a scanner; nothing here knows what a write or a read means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from columnar.errors import RequestTooBig
from columnar.limits import ROWS_BYTES, STEP_BYTES, STEP_CELLS
from columnar.model.mutation import RowMutation
from columnar.model.read import ReadSpec
from columnar.regions.applied import Applied
from columnar.regions.found_rows import FoundRows
from columnar.regions.patience import patiently
from columnar.regions.scanners import Scanner
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable, checked_row
from columnar.thrift.row_writes import after, after_all, joined
from columnar.thrift.rows import RowMethods
from columnar.thrift.scans import filter_in_turns, filter_of, has_long_filter
from columnar.thrift2 import translate
from columnar.turns import HasGone
from columnar.wire.codec_results import Result, Results

_EQUAL: Final = 2
_SEEK_CELLS: Final = 50  # what finding a row costs, counted in cells


class _Rows:
    """Rows asked for by name, on their way into one reply."""

    def __init__(self, asked: Sequence[tuple[Any, ReadSpec]]) -> None:
        self.left = list(reversed(asked))
        self.found: list[Result] = []
        self.barriers: list[Any] = []
        self.size_bytes = 0


class RowMethods2:
    def __init__(self, server: RegionServer, rows: RowMethods) -> None:
        self._server = server
        self._tables = server.tables
        self._rows = rows

    # --- reads -------------------------------------------------------------------------------------

    def get(self, ctx: Any, table: bytes | None, tget: Any) -> Any:
        served = self._enabled(table)
        row = checked_row(translate.given(tget, "TGet").row)
        spec = translate.get_spec(served.schema, tget)
        if tget.filterString is not None:
            return self._filtered(served, row, tget, spec, ctx.has_gone)
        region = self._server.region_for(served, row)
        cells = translate.cut_by_family(list(region.get_row(row, spec)), tget)
        return after(region.barrier(row), Result(row, cells))

    async def _filtered(
        self, served: ServedTable, row: bytes, tget: Any, read: ReadSpec, has_gone: HasGone
    ) -> Result:
        spec = translate.one_row(row, read, tget.filterString)
        turns = self._server.gathering.turns
        row_filter = await filter_in_turns(spec, turns, has_gone) if has_long_filter(spec) else filter_of(spec)
        scanner = Scanner(self._server, served.schema.name.encode(), spec, row_filter)
        found = scanner.next_rows(1, None, has_gone)
        rows = list(found if isinstance(found, FoundRows) else await found)
        return Result(row, translate.cut_by_family(list(rows[0][1]), tget) if rows else [])

    def getMultiple(self, ctx: Any, table: bytes | None, tgets: Any) -> Any:
        """One result for each get, in their order; an empty one for a row that is not there."""
        return self._several(ctx, table, tgets, Results)

    def exists(self, ctx: Any, table: bytes | None, tget: Any) -> Any:
        return self._several(ctx, table, [translate.given(tget, "TGet")], lambda found: bool(found[0].cells))

    def existsAll(self, ctx: Any, table: bytes | None, tgets: Any) -> Any:
        return self._several(ctx, table, tgets, lambda found: [bool(result.cells) for result in found])

    def _several(self, ctx: Any, table: bytes | None, tgets: Any, answer: Any) -> Any:
        """All are checked first.  Read in steps; what has no filter is read without waiting where it is little."""
        served = self._enabled(table)
        asked = []
        for tget in translate.given(tgets, "list of TGet"):
            checked_row(tget.row)
            asked.append((tget, translate.get_spec(served.schema, tget)))
        rows = _Rows(asked)
        gathering = self._server.gathering
        if not gathering.is_full and self._read_step(served, rows):
            return after_all(rows.barriers, answer(rows.found))
        return self._read_rest(table or b"", rows, answer, ctx.has_gone)

    def _read_step(self, served: ServedTable, rows: _Rows) -> bool:
        """Read for one turn on the loop, or to a get with a filter; True: that was all."""
        cells_left, bytes_left = STEP_CELLS, STEP_BYTES
        while rows.left and cells_left > 0 and bytes_left > 0:
            tget, spec = rows.left[-1]
            if tget.filterString is not None:
                return False
            region = self._server.region_for(served, tget.row)
            rows.left.pop()  # now, not before: where its region is away it is read later
            barrier = region.barrier(tget.row)
            if barrier is not None:
                rows.barriers.append(barrier)
            cells = translate.cut_by_family(list(region.get_row(tget.row, spec)), tget)
            size = self._take(rows, Result(tget.row, cells))
            cells_left -= len(cells) + _SEEK_CELLS
            bytes_left -= size
        return not rows.left

    def _take(self, rows: _Rows, result: Result) -> int:
        rows.found.append(result)
        size = sum(len(column) + len(value) for column, value, _ in result.cells)
        rows.size_bytes += size
        if rows.size_bytes > ROWS_BYTES:
            raise RequestTooBig(f"the rows asked for have over {ROWS_BYTES} bytes; ask for fewer, or scan")
        return size

    async def _read_rest(self, table: bytes, rows: _Rows, answer: Any, has_gone: HasGone) -> Any:
        gathering = self._server.gathering
        ticket = gathering.begin(rows.size_bytes, has_gone)
        try:
            while rows.left:
                await gathering.turn(ticket, rows.size_bytes)
                served = self._tables.enabled(table)
                tget, spec = rows.left[-1]
                for family, _ in spec.projection.families:
                    served.schema.family(family)  # the table may have been made anew meanwhile
                if tget.filterString is not None:
                    rows.left.pop()
                    gathering.end(ticket)  # the scan has a ticket of its own: two in one call would wait for each other
                    try:
                        self._take(rows, await self._filtered(served, tget.row, tget, spec, has_gone))
                    finally:
                        ticket = gathering.begin(rows.size_bytes, has_gone)
                else:
                    await patiently(partial(self._read_step, served, rows), has_gone)
            waiting = joined(rows.barriers)
            if waiting is not None:
                await asyncio.shield(waiting)
            return answer(rows.found)
        finally:
            gathering.end(ticket)

    def _enabled(self, table: bytes | None) -> ServedTable:
        return self._tables.enabled(translate.given(table, "table name"))

    # --- writes ------------------------------------------------------------------------------------

    def put(self, ctx: Any, table: bytes | None, tput: Any) -> Any:
        served = self._enabled(table)
        return self._rows.write(ctx, served, translate.put(served.schema, tput), _nothing)

    def putMultiple(self, ctx: Any, table: bytes | None, tputs: Any) -> Any:
        """All are checked before anything is written; each row is a step of its own."""
        served = self._enabled(table)
        asked = translate.given(tputs, "list of TPut")
        return self._rows.write_planned(ctx, served, asked, lambda now: partial(translate.put, now.schema), _nothing)

    def deleteSingle(self, ctx: Any, table: bytes | None, tdelete: Any) -> Any:
        served = self._enabled(table)
        return self._rows.write(ctx, served, translate.delete(served.schema, tdelete), _nothing)

    def deleteMultiple(self, ctx: Any, table: bytes | None, tdeletes: Any) -> Any:
        """The deletes that failed are none: it fails as a whole, before anything is written."""
        served = self._enabled(table)
        asked = translate.given(tdeletes, "list of TDelete")
        return self._rows.write_planned(
            ctx, served, asked, lambda now: partial(translate.delete, now.schema), _no_failures
        )

    def mutateRow(self, ctx: Any, table: bytes | None, mutations: Any) -> Any:
        served = self._enabled(table)
        return self._rows.write(ctx, served, translate.row_mutations(served.schema, mutations), _nothing)

    # --- read, modify, write -----------------------------------------------------------------------

    def increment(self, ctx: Any, table: bytes | None, tincrement: Any) -> Any:
        served = self._enabled(table)
        return self._change(ctx, served, translate.increment(served.schema, tincrement), tincrement)

    def append(self, ctx: Any, table: bytes | None, tappend: Any) -> Any:
        served = self._enabled(table)
        return self._change(ctx, served, translate.append(served.schema, tappend), tappend)

    def _change(self, ctx: Any, served: ServedTable, mutation: RowMutation, asked: Any) -> Any:
        def answer(applied: Applied | None) -> Result:
            assert applied is not None, "one row"
            if asked.returnResults is False:
                return Result(mutation.row, [])
            latest = {cell[0]: cell for cell in applied.results}  # a column that was named twice is one cell
            return Result(mutation.row, sorted(latest.values(), key=lambda cell: cell[0].partition(b":")))

        return self._rows.write(ctx, served, mutation, answer)

    def checkAndPut(
        self, ctx: Any, table: bytes | None, row: bytes, family: bytes, qualifier: bytes, value: Any, tput: Any
    ) -> Any:
        served = self._enabled(table)
        then = translate.put(served.schema, tput)
        return self._check(ctx, served, row, (family, qualifier), _EQUAL, value, then)

    def checkAndDelete(
        self, ctx: Any, table: bytes | None, row: bytes, family: bytes, qualifier: bytes, value: Any, tdelete: Any
    ) -> Any:
        served = self._enabled(table)
        then = translate.delete(served.schema, tdelete)
        return self._check(ctx, served, row, (family, qualifier), _EQUAL, value, then)

    def checkAndMutate(
        self,
        ctx: Any,
        table: bytes | None,
        row: bytes,
        family: bytes,
        qualifier: bytes,
        op: int | None,
        value: Any,
        mutations: Any,
    ) -> Any:
        served = self._enabled(table)
        then = translate.row_mutations(served.schema, mutations)
        return self._check(ctx, served, row, (family, qualifier), op, value, then)

    def _check(
        self,
        ctx: Any,
        served: ServedTable,
        row: bytes,
        column: tuple[bytes, bytes],
        op: int | None,
        value: Any,
        then: RowMutation,
    ) -> Any:
        checked = translate.guarded(served.schema, row, column, op, value, then)
        return self._rows.write(ctx, served, checked, _was_applied)


def _nothing(_applied: Applied | None) -> None:
    return None


def _no_failures(_applied: Applied | None) -> list[Any]:
    return []


def _was_applied(applied: Applied | None) -> bool:
    assert applied is not None, "one check"
    return applied.failed_condition is None
