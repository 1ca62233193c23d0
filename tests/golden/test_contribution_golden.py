"""The bytes of docs/formats/contributions.md."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.model.contribution import (
    GUARD_KINDS,
    Member,
    given_bytes,
    guard_made_ms,
    order_qualifier,
    pack,
    pack_carried,
    split_order_qualifier,
    unpack,
    unpack_carried,
)
from tests.support.golden import hold_to

SEQUENCE = (7, 2, 42)
MEMBERS = {
    "a count": Member(SEQUENCE, 1_000, False, ((b"v:count", 1),)),
    "two totals, one below zero": Member(SEQUENCE, 1_001, False, ((b"n:", 1 << 40), (b"n:x\xff", -5))),
    "in an order, with what it carries": Member(
        SEQUENCE, 1_002, False, ((b"v:count", 1),), b"o", b"\x80\x00", ((b"m:title", b"A title"), (b"m:none", b""))
    ),
    "in an order, with an empty place": Member(SEQUENCE, 1_003, False, ((b"v:count", 1),), b"o"),
    "of a later part": Member(SEQUENCE, 1_005, False, ((b"v:count", 1),), part=3),
    "gone in a later part": Member(SEQUENCE, 1_006, True, (), part=(1 << 32) - 1),
    "gone": Member((1 << 63, (1 << 32) - 1, (1 << 64) - 1), 1_004, True, ()),
}
ORDERED = {
    "order qualifier": order_qualifier(b"\x80\x00\x01", b"row\x00"),
    "order qualifier of nothing": order_qualifier(b"", b"row"),
    "carried": pack_carried(((b"m:title", b"A title"), (b"m:none", b""))),
    "carried nothing": pack_carried(()),
}


def test_members() -> None:
    hold_to("contributions.txt", {name: pack(member) for name, member in MEMBERS.items()} | ORDERED)
    assert {name: unpack(pack(member)) for name, member in MEMBERS.items()} == MEMBERS


def test_ordered_cells() -> None:
    for order, source in ((b"\x80\x00\x01", b"row\x00"), (b"", b"row"), (b"\x00\xff", b"\x00\x01"), (b"\x00", b"")):
        assert split_order_qualifier(order_qualifier(order, source)) == (order, source)
    assert unpack_carried(ORDERED["carried"]) == ((b"m:title", b"A title"), (b"m:none", b""))
    orders = [b"", b"\x00", b"\x00\x00", b"\x00\x01", b"\x01", b"a", b"a\x00", b"aa", b"\xff"]
    assert sorted(orders) == [
        split_order_qualifier(one)[0] for one in sorted(order_qualifier(order, b"s") for order in orders)
    ]


def test_guards_are_told_from_members() -> None:
    made = {name: guard_made_ms(pack(member)) for name, member in MEMBERS.items()}
    assert {name: made_ms for name, made_ms in made.items() if made_ms} == {
        "gone": 1_004,
        "gone in a later part": 1_006,
    }
    assert all(pack(member).startswith(GUARD_KINDS) == member.is_gone for member in MEMBERS.values())
    assert guard_made_ms(b"\x01\x02") is None


def test_members_that_give_the_same_differ_in_their_heads_alone() -> None:
    one, other = MEMBERS["a count"], MEMBERS["of a later part"]
    assert given_bytes(pack(one)) == given_bytes(pack(other)) != given_bytes(pack(MEMBERS["gone"]))


def test_what_is_no_member_is_damage() -> None:
    for member in MEMBERS.values():
        data = pack(member)
        for length in range(len(data)):
            with pytest.raises(DamagedData):
                unpack(data[:length])
        with pytest.raises(DamagedData):
            unpack(data + b"\x00")
    for other in (
        b"\x02" + pack(MEMBERS["gone"])[1:],
        b"\x03" + pack(MEMBERS["of a later part"])[1:],
        b"\x01\x03" + pack(MEMBERS["gone"])[2:],
        b"",
        bytes(8),
    ):
        with pytest.raises(DamagedData):
            unpack(other)
    for qualifier in (b"row", b"\x00\x02\x00\x01row"):
        with pytest.raises(DamagedData):
            split_order_qualifier(qualifier)
