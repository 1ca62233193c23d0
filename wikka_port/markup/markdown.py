"""(pure, fuzzed) From Markdown to the tokens of the markup: CommonMark with tables, strikethrough, tasks and footnotes.

The parser is markdown-it (``markdown_rules``); this module converts its tokens.  The wiki's additions mean
the same as in Wikka markup: ``[[Page]]``, ``{{action}}``, CamelCase words, bare addresses, prefixes of other wikis.
The address of a link without a scheme is the name of a page: ``[words](Page_name#heading)``.

Invariants:
    I1. Each Open is followed by its Close, and they nest.  Raw HTML is text, except that of ``markdown_extensions``.
    I2. A text over a bound of ``limits`` is read up to the bound: the last token is then a Rest with the unread text,
        from the beginning of a line on.  The cut depends only on the text.  The marks of the text are counted before
        it is parsed, so this bound applies to parsing, too; links, cells and the steps of running text, in which
        links need no marks, are counted block by block.
    I3. Footnotes are numbered in the order of their first references; footnotes without a reference are left out.

Knows nothing of HTML and of which pages exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from wikka_port.limits import ADDRESSES_MAX, CELLS_MAX, LINKS_MAX, MARKDOWN_MARKS_MAX, STEPS_MAX
from wikka_port.markup import interwiki
from wikka_port.markup.markdown_extensions import mark_alerts
from wikka_port.markup.markdown_rules import parser
from wikka_port.markup.targets import heading_id, is_url, may_be_file, page_link, picture_at, safe_url, trimmed
from wikka_port.markup.token_buffer import CAMEL_CASE, fit
from wikka_port.markup.tokens import (
    BREAK,
    HEADING_END,
    NEWLINE,
    RULE,
    Attributes,
    Bound,
    Close,
    CodeBlock,
    HeadingStart,
    Image,
    Inside,
    Kind,
    NoteMark,
    Open,
    Outside,
    PageLink,
    Rest,
    Task,
    Token,
)
from wikka_port.names import MAX_NAME_BYTES, InvalidName, from_url

if TYPE_CHECKING:
    from markdown_it.token import Token as Parsed

# The mark of an item, a heading or a quotation costs the parser as much as its line.
_MARKS: Final = re.compile(
    r"[\n*_`\[\]!<&\\~|{]|(?<![\w$])\$(?=\S)|==|(?:(?<=\n)|(?<=[ \t>]))(?:[-+>]|\d{1,9}[.)]|#{1,6})(?=[ \t>])"
)
_ADDRESS: Final = re.compile(r"(?<!\w)([A-Za-z][A-Za-z0-9]{0,19}+):([^\s<>\"|\[\]{}`\\^]++)")
_TASK: Final = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
_PREFIXED: Final = re.compile(r"([A-Za-z][A-Za-z0-9]{0,19}+):(\S.*)", re.DOTALL)
_SIMPLE: Final[Mapping[str, Kind]] = {
    "blockquote": "quote",
    "bullet_list": "bullets",
    "list_item": "item",
    "table": "table",
    "thead": "head",
    "tbody": "body",
    "tr": "row",
    "em": "em",
    "strong": "strong",
    "s": "s",
    "summary": "summary",
    "kbd": "kbd",
    "sub": "sub",
    "sup": "sup",
    "ins": "ins",
    "del": "del",
    "mark": "mark",
    "small": "small",
    "u": "u",
}
_CELLS: Final[Mapping[str, Kind]] = {"th": "heading cell", "td": "cell"}


def tokens(text: str, *, autolink: bool = True) -> list[Token]:
    """Return the tokens of a text; never raises.  Linear in the text, up to the bounds."""
    return _Reader(fit(text), autolink).run()


class _Full(Exception):
    def __init__(self, over: Bound) -> None:
        super().__init__(over)
        self.over: Bound = over


class _Reader:
    """A pass over the parser's tokens of one text."""

    __slots__ = (
        "_addresses",
        "_autolink",
        "_cells",
        "_folds",
        "_line",
        "_linked",
        "_notes",
        "_numbers",
        "_out",
        "_steps",
        "_task",
        "_text",
        "_times",
    )

    def __init__(self, text: str, autolink: bool) -> None:
        self._text = text
        self._autolink = autolink
        self._out: list[Token] = []
        self._cells = CELLS_MAX  # still allowed
        self._addresses = ADDRESSES_MAX + len(text)  # characters still allowed
        self._steps = STEPS_MAX  # still allowed for running text, in which links need no marks
        self._line = (0, 0)  # number of a line, and its position
        self._linked: set[str] = set()
        self._numbers: dict[str, int] = {}  # label of a footnote -> its number
        self._times: dict[str, int] = {}  # label -> references so far
        self._notes: dict[str, list[Token]] = {}
        self._task = False  # whether an item has just begun
        self._folds = 0  # that are open

    def run(self) -> list[Token]:
        end = _end_of_marks(self._text)
        over: Bound | None = "steps" if end < len(self._text) else None
        for block in _blocks(parser().parse(self._text[:end], {})):
            try:
                self._block(block)
            except _Full as full:
                over, end = full.over, self._start_of_line(_first_line(block))
                break
        self._out += [Close("details")] * self._folds
        self._put_notes()
        if over is not None:
            self._out.append(Rest(self._text[end:], over))
        return self._out

    def _block(self, block: Sequence[Parsed]) -> None:
        """Read a block of the page with all its content, or nothing of it.  Raises _Full."""
        out, saved = self._out, (set(self._linked), dict(self._numbers), dict(self._times))
        self._out = []
        try:
            mark_alerts(block)
            for token in block:
                self._read(token)
        except _Full:
            self._out = out
            self._linked, self._numbers, self._times = saved
            raise
        if block[0].type == "note_open":
            self._notes.setdefault(str(block[0].meta["label"]), self._out)
            self._out = out
        else:
            self._out = out + self._out if not out else _extended(out, self._out)

    def _put_notes(self) -> None:
        if not self._numbers:
            return
        self._out.append(Open("notes"))
        for label, number in sorted(self._numbers.items(), key=lambda item: item[1]):
            self._out += [Open("note", str(number)), *self._notes.get(label, ()), Close("note")]
        self._out.append(Close("notes"))

    # -- what the parser says

    def _read(self, token: Parsed) -> None:
        kind, _, end = token.type.rpartition("_")
        if end not in ("open", "close"):
            _LEAVES[token.type](self, token)
        elif kind in _SIMPLE:
            alert = token.meta.get("alert", "") if kind == "blockquote" else ""
            self._out.append(Open(_SIMPLE[kind], alert) if end == "open" else Close(_SIMPLE[kind]))
            self._task = token.type == "list_item_open"
        elif kind in _CELLS:
            self._cell(token, _CELLS[kind])
        elif kind == "paragraph":
            if not token.hidden:
                self._out.append(Open("p") if end == "open" else Close("p"))
        elif kind == "heading":
            self._out.append(self._heading(token) if end == "open" else HEADING_END)
        elif kind == "ordered_list":
            self._out.append(Open("numbers", str(token.attrGet("start") or 1)) if end == "open" else Close("numbers"))
        else:
            assert kind in ("note", "link"), f"a rule of the parser that nobody reads: {token.type}"

    def _heading(self, token: Parsed) -> HeadingStart:
        """Return the start of a heading; a heading within another block has no section."""
        is_own = token.level == 0 and token.map is not None
        return HeadingStart(int(token.tag[1:]), self._start_of_line(token.map[0]) if is_own and token.map else -1)

    def _start_of_line(self, line: int) -> int:
        """Return the position of a line; callers ask in order, so all calls together scan the text once."""
        at, position = self._line
        for _ in range(line - at):
            position = self._text.find("\n", position) + 1
        self._line = (max(at, line), position)
        return position

    def _cell(self, token: Parsed, kind: Kind) -> None:
        if token.nesting < 0:
            self._out.append(Close(kind))
            return
        if self._cells == 0:
            raise _Full("cells")
        self._cells -= 1
        self._out.append(Open(kind, str(token.attrGet("style") or "").removeprefix("text-align:")))

    def _code(self, token: Parsed) -> None:
        words = token.info.split(None, 1)
        self._out.append(CodeBlock(token.content, words[0].lower() if words else ""))

    def _fold(self, token: Parsed) -> None:
        self._folds += 1
        self._out.append(Open("details", "open" if token.meta["open"] else ""))

    def _fold_end(self, _: Parsed) -> None:
        if self._folds:
            self._folds -= 1
            self._out.append(Close("details"))

    # -- in a line

    def _inline(self, token: Parsed) -> None:
        children = token.children or []
        first = children[0] if children else None
        if self._task and first is not None and first.type == "text":
            box = _TASK.match(first.content)
            if box:
                self._out.append(Task(box[1] != " "))
                first.content = first.content[box.end() :]
        self._task = False
        at = 0
        while at < len(children):
            child = children[at]
            if child.type == "link_open":
                end = next(n for n in range(at, len(children)) if children[n].type == "link_close")
                self._link(str(child.attrGet("href") or ""), children[at + 1 : end])
                at = end
            else:
                self._read(child)
            at += 1

    def _words(self, token: Parsed) -> None:
        """Read running text, in which addresses and CamelCase words are links."""
        text, done = token.content, 0
        for found in _ADDRESS.finditer(text) if ":" in text else ():
            self._spend()
            link, end = _bare(found)
            if link is not None:
                self._camel(text[done : found.start()])
                self._out.append(link)
                done = end
        self._camel(text[done:])

    def _camel(self, text: str) -> None:
        done = 0
        for found in CAMEL_CASE.finditer(text) if self._autolink else ():
            if len(found[0]) <= MAX_NAME_BYTES:
                self._literal(text[done : found.start()])
                self._page(PageLink(found[0], found[0]))
                done = found.end()
        self._literal(text[done:])

    def _spend(self) -> None:
        """Count the steps of a possible link and of the words before it.  Raises _Full."""
        self._steps -= 2
        if self._steps < 0:
            raise _Full("steps")

    def _literal(self, text: str) -> None:
        if text:
            self._out.append(text)

    def _escaped(self, token: Parsed) -> None:
        self._literal(token.content)

    def _formula(self, token: Parsed) -> None:
        self._literal(str(token.meta["words"]))

    def _page(self, link: PageLink) -> None:
        self._spend()
        self._linked.add(link.name)
        if len(self._linked) > LINKS_MAX:
            raise _Full("links")
        self._out.append(link)

    def _wiki(self, token: Parsed) -> None:
        given: Token = token.meta["token"]
        if isinstance(given, PageLink):
            self._page(given)
        else:
            self._out.append(given)

    def _address(self, address: object) -> None:
        self._addresses -= len(str(address or ""))
        if self._addresses < 0:
            raise _Full("addresses")

    def _image(self, token: Parsed) -> None:
        self._address(token.attrGet("src"))
        made = _picture(token)
        if made:
            self._out.append(made)

    def _note_mark(self, token: Parsed) -> None:
        label = str(token.meta["label"])
        self._times[label] = self._times.get(label, 0) + 1
        self._out.append(NoteMark(self._numbers.setdefault(label, len(self._numbers) + 1), self._times[label]))

    def _link(self, address: str, children: Sequence[Parsed]) -> None:
        self._address(address)
        for child in children:
            self._address(child.attrGet("src"))
        inside = _inside(children)
        label = " ".join("".join(part for part in inside if isinstance(part, str)).split())
        plain = all(isinstance(part, str) for part in inside)
        link = target_of(address, label or address, () if plain or not label else inside)
        picture = _picture(children[0]) if len(children) == 1 and children[0].type == "image" else None
        if isinstance(picture, Image) and isinstance(link, Outside):
            self._out.append(replace(picture, link=link.url))
        elif isinstance(picture, Image) and isinstance(link, PageLink) and may_be_file(link.name):
            self._out.append(picture)  # a link to the picture itself
        elif isinstance(link, PageLink):
            self._page(link)
        elif link is not None:
            self._out.append(link)
        else:
            self._out += inside  # an address that may not be followed: only the words stay


def _rule(reader: _Reader, _: Parsed) -> None:
    reader._out.append(RULE)


def _code_inline(reader: _Reader, token: Parsed) -> None:
    reader._out.extend((Open("code"), token.content, Close("code")))


def _newline(reader: _Reader, token: Parsed) -> None:
    reader._out.append(BREAK if token.type == "hardbreak" else NEWLINE)


def _attributes(reader: _Reader, token: Parsed) -> None:
    reader._out.append(Attributes(token.meta["pairs"]))


_LEAVES: Final[Mapping[str, Callable[[_Reader, Parsed], None]]] = {
    "inline": _Reader._inline,
    "fence": _Reader._code,
    "code_block": _Reader._code,
    "hr": _rule,
    "attributes": _attributes,
    "fold": _Reader._fold,
    "fold_end": _Reader._fold_end,
    "text": _Reader._words,
    "text_special": _Reader._escaped,
    "formula": _Reader._formula,
    "code_inline": _code_inline,
    "softbreak": _newline,
    "hardbreak": _newline,
    "image": _Reader._image,
    "wiki": _Reader._wiki,
    "note_mark": _Reader._note_mark,
}


# --- where a text is cut -----------------------------------------------------------------------


def _end_of_marks(text: str) -> int:
    """Return where to cut a text with too many marks: at a line's beginning, unless the first line has too many."""
    if len(text) <= MARKDOWN_MARKS_MAX:
        return len(text)
    for number, found in enumerate(_MARKS.finditer(text), 1):
        if number > MARKDOWN_MARKS_MAX:
            return text.rfind("\n", 0, found.start()) + 1 or found.start()
    return len(text)


def _first_line(block: Sequence[Parsed]) -> int:
    return block[0].map[0] if block[0].map else 0


def _blocks(read: Sequence[Parsed]) -> Iterator[Sequence[Parsed]]:
    """Yield the blocks of a page, each with all its content."""
    start = depth = 0
    for at, token in enumerate(read):
        depth += token.nesting
        if depth == 0:
            # a heading is three tokens, a rule one
            yield read[start : at + 1]
            start = at + 1


def _extended(out: list[Token], more: list[Token]) -> list[Token]:
    out += more
    return out


# --- what links and pictures lead to -----------------------------------------------------------


def _bare(found: re.Match[str]) -> tuple[Outside | None, int]:
    """Return the link of an address in running text, or None, and the position of its end."""
    scheme, length = found[1].lower(), trimmed(found[2])
    end = found.start(2) + length
    typed = found.string[found.start() : end]
    if scheme in ("http", "https", "ftp"):
        url = safe_url(typed) if is_url(typed) else None
        return (Outside(url, typed, "external") if url else None), end
    if scheme == "mailto":
        url = safe_url(typed) if "@" in typed else None
        return (Outside(url, typed[7:], "mail") if url else None), end
    url = interwiki.address(scheme, found[2][:length])
    return (Outside(url, typed, "interwiki") if url else None), end


def target_of(address: str, label: str, inside: Inside) -> PageLink | Outside | None:
    """Return the target of ``[label](address)``, or None if it may not be followed."""
    address = address.strip()
    if is_url(address):
        url = safe_url(address)
        return Outside(url, label, "external", inside) if url else None
    if address[:7].lower() == "mailto:":
        url = safe_url(address)
        return Outside(url, label, "mail", inside) if url else None
    if address.startswith("#"):
        return Outside("#" + heading_id(unquote(address[1:])), label, "local", inside) if len(address) > 1 else None
    prefixed = _PREFIXED.fullmatch(address)
    if prefixed:
        url = interwiki.address(prefixed[1], unquote(prefixed[2]))
        return Outside(url, label, "interwiki", inside) if url else None
    if address.startswith("/-/") or "?" in address:
        url = safe_url(address) if address.startswith("/") else None
        return Outside(url, label, "local", inside) if url else None
    return None if address.startswith("//") else _page(address, label, inside)


def _page(address: str, label: str, inside: Inside) -> PageLink | None:
    """Return the page of a relative address, which is relative to the wiki, since pages are in no folders."""
    path, _, place = address.partition("#")
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if not parts:
        return None
    try:
        name = from_url("/".join(parts).removesuffix(".md"))
    except InvalidName:
        return None
    link = page_link(name, label)
    return link and PageLink(
        link.name, link.label, False, heading_id(unquote(place)) if place else "", inside, shows=False
    )


def _picture(token: Parsed) -> Image | str:
    """Return a picture, or only its description if its address may not be loaded."""
    alt = " ".join("".join(part for part in _inside(token.children or []) if isinstance(part, str)).split())
    return picture_at(str(token.attrGet("src") or ""), alt) or alt


def _inside(children: Sequence[Parsed]) -> Inside:
    """Return the words of a label, with their emphasis."""
    out: list[str | Open | Close] = []
    for child in children:
        kind, _, end = child.type.rpartition("_")
        if child.type in ("text", "text_special"):
            out.append(child.content)
        elif child.type == "formula":
            out.append(str(child.meta["words"]))
        elif child.type == "code_inline":
            out += [Open("code"), child.content, Close("code")]
        elif child.type in ("softbreak", "hardbreak"):
            out.append(" ")
        elif child.type == "image":
            picture = _picture(child)
            out.append(picture if isinstance(picture, str) else picture.alt)
        elif child.type == "wiki":
            given = child.meta["token"]
            out.append(given.label if isinstance(given, PageLink | Outside) else getattr(given, "alt", ""))
        elif kind in _SIMPLE:
            out.append(Open(_SIMPLE[kind]) if end == "open" else Close(_SIMPLE[kind]))
    return tuple(out)
