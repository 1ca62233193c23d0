"""Puts by the clock need not read what they replace, unless something there lies in the future (Region, I5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from columnar.model.mutation import Append, Delete, Increment, Put
from columnar.model.schema import Family, make_table
from tests.support.region_house import House

TABLE = make_table("t", [Family("a"), Family("b", max_versions=3)])


def in_a_house(work: Callable[[House], Awaitable[None]]) -> None:
    async def run() -> None:
        house = House(TABLE)
        try:
            await work(house)
        finally:
            await house.close()

    asyncio.run(run())


def value_of(house: House, column: bytes = b"a:q") -> bytes | None:
    return {name: value for name, value, _ in house.row(b"r")}.get(column)


async def reopened(house: House) -> None:
    await house.server.close_table("t")


@pytest.mark.parametrize("restart", [False, True])
def test_a_cell_in_the_future_wins_until_its_time_has_come(restart: bool) -> None:
    async def work(house: House) -> None:
        now = house.clock()
        await house.put(b"r", Put(b"a", b"q", b"future", now + 1_000))
        if restart:
            await reopened(house)
        await house.put(b"r", Put(b"a", b"q", b"too early"))
        assert value_of(house) == b"future"
        house.clock.now_ms += 1_000
        await house.put(b"r", Put(b"a", b"q", b"at its very time"))
        assert value_of(house) == b"at its very time"
        house.clock.now_ms += 1
        await house.put(b"r", Put(b"a", b"q", b"after it"))
        assert value_of(house) == b"after it"

    in_a_house(work)


@pytest.mark.parametrize(("change", "kept"), [(Increment(b"a", b"q", 1), 6), (Append(b"a", b"q", b""), 5)])
def test_what_grows_a_cell_in_the_future_moves_it_on(change: Increment | Append, kept: int) -> None:
    async def work(house: House) -> None:
        await house.put(b"r", Put(b"a", b"q", (5).to_bytes(8, "big"), house.clock() + 10))
        await house.put(b"r", change)  # now it stands at 11 ms from now
        house.clock.now_ms += 10
        await house.put(b"r", Put(b"a", b"q", b"one too early"))
        assert value_of(house) == kept.to_bytes(8, "big")

    in_a_house(work)


def test_puts_and_deletes_of_one_mutation_keep_their_order() -> None:
    async def work(house: House) -> None:
        await house.put_value(b"r", b"old")
        await house.put(b"r", Put(b"a", b"q", b"new"), Delete(b"a", b"q"))
        assert value_of(house) is None
        await house.put(b"r", Put(b"a", b"q", b"1"), Put(b"a", b"q", b"2"), Put(b"b", b"q", b"x"))
        assert (value_of(house), value_of(house, b"b:q")) == (b"2", b"x")

    in_a_house(work)
