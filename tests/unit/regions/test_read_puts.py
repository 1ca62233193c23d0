"""Puts of many rows that are read together come to the very bytes that each row alone comes to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from columnar.model.mutation import Delete, Operation, Put, RowMutation
from columnar.model.schema import Family, Table, make_table
from columnar.regions.write import drafting
from tests.support.region_house import House

FAMILIES = [Family("a"), Family("b", ttl_s=1), Family("c", max_versions=3)]
PLAIN = make_table("t", FAMILIES)
MARKED = make_table("t", FAMILIES, {"DELETE_MARKERS": "100000"})
ROWS = (b"r", b"r\x00", b"s", b"t")
ROUNDS = 150


def cells_of(house: House) -> dict[str, list[tuple[bytes, bytes]]]:
    store = house.region().store
    store.settle()
    return {space: list(store.scan(space, b"", None)) for space in sorted(store.spaces)}


def random_put(rng: random.Random, now_ms: int, families: bytes) -> Put:
    family = bytes([rng.choice(families)])
    at = rng.choice((None, now_ms, now_ms - rng.randrange(2_000), now_ms + rng.randrange(3)))
    ttl_ms = rng.choice((None,) * 8 + (500,))
    return Put(family, rng.choice((b"q", b"q\x00", b"")), b"%d" % rng.randrange(100), at, ttl_ms)


def random_row(rng: random.Random, now_ms: int) -> tuple[Operation, ...]:
    families = rng.choice((b"a", b"ab", b"abc"))
    if rng.random() < 0.2:
        return (Delete(b"a", rng.choice((b"q", None)), now_ms - rng.randrange(500)),)
    return tuple(random_put(rng, now_ms, families) for _ in range(rng.randint(1, 3)))


@pytest.mark.parametrize("table", [PLAIN, MARKED], ids=["plain", "marked"])
@pytest.mark.parametrize("seed", range(4))
def test_many_rows_come_to_what_each_row_alone_comes_to(
    table: Table, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    read: list[int] = []
    seen = _seen(drafting.read_present, read)
    monkeypatch.setattr(drafting, "read_present", seen)

    async def run() -> None:
        together, alone = House(table), House(table)
        together.clock.now_ms = alone.clock.now_ms = 10_000
        try:
            for _ in range(ROUNDS):
                rows = rng.sample(ROWS, rng.randint(2, len(ROWS)))
                mutations = [RowMutation(row, random_row(rng, together.clock.now_ms)) for row in rows]
                together.region().apply_many(mutations)
                for mutation in mutations:
                    alone.region().apply(mutation)
                assert cells_of(together) == cells_of(alone), mutations
                for house in (together, alone):
                    house.clock.now_ms += 300
        finally:
            await together.close()
            await alone.close()

    asyncio.run(run())
    assert sum(read) > ROUNDS / 3, "of the rows of many batches"


def _seen(call: Callable[..., drafting.Present], read: list[int]) -> Callable[..., Any]:
    def look(*given: Any) -> drafting.Present:
        present = call(*given)
        read.append(sum(places is not None for places in present.rows))
        return present

    return look


def test_a_batch_of_puts_reads_each_key_space_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        house = House(MARKED)
        store = house.region().store
        calls: list[tuple[str, int]] = []
        multi_get = store.multi_get
        monkeypatch.setattr(
            store, "multi_get", lambda space, keys: calls.append((space, len(keys))) or multi_get(space, keys)
        )
        monkeypatch.setattr(store, "get", lambda *_: pytest.fail("cells are read together"))
        house.region().apply_many(
            [RowMutation(row, (Put(b"a", b"q", b"v", 5), Put(b"b", b"q", b"v", 5))) for row in ROWS]
        )
        assert sorted(count for _, count in calls) == [len(ROWS), len(ROWS)]
        await house.close()

    asyncio.run(run())


def test_the_highest_timestamp_of_a_batch_is_remembered_where_it_lies_ahead() -> None:
    async def run() -> None:
        house = House(PLAIN)
        ahead_ms = house.clock.now_ms + 1_000
        mutations = [
            RowMutation(b"r", (Put(b"a", b"q", b"v", ahead_ms),)),
            RowMutation(b"s", (Put(b"a", b"q", b"v", 5),)),
        ]
        house.region().apply_many(mutations)
        await house.put(b"r", Put(b"a", b"q", b"too early"))
        assert [value for _, value, _ in house.row(b"r")] == [b"v"]
        await house.close()

    asyncio.run(run())


def test_surplus_versions_of_cells_that_many_rows_overwrite_go_as_those_of_a_row_alone() -> None:
    async def run() -> None:
        together, alone = House(PLAIN), House(PLAIN)
        for number in range(40):
            mutations = [RowMutation(row, (Put(b"c", b"q", b"%d" % number, 5 + number),)) for row in ROWS]
            together.region().apply_many(mutations)
            for mutation in mutations:
                alone.region().apply(mutation)
            assert cells_of(together) == cells_of(alone), number
        assert len(cells_of(together)["versions"]) < len(ROWS) * 20
        await together.close()
        await alone.close()

    asyncio.run(run())
