"""Tables and regions by their names, their sizes, and upkeep over regions that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from columnar.errors import (
    ClientGone,
    IllegalArgument,
    NotServingRegion,
    RegionUnavailable,
    TableNotEnabled,
    TableNotFound,
)
from columnar.model.schema import Family, make_table
from columnar.operations.access import retried
from columnar.regions.life import retry
from columnar.regions.life.region_state import Event
from columnar.regions.read.region_reads import rows_of
from columnar.regions.region import Region
from columnar.wire.service import Later
from tests.support.region_house import House

TABLE = make_table("t", [Family("a")])


def in_house(play: Callable[[House], Awaitable[None]], splits: tuple[bytes, ...] = (b"m",), **options: Any) -> None:
    async def main() -> None:
        house = House(TABLE, splits, **options)
        try:
            await play(house)
        finally:
            await house.close()

    asyncio.run(main())


async def a_while() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


# --- names -----------------------------------------------------------------------------------------


def test_a_region_is_found_by_its_full_and_its_encoded_name() -> None:
    async def play(house: House) -> None:
        looks, infos = house.operations.descriptions, house.served.regions
        for info in infos:
            for name in (info.name, info.encoded.encode()):
                assert looks.region_named(name) == (house.served, info)
                assert looks.regions_named(name) == [(house.served, info)]
                assert looks.given_region(name) == info
        assert looks.regions_named(b"t") == [(house.served, info) for info in infos]
        assert looks.regions_named(b"default:t") == looks.regions_named(b"t")
        for nothing in (b"", None):
            with pytest.raises(IllegalArgument, match="say which region"):
                looks.given_region(nothing)
            with pytest.raises(TableNotFound, match="neither a table nor a region"):
                looks.regions_named(nothing)

    in_house(play)


# --- sizes -----------------------------------------------------------------------------------------


def test_closed_regions_are_measured_on_disk_and_open_ones_by_their_engine(tmp_path: Path) -> None:
    from columnar.storage.rocks import RocksEngine

    async def play(house: House) -> None:
        await house.put_value(b"z", b"v" * 100_000)
        looks = house.operations.descriptions
        first, second = looks.states_of([house.served])
        assert (first.is_open, first.size_bytes, first.writes) == (False, 0, 0)
        assert (second.is_open, second.writes) == (True, 1)
        assert second.size_bytes == house.region(b"z").store.files.size_bytes()
        await house.server.close_table("t")
        first, second = await looks.with_sizes([house.served])
        assert not second.is_open
        assert second.size_bytes > 100_000 > first.size_bytes
        assert await looks.largest_region(house.served) == house.served.regions[1]
        assert looks.states_of([]) == await looks.with_sizes([]) == []

    in_house(play, engine=RocksEngine(), folder=str(tmp_path / "regions"))


def test_rows_of_a_region_begin_where_they_are_asked_to() -> None:
    async def play(house: House) -> None:
        for row in (b"a", b"b\x00", b"c"):
            await house.put_value(row)
        region = house.region(b"a")
        assert [row for row, _ in rows_of(region)] == [b"a", b"b\x00", b"c"]
        assert [row for row, _ in rows_of(region, b"b")] == [b"b\x00", b"c"]
        assert [list(cells) for _, cells in rows_of(region, b"c")] == [[(b"a:q", b"v", house.clock.now_ms)]]

    in_house(play)


# --- upkeep ----------------------------------------------------------------------------------------


def noted(owner: object, monkeypatch: pytest.MonkeyPatch, method: str) -> list[bytes]:
    """The starts of the regions that ``method`` of ``owner`` is called for."""
    starts: list[bytes] = []
    really = getattr(owner, method)

    async def noting(region: Region) -> None:
        starts.append(region.info.start)
        await really(region)

    monkeypatch.setattr(owner, method, noting)
    return starts


@pytest.mark.parametrize("method", ["compact", "major_compact"])
def test_all_regions_of_a_table_are_compacted_or_the_one_that_is_named(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(house: House) -> None:
        starts = noted(house.server.upkeep, monkeypatch, method)
        await getattr(house.operations.upkeep, method)(b"t")
        assert starts == [b"", b"m"]
        await getattr(house.operations.upkeep, method)(house.served.regions[1].name)
        assert starts == [b"", b"m", b"m"]
        with pytest.raises(TableNotFound):
            await getattr(house.operations.upkeep, method)(b"none")

    in_house(play)


def test_a_flush_opens_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(house: House) -> None:
        house.region(b"z")
        starts = noted(Region, monkeypatch, "flush")
        await house.operations.upkeep.flush(b"t")
        assert starts == [b"m"]
        assert house.server.open_count() == 1

    in_house(play)


def test_upkeep_waits_for_an_unavailable_region(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(house: House) -> None:
        region = house.region(b"a")
        hosting = house.server.hosting
        hosting.report_event(region, Event.REPLACEMENT_BEGINS)
        hosting.report_event(region, Event.PAUSE_BEGINS)
        starts = noted(house.server.upkeep, monkeypatch, "compact")
        working = asyncio.ensure_future(house.operations.upkeep.compact(b"t"))
        await a_while()
        assert (starts, working.done()) == ([], False)
        hosting.report_event(region, Event.CALLED_OFF)
        await working
        assert starts == [b"", b"m"]

    in_house(play)


def test_upkeep_passes_over_a_table_that_is_disabled_or_dropped_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(house: House) -> None:
        starts = noted(house.server.upkeep, monkeypatch, "major_compact")
        really = house.server.upkeep.major_compact

        async def disabling(region: Region) -> None:
            await really(region)
            house.served.enabled = False

        monkeypatch.setattr(house.server.upkeep, "major_compact", disabling)
        await house.operations.upkeep.major_compact(b"t")
        assert starts == [b""]
        house.served.enabled = True
        monkeypatch.setattr(house.server.upkeep, "major_compact", really)

    in_house(play)


# --- access and retries ----------------------------------------------------------------------------


def test_a_table_must_be_enabled_when_it_is_named_and_after_a_wait() -> None:
    async def play(house: House) -> None:
        access = house.operations.access
        for name in (b"t", b"default:t"):
            assert access.table(name) is house.served
        for name in (b"none", b"t2"):
            with pytest.raises(TableNotFound):
                access.table(name)
        for nothing in (b"", None):
            with pytest.raises(IllegalArgument):
                access.table(nothing)
        found = await access.opened(house.served, house.served.holding(b"z"))
        assert found.info.start == b"m"
        assert access.region_for(house.served, b"z") is found
        house.served.enabled = False
        for look in (lambda: access.table(b"t"), lambda: access.again(house.served)):
            with pytest.raises(TableNotEnabled):
                look()

    in_house(play)


def test_a_call_begins_anew_when_its_region_is_there_again() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        gates = [loop.create_future() for _ in range(2)]
        calls: list[int] = []

        def call() -> Any:
            calls.append(len(calls))
            if len(calls) < 2:
                raise RegionUnavailable("r2", gates[1])
            synced = loop.create_future()
            loop.call_soon(synced.set_result, None)
            return Later(synced, "done")

        waiting = asyncio.ensure_future(retried(call, RegionUnavailable("r1", gates[0]), lambda: False))
        await a_while()
        assert calls == []
        gates[0].set_result(None)
        await a_while()
        assert calls == [0], "its second region is unavailable"
        gates[1].set_result(None)
        assert await waiting == "done"
        assert calls == [0, 1]

    asyncio.run(main())


def test_a_call_is_not_begun_anew_for_a_client_that_has_gone_nor_after_the_longest_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "UNAVAILABLE_TIMEOUT_S", 0.01)

    async def main() -> None:
        loop, calls = asyncio.get_running_loop(), [0]

        def call() -> None:
            calls[0] += 1

        gate = loop.create_future()
        gate.set_result(None)
        with pytest.raises(ClientGone):
            await retried(call, RegionUnavailable("r", gate), lambda: True)
        with pytest.raises(RegionUnavailable):
            await retried(call, RegionUnavailable("r", loop.create_future()), lambda: False)
        condemned = loop.create_future()
        condemned.set_exception(NotServingRegion("nobody knows"))
        with pytest.raises(NotServingRegion, match="nobody knows"):
            await retried(call, RegionUnavailable("r", condemned), lambda: False)
        assert calls == [0]

    asyncio.run(main())
