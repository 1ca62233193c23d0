"""(pure) The state of the conversion of one MediaWiki text: finished pieces, links, notes, counts.

A converted construct becomes a Piece, and a mark, STX number ETX, replaces it in the text.
Neither character can come from a dump (XML forbids them), and ``clean`` removes them from
any other text, so a mark is never the author's.

Invariants:
    I1. A mark is in one place only, so the expanded text is linear in the pieces.
    I2. ``inline`` and ``plain`` of a piece have no line break; ``plain`` has no mark.
    I3. The author's text goes into a piece only through ``literal`` or ``escape``.
    I4. A piece never begins or ends with a double quote that the author wrote.  Other characters may; so code that puts
        a piece beside a text or a piece guards the text with regard to its neighbours (``Draft.edges``,
        ``escape_between``, ``JOIN``).

Knows nothing of MediaWiki's syntax.
"""

from __future__ import annotations

import html
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from wikka_port.limits import IMPORTED_INCLUDES_MAX
from wikka_port.markup.mediawiki_titles import Dialect

PLAIN_CHARS_MAX: Final = 500  # of a label; bounds what nested labels can add up to
EXPANDED_CHARS_MAX: Final = 400_000  # of one page, that templates add
CALLS_TRIED_MAX: Final = 50  # of one page, that are converted to see whether an include shows the same
GROUPS_MAX: Final = 100_000  # of one page: calls, parameters and links that are read to evaluate its functions
NESTED_MAX: Final = 50  # of these, within each other
READ_CHARS_MAX: Final = 4_000_000  # of one page: of values that are read to decide its functions
MARK: Final = re.compile("\x02([0-9]{1,9})\x03")
MARK_RUN: Final = re.compile("(?:\x02[0-9]{1,9}\x03[ \t]*+)++")

_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ENTITY: Final = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# Sequences that have a meaning in Wikka markup.  A sequence too many does no harm: its literal shows the same text.
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
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*+>|__[^\W_]++__")
_REACH: Final = 4  # characters of markup before its last one
_AHEAD: Final = re.compile(r"(?:&\#?\w*+|<\w*+|:)\Z")  # markup only together with the text after it
EDGE_CHARS: Final = 40  # of a neighbour; longer than any markup that two texts can make together
JOIN: Final = '""""'  # an empty literal: the texts on its two sides are not read together


@dataclass(frozen=True, slots=True)
class Piece:
    inline: str  # in running text, a list item or a cell
    plain: str = ""  # in a label, where no markup is read
    page: str = ""  # the linked page, if it is a link
    block: str | None = None  # its form if it fills lines; None: the same as ``inline``; "": nothing
    typed: str = ""  # the wikitext of a call; its closed constructs are marks


@dataclass(frozen=True, slots=True)
class Note:
    content: str | None = None  # None: used, not defined (yet)
    name: str = ""
    marks: tuple[int, ...] = ()  # the numbers of the pieces that refer to it


@dataclass(slots=True)
class Expansion:
    """How far the expansions of templates have gone (``mediawiki_expansion``), and what "now" is in them."""

    left: int = EXPANDED_CHARS_MAX
    depth: int = 0
    calls_left: int = CALLS_TRIED_MAX
    includes_left: int = IMPORTED_INCLUDES_MAX
    groups_left: int = GROUPS_MAX
    nested: int = 0
    read_left: int = READ_CHARS_MAX
    now: datetime | None = None  # the time of the revision; None: unknown

    def enter_group(self) -> bool:
        """Count a group that is read, and return whether it is within the bounds; ``leave_group`` follows anyhow."""
        self.groups_left -= 1
        self.nested += 1
        return self.groups_left >= 0 and self.nested <= NESTED_MAX

    def leave_group(self) -> None:
        self.nested -= 1

    def spend_read(self, chars: int) -> bool:
        """Count characters of a value that decides a function, and return whether they are within the bound."""
        self.read_left -= chars
        return self.read_left >= 0

    def enter_template(self) -> None:
        self.depth += 1

    def leave_template(self) -> None:
        self.depth -= 1

    def may_include(self) -> bool:
        """Count a call that may become an include, and return whether another one may, within the bounds."""
        self.calls_left -= 1
        return self.calls_left >= 0 and self.includes_left > 0 and self.depth == 0

    def note_include(self) -> None:
        self.includes_left -= 1

    def spend(self, chars: int) -> bool:
        """Count characters, and return whether they are within the bound."""
        self.left -= chars
        return self.left >= 0

    def within(self, scan: Callable[[Draft, str], str], draft: Draft, text: str) -> str:
        """Scan the text of a template, one level deeper."""
        self.enter_template()
        scanned = scan(draft, text)
        self.leave_template()
        return scanned


@dataclass(slots=True)
class Draft:
    """The state of one conversion; lives as long as the call of ``convert``."""

    dialect: Dialect
    title: str
    pieces: list[Piece] = field(default_factory=list)
    ends: list[tuple[str, str]] = field(default_factory=list)  # of the pieces: first and last EDGE_CHARS
    links: dict[str, None] = field(default_factory=dict)  # a set that keeps its order; full after ``expand``
    categories: dict[str, str] = field(default_factory=dict)  # page -> label
    languages: dict[str, str] = field(default_factory=dict)  # page in another language -> link; "": address unknown
    notes: list[Note] = field(default_factory=list)
    note_numbers: dict[str, int] = field(default_factory=dict)
    notes_mark: str | None = None  # the mark where the author wants the notes
    sources: list[int] = field(default_factory=list)  # pieces of calls of unknown templates, in the order of their ends
    unknown: dict[str, bool] = field(default_factory=dict)  # mark of such a call -> whether it has words of its own
    expansion: Expansion = field(default_factory=Expansion)
    converted: Counter[str] = field(default_factory=Counter)
    unconverted: Counter[str] = field(default_factory=Counter)

    def mark(self, piece: Piece) -> str:
        self.ends.append(self.edges(piece.inline))
        self.pieces.append(piece)
        return f"\x02{len(self.pieces) - 1}\x03"

    def place_notes(self) -> str:
        """Return the mark for the line in which the author wants the notes."""
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
        marks = (*note.marks, len(self.pieces)) if is_use else note.marks
        self.notes[number - 1] = Note(known, name, marks)
        return self.mark(Piece(note_mark(number, is_first=is_use and not note.marks)))

    def edges(self, text: str) -> tuple[str, str]:
        """Return the first and the last EDGE_CHARS of ``text`` with its marks expanded; a short text is both."""
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
        """Guard ``text`` so that its first character has no special meaning in a list item, a cell or a heading."""
        if not text:
            return text
        return JOIN + text if text[0] == "\x02" else literal(text[0]) + text[1:]

    def lead(self, line: str) -> int:
        """Return the number of characters at the beginning of ``line`` that are marks of unknown calls."""
        end = 0
        while (found := MARK.match(line, end)) and found[0] in self.unknown:
            end = found.end()
        return end

    def without_trail(self, line: str) -> str:
        """Return ``line`` without blanks, and without marks of unknown calls, at its end."""
        line = line.rstrip(" \t")
        while line.endswith("\x03") and line[line.rindex("\x02") :] in self.unknown:
            line = line[: line.rindex("\x02")].rstrip(" \t")
        return line

    def blocks_of(self, line: str) -> list[str] | None:
        """Return the blocks of a line that has only marks of pieces with blocks; None for any other line."""
        if not line.startswith("\x02") or MARK.sub("", line).strip():
            return None
        blocks = [self.pieces[int(match[1])].block for match in MARK.finditer(line)]
        known = [block for block in blocks if block is not None]
        return known if len(known) == len(blocks) else None

    def is_only_unknown(self, line: str) -> bool:
        """Return whether a line has nothing but tags and marks of unknown calls and of what shows nothing."""
        if "\x02" not in line or _TAG.sub("", MARK.sub("", line)).strip():
            return False
        return all(mark[0] in self.unknown or self.pieces[int(mark[1])].block == "" for mark in MARK.finditer(line))

    def reach(self, text: str, reached: set[int]) -> None:
        """Add the numbers of the marks in ``text``, and in the pieces in their places, to ``reached``."""
        waiting = [text]
        while waiting:
            for number in map(int, MARK.findall(waiting.pop())):
                if number not in reached:
                    reached.add(number)
                    waiting.append(self.pieces[number].inline)

    def typed(self, number: int, reached: set[int], listed: set[int]) -> str:
        """Return the wikitext of a call, with that of the calls in it; all their numbers are added to ``listed``.

        The mark of anything else stays if it stands nowhere else, and is added to ``reached``; if it is there, its
        plain text stays.
        """
        out: list[str] = []
        levels = [_split(f"\x02{number}\x03")]
        while levels:
            for part in levels[-1]:
                if isinstance(part, str):
                    out.append(part)
                    continue
                piece = self.pieces[part]
                if piece.typed and part not in listed:
                    listed.add(part)
                    levels.append(_split(piece.typed))
                    break
                if part in reached or part in listed:
                    out.append(piece.plain)
                else:
                    out.append(f"\x02{part}\x03")
                    self.reach(out[-1], reached)
            else:
                levels.pop()
        return "".join(out)

    def replace(self, number: int, piece: Piece) -> None:
        """Put another piece in the place of a mark; its neighbours are guarded with regard to the one before."""
        self.pieces[number] = piece

    def marks_in(self, text: str) -> Iterator[int]:
        """Yield the numbers of the marks in ``text`` and in their pieces, in the order of the expanded text."""
        levels = [iter(MARK.findall(text))]
        while levels:
            number = next(levels[-1], None)
            if number is None:
                levels.pop()
                continue
            yield int(number)
            levels.append(iter(MARK.findall(self.pieces[int(number)].inline)))

    def plain(self, text: str) -> str:
        """Return ``text`` with its marks replaced by plain text, cut to PLAIN_CHARS_MAX."""
        plain = MARK.sub(lambda match: self.pieces[int(match[1])].plain, text)
        return plain if len(plain) <= PLAIN_CHARS_MAX else plain[: PLAIN_CHARS_MAX - 1] + "…"

    def expand(self, text: str, *, is_final: bool = True) -> str:
        """Replace every mark by its piece, and collect the links in the result if it is the page's.

        This is not recursive, since pieces may be nested as deep as the text is long.
        """
        out: list[str] = []
        levels = [_split(text)]
        while levels:
            for part in levels[-1]:
                if isinstance(part, int):
                    piece = self.pieces[part]
                    if piece.page and is_final:
                        self.links.setdefault(piece.page)
                    if piece.inline.startswith("[^") and out and out[-1].endswith("["):
                        out.append(JOIN)  # else the bracket before and that of the note begin a link
                    levels.append(_split(piece.inline))
                    break
                if part:
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
    """Decode entities; an entity of a line break or a control character becomes a blank."""
    return _ENTITY.sub(_decoded, text) if "&" in text else text


def _decoded(match: re.Match[str]) -> str:
    decoded = html.unescape(match[0])
    return " " if decoded < " " or "\x7f" <= decoded < "\xa0" else decoded


def collapse(text: str) -> str:
    return _SPACE.sub(" ", text)


def entities(text: str) -> str:
    """Return ``text`` as HTML that can be put between pairs of double quotes."""
    if '"' in text and ('""' in text or text[0] == '"' or text[-1] == '"'):
        return html.escape(text, quote=False).replace('"', "&quot;")
    return html.escape(text, quote=False)


def literal(text: str) -> str:
    """Return markup of one line that shows ``text`` as it is."""
    text = collapse(text)
    return f'""{entities(text)}""' if text.strip() else text[:1]


def mono(text: str) -> str:
    return f"##{literal(text)}##" if text.strip() else ""


def escape(text: str, *, cell: bool = False) -> str:
    """Return decoded running text in which sequences that look like Wikka markup are literals."""
    return (_CELL_DANGER if cell else _DANGER).sub(lambda match: literal(match[0]), text)


def escape_between(
    before: str, text: str, after: str, *, cell: bool = False, marks: Sequence[tuple[int, str]] = ()
) -> str:
    """Escape ``text`` as ``escape`` does, and also so that it makes no markup together with its neighbours.

    ``marks`` are empty marks, each with the number of characters before it.  They are put back in their places, except
    that a mark does not separate the characters of a sequence.
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
    """Return whether a preceding text could be markup together with the beginning of ``text``."""
    return text[:1] in _SIGNS or text[1:2] in ("|", ":")


def is_open(text: str) -> bool:
    """Return whether the end of ``text`` could be markup together with a following text."""
    return _OPEN_END.search(text, max(len(text) - EDGE_CHARS, 0)) is not None


def _reach(danger: re.Pattern[str], joined: str, border: int) -> int:
    """Return the end of markup that begins before ``border``, or ``border`` if none reaches beyond it."""
    found = (danger.match(joined, begin) for begin in range(max(border - _REACH, 0), border))
    return max((match.end() for match in found if match is not None), default=border)


def joins(before: str, after: str) -> bool:
    """Return whether the end of one text and the beginning of another are markup together."""
    joined, border = before + after, len(before)
    if _reach(_DANGER, joined, border) > border:
        return (before[-1:], after[:1]) != ('"', '"')  # both are ends of literals (I4)
    return _is_ahead(joined, border)


def may_reach(text: str) -> bool:
    """Return whether the end of ``text`` could be markup together with following letters."""
    return _AHEAD.search(text, max(len(text) - EDGE_CHARS, 0)) is not None


def _is_ahead(joined: str, border: int) -> bool:
    """Return whether a sign before ``border`` is markup only with the text after it, like a reference's ampersand."""
    sign = _AHEAD.search(joined, max(border - EDGE_CHARS, 0), border)
    if sign is None or _DANGER.match(joined, sign.start()) is None:
        return False
    return _DANGER.match(joined, sign.start(), border) is None


def balance_quotes(text: str) -> str:
    """Return converted text as a piece (I4).

    If the number of double quotes at either end is odd, one of them is the author's and becomes a literal.
    """
    if (len(text) - len(text.rstrip('"'))) % 2:
        text = text[:-1] + literal('"')
    return literal('"') + text[1:] if (len(text) - len(text.lstrip('"'))) % 2 else text


def cell_text(draft: Draft, text: str) -> str:
    """Guard ``text`` as the content of a cell, so that its beginning is not read as attributes of the cell."""
    return draft.guarded(text) if draft.edges(text)[0][:1] in ("(", "{") else text


# Anchors (``embedded``) by which the first mark of a note and the note link to each other.
_PLACE: Final = "s-"


def note_mark(number: int, *, is_first: bool) -> str:
    place = f'id="use_{number}" ' if is_first else ""
    return f'""<sup><a {place}href="#{_PLACE}note_{number}">[{number}]</a></sup>""'


def note_place(number: int, *, is_used: bool) -> str:
    """Return the link after the text of a note, back to its first mark."""
    return f'""<a id="note_{number}" href="#{_PLACE}use_{number}">↩</a>""' if is_used else ""


def code_block(text: str, language: str = "") -> str:
    text = text.strip("\n")
    if not text.strip():
        return ""
    if "%%" in text:  # would end the block
        return preformatted(text)
    return f"%%({language})\n{text}\n%%" if language else f"%%\n{text}\n%%"


def preformatted(text: str) -> str:
    """Return preformatted text for places that cannot have lines of their own."""
    return '""<pre>' + entities(text).replace("\n", "&#10;") + '</pre>""'
