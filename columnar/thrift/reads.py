"""Methods that read rows by their keys (get, getVer, getRow, getRows and similar ones), and scanners.

A handler returns its result, or ``Later(future, result)`` if the answer must wait for a future, which other answers may
share (the group commit).  No handler makes a task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Final

from columnar.cluster.row_forms import THRIFT1
from columnar.errors import IllegalArgument, VersionsNotPositive
from columnar.limits import SLICE_CELLS
from columnar.model.cell import checked_row, split_column
from columnar.model.read import ReadSpec, ScanSpec
from columnar.operations.packing import reply_form
from columnar.operations.reads import PackedAnswer, RowQuery
from columnar.operations.table_operations import TableOperations
from columnar.regions.read.found_rows import FoundRows
from columnar.regions.read.row_reader import Cells
from columnar.regions.tables import READ_SPECS, ServedTable
from columnar.rights.named_columns import columns_from
from columnar.storage.stored_cells import PackedRows
from columnar.thrift import translate
from columnar.wire.codec_replies import RowList, map_rows
from columnar.wire.detect import Protocol
from columnar.wire.service import Sent, SentNumber

_REMEMBERED_BYTES: Final = 4 * 1024  # of the columns of a read; a longer list is parsed each time


class ReadMethods:
    def __init__(self, operations: TableOperations) -> None:
        self._access = operations.access
        self._reads = operations.reads

    # --- cells -------------------------------------------------------------------------------------

    def _cells(self, ctx: Any, table: Sent, row: Sent, column: Sent, timestamp: SentNumber, versions: int) -> Any:
        served = self._access.meant(table)
        row = checked_row(row)
        if versions <= 0:
            raise VersionsNotPositive(versions)
        family, qualifier = split_column(column or b"")
        if qualifier is not None and timestamp is None and versions == 1:
            served.schema.family(family)
            return self._reads.column(ctx, served, row, family, qualifier)
        spec = translate.read_spec(served.schema, [column or b""], timestamp, versions)
        if qualifier is not None:
            return self._reads.column(ctx, served, row, family, qualifier, spec)
        return self._reads.family(ctx, served, row, family, spec)

    def get(self, ctx: Any, table: Sent, row: Sent, column: Sent, _attributes: Any) -> Any:
        return self._cells(ctx, table, row, column, None, 1)

    def getVer(self, ctx: Any, table: Sent, row: Sent, column: Sent, count: SentNumber, _attributes: Any) -> Any:
        return self._cells(ctx, table, row, column, None, count or 0)

    def getVerTs(
        self,
        ctx: Any,
        table: Sent,
        row: Sent,
        column: Sent,
        timestamp: SentNumber,
        count: SentNumber,
        _attributes: Any,
    ) -> Any:
        return self._cells(ctx, table, row, column, timestamp, count or 0)

    # --- rows --------------------------------------------------------------------------------------

    def _spec(self, served: ServedTable, columns: Sequence[bytes] | None, timestamp: int | None) -> ReadSpec:
        key = (timestamp, *columns) if columns else (timestamp,)
        spec = served.specs.get(key)
        if spec is None:
            spec = translate.read_spec(served.schema, columns, timestamp)
            if not columns or sum(map(len, columns)) <= _REMEMBERED_BYTES:
                if len(served.specs) >= READ_SPECS:
                    served.specs.clear()
                served.specs[key] = spec
        return spec

    def getRow(self, ctx: Any, table: Sent, row: Sent, attributes: Any) -> Any:
        return self._row(ctx, table, row, columns_from(attributes), None)

    def getRowWithColumns(self, ctx: Any, table: Sent, row: Sent, columns: Any, _attributes: Any) -> Any:
        return self._row(ctx, table, row, columns, None)

    def getRowTs(self, ctx: Any, table: Sent, row: Sent, timestamp: SentNumber, attributes: Any) -> Any:
        return self._row(ctx, table, row, columns_from(attributes), timestamp)

    def getRowWithColumnsTs(
        self, ctx: Any, table: Sent, row: Sent, columns: Any, timestamp: SentNumber, _attributes: Any
    ) -> Any:
        return self._row(ctx, table, row, columns, timestamp)

    def _row(self, ctx: Any, table: Sent, row: Sent, columns: Any, timestamp: SentNumber) -> Any:
        served = self._access.meant(table)
        spec = self._spec(served, columns, timestamp)
        return self._reads.read_row(ctx, served, checked_row(row), spec, _row_list, _PACKED)

    def columnarRowSlice(
        self,
        _ctx: Any,
        table: Sent,
        row: Sent,
        family: Sent,
        start: Sent,
        stop: Sent,
        limit: SentNumber,
        reverse: bool | None,
    ) -> Any:
        served = self._access.meant(table)
        name = (family or b"").removesuffix(b":")
        served.schema.family(name)
        if not 0 < (limit or 0) <= SLICE_CELLS:
            raise IllegalArgument(f"a slice of a row has 1 to {SLICE_CELLS} cells, not {limit}; ask for the next one")
        span = (start or b"", stop or b"")
        return self._reads.slice(
            served, checked_row(row), name, span, limit or 0, _sorted_list, reverse=bool(reverse)
        )  # fmt: skip

    def getRows(self, ctx: Any, table: Sent, rows: Any, attributes: Any) -> Any:
        return self._rows(ctx, table, rows, columns_from(attributes), None)

    def getRowsWithColumns(self, ctx: Any, table: Sent, rows: Any, columns: Any, _attributes: Any) -> Any:
        return self._rows(ctx, table, rows, columns, None)

    def getRowsTs(self, ctx: Any, table: Sent, rows: Any, timestamp: SentNumber, attributes: Any) -> Any:
        return self._rows(ctx, table, rows, columns_from(attributes), timestamp)

    def getRowsWithColumnsTs(
        self, ctx: Any, table: Sent, rows: Any, columns: Any, timestamp: SentNumber, _attributes: Any
    ) -> Any:
        return self._rows(ctx, table, rows, columns, timestamp)

    def _rows(self, ctx: Any, table: Sent, rows: list[bytes] | None, columns: Any, timestamp: SentNumber) -> Any:
        """Return the rows in the requested order, without missing ones (gateway behaviour 8)."""
        served = self._access.meant(table)
        spec = self._spec(served, columns, timestamp)
        asked = [checked_row(row) for row in rows or ()]
        return self._reads.rows(ctx, served, RowQuery(asked, [spec] * len(asked)), RowList)


def _row_list(row: bytes, cells: Cells) -> RowList:
    return RowList([(row, cells)] if cells else [])


def _packed_list(packed: PackedRows | None) -> RowList:
    return RowList([packed] if packed is not None else [])


_PACKED: Final = PackedAnswer(THRIFT1, _packed_list)


def _sorted_list(row: bytes, cells: Cells) -> RowList:
    return RowList([(row, cells)] if cells else [], sorted=True)


# --- scanners ----------------------------------------------------------------------------------------


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
        return self._scans.open_scanner(ctx, served, translate.scan_spec(served.schema, scan))

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
        return self._scans.open_scanner(ctx, served, spec)

    def scannerOpenWithPrefix(self, ctx: Any, table: Sent, prefix: Sent, columns: Any, attributes: Any) -> Any:
        served = self._access.meant(table)
        translate.check_scan_attributes(attributes)
        return self._scans.open_scanner(ctx, served, translate.prefix_spec(served.schema, prefix or b"", columns))

    def scannerGet(self, ctx: Any, scanner_id: SentNumber) -> Any:
        return self.scannerGetList(ctx, scanner_id, 1)

    def scannerGetList(self, ctx: Any, scanner_id: SentNumber, count: SentNumber) -> Any:
        scanner = self._scanners.get(_sent_id(scanner_id), ctx.user)
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

    def scannerClose(self, ctx: Any, scanner_id: SentNumber) -> None:
        self._scanners.close(_sent_id(scanner_id), ctx.user)


def _sent_id(scanner_id: SentNumber) -> int:
    return -1 if scanner_id is None else scanner_id  # which no scanner has


async def _listed(found: Awaitable[FoundRows], sort_columns: bool) -> RowList:
    return RowList((await found).blocks, sort_columns)
