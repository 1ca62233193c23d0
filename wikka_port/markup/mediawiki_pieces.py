"""What has been made of one MediaWiki text so far (pure): finished pieces, links, notes, counts.

A construct that is finished becomes a Piece and stands in the text as a mark, STX number ETX.
Neither character can come from a dump (XML forbids them) and ``clean`` takes them out of
any other text, so a mark is never the author's.

Invariants:
    I1. A mark stands in one place only, so the expanded text is linear in the pieces.
    I2. ``inline`` and ``plain`` of a piece hold no line break; ``plain`` holds no mark.
    I3. Text of the author goes into a piece only through ``literal`` or ``escape``.

Knows nothing of MediaWiki's syntax.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from wikka_port.markup.mediawiki_titles import Dialect

PLAIN_CHARS_MAX: Final = 500  # of a label; bounds what nested labels can add up to
MARK: Final = re.compile("\x02([0-9]{1,9})\x03")

_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ENTITY: Final = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# Whatever our own markup gives a meaning to.  Rather a sequence too many: it then shows just the same.
_DANGER: Final = re.compile(
    r"""([*/_#%'+£¥@"{}\[\]=<>`|])\1+       # toggles, brackets, cells and comments are pairs
      | \[\^ | /\* | \*/ | \#% | %\# | -{3,} | ~ | \|.\| | ::c::
      | (?:(?<=[A-Za-z])|(?<=[cC]2)):(?=\S)  # after the name of another wiki
      | <(?=map\b) | &(?=\#?\w+;)           # mind maps, shown entities""",
    re.VERBOSE,
)
_CELL_DANGER: Final = re.compile(
    _DANGER.pattern
    + r"""
 | \|+""",
    re.VERBOSE,
)
_SPACE: Final = re.compile(r"[ \t\r\n]+")


@dataclass(frozen=True, slots=True)
class Piece:
    inline: str  # in running text, a list item or a cell
    plain: str = ""  # in a label, where no markup is read
    page: str = ""  # the page it links to, if it is a link
    block: str | None = None  # where it has lines to itself; None: as ``inline``, "": nothing at all


@dataclass(slots=True)
class Note:
    content: str | None = None  # None: used, not defined (yet)
    name: str = ""


@dataclass(slots=True)
class Draft:
    """The state of one conversion; lives as long as the call of ``convert``."""

    dialect: Dialect
    title: str
    pieces: list[Piece] = field(default_factory=list)
    links: dict[str, None] = field(default_factory=dict)  # a set that keeps its order; full after ``expand``
    categories: dict[str, str] = field(default_factory=dict)  # page -> label
    languages: dict[str, None] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    note_numbers: dict[str, int] = field(default_factory=dict)
    notes_mark: str | None = None  # where the author wants them
    hidden: list[str] = field(default_factory=list)  # calls of templates that show nowhere, as ours
    converted: Counter[str] = field(default_factory=Counter)
    unconverted: Counter[str] = field(default_factory=Counter)

    def mark(self, piece: Piece) -> str:
        self.pieces.append(piece)
        return f"\x02{len(self.pieces) - 1}\x03"

    def blocks_of(self, line: str) -> list[str] | None:
        """The blocks of a line that holds nothing but marks of pieces that can stand alone."""
        if not line.startswith("\x02") or MARK.sub("", line).strip():
            return None
        blocks = [self.pieces[int(match[1])].block for match in MARK.finditer(line)]
        known = [block for block in blocks if block is not None]
        return known if len(known) == len(blocks) else None

    def plain(self, text: str) -> str:
        """``text`` with its marks as plain text, cut to PLAIN_CHARS_MAX."""
        plain = MARK.sub(lambda match: self.pieces[int(match[1])].plain, text)
        return plain if len(plain) <= PLAIN_CHARS_MAX else plain[: PLAIN_CHARS_MAX - 1] + "…"

    def expand(self, text: str) -> str:
        """Put every piece in its place, and note the links that so come into the text.

        Not recursive: pieces may be nested as deep as the text is long.
        """
        out: list[str] = []
        levels = [_split(text)]
        while levels:
            for part in levels[-1]:
                if isinstance(part, int):
                    piece = self.pieces[part]
                    if piece.page:
                        self.links.setdefault(piece.page)
                    levels.append(_split(piece.inline))
                    break
                out.append(part)
            else:
                levels.pop()
        return "".join(out)


def _split(text: str) -> Iterator[str | int]:
    for position, part in enumerate(MARK.split(text)):
        yield int(part) if position % 2 else part


def clean(text: str) -> str:
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def unescape(text: str) -> str:
    """Decode entities; one that stands for a line break or a control character becomes a blank."""
    return _ENTITY.sub(_decoded, text) if "&" in text else text


def _decoded(match: re.Match[str]) -> str:
    decoded = html.unescape(match[0])
    return " " if decoded < " " or "\x7f" <= decoded < "\xa0" else decoded


def collapse(text: str) -> str:
    return _SPACE.sub(" ", text)


def entities(text: str) -> str:
    """``text`` as HTML that can stand between pairs of double quotes."""
    if '"' in text and ('""' in text or text[0] == '"' or text[-1] == '"'):
        return html.escape(text, quote=False).replace('"', "&quot;")
    return html.escape(text, quote=False)


def literal(text: str) -> str:
    """``text`` shown as it is; one line."""
    text = collapse(text)
    return f'""{entities(text)}""' if text.strip() else text[:1]


def mono(text: str) -> str:
    return f"##{literal(text)}##" if text.strip() else ""


def escape(text: str, *, cell: bool = False) -> str:
    """Running text, decoded already, with what would look like our markup made literal."""
    return (_CELL_DANGER if cell else _DANGER).sub(lambda match: literal(match[0]), text)


def code_block(text: str, language: str = "") -> str:
    text = text.strip("\n")
    if not text.strip():
        return ""
    if "%%" in text:  # would end the block
        return preformatted(text)
    return f"%%({language})\n{text}\n%%" if language else f"%%\n{text}\n%%"


def preformatted(text: str) -> str:
    """The same for where lines of their own cannot be had."""
    return '""<pre>' + entities(text).replace("\n", "&#10;") + '</pre>""'
