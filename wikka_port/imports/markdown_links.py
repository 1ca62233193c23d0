"""(pure, fuzzed) The links and pictures of a Markdown text that was a file in a folder, written so that they lead here.

    [words](../Other%20Page.md#part "title")    ![alt](images/a%20b.png)    [label]: images/a.png    <img src="a.png">
    [[Page]]  [[Page#Heading|words]]  ![[picture.png|300]]  ![[Page]]

A resolver says what each one means in its folder.  Only those that would lead elsewhere in this wiki are changed; all
the rest of the text stays, to the letter.  A reference within code is none: the changed ones get an address of their
own, and the text is parsed like a page; only those whose addresses come back are changed (as in ``moving.rewriting``).

A link out of the folder (``../issues/5``) gets its whole address, if the resolver knows it.

A picture of another page is written ``![[file:Page/a.png|alt]]``, or as ``{{image}}`` if it has a width; a whole page
within a page is ``{{include}}``.

Knows nothing of folders and files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote, unquote, urljoin

from wikka_port.limits import REFERENCES_MAX
from wikka_port.markup import markdown, markdown_writing
from wikka_port.markup.targets import is_url, picture_at, read_link, read_picture, width_in
from wikka_port.markup.tokens import ActionCall, Image, Outside, PageLink, Token
from wikka_port.names import url_path
from wikka_port.schema import folded

Kind = Literal["link", "picture", "definition", "html", "wiki", "embed"]

_ADDRESS: Final = r"<[^<>\n]*>|(?:[^()\s<>\\]|\\.|\([^()\s<>]*\))+"
_TITLE: Final = r"(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*"
_REFERENCE: Final = re.compile(
    rf"!\[(?P<alt>(?:[^\[\]\\]|\\.)*)\]\(\s*(?P<picture>{_ADDRESS})(?P<picture_title>{_TITLE})\)"
    rf"|\[(?P<words>(?:[^\[\]\\]|\\.)*)\]\(\s*(?P<link>{_ADDRESS})(?P<link_title>{_TITLE})\)"
    rf"|\]\(\s*(?P<tail>{_ADDRESS})(?P<tail_title>{_TITLE})\)"
    rf"|^[ ]{{0,3}}\[(?P<label>[^\[\]\n^][^\[\]\n]*)\]:[ \t]*(?P<definition>{_ADDRESS})"
    r"|(?P<begin><img\s[^<>]*?\bsrc\s*=\s*)(?P<mark>[\"'])(?P<html>[^\"'<>]*)(?P=mark)"
    r"|(?P<bang>!?)\[\[(?P<target>[^\[\]\n|\\]+)(?P<bar>\\?\|)?(?P<shown>[^\[\]\n]*)\]\]",
    re.MULTILINE,
)
_CODE: Final = re.compile(
    r"^[ ]{0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^[ ]{0,3}\1|\Z)|(?<!`)(`+)(?!`)[^\n]{0,2000}?(?<!`)\2(?!`)",
    re.MULTILINE | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,30}:")
_IN_WORDS: Final = re.compile(r"[\[\]|]")
_QUOTED: Final = re.compile('["{}|]')


@dataclass(frozen=True, slots=True)
class Reference:
    """The target of a link or picture, decoded; ``path`` is "" for a heading of the page itself."""

    kind: Kind
    path: str
    place: str  # behind ``#``, as typed


@dataclass(frozen=True, slots=True)
class PageTarget:
    name: str  # "": the page itself
    place: str | None  # None: as typed


@dataclass(frozen=True, slots=True)
class FileTarget:
    page: str  # "": the page itself
    name: str


@dataclass(frozen=True, slots=True)
class AddressTarget:
    """Something outside the folder."""

    base: str  # the address of the page in which the reference is


Target = PageTarget | FileTarget | AddressTarget
Resolve = Callable[[Reference], Target | None]


def references(text: str) -> Iterator[Reference]:
    """Yield the references of a text that are in no code; as good as a reading without a parser can be."""
    for found in _found(_CODE.sub("", text)):
        reference = _reference(found)
        if reference is not None:
            yield reference


def rewritten(text: str, resolve: Resolve, *, words_first: bool = False) -> str:
    """Return ``text`` with the references changed that would lead elsewhere.

    With ``words_first``, ``[[words|Page]]`` is read as a GitHub wiki reads it.
    """
    changes: dict[int, str] = {}
    for number, found in enumerate(_found(text)):
        new = _changed(found, resolve, words_first=words_first)
        if new is not None and new != found[0]:
            changes[number] = new
    if not changes:
        return text
    mark = "zqxfile"
    while mark in text:
        mark += "x"
    probed = _replaced(
        text, {number: _probe(found, f"/-/{mark}{number}-") for number, found in _numbered(text, changes)}
    )
    there = set(_marks(markdown.tokens(probed, autolink=False), re.compile(rf"/-/{mark}([0-9]+)-")))
    return _replaced(text, {number: new for number, new in changes.items() if number in there})


def _found(text: str) -> Iterator[re.Match[str]]:
    for number, found in enumerate(_REFERENCE.finditer(text)):
        if number >= REFERENCES_MAX:
            return
        yield found


def _numbered(text: str, changes: dict[int, str]) -> Iterator[tuple[int, re.Match[str]]]:
    return ((number, found) for number, found in enumerate(_found(text)) if number in changes)


def _replaced(text: str, by_number: dict[int, str]) -> str:
    pieces, done = [], 0
    for number, found in enumerate(_found(text)):
        if number in by_number:
            pieces += [text[done : found.start()], by_number[number]]
            done = found.end()
    return "".join([*pieces, text[done:]])


def _marks(tokens: list[Token], pattern: re.Pattern[str]) -> Iterator[int]:
    for token in tokens:
        for url in (token.url, token.link) if isinstance(token, Image) else (getattr(token, "url", ""),):
            yield from (int(found[1]) for found in pattern.finditer(url))


def _probe(found: re.Match[str], address: str) -> str:
    if found["target"] is not None:
        return f"{found['bang']}[[{address}{found['bar'] or ''}{found['shown']}]]"
    return _with_address(found, address)


def _with_address(found: re.Match[str], address: str) -> str:
    if found["picture"] is not None:
        return f"![{found['alt']}]({address}{found['picture_title']})"
    if found["link"] is not None:
        return f"[{found['words']}]({address}{found['link_title']})"
    if found["tail"] is not None:
        return f"]({address}{found['tail_title']})"
    if found["definition"] is not None:
        return found[0][: found.start("definition") - found.start()] + address
    return f"{found['begin']}{found['mark']}{address}{found['mark']}"


# --- what a reference names -----------------------------------------------------------------------


def _typed(found: re.Match[str]) -> tuple[Kind, str]:
    """Return the kind of a reference, and its address as typed."""
    if found["target"] is not None:
        return "embed" if found["bang"] else "wiki", found["target"]
    kinds: tuple[tuple[str, Kind], ...] = (
        ("picture", "picture"), ("link", "link"), ("tail", "link"), ("definition", "definition"), ("html", "html"),
    )  # fmt: skip
    return next((kind, found[group]) for group, kind in kinds if found[group] is not None)


def _reference(found: re.Match[str]) -> Reference | None:
    kind, typed = _typed(found)
    if kind in ("wiki", "embed"):
        return _of_wiki_link(kind, typed)
    address = _address(typed)
    if not address or is_url(address) or address.startswith("//") or _SCHEME.match(address):
        return None
    path, _, place = address.partition("#")
    path = path.partition("?")[0]
    return Reference(kind, unquote(path), unquote(place)) if path or place else None


def _of_wiki_link(kind: Kind, typed: str) -> Reference | None:
    target = html.unescape(typed).strip()
    if not target or is_url(target) or target.lower().startswith(("file:", "mailto:")):
        return None
    path, _, place = target.partition("#")
    return Reference(kind, path.strip(), place.rpartition("#")[2].strip()) if path.strip() or place else None


def _address(typed: str) -> str:
    address = typed[1:-1] if typed[:1] == "<" and typed[-1:] == ">" else typed
    return _ESCAPED.sub(r"\1", html.unescape(address)).strip()


# --- what it is written as ------------------------------------------------------------------------


def _changed(found: re.Match[str], resolve: Resolve, *, words_first: bool) -> str | None:
    """Return the reference as it has to be, or None if it stays."""
    reference = _reference(found)
    if words_first and found["bar"] is not None and not found["bang"]:
        changed = _with_words_first(found, resolve)
        if changed is not None:
            return changed
    target = resolve(reference) if reference is not None else None
    if reference is None or target is None:
        return _without_bang(found)
    if isinstance(target, AddressTarget):
        return _with_address(found, _outside(found, target))
    if found["target"] is not None:
        return _wiki(found, reference, target)
    if isinstance(target, FileTarget) and target.page:
        return _of_other_page(found, reference, target)
    name = target.name
    place = target.place if isinstance(target, PageTarget) else ""
    if _leads(found, reference, target):
        return None
    if not name:
        return _with_address(found, f"#{place}") if place else None
    address = _address_of(name, is_file=isinstance(target, FileTarget))
    hash_ = reference.place if place is None else place
    return _with_address(found, f"{address}#{quote(hash_)}" if hash_ else address)


def _outside(found: re.Match[str], target: AddressTarget) -> str:
    address = urljoin(target.base, _address(_typed(found)[1]))
    return quote(address, safe="/:?#@!$&'*+,;=%~")  # brackets and blanks would end it


def _leads(found: re.Match[str], reference: Reference, target: PageTarget | FileTarget) -> bool:
    """Return whether the address leads to ``target`` as it is."""
    address = _address(_typed(found)[1])
    if isinstance(target, FileTarget):
        picture = picture_at(address, "")
        if picture is not None:
            return picture.file == target.name and "/" not in address.removeprefix("./")
        return reference.kind not in ("picture", "html") and _same_file(address, target.name)
    if target.place is not None and target.place != reference.place:
        return False
    if not target.name:
        return True
    link = markdown.target_of(address, "x", ())
    return isinstance(link, PageLink) and link.name == target.name


def _same_file(address: str, name: str) -> bool:
    link = markdown.target_of(address, "x", ())
    return isinstance(link, PageLink) and not link.place and folded(link.name) == folded(name.replace("_", " "))


def _address_of(name: str, *, is_file: bool) -> str:
    """Return the address of a page, or of a file of the page itself, as short as it can be."""
    if is_file:
        return quote(name, safe="!$&'*+,;=@~")
    nice = quote(name, safe="/!$'*+,;=@")
    link = markdown.target_of(nice, "x", ())
    return nice if isinstance(link, PageLink) and link.name == name else url_path(name)


def _of_other_page(found: re.Match[str], reference: Reference, target: FileTarget) -> str:
    is_in_table = _is_in_table(found)
    if found["picture"] is not None:
        return _picture_of(target, _ESCAPED.sub(r"\1", found["alt"]), is_in_table=is_in_table)
    if found["link"] is not None and not is_in_table:
        return _file_link(target, found["words"])
    # Here a path has to do: no text between brackets may stand in the place of an address.
    return _with_address(found, f"/{url_path(target.page)}/files/{quote(target.name)}?")


def _is_in_table(found: re.Match[str]) -> bool:
    """Return whether a bar in the place of the reference would end a cell."""
    begin, end = found.string.rfind("\n", 0, found.start()) + 1, found.string.find("\n", found.end())
    return "|" in found.string[begin : found.start()] or "|" in found.string[found.end() : end if end >= 0 else None]


def _file_link(target: FileTarget, words: str, bar: str = "|") -> str:
    page, label = (_IN_WORDS.sub(lambda sign: f"&#{ord(sign[0])};", one) for one in (target.page, words))
    label = " ".join(label.split())
    shown = f"{bar}{label}" if label and label != target.name else ""
    return f"[[file:{page.replace('#', '&#35;')}/{target.name}{shown}]]"


def _picture_of(target: FileTarget, alt: str, *, is_in_table: bool = False) -> str:
    alt, width = width_in(" ".join(alt.split()))
    if width or is_in_table or '"' in alt:
        given = [("src", target.name), ("page", target.page), *([("alt", alt)] if alt else [])]
        given += [("width", str(width))] if width else []
        quoted = tuple((key, _QUOTED.sub(lambda sign: f"&#{ord(sign[0])};", value)) for key, value in given)
        return markdown_writing.action(ActionCall("image", quoted))
    return "!" + _file_link(target, alt)


def _wiki(found: re.Match[str], reference: Reference, target: PageTarget | FileTarget) -> str | None:
    bar, shown = found["bar"] or "", found["shown"]
    if isinstance(target, FileTarget):
        if reference.kind == "embed":
            made = read_picture(f"{found['target']}{bar and '|'}{shown}")
            if not target.page and isinstance(made, Image) and made.file == target.name:
                return None
            if not target.page:
                return f"![[{target.name}{bar}{shown}]]"
            return _picture_of(target, shown, is_in_table=bar.startswith("\\"))
        if target.page:
            return _file_link(target, shown or reference.path.rpartition("/")[2], bar or "|")
        return f"[[{target.name}{bar}{shown}]]" if found["target"].strip() != target.name else None
    if reference.kind == "embed" and target.name and not reference.place:
        return _included(target.name)
    return _page_link(found, reference, target) or _without_bang(found)


def _without_bang(found: re.Match[str]) -> str | None:
    """Return an embed of a part of a page, or of a page that is not there, as a link; None for anything else."""
    bar = "|" if found["bar"] else ""
    is_picture = read_picture(f"{found['target']}{bar}{found['shown']}") is not None
    return None if not found["bang"] or is_picture else found[0].removeprefix("!")


def _included(name: str) -> str | None:
    return None if '"' in name or "{" in name or "}" in name else f'{{{{include page="{name}"}}}}'


def _page_link(found: re.Match[str], reference: Reference, target: PageTarget) -> str | None:
    bar, shown = found["bar"] or "", found["shown"]
    now = read_link(f"{found['target']}{bar and '|'}{shown}")
    place = reference.place if target.place is None else target.place
    if not target.name:
        return f"[[#{place}{bar}{shown}]]" if target.place is not None and isinstance(now, Outside) else None
    is_same_place = target.place is None and "#" not in reference.place and found["target"].count("#") <= 1
    if isinstance(now, PageLink) and now.name == target.name and (is_same_place or now.place == target.place):
        return None
    # A page of a folder is called by its last part there.
    words = shown if bar else (f"{reference.path} > {reference.place}" if reference.place else reference.path)
    written = f"{target.name}#{place}" if place else target.name
    link = read_link(written)
    if isinstance(link, PageLink) and link.name == target.name and not re.search(r"[\[\]|]", written):
        return f"[[{written}{bar or '|'}{words}]]"
    return markdown_writing.page_link(PageLink(target.name, words or target.name, place=place), bare=False)


def _with_words_first(found: re.Match[str], resolve: Resolve) -> str | None:
    """Return ``[[words|Page]]`` as ``[[Page|words]]``, or None if the page is not behind the bar."""
    reference = _of_wiki_link("wiki", found["shown"])
    target = resolve(reference) if reference is not None else None
    if reference is None or not isinstance(target, PageTarget) or not target.name:
        return None
    place = reference.place if target.place is None else target.place
    return f"[[{target.name}{f'#{place}' if place else ''}|{found['target'].strip()}]]"
