"""Writes that were acknowledged without an fsync are synced by a timer, in every region."""

from __future__ import annotations

import asyncio

from columnar.errors import HostError
from columnar.model.mutation import Durability, Put
from columnar.model.schema import Family, make_table
from tests.support.region_house import House

ROWS = (b"a", b"z")


def test_a_region_whose_disk_fails_keeps_no_other_from_its_fsync() -> None:
    async def main() -> None:
        house = House(make_table("t", [Family("a")]), (b"m",))
        for row in ROWS:
            await house.put_value(row)  # alone: the next fsync begins at once, and so does its failure
        for row in ROWS:
            house.apply(row, Put(b"a", b"q", b"new"), durability=Durability.ASYNC)
        first, second = map(house.region, ROWS)

        def gone() -> None:
            raise HostError("the disk is gone")

        first.store.settle = gone  # type: ignore[method-assign]
        house.server.async_writes._sync()
        assert second.syncs.sync_async_writes() is None, "it is being synced"
        await house.server.hosting.quiesce(second)
        await house.close()

    asyncio.run(main())
