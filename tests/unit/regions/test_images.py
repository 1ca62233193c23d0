"""Images in change records: exact for every wanted column, whoever else asks for more or less."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any

import pytest

from columnar.errors import ImageTooBig, NotAllowed, NotALong
from columnar.limits import IMAGE_BYTES, IMAGE_CELLS
from columnar.model.mutation import Append, CompareOp, Condition, Delete, Increment, Operation, Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import ChangeRecord, Entry, Images, Kind, unpack
from columnar.regions.write.images import covers, images_of, union
from tests.support.deep import seeds
from tests.support.region_house import House

TABLE = make_table("t", [Family("a"), Family("b", max_versions=3), Family("c")])
MARKED = make_table("t", [Family("a"), Family("b"), Family("c")], {"DELETE_MARKERS": "1000"})
QUALIFIERS = (b"p", b"q", b"r\x00")
ALL = frozenset({b"a", b"b", b"c"})


# --- reading -----------------------------------------------------------------------------------------


def record(before: tuple[Entry, ...], after: tuple[Entry, ...], images: Images | None, **more: Any) -> ChangeRecord:
    return ChangeRecord(b"r", 5, (), before, after=after, images=images, **more)


def put(column: bytes, value: bytes) -> Entry:
    family, _, qualifier = column.partition(b":")
    return Entry(Kind.PUT, family, qualifier, 5, value)


def test_a_reader_takes_its_own_part_of_a_record() -> None:
    held: Images = {b"a": frozenset({b"p", b"q"}), b"b": None}
    gone = Entry(Kind.DELETE_COLUMN, b"b", b"y", 5, b"")
    one = record((put(b"a:p", b"1"), put(b"b:x", b"2"), put(b"b:y", b"3")), (put(b"a:q", b"4"), gone), held)
    found = images_of(one, {b"a": frozenset({b"q"}), b"b": frozenset({b"y"})})
    assert found == ({b"b:y": b"3"}, {b"a:q": b"4"})
    found = images_of(one, {b"b": None})
    assert found == ({b"b:x": b"2", b"b:y": b"3"}, {b"b:x": b"2"})
    assert images_of(one, {}) == ({}, {})


def test_what_a_record_does_not_cover_it_does_not_make_up() -> None:
    one = record((put(b"a:p", b"1"),), (), {b"a": frozenset({b"p"})})
    assert images_of(one, {b"a": frozenset({b"p"})}) is not None
    assert images_of(one, {b"a": frozenset({b"p", b"q"})}) is None
    assert images_of(one, {b"a": None}) is None
    assert images_of(one, {b"b": frozenset({b"p"})}) is None
    assert images_of(record((put(b"a:p", b"1"),), (), None), {b"a": frozenset({b"p"})}) is None, "of before it asked"
    assert images_of(record((), (), {b"a": None}, only_for="t"), {b"a": None}) is None, "a backfill changes nothing"


def test_the_union_covers_each() -> None:
    several: list[Images] = [
        {b"a": frozenset({b"p"})},
        {b"a": frozenset({b"q"}), b"b": None},
        {b"b": frozenset({b"x"})},
    ]
    found = union(several)
    assert found == {b"a": frozenset({b"p", b"q"}), b"b": None}
    assert all(covers(found, one) for one in several)
    assert not covers(several[0], found)


# --- writing -----------------------------------------------------------------------------------------


def some_operation(rng: random.Random, now: int, deletes_exactly: bool) -> Operation:
    family, qualifier = rng.choice((b"a", b"b", b"c")), rng.choice(QUALIFIERS)
    at = rng.choice((None, None, None, now - rng.randrange(6), now + rng.randrange(3)))
    kind = rng.randrange(10)
    if kind < 5:
        ttl = rng.choice((None, None, None, rng.randrange(1, 8)))
        return Put(family, qualifier, b"%d" % rng.randrange(3), at, ttl)
    if kind < 7:
        return Delete(family, rng.choice((qualifier, None)), at, deletes_exactly and rng.random() < 0.4)
    return Increment(family, b"n", 1) if kind == 7 else Append(family, qualifier, rng.choice((b"", b"+")))


def some_images(rng: random.Random) -> Images:
    families = rng.sample((b"a", b"b", b"c", b"gone"), rng.randrange(4))
    return {
        family: None if rng.random() < 0.4 else frozenset(rng.sample((*QUALIFIERS, b"n"), rng.randrange(1, 4)))
        for family in families
    }


def part(row: dict[bytes, bytes], wanted: Images) -> dict[bytes, bytes]:
    found = {}
    for column, value in row.items():
        family, _, qualifier = column.partition(b":")
        qualifiers = wanted.get(family, frozenset())
        if qualifiers is None or qualifier in qualifiers:
            found[column] = value
    return found


def last_record(house: House) -> ChangeRecord | None:
    stored = list(house.region().store.scan("log", b"", None))
    return unpack(stored[-1][1]) if stored else None


def test_images_are_what_a_reader_sees_before_and_after() -> None:
    """Random mutations under random policies, with explicit timestamps, times to live, versions and markers."""

    async def main(seed: int) -> None:
        rng = random.Random(seed)
        house = House(rng.choice((TABLE, MARKED)))
        for step in range(25):
            house.clock.now_ms += rng.randrange(1, 4)
            now = house.clock.now_ms
            followers = [some_images(rng) for _ in range(rng.randrange(3))]
            logged = frozenset(rng.sample(sorted(ALL), 1)).union(*followers)
            touched = frozenset(rng.sample(sorted(logged), rng.randrange(len(logged) + 1)))
            house.server.set_policy("t", LogPolicy(logged, touched, union(followers)))
            operations = [some_operation(rng, now, True) for _ in range(rng.randrange(1, 5))]
            conditions = (Condition(b"a", b"p", CompareOp.NOT_EQUAL, b"2"),) if rng.random() < 0.3 else ()
            before = {column: value for column, value, _ in house.row(b"r")}
            newest = last_record(house)
            with suppress(NotALong):  # then nothing was changed
                house.region().apply(RowMutation(b"r", tuple(operations), conditions))
            after = {column: value for column, value, _ in house.row(b"r")}
            one = last_record(house)
            if one is None or one == newest:
                continue
            for wanted in followers:
                found = images_of(one, wanted)
                assert found == (part(before, wanted), part(after, wanted)), (seed, step, wanted, operations, one)
            if not union(followers):
                assert one.images is None, "who asks for nothing pays nothing"
            plain = {entry.family + b":" + entry.qualifier for entry in one.touched_before}
            assert all(column.partition(b":")[0] in touched for column in plain)
        await house.close()

    for seed in range(seeds("seeds of images", deep=300, short=100)):
        asyncio.run(main(seed))


def test_what_touched_cells_held_is_as_without_images() -> None:
    """Triggers of today ask for touched cells: another follower's images change nothing of what they see."""

    async def main() -> None:
        seen = []
        for images in ({}, {b"a": None, b"b": frozenset({b"p", b"q"})}):
            house = House(TABLE)
            house.server.set_policy("t", LogPolicy(ALL, frozenset({b"a"}), images))
            await house.put(b"r", Put(b"a", b"p", b"1"), Put(b"a", b"q", b"2"), Put(b"b", b"p", b"3"))
            house.clock.now_ms += 1
            condition = Condition(b"a", b"q", CompareOp.EXISTS)
            house.region().apply(RowMutation(b"r", (Put(b"a", b"p", b"4"), Put(b"b", b"p", b"5")), (condition,)))
            one = last_record(house)
            assert one is not None
            seen.append([(entry.qualifier, entry.value) for entry in one.touched_before])
            await house.close()
        assert sorted(seen[0]) == sorted(seen[1]) == [(b"p", b"1"), (b"q", b"2")]

    asyncio.run(main())


def test_a_change_of_unlogged_families_reads_no_images_and_makes_no_record() -> None:
    async def main() -> None:
        house = House(TABLE)
        await house.put(b"r", *[Put(b"a", b"%d" % n, b"v") for n in range(50)])
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset(), {b"a": None}))
        await house.put(b"r", Put(b"c", b"q", b"v"))
        assert last_record(house) is None
        await house.close()

    asyncio.run(main())


@pytest.mark.parametrize("by", ["cells", "bytes"])
def test_a_row_too_large_for_its_image_takes_no_more_and_can_shrink(by: str) -> None:
    count, value = (IMAGE_CELLS, b"") if by == "cells" else (8, bytes(IMAGE_BYTES // 8 - 200))

    async def main() -> None:
        house = House(TABLE)
        await house.put(b"r", *[Put(b"a", b"%d" % n, value) for n in range(count)])
        policy = LogPolicy(frozenset({b"a"}), frozenset(), {b"a": None}, {b"a": "view by_author"})
        house.server.set_policy("t", policy)
        house.clock.now_ms += 1
        before = house.row(b"r")
        with pytest.raises(ImageTooBig, match=r"row r of table t .* family a, all of which view by_author reads"):
            house.apply(b"r", Put(b"a", b"one more", bytes(2_000)))
        assert house.row(b"r") == before
        assert last_record(house) is None
        await house.put(b"r", Delete(b"a", b"1"), Put(b"a", b"another", value))
        await house.put(b"r", Put(b"c", b"q", bytes(2_000)))
        await house.put(b"r", Delete(b"a", None))
        one = last_record(house)
        assert one is not None
        found = images_of(one, {b"a": None})
        assert found is not None
        assert (len(found.before), found.after) == (count, {})
        await house.close()

    asyncio.run(main())


def test_a_row_that_was_too_large_before_somebody_asked_is_refused_whatever_the_write() -> None:
    async def main() -> None:
        house = House(TABLE)
        await house.put(b"r", *[Put(b"a", b"%d" % n, b"") for n in range(IMAGE_CELLS + 1)])
        policy = LogPolicy(frozenset({b"a"}), frozenset(), {b"a": None}, {b"a": "view by_author"})
        house.server.set_policy("t", policy)
        with pytest.raises(ImageTooBig, match="remove view by_author or have it name columns"):
            house.apply(b"r", Put(b"a", b"1", b"x"))
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset(), {b"a": frozenset({b"1", b"2"})}))
        await house.put(b"r", Put(b"a", b"1", b"x"))
        one = last_record(house)
        assert one is not None
        assert images_of(one, {b"a": frozenset({b"1"})}) == ({b"a:1": b""}, {b"a:1": b"x"})
        assert len(one.before) == 2, "columns that nobody named are neither read nor kept"
        await house.close()

    asyncio.run(main())


def test_cells_before_and_after_stand_once_with_the_stamps_they_had() -> None:
    """Columns that a change touches and columns that it does not; first, second and last of the row."""

    async def main() -> None:
        for touched in ((b"p",), (b"q",), (b"r",), (b"p", b"r"), (b"p", b"q", b"r")):
            for kept in (frozenset[bytes](), frozenset({b"a"})):
                house = House(TABLE)
                house.server.set_policy("t", LogPolicy(ALL, kept, {b"a": None}))
                for n, name in enumerate((b"p", b"q", b"r")):
                    await house.put(b"r", Put(b"a", name, b"old " + name, 100 + n))
                house.clock.now_ms += 1
                await house.put(b"r", *[Put(b"a", name, b"new " + name, 200 + n) for n, name in enumerate(touched)])
                one = last_record(house)
                assert one is not None
                before = sorted((entry.qualifier, entry.timestamp, entry.value) for entry in one.before)
                assert before == [(name, 100 + n, b"old " + name) for n, name in enumerate((b"p", b"q", b"r"))], touched
                after = sorted((entry.qualifier, entry.timestamp, entry.value) for entry in one.after)
                assert after == [(name, 200 + n, b"new " + name) for n, name in enumerate(touched)]
                await house.close()

    asyncio.run(main())


@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_put_that_expires_is_refused_wherever_it_stands_among_others(at: int) -> None:
    async def main() -> None:
        house = House(TABLE)
        policy = LogPolicy(ALL, frozenset(), {b"a": None}, lasting={b"a": {None: "view by_author"}})
        house.server.set_policy("t", policy)
        operations: list[Operation] = [Put(b"a", b"p", b"1"), Delete(b"a", b"q"), Put(b"c", b"q", b"1", None, 60_000)]
        await house.put(b"r", *operations)
        before = house.row(b"r")
        operations.insert(at, Put(b"a", b"r", b"brief", None, 60_000))
        with pytest.raises(NotAllowed, match="a put into a:r of t has a time to live: view by_author"):
            house.apply(b"r", *operations)
        assert house.row(b"r") == before
        await house.close()

    asyncio.run(main())
