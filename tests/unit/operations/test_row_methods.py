"""Rows at their limits, and calls that touch more regions than may be open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from columnar.errors import (
    CellTooBig,
    IllegalArgument,
    NoSuchColumnFamily,
    PutTooBig,
    RequestTooBig,
    TableNotEnabled,
)
from columnar.limits import CELL_BYTES
from columnar.model.mutation import Append, Delete, Increment, Put, RowPuts
from columnar.model.read import ReadSpec, projection
from columnar.model.schema import Family, Table, make_table
from columnar.operations import reads
from columnar.regions.read.region_reads import get_column
from columnar.regions.write import row_draft
from columnar.storage.layout import TIMESTAMP_MAX
from columnar.wire.idl import hbase
from columnar.wire.sent_puts import SHAPE_BYTES, SentPuts
from columnar.wire.service import CallContext
from tests.support.region_house import House
from tests.support.service_calls import RowCalls, answer_of

TABLE = make_table("t", [Family("a"), Family("b", max_versions=3)])
CTX = CallContext(1, "test")


def batches(*rows: bytes) -> list[Any]:
    return [hbase.BatchMutation(row=row, mutations=[hbase.Mutation(column=b"a:q", value=row)]) for row in rows]


def test_a_call_over_more_regions_than_may_be_open() -> None:
    async def main() -> None:
        house = House(TABLE, (b"g", b"p"), open_regions=1)
        methods = RowCalls(house)
        await answer_of(methods.mutateRows(CTX, b"t", batches(b"a", b"h", b"z", b"b"), {}))
        for row in (b"a", b"b", b"h", b"z"):
            assert [value for _, value, _ in house.row(row)] == [row]
        found = await answer_of(methods.getRows(CTX, b"t", [b"z", b"a", b"h"], {}))
        assert [row for row, _ in found.rows] == [b"z", b"a", b"h"]
        await house.close()

    asyncio.run(main())


def test_a_region_with_writes_under_way_is_not_closed_for_another() -> None:
    async def main() -> None:
        house = House(TABLE, (b"m",), open_regions=1)
        house.gate.hold()
        applied = house.apply(b"a", Put(b"a", b"q", b"v"))
        house.region(b"z")
        assert house.server.open_count() == 2
        house.gate.release()
        assert applied.durable is not None
        await applied.durable
        assert [value for _, value, _ in house.row(b"a")] == [b"v"]
        await house.close()

    asyncio.run(main())


def test_many_rows_are_read_in_turns_in_the_order_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "STEP_CELLS", 2 * reads.SEEK_CELLS)

    async def main() -> None:
        house = House(TABLE, (b"m",))
        for row in (b"a", b"b", b"z"):
            await house.put_value(row, row * 10)
        methods = RowCalls(house)
        asked = [b"z", b"none", b"a", b"b", b"a"]
        found = await methods.getRows(CTX, b"t", asked, {})
        assert [row for row, _ in found.rows] == [b"z", b"a", b"b", b"a"]
        monkeypatch.setattr(reads, "ROWS_BYTES", 100)
        with pytest.raises(RequestTooBig, match="ask for fewer"):
            await methods.getRows(CTX, b"t", asked, {})
        house.gate.hold()
        applied = house.apply(b"b", Put(b"a", b"q", b"new"))
        reading = asyncio.ensure_future(methods.getRows(CTX, b"t", [b"none"] * 5 + [b"b"], {}))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not reading.done(), "what was read is not on disk yet"
        house.gate.release()
        assert [next(iter(cells))[1] for _, cells in (await reading).rows] == [b"new"]
        await applied.durable
        house.served.enabled = True
        late = methods.getRows(CTX, b"t", asked, {})
        house.served.enabled = False
        with pytest.raises(TableNotEnabled):
            await late
        await house.close()

    asyncio.run(main())


def test_an_append_does_not_grow_a_cell_past_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_draft, "CELL_BYTES", 10)

    async def main() -> None:
        house = House(TABLE)
        await house.put(b"r", Append(b"a", b"q", b"12345"), Append(b"a", b"q", b"67890"))
        with pytest.raises(CellTooBig, match="11 bytes is over the limit of 10; nothing was stored"):
            house.apply(b"r", Put(b"a", b"other", b"v"), Append(b"a", b"q", b"x"))
        assert house.row(b"r") == [(b"a:q", b"1234567890", 1000)]
        await house.close()

    asyncio.run(main())


def test_timestamps_end_where_the_wire_ends() -> None:
    async def main() -> None:
        house = House(TABLE)
        for family in (b"a", b"b"):
            await house.put(b"r", Put(family, b"n", bytes(8), TIMESTAMP_MAX - 1))
            for n in (1, 2, 3):
                await house.put(b"r", Increment(family, b"n", 1))
                value = house.row(b"r", family)[0]
                assert value == (family + b":n", n.to_bytes(8, "big"), TIMESTAMP_MAX)
        await house.close()

    asyncio.run(main())


# --- bulk loads: rows of the same columns, by their columns and values --------------------------------

WIDE = make_table("t", [Family("a"), Family("b"), Family("v", max_versions=3)])
COLUMNS = (b"a:1", b"a:2", b"b:", b"b:\x00q")


def load_of(row: bytes, *values: bytes, columns: tuple[bytes, ...] = COLUMNS) -> Any:
    return hbase.BatchMutation(row=row, mutations=SentPuts(columns, list(values)))


def in_a_house(work: Callable[[House, RowCalls], Awaitable[None]], table: Table = WIDE) -> None:
    async def run() -> None:
        house = House(table, (b"m",))
        try:
            await work(house, RowCalls(house))
        finally:
            await house.close()

    asyncio.run(run())


def values_of(house: House, row: bytes) -> dict[bytes, bytes]:
    return {column: value for column, value, _ in house.row(row)}


def test_loaded_rows_are_what_their_mutations_say() -> None:
    async def work(house: House, methods: RowCalls) -> None:
        many = [load_of(b"r", b"1", b"2", b"3", b"4"), load_of(b"z", b"5", b"6", b"7", b"8")]
        await methods.mutateRows(CTX, b"t", many, {}).future
        assert values_of(house, b"r") == dict(zip(COLUMNS, (b"1", b"2", b"3", b"4"), strict=True))
        assert values_of(house, b"z") == dict(zip(COLUMNS, (b"5", b"6", b"7", b"8"), strict=True))
        assert methods.get(CTX, b"t", b"z", COLUMNS[3], {})[0][0] == b"8"
        twice = load_of(b"r", b"one", b"two", columns=(b"a:1", b"a:1"))
        await methods.mutateRows(CTX, b"t", [twice], {}).future
        assert values_of(house, b"r")[b"a:1"] == b"two"
        await methods.mutateRow(CTX, b"t", b"alone", SentPuts(COLUMNS, [b"1", b"2", b"3", b"4"]), {}).future
        assert values_of(house, b"alone") == dict(zip(COLUMNS, (b"1", b"2", b"3", b"4"), strict=True))
        await methods.mutateRowTs(CTX, b"t", b"alone", SentPuts(COLUMNS[:1], [b"late"]), 77, {}).future
        assert values_of(house, b"alone")[b"a:1"] == b"1"

    in_a_house(work)


def test_a_row_that_comes_twice_in_a_load_is_one_step_in_order() -> None:
    async def work(house: House, methods: RowCalls) -> None:
        delete = hbase.BatchMutation(row=b"r", mutations=[hbase.Mutation(isDelete=True, column=b"a:2")])
        first, last = load_of(b"r", b"1", b"2", b"3", b"4"), load_of(b"r", b"new", columns=(b"b:",))
        await methods.mutateRows(CTX, b"t", [first, delete, last], {}).future
        assert values_of(house, b"r") == {b"a:1": b"1", b"b:": b"new", b"b:\x00q": b"4"}
        assert house.region(b"r").writes == 1

    in_a_house(work)


def test_a_load_keeps_versions_times_and_lives() -> None:
    async def work(house: House, methods: RowCalls) -> None:
        for value in (b"old", b"new"):
            both = load_of(b"r", value, value, columns=(b"v:q", b"a:1"))
            await methods.mutateRows(CTX, b"t", [both], {}).future
            house.clock.now_ms += 1
        assert [value for value, _ in methods.getVer(CTX, b"t", b"r", b"v:q", 5, {})] == [b"new", b"old"]
        late = load_of(b"r", b"late", columns=(b"a:1",))
        await methods.mutateRowsTs(CTX, b"t", [late], 77, {}).future
        assert values_of(house, b"r")[b"a:1"] == b"new"
        brief = load_of(b"brief", b"v", columns=(b"a:1",))
        await methods.mutateRows(CTX, b"t", [brief], {b"_ttl": (5).to_bytes(8, "big")}).future
        assert values_of(house, b"brief") == {b"a:1": b"v"}
        house.clock.now_ms += 6
        assert values_of(house, b"brief") == {}

    in_a_house(work)


@pytest.mark.parametrize(
    ("bad", "refusal"),
    [
        (load_of(b"z", b"v", columns=(b"none:q",)), NoSuchColumnFamily),
        (load_of(b"z", b"v", columns=(b"a",)), IllegalArgument),
        (load_of(b"z", b"v", bytes(CELL_BYTES - 2), columns=(b"a:1", b"a:2")), PutTooBig),
        (load_of(b"", b"v", columns=(b"a:1",)), IllegalArgument),
        (
            load_of(b"z", bytes(CELL_BYTES - SHAPE_BYTES + 1), columns=(b"a:" + b"q" * (SHAPE_BYTES - 2),)),
            PutTooBig,
        ),
    ],
)
def test_of_a_load_with_a_bad_row_nothing_is_written(bad: Any, refusal: type[Exception]) -> None:
    async def work(house: House, methods: RowCalls) -> None:
        with pytest.raises(refusal):
            methods.mutateRows(CTX, b"t", [load_of(b"r", b"1", b"2", b"3", b"4"), bad], {})
        assert house.row(b"r") == []

    in_a_house(work)


def test_a_load_follows_a_family_that_keeps_more_from_now_on() -> None:
    async def work(house: House, methods: RowCalls) -> None:
        columns = (b"a:1",)
        region = house.region(b"r")
        for value in (b"1", b"2"):
            await methods.mutateRows(CTX, b"t", [load_of(b"r", value, columns=columns)], {}).future
            house.clock.now_ms += 1
        region.follow_schema(make_table("t", [Family("a", max_versions=2), Family("b"), Family("v", max_versions=3)]))
        for value in (b"3", b"4"):
            parsed = ((b"a", b"1"),)
            await region.apply_many([RowPuts(b"r", parsed, [value])]).durable
            house.clock.now_ms += 1
        spec = ReadSpec(projection(region.table, (b"a:1",)), max_versions=5)
        assert [value for value, _ in get_column(region, b"r", b"a", b"1", spec)] == [b"4", b"3"]

    in_a_house(work)


def test_a_load_waits_for_the_fsync_where_one_of_its_families_does() -> None:
    mixed = make_table("t", [Family("a"), Family("b", durability="ASYNC_WAL")])

    async def work(house: House, methods: RowCalls) -> None:
        region = house.region(b"r")
        hasty, both = RowPuts(b"r", ((b"b", b"1"),), [b"v"]), RowPuts(b"s", ((b"b", b"1"), (b"a", b"1")), [b"v", b"w"])
        assert region.apply_many([hasty]).durable is None
        waiting = region.apply_many([hasty, both]).durable
        assert waiting is not None
        await waiting
        assert values_of(house, b"r") == {b"b:1": b"v"}

    in_a_house(work, mixed)


def test_a_load_into_a_table_that_is_never_synced_does_not_wait() -> None:
    async def work(house: House, methods: RowCalls) -> None:
        assert house.region(b"r").apply_many([RowPuts(b"r", ((b"a", b"1"),), [b"v"])]).durable is None
        assert values_of(house, b"r") == {b"a:1": b"v"}

    in_a_house(work, make_table("t", [Family("a")], {"DURABILITY": "ASYNC_WAL"}))


def test_a_load_is_hidden_by_a_delete_marker_that_lies_in_the_future() -> None:
    async def work(house: House, methods: RowCalls) -> None:
        load = RowPuts(b"r", ((b"a", b"1"),), [b"v"])
        await house.put(b"r", Delete(b"a", b"1", house.clock() + 5))
        await house.region(b"r").apply_many([load]).durable
        assert values_of(house, b"r") == {}
        house.clock.now_ms += 6
        await house.region(b"r").apply_many([load]).durable
        assert values_of(house, b"r") == {b"a:1": b"v"}

    in_a_house(work, make_table("t", [Family("a")], {"DELETE_MARKERS": "100000"}))
