"""Slow requests, one log line each: method, table, region, row, how long, how many cells.

The wire tells of them (``wire.service.Service.was_slow``), so a request that is not slow pays one
comparison.  Time counts from the handler's start to its answer, the wait for the fsync included.

Owned by the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final

from columnar.errors import ScannerNotFound, shown
from columnar.regions.scanners import Scanner, ScannerTable
from columnar.regions.tables import Tables
from columnar.wire.codec_replies import RowList
from columnar.wire.codec_results import Results
from columnar.wire.definitions import ServiceDefinition
from columnar.wire.idl import SERVICE
from columnar.wire.service import CallContext

_log = logging.getLogger("columnar.slow")

LINES_PER_SECOND: Final = 8  # one slow fsync makes slow requests of all that wait for it
PATIENT: Final = frozenset(
    {"columnarTriggerWait", "majorCompact", "columnarSplit", "columnarMerge"}
)  # slow is what they are for


class SlowLog:
    def __init__(
        self,
        tables: Tables,
        scanners: ScannerTable,
        limit_ms: int,
        now_s: Callable[[], float] = monotonic,
        definition: ServiceDefinition = SERVICE,
    ) -> None:
        self.limit_s = limit_ms / 1_000
        self.count = 0
        self._arguments = {name: _argument_names(definition, name) for name in definition.thrift_services}
        self._tables = tables
        self._scanners = scanners
        self._now = now_s
        self._second = -1  # in which the last line was written
        self._lines = 0  # in that second
        self._unlogged = 0  # since the last line

    def was_slow(self, ctx: CallContext, method: str, args: Sequence[Any], took_s: float, result: Any) -> None:
        if method in PATIENT:
            return
        self.count += 1
        second = int(self._now())
        if second != self._second:
            self._second, self._lines = second, 0
        if self._lines >= LINES_PER_SECOND:
            self._unlogged += 1
            return
        self._lines += 1
        words = [f"slow request: {method} took {took_s * 1_000:.0f} ms", *self._about(method, args, result)]
        unlogged, self._unlogged = self._unlogged, 0
        before = f"; {unlogged} more before it" if unlogged else ""
        _log.warning("%s; peer=%s%s", " ".join(words), ctx.peer, before)

    def _about(self, method: str, args: Sequence[Any], result: Any) -> list[str]:
        named = dict(zip(self._arguments[method], args, strict=False))
        words = []
        scanner_id = next((named[name] for name in ("id", "scannerId") if name in named), None)
        scanned = self._scanner(scanner_id) if scanner_id is not None and "Close" not in method else None
        subject = next((value for value in named.values() if hasattr(value, "row")), None)
        table = scanned.table if scanned else named.get("tableName", getattr(subject, "table", None))
        table = named.get("table", table)
        row = named.get("row", getattr(subject, "row", None))
        rows, cells, last = 0, 0, b""
        if isinstance(result, RowList):
            rows, cells, last = result.size()
        elif isinstance(result, Results):
            rows, cells, last = RowList([(one.row, one.cells) for one in result.results]).size()
        if isinstance(table, bytes):
            words.append(f"table={shown(table)}")
            words += self._region_of(table, last if scanned and rows else row)
        if isinstance(row, bytes):
            words.append(f"row={shown(row)}")
        if isinstance(result, RowList | Results):
            words.append(f"rows={rows} cells={cells}")
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


def _argument_names(definition: ServiceDefinition, method: str) -> tuple[str, ...]:
    spec = definition.signatures[method].args
    return tuple(spec[number][1] for number in sorted(spec))
