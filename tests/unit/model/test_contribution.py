"""What a contribution makes of a member, and which are refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from columnar.errors import IllegalArgument
from columnar.model import contribution as module
from columnar.model.contribution import (
    Member,
    checked,
    differences,
    follow,
    is_plain_guard,
    names_of,
    pack,
    pack_plain_guard,
    plain_sequence,
    wrapped,
)
from columnar.model.mutation import Contribute
from tests.support.seeds import seed

N, X = (b"n", b""), (b"n", b"x")


def said(n: int, amounts: tuple[int, ...] | None, totals: Any = (N,), **more: Any) -> Contribute:
    return Contribute(b"m", b"s", (1, 1, n), amounts, totals, **more)


def after(*several: Contribute) -> tuple[Member | None, dict[bytes, int]]:
    member, totals = None, dict[bytes, int]()
    for one in several:
        following = follow(member, one, 5)
        if following is not None:
            for total, difference in differences(member, following):
                totals[total] = wrapped(totals.get(total, 0) + difference)
            member = following
    return member, {total: value for total, value in totals.items() if value}


def test_what_was_said_before_or_again_changes_nothing() -> None:
    three, five = said(3, (30,)), said(5, (50,))
    assert after(five, three, five) == after(three, five) == after(three, three, five, three)
    assert after(five, three)[1] == {b"n:": 50}
    other = Contribute(b"m", b"s", (2, 0, 0), (1,), (N,))
    assert after(five, other)[1] == after(other, five)[1] == {b"n:": 1}, "origins come first, as regions have them"


def test_a_withdrawn_source_stays_as_a_guard() -> None:
    member, totals = after(said(3, None), said(2, (7,)))
    assert (totals, member) == ({}, Member((1, 1, 3), 5, True, ()))
    assert after(said(2, (7,)), said(3, None))[1] == {}
    assert after(said(3, None), said(4, (7,)))[1] == {b"n:": 7}


def test_totals_that_are_named_no_more_lose_what_the_source_gave() -> None:
    assert after(said(1, (3, 4), (N, X)), said(2, (5,), (X,)))[1] == {b"n:x": 5}
    assert after(said(1, (3, 4), (X, N)), said(2, (5, 6), (N, X)))[1] == {b"n:": 5, b"n:x": 6}
    assert after(said(1, (3, 4), (N, X)), said(2, None, ()))[1] == {}, "who withdraws names no totals"


def test_relative_amounts_add_up_and_leave_other_totals_alone() -> None:
    one, two = said(1, (3,), relative=True), said(2, (4,), relative=True)
    assert after(one, one, two, two)[1] == {b"n:": 7}
    assert after(one, said(2, (9,), (X,), relative=True))[1] == {b"n:": 3, b"n:x": 9}
    assert after(one, said(2, None), said(3, (4,), relative=True))[1] == {b"n:": 4}


def test_members_of_the_plain_form_have_the_bytes_of_any_other() -> None:
    rng = random.Random(seed(20261131))
    for _ in range(500):
        names = rng.sample((b"a", b"b", b"a\0", b"", b"longer"), rng.randrange(1, 5))
        totals = tuple((rng.choice((b"v", b"w")), name) for name in names)
        amounts = tuple(rng.choice((0, 1, -7, 1 << 40, 1 << 63, -(1 << 63) - 1)) for _ in totals)
        sequence = (rng.randrange(1 << 64), rng.randrange(1 << 32), rng.randrange(1 << 64))
        made = follow(None, Contribute(b"m", b"s", sequence, amounts, totals), 77)
        plain = names_of(totals)
        assert made is not None
        assert plain is not None
        assert [column for column, _ in made.amounts] == sorted(family + b":" + name for family, name in totals)
        assert made.amounts == tuple((column, wrapped(amount)) for column, amount in made.amounts)
        data, ordered = pack(made), plain.ordered(amounts)
        assert plain.pack(sequence, 77, ordered) == data
        assert dict(zip(plain.columns, ordered, strict=True)) == dict(made.amounts)
        assert plain.amounts_in(data) == ordered
        assert plain_sequence(data) == sequence
        assert not is_plain_guard(data)
        guard = Member(sequence, 77, True, ())
        assert pack_plain_guard(sequence, 77) == pack(guard)
        assert is_plain_guard(pack(guard))
        assert plain.amounts_in(pack(guard)) is None


def test_members_of_another_form_are_not_taken_for_plain_ones() -> None:
    names = names_of((N, X))
    assert names is not None
    amounts = ((b"n:", 3), (b"n:x", 4))
    assert names.amounts_in(pack(Member((1, 2, 3), 4, False, amounts))) == (3, 4)
    for other in (
        Member((1, 2, 3), 4, False, amounts, b"o", b"1"),
        Member((1, 2, 3), 4, False, amounts, carried=((b"f:c", b""),)),
        Member((1, 2, 3), 4, False, amounts, part=1),
        Member((1, 2, 3), 4, False, ((b"n:", 3), (b"n:y", 4))),
        Member((1, 2, 3), 4, False, ((b"m:", 3), (b"n:x", 4))),
        Member((1, 2, 3), 4, False, ((b"n:", 3),)),
        Member((1, 2, 3), 4, False, (*amounts, (b"n:z", 5))),
    ):
        assert names.amounts_in(pack(other)) is None
        assert not is_plain_guard(pack(other))
    assert not is_plain_guard(pack(Member((1, 2, 3), 4, True, (), part=1)))
    assert not is_plain_guard(b"\3" + pack(Member((1, 2, 3), 4, True, ()))[1:]), "a newer version"
    assert not is_plain_guard(b"")


def test_few_names_are_remembered_and_none_that_are_long() -> None:
    for number in range(3 * module.NAMES):
        names = names_of(((b"v", b"%d" % number),))
        assert names is not None
        assert names is names_of(((b"v", b"%d" % number),))
        assert len(module._names) <= module.NAMES
    assert names_of(((b"v", bytes(module.NAMES_BYTES)),)) is None
    assert names_of(()) is None
    assert names_of((N, N)) is None
    assert names_of(tuple((b"v", b"%d" % number) for number in range(256))) is None
    assert after(said(1, (4,), ((b"v", bytes(module.NAMES_BYTES)),)))[1] == {b"v:" + bytes(module.NAMES_BYTES): 4}


def test_amounts_wrap_as_counters_do() -> None:
    most = (1 << 63) - 1
    assert after(said(1, (most,)), said(2, (1,), relative=True))[1] == {b"n:": -(1 << 63)}
    assert after(said(1, (-(1 << 63),)), said(2, (most,)))[1] == {b"n:": most}


@pytest.mark.parametrize(
    ("mistaken", "why"),
    [
        (said(1, (1, 2)), "one amount to each total"),
        (said(1, (), ()), "one amount to each total"),
        (said(1, (1, 2), (N, N)), "each once"),
        (said(1, (1,) * 256, tuple((b"n", b"%d" % n) for n in range(256))), "at most 255 totals"),
        (said(1, (1 << 63,)), "64 bits"),
        (said(1, None, (), relative=True), "not relative"),
        (said(1, (1,), order=b"x"), "order of a contribution has a family"),
        (said(1, (1,), order=bytes(40_000), order_family=b"o"), "at most 32767 bytes"),
        (said(1, (1,), ((b"m", b"x"),)), "families of their own"),
        (said(1, (1,), order=b"x", order_family=b"m"), "families of their own"),
        (said(1, (1,), order=b"x", order_family=b"n"), "families of their own"),
        (said(1, (1,), ((b"n", bytes(40_000)),)), "32767 bytes each"),
        (said(1, (1,), carry=((b"c", b""),) * 1_001), "carries at most 1000"),
        (said(-1, (1,)), "unsigned"),
        (Contribute(b"m", b"s", (1, 1 << 32, 1), (1,), (N,)), "unsigned"),
        (Contribute(b"m", b"", (1, 1, 1), (1,), (N,)), "names its source"),
    ],
)
def test_what_could_not_be_kept_exactly_is_refused(mistaken: Contribute, why: str) -> None:
    with pytest.raises(IllegalArgument, match=why):
        checked(mistaken)


def test_what_is_right_passes() -> None:
    for one in (said(1, (1, 2), (N, X), order=b"", order_family=b"o", carry=((b"c:", b"v"),)), said(1, None, ())):
        assert checked(one) is one
