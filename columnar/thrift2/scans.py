"""Scanners by the Thrift 2 service: open, move on, close, and all of it in one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from columnar.errors import IllegalArgument, ScannerNotFound
from columnar.model.read import ScanSpec
from columnar.regions.found_rows import FoundRows
from columnar.regions.scanners import Scanner, ScannerTable
from columnar.regions.server import RegionServer
from columnar.thrift.scans import filter_in_turns, filter_of, has_long_filter
from columnar.thrift2 import translate
from columnar.turns import HasGone
from columnar.wire.codec_results import Result, Results


class ScanMethods2:
    def __init__(self, server: RegionServer, scanners: ScannerTable) -> None:
        self._server = server
        self._scanners = scanners

    def _scanner(self, ctx: Any, table: bytes | None, tscan: Any, use: Callable[[Scanner], Any]) -> Any:
        """What ``use`` makes of it.  A mistake is told here, not by the first rows (observed row 2)."""
        served = self._server.tables.enabled(translate.given(table, "table name"))
        spec = translate.scan_spec(served.schema, translate.given(tscan, "TScan"))
        name = served.schema.name.encode()
        if has_long_filter(spec):
            return self._in_turns(name, spec, use, ctx.has_gone)
        return use(Scanner(self._server, name, spec, filter_of(spec)))

    async def _in_turns(
        self, table: bytes, spec: ScanSpec, use: Callable[[Scanner], Any], has_gone: HasGone
    ) -> Any:
        row_filter = await filter_in_turns(spec, self._server.gathering.turns, has_gone)
        used = use(Scanner(self._server, table, spec, row_filter))
        return await used if hasattr(used, "__await__") else used

    def openScanner(self, ctx: Any, table: bytes | None, tscan: Any) -> Any:
        return self._scanner(ctx, table, tscan, lambda scanner: self._scanners.open(scanner, ctx.connection_id))

    def getScannerRows(self, ctx: Any, scanner_id: int | None, count: int | None) -> Any:
        return _rows(self._scanners.get(translate.given(scanner_id, "scanner id")), count, ctx.has_gone)

    def getScannerResults(self, ctx: Any, table: bytes | None, tscan: Any, count: int | None) -> Any:
        """Nothing is left open; fewer rows than asked for come only at the end or at a reply's bounds."""
        return self._scanner(ctx, table, tscan, lambda scanner: _rows(scanner, count, ctx.has_gone))

    def closeScanner(self, _ctx: Any, scanner_id: int | None) -> None:
        """One that is not open needs no closing: HBase 2.6.1 says nothing to it either."""
        try:
            self._scanners.close(translate.given(scanner_id, "scanner id"))
        except ScannerNotFound:
            return


def _rows(scanner: Scanner, count: int | None, has_gone: HasGone) -> Any:
    count = 1 if count is None else count
    if count < 0:
        raise IllegalArgument(f"the number of rows asked for is {count}; it must not be negative")
    if count == 0:
        return Results([])
    found = scanner.next_rows(count, None, has_gone)
    return _results(found, scanner) if isinstance(found, FoundRows) else _awaited(found, scanner)


async def _awaited(found: Awaitable[FoundRows], scanner: Scanner) -> Results:
    return _results(await found, scanner)


def _results(found: FoundRows, scanner: Scanner) -> Results:
    """A result is partial where the next one goes on with its row."""
    rows = list(found)
    if not scanner.spec.batch:
        return Results([Result(row, list(cells)) for row, cells in rows])
    following = [row for row, _ in rows[1:]] + [rows[-1][0] if rows and scanner.cuts_row else b""]
    return Results(
        [Result(row, list(cells), row == after) for (row, cells), after in zip(rows, following, strict=False)]
    )
