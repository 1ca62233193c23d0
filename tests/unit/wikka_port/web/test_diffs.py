"""Differences: right for any two texts, fine where they are alike, bounded where they are not."""

from __future__ import annotations

import random
from functools import cache
from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.diffs import BUDGET, MAX_DIFF_CHARS, MAX_ROWS, operations, rows, words

FEW = st.text(alphabet="ab\n", max_size=40)


@given(FEW, FEW, st.sampled_from([0, 5, 60, BUDGET]))
@settings(max_examples=400)
def test_operations_turn_old_into_new(old: str, new: str, budget: int) -> None:
    i = j = 0
    last = ""
    for kind, i0, i1, j0, j1 in operations(old, new, budget):
        assert (i0, j0) == (i, j)
        assert kind != last
        assert kind == "replace" or old[i0:i1] == new[j0:j1] != ""
        i, j, last = i1, j1, kind
    assert (i, j) == (len(old), len(new))


@given(FEW, FEW)
@settings(max_examples=200)
def test_rows_hold_both_texts(old: str, new: str) -> None:
    found = rows(old, new, context=10**6)
    if old == new:
        assert [row.kind for row in found] == ["skip"]
        return
    sides = [
        "\n".join("".join(span.text for span in side) for number, side in lines if number)
        for lines in ([(r.old_number, r.old) for r in found], [(r.new_number, r.new) for r in found])
    ]
    assert sides == [old, new]


@given(st.text(alphabet="ab ,", max_size=40), st.text(alphabet="ab ,", max_size=40))
@settings(max_examples=200)
def test_spans_hold_both_lines(old: str, new: str) -> None:
    left, right = words(old, new)
    assert "".join(span.text for span in left) == old
    assert "".join(span.text for span in right) == new


def test_the_changed_word_is_marked() -> None:
    left, right = words("the quick brown fox", "the slow brown fox")
    assert [span.text for span in left if span.changed] == ["quick"]
    assert [span.text for span in right if span.changed] == ["slow"]


def test_a_blank_between_changed_words_is_no_hole() -> None:
    left, _ = words("one two three four", "five six three four")
    assert [span.text for span in left if span.changed] == ["one two"]


def test_like_lines_face_each_other() -> None:
    old = "a sentence about rivers and seas\nanother one about mountains"
    new = "something quite new here\na sentence about rivers and lakes\nanother one about high mountains"
    assert [row.kind for row in rows(old, new)] == ["insert", "change", "change"]


def test_far_lines_are_folded() -> None:
    old = "\n".join(f"line {n}" for n in range(100))
    found = rows(old, old.replace("line 50", "LINE 50"))
    assert [row.kind for row in found] == ["skip", *["equal"] * 3, "change", *["equal"] * 3, "skip"]
    assert [row.skipped for row in found if row.kind == "skip"] == [47, 46]


def test_equal_texts_have_no_change() -> None:
    assert {row.kind for row in rows("a\nb", "a\nb")} <= {"equal", "skip"}


@cache
def _texts() -> dict[str, tuple[str, str]]:
    rng = random.Random(7)
    vocabulary = [f"word{n}" for n in range(200)]

    def text(lines: int, per_line: int) -> str:
        return "\n".join(" ".join(rng.choices(vocabulary, k=per_line)) for _ in range(lines))

    lines = [f"line {n} {'z' * 30}" for n in range(5_000)]
    return {
        "nothing in common": (text(3_000, 10), text(3_000, 10)),
        "one line again and again": ("x\n" * 100_000, "x\ny\n" * 50_000),
        "one long line": (text(1, 30_000), text(1, 30_000)),
        "long lines": (text(30, 900), text(30, 900)),
        "two kinds of lines": ("\n".join(rng.choices("ab", k=100_000)), "\n".join(rng.choices("ab", k=100_000))),
        "another order": ("\n".join(lines), "\n".join(rng.sample(lines, len(lines)))),
    }


@pytest.mark.parametrize("name", _texts())
def test_hostile_texts_of_200_kb_cost_little(name: str) -> None:
    old, new = _texts()[name]
    began = thread_time()
    found = rows(old, new)
    assert thread_time() - began < 5, "seconds of this thread; about 0.3"
    assert len(found) <= MAX_ROWS + 1


def _long_lines(seed: int) -> str:
    rng = random.Random(seed)
    vocabulary = [f"w{number}" for number in range(20_000)]
    return "\n".join(" ".join(rng.choices(vocabulary, k=6_500)) for _ in range(50))


@pytest.mark.parametrize(
    ("old", "new"),
    [(_long_lines(1), _long_lines(2)), ("\n" * 1_990_000, "a\n" * 990_000), ("a" * 1_990_000, "b " * 990_000)],
    ids=["50 lines of 40 KB", "millions of lines", "one line"],
)
def test_texts_of_2_mb_cost_no_more_and_show_no_more(old: str, new: str) -> None:
    """Words are counted, not only lines: 50 lines of 40 KB once took 5 s, ten such differences 100 s."""
    began = thread_time()
    found = rows(old, new)
    assert thread_time() - began < 2, "seconds of this thread; about 0.2"
    assert found[-1].kind == "cut" or len(found) == 1
    assert sum(len(span.text) for row in found for span in (*row.old, *row.new)) <= MAX_DIFF_CHARS + 2


@given(FEW, FEW)
def test_a_share_of_the_work_gives_the_same_lines(old: str, new: str) -> None:
    def plain(share: float) -> list[tuple[int, int]]:
        return [(row.old_number, row.new_number) for row in rows(old, new, share=share)]

    assert plain(0.2) == plain(1.0)


def test_a_change_far_behind_many_equal_lines_is_shown() -> None:
    lines = [f"line {number}" for number in range(100_000)]
    found = rows("\n".join(lines), "\n".join([*lines[:70_000], "new", *lines[70_000:]]))
    assert [row.kind for row in found] == ["skip", *["equal"] * 3, "insert", *["equal"] * 3, "skip"]
    assert found[4].new_number == 70_001
