"""(pure) An answer as a plain value, without what a server may choose.

    ["ok", value]   ["error", exception, class name]   ["ended"]

What goes: the numbers of scanners; names, ids and hosts of regions; the order inside maps; the text of errors
behind HBase's class name.  A timestamp that the server's clock gave becomes its rank among those of the same
row: ``"now#0"`` is the newest.  Everything else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from columnar.wire.idl import hbase
from tests.differential.calls import Call

# No generated timestamp lies in here, every clock does (2001 to 2096).
CLOCK: Final = range(1_000_000_000_000, 4_000_000_000_000)
_CLASS: Final = re.compile(r"(?:[\w$]+\.)*([A-Z][\w$]*)")
APPLICATION: Final = {0: "UNKNOWN", 1: "UNKNOWN_METHOD", 6: "INTERNAL_ERROR", 7: "PROTOCOL_ERROR"}

Answer = list[Any]


def ok(call: Call, result: Any) -> Answer:
    return ["ok", "scanner" if call.opens else _value(call, result)]


def declared(error: Any) -> Answer:
    """IOError, IllegalArgument or AlreadyExists; the class name only where the text has to begin with one."""
    name = type(error).__name__
    return ["error", name, _class_of(error.message) if name == "IOError" else ""]


def application(number: int) -> Answer:
    return ["error", "TApplicationException", APPLICATION.get(number, str(number))]


def ended() -> Answer:
    """The connection is gone."""
    return ["ended"]


def _class_of(message: str | bytes | None) -> str:
    text = message.decode("latin-1") if isinstance(message, bytes) else message or ""
    found = _CLASS.match(text)
    return found[1] if found else text[:80]


def _value(call: Call, result: Any) -> Any:
    if call.method == "getTableNames":
        return sorted(_text(name) for name in result)
    if call.method == "getTableNamesWithIsTableEnabled":
        return sorted([_text(name), enabled] for name, enabled in result.items())
    if call.method in ("getTableRegions", "getRegionInfo"):
        regions = result if isinstance(result, list) else [result]
        return sorted([_text(region.startKey), _text(region.endKey)] for region in regions)
    if call.method == "getColumnDescriptors":
        return sorted([_text(name), *_descriptor(one)] for name, one in result.items())
    if call.method == "getClusterId":
        return "some text" if result else "none"
    if isinstance(result, list):
        return _rows(result) if all(isinstance(one, hbase.TRowResult) for one in result) else _cells(result)
    return _text(result) if isinstance(result, bytes) else result


def _descriptor(one: Any) -> list[Any]:
    """bloomFilterVectorSize and -NbHashes mean nothing since long ago."""
    return [
        _text(one.name), one.maxVersions, _text(one.compression), one.inMemory, _text(one.bloomFilterType),
        one.blockCacheEnabled, one.timeToLive,
    ]  # fmt: skip


def _rows(rows: list[Any]) -> list[Any]:
    found = []
    for row in rows:
        if row.sortedColumns is not None:
            kind, cells = "sorted", [(column.columnName, column.cell) for column in row.sortedColumns]
        else:
            kind, cells = "columns", sorted((row.columns or {}).items())
        stamps = _ranked(cell.timestamp for _, cell in cells)
        named = [[_text(name), _text(cell.value), stamps(cell.timestamp)] for name, cell in cells]
        found.append([_text(row.row), kind, named])
    return found


def _cells(cells: list[Any]) -> list[Any]:
    stamps = _ranked(cell.timestamp for cell in cells)
    return [[_text(cell.value), stamps(cell.timestamp)] for cell in cells]


def _ranked(timestamps: Iterable[int]) -> Any:
    by_clock = sorted({at for at in timestamps if at in CLOCK}, reverse=True)
    return lambda at: f"now#{by_clock.index(at)}" if at in CLOCK else at


def _text(data: bytes | str) -> str:
    return data.decode("latin-1") if isinstance(data, bytes) else data
