"""The verdict of a check: a row that changes whenever it is looked at is no finding, nor is lag that does not end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from columnar.cluster.peer_requests import RepairGroup
from columnar.model.mutation import Put
from columnar.model.schema import Family, make_table
from columnar.model.view_definition import TOTALS, Source, View
from columnar.regions.life.region_state import Event
from columnar.views.checking import TRIES
from tests.support.checked_house import CheckedHouse

VIEW = View("v", Source("s", key=("f:a",)))


def checked(work: Callable[[CheckedHouse], Awaitable[None]]) -> None:
    async def run() -> None:
        house = CheckedHouse(VIEW, [make_table("s", [Family("f")])])
        house.write("s", b"r", Put(b"f", b"a", b"first"))
        try:
            await work(house)
        finally:
            await house.close()

    asyncio.run(run())


def written_after_each_wait(house: CheckedHouse, times: int) -> None:
    """The row changes between the end of the lag and the look that follows."""
    left = [times]

    async def caught_up(_view: str) -> bool:
        house.drain()
        if left[0]:
            left[0] -= 1
            house.write("s", b"r", Put(b"f", b"a", b"%d" % left[0]))
        return True

    house.owners._wait = caught_up


def test_a_row_that_changed_is_looked_at_again() -> None:
    async def work(house: CheckedHouse) -> None:
        written_after_each_wait(house, 3)
        report = await house.check()
        assert (report.wrong, report.unsure, report.findings) == (0, 0, ())

    checked(work)


def test_nothing_is_said_of_a_row_that_changes_all_the_while() -> None:
    async def work(house: CheckedHouse) -> None:
        written_after_each_wait(house, TRIES)
        report = await house.check()
        assert (report.wrong, report.unsure) == (0, 1)

    checked(work)


def test_a_lag_that_does_not_end_is_no_finding() -> None:
    async def work(house: CheckedHouse) -> None:
        async def not_in_time(_view: str) -> bool:
            return False

        house.owners._wait = not_in_time
        report = await house.check()
        assert (report.wrong, report.unsure) == (0, 1)

    checked(work)


def test_nothing_is_repaired_in_a_region_that_is_about_to_be_replaced() -> None:
    """What takes its place has its cells already, or would not hear of a write."""

    async def work(house: CheckedHouse) -> None:
        house.drain()
        house.damage(b"first", Put(TOTALS, b"count", (7).to_bytes(8, "big")))
        region, hosting = house.region("v", b"first"), house.server.hosting
        mending = asyncio.ensure_future(house.asked.repair_group(RepairGroup("v", b"first")))
        while not region.work.running:  # noqa: ASYNC110 - until its work is planned
            await asyncio.sleep(0)
        hosting.report_event(region, Event.REPLACEMENT_BEGINS)
        writes = region.writes
        assert (await mending).is_not_local, "it is asked for again"
        assert region.writes == writes
        hosting.report_event(region, Event.CALLED_OFF)
        assert (await house.asked.repair_group(RepairGroup("v", b"first"))).totals == 1
        assert house.differences() == []

    checked(work)


def test_a_row_that_lacks_a_change_is_repaired_by_its_own_words_alone() -> None:
    """Its group may have a million members: none of them is read anew, and none is dropped."""

    async def work(house: CheckedHouse) -> None:
        house.write("s", b"q", Put(b"f", b"a", b"first"))
        house.drain()
        house.write("s", b"r", Put(b"f", b"a", b"second"))
        house.pending.clear()  # the change is lost
        asked: list[object] = []
        ask = house.owners.request_owner

        async def noted(table: str, row: bytes, message: Any) -> Any:
            asked.append(message)
            return await ask(table, row, message)

        house.owners.request_owner = noted  # type: ignore[method-assign]
        report = await house.check(repair=True)
        assert (report.wrong, report.repaired) == (1, 1)
        assert [one for one in asked if isinstance(one, RepairGroup)] == []
        assert house.differences() == []

    checked(work)
