"""Random damage to a view is found and repaired; a check of a correct view finds nothing, while writers write.

The test itself applies changes to the view (``CheckedHouse``): they lag, and are applied between the steps of a check.
The expected view is computed anew from the sources.

``python -m tests.model.test_view_check_model --seeds 10000`` runs more of them; each failure prints its seed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Callable
from typing import Final

import pytest

from columnar.model.contribution import Member, pack, unpack
from columnar.model.mutation import Delete, Operation, Put
from columnar.model.schema import Family, make_table
from columnar.model.view_definition import LEFT, Source, View
from columnar.views import checking, digests, view_check_peer_handlers, walks
from tests.support.checked_house import CheckedHouse
from tests.support.deep import seeds
from tests.support.seeds import seed

SEED: Final = seed(20261125)
SEEDS: Final = seeds("seeds of checks of views", deep=40, short=7)
TABLES = (make_table("s", [Family("f")]), make_table("t", [Family("f")]))
NAMES = (b"a", b"a\0", b"b", b"c\0\1")


def view_of(rng: random.Random) -> View:
    def source(table: str) -> Source:
        return Source(
            table,
            key=(rng.choice(("f:a", "each f:t split ','")),),
            sums={"n": "f:n"} if rng.random() < 0.7 else {},
            averages={"m": "f:n"} if rng.random() < 0.3 else {},
            order=rng.choice(("", "f:n", "f:n desc", "text(f:a) desc")),
            include=("f:a",) if rng.random() < 0.5 else (),
        )

    if rng.random() < 0.3:
        return View("v", source("s"), source("t"))
    return View("v", source("s"), spread=rng.choice((1, 1, 3)))


def write(rng: random.Random, house: CheckedHouse) -> None:
    table, row = rng.choice(house.rules).table, b"r%02d" % rng.randrange(20)
    operations: list[Operation] = []
    if rng.random() < 0.2:
        operations.append(Delete(b"f", None))
    else:
        operations.append(Put(b"f", b"a", rng.choice(NAMES)))
        operations.append(Put(b"f", b"t", b",".join(rng.sample((b"x", b"y", b"z"), rng.randrange(4)))))
        operations.append(Put(b"f", b"n", rng.choice((b"1", b"2", b"-3", b"many"))))
    house.write(table, row, *operations)


# --- damage ------------------------------------------------------------------------------------------

Damage = Callable[[random.Random, CheckedHouse, bytes, dict[bytes, bytes]], Operation | None]


def _some(rng: random.Random, cells: dict[bytes, bytes], family: bytes) -> bytes | None:
    names = sorted(name[2:] for name in cells if name.startswith(family + b":"))
    return rng.choice(names) if names else None


def total_changed(rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]) -> Operation | None:
    name = _some(rng, cells, b"v")
    return Put(b"v", name, rng.choice((b"\0" * 7 + b"\x63", b"\0" * 8, b"short"))) if name is not None else None


def total_gone(rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]) -> Operation | None:
    name = _some(rng, cells, b"v")
    return Delete(b"v", name) if name is not None else None


def stray_total(rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]) -> Operation:
    return Put(b"v", b"stray", b"\0" * 7 + b"\1")


def member_gone(rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]) -> Operation | None:
    name = _some(rng, cells, b"m")
    return Delete(b"m", name) if name is not None else None


def member_garbage(
    rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]
) -> Operation | None:
    name = _some(rng, cells, b"m") or house.rules[0].side + b"r77"
    return Put(b"m", name, rng.choice((b"", b"\1", b"\xff" * 60)))


def member_changed(
    rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]
) -> Operation | None:
    name = _some(rng, cells, b"m")
    if name is None:
        return None
    held = unpack(cells[b"m:" + name])
    sequence = rng.choice((held.sequence, (0, 0, 0), (1 << 63, 1, 1)))
    amounts = tuple((total, amount + 5) for total, amount in held.amounts)
    return Put(b"m", name, pack(Member(sequence, 0, False, amounts, held.ordered, held.order, held.carried)))


def member_withdrawn(
    rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]
) -> Operation | None:
    name = _some(rng, cells, b"m")
    sequence = rng.choice(((0, 0, 0), (1 << 63, 1, 1)))
    return Put(b"m", name, pack(Member(sequence, 0, True, ()))) if name is not None else None


def stray_member(rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]) -> Operation:
    letter = rng.choice((*(one.side for one in house.rules), LEFT))
    amounts = ((b"v:count", 1),)
    return Put(b"m", letter + b"r%02d" % rng.randrange(30), pack(Member((5, 0, 0), 0, False, amounts)))


def order_gone(rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]) -> Operation | None:
    name = _some(rng, cells, b"o")
    return Delete(b"o", name) if name is not None else None


def order_changed(rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]) -> Operation | None:
    name = _some(rng, cells, b"o")
    return Put(b"o", name, b"other") if name is not None else None


def stray_order(rng: random.Random, house: CheckedHouse, group: bytes, cells: dict[bytes, bytes]) -> Operation:
    return Put(b"o", rng.choice((b"x\0\1r01", b"no separator", b"\0x\0\1r")), b"\0\0")


DAMAGE: tuple[Damage, ...] = (
    total_changed, total_gone, stray_total, member_gone, member_garbage, member_changed, member_withdrawn,
    stray_member, order_gone, order_changed, stray_order,
)  # fmt: skip


def damage(rng: random.Random, house: CheckedHouse) -> None:
    groups = house.rows("v")
    if not groups:
        return
    group = rng.choice(sorted(groups))
    operation = rng.choice(DAMAGE)(rng, house, group, groups[group])
    if operation is not None:
        house.damage(group, operation)


# --- runs --------------------------------------------------------------------------------------------


async def run(number: int) -> None:
    rng = random.Random(number)
    splits = rng.choice(((), (b"b",), (b"a\0", b"r05", b"r11")))
    house = CheckedHouse(view_of(rng), TABLES, splits)
    checking.FEW = rng.choice((0, 1, 2_048))  # type: ignore[misc]
    try:
        await _quiet(rng, house)
        await _under_writes(rng, house)
    except BaseException:
        print(f"seed {number}: {house.view}")
        raise
    finally:
        await house.close()


async def _quiet(rng: random.Random, house: CheckedHouse) -> None:
    for _ in range(rng.randrange(40)):
        write(rng, house)
    house.drain()
    assert not house.differences(), "the house keeps its view"
    sound = await house.check()
    assert (sound.wrong, sound.unsure) == (0, 0), sound
    assert sound.source_rows == sum(len(house.rows(one.table)) for one in house.rules)
    for _ in range(rng.randrange(4)):
        damage(rng, house)
    is_wrong = bool(house.differences())
    found = await house.check()
    assert bool(found.wrong) == is_wrong, (found, house.differences())
    repaired = await house.check(repair=True)
    assert repaired.repaired == repaired.wrong == found.wrong, repaired
    assert not house.differences()
    assert (await house.check()).wrong == 0


async def _under_writes(rng: random.Random, house: CheckedHouse) -> None:
    """Write between the steps of a check: lagging changes are no finding, but damage is."""
    damaged = rng.random() < 0.5
    for _ in range(rng.randrange(1, 4) if damaged else 0):
        damage(rng, house)
    is_wrong = bool(house.differences())
    stray = house.rules[0].side + b"r99"  # a row that nobody writes
    has_stray = rng.random() < 0.5
    if has_stray:
        house.damage(b"a", Put(b"m", stray, pack(Member((5, 0, 0), 0, False, ((b"v:count", 1),)))))
    is_over = False

    async def writer() -> None:
        while not is_over:
            if rng.random() < 0.05:
                write(rng, house)
            house.drain(rng.randrange(3))
            await asyncio.sleep(0)

    writing = asyncio.ensure_future(writer())
    try:
        found = await house.check()
        assert is_wrong or has_stray or not found.wrong, found
        assert not has_stray or any(one.row == b"r99" for one in found.findings), found
        await house.check(repair=True)
    finally:
        is_over = True
        await writing
    house.drain()
    await house.check(repair=True)
    assert not house.differences()


def test_damage_is_found_and_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in BOUNDS:
        monkeypatch.setattr(module, name, getattr(module, name))  # put back behind the test
    small_steps()
    for number in range(SEED, SEED + SEEDS):
        asyncio.run(run(number))


BOUNDS: Final = (
    (view_check_peer_handlers, "SLICE_S"), (checking, "BUCKETS"), (checking, "FEW"), (digests, "BUCKETS"),
    (walks, "CURSOR_ROWS"),
    (walks, "LISTED"), (walks, "STRIDE"), (walks, "PART_BUCKETS"),
)  # fmt: skip


def small_steps() -> None:
    view_check_peer_handlers.SLICE_S = 0.0  # type: ignore[misc]
    walks.CURSOR_ROWS = 3  # type: ignore[misc]
    walks.LISTED = 5  # type: ignore[misc]
    walks.STRIDE = 1  # type: ignore[misc]
    walks.PART_BUCKETS = 3  # type: ignore[misc]
    digests.BUCKETS = checking.BUCKETS = 64  # type: ignore[misc, attr-defined]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=SEED)
    given = parser.parse_args()
    small_steps()
    for number in range(given.first, given.first + given.seeds):
        asyncio.run(run(number))
    print(f"{given.seeds} runs")
