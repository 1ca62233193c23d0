"""Rows that cost more than a step are answered like any row: by every method, in every form, with every filter.

The same rows are read twice: with the real bounds of a step, and with bounds so small that nearly every row is wide.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from columnar.model.filter_language import parse
from columnar.model.mutation import Delete, Put
from columnar.model.schema import Family, make_table
from columnar.operations import reads, scanners, wide_reads
from columnar.regions.read import plain_rows, region_reads
from columnar.storage.api import PAIR_COST
from columnar.storage.rocks import RocksEngine
from columnar.thrift2.rows import RowMethods2, ScanMethods2
from columnar.wire.codec_replies import cells_success, compact_cells_success, compact_rows_success, rows_success
from columnar.wire.codec_results import compact_result_success, compact_results_success, result_success, results_success
from columnar.wire.detect import Protocol
from columnar.wire.idl import hbase
from columnar.wire.idl2 import hbase2
from columnar.wire.service import CallContext
from tests.support.region_house import House, rows_of
from tests.support.seeds import seed
from tests.support.service_calls import RowCalls, answer_of

TABLE = make_table("t", [Family("a"), Family("b", max_versions=4), Family("c", ttl_s=50)])
ROWS = [b"r%d" % n for n in range(6)]
FILTERS: list[bytes | None] = [
    None,
    b"ValueFilter(=, 'binary:v1')",
    b"FirstKeyOnlyFilter()",
    b"ColumnPaginationFilter(3, 2)",
    b"ColumnPrefixFilter('1')",
    b"SingleColumnValueFilter('a', '11', =, 'binary:v1', true, false)",
    b"SKIP ValueFilter(!=, 'binary:v2')",
    b"WHILE ValueFilter(!=, 'binary:v3')",
    b"PageFilter(2)",
    b"DependentColumnFilter('a', '12')",
    b"QualifierFilter(>, 'binary:15') AND PageFilter(3)",
    b"ValueFilter(=, 'regexstring:^v(1|2)+$')",
]


def context(protocol: Protocol) -> CallContext:
    return CallContext(1, "test", protocol)


def filled(house: House, rng: Random) -> None:
    for _ in range(260):
        row = rng.choice(ROWS)
        qualifier = rng.choice([b"%d" % rng.randint(10, 22), b"1\x00%d" % rng.randint(0, 4), b""])
        kind = rng.random()
        at = rng.choice([None, house.clock.now_ms - rng.randint(0, 300)])
        if kind < 0.12:
            house.apply(row, Delete(rng.choice([b"a", b"b"]), qualifier if rng.random() < 0.9 else None, at))
        else:
            value = b"v%d" % rng.randint(0, 5) if kind < 0.95 else b"x" * 9_000
            ttl = rng.choice([None, None, None, 40])
            house.apply(row, Put(rng.choice([b"a", b"b", b"c"]), qualifier, value, at, ttl_ms=ttl))
        house.clock.now_ms += rng.choice([0, 1, 30])


class Reader:
    """The reads of one seed, always the same."""

    def __init__(self, house: House, number: int) -> None:
        self.house = house
        self.rng = Random(number)
        self.calls = RowCalls(house)
        self.rows2 = RowMethods2(house.operations)
        self.scans2 = ScanMethods2(house.operations)

    async def answers(self) -> list[Any]:
        found: list[Any] = []
        for _ in range(40):
            found += await self.rows_of_1()
            found += await self.rows_of_2()
            found += await self.scans()
        return found

    async def rows_of_1(self) -> list[Any]:
        rng, calls = self.rng, self.calls
        row = rng.choice(ROWS)
        columns = rng.choice([None, [b"a"], [b"b:"], [b"a", b"b"], [b"a:%d" % n for n in range(10, 23)]])
        at = rng.choice([None, self.house.clock.now_ms - rng.randint(0, 200)])
        found = []
        for protocol, rows, cells in (
            (Protocol.BINARY, rows_success, cells_success),
            (Protocol.COMPACT, compact_rows_success, compact_cells_success),
        ):
            ctx = context(protocol)
            if at is None:
                got = await answer_of(calls.getRowWithColumns(ctx, b"t", row, columns, {}))
            else:
                got = await answer_of(calls.getRowWithColumnsTs(ctx, b"t", row, columns, at, {}))
            found.append(rows(got))
            found.append(rows(await answer_of(calls.getRows(ctx, b"t", ROWS[:4], {}))))
            column = rng.choice([b"a", b"b", b"b:", b"b:11", b"b:12"])
            versions = rng.choice([1, 2, 9])
            found.append(cells(await answer_of(calls.getVer(ctx, b"t", row, column, versions, {}))))
        return found

    async def rows_of_2(self) -> list[Any]:
        rng = self.rng
        tget = hbase2.TGet(
            row=rng.choice(ROWS),
            maxVersions=rng.choice([None, 1, 3]),
            storeLimit=rng.choice([None, 2]),
            storeOffset=rng.choice([None, 1, 4]),
        )
        others = [hbase2.TGet(row=row) for row in (b"none", *ROWS[:3])]
        found: list[Any] = []
        for protocol, one, several in (
            (Protocol.BINARY, result_success, results_success),
            (Protocol.COMPACT, compact_result_success, compact_results_success),
        ):
            ctx = context(protocol)
            found.append(one(await answer_of(self.rows2.get(ctx, b"t", tget))))
            found.append(several(await answer_of(self.rows2.getMultiple(ctx, b"t", [tget, *others]))))
            found.append(await answer_of(self.rows2.existsAll(ctx, b"t", others)))
        return found

    async def scans(self) -> list[Any]:
        rng = self.rng
        filter_string = rng.choice(FILTERS)
        spec: dict[str, Any] = {"reversed": rng.random() < 0.3, "limit": rng.choice([0, 0, 2])}
        if filter_string is None or not parse(filter_string).has_filter_row:
            spec["batch"] = rng.choice([0, 0, 3])
        columns = rng.choice([[], [b"a"], [b"b", b"c"], [b"a:11", b"b:12"]])
        if filter_string is not None:
            spec["filter_string"] = filter_string
        start = rng.choice([b"", b"r2"])
        row_filter = parse(filter_string) if filter_string is not None else None
        if row_filter is not None:
            row_filter.set_reversed(spec["reversed"])
        scanner = self.house.scanner(start, b"", *columns, row_filter=row_filter, **spec)
        found: list[Any] = []
        while rows := await rows_of(scanner, rng.choice([1, 2, 50])):
            found += [(row, list(cells)) for row, cells in rows]
        scan = hbase.TScan(
            startRow=start, columns=columns, filterString=filter_string, reversed=spec["reversed"],
            batchSize=spec.get("batch"), sortColumns=rng.random() < 0.5,
        )  # fmt: skip
        for protocol, pack in ((Protocol.BINARY, rows_success), (Protocol.COMPACT, compact_rows_success)):
            ctx = context(protocol)
            opened = await answer_of(self.calls.scannerOpenWithScan(ctx, b"t", scan, {}))
            for _ in range(4):
                found.append(pack(await answer_of(self.calls.scannerGetList(ctx, opened, 3))))
        tscan = hbase2.TScan(filterString=filter_string, maxVersions=rng.choice([1, 3]))
        for protocol, several in ((Protocol.BINARY, results_success), (Protocol.COMPACT, compact_results_success)):
            got = await answer_of(self.scans2.getScannerResults(context(protocol), b"t", tscan, 9))
            found.append(several(got))
        return found


@pytest.mark.parametrize("number", range(3))
def test_wide_rows_answer_as_any_row(number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    first = seed(57) + number

    async def main() -> None:
        rng = Random(first)
        engine = RocksEngine() if number == 0 else None
        house = House(TABLE, (b"r3",), engine=engine, folder=str(tmp_path / "regions"))
        filled(house, rng)
        for region in house.server.all_open():
            await house.server.hosting.quiesce(region)
        plain = await Reader(house, first).answers()
        cost = 3 * PAIR_COST
        for module in (region_reads, scanners):
            monkeypatch.setattr(module, "STEP_COST", cost)
            monkeypatch.setattr(module, "STEP_CELLS", 3)
        monkeypatch.setattr(plain_rows, "STEP_CELLS", 3)
        monkeypatch.setattr(plain_rows, "ROW_BYTES", 5_000)
        monkeypatch.setattr(wide_reads, "STEP_COST", rng.choice([0, cost]))
        monkeypatch.setattr(wide_reads, "_FILTERED_COST", rng.choice([0, cost]))
        read: list[str] = []
        whole = wide_reads.read_wide

        async def counted(*arguments: Any, **named: Any) -> Any:
            read.append(type(arguments[4]).__name__)
            return await whole(*arguments, **named)

        monkeypatch.setattr(reads, "read_wide", counted)
        monkeypatch.setattr(scanners, "read_wide", counted)
        wide = await Reader(house, first).answers()
        assert {"Packed", "PackedValues", "Listed", "Filtered", "First"} == set(read), "every sink has been there"
        assert len(read) > 500
        assert len(wide) == len(plain)
        for at, (one, other) in enumerate(zip(wide, plain, strict=True)):
            assert one == other, f"answer {at} of seed {first}"
        assert not any(region.on_leave for region in house.server.all_open())
        gathering = house.operations.access.reply_memory
        assert (gathering.calls, gathering.total_bytes) == (0, 0)
        await house.close()

    asyncio.run(main())
