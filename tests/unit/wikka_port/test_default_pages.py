"""The pages that a new wiki begins with, and WikkaWiki's own where they are at hand."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from tests.measure.default_pages import default_pages, stray_marks
from wikka_port.actions import ACTIONS
from wikka_port.first_pages import first_pages
from wikka_port.markup.document import parse

FOLDER = "WIKKAWIKI_FOLDER"


@pytest.mark.parametrize("name", sorted(first_pages()))
def test_a_first_page_is_in_order(name: str) -> None:
    text = first_pages()[name]
    document = parse(text)
    levels = [heading.level for heading in document.headings]
    assert list(stray_marks(name, text)) == []
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    assert {call.name for call in document.actions} <= ACTIONS.keys()


def test_help_calls_the_buttons_by_their_names() -> None:
    words = " ".join(first_pages().values())
    assert "**Save**" in words
    assert "**Store**" not in words
    assert "Backlinks**" not in words


def test_wikkawikis_own_pages_have_no_stray_marks() -> None:
    """Its licence is not ours, so nothing of it is in this repository."""
    folder = os.environ.get(FOLDER)
    if not folder:
        pytest.skip(f"NOT RUN: {FOLDER} is not set to a checkout of WikkaWiki 1.4.2")
    pages = default_pages(Path(folder))
    assert len(pages) == 34
    assert [stray for name, text in pages.items() for stray in stray_marks(name, text)] == []


def test_a_stray_mark_is_found() -> None:
    text = '%%==%% ""**"" http://x.org __c__\n||d||\na == b {{e\nf >> g'
    assert [stray.mark for stray in stray_marks("P", text)] == ["==", "{{"]
