"""Regions follow their table's schema: open, closed, held by writers, and after a crash."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from columnar.errors import NoSuchColumnFamily, NotServingRegion, TableReadOnly
from columnar.model.attributes import TableChange, altered
from columnar.model.mutation import Delete, Durability, Put, RowMutation
from columnar.model.schema import Family, Table, make_table
from columnar.regions.life.region_state import State
from columnar.regions.read.region_reads import get_column, get_row
from columnar.regions.sweeper import sweep
from columnar.regions.tables import ServedTable
from columnar.storage.api import StoreBusy
from columnar.storage.rocks import RocksEngine
from tests.support.openings import region_at_once
from tests.support.region_house import House, names_of

TABLE = make_table("t", [Family("a", max_versions=3), Family("b", max_versions=3)])


def changed(house: House, table: Table) -> ServedTable:
    house.served = ServedTable(table, True, house.served.regions)
    house.server.tables.install(house.served)
    return house.served


async def alter(house: House, change: TableChange) -> None:
    changed(house, altered(house.served.schema, change))
    await house.server.upkeep.follow_schema("t")


def versions(house: House, family: bytes) -> list[tuple[bytes, int]]:
    spec = replace(house.read(family + b":q"), max_versions=10)
    return get_column(house.region(), b"r", family, b"q", spec)


async def three_versions(house: House, family: bytes) -> None:
    for n in range(3):
        house.clock.now_ms += 1
        await house.put(b"r", Put(family, b"q", b"%d" % n))


def test_a_dropped_family_is_gone_at_once_and_does_not_come_back() -> None:
    async def main() -> None:
        house = House(TABLE)
        await three_versions(house, b"a")
        await three_versions(house, b"b")
        stale = house.region()
        await alter(house, TableChange(drop=frozenset({"b"})))
        with pytest.raises(NoSuchColumnFamily):
            stale.apply(RowMutation(b"r", (Put(b"b", b"q", b"x"),)))
        await alter(house, TableChange(add=(Family("b", max_versions=3),)))
        assert versions(house, b"b") == []
        await house.put_value(b"r", b"new", b"b:q")
        assert [value for value, _ in versions(house, b"b")] == [b"new"]
        assert [value for value, _ in versions(house, b"a")] == [b"2", b"1", b"0"]
        await house.close()

    asyncio.run(main())


@pytest.mark.parametrize("engine", [None, RocksEngine], ids=["memory", "rocks"])
def test_a_region_that_was_closed_all_the_while_follows_at_its_opening(engine: type[RocksEngine] | None) -> None:
    """As after a crash between the catalogue's write and the regions: twice, so that a name comes back."""

    async def main() -> None:
        house = House(TABLE, engine=engine() if engine else None)
        await three_versions(house, b"a")
        await three_versions(house, b"b")
        await house.server.close_regions(house.served.regions)
        table = altered(TABLE, TableChange(drop=frozenset({"b"}), change={"a": {"VERSIONS": "1"}}))
        changed(house, altered(table, TableChange(add=(Family("b", max_versions=3),))))
        assert versions(house, b"b") == []
        assert [value for value, _ in versions(house, b"a")] == [b"2"]
        store = house.region().store
        assert {name for name in store.spaces if name.startswith("f:")} == {"f:a", "f:b:3"}
        assert list(store.scan("versions", b"", None)) == []
        await house.close()

    asyncio.run(main())


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_what_was_deleted_while_one_version_was_kept_stays_deleted() -> None:
    async def main() -> None:
        house = House(TABLE)
        await three_versions(house, b"a")
        await alter(house, TableChange(change={"a": {"VERSIONS": "1"}}))
        await house.put(b"r", Delete(b"a", b"q"))
        await alter(house, TableChange(change={"a": {"VERSIONS": "3"}}))
        house.clock.now_ms += 1
        await house.put_value(b"r", b"new", b"a:q")
        assert [value for value, _ in versions(house, b"a")] == [b"new"]
        await house.close()

    asyncio.run(main())


def test_a_caller_with_an_older_schema_changes_nothing() -> None:
    """He may have waited: opening a region by what he remembers would drop what came since."""

    async def main() -> None:
        house = House(TABLE)
        older = house.served
        await alter(house, TableChange(add=(Family("c"),)))
        await house.put_value(b"r", b"v", b"c:q")
        region = region_at_once(house.server, older, b"r")
        assert region.table is house.served.schema
        await house.server.close_regions(older.regions)
        assert get_row(region_at_once(house.server, older, b"r"), b"r", house.read(b"c:q"))
        await house.close()

    asyncio.run(main())


def test_a_region_that_is_no_more_is_not_opened() -> None:
    async def main() -> None:
        house = House(TABLE)
        older = house.served
        house.served = ServedTable(TABLE, True, [replace(older.regions[0], region_id=99)])
        house.server.tables.install(house.served)
        with pytest.raises(NotServingRegion):
            house.server.open_region(older, older.holding(b"r"))
        await house.close()

    asyncio.run(main())


def test_writers_wait_while_a_region_is_opened_anew_and_readers_do_not(tmp_path: Path) -> None:
    async def main() -> None:
        house = House(TABLE, engine=RocksEngine())
        await house.put_value(b"r", b"v", b"a:q")
        region = house.region()
        house.gate.hold()
        late = house.apply(b"r", Put(b"a", b"q", b"w"))
        changed(house, altered(TABLE, TableChange(change={"a": {"IN_MEMORY": "true"}})))
        following = asyncio.ensure_future(house.server.upkeep.follow_schema("t"))
        while house.server.hosting.state_of(region) is not State.CLOSING:  # noqa: ASYNC110 - the flush before it runs in a thread
            await asyncio.sleep(0)
        with pytest.raises(StoreBusy):
            region.apply(RowMutation(b"r", (Put(b"a", b"q", b"x"),)))
        assert house.row(b"r")[0][1] == b"w"
        house.gate.release()
        await following
        assert late.durable is not None
        await late.durable
        assert house.region() is not region
        assert house.region().store.options_of("f:a").cache == "reserved"
        await house.put_value(b"r", b"y", b"a:q")
        assert house.row(b"r")[0][1] == b"y"
        await house.close()

    asyncio.run(main())


def test_a_read_only_table_takes_no_writes() -> None:
    async def main() -> None:
        house = House(TABLE)
        await house.put_value(b"r")
        await alter(house, TableChange(attributes={"READONLY": "true"}))
        for write in (
            lambda: house.apply(b"r", Put(b"a", b"q", b"x")),
            lambda: house.apply(b"r", Delete(b"a", None)),
            lambda: house.region().apply_many([RowMutation(b"r", (Put(b"a", b"q", b"x"),))]),
            lambda: house.region().delete_at_once(b"", b""),
        ):
            with pytest.raises(TableReadOnly, match="set it to false"):
                write()
        assert house.row(b"r")[0][1] == b"v"
        await alter(house, TableChange(attributes={"READONLY": ""}))
        await house.put_value(b"r", b"w")
        await house.close()

    asyncio.run(main())


def test_families_say_whether_their_writes_wait() -> None:
    async def main() -> None:
        house = House(make_table("t", [Family("a", durability="ASYNC_WAL"), Family("b")]))
        assert house.apply(b"r", Put(b"a", b"q", b"v")).durable is None
        assert house.apply(b"r", Put(b"b", b"q", b"v")).durable is not None
        both = house.apply(b"r", Put(b"a", b"q", b"v"), Put(b"b", b"q", b"v"))
        assert both.durable is not None, "the row is one step: who asks for the fsync gets it"
        lazy = house.apply(b"r", Put(b"b", b"q", b"v"), durability=Durability.ASYNC)
        assert lazy.durable is None
        await house.close()

    asyncio.run(main())


def test_a_sweep_takes_nothing_that_a_new_schema_keeps() -> None:
    async def main() -> None:
        house = House(make_table("t", [Family("a", max_versions=2, ttl_s=10)]))
        await three_versions(house, b"a")
        region = house.region()
        schema = region.table
        sweeping = asyncio.ensure_future(
            sweep(region.store, schema, region.views, region.now_ms + 20_000, lambda: region.table is schema)
        )
        await alter(house, TableChange(change={"a": {"VERSIONS": "5", "TTL": "FOREVER"}}))
        await sweeping
        assert [value for value, _ in versions(house, b"a")] == [b"2", b"1", b"0"]
        await house.close()

    asyncio.run(main())


def test_min_versions_stay_past_their_time() -> None:
    async def main() -> None:
        family = Family("a", max_versions=3, min_versions=2, ttl_s=1)
        house = House(make_table("t", [family, Family("b", ttl_s=1, min_versions=1)]))
        await three_versions(house, b"a")
        await house.put_value(b"r", b"v", b"b:q")
        house.clock.now_ms += 5_000
        assert [value for value, _ in versions(house, b"a")] == [b"2", b"1"]
        assert [value for _, value, _ in house.row(b"r")] == [b"2", b"v"]
        region = house.region()
        await house.server.upkeep.major_compact(region)
        assert [value for value, _ in versions(house, b"a")] == [b"2", b"1"]
        assert len(list(region.store.scan("versions", b"", None))) == 1
        assert [value for _, value, _ in house.row(b"r")] == [b"2", b"v"]
        await house.close()

    asyncio.run(main())


def test_scanners_go_on_or_say_what_is_missing() -> None:
    async def main() -> None:
        house = House(TABLE)
        for row in (b"r1", b"r2", b"r3"):
            await house.put(row, Put(b"a", b"q", b"v"), Put(b"b", b"q", b"v"))
        only_a, both = house.scanner(b"", b"", b"a"), house.scanner()
        assert await names_of(only_a, 1) == [b"r1"]
        assert await names_of(both, 1) == [b"r1"]
        await alter(house, TableChange(drop=frozenset({"b"}), add=(Family("c"),)))
        assert await names_of(only_a) == [b"r2", b"r3"]
        with pytest.raises(NoSuchColumnFamily, match="Column family b does not exist"):
            await names_of(both)
        await house.close()

    asyncio.run(main())
