"""Two edits in one text: each change of either side is taken, or shown to who has to choose.  Never lost silently.

``COLUMNAR_MERGES=100000`` tries more histories; the seed of a failure is in its message.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.diffs import LINES
from wikka_port.merges import CHOICES_MAX, SIDES, Agreed, Choice, merged, pieces, resolved

TEXT = st.text(alphabet="ab \n", max_size=30)
HISTORIES = int(os.environ.get("COLUMNAR_MERGES", "400"))


@given(TEXT, TEXT)
@settings(max_examples=200)
def test_an_edit_and_none_is_the_edit(old: str, new: str) -> None:
    assert merged(old, new, old) == new
    assert merged(old, old, new) == new
    assert merged(old, new, new) == new


@given(TEXT, TEXT, TEXT)
@settings(max_examples=200)
def test_who_is_who_does_not_matter(old: str, mine: str, theirs: str) -> None:
    assert merged(old, mine, theirs) == merged(old, theirs, mine)


@given(TEXT, TEXT, TEXT)
@settings(max_examples=300)
def test_taking_one_side_everywhere_keeps_all_of_it_where_they_meet(old: str, mine: str, theirs: str) -> None:
    """Choices hold all lines of both sides: with "both" each of them is in the text, in its order."""
    found = pieces(old, mine, theirs)
    choices = [piece for piece in found if isinstance(piece, Choice)]
    for side in SIDES:
        text = resolved(found, dict.fromkeys(range(len(choices)), side)).split("\n")
        for choice in choices:
            for lines in {"mine": [choice.mine], "theirs": [choice.theirs], "both": [choice.mine, choice.theirs]}[side]:
                assert is_within(lines, text)
    for choice in choices:
        assert len({choice.old, choice.mine, choice.theirs}) == 3, "where two agree nobody has to choose"


def is_within(few: tuple[str, ...], many: list[str]) -> bool:
    left = iter(many)
    return all(line in left for line in few)


@pytest.mark.parametrize(
    ("mine", "theirs", "both"),
    [
        ("A\nb\nc\nd\ne", "a\nb\nc\nd\nE", "A\nb\nc\nd\nE"),
        ("a\nb\nc\nd\ne\nf", "x\na\nb\nc\nd\ne", "x\na\nb\nc\nd\ne\nf"),
        ("a\nc\nd\ne", "a\nb\nc\nd", "a\nc\nd"),
        ("A\nb\nc\nd\nE", "A\nb\nC\nd\ne", "A\nb\nC\nd\nE"),
        ("A\nb\nc\nd\ne", "a\nB\nc\nd\ne", None),
        ("A\nb\nc\nd\ne", "x\nb\nc\nd\ne", None),
        ("a\nb\nx\nc\nd\ne", "a\nb\ny\nc\nd\ne", None),
        ("", "a\nb\nc\nd\nE", None),
    ],
)
def test_examples_of_lines(mine: str, theirs: str, both: str | None) -> None:
    assert merged("a\nb\nc\nd\ne", mine, theirs) == both


DOG = "The fox jumps over the lazy dog."
CAT = "The fox jumps over the lazy cat!"


@pytest.mark.parametrize(
    ("mine", "theirs", "both"),
    [
        ("The quick fox jumps over the lazy dog.", "The fox jumps over the dog.", "The quick fox jumps over the dog."),
        ("A fox jumps over the lazy dog.", CAT, "A fox jumps over the lazy cat!"),
        ("The fox leaps over the lazy dog.", "The wolf jumps over the lazy dog.", None),  # neighbours
        ("The fox leaps over the lazy dog.", "The fox flies over the lazy dog.", None),
        ("The fox leaps over the lazy dog.", "", None),  # taken away, and changed
        (f"{DOG}\nMore of it.", CAT, None),
        (f"So.\n{DOG}", CAT, f"So.\n{CAT}"),
        ("The **fox** jumps over the lazy dog.", CAT, "The **fox** jumps over the lazy cat!"),
    ],
)
def test_examples_of_words(mine: str, theirs: str, both: str | None) -> None:
    assert merged(DOG, mine, theirs) == both


def test_edits_of_neighbouring_lines() -> None:
    old = "* milk and honey\n* bread and salt"
    mine, theirs = old.replace("milk", "cream"), old.replace("salt", "butter")
    assert merged(old, mine, theirs) == "* cream and honey\n* bread and butter"


def test_a_choice_has_its_place_between_what_is_agreed() -> None:
    old = "one\n\ntwo\n\nthree\n\nfour"
    mine, theirs = old.replace("two", "2").replace("four", "4"), old.replace("two", "II").replace("one", "I")
    found = pieces(old, mine, theirs)
    assert [type(piece) for piece in found] == [Agreed, Agreed, Choice, Agreed, Agreed]
    texts = {side: resolved(found, {0: side}) for side in SIDES}
    assert texts == {
        "mine": "I\n\n2\n\nthree\n\n4",
        "theirs": "I\n\nII\n\nthree\n\n4",
        "both": "I\n\nII\n2\n\nthree\n\n4",
    }
    with pytest.raises(KeyError):
        resolved(found, {})


def test_two_that_begin_a_page_choose() -> None:
    found = pieces("", "mine", "theirs")
    assert found == [Choice(("",), ("mine",), ("theirs",))]
    assert pieces("", "same", "same") == [Agreed(("same",), changed=True)]


def test_too_many_places_are_one() -> None:
    old = "\n\n".join(f"line {n}" for n in range(CHOICES_MAX + 1))
    found = pieces(old, old.replace("line", "mine"), old.replace("line", "theirs"))
    assert [type(piece) for piece in found] == [Choice]


def test_edits_over_more_lines_than_are_looked_at_are_for_people() -> None:
    lines = [f"line {number}" for number in range(3 * LINES)]
    text = "\n".join(lines)
    assert (
        merged(text, text.replace("line 5\n", "LINE 5\n"), text + "\nend")
        == text.replace("line 5\n", "LINE 5\n") + "\nend"
    )
    assert merged(text, "other\n" * 3 * LINES, text + "\nend") is None


# --- a model: words that nobody else writes, so that what became of each of them can be said --------


def edited(words: list[str], rng: Random, fresh: Iterator[str]) -> list[str]:
    """Some words gone, some put in; the ends of lines ("\n") are words, too."""
    out: list[str] = []
    rate = rng.choice((0.02, 0.1, 0.3))
    for word in words:
        if rng.random() < rate:
            out += [next(fresh) for _ in range(rng.randint(1, 3))]
            if rng.random() < 0.2:
                out.append("\n")
        if rng.random() >= rate:
            out.append(word)
    if rng.random() < rate:
        out.append(next(fresh))
    return out


def text_of(words: list[str]) -> str:
    return " ".join(words).replace(" \n ", "\n").replace(" \n", "\n").replace("\n ", "\n")


def words_of(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize("seed", range(4))
def test_no_word_of_either_side_is_lost_silently(seed: int) -> None:
    rng = Random(seed)
    agreed = 0
    for history in range(HISTORIES // 4):
        fresh = (f"w{number}" for number in count())
        words = [next(fresh) if rng.random() < 0.85 else "\n" for _ in range(rng.choice((5, 40, 150)))]
        old, mine, theirs = text_of(words), text_of(edited(words, rng, fresh)), text_of(edited(words, rng, fresh))
        found = pieces(old, mine, theirs)
        chosen = {number: rng.choice(SIDES) for number in range(CHOICES_MAX + 1)}
        check(found, old, mine, theirs, f"seed {seed}, history {history}")
        text = resolved(found, dict.fromkeys(chosen, "both"))
        new = (set(words_of(mine)) | set(words_of(theirs))) - set(words_of(old))
        assert new <= set(words_of(text)), f"seed {seed}, history {history}: with both nothing new is missing"
        agreed += merged(old, mine, theirs) is not None
    assert agreed > HISTORIES // 40, "the model has histories that merge"


def check(found: list[Agreed | Choice], old: str, mine: str, theirs: str, where: str) -> None:
    """What is agreed has the new words of both, none that either took away, and those of each in its order."""
    held, ours, others = set(words_of(old)), words_of(mine), words_of(theirs)
    agreed = [word for piece in found if isinstance(piece, Agreed) for line in piece.lines for word in line.split()]
    shown = {
        word
        for piece in found
        if isinstance(piece, Choice)
        for line in (*piece.mine, *piece.theirs, *piece.old)
        for word in line.split()
    }
    for side in (ours, others):
        assert set(side) - held <= {*agreed, *shown}, f"{where}: a new word is nowhere"
        gone = held - set(side) - shown
        assert not gone & set(agreed), f"{where}: a word that was taken away is back"
        of_side = set(side)
        in_order = [word for word in agreed if word in of_side]
        assert in_order == [word for word in side if word in set(in_order)], f"{where}: the order is another"
    kept = held & set(ours) & set(others)
    assert kept <= {*agreed, *shown}, f"{where}: a word that both kept is gone"
    assert len(agreed) == len(set(agreed)), f"{where}: a word stands twice"
