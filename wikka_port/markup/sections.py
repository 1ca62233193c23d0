"""(pure) Sections of a text: found by the headings of its document, taken out, and put back.

A section begins at its heading's line and ends before the next heading of its level or a higher one.  This module needs
of a page's format only the position of each heading's line (``Heading.start``).  A heading without a position (in a
cell of a table) has no section.

Invariant: ``spliced`` with the result of ``taken`` gives the original text.
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
    """Return ``text`` with "\\n" as ends of lines, by which positions are counted."""
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
    """Return ``text`` with ``body`` in the place of the section; the empty lines after the section stay."""
    before, after = text[: section.start], text[section.end :]
    if not body.strip():
        return before + after
    old = text[section.start : section.end]
    lines_after = old[len(old.rstrip("\n")) :]
    if after and not lines_after:
        lines_after = "\n"
    return before + body.rstrip("\n") + lines_after + after
