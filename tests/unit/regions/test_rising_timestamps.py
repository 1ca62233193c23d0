"""Timestamps of a row that triggers follow rise, however many rows share a millisecond; few rows are remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import pytest

from columnar.model.mutation import Durability, Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_logging import REMEMBERED_ROWS
from columnar.storage.rocks import RocksEngine
from tests.support.region_house import House

TABLE = make_table("t", [Family("a")])


Check = Callable[[House], Awaitable[None]]
Run = Callable[[Check], None]


class Row(bytes):
    """Counts those that somebody holds."""

    held = 0

    def __init__(self, _: bytes) -> None:
        Row.held += 1

    def __del__(self) -> None:
        Row.held -= 1


@pytest.fixture
def logged(tmp_path: Path) -> Run:
    """On the engine that many rows do not slow down."""

    def run(check: Check) -> None:
        async def main() -> None:
            house = House(TABLE, engine=RocksEngine(cache_bytes=1 << 20), folder=str(tmp_path))
            house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
            await check(house)
            await house.close()

        asyncio.run(main())

    return run


def stamp(house: House, row: bytes) -> int:
    put = RowMutation(row, (Put(b"a", b"q", b"v"),), (), Durability.ASYNC)
    return house.region(row).apply(put).timestamp


def write(house: House, rows: Iterable[bytes]) -> None:
    for row in rows:
        stamp(house, row)


def others(count: int, name: bytes = b"other") -> list[bytes]:
    return [b"%b%06d" % (name, n) for n in range(count)]


def test_a_row_written_again_in_its_millisecond_is_later_though_many_came_between(logged: Run) -> None:
    async def check(house: House) -> None:
        once, twice = stamp(house, b"once"), (stamp(house, b"twice"), stamp(house, b"twice"))
        assert once == twice[0] < twice[1]
        write(house, others(REMEMBERED_ROWS))
        assert stamp(house, b"once") > once
        assert stamp(house, b"twice") > twice[1]

    logged(check)


def test_a_row_that_ran_ahead_is_known_until_the_clock_is_past_it(logged: Run) -> None:
    async def check(house: House) -> None:
        ahead = max(stamp(house, b"r") for _ in range(10))
        for n in range(2):
            house.clock.now_ms += 1
            write(house, others(REMEMBERED_ROWS, b"%d" % n))
            assert house.clock.now_ms < ahead
        assert stamp(house, b"r") == ahead + 1
        house.clock.now_ms = ahead + 2
        assert stamp(house, b"r") == ahead + 2, "the clock has caught up"

    logged(check)


@pytest.mark.parametrize("tick_ms", [1, 0])
def test_few_rows_are_remembered(logged: Run, tick_ms: int) -> None:
    """Also while the clock stands still, or is behind: each write would look at all of them."""

    async def check(house: House) -> None:
        before, written = Row.held, 0
        for n in range(4):
            house.clock.now_ms += tick_ms
            rows = [Row(name) for name in others(REMEMBERED_ROWS // 2, b"%d" % n)]
            written += len(rows)
            write(house, rows)
            del rows
        assert written == 2 * REMEMBERED_ROWS
        assert Row.held - before <= REMEMBERED_ROWS + 1
        assert stamp(house, b"last") <= house.clock.now_ms + written // (REMEMBERED_ROWS // 2), "nor do they run away"

    logged(check)


def test_many_rows_of_one_millisecond_rise_each_by_itself(logged: Run) -> None:
    async def check(house: House) -> None:
        found: dict[bytes, list[int]] = {}
        for _ in range(2):
            for row in others(REMEMBERED_ROWS + 1):
                found.setdefault(row, []).append(stamp(house, row))
        assert all(first < second for first, second in found.values())

    logged(check)
