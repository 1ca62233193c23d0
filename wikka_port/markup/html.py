"""Tokens of Wikka markup -> fragments of HTML (pure): the compiler.  Its output is always safe and well nested.

The state is a mode and four things that may be open around it:

    floats > lists or table > paragraph, item, heading or cell > toggles

    TOP        between blocks (a list or table may continue in the next line)
    PARAGRAPH  ITEM  HEADING  CELL    text has a place

Invariants:
    I1. Toggles are closed before what contains them is.  A toggle that is closed out of turn has the ones
        inside it closed and opened again, so ``**a //b** c//`` shows what its author meant.  Toggles that are open
        around a heading or rule inside a line are opened again in the heading and after both.
    I2. Every PageLink becomes exactly one PageSlot (``links.links`` relies on it).
    I3. Ids are unique, and "toc" is the table of contents: the page's own, or one before the first heading that stands
        in nothing else.

Knows nothing of which pages exist and of what actions do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from wikka_port.limits import ACTIONS_MAX
from wikka_port.markup import code_blocks, embedded, mindmap
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
from wikka_port.markup.lists import ListStack
from wikka_port.markup.tables import TableBuilder
from wikka_port.markup.targets import place_id
from wikka_port.markup.tokens import (
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
from wikka_port.texts import _

TOP, PARAGRAPH, ITEM, HEADING, CELL = range(5)
# Pieces of embedded HTML that are one tag: what stands between two of them is raised, lowered or small.
_HALVES: Final = {
    f"<{stroke}{tag}>": (Toggle(tag), not stroke) for tag in ("sup", "sub", "small") for stroke in ("", "/")
}
_FLOATS: Final = {side: Toggle("span", f"float-{side}") for side in ("left", "right")}


def _opening(toggle: Toggle) -> str:
    return f'<{toggle.tag} class="{toggle.css}">' if toggle.css else f"<{toggle.tag}>"


@dataclass(frozen=True, slots=True)
class _OpenHeading:
    level: int
    start: int  # where its line begins; -1: it has no section
    mode: int  # the one that it interrupts: TOP, ITEM or CELL
    holder: list[Piece]  # where it will stand
    around: list[Toggle]  # open before it, in the same line
    words: list[str] = field(default_factory=list)  # its plain text


class Compiler:
    """Reads tokens, keeps ``pieces``, ``headings`` and ``actions``; used once."""

    __slots__ = (
        "_break",
        "_budget",
        "_carried",
        "_contents_at",
        "_floats",
        "_has_places",
        "_heading",
        "_lists",
        "_mode",
        "_no_contents",
        "_notes",
        "_out",
        "_outside_note",
        "_places",
        "_section",
        "_table",
        "_toc",
        "_toggles",
        "actions",
        "headings",
        "pieces",
    )

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.headings: list[Heading] = []
        self.actions: list[ActionCall] = []
        self._out = self.pieces  # where content goes: the page, a heading or a cell
        self._mode = TOP
        self._break = False  # a line of the paragraph has ended; another may come
        self._toggles: list[Toggle] = []
        self._carried: list[Toggle] = []  # open before a heading or rule of this line, not opened again yet
        self._floats: list[str] = []
        self._lists = ListStack()
        self._budget = code_blocks.Budget()
        self._table: TableBuilder | None = None
        self._heading = _OpenHeading(0, -1, TOP, self.pieces, [])
        self._section = -1  # where the last one begins
        self._notes: list[list[Piece]] = []
        self._outside_note: tuple[list[Piece], int, list[Toggle], _OpenHeading] | None = None  # None: in no note
        self._places = Places()
        self._has_places = False  # embedded HTML has ids
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
        self._put_notes()
        if self._has_places:  # headings have their ids by now, whatever stands before them
            self.pieces[:] = [embedded.placed(one, self._places) if type(one) is str else one for one in self.pieces]
        if self._toc is not None:
            place, call = self._toc
            self.pieces[place] = toc_html(self.headings, dict(call.arguments))
        elif self._contents_at >= 0 and not self._no_contents:
            self.pieces[self._contents_at : self._contents_at] = own_contents(self.headings)

    # -- places for content

    def _inline(self) -> list[Piece]:
        """Return the place for text; opens a paragraph or cell if need be."""
        if self._mode == TOP:
            self._close_blocks()
            self._out.append("<p>")
            self._mode = PARAGRAPH
        elif self._mode == CELL and self._table is not None:
            self._out = self._table.sink()
        elif self._break:
            self._out.append("<br>\n")
            self._break = False
        while self._carried:
            self._toggles.append(self._carried.pop(0))
            self._out.append(_opening(self._toggles[-1]))
        return self._out

    def _block(self) -> list[Piece]:
        """Return the place for a block (not while a heading is open)."""
        self._close_toggles()
        if self._mode == CELL and self._table is not None:
            self._out = self._table.sink()
        elif self._mode != ITEM:
            self._close_blocks()
        return self._out

    def _close_toggles(self) -> None:
        while self._toggles:
            self._out.append(f"</{self._toggles.pop().tag}>")

    def _carry(self) -> list[Toggle]:
        """Return the toggles that are open in this line, closed."""
        carried = [] if self._break else self._toggles + self._carried
        self._close_toggles()
        self._carried = []
        return carried

    def _end_line(self) -> None:
        """Leave the paragraph, item or cell, and a heading in it; lists and a table stay open."""
        self._end_note()
        if self._mode == HEADING:
            self._end_heading()
        self._close_toggles()
        self._carried = []
        if self._mode == PARAGRAPH:
            self._out.append("</p>\n")
        elif self._mode == CELL and self._table is not None:
            self._table.end_row()
        self._out = self.pieces
        self._mode = TOP
        self._break = False

    def _close_blocks(self) -> None:
        if self._mode != TOP:
            self._end_line()
        if self._lists:
            self._out.append(self._lists.close())
        self._close_table()

    def _close_all(self) -> None:
        self._close_blocks()
        while self._floats:
            self._floats.pop()
            self._out.append("</div>\n")

    def _close_table(self) -> None:
        if self._table is not None:
            self.pieces += self._table.finish()
            self._table = None

    # -- text and toggles

    def _text(self, text: str) -> None:
        if self._mode == HEADING:
            self._heading.words.append(text)
        elif self._mode == CELL:
            if text.isspace() and self._table is not None and not self._table.in_cell:
                return  # what stands after the last bar of a row is no cell
        elif self._mode == TOP or self._break:
            text = text.lstrip()
            if not text:
                return
        self._inline().append(escape(text))

    def _toggle(self, toggle: Toggle) -> None:
        if toggle in self._carried:
            self._carried.remove(toggle)
            return
        out = self._inline()
        stack = self._toggles
        if toggle not in stack:
            out.append(_opening(toggle))
            stack.append(toggle)
            return
        inside = []
        while (top := stack.pop()) != toggle:
            out.append(f"</{top.tag}>")
            inside.append(top)
        out.append(f"</{top.tag}>")
        for again in reversed(inside):
            out.append(_opening(again))
            stack.append(again)

    def _mark(self, mark: Mark) -> None:
        if mark.name == "newline":
            self._carried = []
            if self._mode == PARAGRAPH and not self._break:
                self._break = True
            elif self._mode in (TOP, PARAGRAPH):
                self._close_blocks()  # an empty line
            else:
                self._end_line()
        elif mark.name == "heading end":
            (self._end_heading if self._mode == HEADING else self._end_line)()
        elif mark.name == "note":
            self._begin_note()
        elif mark.name == "note end":
            self._end_note()
        elif mark.name == "rule":
            carried = self._carry()
            self._block().append("<hr>\n")
            self._carried = carried
        else:
            self._inline().append("<br>" if mark.name == "break" else '<br class="clear">')

    # -- blocks

    def _float(self, box: Float) -> None:
        if box.side in self._floats:
            self._close_blocks()
            while True:
                top = self._floats.pop()
                self._out.append("</div>\n")
                if top == box.side:
                    return
        if self._mode in (ITEM, CELL, HEADING):
            self._toggle(_FLOATS[box.side])
            return
        self._close_blocks()
        self._floats.append(box.side)
        self._out.append(f'<div class="float-{box.side}">\n')

    def _item(self, item: Item) -> None:
        if self._mode != TOP:
            self._end_line()
        self._close_table()
        self._out.append(self._lists.item(item))
        self._mode = ITEM

    def _cell(self, cell: Cell) -> None:
        if self._mode == CELL:
            self._close_toggles()
        elif self._mode != TOP or self._lists:
            self._close_blocks()
        if self._table is None:
            self._table = TableBuilder()
        self._table.delimiter(cell)
        self._mode = CELL

    def _begin_heading(self, heading: HeadingStart) -> None:
        carried = self._carry()
        holder = self._block()
        self._heading = _OpenHeading(heading.level, heading.start, self._mode, holder, carried)
        self._out = []
        self._mode = HEADING
        self._carried = carried.copy()

    def _begin_note(self) -> None:
        """The text that follows goes into the note, as the words of a heading do: no block can begin there."""
        number = len(self._notes) + 1
        said = _("Footnote {number}", number=number)
        words = f'<a id="r-{number}" href="#n-{number}" aria-label="{said}">{number}</a>'
        self._inline().append(f'<sup class="note-ref">{words}</sup>')
        self._outside_note = (self._out, self._mode, self._toggles, self._heading)
        self._out, self._mode, self._toggles = [], HEADING, []
        self._heading = _OpenHeading(0, -1, HEADING, self._out, [])
        self._notes.append(self._out)

    def _end_note(self) -> None:
        if self._outside_note is not None:
            self._close_toggles()
            self._out, self._mode, self._toggles, self._heading = self._outside_note
            self._carried, self._outside_note = [], None

    def _put_notes(self) -> None:
        if not self._notes:
            return
        self._out.append(f'<section class="footnotes" aria-label="{_("Footnotes")}"><ol>\n')
        for number, note in enumerate(self._notes, 1):
            said = _("Back to footnote {number} in the text", number=number)
            link_back = f' <a href="#r-{number}" aria-label="{said}">↩</a>'
            self._out += [f'<li id="n-{number}">', *note, f"{link_back}</li>\n"]
        self._out.append("</ol></section>\n")

    def _end_heading(self) -> None:
        heading = self._heading
        carried = [toggle for toggle in heading.around if toggle in self._toggles or toggle in self._carried]
        self._close_toggles()
        level, text = heading.level, " ".join("".join(heading.words).split())
        start = -1 if heading.start == self._section else heading.start  # a line's second heading has none
        self._section = heading.start
        stands_free = heading.holder is self.pieces and heading.mode == TOP and not self._floats
        if self._contents_at < 0 and stands_free and (self.headings or level > 1):
            self._contents_at = len(self.pieces)
        self.headings.append(Heading(level, text, self._places.unique(place_id(text)), start))
        heading.holder.extend(heading_pieces(self.headings[-1], self._out))
        self._out, self._mode, self._carried = heading.holder, heading.mode, carried

    def _put(self, html: Piece, *, block: bool, plain: str = "") -> None:
        if self._mode == HEADING:
            self._heading.words.append(plain)
            self._inline().append(html)
        else:
            (self._block() if block else self._inline()).append(html)

    def _code(self, code: CodeBlock) -> None:
        if self._mode == HEADING:
            self._put(code_blocks.inline_html(code), block=False, plain=code.body)
        else:
            self._put(code_blocks.block_html(code, self._budget), block=True)

    def _embedded(self, source: Embedded) -> None:
        half = _HALVES.get(source.source)
        if half is not None:
            if half[1] != (half[0] in self._toggles or half[0] in self._carried):
                self._toggle(half[0])
            return
        html, block = embedded.clean(source.source, inline=self._mode == HEADING)
        if html:
            self._has_places = self._has_places or embedded.has_places(html)
            self._put(html, block=block, plain="" if "<" in html else source.source)

    def _mind_map(self, source: MindMap) -> None:
        if self._mode != HEADING:
            self._put(mindmap.outline_html(source.source), block=True)

    def _rest(self, rest: Rest) -> None:
        """All boxes and blocks are closed: what follows belongs to none of them."""
        self._close_all()
        self._out.append(
            f'<p class="notice">{escape(said_of(rest.over))} {_(AS_TYPED)}</p>\n'
            f'<pre class="rest">{escape(rest.source)}</pre>\n'
        )

    # -- links and actions

    def _page_link(self, link: PageLink) -> None:
        if link.redirect:
            self._put('<span class="redirect">', block=False)
        self._put(page_slot(link), block=False, plain=link.label)
        if link.redirect:
            self._put("</span>", block=False)

    def _outside(self, link: Outside) -> None:
        self._put(outside_html(link), block=False, plain=link.label)

    def _image(self, image: Image) -> None:
        self._put(image_html(image), block=False)

    def _action(self, call: ActionCall) -> None:
        if call.name == "notoc":
            self._no_contents = True
            return
        block = call.name not in INLINE_ACTIONS
        if block and self._mode == HEADING:
            self._put(ActionSlot(call.name, call.arguments, False, _(NOT_IN_HEADING)), block=False)
        elif call.name == "toc":
            self._contents(call)
        elif len(self.actions) >= ACTIONS_MAX:
            self._put(ActionSlot(call.name, call.arguments, False, _(TOO_MANY, most=ACTIONS_MAX)), block=False)
        else:
            self.actions.append(call)
            self._put(ActionSlot(call.name, call.arguments, block), block=block)

    def _contents(self, call: ActionCall) -> None:
        if self._toc is not None or self._mode == CELL:
            self._put(f'<a href="#toc">{_("Contents")}</a>', block=False)
            return
        out = self._block()
        self._toc = (len(out), call)
        out.append("")


_COMPILE: Final[dict[type, Callable[[Compiler, Any], None]]] = {
    Toggle: Compiler._toggle,
    Mark: Compiler._mark,
    Float: Compiler._float,
    HeadingStart: Compiler._begin_heading,
    Item: Compiler._item,
    Cell: Compiler._cell,
    PageLink: Compiler._page_link,
    Outside: Compiler._outside,
    Image: Compiler._image,
    ActionCall: Compiler._action,
    CodeBlock: Compiler._code,
    Embedded: Compiler._embedded,
    MindMap: Compiler._mind_map,
    Rest: Compiler._rest,
}
