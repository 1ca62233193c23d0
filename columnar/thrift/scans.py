"""Methods on scanners: every way to open one, to move it on and to close it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from columnar.errors import CallerError, IllegalArgument, IncompatibleFilter, RequestTooBig
from columnar.limits import FILTER_BYTES
from columnar.model.filter_language import parse as parse_filter
from columnar.model.filters import Filter
from columnar.model.read import ScanSpec
from columnar.regions.scanners import Scanner, ScannerTable
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.thrift import translate
from columnar.wire.codec_replies import RowList
from columnar.wire.service import Sent, SentNumber


class ScanMethods:
    def __init__(self, server: RegionServer, scanners: ScannerTable) -> None:
        self._server = server
        self._scanners = scanners

    def _open(self, ctx: Any, served: ServedTable, spec: ScanSpec) -> int:
        """A mistake is told here, at the opening, not by the first ``scannerGet`` (observed row 2)."""
        row_filter = filter_of(spec)
        table = served.schema.name.encode()
        return self._scanners.open(Scanner(self._server, table, spec, row_filter), ctx.connection_id)

    def scannerOpenWithScan(self, ctx: Any, table: Sent, scan: Any, _attributes: Any) -> int:
        served = self._server.tables.enabled(table)
        return self._open(ctx, served, translate.scan_spec(served.schema, scan))

    def scannerOpen(self, ctx: Any, table: Sent, start: Sent, columns: Any, _attributes: Any) -> int:
        return self._open_range(ctx, table, start, b"", columns, None)

    def scannerOpenWithStop(
        self, ctx: Any, table: Sent, start: Sent, stop: Sent, columns: Any, _attributes: Any
    ) -> int:
        return self._open_range(ctx, table, start, stop, columns, None)

    def scannerOpenTs(
        self, ctx: Any, table: Sent, start: Sent, columns: Any, timestamp: SentNumber, _attributes: Any
    ) -> int:
        return self._open_range(ctx, table, start, b"", columns, timestamp)

    def scannerOpenWithStopTs(
        self, ctx: Any, table: Sent, start: Sent, stop: Sent, columns: Any, timestamp: SentNumber, _attributes: Any
    ) -> int:
        return self._open_range(ctx, table, start, stop, columns, timestamp)

    def _open_range(self, ctx: Any, table: Sent, start: Sent, stop: Sent, columns: Any, timestamp: SentNumber) -> int:
        served = self._server.tables.enabled(table)
        read = translate.read_spec(served.schema, columns, timestamp)
        return self._open(ctx, served, ScanSpec(translate.checked_bound(start), translate.checked_bound(stop), read))

    def scannerOpenWithPrefix(self, ctx: Any, table: Sent, prefix: Sent, columns: Any, _attributes: Any) -> int:
        served = self._server.tables.enabled(table)
        return self._open(ctx, served, translate.prefix_spec(served.schema, prefix or b"", columns))

    def scannerGet(self, ctx: Any, scanner_id: SentNumber) -> Any:
        return self.scannerGetList(ctx, scanner_id, 1)

    def scannerGetList(self, _ctx: Any, scanner_id: SentNumber, count: SentNumber) -> Any:
        scanner = self._scanners.get(_sent_id(scanner_id))
        if count is None or count < 0:
            raise IllegalArgument(f"the number of rows asked for is {count}; it must not be negative")
        rows = scanner.next_rows(count) if count else []
        if isinstance(rows, list):
            return RowList(rows, scanner.spec.sort_columns)
        return _listed(rows, scanner.spec.sort_columns)

    def scannerClose(self, _ctx: Any, scanner_id: SentNumber) -> None:
        self._scanners.close(_sent_id(scanner_id))


def _sent_id(scanner_id: SentNumber) -> int:
    return -1 if scanner_id is None else scanner_id  # which no scanner has


async def _listed(rows: Awaitable[list[Any]], sort_columns: bool) -> RowList:
    return RowList(await rows, sort_columns)


def filter_of(spec: ScanSpec) -> Filter | None:
    text = spec.filter_string
    if text is None:
        return None
    if not text:
        raise CallerError("the filter string is empty; leave it out for no filter")
    if len(text) > FILTER_BYTES:
        raise RequestTooBig(f"the filter string has {len(text)} bytes, at most {FILTER_BYTES} are allowed")
    row_filter = parse_filter(text)
    if spec.batch and row_filter.has_filter_row:
        raise IncompatibleFilter
    row_filter.set_reversed(spec.reversed)
    return row_filter
