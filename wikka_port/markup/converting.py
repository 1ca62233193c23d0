"""(pure) From Wikka markup to Markdown: the converted text, and a list of what Markdown cannot express.

The page's tokens are written as Markdown, line by line; parts for including pages (``includes``) stay such.  Then
links, headings and words of the two texts are compared, and differences that no rule below expects are reported as
well, so that nothing is lost silently.

Knows nothing of pages and forms; a person reads the result before it is saved (``handlers/edit``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from wikka_port.markup import lexer, markdown, markdown_writing
from wikka_port.markup.compiler import INLINE_ACTIONS
from wikka_port.markup.document import parse
from wikka_port.markup.formats import MARKDOWN, WIKKA
from wikka_port.markup.includes import has_parts, parts, written
from wikka_port.markup.links import page_names
from wikka_port.markup.tables import rows_of_call
from wikka_port.markup.tokens import (
    HEADING_END,
    NEWLINE,
    NOTE,
    NOTE_END,
    RULE,
    ActionCall,
    Cell,
    CodeBlock,
    Embedded,
    Float,
    HeadingStart,
    Image,
    Item,
    Mark,
    MindMap,
    Outside,
    PageLink,
    Rest,
    Toggle,
    Token,
)
from wikka_port.texts import N_, _

_EMPHASIS: Final = {"strong": "**", "em": "*", "s": "~~", "del": "~~"}
_LOST_TOGGLES: Final = {
    "u": N_("underlined text (it is plain now)"),
    "mark": N_("highlighted text (it is plain now)"),
    "ins": N_("text marked as added (it is plain now)"),
    "kbd": N_("keys (they are plain text now)"),
    "span": N_("centred text (it stands at the left now)"),
}
_TAG: Final = re.compile(r"<[^<>]{0,2000}>")
_WORD: Final = re.compile(r"\w+")


class Converted(NamedTuple):
    text: str
    lost: tuple[str, ...]  # what Markdown cannot express, each once


def to_markdown(text: str, *, autolink: bool = True, after: bool | None = None) -> Converted:
    """Convert a text; never raises.  O(len(text))."""
    if not has_parts(text, WIKKA):
        return _part_to_markdown(text, autolink, after)
    lost: dict[str, None] = {}
    out = []
    for kind, part in parts(text, WIKKA):
        made = _part_to_markdown(part, autolink, after)
        lost |= dict.fromkeys(made.lost)
        body = made.text.strip("\n")
        if kind == "includeonly":
            body = body.replace("-->", "--&gt;")
        out.append(written(kind, body, MARKDOWN) if body else "")
    return Converted("\n\n".join(filter(None, out)) + "\n", tuple(lost))


def _part_to_markdown(text: str, autolink: bool, after: bool | None) -> Converted:
    """Convert a text that is shown wherever its page is."""
    read = lexer.tokens(text, autolink=autolink)
    after = autolink if after is None else after
    writer = _Writer(after)
    out = writer.write(read)
    _compare(read, markdown.tokens(out, autolink=after), writer.lost)
    if [h.text for h in parse(text, autolink=autolink).headings] != [
        h.text for h in parse(out, autolink=after, markup=MARKDOWN).headings
    ]:
        writer.lost.setdefault(_("headings: some differ, please look them over"))
    return Converted(out, tuple(writer.lost))


def _compare(before: Sequence[Token], after: Sequence[Token], lost: dict[str, None]) -> None:
    if set(page_names(before)) != set(page_names(after)):
        lost.setdefault(_("links: some lead to other pages than before, please look them over"))
    if not lost and _words(before) != _words(after):
        lost.setdefault(_("words: some are shown in another way than before, please look them over"))


def _words(read: Sequence[Token]) -> list[str]:
    """Return the words that a reader sees, sorted, since the formats place footnotes differently."""
    said = []
    for token in read:
        if isinstance(token, str):
            said.append(token)
        elif isinstance(token, PageLink | Outside):
            said.append(token.label)
        elif isinstance(token, CodeBlock):
            said.append(token.body)
        elif isinstance(token, Embedded):
            said.append(token.source)
        elif isinstance(token, ActionCall):
            said += [f" {cell} " for row in rows_of_call(token) for cell in row]
    return sorted(_WORD.findall("".join(said) if said else ""))[:100_000]


class _Writer:
    __slots__ = ("_autolink", "_depth", "_in", "_lines", "_notes", "_open", "_row", "lost")

    def __init__(self, autolink: bool) -> None:
        self.lost: dict[str, None] = {}  # in order
        self._autolink = autolink
        self._lines: list[str] = []
        self._in = ""  # the block of the last line: "", "text", "list", "table", "quote"
        self._depth = 0  # of the last item
        self._row = 0  # cells of the table's first row
        self._open: list[str] = []  # open emphasis
        self._notes: list[str] = []

    def write(self, read: Sequence[Token]) -> str:
        for is_end, line in groupby(read, lambda token: token is NEWLINE):
            if is_end:
                for _ in list(line)[1:]:
                    self._end_block()
            else:
                self._line(list(line))
        self._end_block()
        if self._notes:
            self._begin("notes")
            self._lines += [f"[^{number}]: {note}" for number, note in enumerate(self._notes, 1)]
        return "\n".join(self._lines).rstrip() + "\n" if self._lines else ""

    # -- lines and blocks

    def _begin(self, block: str) -> None:
        """Begin a block of that kind if the last line has a different one, with a blank line between."""
        if self._in != block or block in ("", "heading"):
            if self._lines and self._lines[-1]:
                self._lines.append("")
            self._in = block

    def _end_block(self) -> None:
        if self._in == "text" and self._open and self._lines:
            self._lines[-1] += self._closers()
        self._open.clear()
        self._in, self._depth = "", 0

    def _line(self, line: list[Token]) -> None:
        first = line[0]
        if isinstance(first, Item):
            self._item(first, line[1:])
        elif isinstance(first, Cell):
            self._table_row(line)
        else:
            for part in _parts(line):
                self._part(part)

    def _part(self, part: list[Token]) -> None:
        """Write a part of a line: a block, or the words between two blocks."""
        first = part[0]
        if isinstance(first, HeadingStart):
            self._end_block()
            self._begin("heading")
            self._lines.append(f"{'#' * first.level} {self._whole(part[1:])}")
            self._in = "heading"
        elif first is RULE:
            self._end_block()
            self._begin("rule")
            self._lines.append("***")
        elif isinstance(first, CodeBlock):
            self._end_block()
            self._begin("code")
            self._lines += self._fence(first)
            self._in = ""
        elif isinstance(first, ActionCall) and len(part) == 1 and first.name not in INLINE_ACTIONS:
            self._end_block()
            self._begin("action")
            rows = rows_of_call(first)
            self._lines += self._cells(rows) if rows else [markdown_writing.action(first)]
            self._in = ""
        elif isinstance(first, MindMap):
            self.lost[_("mind maps: they are shown as text now")] = None
            self._part([CodeBlock(first.source)])
        elif isinstance(first, Rest):
            self.lost[_("the end of the page: it is over a bound of the wiki and was left as it is")] = None
            self._part([CodeBlock(first.source)])
        else:
            self._text(part)

    def _text(self, part: list[Token]) -> None:
        continues = self._in == "text"
        words = self._inline(part, line_start=True)
        if not words.strip():
            return
        self._begin("text")
        if continues and self._lines and not self._lines[-1].endswith("\\"):
            self._lines[-1] += "\\"
        self._lines.append(words.rstrip())

    def _fence(self, code: CodeBlock) -> list[str]:
        if code.start is not None:
            self.lost[_("numbers of lines in code")] = None
        if code.filename:
            self.lost[_("names of files above code")] = None
        return markdown_writing.fence(code)

    def _item(self, item: Item, rest: list[Token]) -> None:
        self._end_text()
        words = self._whole(rest)
        if item.marker in ("", "&"):
            if not item.marker:
                self.lost[_("indented lines (they are quotations now)")] = None
            self._begin("quote")
            self._lines.append(f"{'>' * item.depth} {words}\\" if item.marker == "" else f"{'>' * item.depth} {words}")
            self._lines += [">" * item.depth] if item.marker else []
            return
        if not (item.marker == "-" or item.marker.isdigit()):
            self.lost[_("lists numbered by letters (they are numbered by figures now)")] = None
        self._begin("list")
        self._depth = min(item.depth, self._depth + 1)
        number = item.marker if item.marker.isdigit() else "1"
        self._lines.append(
            f"{'    ' * (self._depth - 1)}{'-' if item.marker == '-' else number + '.'} {words}".rstrip()
        )

    def _end_text(self) -> None:
        if self._in == "text":
            self._end_block()
        self._open.clear()

    def _table_row(self, line: list[Token]) -> None:
        self._end_text()
        cells: list[tuple[Cell, list[Token]]] = []
        for token in line:
            if isinstance(token, Cell):
                cells.append((token, []))
            else:
                cells[-1][1].append(token)
        if cells and not cells[-1][1]:
            cells.pop()
        if any(cell.kind not in "|=" for cell, _ in cells):
            self.lost[_("captions, columns and parts of tables")] = None
            cells = [one for one in cells if one[0].kind in "|="]
        if any(cell.attributes or cell.css for cell, _ in cells):
            self.lost[_("sizes and colours of the cells of tables")] = None
        if not cells:
            return
        heads = all(cell.kind == "=" for cell, _ in cells)
        written = [self._whole(words).replace("|", "\\|").replace("\\\\|", "\\|") for _, words in cells]
        if self._in != "table":
            self._begin("table")
            self._row = len(written)
            self._lines.append(_row(written if heads else [""] * len(written)))
            self._lines.append(_row(["---"] * len(written)))
            if heads:
                return
            self.lost[_("tables without headings (an empty row stands above them now)")] = None
        elif heads or any(cell.kind == "=" for cell, _ in cells):
            self.lost[_("headings within tables (they are cells now)")] = None
        if len(written) > self._row:
            self.lost[_("rows longer than the first row of their table: what is more is not shown")] = None
        self._lines.append(_row(written))

    def _cells(self, rows: list[list[str]]) -> list[str]:
        """Return the lines of a table of texts, which has no headings."""
        self.lost[_("tables without headings (an empty row stands above them now)")] = None
        width = len(rows[0])
        written = ([markdown_writing.text(cell, autolink=self._autolink) for cell in row] for row in rows)
        return [_row([""] * width), _row(["---"] * width), *map(_row, written)]

    # -- in a line

    def _whole(self, part: Sequence[Token]) -> str:
        """Return the words of a whole line; open emphasis ends at its end."""
        opened, self._open = self._open, []
        words = self._inline(part, line_start=True).strip()
        words += self._closers()
        self._open = opened
        return words

    def _closers(self) -> str:
        closers = "".join(reversed(self._open))
        self._open.clear()
        return closers

    def _inline(self, part: Sequence[Token], *, line_start: bool = False) -> str:
        out, at, due = "", 0, ""
        while at < len(part):
            token = part[at]
            if token is NOTE:
                end = next((n for n in range(at, len(part)) if part[n] is NOTE_END), len(part))
                self._notes.append(self._whole(part[at + 1 : end]))
                words, at = f"[^{len(self._notes)}]", end + 1
            elif isinstance(token, Toggle) and token.tag == "code":
                end = next((n for n in range(at + 1, len(part)) if part[n] == token), len(part))
                words, at = markdown_writing.code_span(self._plain(part[at + 1 : end])), end + 1
            elif isinstance(token, Toggle) and token.tag in _EMPHASIS:
                at += 1
                out, due = self._toggled(out, due, _EMPHASIS[token.tag])
                continue
            else:
                at += 1
                words = self._said(token, part, at, out, line_start=line_start and not out.strip() and not due)
            if due and words.strip():
                blank = len(words) - len(words.lstrip())
                out, words, due = out + words[:blank] + due, words[blank:], ""
            out += words
        return out

    def _toggled(self, out: str, due: str, mark: str) -> tuple[str, str]:
        """Begin or end an emphasis; blanks are moved out of it, and an empty one is left out."""
        if mark not in self._open:
            self._open.append(mark)
            return out, due + mark
        if mark in due:
            self._open.remove(mark)
            return out, due.replace(mark, "", 1)
        inner = self._open[self._open.index(mark) + 1 :]
        self._open.remove(mark)
        bare = out.rstrip()
        blanks = out[len(bare) :]
        again = "".join(inner)
        return bare + "".join(reversed(inner)) + mark + blanks, again + due

    def _said(self, token: Token, part: Sequence[Token], after: int, out: str, *, line_start: bool) -> str:
        if isinstance(token, str):
            return markdown_writing.text(token, autolink=self._autolink, line_start=line_start)
        if isinstance(token, PageLink):
            following = part[after] if after < len(part) else ""
            is_separate = not out[-1:].isalnum() and not (isinstance(following, str) and following[:1].isalnum())
            return markdown_writing.page_link(token, bare=self._autolink and is_separate and isinstance(following, str))
        if isinstance(token, Outside):
            return markdown_writing.outside(token)
        if isinstance(token, Image):
            return markdown_writing.image(token)
        if isinstance(token, ActionCall):
            return markdown_writing.action(token)
        if isinstance(token, CodeBlock):
            if "\n" in token.body.strip("\n"):
                self.lost[_("code in lists, headings and tables (it is one line now)")] = None
            return markdown_writing.code_span(token.body.strip())
        if isinstance(token, Mark) and token.name == "break":
            return "<br>"
        return self._lost(token)

    def _lost(self, token: Token) -> str:
        """Return the words of a token that Markdown cannot express, and note it as lost."""
        if isinstance(token, Toggle):
            self.lost[_(_LOST_TOGGLES.get(token.tag) or N_("some emphasis"))] = None
        elif isinstance(token, Float):
            self.lost[_("boxes at the side (they stand in the text now)")] = None
        elif isinstance(token, Embedded):
            if "<" in token.source:
                self.lost[_("HTML between double quotes (its text is left)")] = None
            words = " ".join(_TAG.sub(" ", token.source).split()) if "<" in token.source else token.source
            return markdown_writing.text(" ".join(words.split("\n")), autolink=self._autolink)
        elif isinstance(token, Mark) and token.name == "clear":
            self.lost[_("places where text goes on below a box")] = None
        return ""

    def _plain(self, part: Sequence[Token]) -> str:
        said = []
        for token in part:
            if isinstance(token, str):
                said.append(token)
            else:
                self.lost[_("emphasis and links in code")] = None
                said.append(token.label if isinstance(token, PageLink | Outside) else "")
        return "".join(said)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _parts(line: list[Token]) -> Iterator[list[Token]]:
    """Yield the parts of a line, divided at tokens that are blocks."""
    words: list[Token] = []
    at = 0
    while at < len(line):
        token = line[at]
        end = at + 1
        alone = isinstance(token, CodeBlock | MindMap | Rest) or token is RULE
        if isinstance(token, HeadingStart):
            end = next((n for n in range(at, len(line)) if line[n] is HEADING_END), len(line))
            alone = True
        elif isinstance(token, ActionCall):
            alone = token.name not in INLINE_ACTIONS
        if alone:
            if words:
                yield words
            words = []
            yield line[at:end]
            at = end + (1 if isinstance(token, HeadingStart) else 0)
            continue
        words.append(token)
        at = end
    if words:
        yield words
