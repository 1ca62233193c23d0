"""Compiled pages (pure): HTML with slots for what can change while the text does not.

A page is a sequence of pieces.  A ``str`` is finished, safe HTML; a slot is filled at each rendering:
whether a linked page exists, and what an action says.  Everything else is decided once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from wikka_port.texts import _


def escape(text: str) -> str:
    """``text`` for HTML: between tags, and inside an attribute that stands in double quotes."""
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    return text.replace('"', "&quot;") if '"' in text else text


@dataclass(frozen=True, slots=True)
class PageSlot:
    name: str  # normalised
    label_html: str  # escaped
    place: str = ""  # id of the heading on that page to lead to


@dataclass(frozen=True, slots=True)
class ActionSlot:
    name: str
    arguments: tuple[tuple[str, str], ...]
    block: bool  # stands by itself; its HTML may have paragraphs, lists and tables
    refused: str = ""  # why it is not run, for the page's author; "": it is run


@dataclass(frozen=True, slots=True)
class SectionSlot:
    """The link to the editor of a section; for who may write the page."""

    end_html: str  # of the link, from the id of the heading on


@dataclass(frozen=True, slots=True)
class ContentsSlot:
    """The table of contents that a page has by itself (``contents``); a page that is included has none."""

    html: str


def section_slot(place: str, text: str) -> SectionSlot:
    """``place``: the id of the heading; ``text``: its plain text, not escaped."""
    said = _("Edit this section: {heading}", heading=escape(text))
    return SectionSlot(f'{quote(place)}" rel="nofollow" aria-label="{said}">{_("Edit")}</a>')


Piece = str | PageSlot | ActionSlot | SectionSlot | ContentsSlot


class Heading(NamedTuple):
    level: int  # 1..5; 6 in Markdown
    text: str  # plain, not escaped
    id: str
    start: int = -1  # where its line begins in the text (``sections``); -1: it has no section of its own
