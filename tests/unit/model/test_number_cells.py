"""Numbers in cells, and the order that is made of them."""

from __future__ import annotations

import random

import pytest

from columnar.errors import IllegalArgument
from columnar.model.number_cells import Unreadable, decimal_of, number_of, order_of
from tests.support.seeds import seed


@pytest.mark.parametrize(
    ("text", "value", "number"),
    [
        ("f:q", b"12", 12),
        ("f:q", b"-12", -12),
        ("f:q", b"+7", 7),
        ("f:q", b"007", 7),
        ("f:q", b"12.00", 12),
        ("f:q", (5).to_bytes(8, "big"), 5),
        ("f:q", (-5).to_bytes(8, "big", signed=True), -5),
        ("f:q", b"12345678", 12_345_678),
        ("number(f:q)", b"12345678", 12_345_678),
        ("counter(f:q)", b"12345678", 0x3132333435363738),
        ("decimal(f:q)", b"12345678", 12_345_678),
        ("decimal(f:q, 2)", b"12.5", 1250),
        ("decimal(f:q,2)", b"-0.05", -5),
        ("decimal( f:q , 2 )", b"3", 300),
        ("decimal(f:q, 1)", b"1.2000", 12),
        ("f:q", b"9223372036854775807", (1 << 63) - 1),
        ("f:q", b"-9223372036854775808", -(1 << 63)),
    ],
)
def test_a_number(text: str, value: bytes, number: int) -> None:
    held = number_of(text)
    assert held.value({b"f:q": value}) == number
    assert held.value({}) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f:q", b""),
        ("f:q", b"12 "),
        ("f:q", b"1e3"),
        ("f:q", b"1.5"),
        ("f:q", b".5"),
        ("f:q", b"5."),
        ("f:q", "\u0661\u0662".encode()),
        ("f:q", b"9223372036854775808"),
        ("f:q", b"\0" * 7),
        ("counter(f:q)", b"12"),
        ("decimal(f:q)", (5).to_bytes(8, "big")),
        ("decimal(f:q, 2)", b"1.234"),
        ("decimal(f:q, 18)", b"10"),
    ],
)
def test_no_number(text: str, value: bytes) -> None:
    with pytest.raises(Unreadable):
        number_of(text).value({b"f:q": value})


@pytest.mark.parametrize(
    "text", ["", "q", "f:q)", "counter(f:q", "counter(f:q, 2)", "f:q, 2", "float(f:q)", "decimal(f:q, -1)", "sum(f:q)"]
)
def test_a_mistaken_number(text: str) -> None:
    with pytest.raises(IllegalArgument, match="decimal\\(family:qualifier, scale\\)"):
        number_of(text)


def test_a_scale_has_a_bound() -> None:
    with pytest.raises(IllegalArgument, match="0 to 18"):
        number_of("decimal(f:q, 19)")


def test_order_bytes_of_numbers_sort_as_the_numbers_do() -> None:
    number = seed(20261124)
    print(f"seed {number}")
    rng = random.Random(number)
    values = sorted({0, 1, -1, (1 << 63) - 1, -(1 << 63), *(rng.randrange(-(1 << 63), 1 << 63) for _ in range(500))})
    up, down = order_of("f:q"), order_of("f:q desc")
    keys = [up.key({b"f:q": b"%d" % value}) for value in values]
    assert keys == sorted(key for key in keys if key is not None)
    assert [up.number(key) for key in keys if key] == values
    turned = [down.key({b"f:q": b"%d" % value}) for value in values]
    assert turned == sorted((key for key in turned if key is not None), reverse=True)
    assert [down.number(key) for key in turned if key] == values


def test_order_bytes_of_texts_sort_as_the_texts_do() -> None:
    texts = sorted([b"", b"\0", b"\0\1", b"a", b"a\0", b"aa", b"ab", b"b", b"\xff", b"\xff\xff"])
    up, down = order_of("text(f:q)"), order_of("text(f:q) desc")
    assert [up.key({b"f:q": text}) for text in texts] == texts
    turned = [down.key({b"f:q": text}) or b"" for text in texts]
    assert turned == sorted(turned, reverse=True)
    assert len(set(turned)) == len(texts)
    assert up.number(b"a") is None


def test_a_row_without_the_cell_has_no_place_in_the_order() -> None:
    assert order_of("f:q desc").key({}) is None
    with pytest.raises(Unreadable):
        order_of("f:q").key({b"f:q": b"x"})
    with pytest.raises(Unreadable, match="5000 bytes"):
        order_of("text(f:q)").key({b"f:q": b"x" * 5_000})


@pytest.mark.parametrize("text", ["", "desc", "f:q down", "text(f:q", "f:q desc desc"])
def test_a_mistaken_order(text: str) -> None:
    with pytest.raises(IllegalArgument, match="asc or desc"):
        order_of(text)


def test_a_decimal_that_is_nothing_but_its_scale() -> None:
    assert decimal_of(b"0.25", 2) == 25
    assert decimal_of(b"-0", 0) == 0
