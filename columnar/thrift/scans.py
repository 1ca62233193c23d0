"""Methods on scanners: to open them, to read their next rows and to close them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from columnar.cluster.row_forms import THRIFT1
from columnar.errors import IllegalArgument
from columnar.model.read import ScanSpec
from columnar.operations.packing import reply_form
from columnar.operations.table_operations import TableOperations
from columnar.regions.read.found_rows import FoundRows
from columnar.thrift import translate
from columnar.wire.codec_replies import RowList, map_rows
from columnar.wire.detect import Protocol
from columnar.wire.service import Sent, SentNumber


class ScanMethods:
    def __init__(self, operations: TableOperations) -> None:
        self._access = operations.access
        self._scanners = operations.scanners
        self._scans = operations.scans

    def scannerOpenWithScan(self, ctx: Any, table: Sent, scan: Any, attributes: Any) -> Any:
        served = self._access.meant(table)
        if scan is None:
            raise IllegalArgument("scannerOpenWithScan needs a scan; an empty one reads everything")
        translate.check_scan_attributes(attributes)
        return self._scans.open(ctx, served, translate.scan_spec(served.schema, scan))

    def scannerOpen(self, ctx: Any, table: Sent, start: Sent, columns: Any, attributes: Any) -> Any:
        return self._open_range(ctx, table, start, b"", columns, None, attributes)

    def scannerOpenWithStop(self, ctx: Any, table: Sent, start: Sent, stop: Sent, columns: Any, attributes: Any) -> Any:
        return self._open_range(ctx, table, start, stop, columns, None, attributes)

    def scannerOpenTs(
        self, ctx: Any, table: Sent, start: Sent, columns: Any, timestamp: SentNumber, attributes: Any
    ) -> Any:
        return self._open_range(ctx, table, start, b"", columns, timestamp, attributes)

    def scannerOpenWithStopTs(
        self, ctx: Any, table: Sent, start: Sent, stop: Sent, columns: Any, timestamp: SentNumber, attributes: Any
    ) -> Any:
        return self._open_range(ctx, table, start, stop, columns, timestamp, attributes)

    def _open_range(
        self, ctx: Any, table: Sent, start: Sent, stop: Sent, columns: Any, timestamp: SentNumber, attributes: Any
    ) -> Any:
        served = self._access.meant(table)
        translate.check_scan_attributes(attributes)
        read = translate.read_spec(served.schema, columns, timestamp)
        spec = ScanSpec(translate.checked_bound(start), translate.checked_bound(stop), read)
        return self._scans.open(ctx, served, spec)

    def scannerOpenWithPrefix(self, ctx: Any, table: Sent, prefix: Sent, columns: Any, attributes: Any) -> Any:
        served = self._access.meant(table)
        translate.check_scan_attributes(attributes)
        return self._scans.open(ctx, served, translate.prefix_spec(served.schema, prefix or b"", columns))

    def scannerGet(self, ctx: Any, scanner_id: SentNumber) -> Any:
        return self.scannerGetList(ctx, scanner_id, 1)

    def scannerGetList(self, ctx: Any, scanner_id: SentNumber, count: SentNumber) -> Any:
        scanner = self._scanners.get(_sent_id(scanner_id))
        if count is None or count < 0:
            raise IllegalArgument(f"the number of rows asked for is {count}; it must not be negative")
        if count == 0:
            return RowList([])
        in_order = scanner.spec.sort_columns
        pack = map_rows if ctx.protocol is Protocol.BINARY and not in_order else None
        found = self._scans.next_rows(ctx, scanner, count, pack, reply_form(THRIFT1, ctx.protocol, in_order))
        if isinstance(found, FoundRows):
            return RowList(found.blocks, in_order)
        return _listed(found, in_order)

    def scannerClose(self, _ctx: Any, scanner_id: SentNumber) -> None:
        self._scanners.close(_sent_id(scanner_id))


def _sent_id(scanner_id: SentNumber) -> int:
    return -1 if scanner_id is None else scanner_id  # which no scanner has


async def _listed(found: Awaitable[FoundRows], sort_columns: bool) -> RowList:
    return RowList((await found).blocks, sort_columns)
