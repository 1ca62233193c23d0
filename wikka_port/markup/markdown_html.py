"""(pure) From the structure of a nesting format (Markdown) to HTML: blocks are tags of a closed list.

Invariants:
    I1. A Close ends the innermost part if that is of its kind, else it ends nothing; parts left open are closed.
    I2. A block is never within a ``p``: the paragraph ends before it and continues after it.  No paragraph is empty.
"""

from __future__ import annotations

from typing import ClassVar, Final, get_args

from wikka_port.markup.compiler import SHARED, Compiler, Handlers, OpenHeading
from wikka_port.markup.fragments import Piece, escape
from wikka_port.markup.markdown_extensions import ALERTS
from wikka_port.markup.tokens import (
    INLINE_KINDS,
    Attributes,
    Close,
    HeadingStart,
    Image,
    InlineKind,
    Kind,
    Mark,
    NoteMark,
    Open,
    Task,
    Toggle,
)
from wikka_port.texts import N_, _

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
    "details": ("<details>\n", "</details>\n"),
    "summary": ("<summary>", "</summary>\n"),
    "heading cell": ('<th scope="col">', "</th>"),
    "cell": ("<td>", "</td>"),
}
_MARKS: Final[dict[Kind, Toggle]] = {kind: Toggle(kind) for kind in get_args(InlineKind)}
_ALERTS: Final = {
    "note": N_("Note"), "tip": N_("Tip"), "important": N_("Important"), "warning": N_("Warning"),
    "caution": N_("Caution"),
}  # fmt: skip
_ALIGNED: Final = frozenset({"left", "center", "right"})
assert _MARKS.keys() == INLINE_KINDS


class MarkdownCompiler(Compiler):
    __slots__ = ("_blocks", "_note", "_paragraph")

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[Kind] = []  # open, outermost first
        self._paragraph = ""  # "": in no paragraph; "due": its tag comes with its first content; "open"
        self._note = ""  # the number of the open footnote

    # -- places for content

    def _inline(self) -> list[Piece]:
        if self._paragraph == "due":
            self._out.append("<p>")
            self._paragraph = "open"
        if self._written < len(self._marks):
            self._open_marks()
        return self._out

    def _block(self) -> list[Piece]:
        self._suspend_marks()
        if self._paragraph == "open":
            self._out.append("</p>\n")
            self._paragraph = "due"
        return self._out

    def _in_cell(self) -> bool:
        return "cell" in self._blocks or "heading cell" in self._blocks

    def _close_all(self) -> None:
        if self._heading is not None:
            self._end_heading(self._heading)
        self._end_inline()
        while self._blocks:
            self._out.append(_TAGS[self._blocks.pop()][1])

    def _end_inline(self) -> None:
        """End the paragraph or cell, with all emphasis open in it."""
        self._block()
        self._marks.clear()
        self._paragraph = ""

    # -- parts

    def _open(self, part: Open) -> None:
        kind = part.kind
        if kind in _MARKS:
            self._marks.append(_MARKS[kind])
            return
        self._end_inline()
        if kind == "p":
            self._paragraph = "due"
            return
        self._blocks.append(kind)
        self._out.append(_opening(part))
        if kind == "note":
            self._note = part.value

    def _close(self, part: Close) -> None:
        kind = part.kind
        if kind in _MARKS:
            if self._marks and self._marks[-1].tag == kind:
                self._marks.pop()
                if self._written > len(self._marks):
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
        self._heading = OpenHeading(heading.level, heading.start, self.pieces)
        self._out = []

    def _end_heading(self, heading: OpenHeading) -> None:
        self._suspend_marks()
        self._marks.clear()
        self._put_heading(heading, self._out, is_free=not self._blocks)
        self._out, self._heading = self.pieces, None

    # -- leaves

    def _text(self, text: str) -> None:
        if self._heading is not None:
            self._heading.words.append(text)
        if self._paragraph != "due" or not text.isspace():
            self._inline().append(escape(text))

    def _mark(self, mark: Mark) -> None:
        if mark.name == "heading end":
            if self._heading is not None:
                self._end_heading(self._heading)
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

    def _attributes(self, attributes: Attributes) -> None:
        said = [(key, words) for key, words in attributes.pairs if words]
        if not said:
            return
        rows = "".join(f"<dt>{escape(key)}</dt><dd>{escape(words)}</dd>\n" for key, words in said)
        head = f'<details class="attributes"><summary>{_("About this page")}</summary><dl>\n'
        self._put(f"{head}{rows}</dl></details>\n", block=True)

    HANDLERS: ClassVar[Handlers] = {
        **SHARED,
        Open: _open,
        Attributes: _attributes,
        Close: _close,
        Mark: _mark,
        HeadingStart: _begin_heading,
        Image: Compiler._image,
        Task: _task,
        NoteMark: _note_mark,
    }


def _opening(part: Open) -> str:
    tag = _TAGS[part.kind][0]
    if part.kind == "numbers" and part.value.isdigit() and len(part.value) < 10 and part.value != "1":
        return f'<ol start="{int(part.value)}">\n'
    if part.kind == "details" and part.value:
        return "<details open>\n"
    if part.kind == "quote" and part.value in ALERTS:
        said = _(_ALERTS[part.value]) if part.value in _ALERTS else part.value.capitalize()
        return f'<blockquote class="alert alert-{ALERTS[part.value]}">\n<p class="alert-title">{said}</p>\n'
    if part.kind == "notes":
        return f'{tag[: tag.index(">")]} aria-label="{_("Footnotes")}"{tag[tag.index(">") :]}'
    if part.kind == "note" and part.value.isdigit():
        return f'<li id="n-{part.value}">'
    if part.kind in ("cell", "heading cell") and part.value in _ALIGNED:
        return f'{tag[:-1]} class="to-{part.value}">'
    return tag
