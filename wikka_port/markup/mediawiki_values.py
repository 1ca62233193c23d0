"""(pure) Numbers as MediaWiki's functions make them: expressions, their signs, and forms of words for them.

    expression := operand (operator operand)*         {{#expr: 2 + 3 * (4 - 1) round 1}}
    operators  := e | ^ | * / div mod fmod | + - | round | = != <> < > <= >= | and | or, the first ones first
    functions  := not sin cos tan asin acos atan exp ln abs trunc floor ceil sqrt - +

Numbers are floats, as in MediaWiki.  The time is linear: an expression has EXPRESSION_CHARS_MAX characters at most, and
no power is computed exactly.

Knows nothing of wikitext.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

EXPRESSION_CHARS_MAX: Final = 2_000
_ROUNDED_DIGITS: Final = 15  # a float has no more
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,3})?")
_TOKEN: Final = re.compile(
    r"\s*+(?:(?P<number>(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:e[+-]?[0-9]{1,3})?)"
    r"|(?P<word>[a-z]{1,8}|[<>!]=|<>|[-+*/^=<>()]))",
    re.IGNORECASE,
)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,300}")
_SIGNS: Final = str.maketrans({"\u2212": "-", "\u00d7": "*", "\u00f7": "/", "\xa0": " "})
_ENTITIES: Final[Mapping[str, str]] = {"&lt;": "<", "&gt;": ">", "&minus;": "-", "&times;": "*", "&nbsp;": " "}
_CONSTANTS: Final[Mapping[str, float]] = {"pi": math.pi, "e": math.e}


class ExpressionError(ValueError):
    """An expression has no value; MediaWiki shows an error in its place."""


def _rounded(number: float, digits: float) -> float:
    """Round half away from zero, by the digits that the number is written with, as PHP does: 1.005 becomes 1.01."""
    last = -max(min(int(digits), _ROUNDED_DIGITS), -_ROUNDED_DIGITS)  # power of ten
    written = Decimal(repr(number))
    if not written.is_finite() or written.adjusted() - last > _ROUNDED_DIGITS:
        return number
    return float(written.quantize(Decimal((0, (1,), last)), ROUND_HALF_UP))


def _modulo(one: float, other: float) -> float:
    """Return the remainder of whole numbers, with the sign of the first."""
    return math.fmod(math.trunc(one), math.trunc(other))


_Two = Callable[[float, float], float]
_One = Callable[[float], float]
_OPERATORS: Final[Mapping[str, tuple[int, _Two]]] = {  # how strongly it binds, and what it makes
    "e": (10, lambda one, other: one * math.pow(10, other)),
    "^": (8, lambda one, other: math.pow(one, other)),
    **dict.fromkeys(("/", "div"), (7, operator.truediv)),
    "*": (7, operator.mul),
    "mod": (7, _modulo),
    "fmod": (7, math.fmod),
    "+": (6, operator.add),
    "-": (6, operator.sub),
    "round": (5, _rounded),
    "=": (4, lambda one, other: float(one == other)),
    **dict.fromkeys(("!=", "<>"), (4, lambda one, other: float(one != other))),
    "<": (4, lambda one, other: float(one < other)),
    ">": (4, lambda one, other: float(one > other)),
    "<=": (4, lambda one, other: float(one <= other)),
    ">=": (4, lambda one, other: float(one >= other)),
    "and": (3, lambda one, other: float(bool(one) and bool(other))),
    "or": (2, lambda one, other: float(bool(one) or bool(other))),
}
_FUNCTIONS: Final[Mapping[str, _One]] = {
    "not": lambda number: float(not number),
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "exp": math.exp,
    "ln": math.log,
    "abs": abs,
    "trunc": lambda number: float(math.trunc(number)),
    "floor": lambda number: float(math.floor(number)),
    "ceil": lambda number: float(math.ceil(number)),
    "sqrt": math.sqrt,
    "negative": operator.neg,
    "positive": operator.pos,
}
_SIGN_BEFORE: Final[Mapping[str, str]] = {"-": "negative", "+": "positive"}


def expression(text: str) -> float | None:
    """Return the value of an expression, or None if there is none to compute.  Raises ExpressionError."""
    for entity, sign in _ENTITIES.items():
        text = text.replace(entity, sign)
    text = text.translate(_SIGNS).strip()
    if not text:
        return None
    if len(text) > EXPRESSION_CHARS_MAX:
        raise ExpressionError("it is too long")
    return _Evaluation(text).value()


class _Evaluation:
    """The two stacks of an expression's evaluation: operands and waiting operators (Dijkstra's shunting yard)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._operands: list[float] = []
        self._waiting: list[str] = []  # operators, functions and "("

    def value(self) -> float:
        position, wants_operand = 0, True
        while position < len(self._text):
            found = _TOKEN.match(self._text, position)
            if found is None:
                raise ExpressionError(f"unknown sign {self._text[position]!r}")
            position = found.end()
            wants_operand = self._operand(found) if wants_operand else self._operator(found)
        if wants_operand:
            raise ExpressionError("it has no end")
        while self._waiting:
            if self._waiting[-1] == "(":
                raise ExpressionError("a bracket is not closed")
            self._apply(self._waiting.pop())
        return self._operands[-1]

    def _operand(self, found: re.Match[str]) -> bool:
        """Read a token where an operand is wanted; return whether one still is."""
        if found["number"]:
            self._operands.append(float(found["number"]))
            return False
        word = found["word"].lower()
        if word in _CONSTANTS:
            self._operands.append(_CONSTANTS[word])
            return False
        word = _SIGN_BEFORE.get(word, word)
        if word != "(" and word not in _FUNCTIONS:
            raise ExpressionError(f"{word} has no operand before it")
        self._waiting.append(word)
        return True

    def _operator(self, found: re.Match[str]) -> bool:
        """Read a token behind an operand; return whether an operand is wanted."""
        word = (found["word"] or "").lower()
        if word == ")":
            while self._waiting and self._waiting[-1] != "(":
                self._apply(self._waiting.pop())
            if not self._waiting:
                raise ExpressionError("a bracket is not open")
            self._waiting.pop()
            return False
        if word not in _OPERATORS:
            raise ExpressionError(f"{found[0].strip()} has no operator before it")
        strength = _OPERATORS[word][0]
        while self._waiting and self._waiting[-1] != "(" and _strength(self._waiting[-1]) >= strength:
            self._apply(self._waiting.pop())
        self._waiting.append(word)
        return True

    def _apply(self, word: str) -> None:
        """Replace the last operands by what an operator or a function makes of them."""
        try:
            if word in _FUNCTIONS:
                self._operands.append(_FUNCTIONS[word](self._operands.pop()))
            else:
                other = self._operands.pop()
                self._operands.append(_OPERATORS[word][1](self._operands.pop(), other))
        except (ArithmeticError, ValueError) as problem:  # no number, or one that is too large
            raise ExpressionError(f"{word} has no value there") from problem


def _strength(word: str) -> int:
    return _OPERATORS[word][0] if word in _OPERATORS else 9  # functions bind most


def number_text(number: float) -> str:
    """Return a number as MediaWiki shows the result of an expression, with 14 digits at most."""
    if math.isinf(number) or math.isnan(number):
        raise ExpressionError("it has no finite value")
    text = format(number + 0.0, ".14g")  # no -0
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent):+d}" if e else text


def number_of(text: str) -> float | None:
    """Return the number that a text is, or None; numbers beyond those of a float are none."""
    number = float(text) if _NUMBER.fullmatch(text.strip()) else math.inf
    return number if math.isfinite(number) else None


def is_same(one: str, other: str) -> bool:
    """Return whether two values are equal for ``#ifeq`` and ``#switch``: as numbers, if both are numbers."""
    if one == other:
        return True
    if _WHOLE.fullmatch(one) and _WHOLE.fullmatch(other):
        return int(one) == int(other)  # a float would take numbers of 17 digits for the same
    first, second = number_of(one), number_of(other)
    return first is not None and first == second


# -- numbers in sentences -----------------------------------------------------------------------


def formatted(text: str, signs: tuple[str, str] | None, ungrouped: int) -> str:
    """Return a number with a language's signs between thousands and before its fraction; other texts stay.

    A number of ``ungrouped`` digits before its fraction, or of less, has no signs between thousands.
    """
    found = re.fullmatch(r"([-\u2212]?)([0-9]{1,300})(?:\.([0-9]{1,300}))?", text)
    if found is None or signs is None:
        return text
    thousands: list[str] = []
    whole = found[2]
    while len(whole) > 3 and (thousands or len(whole) > ungrouped):
        thousands.append(whole[-3:])
        whole = whole[:-3]
    fraction = signs[1] + found[3] if found[3] else ""
    return found[1] + signs[0].join([whole, *reversed(thousands)]) + fraction


def unformatted(text: str, signs: tuple[str, str] | None) -> str:
    """Return a number without a language's signs, the contrary of ``formatted``."""
    between, before = signs if signs is not None else (",", ".")
    return text.replace(between, "").replace(" " if between == "\xa0" else between, "").replace(before, ".")


def form_of(rule: str, number: float, forms: Sequence[str]) -> str:
    """Return the form for a number in a language (its rule: ``mediawiki_words``); the last one, if there are too few.

    A form "5=five" is for that number alone.
    """
    general: list[str] = []
    for form in forms:
        key, equals, words = form.partition("=")
        if not equals or number_of(key) is None:
            general.append(form)
        elif number_of(key) == number:
            return words.strip()
    place = _FORMS.get(rule, _one)(number)
    return general[min(place, len(general) - 1)] if general else ""


def _one(number: float) -> int:
    return int(number != 1)


def _zero_one(number: float) -> int:
    return int(not 0 <= abs(number) < 2)


def _slavic(number: float) -> int:
    if number != int(number):
        return 2
    last, two = abs(number) % 10, abs(number) % 100
    if last == 1 and two != 11:
        return 0
    return 1 if 2 <= last <= 4 and not 12 <= two <= 14 else 2


def _polish(number: float) -> int:
    return 0 if number == 1 else max(_slavic(number), 1) if abs(number) % 10 != 1 else 2


def _czech(number: float) -> int:
    return 0 if number == 1 else 1 if number in (2, 3, 4) else 2


def _hebrew(number: float) -> int:
    return {1: 0, 2: 1}.get(int(number), 2) if number == int(number) else 2


def _arabic(number: float) -> int:
    if number in (0, 1, 2):
        return int(number)
    two = number % 100
    return 3 if 3 <= two <= 10 else 4 if two >= 11 else 5


_FORMS: Final[Mapping[str, Callable[[float], int]]] = {
    "one": _one,
    "zero-one": _zero_one,
    "slavic": _slavic,
    "polish": _polish,
    "czech": _czech,
    "arabic": _arabic,
    "hebrew": _hebrew,
    "none": lambda _number: 0,
}
