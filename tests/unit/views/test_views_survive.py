"""A view goes on after an exception at any call of its follower: it is built, and equal to what its source says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from columnar.errors import HostError
from columnar.flows import applier, delivery_state, governor, region_followers
from columnar.regions import region
from columnar.storage.memory import MemoryEngine
from columnar.views import backfill, follower
from tests.support.changing_house import CatalogueRows
from tests.support.held_engine import FakeClock
from tests.support.injected_faults import DRAWN, Calls, survived
from tests.support.view_house import ViewHouse, by_a

ROWS = 6


@pytest.fixture(autouse=True)
def _small_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "PIECE_ROWS", 2)
    monkeypatch.setattr(backfill, "STEP_ROWS", 2)
    monkeypatch.setattr(delivery_state, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(region_followers, "STEP_AGAIN_S", 0.001)
    monkeypatch.setattr(backfill, "AGAIN_S", 0.001)
    monkeypatch.setattr(region, "FEED_AGAIN_S", 0.001)
    monkeypatch.setattr(governor, "AGAIN_S", 0.001)


async def a_build_with_changes(calls: Calls) -> None:
    house = ViewHouse(MemoryEngine(), "regions", CatalogueRows(), FakeClock())
    await house.start()
    try:
        await house.make_source("t", ("f",), b"3")
        for n in range(ROWS):
            await house.put_cells("t", b"%d" % n, a=b"%d" % (n % 2), n=b"1")
        with calls.armed():
            await house.add(by_a())
            await house.put_cells("t", b"1", a=b"0")
            await house.put_cells("t", b"4", n=b"bad")
            await house.settled("by_a")
            await house.put_cells("t", b"5", n=b"5")
            await house.settled("by_a")
        await house.put_cells("t", b"6", a=b"1", n=b"7")
        await house.settled("by_a")
        assert await house.totals("by_a") == {b"0": {"count": 3, "n": 3}, b"1": {"count": 3, "n": 13}}
        await house.views.check_view_builds()
        assert house.state("by_a") == "live"
        (look,) = house.owner.views.view_statuses()
        assert look.lag_changes == 0
    finally:
        await house.close()


def test_a_view_survives_an_exception_at_each_of_its_calls(expected_faults: Callable[[], dict[str, int]]) -> None:
    assert survived(a_build_with_changes, follower, backfill, region_followers) > 50
    assert expected_faults()[follower.LOOP] > DRAWN // 3


def test_a_view_survives_an_exception_at_each_call_of_the_applier(
    expected_faults: Callable[[], dict[str, int]],
) -> None:
    survived(a_build_with_changes, applier)
    assert expected_faults()[applier.LOOP] > 10


def test_a_view_that_stops_for_a_while_is_two_lines_of_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one at each retry."""

    async def scene() -> None:
        house = ViewHouse(MemoryEngine(), "regions", CatalogueRows(), FakeClock())
        await house.start()
        try:
            await house.make_source("t", ("f",))
            await house.add(by_a())
            await house.settled("by_a")
            do_a_little, left = follower.ViewFollower._do_a_little, [5]

            def fails(self: follower.ViewFollower) -> bool:
                if left[0]:
                    left[0] -= 1
                    raise HostError("the disk is full")
                return do_a_little(self)

            monkeypatch.setattr(follower.ViewFollower, "_do_a_little", fails)
            await house.put_cells("t", b"1", a=b"0", n=b"1")
            await house.settled("by_a")
            assert left == [0]
        finally:
            await house.close()

    with caplog.at_level(logging.INFO, "columnar.views.follower"):
        asyncio.run(scene())
    begun, ended = [one.getMessage() for one in caplog.records if one.name == "columnar.views.follower"]
    assert begun.startswith("view by_a stops in region ")
    assert begun.endswith("the disk is full")
    assert ended.startswith("view by_a goes on in region ")
