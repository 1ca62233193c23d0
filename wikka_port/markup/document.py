"""(pure) Parsed pages: the entry point of the markup.

``parse`` does all work that depends only on the text, so its result can be cached by revision; ``render``
fills the slots, which costs a few microseconds for each link.  A Document is immutable and safe to share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, cast

from wikka_port.limits import LINK_STEPS, QUICK_STEPS
from wikka_port.markup.compiler import Compiler
from wikka_port.markup.formats import MARKDOWN, WIKKA, tokens
from wikka_port.markup.fragments import (
    ActionSlot,
    ContentsSlot,
    FileReference,
    FileSlot,
    Filled,
    ForeignSlot,
    Heading,
    PageSlot,
    Piece,
    SectionSlot,
    escape,
)
from wikka_port.markup.links import page_names, redirect_of
from wikka_port.markup.markdown_html import MarkdownCompiler
from wikka_port.markup.tokens import ActionCall, Attributes, HeadingStart, Token
from wikka_port.markup.wikka_html import WikkaCompiler
from wikka_port.names import url_path

_ACTION_STEPS: Final = 2_000  # a list of some hundred pages, read from the store
_EXPENSIVE_ACTIONS: Final = {
    "orphanedpages": QUICK_STEPS,  # reads all pages
    "wantedpages": QUICK_STEPS // 2,  # sometimes reads all wanted pages
    "countcomments": QUICK_STEPS // 2,  # reads many pages with comments
    "highscores": QUICK_STEPS,  # reads many changes
    "mypages": QUICK_STEPS,  # the store reads all pages
    "countowned": QUICK_STEPS,
    "ownedpages": QUICK_STEPS,
    "countusers": QUICK_STEPS,  # reads all accounts
    "lastusers": QUICK_STEPS,
    "mychanges": QUICK_STEPS,  # reads many changes
    "include": QUICK_STEPS // 2,  # parses and renders
}
_CHEAP_ACTIONS: Final = frozenset(("color", "colour", "image", "nocomments"))  # no call of the store; imports have many
Action = Callable[[str, Mapping[str, str]], str | None]


@dataclass(frozen=True, slots=True)
class Document:
    pieces: tuple[Piece, ...]  # two strings never follow each other
    links: tuple[str, ...]  # names of the pages linked to, normalised, each once, in order
    headings: tuple[Heading, ...]
    actions: tuple[ActionCall, ...]  # those that render() will run, in order; without toc, notoc and redirect
    redirect: str | None  # the page to which this one redirects
    steps: int  # the estimated cost of rendering (``limits``)
    files: tuple[FileReference, ...] = ()  # that the page may show or link to, each once, in order
    given_title: str | None = None  # of the front matter, if no heading says it
    is_ready: bool = True  # whether ``pieces`` has no FileSlot and no ForeignSlot

    @property
    def title(self) -> str | None:
        """The title in the front matter, else the text of the first heading.

        A heading that begins the text and is the only one of its level is the title in any case.
        """
        return self.given_title or (self.headings[0].text if self.headings else None)


def default_page_url(name: str) -> str:
    return "/" + url_path(name)


def no_actions(name: str, arguments: Mapping[str, str]) -> str | None:
    return None


def no_note(slot: ActionSlot) -> str:
    return ""


def no_files(slot: FileSlot) -> str | None:
    """Return words or a link in the place of a file, as if there were none."""
    return None if slot.otherwise else escape(slot.choices[0].label or slot.choices[0].reference.name)


def from_anywhere(host: str) -> bool:
    return True


def parse(text: str, *, autolink: bool = True, markup: str = WIKKA) -> Document:
    """Parse a text; any text is a page, so this never raises.  Linear in the text.

    With ``autolink`` CamelCase words are links.
    """
    read = tokens(text, autolink=autolink, markup=markup)
    compiler = compiled(read, markup)
    names = tuple(page_names(read))
    pieces = _joined(compiler.pieces)
    late = [piece for piece in pieces if isinstance(piece, FileSlot | ForeignSlot)]
    references = (choice.reference for slot in late if isinstance(slot, FileSlot) for choice in slot.choices)
    return Document(
        pieces=pieces,
        links=names,
        headings=tuple(compiler.headings),
        actions=tuple(compiler.actions),
        redirect=redirect_of(read),
        steps=len(compiler.pieces) + LINK_STEPS * (len(names) + len(late)) + _steps(compiler.actions),
        files=tuple(dict.fromkeys(references)),
        given_title=_given_title(read),
        is_ready=not late,
    )


def _given_title(read: list[Token]) -> str | None:
    if not read or not isinstance(read[0], Attributes):
        return None
    title = dict(read[0].pairs).get("title")
    begins_with_heading = len(read) > 1 and isinstance(read[1], HeadingStart) and read[1].level == 1
    if not title or not begins_with_heading:
        return title or None
    return title if sum(isinstance(token, HeadingStart) and token.level == 1 for token in read) > 1 else None


def compiled(read: list[Token], markup: str) -> Compiler:
    """Return the compiler of the format after it has read the tokens."""
    compiler = MarkdownCompiler() if markup == MARKDOWN else WikkaCompiler()
    compiler.compile(read)
    return compiler


def _steps(actions: Iterable[ActionCall]) -> int:
    return sum(
        0 if call.name in _CHEAP_ACTIONS else _ACTION_STEPS + _EXPENSIVE_ACTIONS.get(call.name, 0) for call in actions
    )


def _joined(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Return ``pieces`` with neighbouring strings joined, since each piece costs time at rendering."""
    out: list[Piece] = []
    run: list[str] = []
    for piece in pieces:
        if type(piece) is str:
            run.append(piece)
            continue
        if run:
            out.append("".join(run))
            run = []
        out.append(piece)
    if run:
        out.append("".join(run))
    return tuple(out)


def render(
    document: Document,
    *,
    existing: AbstractSet[str],
    action: Action = no_actions,
    page_url: Callable[[str], str] = default_page_url,
    note: Callable[[ActionSlot], str] = no_note,
    edit: str = "",
    contents: bool = True,
    file: Callable[[FileSlot], str | None] = no_files,
    is_allowed: Callable[[str], bool] = from_anywhere,
) -> str:
    """Return the page as HTML.

    ``existing`` has those of ``document.links`` that are pages; a link to any other page has class "missing" and leads
    to ``page_url(name) + "/edit"``.  ``action`` returns safe HTML (it gets the arguments as typed and must escape
    them), or None for an unknown name; its exceptions pass through.  ``note`` returns the text in the place of an
    action that is not run: nothing, unless the reader is the page's author.  ``edit`` is the path of the page's
    editor, if the visitor may write the page: then each heading has a link to the editor of its section.
    ``contents`` includes the automatic table of contents.  ``file`` returns the HTML of a file, or None for the link to
    a page in its place; ``is_allowed`` tells whether pictures of a host are shown.
    """
    out: list[str] = []
    edit = escape(edit)
    for piece in _filled(document, file, is_allowed):
        if type(piece) is str:
            out.append(piece)
        elif isinstance(piece, PageSlot):
            url = escape(page_url(piece.name))
            if piece.name in existing:
                url = f"{url}#{escape(piece.place)}" if piece.place else url
                out.append(f'<a href="{url}">{piece.label_html}</a>')
            else:
                out.append(f'<a href="{url}/edit" class="missing" rel="nofollow">{piece.label_html}</a>')
        elif isinstance(piece, SectionSlot):
            if edit:
                out.append(f' <a class="edit-section" href="{edit}?section={piece.end_html}')
        elif isinstance(piece, ContentsSlot):
            if contents:
                out.append(piece.html)
        elif not isinstance(piece, str):
            html = None if piece.refused else action(piece.name, dict(piece.arguments))
            out.append(note(piece) if html is None else html)
    return "".join(out)


def _filled(
    document: Document, file: Callable[[FileSlot], str | None], is_allowed: Callable[[str], bool]
) -> Sequence[Filled]:
    """Return the pieces with files and pictures filled in; most pages have none and cost nothing here."""
    if document.is_ready:
        return cast("Sequence[Filled]", document.pieces)
    out: list[Filled] = []
    for piece in document.pieces:
        if isinstance(piece, FileSlot):
            html = file(piece)
            out.append(piece.otherwise or "" if html is None else html)
        elif isinstance(piece, ForeignSlot):
            out.append(piece.picture_html if is_allowed(piece.host) else piece.link_html)
        else:
            out.append(piece)
    return out
