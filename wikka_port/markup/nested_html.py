"""Tokens of a format that nests (Markdown) -> fragments of HTML (pure): the compiler beside ``html``.

Leaves are written by the functions that the other compiler uses (``leaves``), structure by tags of a closed list.
The HTML is safe and well nested.

Invariants:
    I1. A Close ends the innermost part, if that is of its kind, and nothing else; what is left open is closed.
    I2. Every PageLink becomes exactly one PageSlot (``links.links`` relies on it).
    I3. A block never stands within a ``p``: the paragraph ends before it and continues after.  No paragraph is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from wikka_port.limits import ACTIONS_MAX
from wikka_port.markup import code_blocks
from wikka_port.markup.bounds import AS_TYPED, said_of
from wikka_port.markup.contents import own_contents, toc_html
from wikka_port.markup.fragments import ActionSlot, Heading, Piece, escape
from wikka_port.markup.leaves import (
    INLINE_ACTIONS,
    NOT_IN_HEADING,
    TOO_MANY,
    Places,
    heading_pieces,
    image_html,
    outside_html,
    page_slot,
)
from wikka_port.markup.targets import place_id
from wikka_port.markup.tokens import (
    INLINE_KINDS,
    ActionCall,
    Close,
    CodeBlock,
    HeadingStart,
    Image,
    Kind,
    Mark,
    NoteMark,
    Open,
    Outside,
    PageLink,
    Rest,
    Task,
    Token,
)
from wikka_port.texts import _

_TAGS: Final[dict[Kind, tuple[str, str]]] = {
    "quote": ("<blockquote>\n", "</blockquote>\n"),
    "bullets": ("<ul>\n", "</ul>\n"),
    "numbers": ("<ol>\n", "</ol>\n"),
    "item": ("<li>", "</li>\n"),
    "notes": ('<section class="footnotes"><ol>\n', "</ol></section>\n"),
    "note": ("<li>", "</li>\n"),
    "table": ('<div class="table" tabindex="0"><table>\n', "</table></div>\n"),
    "head": ("<thead>\n", "</thead>\n"),
    "body": ("<tbody>\n", "</tbody>\n"),
    "row": ("<tr>", "</tr>\n"),
    "heading cell": ('<th scope="col">', "</th>"),
    "cell": ("<td>", "</td>"),
}
_ALIGNED: Final = frozenset({"left", "center", "right"})


class NestedCompiler:
    """Reads tokens, keeps ``pieces``, ``headings`` and ``actions``; used once."""

    __slots__ = (
        *("_blocks", "_budget", "_contents_at", "_inline", "_level", "_no_contents", "_note", "_out", "_paragraph"),
        *("_places", "_start", "_toc", "_words", "_written", "actions", "headings", "pieces"),
    )

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.headings: list[Heading] = []
        self.actions: list[ActionCall] = []
        self._out = self.pieces  # where content goes: the page or a heading
        self._blocks: list[Kind] = []  # open, outermost first
        self._inline: list[Kind] = []  # open within the paragraph, heading or cell
        self._written = 0  # how many of ``_inline`` have their tags in ``_out``
        self._paragraph = ""  # "": in none; "due": its tag comes with its first content; "open"
        self._level = 0  # of the heading that is open
        self._start = -1  # where the line of that heading begins
        self._words: list[str] = []  # of that heading
        self._note = ""  # the number of the footnote that is open
        self._budget = code_blocks.Budget()
        self._places = Places()
        self._toc: tuple[int, ActionCall] | None = None  # which piece it is
        self._contents_at = -1  # the piece before which they stand by themselves
        self._no_contents = False  # the page says so

    def compile(self, tokens: list[Token]) -> None:
        for token in tokens:
            if type(token) is str:
                self._text(token)
            else:
                _COMPILE[type(token)](self, token)
        self._close_all()
        if self._toc is not None:
            place, call = self._toc
            self.pieces[place] = toc_html(self.headings, dict(call.arguments))
        elif self._contents_at >= 0 and not self._no_contents:
            self.pieces[self._contents_at : self._contents_at] = own_contents(self.headings)

    # -- places for content

    def _line(self) -> list[Piece]:
        """Return the place for text; opens the paragraph and its emphasis if need be."""
        if self._paragraph == "due":
            self._out.append("<p>")
            self._paragraph = "open"
        for kind in self._inline[self._written :]:
            self._out.append(f"<{kind}>")
        self._written = len(self._inline)
        return self._out

    def _block(self) -> list[Piece]:
        """The place for a block (not while a heading is open)."""
        self._out += [f"</{kind}>" for kind in reversed(self._inline[: self._written])]
        self._written = 0
        if self._paragraph == "open":
            self._out.append("</p>\n")
            self._paragraph = "due"
        return self._out

    def _close_all(self) -> None:
        if self._level:
            self._end_heading()
        self._end_inline()
        while self._blocks:
            self._out.append(_TAGS[self._blocks.pop()][1])

    def _end_inline(self) -> None:
        """The paragraph or cell ends, with all that is open in it."""
        self._block()
        self._inline.clear()
        self._paragraph = ""

    # -- parts

    def _open(self, part: Open) -> None:
        kind = part.kind
        if kind in INLINE_KINDS:
            self._inline.append(kind)
        elif kind == "p":
            self._end_inline()
            self._paragraph = "due"
        else:
            self._end_inline()
            self._blocks.append(kind)
            self._out.append(_opening(part))
            if kind == "note":
                self._note = part.value

    def _close(self, part: Close) -> None:
        kind = part.kind
        if kind in INLINE_KINDS:
            if self._inline and self._inline[-1] == kind:
                self._inline.pop()
                if self._written > len(self._inline):
                    self._written -= 1
                    self._out.append(f"</{kind}>")
        elif kind == "p":
            self._end_inline()
        elif self._blocks and self._blocks[-1] == kind:
            self._end_inline()
            if kind == "note" and self._note.isdigit():
                said = _("Back to footnote {number} in the text", number=self._note)
                self._out.append(f'<a href="#r-{self._note}" aria-label="{said}">↩</a>')
            self._out.append(_TAGS[self._blocks.pop()][1])

    def _begin_heading(self, heading: HeadingStart) -> None:
        self._end_inline()
        self._level, self._start, self._words, self._out = heading.level, heading.start, [], []

    def _end_heading(self) -> None:
        self._out += [f"</{kind}>" for kind in reversed(self._inline[: self._written])]
        self._inline.clear()
        self._written = 0
        text = " ".join("".join(self._words).split())
        if self._contents_at < 0 and not self._blocks and (self.headings or self._level > 1):
            self._contents_at = len(self.pieces)
        self.headings.append(Heading(self._level, text, self._places.unique(place_id(text)), self._start))
        self.pieces += heading_pieces(self.headings[-1], self._out)
        self._out, self._level = self.pieces, 0

    # -- leaves

    def _text(self, text: str) -> None:
        if self._level:
            self._words.append(text)
        if self._paragraph != "due" or not text.isspace():
            self._line().append(escape(text))

    def _put(self, html: Piece, *, plain: str = "") -> None:
        if self._level:
            self._words.append(plain)
        self._line().append(html)

    def _mark(self, mark: Mark) -> None:
        if mark.name == "heading end":
            self._end_heading()
        elif mark.name == "rule":
            self._block().append("<hr>\n")
        elif mark.name == "break":
            self._put("<br>\n", plain=" ")
        else:
            self._text("\n")

    def _task(self, task: Task) -> None:
        said, shown = (_("Done"), "☑") if task.done else (_("To do"), "☐")
        self._put(f'<span class="task" role="img" aria-label="{said}">{shown}</span> ')

    def _note_mark(self, mark: NoteMark) -> None:
        number = mark.number
        place = f"r-{number}" if mark.time == 1 else f"r-{number}-{mark.time}"
        said = _("Footnote {number}", number=number)
        words = f'<a id="{place}" href="#n-{number}" aria-label="{said}">{number}</a>'
        self._put(f'<sup class="note-ref">{words}</sup>')

    def _code(self, code: CodeBlock) -> None:
        if self._level:
            self._put(code_blocks.inline_html(code), plain=code.body)
        else:
            self._block().append(code_blocks.block_html(code, self._budget))

    def _page_link(self, link: PageLink) -> None:
        slot = page_slot(link)
        if link.redirect:
            self._put('<span class="redirect">')
            self._put(slot, plain=link.label)
            self._put("</span>")
        else:
            self._put(slot, plain=link.label)

    def _outside(self, link: Outside) -> None:
        self._put(outside_html(link), plain=link.label)

    def _image(self, image: Image) -> None:
        self._put(image_html(image), plain=image.alt)

    def _action(self, call: ActionCall) -> None:
        if call.name == "notoc":
            self._no_contents = True
            return
        block = call.name not in INLINE_ACTIONS
        if block and self._level:
            self._put(ActionSlot(call.name, call.arguments, False, _(NOT_IN_HEADING)))
        elif call.name == "toc":
            self._contents(call)
        elif len(self.actions) >= ACTIONS_MAX:
            self._put(ActionSlot(call.name, call.arguments, False, _(TOO_MANY, most=ACTIONS_MAX)))
        else:
            self.actions.append(call)
            (self._block() if block else self._line()).append(ActionSlot(call.name, call.arguments, block))

    def _contents(self, call: ActionCall) -> None:
        if self._toc is not None or "cell" in self._blocks or "heading cell" in self._blocks:
            self._put(f'<a href="#toc">{_("Contents")}</a>')
            return
        out = self._block()
        self._toc = (len(out), call)
        out.append("")

    def _rest(self, rest: Rest) -> None:
        self._close_all()
        self._out.append(
            f'<p class="notice">{escape(said_of(rest.over))} {_(AS_TYPED)}</p>\n'
            f'<pre class="rest">{escape(rest.source)}</pre>\n'
        )


def _opening(part: Open) -> str:
    tag = _TAGS[part.kind][0]
    if part.kind == "numbers" and part.value.isdigit() and len(part.value) < 10 and part.value != "1":
        return f'<ol start="{int(part.value)}">\n'
    if part.kind == "notes":
        return f'{tag[: tag.index(">")]} aria-label="{_("Footnotes")}"{tag[tag.index(">") :]}'
    if part.kind == "note" and part.value.isdigit():
        return f'<li id="n-{part.value}">'
    if part.kind in ("cell", "heading cell") and part.value in _ALIGNED:
        return f'{tag[:-1]} class="to-{part.value}">'
    return tag


_COMPILE: Final[dict[type, Callable[[NestedCompiler, Any], None]]] = {
    Open: NestedCompiler._open,
    Close: NestedCompiler._close,
    Mark: NestedCompiler._mark,
    HeadingStart: NestedCompiler._begin_heading,
    PageLink: NestedCompiler._page_link,
    Outside: NestedCompiler._outside,
    Image: NestedCompiler._image,
    ActionCall: NestedCompiler._action,
    CodeBlock: NestedCompiler._code,
    Task: NestedCompiler._task,
    NoteMark: NestedCompiler._note_mark,
    Rest: NestedCompiler._rest,
}
