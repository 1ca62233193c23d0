"""Deletes of exactly one version, beside what the model test draws: what is told to triggers, what is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from columnar.model.mutation import Delete, Put
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import ChangeRecord, Kind, unpack
from columnar.regions.write.column_draft import VERSIONS_SPACE
from tests.support.region_house import House

PLAIN = make_table("t", [Family("a", max_versions=3), Family("b")])
MARKED = make_table("t", [Family("a"), Family("b")], {"DELETE_MARKERS": "100000"})


def run(work: Callable[[House], Awaitable[None]], table: object = PLAIN) -> None:
    async def main() -> None:
        house = House(table)  # type: ignore[arg-type]
        await work(house)
        await house.server.close()
        house.committer.close()

    asyncio.run(main())


async def versions(house: House, *stamps: int) -> None:
    for at in stamps:
        await house.put(b"r", Put(b"a", b"q", b"v%d" % at, at))


def stored(house: House) -> int:
    return sum(1 for _ in house.region().store.scan(VERSIONS_SPACE, b"", None))


def records(house: House) -> list[ChangeRecord]:
    return [unpack(data) for _, data in house.region().store.scan("log", b"", None)]


def test_surplus_versions_go_and_do_not_come_back() -> None:
    async def work(house: House) -> None:
        await versions(house, 1, 2, 3, 4, 5, 6)
        assert stored(house) == 5
        await house.put(b"r", Delete(b"a", b"q", 6, exact=True))
        assert house.row(b"r") == [(b"a:q", b"v5", 5)]
        assert stored(house) == 1
        await house.put(b"r", Delete(b"a", b"q", 5, exact=True), Delete(b"a", b"q", None, exact=True))
        assert house.row(b"r") == []
        assert stored(house) == 0

    run(work)


def test_what_is_put_behind_an_exact_delete_in_one_step() -> None:
    async def work(house: House) -> None:
        await versions(house, 10, 20, 30)
        put = Put(b"a", b"q", b"again", 20)
        await house.put(b"r", Delete(b"a", b"q", 20, exact=True), put, Delete(b"a", b"q", 30, exact=True))
        assert house.row(b"r") == [(b"a:q", b"again", 20)]
        await house.put(b"r", Delete(b"a", b"q", 20, exact=True))
        assert house.row(b"r") == [(b"a:q", b"v10", 10)]

    run(work)


def test_the_change_that_is_told() -> None:
    """What was removed, stamped with now: what triggers write must win over what they wrote before."""

    async def work(house: House) -> None:
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        await versions(house, 10, 20)
        house.clock.now_ms = 5_000
        await house.put(b"r", Delete(b"a", b"q", None, exact=True))
        told = records(house)[-1]
        assert [(entry.kind, entry.qualifier, entry.timestamp) for entry in told.entries] == [
            (Kind.DELETE_VERSION, b"q", 20)
        ]
        assert (told.timestamp, told.stamp) == (20, 5_000)

    run(work)


def test_nothing_there_is_nothing_told() -> None:
    async def work(house: House) -> None:
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        await versions(house, 10)
        before = len(records(house))
        await house.put(b"r", Delete(b"a", b"q", 11, exact=True), Delete(b"a", None, 9, exact=True))
        await house.put(b"r", Delete(b"a", b"other", None, exact=True))
        assert len(records(house)) == before
        assert house.row(b"r") == [(b"a:q", b"v10", 10)]

    run(work)


def test_a_marker_stays_in_place_of_the_cell() -> None:
    async def work(house: House) -> None:
        await versions(house, 20)
        await house.put(b"r", Delete(b"a", b"q", 20, exact=True))
        assert house.row(b"r") == []
        await house.put(b"r", Put(b"a", b"q", b"late", 19))
        assert house.row(b"r") == [], "a late retry does not bring it back"
        await house.put(b"r", Delete(b"a", b"q", None, exact=True))  # of a marker there is nothing to delete
        await house.put(b"r", Put(b"a", b"q", b"new", 21))
        assert house.row(b"r") == [(b"a:q", b"new", 21)]

    run(work, MARKED)
