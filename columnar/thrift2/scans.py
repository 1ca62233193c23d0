"""Scanners by the Thrift 2 service: open, move on, close, and all of it in one call."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from columnar.cluster.row_forms import THRIFT2
from columnar.errors import IllegalArgument
from columnar.operations.packing import reply_form
from columnar.operations.scanners import Scanner
from columnar.operations.scans import Use
from columnar.operations.table_operations import TableOperations
from columnar.regions.read.found_rows import FoundRows
from columnar.storage.stored_cells import PackedRows
from columnar.thrift2 import translate
from columnar.wire.codec_results import Result, Results


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
        return self._scanner(ctx, table, tscan, lambda scanner: self._scanners.open(scanner, ctx.connection_id))

    def getScannerRows(self, ctx: Any, scanner_id: int | None, count: int | None) -> Any:
        return self._rows(ctx, self._scanners.get(translate.given(scanner_id, "scanner id")), count)

    def getScannerResults(self, ctx: Any, table: bytes | None, tscan: Any, count: int | None) -> Any:
        """Scan and close; fewer rows than requested come only at the end or at a reply's bounds."""
        return self._scanner(ctx, table, tscan, lambda scanner: self._rows(ctx, scanner, count))

    def _rows(self, ctx: Any, scanner: Scanner, count: int | None) -> Any:
        count = 1 if count is None else count
        if count < 0:
            raise IllegalArgument(f"the number of rows asked for is {count}; it must not be negative")
        if count == 0:
            return Results([])
        form = reply_form(THRIFT2, ctx.protocol) if not scanner.spec.batch else None
        found = self._scans.next_rows(ctx, scanner, count, None, form)
        return _results(found, scanner) if isinstance(found, FoundRows) else _awaited(found, scanner)

    def closeScanner(self, _ctx: Any, scanner_id: int | None) -> None:
        """ScannerNotFound: another server may have it; else it is no error (``thrift2.errors``)."""
        self._scanners.close(translate.given(scanner_id, "scanner id"))


async def _awaited(found: Awaitable[FoundRows], scanner: Scanner) -> Results:
    return _results(await found, scanner)


def _results(found: FoundRows, scanner: Scanner) -> Results:
    """Return the results; a result is partial if the next one continues its row."""
    if not scanner.spec.batch:
        return Results([one if isinstance(one, PackedRows) else Result(one[0], list(one[1])) for one in found.each()])
    rows = list(found)
    following = [row for row, _ in rows[1:]] + [rows[-1][0] if rows and scanner.cuts_row else b""]
    return Results(
        [Result(row, list(cells), row == after) for (row, cells), after in zip(rows, following, strict=False)]
    )
