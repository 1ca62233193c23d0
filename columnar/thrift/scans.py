"""Methods on scanners: every way to open one, to move it on and to close it."""

from __future__ import annotations

from collections.abc import Awaitable
from time import perf_counter
from typing import Any

from columnar.errors import CallerError, ClientGone, IllegalArgument, IncompatibleFilter, RequestTooBig
from columnar.limits import FILTER_BYTES, SHORT_FILTER_BYTES, STEP_S
from columnar.model.filters import Filter
from columnar.model.read import ScanSpec
from columnar.regions.found_rows import FoundRows
from columnar.regions.scanners import Scanner, ScannerTable
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.thrift import translate
from columnar.turns import HasGone, Turns
from columnar.wire.codec_replies import RowList, map_rows
from columnar.wire.detect import Protocol
from columnar.wire.service import Sent, SentNumber


class ScanMethods:
    def __init__(self, server: RegionServer, scanners: ScannerTable) -> None:
        self._server = server
        self._scanners = scanners

    def _open(self, ctx: Any, served: ServedTable, spec: ScanSpec) -> Any:
        """A mistake is told here, at the opening, not by the first ``scannerGet`` (observed row 2)."""
        table = served.schema.name.encode()
        if has_long_filter(spec):
            return self._open_in_turns(ctx, table, spec)
        return self._scanners.open(Scanner(self._server, table, spec, filter_of(spec)), ctx.connection_id)

    async def _open_in_turns(self, ctx: Any, table: bytes, spec: ScanSpec) -> int:
        row_filter = await filter_in_turns(spec, self._server.gathering.turns, ctx.has_gone)
        return self._scanners.open(Scanner(self._server, table, spec, row_filter), ctx.connection_id)

    def scannerOpenWithScan(self, ctx: Any, table: Sent, scan: Any, _attributes: Any) -> Any:
        served = self._server.tables.enabled(table)
        if scan is None:
            raise IllegalArgument("scannerOpenWithScan needs a scan; an empty one reads everything")
        return self._open(ctx, served, translate.scan_spec(served.schema, scan))

    def scannerOpen(self, ctx: Any, table: Sent, start: Sent, columns: Any, _attributes: Any) -> Any:
        return self._open_range(ctx, table, start, b"", columns, None)

    def scannerOpenWithStop(
        self, ctx: Any, table: Sent, start: Sent, stop: Sent, columns: Any, _attributes: Any
    ) -> Any:
        return self._open_range(ctx, table, start, stop, columns, None)

    def scannerOpenTs(
        self, ctx: Any, table: Sent, start: Sent, columns: Any, timestamp: SentNumber, _attributes: Any
    ) -> Any:
        return self._open_range(ctx, table, start, b"", columns, timestamp)

    def scannerOpenWithStopTs(
        self, ctx: Any, table: Sent, start: Sent, stop: Sent, columns: Any, timestamp: SentNumber, _attributes: Any
    ) -> Any:
        return self._open_range(ctx, table, start, stop, columns, timestamp)

    def _open_range(self, ctx: Any, table: Sent, start: Sent, stop: Sent, columns: Any, timestamp: SentNumber) -> Any:
        served = self._server.tables.enabled(table)
        read = translate.read_spec(served.schema, columns, timestamp)
        return self._open(ctx, served, ScanSpec(translate.checked_bound(start), translate.checked_bound(stop), read))

    def scannerOpenWithPrefix(self, ctx: Any, table: Sent, prefix: Sent, columns: Any, _attributes: Any) -> Any:
        served = self._server.tables.enabled(table)
        return self._open(ctx, served, translate.prefix_spec(served.schema, prefix or b"", columns))

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
        found = scanner.next_rows(count, pack, ctx.has_gone)
        if isinstance(found, FoundRows):
            return RowList(found.blocks, in_order)
        return _listed(found, in_order)

    def scannerClose(self, _ctx: Any, scanner_id: SentNumber) -> None:
        self._scanners.close(_sent_id(scanner_id))


def _sent_id(scanner_id: SentNumber) -> int:
    return -1 if scanner_id is None else scanner_id  # which no scanner has


async def _listed(found: Awaitable[FoundRows], sort_columns: bool) -> RowList:
    return RowList((await found).blocks, sort_columns)


def has_long_filter(spec: ScanSpec) -> bool:
    """Parsing it at once would hold the loop for longer than a turn."""
    return spec.filter_string is not None and len(spec.filter_string) > SHORT_FILTER_BYTES


def filter_of(spec: ScanSpec) -> Filter | None:
    if spec.filter_string is None:
        return None
    from columnar.model.filter_language import parse  # with all filters, 0.7 MB, by the first scan that has one

    return _ready(spec, parse(_checked(spec.filter_string)))


async def filter_in_turns(spec: ScanSpec, turns: Turns, has_gone: HasGone) -> Filter | None:
    """As ``filter_of``, others are served meanwhile.  ClientGone."""
    if spec.filter_string is None:
        return None
    from columnar.model.filter_language import parse_in_steps

    steps = parse_in_steps(_checked(spec.filter_string))
    while True:
        await turns.turn()
        if has_gone():
            raise ClientGone
        ends = perf_counter() + STEP_S
        try:
            while perf_counter() < ends:
                next(steps)
        except StopIteration as done:
            return _ready(spec, done.value)


def _checked(text: bytes) -> bytes:
    if not text:
        raise CallerError("the filter string is empty; leave it out for no filter")
    if len(text) > FILTER_BYTES:
        raise RequestTooBig(f"the filter string has {len(text)} bytes, at most {FILTER_BYTES} are allowed")
    return text


def _ready(spec: ScanSpec, row_filter: Filter) -> Filter:
    if spec.batch and row_filter.has_filter_row:
        raise IncompatibleFilter
    row_filter.set_reversed(spec.reversed)
    return row_filter
