"""A newest version whose own time to live is over: writers, conditions and followers see the version behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from columnar.model.mutation import Append, CompareOp, Condition, Increment, Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.read.region_reads import fetch, get_slice
from columnar.regions.read.row_reader import latest_timestamp
from tests.support.region_house import House

TABLE = make_table("t", [Family("a", max_versions=3)])
FIVE, SIX = (5).to_bytes(8, "big"), (6).to_bytes(8, "big")


def behind(old: bytes) -> Callable[[Callable[[House], Awaitable[None]]], Callable[[], None]]:
    """The test gets a house with ``a:q``: ``old``, behind a version that has expired."""

    def decorated(test: Callable[[House], Awaitable[None]]) -> Callable[[], None]:
        async def run() -> None:
            house = House(TABLE)
            await house.put(b"r", Put(b"a", b"q", old))
            house.clock.now_ms += 1
            await house.put(b"r", Put(b"a", b"q", b"brief", None, 5))
            house.clock.now_ms += 10
            assert [value for _, value, _ in house.row(b"r")] == [old]
            await test(house)
            await house.close()

        def wrapped() -> None:
            asyncio.run(run())

        return wrapped

    return decorated


@behind(b"old")
async def test_a_condition_is_about_what_a_reader_sees(house: House) -> None:
    is_old = Condition(b"a", b"q", CompareOp.EQUAL, b"old")
    applied = house.region().apply(RowMutation(b"r", (Put(b"a", b"q", b"new"),), (is_old,)))
    assert applied.failed_condition is None
    assert [value for _, value, _ in house.row(b"r")] == [b"new"]


@behind(FIVE)
async def test_an_increment_adds_to_what_a_reader_sees(house: House) -> None:
    await house.put(b"r", Increment(b"a", b"q", 1))
    assert [value for _, value, _ in house.row(b"r")] == [SIX]


@behind(b"old")
async def test_an_append_grows_what_a_reader_sees(house: House) -> None:
    await house.put(b"r", Append(b"a", b"q", b"er"))
    assert [value for _, value, _ in house.row(b"r")] == [b"older"]


@behind(b"old")
async def test_a_row_is_shown_to_who_begins_with_all_rows(house: House) -> None:
    region = house.region()
    assert latest_timestamp(region.store, b"r", fetch(region, b"r", house.read()), region.now_ms) == 1_000


@behind(b"old")
async def test_a_slice_of_a_row_has_what_a_reader_sees(house: House) -> None:
    assert get_slice(house.region(), b"r", b"a", b"", b"", 9, reverse=False) == [(b"a:q", b"old", 1_000)]


@behind(b"old")
async def test_a_record_says_what_a_reader_saw_before(house: House) -> None:
    house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset({b"a"}), {}))
    applied = house.apply(b"r", Put(b"a", b"q", b"new"))
    record = house.region().log.record_at(applied.sequence)
    assert record is not None
    assert [entry.value for entry in record.before] == [b"old"]
