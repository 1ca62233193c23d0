"""Expressions and numbers as MediaWiki's functions make them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.linear_cost import require_linear
from wikka_port.markup.mediawiki_values import (
    EXPRESSION_CHARS_MAX,
    ExpressionError,
    expression,
    form_of,
    formatted,
    is_same,
    number_text,
    unformatted,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("2 ^ 3 * 2", "16"),
        ("10 - 2 - 3", "5"),
        ("8 / 4 / 2", "1"),
        ("-2 ^ 2", "4"),  # as in MediaWiki, whose sign binds more
        ("7 mod 3 + -7 mod 3", "0"),
        ("7.5 fmod 2", "1.5"),
        ("7 div 2", "3.5"),
        ("1 / 3", "0.33333333333333"),
        ("0.1 + 0.2", "0.3"),
        ("10 ^ 15", "1.0E+15"),
        ("1.5 * 10 ^ -7", "1.5E-7"),
        ("2e3 + 1", "2001"),
        ("1234.567 round 1", "1234.6"),
        ("1234.567 round -2", "1200"),
        ("-2.5 round 0", "-3"),
        ("1.005 round 2", "1.01"),
        ("0.285 round 2", "0.29"),
        ("123456789012345678 round 9", "1.2345678901235E+17"),
        ("10 ^ 300 round -15", "1.0E+300"),
        ("7 round -15", "0"),
        ("2 e 3", "2000"),
        ("2 e (1 + 1) + 5e-1", "200.5"),
        ("2 e", None),
        ("1 e 999", None),
        ("1 < 2 and 2 >= 2", "1"),
        ("1 &lt; 2", "1"),
        ("1 = 1 or 1 / 0", None),
        ("1 != 2", "1"),
        ("1 <> 1", "0"),
        ("not 0", "1"),
        ("abs -3 + sqrt 16", "7"),
        ("floor 1.7 + ceil 1.2 + trunc -1.9", "2"),
        ("trunc pi", "3"),
        ("ln e", "1"),
        ("5 \u2212 2 \u00d7 2", "1"),
        ("--1", "1"),
        ("1 2", None),
        ("1 +", None),
        ("(1", None),
        ("1)", None),
        ("()", None),
        ("* 2", None),
        ("1 / 0", None),
        ("5 mod 0", None),
        ("9 ^ 9 ^ 9 ^ 9", None),
        ("sqrt -1", None),
        ("one", None),
        ("1; 2", None),
        ("exp 1000", None),
        ("1+" * (EXPRESSION_CHARS_MAX // 2) + "1", None),
    ],
)
def test_expressions(text: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(ExpressionError):
            expression(text)
    else:
        number = expression(text)
        assert number is not None
        assert number_text(number) == value


def test_no_expression_has_no_value() -> None:
    assert expression(" ") is None


@given(st.text(alphabet="0123456789.+-*/^()<>=! eandortmdi", max_size=60))
def test_any_expression_has_a_value_or_an_error(text: str) -> None:
    try:
        number = expression(text)
        assert number is None or number_text(number)
    except ExpressionError:
        pass


@pytest.mark.parametrize("unit", ["(", "-", "not ", "1+", "1^", "9", "1 round ", "((1)", "e"])
def test_hostile_expressions_take_linear_time(unit: str) -> None:
    def work(size: int) -> None:
        for end in ("1", "", ")" * 500):
            try:
                expression((unit * size)[: size - len(end)] + end)
            except ExpressionError:
                continue

    require_linear(work, EXPRESSION_CHARS_MAX, usual_s=1)


@pytest.mark.parametrize(
    ("text", "signs", "ungrouped", "ours"),
    [
        ("1234567.89", (",", "."), 3, "1,234,567.89"),
        ("1234", (".", ","), 3, "1.234"),
        ("1234", (".", ","), 4, "1234"),
        ("-12345.5", ("\xa0", ","), 4, "-12\xa0345,5"),
        ("999", (",", "."), 3, "999"),
        ("1234", None, 3, "1234"),
        ("12a", (",", "."), 3, "12a"),
        ("1,234", (",", "."), 3, "1,234"),
    ],
)
def test_numbers_with_signs(text: str, signs: tuple[str, str] | None, ungrouped: int, ours: str) -> None:
    assert formatted(text, signs, ungrouped) == ours
    if signs is not None and ours != text:
        assert unformatted(ours, signs) == text


@pytest.mark.parametrize(
    ("rule", "places"),
    [
        ("one", {0: 1, 1: 0, 2: 1, 21: 1, 1.5: 1}),
        ("zero-one", {0: 0, 1: 0, 1.5: 0, 2: 1}),
        ("slavic", {0: 2, 1: 0, 2: 1, 4: 1, 5: 2, 11: 2, 12: 2, 14: 2, 21: 0, 22: 1, 111: 2, 101: 0, 1.5: 2}),
        ("polish", {0: 2, 1: 0, 2: 1, 5: 2, 12: 2, 21: 2, 22: 1}),
        ("czech", {0: 2, 1: 0, 2: 1, 4: 1, 5: 2, 21: 2}),
        ("arabic", {0: 0, 1: 1, 2: 2, 3: 3, 10: 3, 11: 4, 99: 4, 100: 5, 103: 3}),
        ("hebrew", {0: 2, 1: 0, 2: 1, 3: 2, 20: 2, 1.5: 2}),
        ("none", {0: 0, 1: 0, 7: 0}),
    ],
)
def test_forms_of_numbers(rule: str, places: dict[float, int]) -> None:
    forms = [f"form {place}" for place in range(6)]
    assert {number: form_of(rule, number, forms) for number in places} == {
        number: f"form {place}" for number, place in places.items()
    }
    assert form_of(rule, 5, ["alone"]) == "alone"
    assert form_of(rule, 5, []) == ""
    assert form_of(rule, 5, ["5=five", "a", "b"]) == "five"


def test_values_that_are_the_same() -> None:
    assert is_same("01", "1.0")
    assert is_same("a", "a")
    assert not is_same("a", "A")
    assert not is_same("9007199254740993", "9007199254740992")
    assert is_same("+0009007199254740993", "9007199254740993")
    assert not is_same("1", "1a")
    assert not is_same("", "0")
    assert not is_same("9" * 300 + "e999", "8" * 300 + "e999")
