"""``where``: conditions as text, by bytes and by number."""

from __future__ import annotations

import pytest

from columnar.errors import IllegalArgument
from columnar.model.condition_text import NumberCondition, column_tested, condition_of
from columnar.model.mutation import CompareOp, Condition
from columnar.model.number_cells import Number


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("f:q=value", Condition(b"f", b"q", CompareOp.EQUAL, b"value")),
        ("f:q = two words ", Condition(b"f", b"q", CompareOp.EQUAL, b"two words")),
        ("f:q=", Condition(b"f", b"q", CompareOp.EQUAL, b"")),
        ("f:q=' x '", Condition(b"f", b"q", CompareOp.EQUAL, b" x ")),
        ("f:q='=x'", Condition(b"f", b"q", CompareOp.EQUAL, b"=x")),
        (r"f:q=\x00\xFF", Condition(b"f", b"q", CompareOp.EQUAL, b"\0\xff")),
        ("f:q!=it's", Condition(b"f", b"q", CompareOp.NOT_EQUAL, b"it's")),
        ("f:q<'m'", Condition(b"f", b"q", CompareOp.LESS, b"m")),
        ('f:q <= "m"', Condition(b"f", b"q", CompareOp.LESS_OR_EQUAL, b"m")),
        ("f:q>'m'", Condition(b"f", b"q", CompareOp.GREATER, b"m")),
        ("f:q>='m'", Condition(b"f", b"q", CompareOp.GREATER_OR_EQUAL, b"m")),
        ("f:q exists", Condition(b"f", b"q", CompareOp.EXISTS)),
        ("f:  absent", Condition(b"f", b"", CompareOp.ABSENT)),
        ("f:a:b=c:d", Condition(b"f", b"a:b", CompareOp.EQUAL, b"c:d")),
        ("number(f:q)>=10", NumberCondition(Number(b"f:q"), CompareOp.GREATER_OR_EQUAL, 10)),
        ("counter(f:q) != -1", NumberCondition(Number(b"f:q", "counter"), CompareOp.NOT_EQUAL, -1)),
        ("decimal(f:q, 2)<1.5", NumberCondition(Number(b"f:q", "decimal", 2), CompareOp.LESS, 150)),
    ],
)
def test_a_condition(text: str, condition: Condition | NumberCondition) -> None:
    assert condition_of(text) == condition
    assert column_tested(condition_of(text)).startswith(b"f:")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write family:qualifier=value"),
        ("f=1", "write family:qualifier=value"),
        ("f:q", "write family:qualifier=value"),
        ("f:q is 1", "write family:qualifier=value"),
        ("f:q present", "exists or absent"),
        ("f:q==1", "write one ="),
        ("f:q<10", r"number\(f:q\)<10 for numbers, f:q<'10' for bytes"),
        ("f:q>=abc", "for bytes"),
        ("f:q='x", "quote does not end"),
        ("number(f:q)=x", "no decimal number"),
        ("number(f:q)=1.5", "decimal places"),
        ("decimal(f:q, 99)=1", "scale"),
    ],
)
def test_a_mistaken_condition_is_told_what_would_be_right(text: str, said: str) -> None:
    with pytest.raises(IllegalArgument, match=said):
        condition_of(text)


@pytest.mark.parametrize(
    ("text", "met_by"),
    [
        ("number(f:q)<10", {b"9", b"-3"}),
        ("number(f:q)<=10", {b"9", b"10", b"10.0", b"-3"}),
        ("number(f:q)=10", {b"10", b"10.0"}),
        ("number(f:q)>10", {b"11"}),
        ("number(f:q)>=10", {b"10", b"10.0", b"11"}),
        ("number(f:q)!=10", {b"9", b"11", b"-3", b"x", b"", None}),
    ],
)
def test_numbers_are_compared_as_numbers(text: str, met_by: set[bytes | None]) -> None:
    held = (b"9", b"10", b"10.0", b"11", b"-3", b"x", b"", None)
    assert {stored for stored in held if condition_of(text).matches_cell(stored)} == met_by


def test_an_empty_cell_exists() -> None:
    for stored in (None, b"", b"x"):
        assert condition_of("f:q exists").matches_cell(stored) is (stored is not None)
        assert condition_of("f:q absent").matches_cell(stored) is (stored is None), "each where the other is not"
