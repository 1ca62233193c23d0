"""Contributions in a region: members, totals and ordered cells of one row, whatever the table is like."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from columnar.errors import CellTooBig, NoSuchColumnFamily, NotAllowed, NotALong, NotAMember
from columnar.limits import GUARD_MS
from columnar.model.contribution import unpack, unpack_carried
from columnar.model.mutation import CompareOp, Condition, Contribute, Delete, Increment, Put, RowMutation
from columnar.model.schema import Family, Table, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import Kind
from columnar.regions.write.images import images_of
from tests.support.memory_house import House as ChangingHouse
from tests.support.memory_house import housed
from tests.support.openings import region_at_once
from tests.support.region_house import House

FAMILIES = [Family("n"), Family("m"), Family("o")]
PLAIN = make_table("t", FAMILIES)
MARKED = make_table("t", FAMILIES, {"DELETE_MARKERS": "1000"})
DEEP = make_table("t", [Family("n", max_versions=3), Family("m", max_versions=3), Family("o", max_versions=3)])
N, X = (b"n", b""), (b"n", b"x")


def gives(
    source: bytes, n: int, *amounts: int, totals: Any = (N,), order: bytes | None = None, **more: Any
) -> Contribute:
    return Contribute(b"m", source, (1, 1, n), amounts, totals, b"o" if order is not None else b"", order, **more)


def goes(source: bytes, n: int) -> Contribute:
    return Contribute(b"m", source, (1, 1, n), None, ())


def on(*tables: Table) -> Callable[[Callable[[House], Awaitable[None]]], Callable[..., None]]:
    def decorate(test: Callable[[House], Awaitable[None]]) -> Callable[..., None]:
        async def run(table: Table) -> None:
            house = House(table)
            await test(house)
            await house.close()

        def wrapped(table: Table) -> None:
            asyncio.run(run(table))

        return pytest.mark.parametrize("table", tables, ids=["plain", "marked", "deep"][: len(tables)])(wrapped)

    return decorate


def totals(house: House, row: bytes = b"r") -> dict[bytes, int]:
    return {column[2:]: int.from_bytes(value, "big", signed=True) for column, value, _ in house.row(row, b"n")}


def members(house: House) -> dict[bytes, bool]:
    """Source -> is it there; False: as a guard."""
    return {column[2:]: not unpack(value).is_gone for column, value, _ in house.row(b"r", b"m")}


def ordered(house: House) -> list[tuple[bytes, Any]]:
    return [(column[2:], unpack_carried(value)) for column, value, _ in house.row(b"r", b"o")]


@on(PLAIN, MARKED, DEEP)
async def test_totals_are_counters_that_vanish_at_zero(house: House) -> None:
    await house.put(b"r", gives(b"a", 1, 3, 4, totals=(N, X)))
    await house.put(b"r", gives(b"b", 1, 10))
    assert totals(house) == {b"": 13, b"x": 4}
    await house.put(b"r", gives(b"a", 2, 3, 0, totals=(N, X)))
    assert totals(house) == {b"": 13}
    await house.put(b"r", goes(b"a", 3), goes(b"b", 2))
    assert (totals(house), members(house)) == ({}, {b"a": False, b"b": False})
    await house.put(b"r", gives(b"a", 1, 3), gives(b"b", 2, 10))
    assert (totals(house), members(house)) == ({}, {b"a": False, b"b": False}), "late, and said again"
    await house.put(b"r", gives(b"a", 4, 7))
    assert (totals(house), members(house)) == ({b"": 7}, {b"a": True, b"b": False})
    house.apply(b"r", Increment(b"n", b"", 1))
    assert totals(house) == {b"": 8}, "an increment adds to a total as to any counter"


@on(PLAIN, MARKED, DEEP)
async def test_operations_of_one_mutation_see_each_other(house: House) -> None:
    await house.put(b"r", gives(b"a", 1, 1), gives(b"a", 2, 5), gives(b"a", 2, 9), gives(b"b", 1, 1), goes(b"a", 3))
    assert (totals(house), members(house)) == ({b"": 1}, {b"a": False, b"b": True})
    await house.put(b"r", Increment(b"n", b"", 4), gives(b"c", 1, 1), Delete(b"m", b"c"), gives(b"c", 1, 1))
    assert totals(house) == {b"": 7}, "a member that somebody deletes gives again: deletes are not for members"
    applied = house.region().apply(
        RowMutation(b"r", (gives(b"d", 1, 1),), (Condition(b"n", b"", CompareOp.EQUAL, b"no"),))
    )
    assert applied.failed_condition == 0
    assert members(house)[b"c"]
    assert b"d" not in members(house)


@on(PLAIN, MARKED, DEEP)
async def test_a_source_moves_in_the_order_with_what_it_carries(house: House) -> None:
    title = ((b"m:title", b"A"),)
    await house.put(b"r", gives(b"a", 1, 1, order=b"5", carry=title), gives(b"b", 1, 1, order=b"3"))
    assert ordered(house) == [(b"3\x00\x01b", ()), (b"5\x00\x01a", title)]
    await house.put(b"r", gives(b"a", 2, 1, order=b"1", carry=title))
    await house.put(b"r", gives(b"b", 2, 1, order=b"3", carry=title))
    assert ordered(house) == [(b"1\x00\x01a", title), (b"3\x00\x01b", title)]
    await house.put(b"r", gives(b"a", 3, 1), gives(b"a", 2, 1, order=b"9"))
    await house.put(b"r", goes(b"b", 3))
    assert (ordered(house), totals(house)) == ([], {b"": 1})
    await house.put(b"r", gives(b"a", 4, 1, order=b"1"), gives(b"a", 5, 1, order=b"2"), gives(b"a", 6, 1, order=b"1"))
    assert ordered(house) == [(b"1\x00\x01a", ())], "back to where it was, within one mutation"


@on(PLAIN, MARKED, DEEP)
async def test_cells_in_the_future_are_no_obstacle(house: House) -> None:
    ahead = house.clock.now_ms + 100
    await house.put(b"r", Put(b"n", b"", (5).to_bytes(8, "big"), ahead))
    await house.put(b"r", gives(b"a", 1, 3, order=b"1"))
    assert totals(house) == {b"": 8}
    await house.put(b"r", gives(b"b", 1, -8))
    assert totals(house) == {}
    await house.put(b"r", gives(b"b", 2, 1))
    assert totals(house) == {b"": 9}


@on(PLAIN)
async def test_what_is_no_counter_and_what_is_no_member_are_refused_whole(house: House) -> None:
    await house.put(b"r", Put(b"n", b"x", b"text"), Put(b"m", b"mine", b"not ours"), gives(b"a", 1, 1))
    before = house.row(b"r")
    for bad, error in (
        (gives(b"b", 1, 1, 2, totals=(N, X), order=b"1"), NotALong),
        (gives(b"mine", 1, 1), NotAMember),
        (gives(b"b", 1, 1, totals=((b"none", b""),)), NoSuchColumnFamily),
        (gives(b"b", 1, 1, carry=((b"c:", bytes(10 << 20)),)), CellTooBig),
    ):
        with pytest.raises(error):
            house.apply(b"r", gives(b"a", 2, 7), bad)
        assert house.row(b"r") == before, "nothing half done"
    with pytest.raises(NotAMember, match="m:mine of row r of t was not written by a contribution"):
        house.apply(b"r", gives(b"mine", 1, 1))


@pytest.mark.parametrize("expiring", ["n", "m", "o"])
def test_families_with_a_time_to_live_are_refused(expiring: str) -> None:
    async def main() -> None:
        house = House(make_table("t", [Family(name, ttl_s=9 if name == expiring else None) for name in "nmo"]))
        with pytest.raises(NotAllowed, match=f"family {expiring} of t has a time to live.*TTL=FOREVER"):
            house.apply(b"r", gives(b"a", 1, 1, order=b"1"))
        assert house.row(b"r") == []
        await house.close()

    asyncio.run(main())


@on(PLAIN, MARKED)
async def test_records_have_the_cells_that_a_contribution_changed(house: House) -> None:
    families = frozenset({b"n", b"m", b"o"})
    house.server.set_policy("t", LogPolicy(families, frozenset(), {b"n": None}))
    await house.put(b"r", gives(b"a", 1, 1, order=b"1"))
    await house.put(b"r", gives(b"a", 1, 1, order=b"1"))
    await house.put(b"r", gives(b"b", 1, 4))
    await house.put(b"r", goes(b"a", 2))
    await house.put(b"r", goes(b"b", 2))
    records = [record for _, record in house.region().log.read_records(None)]
    kinds = [[(entry.kind, entry.family, entry.qualifier) for entry in record.entries] for record in records]
    put, delete = Kind.PUT, Kind.DELETE_COLUMN
    assert kinds == [
        [(put, b"n", b""), (put, b"o", b"1\x00\x01a"), (put, b"m", b"a")],
        [(put, b"n", b""), (put, b"m", b"b")],
        [(put, b"n", b""), (delete, b"o", b"1\x00\x01a"), (put, b"m", b"a")],
        [(delete, b"n", b""), (put, b"m", b"b")],
    ], "one that changes nothing makes no record"
    images = [images_of(record, {b"n": None}) for record in records]
    cells = [{}, *[{b"n:": n.to_bytes(8, "big")} for n in (1, 5, 4)], {}]
    assert images == list(pairwise(cells)), "also of a withdrawal, which names no totals"


# --- guards ------------------------------------------------------------------------------------------


@on(PLAIN, DEEP)
async def test_guards_go_after_an_hour(house: House) -> None:
    region, upkeep = house.region(), house.server.upkeep
    await house.put(b"r", *[gives(b"%d" % n, 1, 1) for n in range(3)])
    await house.put(b"r", goes(b"0", 2))
    await upkeep.major_compact(region)
    house.clock.now_ms += GUARD_MS
    await house.put(b"r", goes(b"1", 2))
    await upkeep.major_compact(region)
    assert members(house) == {b"0": False, b"1": False, b"2": True}, "an hour is not over"
    house.clock.now_ms += 1
    await upkeep.major_compact(region)
    assert members(house) == {b"1": False, b"2": True}
    assert region.guards, "one is left"
    house.clock.now_ms += 2 * GUARD_MS
    await upkeep.major_compact(region)
    assert members(house) == {b"2": True}
    assert not region.guards
    assert totals(house) == {b"": 1}


@on(PLAIN)
async def test_guards_stay_while_somebody_needs_them(house: House) -> None:
    await house.put(b"r", goes(b"a", 2))
    made_ms = house.clock.now_ms
    house.clock.now_ms += 10 * GUARD_MS
    asked: list[str] = []

    async def needed_from(table: str, now_ms: int) -> int:
        assert now_ms == house.clock.now_ms
        asked.append(table)
        return made_ms

    async def needed_later(_table: str, _now_ms: int) -> int:
        return made_ms + 1

    house.server.upkeep.keep_guards(needed_from)
    await house.server.upkeep.major_compact(house.region())
    assert (members(house), asked) == ({b"a": False}, ["t"])
    house.server.upkeep.keep_guards(needed_later)
    await house.server.upkeep.major_compact(house.region())
    assert members(house) == {}


@on(PLAIN)
async def test_other_cells_of_a_family_with_guards_stay(house: House) -> None:
    for n, value in enumerate((b"", b"\x01\x02", b"\x01\x02" + bytes(32), b"\x01\x01" + bytes(33), b"text")):
        await house.put(b"r", Put(b"m", b"mine%d" % n, value))
    await house.put(b"r", goes(b"a", 1), gives(b"b", 1, 1))
    held = house.row(b"r", b"m")
    house.clock.now_ms += 2 * GUARD_MS
    await house.server.upkeep.major_compact(house.region())
    assert house.row(b"r", b"m") == [cell for cell in held if cell[0] != b"m:a"]


@on(PLAIN)
async def test_guards_are_found_after_a_restart(house: House) -> None:
    await house.put(b"r", goes(b"a", 1))
    await house.server.hosting.quiesce(house.region())
    house.server.eviction.evict(house.region())
    assert house.region().guards
    house.clock.now_ms += 2 * GUARD_MS
    await house.server.upkeep.major_compact(house.region())
    await house.server.hosting.quiesce(house.region())
    house.server.eviction.evict(house.region())
    assert not house.region().guards
    assert members(house) == {}


@on(PLAIN)
async def test_a_refused_batch_leaves_no_mark_behind(house: House) -> None:
    await house.put(b"r", Put(b"n", b"", b"text"))
    with pytest.raises(NotALong):
        house.region().apply_many([RowMutation(b"q", (goes(b"a", 1),)), RowMutation(b"r", (gives(b"a", 1, 1),))])
    assert not house.region().guards
    await house.put(b"q", goes(b"a", 1))
    assert house.region().guards


@housed()
async def test_splits_and_merges_hand_on_where_guards_are(house: ChangingHouse) -> None:
    await house.changes.create(b"n", FAMILIES)
    served = house.server.tables.known(b"n")

    async def apply(row: bytes, one: Contribute) -> None:
        durable = region_at_once(house.server, served, row).apply(RowMutation(row, (one,))).durable
        assert durable is not None
        await durable

    def guarded() -> list[bool]:
        return [bool(region_at_once(house.server, served, info.start).guards) for info in served.regions]

    await apply(b"a", goes(b"s", 1))
    await apply(b"z", gives(b"s", 1, 1))
    await house.regions.split(served.regions[0], b"m")
    assert guarded() == [True, True], "a daughter may have none; it finds that out"
    house.clock.now_ms += 2 * GUARD_MS
    for info in served.regions:
        await house.server.upkeep.major_compact(region_at_once(house.server, served, info.start))
    assert guarded() == [False, False]
    await apply(b"z", goes(b"s", 2))
    assert guarded() == [False, True]
    await house.regions.merge(*served.regions)
    assert guarded() == [True]
