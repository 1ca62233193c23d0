"""(pure) HTML of blocks in a MediaWiki text, rewritten as wikitext: lists, definitions, tables, quotations, paragraphs.

    <ul> <ol> <li>              lines that begin with * or #
    <dl> <dt> <dd>              lines that begin with ; or :
    <blockquote>                lines that begin with :
    <table> <tr> <td> <th>      {| |- | ! |}
    <p>                         an empty line

An element counts if it is closed; the tags of any other are left for ``mediawiki_inline``, which drops them.  The text
of an item is one line, as HTML reads it.

Invariants:
    I1. No word is lost, and none is moved.
    I2. The time is linear: a list of any depth has markers of DEPTH_MAX characters at most.

Runs after ``mediawiki_scan``, so tags in code and in templates are marks already.  Knows nothing of Wikka markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wikka_port.markup.mediawiki_inline import KNOWN_TAGS
from wikka_port.markup.mediawiki_pieces import Draft, Piece, literal

DEPTH_MAX: Final = 9  # of lists
_CONTAINERS: Final = {"ul": "*", "ol": "#", "dl": ":", "blockquote": ":", "table": ""}
_PARTS: Final = frozenset(("li", "dt", "dd", "tr", "td", "th", "caption", "tbody", "thead", "tfoot", "p"))
_TAG: Final = re.compile(
    rf"<(?P<close>/?)(?P<name>{'|'.join((*_CONTAINERS, *sorted(_PARTS, key=len, reverse=True)))})"
    r"(?P<attributes>(?:[\s/][^<>]*+)?)>",
    re.IGNORECASE,
)
_OVER_LINES: Final = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*+)(?=[\s/])[^<>\n]*+\n[^<>]*+>")
_SIGNS: Final = re.compile(r"[ \t]*([*#:]+)")
_KEEPS_LINES: Final = re.compile(r"\n[ \t]*(?:[|!=]|\{\|)")  # lines of a table or headings within an item
_LISTED: Final = re.compile(r"[*#:;]")
_CELL_SIGNS: Final = re.compile(r"\||!!|(?<=\n)[ \t]*!")
_EMPTY_LINES: Final = re.compile(r"\n[ \t]*\n\s*")


def as_wikitext(draft: Draft, text: str) -> str:
    """Return a scanned text with HTML of blocks as wikitext."""
    if "<" not in text:
        return text
    text = _OVER_LINES.sub(_in_one_line, text)
    tags = list(_TAG.finditer(text))
    return _Rewriting(draft, _closed(tags)).run(text, tags) if tags else text


def _in_one_line(tag: re.Match[str]) -> str:
    return " ".join(tag[0].split("\n")) if tag[1].lower() in KNOWN_TAGS else tag[0]


def _closed(tags: Sequence[re.Match[str]]) -> set[int]:
    """Return the positions of the tags of containers that are closed, and of their ends."""
    closed: set[int] = set()
    opened: list[tuple[str, int]] = []
    depths: dict[str, int] = {}  # how many of a name are open
    for tag in tags:
        name = tag["name"].lower()
        if name not in _CONTAINERS or tag["attributes"].endswith("/"):
            continue
        if not tag["close"]:
            opened.append((name, tag.start()))
            depths[name] = depths.get(name, 0) + 1
        elif depths.get(name):
            while opened:
                other, begin = opened.pop()
                depths[other] -= 1
                if other == name:
                    closed |= {begin, tag.start()}
                    break
    return closed


@dataclass(slots=True)
class _Open:
    name: str
    prefix: str  # markers of its lines; "" in a table
    in_item: bool = False  # a line of it has begun

    def item(self, *, is_begun: bool) -> None:
        self.in_item = is_begun


class _Rewriting:
    def __init__(self, draft: Draft, closed: set[int]) -> None:
        self._draft = draft
        self._closed = closed
        self._open: list[_Open] = []
        self._out: list[str] = []
        self._line = ""  # the beginning of the present line, outside of containers
        self._row = ""  # the sign of a line of cells that a break has divided
        self._is_fresh = False  # a break was made: blanks before the next text would make it preformatted
        self._cells = 0  # open cells of tables

    def run(self, text: str, tags: Sequence[re.Match[str]]) -> str:
        end = 0
        for tag in tags:
            self._text(text[end : tag.start()])
            end = tag.end()
            self._tag(tag)
        self._text(text[end:])
        return "".join(self._out)

    def _text(self, text: str) -> None:
        inner = self._open[-1] if self._open else None
        if inner is None:
            self._outside(text)
        elif inner.name == "table":
            self._out.append(text if "{|" in text or not self._cells else self._guarded(text))
        elif text.strip():
            for line in self._lines(text):
                self._out.append(line)
            inner.item(is_begun=True)

    def _outside(self, text: str) -> None:
        """Add text outside of containers; cells after a break in their line get lines of their own."""
        if self._is_fresh and text:
            text = text.lstrip(" \t")
            self._is_fresh = not text
        if self._row:
            head, newline, rest = text.partition("\n")
            cells = head.replace("!!", "||") if self._row == "!" else head
            text = cells.replace("||", f"\n{self._row}") + newline + rest
            self._row = "" if newline else self._row
        last = text.rpartition("\n")[2]
        self._line = last if "\n" in text or not self._line.strip() else self._line
        self._out.append(text)

    def _break(self, lines: str) -> None:
        """Add the ends of lines."""
        sign = self._line.lstrip(" \t")[:1]
        self._row = sign if sign in ("|", "!") else self._row
        self._out.append(lines)
        self._is_fresh, self._line = True, ""

    def _guarded(self, text: str) -> str:
        """Guard signs that would begin another cell."""
        return _CELL_SIGNS.sub(lambda sign: self._draft.mark(Piece(literal(sign[0]), sign[0])), text)

    def _lines(self, text: str) -> Iterator[str]:
        """Yield the text of a list or quotation, with the markers of its lines."""
        inner = self._open[-1]
        if _KEEPS_LINES.search(text):
            yield text
            return
        if any(one.name == "table" for one in self._open[-2:]):
            text = text if "{|" in text else self._guarded(text)
        if inner.in_item and inner.name != "blockquote":
            yield " ".join(text.split("\n"))
            return
        for number, paragraph in enumerate(_EMPTY_LINES.split(text.strip())):
            for at, line in enumerate(paragraph.split("\n")):
                bare = line.strip()
                begins = at == 0 and (number > 0 or not inner.in_item)
                if inner.name == "blockquote" and _LISTED.match(bare):
                    yield f"\n{inner.prefix}{bare}"
                else:
                    yield f"\n{inner.prefix} {bare}" if begins else f" {bare}"

    def _tag(self, tag: re.Match[str]) -> None:
        name, is_end = tag["name"].lower(), bool(tag["close"])
        if name in _CONTAINERS:
            if tag.start() not in self._closed:
                self._out.append(tag[0])
            elif is_end:
                self._end()
            else:
                self._begin(name, tag["attributes"])
            return
        inner = self._open[-1] if self._open else None
        if inner is not None and name in ("li", "dt", "dd") and inner.name in ("ul", "ol", "dl"):
            if not is_end:
                self._out.append(f"\n{self._marker(inner, name)} ")
            inner.item(is_begun=not is_end)
        elif inner is not None and inner.name == "table" and name not in ("li", "dt", "dd", "p"):
            self._cell(name, tag["attributes"], is_end=is_end)
        elif name == "li" and inner is None:
            self._break("\n" if is_end else "\n* ")
        elif name == "p":
            self._paragraph(inner, is_end=is_end)
        else:
            self._out.append(tag[0])

    def _marker(self, inner: _Open, name: str) -> str:
        return inner.prefix[:-1] + (";" if name == "dt" else inner.prefix[-1])

    def _paragraph(self, inner: _Open | None, *, is_end: bool) -> None:
        if inner is None:
            if _SIGNS.match(self._line):
                self._out.append(" " if is_end else "<br>")
            else:
                self._break("\n\n")
        elif inner.name == "blockquote":
            inner.item(is_begun=False)
        else:
            self._out.append("\n\n" if inner.name == "table" else " ")

    def _begin(self, name: str, attributes: str) -> None:
        self._draft.converted["html"] += 1
        if name == "table":
            if not self._open:
                self._break("")
            self._out.append(f"\n{{| {' '.join(attributes.replace('|', ' ').split())}\n")
            self._open.append(_Open(name, ""))
            self._cells = 0
            return
        found = _SIGNS.match(self._line)
        outer = self._open[-1].prefix if self._open else found[1] if found else ""
        if not self._open:
            self._break("")
        self._open.append(_Open(name, outer[: DEPTH_MAX - 1] + _CONTAINERS[name]))

    def _end(self) -> None:
        ended = self._open.pop()
        inner = self._open[-1] if self._open else None
        if ended.name == "table":
            self._cells = 1 if inner is not None and inner.name == "table" else 0
        end = "\n|}\n" if ended.name == "table" else "\n"
        if inner is None:
            self._break(end)
        elif ended.name == "table" or inner.name == "table":
            self._out.append(end)
        elif inner.name != "blockquote" and inner.in_item:
            # Text after an inner list goes on with the outer item, which only a line of its own can say.
            inner.item(is_begun=False)

    def _cell(self, name: str, attributes: str, *, is_end: bool) -> None:
        sign = {"td": "|", "th": "!", "caption": "|+"}.get(name)
        if sign is None:
            if name == "tr" and not is_end:
                self._out.append(f"\n|- {' '.join(attributes.replace('|', ' ').split())}\n")
            self._cells = 0
        elif is_end:
            self._cells = 0
        else:
            given = " ".join(attributes.replace("|", " ").split())
            self._out.append(f"\n{sign} {given} | " if given and "=" in given else f"\n{sign} ")
            self._cells = 1
