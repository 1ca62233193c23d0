"""Sections of a text (pure): found by the headings of its document, taken out, and put back.

A section begins at its heading's line and ends before the next heading of its level or a higher one.  A format of
pages gives each ``Heading`` the place where its line begins (``Heading.start``), and nothing else: all of
this module works by these places.  A heading without one (in a cell of a table) has no section.

Invariant: what ``taken`` gives, put back by ``spliced``, is the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wikka_port.markup.fragments import Heading


@dataclass(frozen=True, slots=True)
class Section:
    heading: Heading
    start: int  # in the text with "\n" as ends of lines (``unified``)
    end: int


def unified(text: str) -> str:
    """``text`` with the ends of lines that places are counted by."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def section_of(headings: Sequence[Heading], text: str, place: str) -> Section | None:
    """Return the section whose heading has the id ``place``.  ``text`` is ``unified``."""
    found = [heading for heading in headings if heading.start >= 0]
    for number, heading in enumerate(found):
        if heading.id == place:
            after = (one.start for one in found[number + 1 :] if one.level <= heading.level)
            return Section(heading, heading.start, next(after, len(text)))
    return None


def taken(text: str, section: Section) -> str:
    """Return the section's text without the empty lines after it."""
    return text[section.start : section.end].rstrip("\n")


def spliced(text: str, section: Section, body: str) -> str:
    """``text`` with ``body`` in the place of the section; the empty lines after it stay."""
    before, after = text[: section.start], text[section.end :]
    if not body.strip():
        return before + after
    old = text[section.start : section.end]
    lines_after = old[len(old.rstrip("\n")) :]
    if after and not lines_after:
        lines_after = "\n"
    return before + body.rstrip("\n") + lines_after + after
