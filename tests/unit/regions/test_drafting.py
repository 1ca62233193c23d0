"""Cells ahead of the clock are compared and spared; of a row only the families that somebody follows are logged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from columnar.model.mutation import Delete, Put
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.write.row_columns import WIDE_ROW
from tests.support.region_house import House

TABLE = make_table("t", [Family("a"), Family("b")])
Scene = Callable[[House], Awaitable[None]]


def play(scene: Scene) -> None:
    async def main() -> None:
        house = House(TABLE)
        await scene(house)
        await house.close()

    asyncio.run(main())


@pytest.mark.parametrize("columns", [1, WIDE_ROW + 1])
def test_a_delete_of_a_family_spares_its_cells_ahead_of_the_clock(columns: int) -> None:
    """Of a wide row too, which goes by one range where nothing has to be spared."""

    async def scene(house: House) -> None:
        now_ms = house.clock.now_ms
        await house.put(b"r", Put(b"a", b"ahead", b"stays", now_ms + 1_000))
        await house.put(b"r", *(Put(b"a", b"%d" % n, b"goes") for n in range(columns)))
        await house.put(b"r", Delete(b"a", None))
        assert house.row(b"r") == [(b"a:ahead", b"stays", now_ms + 1_000)]

    play(scene)


@pytest.mark.parametrize("reopened", [False, True])
def test_a_cell_far_ahead_wins_after_another_that_was_less_so(reopened: bool) -> None:
    """The mark of what is ahead of the clock never falls."""

    async def scene(house: House) -> None:
        now_ms = house.clock.now_ms
        await house.put(b"r", Put(b"a", b"q", b"far", now_ms + 2_000))
        await house.put(b"s", Put(b"a", b"q", b"near", now_ms + 1_000))
        if reopened:
            house.server.eviction.evict(house.region())
        house.clock.now_ms = now_ms + 1_500
        await house.put(b"r", Put(b"a", b"q", b"now"))
        assert house.row(b"r") == [(b"a:q", b"far", now_ms + 2_000)]
        await house.put(b"r", Delete(b"a", None))
        assert house.row(b"r") == [(b"a:q", b"far", now_ms + 2_000)]

    play(scene)


def test_only_families_that_somebody_follows_are_logged() -> None:
    async def scene(house: House) -> None:
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        await house.put(b"r", Put(b"b", b"q", b"1"))
        log = house.region().log
        assert log.counts.records == 0
        await house.put(b"r", Put(b"b", b"q", b"2"), Put(b"a", b"q", b"3"))
        ((_, record),) = log.read_records(None)
        assert [(entry.family, entry.value) for entry in record.entries] == [(b"a", b"3")]

    play(scene)
