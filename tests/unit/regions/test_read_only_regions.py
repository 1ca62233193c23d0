"""Regions whose disk takes no writes: readers are served, writers hear why; what nobody may see is refused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from columnar.errors import DamagedData, DiskFails, HostError
from columnar.model.mutation import Put
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.life import read_only_regions
from columnar.regions.life.region_state import State
from columnar.regions.tables import ServedTable
from columnar.regions.write.ingestion import INGESTING
from columnar.storage.api import SpaceOptions, Store
from columnar.storage.ownership import Ownership
from columnar.storage.rocks import RocksEngine
from tests.support.region_house import House

TABLE = make_table("t", [Family("a")])
PUT = Put(b"a", b"q", b"v")


class FullEngine(RocksEngine):
    """Opens nothing for writing while it has a ``refusal``."""

    def __init__(self) -> None:
        super().__init__(cache_bytes=1 << 20)
        self.refusal: HostError | None = None
        self.lags = False
        self.tries = 0

    def open_store(
        self,
        path: str,
        spaces: frozenset[str],
        options: Mapping[str, SpaceOptions] | None = None,
        ownership: Ownership | None = None,
    ) -> Any:
        self.tries += 1
        if self.refusal is not None:
            raise self.refusal
        return super().open_store(path, spaces, options, ownership)

    def has_unreplayed_writes(self, store: Store, ownership: Ownership) -> bool:
        return self.lags


Check = Callable[[House, FullEngine], Awaitable[None]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Check], None]:
    """One row is stored, the region is closed, and the disk is full."""
    monkeypatch.setattr(read_only_regions, "RETRY_S", 0.005)

    def go(check: Check) -> None:
        async def main() -> None:
            engine = FullEngine()
            (tmp_path / "regions").mkdir()  # as in a data folder
            house = House(TABLE, engine=engine, folder=str(tmp_path / "regions"))
            await house.put_value(b"r")
            await closed(house)
            engine.refusal = HostError("the disk is full")
            async with asyncio.timeout(20):
                await check(house, engine)
            await house.close()

        asyncio.run(main())

    return go


async def closed(house: House) -> None:
    await house.server.close_regions(house.served.regions)


async def tried(engine: FullEngine, house: House, more: int) -> None:
    """So many times it is closed and, by the next reader, opened again."""
    for _ in range(more):
        wanted = engine.tries + 1
        while engine.tries < wanted:
            assert values(house) == [b"v"]
            await asyncio.sleep(0.001)


def values(house: House) -> list[bytes]:
    return [value for _, value, _ in house.row(b"r")]


def is_read_only(house: House) -> bool:
    return house.server.hosting.state_of(house.region()) is State.READ_ONLY


def said(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in record.getMessage() for record in caplog.records)


def test_readers_are_served_and_writers_when_there_is_room(
    run: Callable[[Check], None], caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, and once that it is over."""
    caplog.set_level(logging.WARNING)

    async def check(house: House, engine: FullEngine) -> None:
        assert caplog.records == []
        await tried(engine, house, 3)
        with pytest.raises(HostError, match="the disk is full"):
            house.apply(b"r", PUT)
        assert said(caplog, "is read-only: the disk is full") == 1
        engine.refusal = HostError("the disk is mounted read-only")
        await tried(engine, house, 2)
        assert said(caplog, "is read-only: the disk is mounted read-only") == 1
        engine.refusal = None
        while is_read_only(house):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)
        await house.put_value(b"r", b"after")
        assert values(house) == [b"after"]
        await closed(house)
        house.region()
        assert said(caplog, "takes writes again") == 1
        assert len(caplog.records) == 3

    run(check)


def test_a_cause_that_names_another_file_at_each_try_is_said_once(
    run: Callable[[Check], None], caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk had a line of each region for each try, as the engine names the file that it could not write."""

    async def check(house: House, engine: FullEngine) -> None:
        for number in range(11, 15):
            engine.refusal = HostError(f"the disk is full (regions/ab/{number:06d}.sst)")
            await tried(engine, house, 1)
        assert said(caplog, "is read-only: the disk is full") == 1

    run(check)


def test_one_that_has_changes_to_deliver_is_opened_again_unasked(run: Callable[[Check], None]) -> None:
    async def check(house: House, engine: FullEngine) -> None:
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        assert is_read_only(house)
        engine.refusal = None
        tries = engine.tries
        while engine.tries == tries:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)
        (region,) = house.server.all_open()
        assert house.server.hosting.state_of(region) is State.OPEN

    run(check)


def test_what_readers_must_not_see_is_refused_until_there_is_room(run: Callable[[Check], None]) -> None:
    """What only an opening that writes can undo or bring in, and what such a disk is not to be believed."""

    async def check(house: House, engine: FullEngine) -> None:
        refusal = engine.refusal
        assert refusal is not None

        async def is_refused(by: HostError = refusal) -> None:
            engine.refusal = by
            with pytest.raises(HostError) as refused:
                house.region()
            assert refused.value is by
            assert house.server.open_count() == 0

        engine.lags = True  # the server's log has writes that it has not
        await is_refused()
        engine.lags = False
        await is_refused(DiskFails("a read failed"))
        table = make_table("t", [Family("a"), Family("new")])
        house.served = ServedTable(table, True, house.served.regions)
        house.server.tables.install(house.served)
        await is_refused()
        engine.refusal = None
        await house.region().note(INGESTING, b"\x00\x00\x00\x01xy", 0)
        await closed(house)
        await is_refused()
        engine.refusal = None
        assert values(house) == [b"v"], "it is opened for writing as if nothing had been"

    run(check)


def test_a_missing_folder_is_damage_whatever_the_disk_says(run: Callable[[Check], None]) -> None:
    async def check(house: House, engine: FullEngine) -> None:
        (info,) = house.served.regions
        engine.destroy(house.server.folder_of(info))
        for engine.refusal in (None, HostError("the disk is full")):
            with pytest.raises(DamagedData, match="is missing"):
                house.region()
        assert not engine.has_folder(house.server.folder_of(info))

    run(check)


def test_a_server_that_stops_tries_no_more(run: Callable[[Check], None]) -> None:
    async def check(house: House, engine: FullEngine) -> None:
        assert values(house) == [b"v"]
        await house.server.close()
        tries = engine.tries
        await asyncio.sleep(0.02)
        assert engine.tries == tries
        assert house.server.open_count() == 0

    run(check)


@pytest.mark.parametrize("place", ["write_faults", "is_open", "serving", "open_region", "all_open"])
def test_a_closed_region_is_tried_again_after_an_exception_at_any_call(
    run: Callable[[Check], None],
    place: str,
    monkeypatch: pytest.MonkeyPatch,
    expected_faults: Callable[[], dict[str, int]],
) -> None:
    """Nobody else would notice that the disk takes writes again: no client asks for the region."""

    async def check(house: House, engine: FullEngine) -> None:
        engine.lags = True  # the server's log has writes that it has not: readers are not served either
        with pytest.raises(HostError):
            house.region()
        assert [fault.passes for fault in house.server.read_only.write_faults()] == [True]
        faults = [KeyError(place)]
        target = house.server.read_only if place == "write_faults" else house.server
        call = getattr(target, place)

        def failing_once(*args: Any) -> Any:
            if faults:
                raise faults.pop()
            return call(*args)

        monkeypatch.setattr(target, place, failing_once)
        engine.refusal, engine.lags = None, False
        house.server.read_only.plan_retry()
        while faults or not house.server.is_open(house.served.regions[0]):  # noqa: ASYNC110 - by a timer
            await asyncio.sleep(0.001)
        assert sum(expected_faults().values()) == 1

    run(check)


def test_a_region_that_readers_do_not_have_either_is_opened_again_without_a_request(
    run: Callable[[Check], None],
) -> None:
    async def check(house: House, engine: FullEngine) -> None:
        engine.lags = True
        with pytest.raises(HostError):
            house.region()
        engine.refusal, engine.lags = None, False
        async with asyncio.timeout(10):
            while not house.server.is_open(house.served.regions[0]):  # noqa: ASYNC110 - by a timer
                await asyncio.sleep(0.001)

    run(check)
