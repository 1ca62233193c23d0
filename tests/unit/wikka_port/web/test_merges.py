"""Two edits in one text, or none where somebody has to choose."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wikka_port.diffs import LINES
from wikka_port.merges import merged

TEXT = st.text(alphabet="ab\n", max_size=30)


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
def test_examples(mine: str, theirs: str, both: str | None) -> None:
    assert merged("a\nb\nc\nd\ne", mine, theirs) == both


def test_edits_over_more_lines_than_are_looked_at_are_for_people() -> None:
    lines = [f"line {number}" for number in range(3 * LINES)]
    text = "\n".join(lines)
    assert (
        merged(text, text.replace("line 5\n", "LINE 5\n"), text + "\nend")
        == text.replace("line 5\n", "LINE 5\n") + "\nend"
    )
    assert merged(text, "other\n" * 3 * LINES, text + "\nend") is None
