"""A region that is to leave its server is closed and reported, whatever fails on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from columnar.model.owner import first_owner
from columnar.model.owner_messages import GivenUp
from columnar.regions.hooks import ChangeListener
from columnar.regions.life import region_assigner
from columnar.regions.life.hosting import Hosting
from columnar.regions.region import Region
from tests.support.owned_regions import HERE, House, OwnLog, run


def once(fault: BaseException, work: Any) -> Any:
    """Fails the first time."""
    faults = [fault]

    def called(*args: Any, **named: Any) -> Any:
        if faults:
            raise faults.pop()
        return work(*args, **named)

    return called


PLACES = {
    "quiesce_region": (ChangeListener, "quiesce_region"),
    "flush": (Region, "flush"),
    "close": (Hosting, "close"),
    "quiesce": (Hosting, "quiesce"),
    "unreplayed_parts": (OwnLog, "unreplayed_parts"),
    "release": (ChangeListener, "release"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_fault_on_the_way_keeps_no_region_in_closing(
    place: str, monkeypatch: pytest.MonkeyPatch, expected_faults: Callable[[], dict[str, int]]
) -> None:
    """The task ended with it, and the master waited for ever."""
    monkeypatch.setattr(region_assigner, "CLOSE_AGAIN_S", 0.0)

    async def check(house: House) -> None:
        await house.open(first_owner(HERE))
        await house.put()
        kind, name = PLACES[place]
        target: Any = house.server.listener if kind is ChangeListener else kind
        monkeypatch.setattr(target, name, once(RuntimeError(f"{name} fails"), getattr(target, name)))
        async with asyncio.timeout(5):
            assert await house.close_at(1) == GivenUp(1, False)
        house.server.openings.check_invariants()

    run(check)
    assert expected_faults() == ({"work on the regions of this server": 1} if place == "release" else {})
