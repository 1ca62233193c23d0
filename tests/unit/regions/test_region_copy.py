"""Which regions are opened to be copied: those whose files alone lack something that was acknowledged."""

from __future__ import annotations

import asyncio

import pytest

from columnar.model.schema import Family, make_table
from columnar.regions import region_copy
from columnar.regions.region import Region
from columnar.storage.ownership import LogPart, Ownership
from tests.support.region_house import House


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_closed_region_that_a_log_has_more_of_is_opened_to_be_copied(
    is_behind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked: list[str] = []
    opened: list[Region] = []

    async def noted(region: Region, path: str) -> None:
        opened.append(region)

    async def main() -> None:
        house = House(make_table("t", [Family("a")]))
        await house.put_value(b"r")
        info = house.region().info
        house.server.evict(house.region())
        behind = (LogPart("dead", 1),) if is_behind else ()
        house.server.hosting.ownership_at = lambda region, epoch: Ownership(region, epoch, behind)
        await region_copy.copy_region(house.server, info, "copies/r")
        folder = house.server.folder_of(info)
        await house.close()
        assert linked == ([] if is_behind else [folder])
        assert [region.info for region in opened] == ([info] if is_behind else [])

    monkeypatch.setattr(region_copy, "link_closed", lambda folder, _path: linked.append(folder))
    monkeypatch.setattr(region_copy, "copy_open_region", noted)
    asyncio.run(main())
