"""How often regions are read and written: since the last question, whatever was opened and closed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from columnar.model.owner_messages import RegionRates
from columnar.model.schema import Family, make_table
from columnar.regions.region_rates import SIZED_AT_ONCE, RateMeter
from tests.support.region_house import House

TABLE = make_table("t", [Family("a")])
SYSTEM = make_table("columnar:t", [Family("a")])


def without_size(found: tuple[RegionRates, ...]) -> list[tuple[int, float, float, int]]:
    return sorted((one.region, one.reads_per_s, one.writes_per_s, one.limit_bytes) for one in found)


def test_rates_are_of_the_time_since_the_last_question() -> None:
    async def main() -> None:
        now = [10.0]
        house = House(TABLE, (b"m",))
        meter = RateMeter(house.server, lambda: now[0], 99)
        for _ in range(4):
            await house.put_value(b"a")
        house.row(b"a")
        house.region(b"a").deliveries += 6
        now[0] += 2.0
        first = meter.take_rates([10, 11])
        assert sorted(one.deliveries_per_s for one in first) == [0.0, 3.0]
        assert without_size(first) == [(10, 0.5, 2.0, 99), (11, 0.0, 0.0, 0)]
        now[0] += 2.0
        assert without_size(meter.take_rates([10, 11])) == [(10, 0.0, 0.0, 99), (11, 0.0, 0.0, 0)]
        # It is closed and opened: it counts from its opening.
        house.server.eviction.evict(house.region(b"a"))
        await house.put_value(b"a")
        now[0] += 1.0
        assert without_size(meter.take_rates([10])) == [(10, 0.0, 1.0, 99)]
        assert meter.take_rates([]) == (), "they are not owned"
        await house.close()

    asyncio.run(main())


def test_a_closed_region_has_its_last_size_and_a_systems_table_no_limit() -> None:
    async def main() -> None:
        house = House(SYSTEM)
        meter = RateMeter(house.server, lambda: 0.0, 99)
        await house.put_value(b"a", b"v" * 100)
        (held,) = meter.take_rates([10])
        assert held.size_bytes > 100
        assert held.limit_bytes == 0
        house.server.eviction.evict(house.region(b"a"))
        assert meter.take_rates([10]) == (RegionRates(10, 0.0, 0.0, 0.0, held.size_bytes, 0),)
        await house.close()

    asyncio.run(main())


def test_sizes_are_measured_of_regions_that_were_written_to_and_a_share_of_the_others() -> None:
    async def main() -> None:
        count = 4 * SIZED_AT_ONCE
        rows = [b"%03d" % number for number in range(count)]
        house = House(TABLE, tuple(rows[1:]), open_regions=count)
        ids = [house.region(row).info.region_id for row in rows]
        meter = RateMeter(house.server, lambda: 0.0, 99)
        measured: list[int] = []
        for row in rows:
            region = house.region(row)
            size_bytes = region.store.files.size_bytes

            def noted(one: int = region.info.region_id, size_bytes: Callable[[], int] = size_bytes) -> int:
                measured.append(one)
                return size_bytes()

            region.store.files.size_bytes = noted  # type: ignore[method-assign]
        meter.take_rates(ids)
        assert sorted(measured) == ids, "each at its first look"
        measured.clear()
        await house.put_value(rows[7], b"v" * 100)
        found = {one.region: one.size_bytes for one in meter.take_rates(ids)}
        assert found[ids[7]] > 100
        assert len(measured) <= SIZED_AT_ONCE + 1
        for _ in range(4):
            meter.take_rates(ids)
        assert set(measured) == set(ids), "each in its turn"
        assert len(measured) <= count + 2 * SIZED_AT_ONCE
        await house.close()

    asyncio.run(main())
