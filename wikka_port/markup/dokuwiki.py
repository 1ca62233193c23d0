"""(pure, fuzzed) From DokuWiki's markup to Markdown: headings, lists, tables, quotes, code, paragraphs.

    ====== Heading ======      level 1 with six signs, 5 with two
      * item    - item         two blanks for each level          > quote    >> deeper
    ^ head ^    | cell |       ``:::`` joins a cell with the one above, an empty one (``||``) with the one before
    <code lang file>  <file>   and lines that begin with two blanks: code
    <nowiki>  %%text%%         text as it is                      ----  a rule

HTML and PHP are shown as code, as DokuWiki does where they are off.  Markdown has no joined cells: they become empty
cells, and ``lost`` says so.  Everything is read line by line, after code and text without markup were taken out.

Knows nothing of pages and files beside the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from wikka_port.markup import markdown_writing
from wikka_port.markup.dokuwiki_inline import MARK, Inline, Part, Surroundings
from wikka_port.markup.tokens import CodeBlock

_TAKEN: Final = re.compile(
    r"<(?P<tag>code|file)\b(?P<given>[^<>\n]*)>(?P<code>.*?)</(?P=tag)>"
    r"|<(?P<html>html|HTML|php|PHP)>(?P<source>.*?)</(?P=html)>"
    r"|<nowiki>(?P<nowiki>.*?)</nowiki>"
    r"|%%(?P<plain>.+?)%%",
    re.DOTALL,
)
_BLOCK_PART: Final = re.compile(rf"{MARK}([0-9]+){MARK}")
_HEADING: Final = re.compile(r"[ \t]*(={2,})(?!=)([^\n]+?)(?<!=)(={2,})[ \t]*")
_ITEM: Final = re.compile(r"((?: {2}|\t)[ \t]*)([*\-])[ \t]*(.*)")
_INDENTED: Final = re.compile(r"(?: {2}|\t)(.*)")
_QUOTE: Final = re.compile(r"(>+)[ \t]?(.*)")
_RULE: Final = re.compile(r"[ \t]*-{4,}[ \t]*")
_ROW: Final = re.compile(r"[ \t]*[|^]")
_IN_ROW: Final = re.compile(rf"\[\[.*?\]\]|\{{\{{.*?\}}\}}|\(\(.*?\)\)|''.*?''|{MARK}[0-9]+{MARK}|(?P<bar>[|^])")
_OVER_LINES: Final = re.compile(
    r"\[\[[^\[\]\n]*(?:\n(?=[^\n]*\S)[^\[\]\n]*){1,5}\]\]|\{\{[^{}\n]*(?:\n(?=[^\n]*\S)[^{}\n]*){1,5}\}\}"
)
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9_+#\-]{1,30}")
_LEVELS_MAX: Final = 12
_CELLS_MAX: Final = 100  # of a row; more are text


class FromDokuWiki(NamedTuple):
    text: str
    lost: tuple[str, ...]  # what Markdown or this wiki cannot express, each once


def from_dokuwiki(text: str, around: Surroundings) -> FromDokuWiki:
    """Convert a text; never raises.  O(len(text))."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace(MARK, "")
    parts: list[Part] = []
    writer = _Writer(Inline(around, parts), parts)
    taken = _TAKEN.sub(lambda found: _take(found, parts, writer.lost), plain)
    return FromDokuWiki(writer.write(_OVER_LINES.sub(_in_one_line, taken)), tuple(writer.lost))


def _in_one_line(found: re.Match[str]) -> str:
    """Join a link or a picture that was typed over several lines, unless it begins in a line of code."""
    begin = found.string.rfind("\n", 0, found.start()) + 1
    line = found.string[begin : found.start() + 2]
    return found[0] if _INDENTED.match(line) and not _ITEM.match(line) else " ".join(found[0].split())


def _take(found: re.Match[str], parts: list[Part], lost: dict[str, None]) -> str:
    """Take a part without markup out of the text, and return its place holder."""
    if found["tag"]:
        words = found["given"].split()
        language = words[0].lower() if words and words[0] != "-" and _LANGUAGE.fullmatch(words[0]) else ""
        if len(words) > 1 and not words[1].startswith("["):
            lost["names of files above code"] = None
        parts.append(Part("code", language, found["code"], found[0]))
    elif found["html"]:
        lost["HTML and PHP: they are shown as code"] = None
        parts.append(Part("code", found["html"].lower(), found["source"], found[0]))
    else:
        plain = found["nowiki"] if found["nowiki"] is not None else found["plain"]
        parts.append(Part("text", "", plain, found[0]))
    return f"{MARK}{len(parts) - 1}{MARK}"


class _Writer:
    __slots__ = ("_inline", "_lines", "_parts", "lost")

    def __init__(self, inline: Inline, parts: list[Part]) -> None:
        self.lost = inline.lost
        self._inline = inline
        self._parts = parts
        self._lines: list[str] = []

    def write(self, text: str) -> str:
        lines = text.split("\n")
        at = 0
        while at < len(lines):
            at = self._block(lines, at)
        for number, note in enumerate(self._inline.notes, 1):
            self._blank() if number == 1 else None
            self._lines.append(f"[^{number}]: {note}")
        return "\n".join(self._lines).strip("\n") + "\n" if any(self._lines) else ""

    def _blank(self) -> None:
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def _block(self, lines: list[str], at: int) -> int:
        """Write the block that begins with line ``at``, and return the line after it."""
        line = lines[at]
        if not line.strip():
            self._blank()
            return at + 1
        heading = _HEADING.fullmatch(line)
        if heading:
            self._blank()
            words = self._inline.convert(heading[2].strip())
            self._lines += [f"{'#' * max(1, 7 - min(len(heading[1]), 6))} {' '.join(words.split())}", ""]
            return at + 1
        if _RULE.fullmatch(line):
            self._blank()
            self._lines += ["***", ""]
            return at + 1
        for begins, write in ((_ITEM, self._list), (_INDENTED, self._code), (_ROW, self._table), (_QUOTE, self._quote)):
            if begins.match(line):
                end = _end_of(lines, at, begins)
                self._blank()
                write(lines[at:end])
                self._blank()
                return end
        end = at + 1
        while end < len(lines) and not _begins_block(lines[end]):
            end += 1
        self._paragraph("\n".join(lines[at:end]))
        return end

    def _paragraph(self, text: str) -> None:
        for number, piece in enumerate(self._pieces(text)):
            if isinstance(piece, str):
                words = self._inline.convert(piece).strip()
                if words:
                    if number:
                        self._blank()
                    self._lines += words.split("\n")
            else:
                self._blank()
                self._lines += [*self._fence(piece), ""]
        self._lines[-1:] = [self._lines[-1].rstrip()] if self._lines else []

    def _pieces(self, text: str) -> Iterator[str | int]:
        """Yield the texts between blocks of code, and the numbers of these."""
        done = 0
        for found in _BLOCK_PART.finditer(text):
            if self._parts[int(found[1])].kind == "code":
                yield text[done : found.start()]
                yield int(found[1])
                done = found.end()
        yield text[done:]

    def _fence(self, number: int) -> list[str]:
        part = self._parts[number]
        return markdown_writing.fence(CodeBlock(part.content.strip("\n"), part.language))

    # --- blocks of many lines -----------------------------------------------------------------------

    def _code(self, lines: list[str]) -> None:
        bare = [line[2:] if line.startswith("  ") else line[1:] for line in lines]
        self._lines += markdown_writing.fence(CodeBlock(self._typed("\n".join(bare)), ""))

    def _typed(self, text: str) -> str:
        """Return a text with the parts that were taken out of it put back as they were typed."""
        return _BLOCK_PART.sub(lambda found: self._parts[int(found[1])].typed, text)

    def _list(self, lines: list[str]) -> None:
        levels: list[int] = []  # widths of the open levels
        for line in lines:
            found = _ITEM.fullmatch(line)
            if found is None:
                continue
            width = len(found[1].replace("\t", "  "))
            while levels and width < levels[-1]:
                levels.pop()
            if (not levels or width > levels[-1]) and len(levels) < _LEVELS_MAX:
                levels.append(width)
            indent = "    " * (len(levels) - 1)
            pieces = list(self._pieces(found[3]))
            words = " ".join(self._inline.convert(str(pieces[0])).split())
            self._lines.append(f"{indent}{'-' if found[2] == '*' else '1.'} {words}".rstrip())
            for piece in pieces[1:]:
                inner = self._fence(piece) if isinstance(piece, int) else [self._inline.convert(piece).strip()]
                self._lines += [f"{indent}    {one}".rstrip() for one in inner if one or isinstance(piece, int)]

    def _quote(self, lines: list[str]) -> None:
        depth = 0
        for line in lines:
            found = _QUOTE.fullmatch(line)
            if found is None:
                continue
            now = min(len(found[1]), _LEVELS_MAX)
            if depth and now == depth:
                self._lines[-1] += "<br>"
            elif depth:
                self._lines.append(">" * min(depth, now))
            depth = now
            words = " ".join(self._inline.convert(found[2]).split())
            self._lines.append(f"{'>' * now} {words}".rstrip())

    def _table(self, lines: list[str]) -> None:
        rows = [_cells(line.strip()) for line in lines]
        width = max((len(row) for row in rows), default=0)
        if not width:
            return
        first_is_head = all(is_head or not text.strip() for is_head, text in rows[0]) and any(h for h, _ in rows[0])
        sides = [_side_of(rows[1 if first_is_head else 0 :], column) for column in range(width)]
        if not first_is_head:
            self._lines.append(_row([""] * width))
        for number, row in enumerate(rows):
            is_first = first_is_head and number == 0
            written = [self._cell(is_head and not is_first, text) for is_head, text in row]
            self._lines.append(_row([*written, *[""] * (width - len(written))]))
            if number == 0:
                ruler = _row(sides)
                self._lines.insert(len(self._lines) if first_is_head else len(self._lines) - 1, ruler)

    def _cell(self, is_head: bool, text: str) -> str:
        if text == "":
            self.lost["joined cells of tables: they are empty cells"] = None
            return ""
        if text.strip() == ":::":
            self.lost["joined cells of tables: they are empty cells"] = None
            return ""
        words = self._inline.convert(text.strip(), in_cell=True).strip()
        return f"**{words}**" if is_head and words and "**" not in words else words


def _begins_block(line: str) -> bool:
    if not line.strip():
        return True
    return any(one.match(line) for one in (_INDENTED, _ROW, _QUOTE)) or any(
        one.fullmatch(line) for one in (_HEADING, _RULE)
    )


def _end_of(lines: list[str], at: int, begins: re.Pattern[str]) -> int:
    end = at + 1
    while end < len(lines) and begins.match(lines[end]) and not (begins is _INDENTED and _ITEM.match(lines[end])):
        end += 1
    return end


def _cells(line: str) -> list[tuple[bool, str]]:
    """Return the cells of a row: whether each is a heading, and its text with its blanks."""
    found: list[tuple[bool, str]] = []
    bars = [(one["bar"], one.start()) for one in _IN_ROW.finditer(line) if one["bar"]]
    for (bar, place), (_, end) in zip(bars, [*bars[1:], ("", len(line))], strict=True):
        text = line[place + 1 : end]
        if end == len(line) and not text.strip() and len(bars) > 1:
            break  # behind the last bar
        if len(found) < _CELLS_MAX:
            found.append((bar == "^", text))
        else:
            found[-1] = (found[-1][0], found[-1][1] + bar + text)
    return found


def _side_of(rows: list[list[tuple[bool, str]]], column: int) -> str:
    """Return the ruler of a column: the side on which all its cells stand."""
    texts = [row[column][1] for row in rows if column < len(row) and row[column][1].strip()]
    before = [text.startswith("  ") for text in texts]
    after = [text.endswith("  ") for text in texts]
    if texts and all(before):
        return ":---:" if all(after) else "---:" if not any(after) else "---"
    return "---"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
