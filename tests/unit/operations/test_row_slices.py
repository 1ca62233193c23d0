"""Slices of a row: as a sorted dict has them, whatever is deleted, and bounded."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from columnar.errors import IllegalArgument, NoSuchColumnFamily
from columnar.limits import SLICE_CELLS, STEP_BYTES
from columnar.model.mutation import Delete, Put
from columnar.model.schema import Family, make_table
from columnar.wire.service import CallContext
from tests.support.region_house import House
from tests.support.seeds import seed
from tests.support.service_calls import RowCalls, answer_of

TABLE = make_table("t", [Family("a"), Family("b", max_versions=3)])
CTX = CallContext(1, "test")
_BYTES = (b"\x00", b"\x01", b"a", b"b", b"\xff")


async def sliced(
    methods: RowCalls, family: bytes, start: bytes, stop: bytes, limit: int, reverse: bool
) -> list[tuple[bytes, bytes]]:
    found = await answer_of(methods.columnarRowSlice(CTX, b"t", b"r", family, start, stop, limit, reverse))
    assert found.sorted
    return [(column, value) for _, cells in found.rows for column, value, _ in cells]


@pytest.mark.parametrize("number", range(12))
def test_as_a_sorted_dict(number: int) -> None:
    rng = Random(seed(number))  # pytest prints the number, and the seed is it

    def name() -> bytes:
        return b"".join(rng.choices(_BYTES, k=rng.randint(1, 3)))

    async def main() -> None:
        house = House(TABLE)
        methods = RowCalls(house)
        held: dict[bytes, dict[bytes, bytes]] = {b"a": {}, b"b": {}}
        for _ in range(60):
            family, qualifier, value = rng.choice((b"a", b"b")), name(), b"%d" % rng.randrange(99)
            if rng.random() < 0.3:
                house.apply(b"r", Delete(family, qualifier))
                held[family].pop(qualifier, None)
            else:
                house.apply(b"r", Put(family, qualifier, value))
                held[family][qualifier] = value
        house.apply(b"q", Put(b"a", b"before", b"x"))
        house.apply(b"s", Put(b"a", b"behind", b"x"))
        for _ in range(40):
            family, limit, reverse = rng.choice((b"a", b"b")), rng.choice((1, 3, 100)), rng.random() < 0.5
            start, stop = rng.choice((b"", name())), rng.choice((b"", name()))
            cells = sorted(held[family].items(), reverse=reverse)
            expected = [
                (family + b":" + qualifier, value)
                for qualifier, value in cells
                if qualifier >= start and (not stop or qualifier < stop)
            ][:limit]
            assert await sliced(methods, family, start, stop, limit, reverse) == expected
        await house.close()

    asyncio.run(main())


def test_bounds_and_refusals() -> None:
    async def main() -> None:
        house = House(TABLE)
        methods = RowCalls(house)
        for number in range(6):
            house.apply(b"r", Put(b"a", b"%d" % number, bytes(STEP_BYTES // 4)))
        found = await sliced(methods, b"a:", b"", b"", 100, reverse=False)
        assert [column for column, _ in found] == [b"a:0", b"a:1", b"a:2", b"a:3"], "over 4 MiB the answer ends"
        rest = await sliced(methods, b"a", b"3\x00", b"", 100, reverse=False)
        assert [column for column, _ in rest] == [b"a:4", b"a:5"]
        refused: list[tuple[type[Exception], Any]] = [
            (IllegalArgument, (b"t", b"r", b"a", b"", b"", 0, False)),
            (IllegalArgument, (b"t", b"r", b"a", b"", b"", SLICE_CELLS + 1, False)),
            (IllegalArgument, (b"t", b"r", b"a", None, None, None, None)),
            (IllegalArgument, (b"t", b"", b"a", b"", b"", 1, False)),
            (NoSuchColumnFamily, (b"t", b"r", b"nobody", b"", b"", 1, False)),
            (NoSuchColumnFamily, (b"t", b"r", None, b"", b"", 1, False)),
        ]
        for error, args in refused:
            with pytest.raises(error):
                methods.columnarRowSlice(CTX, *args)
        await house.close()

    asyncio.run(main())
