"""Slow requests, one log line each: method, table, region, row, how long, how many cells.

Wraps the handlers, because only there arguments and result are at hand; a request that is not
slow pays two looks at the clock (0.2 microseconds).  Time counts from the handler's start to its
answer, the wait for the fsync included.

Owned by the loop.
"""

from __future__ import annotations

import logging
from asyncio import Future
from collections.abc import Awaitable, Mapping
from time import perf_counter
from typing import Any, Final

from columnar.errors import ScannerNotFound, shown
from columnar.regions.scanners import Scanner, ScannerTable
from columnar.regions.tables import Tables
from columnar.wire.codec_replies import RowList
from columnar.wire.codec_results import Result, Results
from columnar.wire.idl import SERVICE
from columnar.wire.service import CallContext, Handler, Later

_log = logging.getLogger("columnar.slow")

LINES_PER_FSYNC: Final = 8  # one slow fsync makes slow requests of all that wait for it
PATIENT: Final = frozenset({"columnarTriggerWait", "majorCompact"})  # slow is what they are for
_DIRECT: Final = frozenset({list, RowList, Result, Results, type(None), bool, int, str, bytes, dict})

_Call = tuple[float, str, CallContext, tuple[Any, ...]]  # start, method, who, arguments


class SlowLog:
    def __init__(self, tables: Tables, scanners: ScannerTable, limit_ms: int, definition: Any = SERVICE) -> None:
        self.count = 0
        self._arguments = {name: _argument_names(definition, name) for name in definition.thrift_services}
        self._tables = tables
        self._scanners = scanners
        self._limit_s = limit_ms / 1_000
        self._waiting: dict[Future[Any], list[_Call]] = {}  # by the fsync that they wait for

    def wrapped(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        return {name: handler if name in PATIENT else self._timed(name, handler) for name, handler in handlers.items()}

    def _timed(self, method: str, handler: Handler) -> Handler:
        limit_s = self._limit_s

        def timed(ctx: CallContext, *args: Any) -> Any:
            started = perf_counter()
            result: Any = None
            try:
                result = handler(ctx, *args)
            finally:
                took = perf_counter() - started
                if took >= limit_s and type(result) in _DIRECT:
                    self._slow((started, method, ctx, args), took, result)
            return result if type(result) in _DIRECT else self._watched(result, (started, method, ctx, args))

        return timed

    def _watched(self, result: Any, call: _Call) -> Any:
        if type(result) is Later:
            future = result.future
            if not isinstance(future, Future):
                return Later(self._awaited(future, call, result.result), result.result)
            calls = self._waiting.get(future)
            if calls is None:
                calls = self._waiting[future] = []
                future.add_done_callback(self._synced)
            calls.append(call)
            return result
        return self._awaited(result, call, None) if hasattr(result, "__await__") else result

    def _synced(self, future: Future[Any]) -> None:
        """The fsync has ended.  Those that waited stand in the order of their starts."""
        now = perf_counter()
        for number, call in enumerate(self._waiting.pop(future)):
            if now - call[0] < self._limit_s:
                return
            self._slow(call, now - call[0], None, quiet=number >= LINES_PER_FSYNC)

    async def _awaited(self, waiting: Awaitable[Any], call: _Call, answer: Any) -> Any:
        try:
            result = await waiting
            answer = answer if result is None else result
            return result
        finally:
            took = perf_counter() - call[0]
            if took >= self._limit_s:
                self._slow(call, took, answer)

    # --- the line ------------------------------------------------------------------------------------

    def _slow(self, call: _Call, took_s: float, result: Any, *, quiet: bool = False) -> None:
        self.count += 1
        if quiet:
            return
        _, method, ctx, args = call
        words = [f"slow request: {method} took {took_s * 1_000:.0f} ms", *self._about(method, args, result)]
        _log.warning("%s; peer=%s", " ".join(words), ctx.peer)

    def _about(self, method: str, args: tuple[Any, ...], result: Any) -> list[str]:
        named = dict(zip(self._arguments[method], args, strict=False))
        words = []
        scanner_id = next((named[name] for name in ("id", "scannerId") if name in named), None)
        scanned = self._scanner(scanner_id) if scanner_id is not None and "Close" not in method else None
        subject = next((value for value in named.values() if hasattr(value, "row")), None)
        table = scanned.table if scanned else named.get("tableName", getattr(subject, "table", None))
        table = named.get("table", table)
        row = named.get("row", getattr(subject, "row", None))
        rows: list[Any] = []
        if isinstance(result, RowList):
            rows = [(row, cells) for row, cells in result.rows]
        elif isinstance(result, Results):
            rows = [(one.row, one.cells) for one in result.results]
        if isinstance(table, bytes):
            words.append(f"table={shown(table)}")
            words += self._region_of(table, rows[-1][0] if scanned and rows else row)
        if isinstance(row, bytes):
            words.append(f"row={shown(row)}")
        if isinstance(result, RowList | Results):
            words.append(f"rows={len(rows)} cells={sum(len(cells) for _, cells in rows)}")
        if scanned:
            words.append(f"cells_read={scanned.cells_read}")
        for name in ("mutations", "rowBatches", "operations", "rows"):
            if isinstance(named.get(name), list):
                words.append(f"{name}={len(named[name])}")
        return words

    def _scanner(self, scanner_id: int) -> Scanner | None:
        try:
            return self._scanners.get(scanner_id)
        except ScannerNotFound:
            return None

    def _region_of(self, table: bytes, row: Any) -> list[str]:
        served = self._tables.find(table)
        if served is None or (not isinstance(row, bytes) and len(served.regions) > 1):
            return []
        return [f"region={served.holding(row if isinstance(row, bytes) else b'').encoded}"]


def _argument_names(definition: Any, method: str) -> tuple[str, ...]:
    spec = getattr(definition, f"{method}_args").thrift_spec
    return tuple(spec[number][1] for number in sorted(spec))
