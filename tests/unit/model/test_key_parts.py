"""Keys of several parts sort as their parts do, and come apart as they were joined."""

from __future__ import annotations

import itertools
import random

import pytest

from columnar.errors import DamagedData
from columnar.model.key_parts import after_prefix, joined, parted
from tests.support.seeds import seed

AWKWARD = (b"", b"\0", b"\0\0", b"\0\1", b"\0\xff", b"\1", b"a", b"a\0", b"a\0b", b"ab", b"\xff", b"\xff\0\1")


def test_one_part_is_the_key() -> None:
    assert joined((b"a\0\1b",)) == b"a\0\1b"
    assert parted(b"a\0\1b", 1) == (b"a\0\1b",)


@pytest.mark.parametrize("count", [2, 3])
def test_keys_sort_as_their_parts_and_come_apart_again(count: int) -> None:
    all_parts = list(itertools.product(AWKWARD, repeat=count))
    keys = [joined(parts) for parts in all_parts]
    assert sorted(keys) == [joined(parts) for parts in sorted(all_parts)]
    assert len(set(keys)) == len(keys)
    assert [parted(key, count) for key in keys] == all_parts


def test_random_parts() -> None:
    number = seed(20261124)
    print(f"seed {number}")
    rng = random.Random(number)
    for _ in range(2_000):
        one, other = (tuple(rng.choice((b"\0", b"\1", b"\xff", b"m")) * rng.randrange(3) for _ in "ab") for _ in "ab")
        assert (joined(one) < joined(other)) == (one < other)
        assert parted(joined(one), 2) == one


@pytest.mark.parametrize("key", [b"", b"a", b"a\0\1b\0\1c", b"a\0\2\0\1b", b"a\0\1b\0"])
def test_other_keys_do_not_come_apart(key: bytes) -> None:
    with pytest.raises(DamagedData, match="2 parts"):
        parted(key, 2)


@pytest.mark.parametrize(("prefix", "end"), [(b"a", b"b"), (b"a\xff", b"b"), (b"\xff", None), (b"", None)])
def test_the_key_behind_a_prefix(prefix: bytes, end: bytes | None) -> None:
    assert after_prefix(prefix) == end
