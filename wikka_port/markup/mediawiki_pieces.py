"""The state of the conversion of one MediaWiki text (pure): finished pieces, links, notes, counts.

A construct that is finished becomes a Piece and stands in the text as a mark, STX number ETX.
Neither character can come from a dump (XML forbids them) and ``clean`` takes them out of
any other text, so a mark is never the author's.

Invariants:
    I1. A mark stands in one place only, so the expanded text is linear in the pieces.
    I2. ``inline`` and ``plain`` of a piece have no line break; ``plain`` has no mark.
    I3. Text of the author goes into a piece only through ``literal`` or ``escape``.
    I4. No double quote of the author's begins or ends a piece: all others may, and code that puts a piece beside a text
        or a piece guards the text as it will be joined (``Draft.edges``, ``escape_between``, ``JOIN``).

Knows nothing of MediaWiki's syntax.
"""

from __future__ import annotations

import html
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from wikka_port.markup.mediawiki_titles import Dialect

PLAIN_CHARS_MAX: Final = 500  # of a label; bounds what nested labels can add up to
MARK: Final = re.compile("\x02([0-9]{1,9})\x03")
MARK_RUN: Final = re.compile("(?:\x02[0-9]{1,9}\x03[ \t]*+)++")

_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ENTITY: Final = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# Whatever our own markup gives a meaning to.  Rather a sequence too many: it then shows just the same.
_DANGER: Final = re.compile(
    r"""([*/_#%'+£¥@"{}\[\]=<>`|])\1+       # toggles, brackets, cells and comments are pairs
      | \[\^ | /\* | \*/ | \#% | %\# | -{3,} | ~ | \|.\| | ::c::
      | (?:(?<=[A-Za-z])|(?<=[cC]2)):(?=[^\s<>"|\[\]{}`\\^])  # after the name of another wiki
      | <(?=map\b) | &(?=\#?\w+;)           # mind maps, shown entities""",
    re.VERBOSE,
)
_CELL_DANGER: Final = re.compile(
    _DANGER.pattern
    + r"""
 | \|+""",
    re.VERBOSE,
)
_SIGNS: Final = frozenset("*/_#%'+£¥@\"{}[]=<>`|^-~:c&;")
_OPEN_END: Final = re.compile(r"(?:[^\s\w.,;()!?]|_)\S*\Z|\|.\Z")
_SPACE: Final = re.compile(r"[ \t\r\n]+")
_REACH: Final = 4  # characters of markup before its last one
_AHEAD: Final = re.compile(r"(?:&\#?\w*+|<\w*+|:)\Z")  # markup by what stands after it
EDGE_CHARS: Final = 40  # of a neighbour: longer than whatever two texts can make together
JOIN: Final = '""""'  # a literal of nothing: what stands on its two sides is not read together


@dataclass(frozen=True, slots=True)
class Piece:
    inline: str  # in running text, a list item or a cell
    plain: str = ""  # in a label, where no markup is read
    page: str = ""  # the page it links to, if it is a link
    block: str | None = None  # where it has lines to itself; None: as ``inline``, "": nothing at all


@dataclass(frozen=True, slots=True)
class Note:
    content: str | None = None  # None: used, not defined (yet)
    name: str = ""
    is_used: bool = False  # a mark leads to it


@dataclass(slots=True)
class Draft:
    """The state of one conversion; lives as long as the call of ``convert``."""

    dialect: Dialect
    title: str
    pieces: list[Piece] = field(default_factory=list)
    ends: list[tuple[str, str]] = field(default_factory=list)  # of the pieces: first and last EDGE_CHARS
    links: dict[str, None] = field(default_factory=dict)  # a set that keeps its order; full after ``expand``
    categories: dict[str, str] = field(default_factory=dict)  # page -> label
    languages: dict[str, str] = field(default_factory=dict)  # page of another language -> our link; "": none is known
    notes: list[Note] = field(default_factory=list)
    note_numbers: dict[str, int] = field(default_factory=dict)
    notes_mark: str | None = None  # where the author wants them
    hidden: list[str] = field(default_factory=list)  # calls of templates that show nowhere, as ours
    expands_to_nothing: set[str] = field(default_factory=set)  # their marks: MediaWiki reads lines without them
    converted: Counter[str] = field(default_factory=Counter)
    unconverted: Counter[str] = field(default_factory=Counter)

    def mark(self, piece: Piece) -> str:
        self.ends.append(self.edges(piece.inline))
        self.pieces.append(piece)
        return f"\x02{len(self.pieces) - 1}\x03"

    def place_notes(self) -> str:
        """Return the mark of the line where the author wants the notes."""
        self.notes_mark = self.mark(Piece("", block=""))
        return self.notes_mark

    def note(self, name: str, content: str | None, *, is_use: bool) -> str:
        """Use or define the note of that name, or a new one; return its mark in the text."""
        self.converted["reference"] += 1
        number = self.note_numbers.get(name, 0) if name else 0
        if not number:
            self.notes.append(Note(name=name))
            number = len(self.notes)
            if name:
                self.note_numbers[name] = number
        note = self.notes[number - 1]
        if content and note.content not in (None, content):
            self.unconverted["reference defined twice"] += 1
        known = note.content if note.content is not None else content or None
        self.notes[number - 1] = Note(known, name, is_used=note.is_used or is_use)
        return self.mark(Piece(note_mark(number, is_first=is_use and not note.is_used)))

    def edges(self, text: str) -> tuple[str, str]:
        """Return the first and the last EDGE_CHARS of ``text`` as it will be; both are the whole of what is shorter."""
        if "\x02" not in text:
            return text[:EDGE_CHARS], text[-EDGE_CHARS:]
        parts = MARK.split(text)
        head = tail = ""
        for position, part in enumerate(parts):
            head += part if position % 2 == 0 else self.ends[int(part)][0]
            if len(head) >= EDGE_CHARS:
                break
        for position in range(len(parts) - 1, -1, -1):
            tail = (parts[position] if position % 2 == 0 else self.ends[int(parts[position])][1]) + tail
            if len(tail) >= EDGE_CHARS:
                break
        return head[:EDGE_CHARS], tail[-EDGE_CHARS:]

    def guarded(self, text: str) -> str:
        """``text`` so that its first character means nothing where a list item, a cell or a heading begins."""
        if not text:
            return text
        return JOIN + text if text[0] == "\x02" else literal(text[0]) + text[1:]

    def lead(self, line: str) -> int:
        """Return how many characters of ``line`` are marks of calls that stand before all that is read of it."""
        end = 0
        while (found := MARK.match(line, end)) and found[0] in self.expands_to_nothing:
            end = found.end()
        return end

    def without_trail(self, line: str) -> str:
        """``line`` without blanks and marks of such calls at its end."""
        line = line.rstrip(" \t")
        while line.endswith("\x03") and line[line.rindex("\x02") :] in self.expands_to_nothing:
            line = line[: line.rindex("\x02")].rstrip(" \t")
        return line

    def blocks_of(self, line: str) -> list[str] | None:
        """Return the blocks of a line with nothing but marks of pieces that can stand alone."""
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


def escape_between(
    before: str, text: str, after: str, *, cell: bool = False, marks: Sequence[tuple[int, str]] = ()
) -> str:
    """As ``escape``, where ``text`` will stand between two others: what they make together is no markup either.

    ``marks`` of nothing are put where they stood, by the number of characters before them, and part no pair.
    """
    if not before and not after and not marks:
        return escape(text, cell=cell)
    joined, start, end = before + text + after, len(before), len(before) + len(text)
    out: list[str] = []
    position, waiting = start, deque(marks)

    def plain(stop: int) -> None:
        nonlocal position
        while waiting and start + waiting[0][0] <= stop:
            place, mark = waiting.popleft()
            out.extend((joined[position : max(start + place, position)], mark))
            position = max(start + place, position)
        out.append(joined[position:stop])
        position = stop

    danger = _CELL_DANGER if cell else _DANGER
    last = min(max(_reach(danger, joined, start), start + _is_ahead(joined, start)), end)
    if last > start:
        out.append(literal(joined[start:last]))
        position = last
    for match in danger.finditer(joined, position):
        if match.start() >= end:
            break
        plain(match.start())
        position = min(match.end(), end)
        out.append(literal(joined[match.start() : position]))
    plain(end)
    return "".join(out)


def may_continue_markup(text: str) -> bool:
    """Return whether what stands before ``text`` could be markup together with its begin."""
    return text[:1] in _SIGNS or text[1:2] in ("|", ":")


def is_open(text: str) -> bool:
    """Return whether the end of ``text`` could be markup together with what stands after it."""
    return _OPEN_END.search(text, max(len(text) - EDGE_CHARS, 0)) is not None


def _reach(danger: re.Pattern[str], joined: str, border: int) -> int:
    """Find the end of markup that begins before ``border``; ``border``: none reaches beyond it."""
    found = (danger.match(joined, begin) for begin in range(max(border - _REACH, 0), border))
    return max((match.end() for match in found if match is not None), default=border)


def joins(before: str, after: str) -> bool:
    """Return whether the end of one text and the beginning of another are markup together."""
    joined, border = before + after, len(before)
    if _reach(_DANGER, joined, border) > border:
        return (before[-1:], after[:1]) != ('"', '"')  # both are ends of literals (I4)
    return _is_ahead(joined, border)


def may_reach(text: str) -> bool:
    """Return whether the end of ``text`` could be markup by mere letters that stand after it."""
    return _AHEAD.search(text, max(len(text) - EDGE_CHARS, 0)) is not None


def _is_ahead(joined: str, border: int) -> bool:
    """Whether a sign before ``border`` is markup by what stands after it only, as the ampersand of a reference."""
    sign = _AHEAD.search(joined, max(border - EDGE_CHARS, 0), border)
    if sign is None or _DANGER.match(joined, sign.start()) is None:
        return False
    return _DANGER.match(joined, sign.start(), border) is None


def balance_quotes(text: str) -> str:
    """``text`` of ours as a piece (I4).  An odd number of double quotes at its end has one that is the author's."""
    if (len(text) - len(text.rstrip('"'))) % 2:
        text = text[:-1] + literal('"')
    return literal('"') + text[1:] if (len(text) - len(text.lstrip('"'))) % 2 else text


def cell_text(draft: Draft, text: str) -> str:
    """Guard ``text`` as the content of a cell: its begin is not read as attributes of the cell."""
    return draft.guarded(text) if draft.edges(text)[0][:1] in ("(", "{") else text


# Places of a page (``embedded``): the first mark of a note and the note lead to each other.
_PLACE: Final = "s-"


def note_mark(number: int, *, is_first: bool) -> str:
    place = f'id="use_{number}" ' if is_first else ""
    return f'""<sup><a {place}href="#{_PLACE}note_{number}">[{number}]</a></sup>""'


def note_place(number: int, *, is_used: bool) -> str:
    """Return the link after the text of a note, which leads back."""
    return f'""<a id="note_{number}" href="#{_PLACE}use_{number}">↩</a>""' if is_used else ""


def code_block(text: str, language: str = "") -> str:
    text = text.strip("\n")
    if not text.strip():
        return ""
    if "%%" in text:  # would end the block
        return preformatted(text)
    return f"%%({language})\n{text}\n%%" if language else f"%%\n{text}\n%%"


def preformatted(text: str) -> str:
    """Return the same for where lines of their own cannot be had."""
    return '""<pre>' + entities(text).replace("\n", "&#10;") + '</pre>""'
