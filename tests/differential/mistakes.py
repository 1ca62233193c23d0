"""(pure) Calls that every server has to refuse, or to answer with nothing.

Not here, because HBase takes 50 to 170 seconds for each (COMPATIBILITY.md, "At once"): calls of several rows on a
disabled table, atomicIncrement with an empty or overlong row or an empty family, a time to live that has not
eight bytes, a batchSize beside a filter of whole rows.  A table name of over 200 bytes never comes back at all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.differential.calls import Call, Scanner
from tests.differential.random_filters import spoilt

_LONG = b"x" * 32_768  # one more than a row may have


def _delete(column: bytes) -> dict[str, Any]:
    return {"isDelete": True, "column": column}


def _put(column: bytes) -> dict[str, Any]:
    return {"column": column, "value": b"1"}


def mistake(rng: random.Random, table: bytes, families: list[bytes], prefix: bytes, opens: Scanner) -> Iterator[Call]:
    """One mistake; an opening is followed by a look at what the scanner gives."""
    makers = (
        _reads, _reads, _rows, _writes, _writes, _deletes, _counts, _appends, _checks, _tables, _names, _ids, _unset,
    )  # fmt: skip
    if rng.random() < 0.3:
        yield from _scans(rng, table, prefix, opens)
        return
    maker = rng.choice(makers)
    method, args = rng.choice(maker(table, rng.choice(families) + b":a", prefix + b"none"))
    yield Call("mistake", method, args)


def _reads(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    return [
        ("get", (missing, b"r", b"f:a", {})),
        ("get", (table, b"r", b"nofam:a", {})),
        ("get", (table, b"", good, {})),
        ("get", (table, _LONG, good, {})),
        ("get", (table, b"r", b"", {})),
        ("get", (table, b"r", b":x", {})),
        ("get", (b"", b"r", good, {})),
        ("get", (b"a b", b"r", good, {})),
        ("getVer", (table, b"r", good, 0, {})),
        ("getVer", (table, b"r", good, -1, {})),
        ("getVerTs", (table, b"r", good, -1, 1, {})),
        ("getVerTs", (table, b"r", good, 5, 0, {})),
    ]


def _rows(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    return [
        ("getRow", (table, b"", {})),
        ("getRow", (missing, b"r", {})),
        ("getRowWithColumns", (table, b"r", [good, b"nofam"], {})),
        ("getRowWithColumns", (table, b"r", [b""], {})),
        ("getRowWithColumns", (table, b"r", [b":x"], {})),
        ("getRowTs", (table, b"r", -1, {})),
        ("getRowWithColumnsTs", (table, b"r", [good], -5, {})),
        ("getRows", (table, [b""], {})),
        ("getRows", (table, [b"r", b""], {})),
        ("getRows", (missing, [b"r"], {})),
        ("getRows", (missing, [b"r", b"s"], {})),
        ("getRows", (table, [], {})),
        ("getRow", (table, _LONG[1:], {})),
        ("getRowsWithColumns", (table, [b"r"], [b"nofam"], {})),
        ("getRowsWithColumns", (table, [b"r", b"s"], [b"nofam:a"], {})),
        ("getRowsTs", (table, [b"r", b"s"], -1, {})),
    ]


def _writes(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    family = good.partition(b":")[0]
    return [
        ("mutateRow", (table, b"", [_put(good)], {})),
        ("mutateRow", (table, _LONG, [_put(good)], {})),
        ("mutateRow", (table, b"r", [], {})),
        ("mutateRow", (table, b"r", [_put(family)], {})),
        ("mutateRow", (table, b"r", [_put(b":x")], {})),
        ("mutateRow", (table, b"r", [_put(b"nofam:a")], {})),
        ("mutateRow", (missing, b"r", [_put(good)], {})),
        ("mutateRow", (missing, b"r", [], {})),
        ("mutateRows", (missing, [], {})),
        ("mutateRow", (table, b"", [], {})),
        ("mutateRowTs", (table, b"r", [_put(good)], -1, {})),
        ("mutateRows", (table, [], {})),
        ("mutateRows", (table, [{"row": b"r", "mutations": []}], {})),
        ("mutateRows", (table, [{"row": b"", "mutations": [_put(good)]}], {})),
        ("mutateRows", (table, [{"row": b"r", "mutations": [_put(b"nofam:a")]}], {})),
        ("mutateRows", (table, [{"row": b"r", "mutations": [_put(family)]}], {})),
        ("mutateRows", (table, [{"row": b"r", "mutations": [_put(b":x")]}], {})),
        ("mutateRows", (missing, [{"row": row, "mutations": [_put(good)]} for row in (b"r", b"s")], {})),
        ("mutateRowsTs", (table, [{"row": b"r", "mutations": [_put(good)]}], -1, {})),
    ]


def _deletes(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    return [
        ("mutateRow", (table, b"r", [_delete(b"nofam")], {})),
        ("mutateRow", (table, b"r", [_delete(b":q")], {})),
        ("mutateRow", (table, b"r", [_delete(b"")], {})),
        ("mutateRow", (table, b"", [_delete(good)], {})),
        ("mutateRowTs", (table, b"r", [_delete(good)], -1, {})),
        ("mutateRowsTs", (table, [{"row": b"r", "mutations": [_delete(b"nofam:q")]}], 5, {})),
        ("deleteAll", (table, b"", good, {})),
        ("deleteAll", (table, b"r", b"nofam:a", {})),
        ("deleteAll", (table, b"r", b"", {})),
        ("deleteAll", (missing, b"r", good, {})),
        ("deleteAllTs", (table, b"r", good, -1, {})),
        ("deleteAllRow", (table, b"", {})),
        ("deleteAllRow", (missing, b"r", {})),
        ("deleteAllRowTs", (table, b"r", -1, {})),
    ]


def _counts(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    def increment(in_table: bytes, row: bytes, column: bytes) -> dict[str, Any]:
        return {"table": in_table, "row": row, "column": column, "ammount": 1}

    return [
        ("atomicIncrement", (table, b"r", b"nofam:a", 1)),
        ("atomicIncrement", (missing, b"r", good, 1)),
        ("increment", (increment(table, b"r", b"nofam:a"),)),
        ("increment", (increment(b"", b"r", good),)),
        ("increment", (increment(table, b"", good),)),
        ("increment", (increment(missing, b"r", good),)),
        ("incrementRows", ([],)),
    ]


def _appends(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    def append(in_table: bytes, row: bytes, columns: list[bytes], values: list[bytes]) -> tuple[str, tuple[Any, ...]]:
        return "append", ({"table": in_table, "row": row, "columns": columns, "values": values},)

    return [
        append(table, b"", [good], [b"1"]),
        append(table, b"r", [good], []),
        append(table, b"r", [], []),
        append(table, b"r", [good.partition(b":")[0]], [b"1"]),
        append(table, b"r", [b"nofam:a"], [b"1"]),
        append(missing, b"r", [good], [b"1"]),
    ]


def _checks(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    family = good.partition(b":")[0]
    return [
        ("checkAndPut", (table, b"", good, None, _put(good), {})),
        ("checkAndPut", (table, b"r", family, None, _put(good), {})),
        ("checkAndPut", (table, b"r", b"nofam:a", None, _put(good), {})),
        ("checkAndPut", (table, b"r~none", good, b"nope", _put(b"nofam:a"), {})),
        ("checkAndPut", (table, b"r~none", good, b"", _put(b"nofam:a"), {})),
        ("checkAndPut", (table, b"r~none", good, None, _put(family), {})),
        ("checkAndPut", (table, b"r", good, None, None, {})),
        ("checkAndPut", (missing, b"r", good, b"", _put(good), {})),
    ]


def _tables(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    return [
        ("deleteTable", (table,)),
        ("deleteTable", (missing,)),
        ("enableTable", (table,)),
        ("enableTable", (missing,)),
        ("disableTable", (missing,)),
        ("isTableEnabled", (missing,)),
        ("isTableEnabled", (b"",)),
        ("getColumnDescriptors", (missing,)),
        ("getTableRegions", (missing,)),
        ("compact", (missing,)),
        ("majorCompact", (b"",)),
        ("createTable", (table, [{"name": b"f"}])),
    ]


def _names(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    families: list[list[dict[str, Any]]] = [
        [],
        [{"name": b""}],
        [{"name": b":"}],
        [{"name": b"a/b"}],
        [{"name": b".a"}],
        [{"name": b"a\x01"}],
        [{"name": b"recovered.edits"}],
        [{"name": b"x" * 128}],
        [{"name": b"f", "maxVersions": 0}],
        [{"name": b"f", "maxVersions": -1}],
        [{"name": b"f", "compression": "GZIP"}],
        [{"name": b"f", "bloomFilterType": "row"}],
        [{"name": b"f:"}, {"name": b"f"}],
    ]
    names = [b"", b"a b", b"nns:x", b".t", b"-t", b"a:b:c", b"a/b"]
    return [
        *(("createTable", (missing, one)) for one in families),
        *(("createTable", (name, [{"name": b"f"}])) for name in names),
    ]


def _unset(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    """Fields that a client leaves out; attributes may be."""
    return [
        ("get", (None, b"r", good, {})),
        ("get", (table, None, good, {})),
        ("get", (table, b"r", None, {})),
        ("get", (table, b"r", good, None)),
        ("getVer", (table, b"r", good, None, {})),
        ("getRow", (None, b"r", None)),
        ("getRow", (table, None, {})),
        ("getRowWithColumns", (table, b"r", None, None)),
        ("getRows", (table, None, {})),
        ("getRows", (None, [b"r"], {})),
        ("mutateRow", (None, b"r", [_put(good)], {})),
        ("mutateRow", (table, None, [_put(good)], {})),
        ("mutateRow", (table, b"r", None, {})),
        ("mutateRow", (table, b"r", [{"column": None, "value": b"1"}], {})),
        ("mutateRow", (table, b"r", [{"column": None, "isDelete": True}], {})),
        ("mutateRows", (table, None, {})),
        ("mutateRows", (None, [], {})),
        ("mutateRows", (table, [{"row": None, "mutations": [_put(good)]}], {})),
        ("mutateRows", (table, [{"row": b"r", "mutations": None}], {})),
        ("deleteAll", (table, b"r", None, {})),
        ("deleteAll", (None, b"r", good, {})),
        ("deleteAllRow", (table, None, {})),
        ("increment", (None,)),
        ("increment", ({"table": None, "row": b"r", "column": good, "ammount": 1},)),
        ("incrementRows", (None,)),
        ("append", (None,)),
        ("append", ({"table": table, "row": b"r", "columns": None, "values": [b"1"]},)),
        ("append", ({"table": None, "row": b"r", "columns": [good], "values": [b"1"]},)),
        ("checkAndPut", (table, b"r", None, None, _put(good), {})),
        ("checkAndPut", (table, None, good, None, _put(good), {})),
        ("checkAndPut", (None, b"r", good, None, _put(good), {})),
        ("createTable", (None, [{"name": b"f"}])),
        ("createTable", (missing, None)),
        ("createTable", (missing, [{"name": None}])),
        ("deleteTable", (None,)),
        ("enableTable", (None,)),
        ("disableTable", (b"",)),
        ("isTableEnabled", (None,)),
        ("getColumnDescriptors", (b"",)),
        ("getTableRegions", (None,)),
        ("getTableRegions", (b"a b",)),
        ("compact", (None,)),
        ("majorCompact", (None,)),
    ]


def _ids(table: bytes, good: bytes, missing: bytes) -> list[tuple[str, tuple[Any, ...]]]:
    return [
        ("scannerGet", (1_999_999_999,)),
        ("scannerGet", (-1,)),
        ("scannerGetList", (1_999_999_999, 10)),
        ("scannerClose", (1_999_999_999,)),
    ]


def _scans(rng: random.Random, table: bytes, prefix: bytes, opens: Scanner) -> Iterator[Call]:
    missing = prefix + b"none"
    method, args = rng.choice(
        (
            *(("scannerOpenWithScan", (table, {"filterString": spoilt(rng)}, {})) for _ in range(6)),
            ("scannerOpenWithScan", (missing, {}, {})), ("scannerOpen", (missing, b"", [], {})),
            ("scannerOpenWithScan", (table, {"columns": [b"nofam:a"]}, {})),
            ("scannerOpenWithScan", (table, {"columns": [b":a"]}, {})),
            ("scannerOpenWithScan", (table, {"timestamp": -1}, {})), ("scannerOpenTs", (table, b"", [], -1, {})),
            ("scannerOpen", (table, _LONG, [], {})), ("scannerOpenWithStop", (table, b"", b"", [b"nofam"], {})),
            ("scannerOpenWithPrefix", (table, b"r0", [b"nofam:a"], {})),
            ("scannerOpenWithScan", (table, {"batchSize": -1}, {})), ("scannerOpenWithScan", (table, {}, None)),
            ("scannerOpenWithScan", (table, None, {})), ("scannerOpenWithScan", (None, {}, {})),
            ("scannerOpen", (table, None, None, {})), ("scannerOpenWithStop", (table, b"", None, None, {})),
        )
    )  # fmt: skip
    yield Call("mistake", method, args, opens)
    yield Call("mistake", "scannerGetList", (opens, rng.choice((-1, 1, 5))))
    yield Call("mistake", "scannerClose", (opens,))
