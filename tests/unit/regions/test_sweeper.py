"""Sweeps change nothing that is visible, and overwrites leave a bounded number of entries."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from columnar.model.mutation import Delete, Durability, Increment, Put
from columnar.model.schema import Family, make_table
from columnar.regions.read.region_reads import get_column
from columnar.regions.sweeper import sweep
from tests.support.region_house import House

TABLE = make_table("t", [Family("a"), Family("b", max_versions=3), Family("c", max_versions=3, ttl_s=1)])
MARKED = make_table("t", [Family("a")], {"DELETE_MARKERS": "500"})


def entries(house: House, space: str) -> int:
    return sum(1 for _ in house.region().store.scan(space, b"", None))


async def swept(house: House) -> int:
    region = house.region()
    return await sweep(region.store, region.table, region.views, region.now_ms)


def versions(house: House, family: bytes, qualifier: bytes = b"q") -> list[tuple[bytes, int]]:
    spec = replace(house.read(family + b":" + qualifier), max_versions=10)
    return get_column(house.region(), b"r", family, qualifier, spec)


def test_ten_thousand_overwrites_leave_a_bounded_number_of_entries() -> None:
    async def main() -> None:
        house = House(TABLE)
        for n in range(10_000):
            house.clock.now_ms += 1
            house.apply(b"r", Put(b"a", b"q", b"%d" % n), Put(b"b", b"q", b"%d" % n), durability=Durability.ASYNC)
        assert entries(house, "f:a") == entries(house, "f:b") == 1
        assert entries(house, "versions") < 64
        assert [value for value, _ in versions(house, b"b")] == [b"9999", b"9998", b"9997"]
        await swept(house)
        assert entries(house, "versions") == 2
        assert [value for value, _ in versions(house, b"b")] == [b"9999", b"9998", b"9997"]
        await house.close()

    asyncio.run(main())


def test_puts_into_the_past_are_bounded_too_and_displace_nothing_newer() -> None:
    async def main() -> None:
        house = House(TABLE)
        house.clock.now_ms = 100_000
        for stamp in (90_000, 80_000, 70_000):
            await house.put(b"r", Put(b"b", b"q", b"%d" % stamp, stamp))
        for n in range(2_000):
            house.apply(b"r", Put(b"b", b"q", b"old", 60_000 - n), durability=Durability.ASYNC)
        assert [at for _, at in versions(house, b"b")] == [90_000, 80_000, 70_000]
        assert entries(house, "versions") < 64
        await house.close()

    asyncio.run(main())


def test_expired_newest_versions_do_not_count_as_kept() -> None:
    async def main() -> None:
        house = House(TABLE)
        for stamp in (901, 902, 903, 904):
            await house.put(b"r", Put(b"b", b"q", b"%d" % stamp, stamp))
        await house.put(b"r", Put(b"b", b"q", b"brief", 1_000, ttl_ms=5))
        house.clock.now_ms += 10
        before = versions(house, b"b")
        assert [at for _, at in before] == [904, 903, 902]
        await swept(house)
        assert versions(house, b"b") == before
        await house.close()

    asyncio.run(main())


def test_expired_cells_go_whatever_the_family_keeps() -> None:
    async def main() -> None:
        house = House(TABLE)
        for n in range(3):
            house.clock.now_ms += 1
            await house.put(b"r", Put(b"c", b"q", b"%d" % n), Put(b"a", b"q", b"x", None, 5))
        house.clock.now_ms += 5_000
        assert house.row(b"r") == []
        await swept(house)
        assert (entries(house, "f:c"), entries(house, "f:a"), entries(house, "versions")) == (0, 0, 0)
        await house.close()

    asyncio.run(main())


def test_markers_stay_from_the_time_of_the_delete_not_of_its_source() -> None:
    """A trigger deletes with its source's timestamp, which may be years old: the late retry is still to come."""

    async def main() -> None:
        house = House(MARKED)
        house.clock.now_ms = 1_000_000
        await house.put(b"r", Put(b"a", b"q", b"v", 10))
        await house.put(b"r", Delete(b"a", b"q", 20))
        await swept(house)
        await house.put(b"r", Put(b"a", b"q", b"late", 15))
        assert house.row(b"r") == []
        house.clock.now_ms += 501
        assert await swept(house) == 1
        assert entries(house, "f:a") == 0
        await house.close()

    asyncio.run(main())


def test_a_hot_counter_stays_one_entry() -> None:
    async def main() -> None:
        house = House(TABLE)
        for _ in range(1_000):
            house.apply(b"r", Increment(b"a", b"n", 1), durability=Durability.ASYNC)
        assert entries(house, "f:a") == 1
        assert entries(house, "versions") == 0
        await house.close()

    asyncio.run(main())
