"""Patterns of clients: a bounded time for every search, and the same answers by both engines."""

from __future__ import annotations

import re
from contextlib import suppress
from random import Random
from time import thread_time

import pytest

from columnar.limits import PATTERN_S
from columnar.model.bounded_search import SEARCHES
from columnar.model.comparators import Comparator, Operator, predicate
from columnar.model.java_patterns import PatternProblem, PatternTimeout, compiled
from tests.support.seeds import seed

FAR_OVER_S = 20 * PATTERN_S  # the engine looks at the clock now and then, on a busy machine
ENDLESS = [
    ("^(a|aa)+$", "a" * 40 + "!"),
    ("^(?:a?){50}a{50}!", "a" * 60),
    ("(a*a*)*b", "a" * 40 + "c"),
    ("(?=(a|aa)+b)c|(a|aa)+z", "a" * 60),
    (r"(a|a)(a|a)" * 16 + "b", "a" * 80),
    (r"^(\w+\s?)+$", "aaaa " * 200_000 + "!"),
    ("(?:a|ab|b)*x", "ab" * 100_000),
    (r"^(.|.)*\1z", "ab" * 3_000),
]


@pytest.fixture(autouse=True)
def _row() -> None:
    SEARCHES.begin_row()


@pytest.mark.parametrize(("pattern", "text"), ENDLESS)
def test_a_search_ends(pattern: str, text: str) -> None:
    begun = thread_time()
    with suppress(PatternTimeout):  # some are quick in this engine
        assert not compiled(pattern).is_in(text)
    assert thread_time() - begun < FAR_OVER_S


def test_the_error_names_pattern_and_bound() -> None:
    with pytest.raises(PatternTimeout, match=r"the pattern '\^\(a\|aa\)\+\$' took more than 0\.1 s"):
        compiled("^(a|aa)+$").is_in("a" * 40 + "!")


def test_many_patterns_of_one_row_have_one_bound() -> None:
    """2,000 of them may stand in one filter."""
    slow = predicate(Operator.EQUAL, Comparator(b"regexstring", b"^(a|aa)+$"))

    def all_of_them() -> None:
        for length in range(20, 40):
            for _ in range(5):
                slow(b"a" * length + b"!")

    begun = thread_time()
    with pytest.raises(PatternTimeout):
        all_of_them()
    assert thread_time() - begun < FAR_OVER_S
    SEARCHES.begin_row()
    assert slow(b"a" * 20), "the next row has a time of its own"


@pytest.mark.parametrize(
    ("pattern", "is_plain"),
    [
        ("foo", True),
        ("^row-[0-9]+$", True),
        ("9{5}", True),
        (r"\.com$|\.org$", True),
        (r"[a-z&&[^b]]x", True),
        ("a+b+", False),
        ("(ab)+", False),
        ("(a|b)", False),
        ("a+|b", False),
        ("(a|a)" * 9, False),
        (r"\)+", True),
        ("(?:[a-z]{2})*", False),
    ],
)
def test_who_may_search_with_the_engine_that_cannot_be_stopped(pattern: str, is_plain: bool) -> None:
    assert (compiled(pattern)._plain_characters > 0) == is_plain


@pytest.mark.parametrize(
    "pattern", ["(?:" * 20 + "a" + "){1,100}" * 20, "(?:" * 16 + "ab?" + "){2,3}" * 16, "(?:(?:ab){65535}){65535}"]
)
def test_groups_that_would_be_written_out_without_end_are_refused(pattern: str) -> None:
    with pytest.raises(PatternProblem, match="repeated groups within each other"):
        compiled(pattern)


def test_what_is_accepted_compiles_quickly() -> None:
    rng = Random(seed(16))
    for _ in range(300):
        begun = thread_time()
        with suppress(PatternProblem):
            compiled(random_pattern(rng, 9))
        assert thread_time() - begun < 1.0


def test_both_engines_give_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("columnar.model.bounded_search.PLAIN_CHARACTERS", -1)
    compiled.cache_clear()
    rng = Random(seed(17))
    matched = 0
    for _ in range(1_500):
        pattern = random_pattern(rng, 3)
        try:
            found = compiled(pattern, ignore_case=rng.random() < 0.2)
        except PatternProblem:
            continue
        for _ in range(6):
            text = "".join(rng.choice("aabbAB1 \n\x85\u0130\u017f.") for _ in range(rng.randint(0, 7)))
            SEARCHES.begin_row()
            expected = found._plain.search(text) is not None
            assert found.is_in(text) == expected, (pattern, text)
            assert found.matches(text) == (found._plain.fullmatch(text) is not None), (pattern, text)
            matched += expected
    assert matched > 1_000
    compiled.cache_clear()


def random_pattern(rng: Random, deep: int) -> str:
    kind = rng.random()
    if deep == 0 or kind < 0.3:
        return rng.choice(
            ["a", "b", "ab", ".", "[ab]", "[^a]", r"\w", r"\d", r"\s", r"\b", "^", "$", r"\Z", "(?i)a", "s", "i", r"\R"]
        )
    if kind < 0.55:
        return random_pattern(rng, deep - 1) + random_pattern(rng, deep - 1)
    inner = random_pattern(rng, deep - 1)
    if kind < 0.65:
        return f"(?:{inner}|{random_pattern(rng, deep - 1)})"
    if kind < 0.75:
        return rng.choice(["({})", "(?={})", "(?!{})", "(?>{})", "(?i:{})", r"({})\1"]).format(inner)
    return f"(?:{inner})" + rng.choice(["*", "+", "?", "*?", "+?", "??", "*+", "{2}", "{1,3}", "{0,2}?"])


def test_the_whole_text() -> None:
    assert compiled("t.*|u").matches("table")
    assert not compiled("t.*b").matches("table")
    assert re.fullmatch("t.*|u", "table")


LARGE = b"Some Text " * 100_000  # a megabyte


def test_a_large_value_is_converted_once_for_all_parts_of_a_filter() -> None:
    """1,500 of them converted nine megabytes each, in one step of the loop."""
    first = SEARCHES.decode(LARGE)
    assert SEARCHES.decode(LARGE) is first
    small = LARGE[:100]
    assert SEARCHES.decode(small) == small.decode()
    assert SEARCHES.decode(LARGE) is first
    SEARCHES.begin_row()
    assert SEARCHES.decode(LARGE) is not first


def test_substrings_in_large_values_share_the_bound_of_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000))
    monkeypatch.setattr(
        "columnar.model.bounded_search.thread_time", lambda: 0.02 * next(clock)
    )  # each search takes 20 ms
    found = predicate(Operator.EQUAL, Comparator(b"substring", b"some text"))
    assert found(LARGE)
    with pytest.raises(PatternTimeout, match=r"the search for 'some text', .* took more than 0\.15 s"):
        list(map(found, [LARGE] * 20))
    SEARCHES.begin_row()
    values = [bytes(bytearray(LARGE)) for _ in range(20)]
    assert all(found(value) for value in values), "each value of a row brings time of its own"


def test_substrings_of_small_and_large_values_are_found_alike() -> None:
    for text, expected in ((b"TEXT some", True), (b"text  some", False), (b"", True)):
        for value in (LARGE, LARGE[:1_000]):
            assert predicate(Operator.EQUAL, Comparator(b"substring", text))(value) is expected
