"""Records come back from their bytes as they were, whatever their entries have in common with each other."""

from __future__ import annotations

import random
from typing import Final

import pytest

from columnar.errors import DamagedData
from columnar.model.send import Send
from columnar.regions.log.change_record import ChangeRecord, Entry, Images, Kind, pack, unpack
from tests.support.seeds import seed

SEED: Final = seed(20261128)


def some_entries(rng: random.Random) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            rng.choice(tuple(Kind)),
            rng.choice((b"a", b"b", b"longer", b"")),
            rng.choice((b"", b"q", bytes(255), bytes(256), bytes(70_000))),
            rng.choice((0, 5, 5, 5, (1 << 64) - 1)),
            rng.choice((b"", b"v", bytes(300))),
        )
        for _ in range(rng.randrange(6))
    )


def some_record(rng: random.Random, images: Images | None) -> ChangeRecord:
    before = some_entries(rng)
    return ChangeRecord(
        b"row%d" % rng.randrange(9), 5, some_entries(rng), before, rng.choice((None, None, "m:f")), 7, rng.randrange(4),
        some_entries(rng), (Send(b"t", b"k", b"n", b"g", 1, 2, b"body"),) if rng.random() < 0.2 else (),
        rng.random() < 0.2, images, rng.randrange(len(before) + 1) if images is not None else 0,
    )  # fmt: skip


def test_any_record_comes_back() -> None:
    rng = random.Random(SEED)
    several: list[Images | None] = [None, {b"a": None}, {b"a": frozenset({b"q"}), b"b": frozenset()}, {b"a": None}]
    for _ in range(400):
        one = some_record(rng, rng.choice(several))
        assert unpack(pack(one)) == one


def test_columns_that_begin_alike_are_told_apart() -> None:
    for _ in range(3):
        for columns in (
            [(b"f", b"a"), (b"f", b"ab")], [(b"f", b"ab"), (b"f", b"a")], [(b"f", b""), (b"fa", b""), (b"", b"f")],
            [(b"fa", b"b"), (b"f", b"ab"), (b"fab", b"")],
        ):  # fmt: skip
            entries = tuple(Entry(Kind.PUT, family, qualifier, 5, b"abc") for family, qualifier in columns)
            one = ChangeRecord(b"r", 5, entries, entries)
            assert unpack(pack(one)) == one


def test_a_record_that_is_cut_short_is_damaged_wherever_that_is() -> None:
    entries = (Entry(Kind.PUT, b"f", b"q", 5, b"v"), Entry(Kind.PUT, b"f", b"p", 5, b"v"))
    data = pack(ChangeRecord(b"r", 5, entries, entries, after=entries, images={b"f": None}))
    assert unpack(data).after == entries
    for length in range(len(data)):
        with pytest.raises(DamagedData):
            unpack(data[:length])


def test_a_record_with_other_fields_is_another_record() -> None:
    one = ChangeRecord(b"r", 5, (), stamp=6)
    other = one.but(stamp=7, hops=1)
    assert (one.stamp, one.hops) == (6, 0)
    assert (other.row, other.stamp, other.hops) == (b"r", 7, 1)
    assert other != one
    assert other.but(stamp=6, hops=0) == one
    assert len({one, other, other.but()}) == 2
    assert "stamp=7" in repr(other)
    with pytest.raises(TypeError):
        one.but(stam=7)
