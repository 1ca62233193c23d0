"""Contributions to many rows at once leave the same cells as one by one, and fail with the same errors.

Two servers get the same rows: one as batches, the other row by row through ``RowDraft``.  Cells are compared with their
timestamps.  The histories include damage (malformed members and totals), families that keep several versions or are
missing, and a clock that goes back.  Each failure prints its seed.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

import pytest

from columnar.errors import ColumnarError
from columnar.model.mutation import Contribute, Operation, Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.regions.write import contribution_rows
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import Batch
from tests.support.deep import seeds
from tests.support.region_house import House
from tests.support.seeds import seed

SEED: Final = seed(20261126)
SEEDS: Final = seeds("seeds of rows of contributions", deep=150, short=40)
TOTALS: Final[tuple[tuple[bytes, bytes], ...]] = ((b"v", b"count"), (b"v", b"n\0"), (b"w", b"x"))
FAULTS: Final = ("NoSuchColumnFamily", "NotALong", "NotAMember", "NotAllowed")
NAMES: Final = (b"a", b"b\0", b"c\0\1d")


def table_of(rng: random.Random) -> tuple[Family, ...]:
    several = rng.choice(("", "", "m", "v", "o", "w", "other"))
    expiring = rng.choice(("", "", "", "", "", "", "o"))
    return tuple(
        Family(name, max_versions=3 if name == several else 1, ttl_s=60 if name == expiring else None)
        for name in ("m", "v", "o", "w", "other")
    )


def said(rng: random.Random, n: int) -> Contribute:
    totals = TOTALS  # one object, as those of a view
    if rng.random() < 0.5:
        totals = tuple(rng.sample(TOTALS, rng.randrange(1, 4)))
    amounts = None if rng.random() < 0.3 else tuple(rng.choice((0, 1, -1, 5, (1 << 63) - 1)) for _ in totals)
    family = b"m"
    if rng.random() < 0.1:
        family = rng.choice((b"lacking", b"other", b"other", b"other", b"other", b"other"))
    order = rng.choice((None, b"", b"1", b"2\0")) if amounts is not None else None
    return Contribute(
        family, rng.choice(NAMES), (5, 0, max(0, n - rng.choice((0, 0, 0, 3)))), amounts, totals,
        b"o" if order is not None or rng.random() < 0.5 else b"", order,
        ((b"f:c", b"%d" % rng.randrange(2)),) if rng.random() < 0.5 else (),
        amounts is not None and rng.random() < 0.2, rng.choice((0, 0, 1)),
    )  # fmt: skip


def damage(rng: random.Random) -> Put:
    return rng.choice(
        (
            Put(b"m", rng.choice(NAMES), b"no member"),
            Put(b"v", b"count", b"short"),
            Put(b"v", b"count", b"\0" * 7 + b"\x09", ttl_ms=50),
            Put(b"w", b"x", b"\0" * 7 + b"\x07", timestamp=10_000_000),
        )
    )


def cells(house: House) -> dict[bytes, list[tuple[bytes, bytes, int]]]:
    return {row: sorted(house.row(row)) for row in (b"r", b"s\0", b"t")}


def older(house: House) -> list[bytes]:
    """Return the keys of older versions, which contain their timestamps."""
    return [key for key, _ in house.region(b"r").store.scan(VERSIONS_SPACE, b"", None)]


def one_by_one(house: House, row: bytes, operations: tuple[Operation, ...]) -> str:
    """Apply operations one by one; return the error, or an empty text."""
    try:
        house.region(row).apply(RowMutation(row, operations))
    except ColumnarError as error:
        return f"{type(error).__name__} {error.text}"
    return ""


def at_once(house: House, asked: list[RowMutation]) -> str:
    try:
        house.region(b"r").apply_many(asked)
    except ColumnarError as error:
        return f"{type(error).__name__} {error.text}"
    return ""


async def run(number: int) -> int:
    rng = random.Random(number)
    families = table_of(rng)
    together, alone = (House(make_table("t", list(families))) for _ in range(2))
    batches = 0
    try:
        for n in range(1, 12):
            step_ms = rng.choice((0, 1, 100))
            for house in (together, alone):
                house.clock.now_ms += step_ms
            if rng.random() < 0.1:
                row, put = rng.choice((b"r", b"s\0")), damage(rng)
                assert one_by_one(together, row, (put,)) == one_by_one(alone, row, (put,))
            rows = rng.sample((b"r", b"s\0", b"t"), rng.randrange(1, 4))
            asked = [RowMutation(row, tuple([said(rng, n) for _ in range(rng.randrange(1, 4))])) for row in rows]
            if rng.random() < 0.1:
                asked.append(RowMutation(b"u", (Put(b"other", b"q", b"1"),)))
            errors = [error for one in asked if (error := one_by_one(alone, one.row, one.operations))]
            refused = at_once(together, asked)
            batches += not refused
            assert bool(refused) == bool(errors), (refused, errors)
            assert not refused or refused.split()[0] in FAULTS  # of a row with several faults either may be said
            for one in asked if refused else ():
                one_by_one(together, one.row, one.operations)
            assert cells(together) == cells(alone), asked
            assert older(together) == older(alone), asked
            assert set(together.region(b"r").guards.families()) == set(alone.region(b"r").guards.families())
    except BaseException:
        print(f"seed {number}: {families}")
        raise
    finally:
        await together.close()
        await alone.close()
    return batches


def test_rows_at_once_end_as_one_by_one() -> None:
    used = [0]
    emit = contribution_rows.ContributedRow.emit

    def counted(row: contribution_rows.ContributedRow, batch: Batch, number: int) -> None:
        used[0] += 1
        emit(row, batch, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contribution_rows.ContributedRow, "emit", counted)
        batches = sum(asyncio.run(run(number)) for number in range(SEED, SEED + SEEDS))
    assert batches > 3 * SEEDS
    assert used[0] > 3 * SEEDS, "most rows go together"


def test_a_row_without_operations_is_for_the_draft() -> None:
    assert not contribution_rows.begins([RowMutation(b"r", ())])
