"""Digests are equal if and only if their entries are, in whatever order and parts these come."""

from __future__ import annotations

from random import Random

import pytest

from columnar.errors import DamagedData
from columnar.views.digests import BUCKETS, Digest, bucket_of, entry_hash, is_in, pack_buckets, unpack
from tests.support.seeds import seed

Entry = tuple[bytes, bytes, bytes]


def digest_of(entries: list[Entry]) -> Digest:
    digest = Digest()
    for group, member, given in entries:
        digest.add(bucket_of(member), entry_hash(group, member, given))
    return digest


def entries_of(rng: Random, count: int) -> list[Entry]:
    return [(b"g%d" % rng.randrange(9), b"m%d" % number, rng.randbytes(3)) for number in range(count)]


@pytest.mark.parametrize("number", range(5))
def test_order_and_parts_are_of_no_account(number: int) -> None:
    rng = Random(seed(number))
    entries = entries_of(rng, 500)
    whole = digest_of(entries)
    rng.shuffle(entries)
    parts = Digest()
    for first in range(0, 500, 100):
        parts.merge(unpack(digest_of(entries[first : first + 100]).pack()))
    assert whole.unequal(parts) == frozenset()
    assert whole.pack() == parts.pack()
    assert parts.entries == 500


@pytest.mark.parametrize("number", range(5))
def test_what_differs_is_in_the_bucket_of_its_member(number: int) -> None:
    rng = Random(seed(number))
    entries = entries_of(rng, 300)
    at = rng.randrange(300)
    group, member, given = entries[at]
    changed = [
        [*entries[:at], *entries[at + 1 :]],
        [*entries, entries[at]],  # twice, which a sum by XOR would not see a second time
        [*entries, entries[at], entries[at]],
        [*entries[:at], (group, member, given + b"x"), *entries[at + 1 :]],
        [*entries[:at], (group + b"x", member, given), *entries[at + 1 :]],
    ]
    for others in changed:
        assert digest_of(others).unequal(digest_of(entries)) == {bucket_of(member)}


def test_parts_of_an_entry_are_told_apart() -> None:
    assert len({entry_hash(b"ab", b"c", b"d"), entry_hash(b"a", b"bc", b"d"), entry_hash(b"a", b"b", b"cd")}) == 3


def test_sums_wrap() -> None:
    one, other = Digest(), Digest()
    one.add(7, b"\xff" * 16)
    one.add(7, b"\0" * 15 + b"\x02")
    other.add(7, b"\0" * 15 + b"\x01")
    other.add(7, b"\0" * 16)
    assert one.unequal(other) == frozenset()


def test_bytes_of_another_version() -> None:
    with pytest.raises(DamagedData, match="upgrade"):
        unpack(b"short")


def test_sets_of_buckets() -> None:
    chosen = {0, 7, 8, 4_095}
    bits = pack_buckets(chosen)
    assert {bucket for bucket in range(BUCKETS) if is_in(bits, bucket)} == chosen
