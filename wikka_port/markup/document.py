"""(pure) Parsed pages: the entry point of the markup.

``parse`` does all work that depends only on the text, so its result can be cached by revision; ``render``
fills the slots, which costs a few microseconds for each link.  A Document is immutable and safe to share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from wikka_port.limits import LINK_STEPS, QUICK_STEPS
from wikka_port.markup.compiler import Compiler
from wikka_port.markup.formats import MARKDOWN, WIKKA, tokens
from wikka_port.markup.fragments import ActionSlot, ContentsSlot, Heading, PageSlot, Piece, SectionSlot, escape
from wikka_port.markup.links import page_names, redirect_of
from wikka_port.markup.markdown_html import MarkdownCompiler
from wikka_port.markup.tokens import ActionCall, Token
from wikka_port.markup.wikka_html import WikkaCompiler
from wikka_port.names import url_path

_ACTION_STEPS: Final = 2_000  # a list of some hundred pages, read from the store
_EXPENSIVE_ACTIONS: Final = {
    "orphanedpages": QUICK_STEPS,  # reads all pages
    "wantedpages": QUICK_STEPS // 2,  # sometimes reads all wanted pages
    "highscores": QUICK_STEPS,  # reads many changes
    "mypages": QUICK_STEPS,  # the store reads all pages
    "countowned": QUICK_STEPS,
    "ownedpages": QUICK_STEPS,
    "countusers": QUICK_STEPS,  # reads all accounts
    "lastusers": QUICK_STEPS,
    "mychanges": QUICK_STEPS,  # reads many changes
    "include": QUICK_STEPS // 2,  # parses and renders
}
_CHEAP_ACTIONS: Final = frozenset(("color", "colour", "image"))  # no call of the store; imports have many
Action = Callable[[str, Mapping[str, str]], str | None]


@dataclass(frozen=True, slots=True)
class Document:
    pieces: tuple[Piece, ...]  # two strings never follow each other
    links: tuple[str, ...]  # names of the pages linked to, normalised, each once, in order
    headings: tuple[Heading, ...]
    actions: tuple[ActionCall, ...]  # those that render() will run, in order; without toc, notoc and redirect
    redirect: str | None  # the page to which this one redirects
    steps: int  # the estimated cost of rendering (``limits``)

    @property
    def title(self) -> str | None:
        """The text of the first heading."""
        return self.headings[0].text if self.headings else None


def default_page_url(name: str) -> str:
    return "/" + url_path(name)


def no_actions(name: str, arguments: Mapping[str, str]) -> str | None:
    return None


def no_note(slot: ActionSlot) -> str:
    return ""


def parse(text: str, *, autolink: bool = True, markup: str = WIKKA) -> Document:
    """Parse a text; any text is a page, so this never raises.  Linear in the text.

    With ``autolink`` CamelCase words are links.
    """
    read = tokens(text, autolink=autolink, markup=markup)
    compiler = compiled(read, markup)
    names = tuple(page_names(read))
    return Document(
        pieces=_joined(compiler.pieces),
        links=names,
        headings=tuple(compiler.headings),
        actions=tuple(compiler.actions),
        redirect=redirect_of(read),
        steps=len(compiler.pieces) + LINK_STEPS * len(names) + _steps(compiler.actions),
    )


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
) -> str:
    """Return the page as HTML.

    ``existing`` has those of ``document.links`` that are pages; a link to any other page has class "missing" and leads
    to ``page_url(name) + "/edit"``.  ``action`` returns safe HTML (it gets the arguments as typed and must escape
    them), or None for an unknown name; its exceptions pass through.  ``note`` returns the text in the place of an
    action that is not run: nothing, unless the reader is the page's author.  ``edit`` is the path of the page's
    editor, if the visitor may write the page: then each heading has a link to the editor of its section.
    ``contents`` includes the automatic table of contents.
    """
    out: list[str] = []
    edit = escape(edit)
    for piece in document.pieces:
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
