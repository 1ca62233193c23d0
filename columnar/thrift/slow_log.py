"""Slow requests, one log line each: method, table, region, row, how long, how many cells.

Wraps the handlers, because only there arguments and result are at hand; a request that is not
slow pays two looks at the clock (0.2 microseconds).  A request that meets a region in the middle of
a split or a merge is asked again from here (``away``); that is part of its time.  Time counts from
the handler's start to its answer, the wait for the fsync included.

Owned by the loop.
"""

from __future__ import annotations

import logging
from asyncio import Future
from collections.abc import Awaitable, Mapping
from time import perf_counter
from typing import Any, Final

from columnar.errors import RegionAway, ScannerNotFound, shown
from columnar.regions.scanners import Scanner, ScannerTable
from columnar.regions.tables import Tables
from columnar.thrift.away import asked_again
from columnar.wire.codec_replies import RowList
from columnar.wire.idl import SERVICE
from columnar.wire.service import CallContext, Handler, Later

_log = logging.getLogger("columnar.slow")

LINES_PER_FSYNC: Final = 8  # one slow fsync makes slow requests of all that wait for it
PATIENT: Final = frozenset(
    {"columnarTriggerWait", "majorCompact", "columnarSplit", "columnarMerge"}
)  # slow is what they are for
_DIRECT: Final = frozenset({list, RowList, type(None), bool, int, str, bytes, dict})

_Call = tuple[float, str, CallContext, tuple[Any, ...]]  # start, method, who, arguments


class SlowLog:
    def __init__(self, tables: Tables, scanners: ScannerTable, limit_ms: int) -> None:
        self.count = 0
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
            except RegionAway as away:
                result = asked_again(handler, ctx, args, away)
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
        named = dict(zip(_ARGUMENTS[method], args, strict=False))
        words = []
        scanned = self._scanner(named["id"]) if method in ("scannerGet", "scannerGetList") else None
        subject = next((named[name] for name in ("increment", "append") if name in named), None)
        table = scanned.table if scanned else named.get("tableName", getattr(subject, "table", None))
        table = named.get("table", table)
        row = named.get("row", getattr(subject, "row", None))
        rows = result.rows if isinstance(result, RowList) else []
        if isinstance(table, bytes):
            words.append(f"table={shown(table)}")
            words += self._region_of(table, rows[-1][0] if scanned and rows else row)
        if isinstance(row, bytes):
            words.append(f"row={shown(row)}")
        if isinstance(result, RowList):
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


def _argument_names(method: str) -> tuple[str, ...]:
    spec = getattr(SERVICE, f"{method}_args").thrift_spec
    return tuple(spec[number][1] for number in sorted(spec))


_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {method: _argument_names(method) for method in SERVICE.thrift_services}
