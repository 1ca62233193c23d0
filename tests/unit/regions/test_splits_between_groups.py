"""Splits are only made between groups of rows, whoever asks for them, and whatever changes meanwhile."""

from __future__ import annotations

import asyncio
import logging
import random
from pathlib import Path

import pytest

from columnar.errors import IllegalArgument, NotAllowed, NotServingRegion
from columnar.master.alterations import Alterations
from columnar.model.attributes import TableChange
from columnar.model.mutation import Put, RowMutation
from columnar.model.region_info import RegionInfo
from columnar.model.row_groups import groups_of
from columnar.model.schema import Family, Table
from columnar.regions.replace import region_changes as subject
from columnar.regions.replace.region_changes import Weight, middle_of, middle_row
from columnar.storage.memory import MemoryEngine
from columnar.storage.rocks import RocksEngine
from tests.support.changing_house import CatalogueRows, ChangingHouse
from tests.support.deep import seeds
from tests.support.held_engine import FakeClock
from tests.support.memory_house import House, housed

UNTIL = groups_of("until:/")
GROUPED = TableChange(attributes={"ROW_GROUP": "until:/"})


def test_the_middle_is_the_first_row_of_a_group() -> None:
    info = RegionInfo("t", 1)
    rows = [Weight(b"a/1", 10), Weight(b"a/2", 40), Weight(b"b/1", 10), Weight(b"b/2", 10), Weight(b"c/9", 10)]
    assert middle_of(rows, info) == b"b/1"
    assert middle_of(rows, info, UNTIL) == b"b/"
    assert middle_of([Weight(b"a/1", 90), Weight(b"a/2", 10)], info, UNTIL) is None
    assert middle_of([Weight(b"a/1", 10), Weight(b"a/2", 90), Weight(b"b", 1)], info, UNTIL) == b"b", (
        "not a/, the start"
    )
    assert middle_of([Weight(b"b/1", 10), Weight(b"b/2", 90), Weight(b"c/1", 1)], RegionInfo("t", 1, b"b/"), UNTIL) == (
        b"c/"
    )


async def alter(house: ChangingHouse, change: TableChange) -> None:
    await Alterations(house.catalogue, house.owner, house.changes).alter(b"t", change)


@housed()
async def test_an_asked_for_row_is_rounded_down(house: House) -> None:
    await alter(house, GROUPED)
    await house.put(b"a/1", b"b/1", b"b/2", b"c/1", b"d")
    await house.regions.split(house.infos[0], b"b/2")
    assert [info.start for info in house.infos] == [b"", b"b/"]
    await house.regions.split(house.infos[1], b"d")
    assert [info.start for info in house.infos] == [b"", b"b/", b"d"]
    with pytest.raises(IllegalArgument, match=r"row b/2 is of the group b/, with which region .* begins"):
        await house.regions.split(house.infos[1], b"b/2")
    assert [info.start for info in house.infos] == [b"", b"b/", b"d"]
    await house.regions.split(house.infos[1], None)
    assert [info.start for info in house.infos] == [b"", b"b/", b"c/", b"d"]


@housed(region_bytes=1)
async def test_a_region_of_one_group_is_left_alone(house: House, caplog: pytest.LogCaptureFixture) -> None:
    await alter(house, GROUPED)
    await house.put(b"a/1", b"a/2", b"a/3")
    with pytest.raises(IllegalArgument, match=r"fewer than two groups of rows \(ROW_GROUP=until:/\)"):
        await house.regions.split(house.infos[0], None)
    with caplog.at_level(logging.INFO, "columnar.master.region_changes"):
        assert await house.regions.split_the_largest()
        assert not await house.regions.split_the_largest(), "it is not tried again until it has grown"
    assert [record.levelname for record in caplog.records] == ["INFO"], "it was wanted so"
    assert [info.start for info in house.infos] == [b""]


@housed()
async def test_a_group_that_comes_during_a_split_is_not_cut(house: House) -> None:
    """The row was chosen before the table had groups; the alter comes before the commit."""
    await house.put(b"a/1", b"a/2")
    altering: list[asyncio.Future[None]] = []

    def at(step: str) -> None:
        if step == "prepared":
            altering.append(asyncio.ensure_future(alter(house, GROUPED)))

    house.regions.at = at
    lock, finish = house.changes.lock, house.regions._finish

    async def finish_after_it(change: object) -> float:
        await altering[0]
        return await finish(change)  # type: ignore[arg-type]

    house.regions._finish = finish_after_it  # type: ignore[method-assign]
    with pytest.raises(NotServingRegion, match="row a/2 is within a group of rows by now"):
        await house.regions.split(house.infos[0], b"a/2")
    assert not lock.locked()
    assert [info.start for info in house.infos] == [b""]
    await house.put(b"a/3")


@housed(splits=(b"a/2", b"b"))
async def test_a_table_whose_regions_cut_a_group_gets_none(house: House) -> None:
    with pytest.raises(NotAllowed, match=r"a region begins at a/2, within the group a/; merge it with the region"):
        await alter(house, GROUPED)
    await alter(house, TableChange(attributes={"ROW_GROUP": "length:3"}))
    await house.regions.merge(house.infos[0], house.infos[1])
    await alter(house, GROUPED)
    assert house.table.schema.row_groups == UNTIL
    await alter(house, TableChange(attributes={"ROW_GROUP": ""}))
    assert house.table.schema.row_groups is None


@housed()
async def test_split_points_of_a_new_table_are_between_groups(house: House) -> None:
    attributes = {"ROW_GROUP": "until:/"}
    with pytest.raises(IllegalArgument, match=r"begin at m/2, within the group m/, .* let it begin at m/$"):
        await house.changes.create(b"new", [Family("f")], attributes, [b"c", b"m/2"])
    assert "new" not in house.catalogue.tables
    await house.changes.create(b"new", [Family("f")], attributes, [b"c", b"m/"])
    assert [info.start for info in house.catalogue.tables["new"].regions] == [b"", b"c", b"m/"]


# --- whatever the rows are ---------------------------------------------------------------------------


def random_row(rng: random.Random) -> bytes:
    return bytes(rng.choice(b"ab/0") for _ in range(rng.randrange(1, 6)))


@pytest.mark.parametrize("seed", range(seeds("tables split between groups", deep=300, short=8)))
def test_no_split_cuts_a_group(seed: int, tmp_path: Path) -> None:
    """Random tables, split at random rows and in their middles: every boundary begins a group."""
    rng = random.Random(f"splits between groups {seed}")
    groups = groups_of(rng.choice(("until:/", "length:1", "length:2", "until:b/")))

    async def main() -> None:
        house = ChangingHouse(MemoryEngine(), str(tmp_path), CatalogueRows(), FakeClock())
        await house.start()
        await house.changes.create(b"t", [Family("f")], {"ROW_GROUP": str(groups)})
        for row in {random_row(rng) for _ in range(40)}:
            await house.apply(RowMutation(row, (Put(b"f", b"q", b"v" * rng.randrange(1, 200)),)))
        made = 0
        for _ in range(15):
            info = rng.choice(house.infos)
            row = random_row(rng) if rng.random() < 0.5 else None
            try:
                await house.regions.split(info, row)
                made += 1
            except IllegalArgument:
                pass
            if len(house.infos) > 3 and rng.random() < 0.3:
                at = rng.randrange(len(house.infos) - 1)
                await house.regions.merge(house.infos[at], house.infos[at + 1])
            assert groups.cut_by(one.start for one in house.infos) is None
        assert made, "else nothing was shown"
        await house.close()

    asyncio.run(main())


def test_a_large_first_group_hides_no_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the files' samples nor the rows that are walked reach the second group."""
    monkeypatch.setattr(subject, "WALKED_BYTES", 0)
    monkeypatch.setattr(subject, "WALKED_ROWS", 20)
    monkeypatch.setattr(subject, "STEP_CELLS", 10)
    monkeypatch.setattr(subject, "SEEKS_PER_FILE", 1)

    async def main() -> None:
        house = ChangingHouse(RocksEngine(cache_bytes=1 << 20), str(tmp_path), CatalogueRows(), FakeClock())
        await house.start()
        await house.changes.create(b"t", [Family("f")], {"ROW_GROUP": "until:/"})
        for row in [b"a/%03d" % n for n in range(100)]:
            await house.apply(RowMutation(row, (Put(b"f", b"q", b"v"),)))
        region = house.server.open_region(house.table, house.infos[0])
        region.store.files.flush()
        assert await middle_row(region) is None
        await house.apply(RowMutation(b"b/7", (Put(b"f", b"q", b"v"),)))
        region.store.files.flush()
        assert await middle_row(region) == b"b/"
        await house.close()

    asyncio.run(main())


def test_the_rule_is_parsed_once() -> None:
    table = Table("t", (Family("f"),), {"ROW_GROUP": "until:/"})
    assert table.row_groups is table.row_groups is not None
