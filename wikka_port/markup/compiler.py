"""(pure) From tokens to fragments of HTML: the part of the compiler that all formats share.

A format's compiler (``wikka_html``, ``markdown_html``) adds the structure: the open blocks, and the place of text.
This module has leaves, emphasis, headings, the table of contents and actions.  The HTML is safe and well nested: text
of a page is escaped here, and URLs were checked when the tokens were made (``targets.safe_url``).

Invariants:
    I1. Emphasis is a stack.  The tags of open emphasis are closed before its container ends; a format may open them
        again with the text that follows (``_suspend_marks``).
    I2. Every PageLink becomes exactly one PageSlot or FileSlot (``links.links`` relies on it).
    I3. Ids are unique, and "toc" is the table of contents: the page's own, or one before the first heading that is in
        no other block.

Knows nothing of which pages exist and of what actions do.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from wikka_port.limits import ACTIONS_MAX, FILES_MAX
from wikka_port.markup import code_blocks
from wikka_port.markup.bounds import AS_TYPED, said_of
from wikka_port.markup.file_slots import image_piece, slot_of_call, slot_of_link
from wikka_port.markup.fragments import (
    ActionSlot,
    ContentsSlot,
    FileSlot,
    Heading,
    PageSlot,
    Piece,
    escape,
    section_slot,
)
from wikka_port.markup.targets import is_set, place_id
from wikka_port.markup.tokens import (
    INLINE_KINDS,
    ActionCall,
    CodeBlock,
    Image,
    Inside,
    Open,
    Outside,
    PageLink,
    Rest,
    Toggle,
    Token,
)
from wikka_port.texts import N_, _

# Actions that return text with a little markup; every other action makes a block.
INLINE_ACTIONS: Final = frozenset({
    "acls", "clonelink", "color", "colour", "countcomments", "countedits", "countowned", "countpages", "countusers",
    "delete", "deletelink", "edit", "editlink", "history", "historylink", "homepage", "homepagelink", "image",
    "lastedit", "lasteditauthor", "lasteditnotes", "logo", "logout", "nocomments", "owner", "ownerlink", "randompage",
    "recentchangesrss", "rev", "revertlink", "revisionlink", "revisions", "revisionsrss", "time", "title", "titletag",
    "today", "url", "usersettings", "who", "whoami", "wikkachanges", "wikkaname", "wikkapatchlevel", "wikkaversion",
})  # fmt: skip
NOT_IN_HEADING: Final = N_("it makes a block, which cannot stand in a heading or a footnote")
TOO_MANY: Final = N_("a page has {most} actions at most")
_OUTSIDE_ATTRIBUTES: Final = {
    "external": ' class="external" rel="nofollow noopener"',
    "interwiki": ' class="interwiki" rel="nofollow noopener"',
    "mail": ' class="mail"',
    "local": "",
}
FROM_HEADINGS: Final = 3
_NAMED_LEVELS: Final = re.compile(r"\s*h([1-6])\s*(?:,|$)", re.IGNORECASE)
_LEVELS: Final = re.compile(r"\s*([1-6])\s*(?:(?:-|\.\.|,)\s*([1-6])\s*)?")

Handlers = Mapping[type, Callable[[Any, Any], None]]


class PlaceIds:
    """Ids of headings: unique on the page; "toc" is the table of contents."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[str, int] = {"toc": 1}  # id -> the number for the next heading of this id

    def unique(self, place: str) -> str:
        if place not in self._next:
            self._next[place] = 2
            return place
        while True:
            candidate = f"{place}-{self._next[place]}"
            self._next[place] += 1
            if candidate not in self._next:
                self._next[candidate] = 2
                return candidate


@dataclass(frozen=True, slots=True)
class OpenHeading:
    """A heading that is being read; or a footnote, whose text is collected in the same way."""

    level: int = 0
    start: int = -1  # position of its line in the text; -1: it has no section
    holder: list[Piece] = field(default_factory=list)  # the pieces to which it will be added
    mode: int = 0  # of the format's compiler, which continues after it
    marks: list[Toggle] = field(default_factory=list)  # emphasis open before it, in the same line
    words: list[str] = field(default_factory=list)  # its plain text


def _opening(mark: Toggle) -> str:
    return f'<{mark.tag} class="{mark.css}">' if mark.css else f"<{mark.tag}>"


class Compiler(ABC):
    """Reads tokens, keeps ``pieces``, ``headings`` and ``actions``; used once."""

    __slots__ = (
        *("_budget", "_contents_at", "_files", "_heading", "_marks", "_no_contents", "_out", "_place_ids"),
        *("_toc", "_written"),
        *("actions", "headings", "pieces"),
    )
    HANDLERS: ClassVar[Handlers]  # of each kind of token but text

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.headings: list[Heading] = []
        self.actions: list[ActionCall] = []
        self._out = self.pieces  # the pieces that get the next content: the page's, a heading's or a cell's
        self._marks: list[Toggle] = []  # open emphasis, outermost first
        self._written = 0  # the first so many of ``_marks`` have their tags in ``_out``
        self._heading: OpenHeading | None = None
        self._budget = code_blocks.Budget()
        self._place_ids = PlaceIds()
        self._toc: tuple[int, ActionCall] | None = None  # index of its piece, and its call
        self._contents_at = -1  # index of the piece before which a table without a call is put
        self._no_contents = False  # the page has ``{{notoc}}``
        self._files = 0  # that the page shows or links to

    def compile(self, tokens: list[Token]) -> None:
        handlers = self.HANDLERS
        for token in tokens:
            if type(token) is str:
                self._text(token)
            else:
                handlers[type(token)](self, token)
        self._end_page()
        if self._toc is not None:
            place, call = self._toc
            self.pieces[place] = toc_html(self.headings, dict(call.arguments))
        elif self._contents_at >= 0 and not self._no_contents:
            self.pieces[self._contents_at : self._contents_at] = own_contents(self.headings)

    # -- structure, which a format adds

    @abstractmethod
    def _text(self, text: str) -> None: ...

    @abstractmethod
    def _inline(self) -> list[Piece]:
        """Return the pieces that get the next text; open a paragraph or cell, and emphasis, if necessary."""

    @abstractmethod
    def _block(self) -> list[Piece]:
        """Return the pieces that get the next block (not while a heading is open)."""

    @abstractmethod
    def _in_cell(self) -> bool: ...

    @abstractmethod
    def _close_all(self) -> None: ...

    def _end_page(self) -> None:
        self._close_all()

    # -- emphasis

    def _open_marks(self) -> None:
        for one in self._marks[self._written :]:
            self._out.append(_opening(one))
        self._written = len(self._marks)

    def _suspend_marks(self) -> None:
        """Close the tags of open emphasis, which are opened again with the next text; one around nothing goes."""
        for one in reversed(self._marks[: self._written]):
            if self._out and self._out[-1] == _opening(one):
                self._out.pop()
            else:
                self._out.append(f"</{one.tag}>")
        self._written = 0

    def _close_marks(self) -> None:
        """Close the emphasis whose tags are written, for good."""
        written = self._written
        self._suspend_marks()
        del self._marks[:written]

    # -- leaves

    def _put(self, html: Piece, *, block: bool = False, plain: str = "") -> None:
        if self._heading is not None:
            self._heading.words.append(plain)
            self._inline().append(html)
        else:
            (self._block() if block else self._inline()).append(html)

    def _code(self, code: CodeBlock) -> None:
        if self._heading is not None:
            self._put(code_blocks.inline_html(code), plain=code.body)
        else:
            self._put(code_blocks.drawn(code, self._budget), block=True)

    def _page_link(self, link: PageLink) -> None:
        if link.redirect:
            self._put('<span class="redirect">')
        slot = PageSlot(link.name, _label(link), link.place)
        self._put(self._file(slot_of_link(link, slot)) if link.file or "." in link.name else slot, plain=link.label)
        if link.redirect:
            self._put("</span>")

    def _outside(self, link: Outside) -> None:
        html = f'<a href="{escape(link.url)}"{_OUTSIDE_ATTRIBUTES[link.kind]}>{_label(link)}</a>'
        self._put(html, plain=link.label)

    def _file(self, piece: Piece) -> Piece:
        """Return ``piece``; after FILES_MAX files of a page, words or a link to a page in its place."""
        if isinstance(piece, FileSlot):
            self._files += 1
            if self._files > FILES_MAX:
                return piece.otherwise or escape(piece.choices[0].label or piece.choices[0].reference.name)
        return piece

    def _image(self, image: Image) -> None:
        self._put(self._file(image_piece(image)), plain=image.alt)

    def _rest(self, rest: Rest) -> None:
        """Close all boxes and blocks, then show the rest of the text as it was typed."""
        self._close_all()
        self._out.append(
            f'<p class="notice">{escape(said_of(rest.over))} {_(AS_TYPED)}</p>\n'
            f'<pre class="rest">{escape(rest.source)}</pre>\n'
        )

    # -- headings and contents

    def _put_heading(self, heading: OpenHeading, inside: list[Piece], *, is_free: bool) -> None:
        """Put a heading with its anchor; ``is_free`` if it is in no other block."""
        level, text = heading.level, " ".join("".join(heading.words).split())
        if self._contents_at < 0 and is_free and (self.headings or level > 1):
            self._contents_at = len(self.pieces)
        place = self._place_ids.unique(place_id(text))
        self.headings.append(Heading(level, text, place, heading.start))
        said = _("Link to this section: {heading}", heading=escape(text))
        anchor = f'<a class="anchor" href="#{place}" aria-label="{said}">#</a>'
        edit = [] if heading.start < 0 else [section_slot(place, text)]
        heading.holder.extend([f'<h{level} id="{place}">', *inside, f" {anchor}", *edit, f"</h{level}>\n"])

    def _contents(self, call: ActionCall) -> None:
        if self._toc is not None or self._in_cell():
            self._put(f'<a href="#toc">{_("Contents")}</a>')
            return
        out = self._block()
        self._toc = (len(out), call)
        out.append("")

    # -- actions

    def _action(self, call: ActionCall) -> None:
        if call.name == "notoc":
            self._no_contents = True
            return
        try:
            file = slot_of_call(call)
        except ValueError as problem:
            self._put(ActionSlot(call.name, call.arguments, False, str(problem)))
            return
        block = call.name not in INLINE_ACTIONS
        if file is not None:
            self._put(self._file(file), plain=file.choices[0].label)
        elif block and self._heading is not None:
            self._put(ActionSlot(call.name, call.arguments, False, _(NOT_IN_HEADING)))
        elif call.name == "toc":
            self._contents(call)
        elif len(self.actions) >= ACTIONS_MAX:
            self._put(ActionSlot(call.name, call.arguments, False, _(TOO_MANY, most=ACTIONS_MAX)))
        else:
            self.actions.append(call)
            self._put(ActionSlot(call.name, call.arguments, block), block=block)


def _label(link: PageLink | Outside) -> str:
    return label_html(link.inside) if link.inside else escape(link.label)


def label_html(inside: Inside) -> str:
    """Return the HTML of a label, well nested: a Close without its Open is left out, and a missing Close is added."""
    out: list[str] = []
    opened: list[str] = []
    for token in inside:
        if isinstance(token, str):
            out.append(escape(token))
        elif token.kind not in INLINE_KINDS:
            continue
        elif isinstance(token, Open):
            opened.append(token.kind)
            out.append(f"<{token.kind}>")
        elif opened and opened[-1] == token.kind:
            out.append(f"</{opened.pop()}>")
    out += [f"</{tag}>" for tag in reversed(opened)]
    return "".join(out)


SHARED: Final[Handlers] = {
    PageLink: Compiler._page_link,
    Outside: Compiler._outside,
    ActionCall: Compiler._action,
    CodeBlock: Compiler._code,
    Rest: Compiler._rest,
}


# --- the table of contents ---------------------------------------------------------------------


def toc_html(headings: Sequence[Heading], arguments: Mapping[str, str]) -> str:
    """Return a ``nav`` with id "toc", or "" if there is no heading to list.

    The call is ``{{toc levels="2-3" title="On this page" links="0"}}``.  ``levels`` is one number or a range of 1 to
    5, or WikkaWiki's list, such as ``h2,h4``; with ``links="0"`` the headings are no links.
    """
    levels = _levels(arguments.get("levels", ""))
    shown = [heading for heading in _below_title(headings) if heading.level in levels]
    if not shown:
        return ""
    title = arguments.get("title", "") or _("Contents")
    head = f'<nav class="toc" id="toc" aria-label="{escape(title)}"><p class="toc-title">{escape(title)}</p>'
    is_linked = is_set(arguments.get("links", "1"))
    return f"{head}{_list(shown, is_linked=is_linked)}</nav>\n"


def own_contents(headings: Sequence[Heading]) -> list[ContentsSlot]:
    """Return the folded table of a page without ``{{toc}}``; [] if it has fewer than FROM_HEADINGS headings."""
    shown = _below_title(headings)
    if len(shown) < FROM_HEADINGS:
        return []
    title = _("Contents")
    fold = f'<details class="toc" id="toc"><summary class="toc-title">{title}</summary>'
    return [ContentsSlot(f'{fold}<nav aria-label="{title}">{_list(shown)}</nav></details>\n')]


def _levels(typed: str) -> Collection[int]:
    named = {int(level) for level in _NAMED_LEVELS.findall(typed)}
    if named:
        return named
    wanted = _LEVELS.fullmatch(typed)
    return range(int(wanted[1]), int(wanted[2] or wanted[1]) + 1) if wanted else range(1, 7)


def _below_title(headings: Sequence[Heading]) -> list[Heading]:
    """Return ``headings`` without the page's title, and without headings that have no text."""
    below = headings[1:] if headings and headings[0].level == 1 else headings
    return [heading for heading in below if heading.text]


def _list(shown: Sequence[Heading], *, is_linked: bool = True) -> str:
    out: list[str] = []
    opened: list[int] = []  # levels whose list and item are open
    for heading in shown:
        while opened and opened[-1] > heading.level:
            opened.pop()
            out.append("</li></ul>")
        if opened and opened[-1] == heading.level:
            out.append("</li><li>")
        else:
            out.append("<ul><li>")
            opened.append(heading.level)
        text = escape(heading.text)
        out.append(f'<a href="#{heading.id}">{text}</a>' if is_linked else text)
    out += ["</li></ul>" for _ in opened]
    return "".join(out)
