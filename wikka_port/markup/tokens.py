"""(pure) Tokens of the markup: the output of the lexers and the input of the compilers.

A plain ``str`` is running text, not yet escaped.  Every other token is one of the values below.
A token carries page text as it was typed; the HTML compilers escape it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

Bound = Literal["links", "cells", "steps", "addresses"]  # of ``limits``: LINKS_MAX, CELLS_MAX, STEPS_MAX, ADDRESSES_MAX


@dataclass(frozen=True, slots=True)
class Toggle:
    """Opens an emphasis, or closes it if it is open."""

    tag: str
    css: str = ""


TOGGLES: Final[dict[str, Toggle]] = {
    "**": Toggle("strong"),
    "//": Toggle("em"),
    "__": Toggle("u"),
    "##": Toggle("code"),
    "''": Toggle("mark"),
    "++": Toggle("s"),
    "££": Toggle("ins"),
    "&pound;&pound;": Toggle("ins"),
    "¥¥": Toggle("del"),
    "&yen;&yen;": Toggle("del"),
    "#%": Toggle("kbd"),
    "@@": Toggle("span", "center"),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A construct without content of its own; there are only the seven below."""

    name: str


NEWLINE: Final = Mark("newline")
BREAK: Final = Mark("break")  # ---
RULE: Final = Mark("rule")  # ----
CLEAR: Final = Mark("clear")  # ::c::
HEADING_END: Final = Mark("heading end")
NOTE: Final = Mark("note")  # [^
NOTE_END: Final = Mark("note end")  # ^]


@dataclass(frozen=True, slots=True)
class Float:
    """The mark ``<<`` or ``>>``, which opens a box at that side, or closes it."""

    side: Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class HeadingStart:
    level: int  # 1..5; 6 in Markdown
    start: int = field(default=-1, compare=False)  # position of its line; -1: in a cell, or within another block


@dataclass(frozen=True, slots=True)
class Item:
    """The start of an item: an indented line."""

    depth: int  # 1 and more, not yet bounded
    marker: str  # "" plain, "-", "&", or the text before ")": "1", "a", "iv"


@dataclass(frozen=True, slots=True)
class Cell:
    """A delimiter of a table: ``kind`` is "|" for ``||``, else the character between the bars."""

    kind: str
    attributes: str = ""  # the text in (..) as typed
    css: str = ""  # the text in {..} as typed


BlockKind = Literal["p", "quote", "bullets", "numbers", "item", "notes", "note", "details", "summary"]
TableKind = Literal["table", "head", "body", "row", "heading cell", "cell"]
InlineKind = Literal["em", "strong", "s", "code", "kbd", "sub", "sup", "ins", "del", "mark", "small", "u"]
Kind = BlockKind | TableKind | InlineKind
INLINE_KINDS: Final[frozenset[str]] = frozenset(get_args(InlineKind))


@dataclass(frozen=True, slots=True)
class Open:
    """The beginning of a part in a nesting format (``markdown``); a Close of its kind follows."""

    kind: Kind
    value: str = ""  # numbers: the first one; a cell: its side; a note: its number; a quote: "note" and other alerts


@dataclass(frozen=True, slots=True)
class Close:
    kind: Kind


@dataclass(frozen=True, slots=True)
class Task:
    """The box at the beginning of an item in a list of tasks."""

    done: bool


@dataclass(frozen=True, slots=True)
class NoteMark:
    """A reference to the footnote ``number``."""

    number: int
    time: int  # 1: the first reference to the footnote


Inside = tuple[str | Open | Close, ...]  # of a link: its label with emphasis


@dataclass(frozen=True, slots=True)
class PageLink:
    name: str  # normalised
    label: str
    redirect: bool = False  # written as {{redirect target=".."}}
    place: str = ""  # id of the linked heading
    inside: Inside = ()  # (): the label, as text
    file: str = ""  # name of a file of that page; "": the page itself, unless a file of this page has its name
    shows: bool = True  # whether a picture is shown in the place of the link, if the link leads to one


@dataclass(frozen=True, slots=True)
class Outside:
    """A link to an address outside the wiki's pages; its URL was checked to be safe."""

    url: str
    label: str
    kind: Literal["external", "interwiki", "mail", "local"]
    inside: Inside = ()


@dataclass(frozen=True, slots=True)
class Image:
    url: str
    alt: str = ""  # "": none was given
    link: str = ""  # the address that the picture links to; "": itself
    file: str = ""  # name of a file of this page, in the place of ``url``
    width: int = 0  # in pixels; 0: its own

    def of_width(self, width: int) -> Image:
        return replace(self, width=width)


@dataclass(frozen=True, slots=True)
class ActionCall:
    name: str  # lower case
    arguments: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CodeBlock:
    body: str
    language: str = ""
    start: int | None = None  # number of the first line; None: lines are not numbered
    filename: str = ""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The text between two pairs of double quotes, which is unchecked HTML."""

    source: str


@dataclass(frozen=True, slots=True)
class Attributes:
    """The front matter of a page in Markdown."""

    pairs: tuple[tuple[str, str], ...]  # key and words, as typed


@dataclass(frozen=True, slots=True)
class MindMap:
    source: str


@dataclass(frozen=True, slots=True)
class Rest:
    """The last token of a text over a bound: the unread text, which is shown as it was typed."""

    source: str
    over: Bound


Token = (
    str
    | Toggle
    | Mark
    | Float
    | HeadingStart
    | Item
    | Cell
    | PageLink
    | Outside
    | Image
    | ActionCall
    | CodeBlock
    | Embedded
    | MindMap
    | Open
    | Close
    | Task
    | NoteMark
    | Attributes
    | Rest
)
