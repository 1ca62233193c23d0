"""Rows at their limits, and calls that touch more regions than may be open."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.errors import CellTooBig, RequestTooBig, TableNotEnabled
from columnar.model.mutation import Append, Increment, Put
from columnar.model.schema import Family, make_table
from columnar.regions import row_draft
from columnar.storage.layout import TIMESTAMP_MAX
from columnar.thrift import rows as row_calls
from columnar.thrift.rows import RowMethods
from columnar.wire.idl import hbase
from tests.support.region_house import House

TABLE = make_table("t", [Family("a"), Family("b", max_versions=3)])


def batches(*rows: bytes) -> list[Any]:
    return [hbase.BatchMutation(row=row, mutations=[hbase.Mutation(column=b"a:q", value=row)]) for row in rows]


def test_a_call_over_more_regions_than_may_be_open() -> None:
    async def main() -> None:
        house = House(TABLE, (b"g", b"p"), open_regions=1)
        methods = RowMethods(house.server)
        later = methods.mutateRows(None, b"t", batches(b"a", b"h", b"z", b"b"), {})
        await later.future
        for row in (b"a", b"b", b"h", b"z"):
            assert [value for _, value, _ in house.row(row)] == [row]
        found = methods.getRows(None, b"t", [b"z", b"a", b"h"], {})
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
    monkeypatch.setattr(row_calls, "STEP_CELLS", 2 * row_calls._SEEK_CELLS)

    async def main() -> None:
        house = House(TABLE, (b"m",))
        for row in (b"a", b"b", b"z"):
            await house.put_value(row, row * 10)
        methods = RowMethods(house.server)
        asked = [b"z", b"none", b"a", b"b", b"a"]
        found = await methods.getRows(None, b"t", asked, {})
        assert [row for row, _ in found.rows] == [b"z", b"a", b"b", b"a"]
        monkeypatch.setattr(row_calls, "ROWS_BYTES", 100)
        with pytest.raises(RequestTooBig, match="ask for fewer"):
            await methods.getRows(None, b"t", asked, {})
        house.gate.hold()
        applied = house.apply(b"b", Put(b"a", b"q", b"new"))
        reading = asyncio.ensure_future(methods.getRows(None, b"t", [b"none"] * 5 + [b"b"], {}))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not reading.done(), "what was read is not on disk yet"
        house.gate.release()
        assert [next(iter(cells))[1] for _, cells in (await reading).rows] == [b"new"]
        await applied.durable
        house.served.enabled = True
        late = methods.getRows(None, b"t", asked, {})
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
