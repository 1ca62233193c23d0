"""(pure) From the structure of Wikka markup to HTML: lines, lists, tables, boxes and footnotes.

The state is a mode, and the constructs that are open, from the outermost to the innermost:

    floats > lists or table > paragraph, item, heading or cell > emphasis

    TOP        between blocks (a list or table may continue in the next line)
    PARAGRAPH  ITEM  HEADING  CELL    in a block that takes text

Invariant: emphasis is closed before its container.  If a toggle closes an outer emphasis, the inner ones are closed
and opened again, so ``**a //b** c//`` shows what its author meant.  Emphasis that is open around a heading or
rule inside a line is opened again in the heading, and after the heading or rule.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import ClassVar, Final

from wikka_port.markup import embedded
from wikka_port.markup.compiler import SHARED, Compiler, Handlers, OpenHeading
from wikka_port.markup.file_slots import embedded_pieces
from wikka_port.markup.fragments import Piece, escape
from wikka_port.markup.lists import ListStack
from wikka_port.markup.tables import TableBuilder
from wikka_port.markup.tokens import Cell, Embedded, Float, HeadingStart, Image, Item, Mark, MindMap, Toggle
from wikka_port.texts import _

TOP, PARAGRAPH, ITEM, HEADING, CELL = range(5)
# Pieces of embedded HTML that are one tag; the text between two of them is raised, lowered or small.
_HALVES: Final = {
    f"<{stroke}{tag}>": (Toggle(tag), not stroke) for tag in ("sup", "sub", "small") for stroke in ("", "/")
}
_FLOATS: Final = {side: Toggle("span", f"float-{side}") for side in ("left", "right")}
MAP_DEPTH: Final = 20
_NODE: Final = re.compile(r"<node\b([^<>]*+)>|</node\s*>")
_TEXT: Final = re.compile(r"\bTEXT=\"([^\"]*+)\"")


class WikkaCompiler(Compiler):
    __slots__ = (
        *("_break", "_floats", "_has_places", "_lists", "_mode", "_notes", "_outside_note", "_section"),
        "_table",
    )

    def __init__(self) -> None:
        super().__init__()
        self._mode = TOP
        self._break = False  # whether a line of the paragraph has ended, and the paragraph may continue
        self._floats: list[str] = []
        self._lists = ListStack()
        self._table: TableBuilder | None = None
        self._section = -1  # position at which the last section begins
        self._notes: list[list[Piece]] = []
        self._outside_note: tuple[list[Piece], int, list[Toggle], OpenHeading | None] | None = None  # None: in no note
        self._has_places = False  # whether embedded HTML has ids

    def _end_page(self) -> None:
        self._close_all()
        self._put_notes()
        if self._has_places:  # now that all headings have their ids, the others avoid these
            ids = self._place_ids
            self.pieces[:] = [embedded.placed(one, ids) if type(one) is str else one for one in self.pieces]

    # -- places for content

    def _inline(self) -> list[Piece]:
        if self._mode == TOP:
            self._close_blocks()
            self._out.append("<p>")
            self._mode = PARAGRAPH
        elif self._mode == CELL and self._table is not None:
            self._out = self._table.sink()
        elif self._break:
            self._out.append("<br>\n")
            self._break = False
        if self._written < len(self._marks):
            self._open_marks()
        return self._out

    def _block(self) -> list[Piece]:
        self._close_marks()
        if self._mode == CELL and self._table is not None:
            self._out = self._table.sink()
        elif self._mode != ITEM:
            self._close_blocks()
        return self._out

    def _in_cell(self) -> bool:
        return self._mode == CELL

    def _carried(self) -> list[Toggle]:
        """Close the tags of the emphasis that is open in this line, and return that emphasis."""
        if self._break:
            self._close_marks()
            self._marks.clear()
        self._suspend_marks()
        return self._marks.copy()

    def _end_line(self) -> None:
        """Leave the paragraph, item or cell, and a heading in it; lists and a table stay open."""
        self._end_note()
        if self._heading is not None:
            self._end_heading(self._heading)
        self._close_marks()
        self._marks.clear()
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
            self.pieces.extend(self._table.finish())
            self._table = None

    # -- text and toggles

    def _text(self, text: str) -> None:
        if self._heading is not None:
            self._heading.words.append(text)
        elif self._mode == CELL:
            if text.isspace() and self._table is not None and not self._table.in_cell:
                return  # blanks after the last bar of a row are no cell
        elif self._mode == TOP or self._break:
            text = text.lstrip()
            if not text:
                return
        self._inline().append(escape(text))

    def _toggle(self, toggle: Toggle) -> None:
        if toggle in self._marks[self._written :]:
            del self._marks[self._marks.index(toggle, self._written)]
            return
        out = self._inline()
        stack = self._marks
        if toggle not in stack:
            stack.append(toggle)
            self._open_marks()
            return
        at = stack.index(toggle)
        out += [f"</{one.tag}>" for one in reversed(stack[at:])]
        del stack[at]
        self._written = at
        self._open_marks()

    def _mark(self, mark: Mark) -> None:
        if mark.name == "newline":
            del self._marks[self._written :]
            if self._mode == PARAGRAPH and not self._break:
                self._break = True
            elif self._mode in (TOP, PARAGRAPH):
                self._close_blocks()  # an empty line
            else:
                self._end_line()
        elif mark.name == "heading end":
            if self._heading is not None:
                self._end_heading(self._heading)
            else:
                self._end_line()
        elif mark.name == "note":
            self._begin_note()
        elif mark.name == "note end":
            self._end_note()
        elif mark.name == "rule":
            carried = self._carried()
            self._block().append("<hr>\n")
            self._marks, self._written = carried, 0
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
            self._close_marks()
        elif self._mode != TOP or self._lists:
            self._close_blocks()
        if self._table is None:
            self._table = TableBuilder()
        self._table.delimiter(cell)
        self._mode = CELL

    def _begin_heading(self, heading: HeadingStart) -> None:
        carried = self._carried()
        holder = self._block()
        self._heading = OpenHeading(heading.level, heading.start, holder, self._mode, carried)
        self._mode, self._out = HEADING, []
        self._marks, self._written = carried.copy(), 0

    def _end_heading(self, heading: OpenHeading) -> None:
        carried = [one for one in heading.marks if one in self._marks]
        self._suspend_marks()
        start = -1 if heading.start == self._section else heading.start  # a line's second heading has no section
        self._section = heading.start
        is_free = heading.holder is self.pieces and heading.mode == TOP and not self._floats
        self._put_heading(replace(heading, start=start), self._out, is_free=is_free)
        self._out, self._mode, self._heading = heading.holder, heading.mode, None
        self._marks = carried

    # -- footnotes

    def _begin_note(self) -> None:
        """Collect the text that follows in the note, like the words of a heading: no block can begin in it."""
        number = len(self._notes) + 1
        said = _("Footnote {number}", number=number)
        words = f'<a id="r-{number}" href="#n-{number}" aria-label="{said}">{number}</a>'
        self._inline().append(f'<sup class="note-ref">{words}</sup>')
        self._outside_note = (self._out, self._mode, self._marks, self._heading)
        self._out, self._mode, self._marks, self._written = [], HEADING, [], 0
        self._heading = OpenHeading(mode=HEADING)
        self._notes.append(self._out)

    def _end_note(self) -> None:
        if self._outside_note is not None:
            self._suspend_marks()
            self._out, self._mode, self._marks, self._heading = self._outside_note
            self._written, self._outside_note = len(self._marks), None

    def _put_notes(self) -> None:
        if not self._notes:
            return
        self._out.append(f'<section class="footnotes" aria-label="{_("Footnotes")}"><ol>\n')
        for number, note in enumerate(self._notes, 1):
            said = _("Back to footnote {number} in the text", number=number)
            link_back = f' <a href="#r-{number}" aria-label="{said}">↩</a>'
            self._out += [f'<li id="n-{number}">', *note, f"{link_back}</li>\n"]
        self._out.append("</ol></section>\n")

    # -- constructs that only Wikka markup has

    def _embedded(self, source: Embedded) -> None:
        half = _HALVES.get(source.source)
        if half is not None:
            if half[1] != (half[0] in self._marks):
                self._toggle(half[0])
            return
        found, block = embedded.clean(source.source, inline=self._heading is not None)
        if found:
            self._has_places = self._has_places or embedded.has_places(found)
            plain = "" if "<" in found else source.source
            for piece in embedded_pieces(found):
                self._put(piece, block=block, plain=plain)

    def _mind_map(self, source: MindMap) -> None:
        if self._heading is None:
            self._put(outline_html(source.source), block=True)

    HANDLERS: ClassVar[Handlers] = {
        **SHARED,
        Toggle: _toggle,
        Mark: _mark,
        Float: _float,
        HeadingStart: _begin_heading,
        Item: _item,
        Cell: _cell,
        Image: Compiler._image,
        Embedded: _embedded,
        MindMap: _mind_map,
    }


def outline_html(source: str) -> str:
    """Return a pasted FreeMind ``<map>`` as a nested list of the TEXT of its ``node`` elements.

    The source is scanned and not parsed as XML, so no entity is expanded and nothing is loaded.  A broken map still
    shows its readable nodes.
    """
    out = ['<figure class="mindmap"><ul>']
    opened: list[bool] = []  # for each open node, whether it has a list of children yet
    skipped = 0  # open nodes below MAP_DEPTH
    for node in _NODE.finditer(source):
        attributes = node[1]
        if attributes is None:
            if skipped:
                skipped -= 1
            elif opened:
                out.append("</ul></li>" if opened.pop() else "</li>")
            continue
        closed = attributes.rstrip().endswith("/")
        if len(opened) >= MAP_DEPTH:
            skipped += not closed
            continue
        if opened and not opened[-1]:
            out.append("<ul>")
            opened[-1] = True
        text = _TEXT.search(attributes)
        out.append("<li>" + (escape(html.unescape(text[1])) if text else ""))
        if closed:
            out.append("</li>")
        else:
            opened.append(False)
    while opened:
        out.append("</ul></li>" if opened.pop() else "</li>")
    out.append("</ul></figure>\n")
    return "".join(out)
