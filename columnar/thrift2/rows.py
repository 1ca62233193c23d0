"""Methods of the Thrift 2 service on rows: gets, puts, deletes, counters, appends, checks and scanners.

Knows nothing of the semantics of writes and reads, which are in ``operations``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable
from functools import partial
from typing import Any, Final

from columnar.cluster.row_forms import THRIFT2
from columnar.errors import IllegalArgument
from columnar.model.cell import checked_row
from columnar.model.mutation import RowMutation
from columnar.model.read import ReadSpec
from columnar.operations.packing import reply_form
from columnar.operations.reads import FoundRow, PackedAnswer, RowQuery, RowsAnswer
from columnar.operations.scanner_table import Use
from columnar.operations.scanners import Scanner
from columnar.operations.table_operations import TableOperations
from columnar.regions.read.found_rows import FoundRows
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.runtime.loop_budget import IsDisconnected
from columnar.storage.stored_cells import PackedRows
from columnar.thrift2 import translate
from columnar.wire.codec_results import Result, Results

_EQUAL: Final = 2


class RowMethods2:
    def __init__(self, operations: TableOperations) -> None:
        self._access = operations.access
        self._reads = operations.reads
        self._writes = operations.writes
        self._scans = operations.scans

    # --- reads -------------------------------------------------------------------------------------

    def get(self, ctx: Any, table: bytes | None, tget: Any) -> Any:
        served = self._table(table)
        row = checked_row(translate.given(tget, "TGet").row)
        spec = translate.get_spec(served.schema, tget)
        if tget.existence_only:
            return self._several(ctx, table, [tget], lambda _: Result(row, []), 1)
        if tget.filterString is not None or tget.filterBytes is not None:
            return self._filtered(served, row, tget, spec, ctx.has_gone)
        return self._reads.read_row(
            ctx,
            served,
            row,
            spec,
            lambda _, cells: Result(row, translate.cut_by_family(cells, tget)),
            PackedAnswer(THRIFT2, lambda packed: packed if packed is not None else Result(row, [])),
            translate.cut_of(tget),
        )

    async def _filtered(
        self, served: ServedTable, row: bytes, tget: Any, spec: ReadSpec, has_gone: IsDisconnected
    ) -> Result:
        text = translate.filter_of(tget)
        assert text is not None, "the get has a filter"
        cells = await self._scans.read_row(served, row, spec, text, has_gone)
        return Result(row, translate.cut_by_family(cells, tget))

    def getMultiple(self, ctx: Any, table: bytes | None, tgets: Any) -> Any:
        """Return a result for each get, in the same order; the result of a missing row is empty.

        As in HBase, the result of a get with ``existence_only`` is empty, too; ``exists`` tells whether a row exists.
        """
        bare = {place for place, tget in enumerate(tgets or ()) if tget.existence_only}
        return self._several(ctx, table, tgets, (lambda found: _results_without(found, bare)) if bare else _results)

    def exists(self, ctx: Any, table: bytes | None, tget: Any) -> Any:
        return self._several(ctx, table, [translate.given(tget, "TGet")], lambda found: _is_there(found[0]), 1)

    def existsAll(self, ctx: Any, table: bytes | None, tgets: Any) -> Any:
        return self._several(ctx, table, tgets, lambda found: [_is_there(row) for row in found], 1)

    def _several(self, ctx: Any, table: bytes | None, tgets: Any, answer: RowsAnswer, wanted: int = -1) -> Any:
        """Read the rows, after all gets are checked.

        ``wanted`` is the number of cells of each family that the answer needs; -1 means all.
        """
        served = self._table(table)
        asked = translate.given(tgets, "list of TGet")
        rows, specs = [], []
        for tget in asked:
            rows.append(checked_row(tget.row))
            specs.append(translate.get_spec(served.schema, tget))
        filters = [translate.filter_of(tget) for tget in asked]

        cuts = [translate.cut_of(tget) for tget in asked]
        query = RowQuery(
            rows,
            specs,
            keeps_absent=True,
            filters=filters,
            cuts=cuts if any(cuts) else None,
            service=THRIFT2,
            wanted=wanted,
        )
        return self._reads.rows(ctx, served, query, answer, self._scans.one_row)

    def _table(self, table: bytes | None) -> ServedTable:
        return self._access.meant(translate.given(table, "table name"))

    # --- writes ------------------------------------------------------------------------------------

    def put(self, ctx: Any, table: bytes | None, tput: Any) -> Any:
        served = self._table(table)
        return self._writes.write_row(ctx, served, translate.put(served.schema, tput), _nothing)

    def putMultiple(self, ctx: Any, table: bytes | None, tputs: Any) -> Any:
        """Check all puts, then write them; each row is a separate step."""
        served = self._table(table)
        asked = translate.given(tputs, "list of TPut")
        return self._writes.write_planned(ctx, served, asked, lambda now: partial(translate.put, now.schema), _nothing)

    def deleteSingle(self, ctx: Any, table: bytes | None, tdelete: Any) -> Any:
        served = self._table(table)
        return self._writes.write_row(ctx, served, translate.delete(served.schema, tdelete), _nothing)

    def deleteMultiple(self, ctx: Any, table: bytes | None, tdeletes: Any) -> Any:
        """Delete, and return an empty list of failed deletes: if one fails, the whole call fails before it writes."""
        served = self._table(table)
        asked = translate.given(tdeletes, "list of TDelete")
        return self._writes.write_planned(
            ctx, served, asked, lambda now: partial(translate.delete, now.schema), _no_failures
        )

    def mutateRow(self, ctx: Any, table: bytes | None, mutations: Any) -> Any:
        served = self._table(table)
        return self._writes.write_row(ctx, served, translate.row_mutations(served.schema, mutations), _nothing)

    # --- read, modify, write -----------------------------------------------------------------------

    def increment(self, ctx: Any, table: bytes | None, tincrement: Any) -> Any:
        served = self._table(table)
        return self._change(ctx, served, translate.increment(served.schema, tincrement), tincrement)

    def append(self, ctx: Any, table: bytes | None, tappend: Any) -> Any:
        served = self._table(table)
        return self._change(ctx, served, translate.append(served.schema, tappend), tappend)

    def _change(self, ctx: Any, served: ServedTable, mutation: RowMutation, asked: Any) -> Any:
        def answer(applied: Applied | None) -> Result:
            assert applied is not None, "one row"
            if asked.returnResults is False:
                return Result(mutation.row, [])
            latest = {cell[0]: cell for cell in applied.results}  # a column that was named twice has one cell
            return Result(mutation.row, sorted(latest.values(), key=lambda cell: cell[0].partition(b":")))

        return self._writes.write_row(ctx, served, mutation, answer)

    def checkAndPut(
        self, ctx: Any, table: bytes | None, row: bytes, family: bytes, qualifier: bytes, value: Any, tput: Any
    ) -> Any:
        served = self._table(table)
        then = translate.put(served.schema, tput)
        return self._check(ctx, served, row, (family, qualifier), _EQUAL, value, then)

    def checkAndDelete(
        self, ctx: Any, table: bytes | None, row: bytes, family: bytes, qualifier: bytes, value: Any, tdelete: Any
    ) -> Any:
        served = self._table(table)
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
        served = self._table(table)
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
        return self._writes.write_row(ctx, served, checked, _was_applied)


def _results(found: Iterable[FoundRow]) -> Results:
    return Results([one if isinstance(one, PackedRows) else Result(one[0], list(one[1])) for one in found])


def _results_without(found: list[FoundRow], bare: Collection[int]) -> Results:
    """Return the results; those at the places in ``bare`` get no cells."""
    kept = [(b"", []) if place in bare else one for place, one in enumerate(found)]
    return _results(kept)


def _is_there(found: FoundRow) -> bool:
    return isinstance(found, PackedRows) or bool(found[1])


def _nothing(_applied: Applied | None) -> None:
    return None


def _no_failures(_applied: Applied | None) -> list[Any]:
    return []


def _was_applied(applied: Applied | None) -> bool:
    assert applied is not None, "one check"
    return applied.failed_condition is None


# --- scanners ----------------------------------------------------------------------------------------


class ScanMethods2:
    def __init__(self, operations: TableOperations) -> None:
        self._access = operations.access
        self._scanners = operations.scanners
        self._scans = operations.scans

    def _scanner(self, ctx: Any, table: bytes | None, tscan: Any, use: Use) -> Any:
        served = self._access.meant(translate.given(table, "table name"))
        spec = translate.scan_spec(served.schema, translate.given(tscan, "TScan"))
        return self._scans.scanner(ctx, served, spec, use)

    def openScanner(self, ctx: Any, table: bytes | None, tscan: Any) -> Any:
        open_scanner, opener = self._scanners.open_scanner, (ctx.connection_id, ctx.user)
        return self._scanner(ctx, table, tscan, lambda scanner: open_scanner(scanner, *opener))

    def getScannerRows(self, ctx: Any, scanner_id: int | None, count: int | None) -> Any:
        return self._rows(ctx, self._scanners.get(translate.given(scanner_id, "scanner id"), ctx.user), count)

    def getScannerResults(self, ctx: Any, table: bytes | None, tscan: Any, count: int | None) -> Any:
        """Scan, then close.  Returns fewer rows than requested only at the scan's end or at the bounds of a reply."""
        return self._scanner(ctx, table, tscan, lambda scanner: self._rows(ctx, scanner, count))

    def _rows(self, ctx: Any, scanner: Scanner, count: int | None) -> Any:
        count = 1 if count is None else count
        if count < 0:
            raise IllegalArgument(f"the number of rows asked for is {count}; it must not be negative")
        if count == 0:
            return Results([])
        form = reply_form(THRIFT2, ctx.protocol) if not scanner.spec.batch else None
        found = self._scans.next_rows(ctx, scanner, count, None, form)
        return _scan_results(found, scanner) if isinstance(found, FoundRows) else _awaited(found, scanner)

    def closeScanner(self, ctx: Any, scanner_id: int | None) -> None:
        """Close the scanner.

        Raises ScannerNotFound because another server may have the scanner; clients see no error (``thrift2.service``).
        """
        self._scanners.close(translate.given(scanner_id, "scanner id"), ctx.user)


async def _awaited(found: Awaitable[FoundRows], scanner: Scanner) -> Results:
    return _scan_results(await found, scanner)


def _scan_results(found: FoundRows, scanner: Scanner) -> Results:
    """Return the results.  A result is partial if the next result continues the same row."""
    if not scanner.spec.batch:
        return _results(found.each())
    rows = list(found)
    following = [row for row, _ in rows[1:]] + [rows[-1][0] if rows and scanner.cuts_row else b""]
    return Results(
        [Result(row, list(cells), row == after) for (row, cells), after in zip(rows, following, strict=False)]
    )
