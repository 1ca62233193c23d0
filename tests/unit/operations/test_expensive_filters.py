"""A filter that takes too long for one row: its call ends with the row named, and others are served."""

from __future__ import annotations

import asyncio
from time import perf_counter

import pytest

from columnar.errors import FilterTooExpensive
from columnar.limits import PATTERN_S
from columnar.model.filter_language import parse
from columnar.model.mutation import Put
from columnar.model.schema import Family, make_table
from tests.support.region_house import House, rows_of

TABLE = make_table("t", [Family("a")])
ENDLESS = b"ValueFilter(=, 'regexstring:^(a|aa)+$')"


@pytest.mark.parametrize("filter_string", [ENDLESS, b" OR ".join([ENDLESS] * 200), b"SKIP " + ENDLESS])
def test_a_pattern_without_end_ends_its_call_with_the_row_named(filter_string: bytes) -> None:
    async def main() -> None:
        house = House(TABLE)
        house.apply(b"good", Put(b"a", b"q", b"aa"))
        house.apply(b"poison\x00", Put(b"a", b"q", b"a" * 40 + b"!"))
        house.apply(b"z", Put(b"a", b"q", b"aa"))
        begun = perf_counter()
        with pytest.raises(FilterTooExpensive, match=r"row 'poison\\x00' cannot be filtered") as caught:
            await rows_of(house.scanner(row_filter=parse(filter_string)), 10)
        assert perf_counter() - begun < 30 * PATTERN_S
        assert "took more than 0.1 s; write it with fewer repetitions" in caught.value.wire_message
        assert caught.value.wire_message.startswith("DoNotRetryIOException: ")
        assert [row for row, _ in await rows_of(house.scanner(b"z", b"z", row_filter=parse(ENDLESS)), 10)] == [b"z"]
        await house.close()

    asyncio.run(main())
