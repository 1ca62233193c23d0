"""Regions that nobody owned while a view was added: nobody marked where it begins there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.errors import RegionNotLocal
from columnar.model.schema import Family
from columnar.views.view_manager import follower_name
from tests.support.view_house import ViewHouse, by_a, in_view_house


async def add_while_elsewhere(house: ViewHouse) -> None:
    """The region of ``t`` has no owner until the view is being built: its server died, and another gets it next."""
    (info,) = house.served("t").regions
    house.server.eviction.evict(await house.server.opened(house.served("t"), info))

    async def elsewhere(_served: Any, _info: Any) -> Any:
        raise RegionNotLocal("t", "elsewhere")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house.server, "opened", elsewhere)
        await house.add(by_a())
        assert await house.keeper.hub._openings.settled(5.0)
    assert not house.server.is_open(info)


@in_view_house
async def test_a_view_begins_at_the_end_of_a_log_in_which_it_has_no_mark(house: ViewHouse) -> None:
    """Records from before the view was added have no images for it; rows of theirs are shown all the same."""
    await house.changes.create(b"t", [Family("f")], {"CHANGE_LOG": "3600"})
    await house.put_cells("t", b"1", a=b"x", n=b"3")
    await house.put_cells("t", b"1", a=b"y")
    await add_while_elsewhere(house)
    await house.put_cells("t", b"2", a=b"y", n=b"4")
    async with asyncio.timeout(5):
        await house.settled("by_a")
    assert await house.totals("by_a") == {b"y": {"count": 2, "n": 7}}
    assert house.owner.views.view_statuses()[0].last_error == ""


@in_view_house
async def test_the_place_of_a_view_that_was_not_marked_goes_with_it(house: ViewHouse) -> None:
    """A closed region forgets the cursor by the number beside it when it opens; a cursor without one would stay."""
    await house.make_source()
    await add_while_elsewhere(house)
    await house.put_cells("t", b"1", a=b"x", n=b"3")
    await house.settled("by_a")
    await house.views.check_view_builds()
    (info,) = house.served("t").regions
    region = await house.server.opened(house.served("t"), info)
    house.keeper.hub.upkeep.save(region)
    house.server.eviction.evict(region)
    await house.views.drop("by_a")
    await house.add(by_a("other"))
    region = await house.server.opened(house.served("t"), info)
    assert set(region.log.cursors.all_cursors()) == {follower_name("other").key}
