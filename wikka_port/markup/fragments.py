"""(pure) Compiled pages: HTML with slots for parts that can change while the text does not.

A page is a sequence of pieces.  A ``str`` is finished, safe HTML; a slot is filled at each rendering: by a link
whose page may exist or not, by a file, by a picture from elsewhere where the site allows it, or by the output of an
action.  All else is compiled once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from wikka_port.texts import _


def escape(text: str) -> str:
    """Escape ``text`` for HTML, between tags and inside attributes in double quotes."""
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
    place: str = ""  # id of the linked heading on that page


class FileReference(NamedTuple):
    page: str  # normalised; "": this page, those above it, and the site's page of shared files
    name: str


class FileChoice(NamedTuple):
    reference: FileReference
    label: str  # words for the file, not escaped; "": none were given
    label_html: str  # escaped


@dataclass(frozen=True, slots=True)
class FileSlot:
    """A file, or in its absence a link to a page or to where files are added."""

    choices: tuple[FileChoice, ...]  # the first of which there is a file is meant
    shows: bool = True  # whether a picture is shown; else it is linked
    options: tuple[tuple[str, str], ...] = ()  # of a picture, as typed: title, class, width, height, link
    otherwise: PageSlot | None = None  # None: a link to where files are added


@dataclass(frozen=True, slots=True)
class ForeignSlot:
    """A picture from another site, or a link to it."""

    host: str  # in lower case, with the port if one is written
    picture_html: str
    link_html: str


@dataclass(frozen=True, slots=True)
class ActionSlot:
    name: str
    arguments: tuple[tuple[str, str], ...]
    block: bool  # whether it is a block; its HTML may then have paragraphs, lists and tables
    refused: str = ""  # why the action is not run, for the page's author; "": it is run


@dataclass(frozen=True, slots=True)
class SectionSlot:
    """The link to the editor of a section, for visitors who may write the page."""

    end_html: str  # the link's HTML from the id of the heading on


@dataclass(frozen=True, slots=True)
class ContentsSlot:
    """The automatic table of contents of a page (``contents``); an included page has none."""

    html: str


def section_slot(place: str, text: str) -> SectionSlot:
    """Return the slot of a heading with the id ``place`` and the plain, unescaped ``text``."""
    said = _("Edit this section: {heading}", heading=escape(text))
    return SectionSlot(f'{quote(place)}" rel="nofollow" aria-label="{said}">{_("Edit")}</a>')


Filled = str | PageSlot | ActionSlot | SectionSlot | ContentsSlot
Piece = Filled | FileSlot | ForeignSlot


class Heading(NamedTuple):
    level: int  # 1..5; 6 in Markdown
    text: str  # plain, not escaped
    id: str
    start: int = -1  # position of its line in the text (``sections``); -1: it has no section of its own
