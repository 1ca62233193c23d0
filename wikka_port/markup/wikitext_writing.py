"""(pure) From a page's text, in Wikka markup or Markdown, to MediaWiki's wikitext.

Kept are headings, emphasis, links to pages, sections and addresses, pictures, lists, tables, quotations, code, rules,
footnotes and redirects, and the action ``table``.  The rest is written as the words that a reader sees: other actions
are left out, HTML becomes its text.  Characters that mean something in wikitext are written as references, so that
words stay words.

    Wikka  "**bold** [[Harbour | the harbour]]"     '''bold''' [[Harbour|the harbour]]

An export keeps the exact text beside this one (``exchange.mediawiki``), so the conversion decides only what another
wiki shows.  Knows nothing of pages.
"""

from __future__ import annotations

import re
from typing import Final

from wikka_port.markup.formats import WIKKA, tokens
from wikka_port.markup.tables import rows_of_call
from wikka_port.markup.tokens import (
    BREAK,
    CLEAR,
    HEADING_END,
    NEWLINE,
    NOTE,
    NOTE_END,
    RULE,
    ActionCall,
    Cell,
    Close,
    CodeBlock,
    Embedded,
    HeadingStart,
    Image,
    Item,
    MindMap,
    NoteMark,
    Open,
    Outside,
    PageLink,
    Rest,
    Task,
    Toggle,
    Token,
)

_TOGGLES: Final = {"strong": "'''", "em": "''"}
_TAGS: Final = ("u", "code", "mark", "s", "ins", "del", "kbd", "sub", "sup", "small")
_MARKS: Final = re.compile(r"[&<>\[\]{}|]|''+|~~~+|__+|\A[*#:;= ]|\A-{4}")
_TAG: Final = re.compile(r"<[^<>]{0,2000}>")
_SPACES: Final = ("File", "Image", "Category")
_LEVELS_MAX: Final = 6
_EMPTY_CELLS: Final = ("| ", "! ")
_SINGLE: Final = ((NOTE, "<ref>"), (NOTE_END, "</ref>"), (BREAK, "<br />"), (CLEAR, '<br clear="all" />'))


def to_wikitext(text: str, *, autolink: bool = True, markup: str = WIKKA) -> str:
    """Convert a text; never raises.  O(len(text))."""
    writer = _Writer()
    for token in tokens(text, autolink=autolink, markup=markup):
        writer.take(token)
    return writer.finish()


def plain(words: str) -> str:
    """Return words so that wikitext shows them as they are."""
    return _MARKS.sub(lambda found: f"&#{ord(found[0][0])};{_rest(found[0])}", words)


def _rest(run: str) -> str:
    return "".join(f"&#{ord(char)};" for char in run[1:])


def _target(name: str) -> str:
    """Return a page's name as the target of a link; a colon in front keeps pictures and categories links."""
    space = name.partition(":")[0]
    lead = ":" if name.startswith("/") or space in _SPACES else ""
    return lead + re.sub(r"[\[\]{}|<>#]", lambda found: f"&#{ord(found[0])};", name)


class _Writer:
    """Builds the text line by line.  A block begins on a line of its own."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line = ""  # the words of the line that is being written
        self._open: list[str] = []  # closing marks of open emphasis, the innermost last
        self._lists: list[str] = []  # marks of the open lists of Markdown
        self._in_table = False
        self._in_note = False

    def take(self, token: Token) -> None:
        if isinstance(token, str):
            self._line += self._words(token)
        elif isinstance(token, Open):
            self._opened(token)
        elif isinstance(token, Close):
            self._closed(token)
        elif token is NEWLINE:
            self._end_row_or_line()
        elif isinstance(token, Cell | Item | HeadingStart | CodeBlock):
            self._block(token)
        elif isinstance(token, Toggle):
            self._toggle(token.tag)
        else:
            written = self._inline(token)  # it may end the line
            self._line += written

    def finish(self) -> str:
        self._end_line()
        self._end_table()
        return "\n".join(self._lines).strip("\n") + "\n" if any(self._lines) else ""

    # -- lines

    def _end_line(self) -> None:
        """Write the line, and close what is open in it; an empty one ends a table."""
        line = self._line + "".join(reversed(self._open))
        self._open.clear()
        if not line:
            self._end_table()
        self._lines.append(line)
        self._line = ""

    def _end_row_or_line(self) -> None:
        if self._in_table and self._line in _EMPTY_CELLS:
            self._line = ""  # the row's last delimiter, which begins no cell
        else:
            self._end_line()

    def _begin_line(self) -> None:
        if self._line:
            self._end_line()

    def _end_table(self) -> None:
        if self._in_table:
            self._in_table = False
            self._lines.append("|}")

    def _words(self, text: str) -> str:
        at_start = not self._line
        lines = text.split("\n")
        said = plain(lines[0]) if at_start else plain(f"\0{lines[0]}")[1:]
        return said + "".join(" " + plain(f"\0{one}")[1:] for one in lines[1:])

    # -- blocks

    def _block(self, token: Cell | Item | HeadingStart | CodeBlock) -> None:
        if isinstance(token, Cell):
            self._cell(token)
            return
        if isinstance(token, CodeBlock) and (self._line or self._lists):
            self._line += f"<code>{plain(' '.join(token.body.split()))}</code>"
            return
        self._begin_line()
        self._end_table()
        if isinstance(token, Item):
            mark = {"-": "*", "": ":", "&": ":"}.get(token.marker, "#")
            self._line = mark * min(token.depth, 9) + " "
        elif isinstance(token, HeadingStart):
            marks = "=" * min(max(token.level, 1), _LEVELS_MAX)
            self._line = f"{marks} "
            self._open.append(f" {marks}")
        else:
            language = re.sub(r"[^A-Za-z0-9+#-]", "", token.language)
            self._lines += [f'<syntaxhighlight lang="{language or "text"}">']
            self._lines += [token.body.strip("\n").replace("</syntaxhighlight", "&lt;/syntaxhighlight")]
            self._lines += ["</syntaxhighlight>"]

    def _cell(self, cell: Cell) -> None:
        if cell.kind not in "|=":
            return
        if not self._in_table:
            self._begin_line()
            self._in_table = True
            self._lines += ['{| class="wikitable"', "|-"]
        elif not self._line and self._lines[-1] != "|-":
            self._lines.append("|-")
        self._begin_line()
        self._line = "! " if cell.kind == "=" else "| "

    def _opened(self, token: Open) -> None:
        kind = token.kind
        if kind in ("bullets", "numbers"):
            self._begin_line()
            self._lists.append("*" if kind == "bullets" else "#")
        elif kind == "item":
            self._begin_line()
            self._line = "".join(self._lists) + " "
        elif kind == "p" and not self._lists and not self._in_note:
            self._begin_line()
            if self._lines and self._lines[-1]:
                self._lines.append("")
        elif kind == "quote":
            self._own_line("<blockquote>")
        elif kind == "table":
            self._own_line('{| class="wikitable"')
        elif kind == "row":
            self._own_line("|-")
        elif kind in ("heading cell", "cell"):
            self._begin_line()
            self._line = "! " if kind == "heading cell" else "| "
        elif kind == "notes":
            self._own_line("----")
        elif kind == "note":
            self._begin_line()
            self._line, self._in_note = f"<sup>{token.value}</sup> ", True
        elif kind in _TOGGLES or kind in _TAGS:
            self._toggle(kind)

    def _closed(self, token: Close) -> None:
        kind = token.kind
        if kind in ("bullets", "numbers"):
            self._begin_line()
            self._lists[-1:] = []
        elif kind == "quote":
            self._own_line("</blockquote>")
        elif kind == "table":
            self._own_line("|}")
        elif kind == "note":
            self._begin_line()
            self._in_note = False
        elif kind in ("p", "item", "cell", "heading cell", "summary", "details"):
            if kind != "p" or not self._lists:
                self._begin_line()
        elif kind in _TOGGLES or kind in _TAGS:
            self._toggle(kind)

    def _own_line(self, line: str) -> None:
        self._begin_line()
        self._lines.append(line)

    # -- in a line

    def _toggle(self, tag: str) -> None:
        """Begin or end an emphasis; what was opened within it ends with it."""
        begin = _TOGGLES.get(tag, f"<{tag}>" if tag in _TAGS else "")
        end = _TOGGLES.get(tag, f"</{tag}>")
        if not begin:
            return
        if end in self._open:
            while self._open:
                mark = self._open.pop()
                self._line += mark
                if mark == end:
                    return
        self._line += begin
        self._open.append(end)

    def _inline(self, token: Token) -> str:
        if isinstance(token, PageLink):
            return self._page_link(token)
        if isinstance(token, Outside):
            return _outside(token)
        if isinstance(token, Image):
            return _image(token)
        if isinstance(token, ActionCall):
            return self._table_of(rows_of_call(token)) or _action(token)
        if isinstance(token, Embedded):
            return self._words(" ".join(_TAG.sub(" ", token.source).split()))
        if isinstance(token, MindMap | Rest):
            return self._words(token.source)
        if isinstance(token, Task):
            return "[x] ".replace("x", "x" if token.done else " ").replace("[", "&#91;").replace("]", "&#93;")
        if isinstance(token, NoteMark):
            return f"<sup>{token.number}</sup>"
        return self._mark(token)

    def _table_of(self, rows: list[list[str]]) -> str:
        """Write a table of texts on lines of its own."""
        if rows:
            self._begin_line()
            self._end_table()
            written = (line for row in rows for line in ("|-", *(f"| {plain(cell)}" for cell in row)))
            self._lines += ['{| class="wikitable"', *written, "|}"]
        return ""

    def _mark(self, token: Token) -> str:
        for mark, written in _SINGLE:
            if token is mark:
                return written
        if token is RULE:
            self._begin_line()
            self._lines.append("----")
        elif token is HEADING_END:
            self._begin_line()
        return ""

    def _page_link(self, link: PageLink) -> str:
        if link.redirect:
            return f"#REDIRECT [[{_target(link.name)}]]"
        if link.file:
            return f"[[{'' if link.shows else ':'}File:{_target(link.file)}]]"
        target = _target(link.name) + (f"#{_target(link.place)}" if link.place else "")
        label = " ".join(link.label.split())
        return f"[[{target}]]" if label in ("", link.name) and not link.place else f"[[{target}|{plain(label)}]]"


def _outside(link: Outside) -> str:
    url = re.sub(r"[\s\[\]<>\"]", lambda found: f"%{ord(found[0]):02X}", link.url)
    label = " ".join(link.label.split())
    return url if label in ("", link.url) and ":" in url else f"[{url} {plain(label or url)}]"


def _image(picture: Image) -> str:
    if not picture.file:
        return f"[{picture.url} {plain(picture.alt or picture.url.rsplit('/', 1)[-1])}]"
    width = f"|{picture.width}px" if picture.width else ""
    alt = f"|alt={plain(picture.alt)}" if picture.alt else ""
    return f"[[File:{_target(picture.file)}{width}{alt}]]"


def _action(call: ActionCall) -> str:
    given = dict(call.arguments)
    if call.name == "redirect":
        return f"#REDIRECT [[{_target(given.get('target', ''))}]]"
    if call.name == "image" and given.get("url"):
        address = given["url"]
        return _image(Image(address, given.get("alt", ""), file="" if "/" in address else address))
    return ""
