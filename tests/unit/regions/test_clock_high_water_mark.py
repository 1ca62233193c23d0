"""Regions that are closed under one clock and opened under another that is behind (``regions.reached``)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from columnar.model.mutation import Delete, Put
from columnar.model.schema import Family, make_table
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.region import CLOCK_MARK, STEP_MS
from columnar.storage.api import StoreBusy
from columnar.storage.rocks import RocksEngine
from tests.support.region_house import House

NOW_MS = 1_000_000
TABLE = make_table("t", [Family("a", max_versions=5), Family("b")])
CELLS = 20


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "regions")


def house_at(folder: str, now_ms: int) -> House:
    house = House(TABLE, engine=RocksEngine(), folder=folder)
    house.clock.now_ms = now_ms
    return house


async def filled(folder: str) -> None:
    house = house_at(folder, NOW_MS)
    for n in range(CELLS):
        house.clock.now_ms += 1
        await house.put_value(b"put%d" % n, b"old")
        await house.put_value(b"put%d" % n, b"old", b"b:q")
        await house.put_value(b"gone%d" % n, b"old")
    await house.close()


def test_no_put_hides_and_every_delete_deletes(folder: str) -> None:
    async def play() -> None:
        await filled(folder)
        house = house_at(folder, NOW_MS - 5_000)
        for n in range(CELLS):
            await house.put_value(b"put%d" % n, b"new")
            await house.put_value(b"put%d" % n, b"new", b"b:q")
            await house.put(b"gone%d" % n, Delete(b"a", b"q"))
        visible = [value for n in range(CELLS) for _, value, _ in house.row(b"put%d" % n)]
        assert visible == [b"new"] * CELLS * 2
        assert [house.row(b"gone%d" % n) for n in range(CELLS)] == [[]] * CELLS
        await house.close()

    asyncio.run(play())


def test_a_closing_leaves_what_was_given_and_a_crash_little_more(folder: str) -> None:
    async def play() -> None:
        await filled(folder)
        house = house_at(folder, 1)
        region = house.region()
        assert house.clock.now_ms == NOW_MS + CELLS
        house.clock.now_ms = NOW_MS + 10_000
        await house.put_value(b"r")
        held = int.from_bytes(region.store.get(META_SPACE, CLOCK_MARK) or b"", "big")
        assert held == NOW_MS + 10_000 + STEP_MS, "what an opening after a crash finds"
        await house.close()

    asyncio.run(play())


def test_a_client_that_is_ahead_does_not_move_the_clock(folder: str) -> None:
    async def play() -> None:
        house = house_at(folder, NOW_MS)
        await house.put(b"r", Put(b"a", b"q", b"v", NOW_MS * 1_000))
        await house.close()
        house = house_at(folder, NOW_MS + 1)
        assert house.row(b"r") == [(b"a:q", b"v", NOW_MS * 1_000)]
        assert house.clock.now_ms == NOW_MS + 1
        await house.close()

    asyncio.run(play())


class Behind:
    """A store whose engine is behind."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def gather(self, _batch: object) -> None:
        raise StoreBusy("behind")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_a_write_that_was_refused_covers_nothing(folder: str) -> None:
    """Its bound is not on disk, so the next write must bring it."""

    async def play() -> None:
        house = house_at(folder, NOW_MS)
        region = house.region()
        store, region.store = region.store, Behind(region.store)
        with pytest.raises(StoreBusy):
            house.apply(b"r", Put(b"a", b"q", b"v"))
        region.store = store
        await house.put_value(b"r")
        assert int.from_bytes(region.store.get(META_SPACE, CLOCK_MARK) or b"", "big") == NOW_MS + STEP_MS
        await house.close()

    asyncio.run(play())
