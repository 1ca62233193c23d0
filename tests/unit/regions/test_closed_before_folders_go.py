"""Regions whose folders go next are closed when the server says so, also where a thread closes a store that failed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from columnar.model.schema import Family, make_table
from columnar.regions.life.region_state import Event
from tests.support.region_house import House

Closing = Callable[[House], Awaitable[None]]


def of_table(house: House) -> Awaitable[None]:
    house.server.tables.remove("t")
    return house.server.close_table("t")


def of_regions(house: House) -> Awaitable[None]:
    infos, house.served.regions = house.served.regions, []
    return house.server.close_regions(infos)


@pytest.mark.parametrize("close_all", [of_table, of_regions])
def test_a_store_that_failed_is_waited_for(close_all: Closing) -> None:
    async def main() -> None:
        house = House(make_table("t", [Family("a")]))
        await house.put_value(b"r")
        region, closed, may_close = house.region(), threading.Event(), threading.Event()
        close = region.store.close

        def slowly() -> None:
            assert may_close.wait(9)
            close()
            closed.set()

        region.store.close = slowly  # type: ignore[method-assign]
        house.server.hosting.report_event(region, Event.FSYNC_FAILED)
        asyncio.get_running_loop().call_later(0.05, may_close.set)
        await close_all(house)
        assert closed.is_set()
        await house.close()

    asyncio.run(main())
