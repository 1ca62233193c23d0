"""Logged puts of many rows at once leave the same cells and records as one by one.

Two servers get the same rows: one as batches, the other row by row through ``RowDraft``.  Cells are compared with their
timestamps, records with their sequences and stamps; the order of the cells of an image says nothing.  The histories
include puts at times of the clients' own, puts that expire, deletes, cells in the future, families that keep several
versions or are missing, delete markers and policies of all kinds.  Each failure prints its seed.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

import pytest

from columnar.errors import ColumnarError
from columnar.model.mutation import Delete, Increment, Operation, Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import ChangeRecord, Images, unpack, unpack_key
from columnar.regions.write.logged_puts import LoggedPuts
from tests.support.deep import seeds
from tests.support.region_house import House
from tests.support.seeds import seed

SEED: Final = seed(20261127)
SEEDS: Final = seeds("seeds of logged puts", deep=200, short=50)
QUALIFIERS: Final = (b"p", b"q", b"r\0")
FAMILIES: Final = (b"a", b"b", b"c")
ROWS: Final = tuple(b"row%d" % number for number in range(6))
COUNTS: Final = (0, 1, 1, 2, 2, 2, 2, 3)  # of operations


def some_policy(rng: random.Random) -> LogPolicy:
    families = frozenset(rng.sample(FAMILIES, rng.choice((1, 3, 3))))
    images: Images = {
        family: None if rng.random() < 0.1 else frozenset(rng.sample(QUALIFIERS, rng.randrange(1, 4)))
        for family in rng.sample(sorted(families | {b"gone"}), rng.randrange(len(families) + 1))
    }
    families |= frozenset(images)
    touched = frozenset(rng.sample(sorted(families), 1)) if rng.random() < 0.15 else frozenset()
    return LogPolicy(families, touched, images)


def some_operation(rng: random.Random, now_ms: int) -> Operation:
    family = b"lacking" if rng.random() < 0.003 else rng.choice(FAMILIES)
    qualifier, kind = rng.choice(QUALIFIERS), rng.random()
    if kind < 0.02:
        return Delete(family, rng.choice((qualifier, None)))
    if kind < 0.03:
        return Increment(family, b"n", 1)
    at = now_ms + rng.randrange(-5, 5) if rng.random() < 0.04 else None
    return Put(family, qualifier, b"%d" % rng.randrange(3), at, 3 if rng.random() < 0.03 else None)


def some_rows(rng: random.Random, now_ms: int) -> list[RowMutation]:
    return [
        RowMutation(row, tuple(some_operation(rng, now_ms) for _ in range(rng.choice(COUNTS))), hops=rng.randrange(3))
        for row in rng.sample(ROWS, rng.randrange(1, len(ROWS) + 1))
    ]


def records(house: House) -> list[tuple[Any, ChangeRecord]]:
    stored = [(unpack_key(key), unpack(data)) for key, data in house.region().store.scan("log", b"", None)]
    return [(at, one.but(before=tuple(sorted(one.before)), after=tuple(sorted(one.after)))) for at, one in stored]


def cells(house: House) -> list[tuple[bytes, bytes]]:
    store = house.region().store
    spaces = sorted(store.spaces - {"log"})
    return [(space.encode() + key, raw) for space in spaces for key, raw in store.scan(space, b"", None)]


def apply_each(house: House, rows: list[RowMutation]) -> None:
    for one in rows:
        house.region().apply(one)


async def play(number: int) -> None:
    rng = random.Random(number)
    several = rng.choice((b"", b"", b"b"))
    families = [Family(name.decode(), max_versions=3 if name == several else 1) for name in FAMILIES]
    table = make_table("t", families, {"DELETE_MARKERS": "1000"} if rng.random() < 0.1 else {})
    together, apart = House(table), House(table)
    policy = some_policy(rng)
    for step in range(12):
        if rng.random() < 0.2:
            policy = some_policy(rng)
        for house in (together, apart):
            house.server.set_policy("t", policy)
        moved = rng.choice((0, 1, 3))
        together.clock.now_ms += moved
        apart.clock.now_ms += moved
        rows = some_rows(rng, together.clock.now_ms)
        try:
            together.region().apply_many(rows)
        except ColumnarError as error:
            with pytest.raises(type(error)):
                apply_each(apart, rows)
            break  # of the rows one by one, some are written
        apply_each(apart, rows)
        assert records(together) == records(apart), (number, step, policy, rows)
        assert cells(together) == cells(apart), (number, step, policy, rows)
    await together.close()
    await apart.close()


def test_rows_at_once_end_as_one_by_one() -> None:
    taken = 0
    put = LoggedPuts.put_row

    def counted(puts: LoggedPuts, *given: Any) -> ChangeRecord:
        nonlocal taken
        taken += 1
        return put(puts, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LoggedPuts, "put_row", counted)
        for number in range(SEED, SEED + SEEDS):
            asyncio.run(play(number))
    assert taken > 5 * SEEDS, "the rows are for here"
