"""Digests are equal if and only if their entries are, in whatever order and parts these come."""

from __future__ import annotations

from random import Random

import pytest

from columnar.errors import DamagedData
from columnar.views.digests import BLOCK, BUCKETS, Balance, Buckets, Digest, bucket_of, check_buckets, entry_hash, is_in
from tests.support.seeds import seed

Entry = tuple[bytes, bytes, bytes]


def digest_of(entries: list[Entry]) -> bytes:
    digest = Digest()
    for group, member, given in entries:
        digest.add(bucket_of(member), entry_hash(group, member, given))
    return digest.pack()


def entries_of(rng: Random, count: int) -> list[Entry]:
    return [(b"g%d" % rng.randrange(9), b"m%d" % number, rng.randbytes(3)) for number in range(count)]


def unequal(one: list[bytes], other: list[bytes]) -> list[int]:
    balance = Balance()
    for part in one:
        balance.add(part)
    for part in other:
        balance.subtract(part)
    return [bucket for first in range(0, BUCKETS, BLOCK) for bucket in balance.unequal(first, first + BLOCK)]


@pytest.mark.parametrize("number", range(5))
def test_order_and_parts_are_of_no_account(number: int) -> None:
    rng = Random(seed(number))
    entries = entries_of(rng, 500)
    whole = digest_of(entries)
    rng.shuffle(entries)
    parts = [digest_of(entries[first : first + 100]) for first in range(0, 500, 100)]
    assert unequal([whole], parts) == unequal(parts, [whole]) == []


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
        assert unequal([digest_of(others)], [digest_of(entries)]) == [bucket_of(member)]
        assert unequal([digest_of(entries)], [digest_of(others)]) == [bucket_of(member)]


def test_parts_of_an_entry_are_told_apart() -> None:
    assert len({entry_hash(b"ab", b"c", b"d"), entry_hash(b"a", b"bc", b"d"), entry_hash(b"a", b"b", b"cd")}) == 3


def test_sums_wrap() -> None:
    one, other = Digest(), Digest()
    one.add(7, b"\xff" * 16)
    one.add(7, b"\0" * 7 + b"\x02" + b"\0" * 8)
    other.add(7, b"\0" * 7 + b"\x01" + b"\0" * 8)
    other.add(7, b"\0" * 16)
    assert unequal([one.pack()], [other.pack()]) == []
    assert len(one) == 1


def test_the_bytes() -> None:
    digest = Digest()
    assert digest.pack() == b""
    digest.add(BUCKETS - 1, bytes(range(16)))
    digest.add(3, b"\0" * 7 + b"\x05" + b"\xff" * 8)
    assert digest.pack().hex() == "02000fffff0000000300010203040506070000000000000005"


@pytest.mark.parametrize("data", [b"short", b"\x01" + b"\0" * 12, b"\x02" + b"\xff" * 12, b"\x02" + b"\0" * 11])
def test_bytes_of_another_version(data: bytes) -> None:
    with pytest.raises(DamagedData):
        Balance().add(data)
    with pytest.raises(DamagedData):
        Balance().subtract(data)


def test_sets_of_buckets() -> None:
    chosen, buckets = {0, 7, 8, 4_095, BUCKETS - 1}, Buckets()
    for bucket in chosen:
        buckets.add_bucket(bucket)
    bits = buckets.pack()
    check_buckets(bits)
    assert buckets.count == len(chosen)
    assert {bucket for bucket in range(BUCKETS) if is_in(bits, bucket)} == chosen
    with pytest.raises(DamagedData, match="upgrade"):
        check_buckets(bytes(512))  # of 4,096, as an earlier version had
