"""(pure, fuzzed) A line of DokuWiki's markup as Markdown: emphasis, links, pictures, footnotes, addresses.

    **bold** //italic// __underlined__ ''monospaced'' <sub> <sup> <del>      ((footnote))      two backslashes: a break
    [[ns:page#section|words]]  [[wp>Page]]  [[https://..]]  [[\\\\server\\share]]  {{ns:picture.png?200x50|words}}

Characters with a meaning in Markdown are escaped (``markdown_writing``).  A mark without its end is text.

Knows nothing of blocks, and of which pages and files exist: ``Surroundings`` says that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from wikka_port.markup import markdown_writing
from wikka_port.markup.targets import place_id, safe_url
from wikka_port.markup.tokens import ActionCall, Outside, PageLink

MARK: Final = "\x02"  # around the number of a part that was taken out of the text before (``dokuwiki``)
_DEPTH_MAX: Final = 12
_PICTURES: Final = (".gif", ".jpg", ".jpeg", ".png", ".svg", ".webp")
_TOGGLES: Final = {"**": "**", "//": "*", "__": "u", "''": "code"}
_TAGS: Final = ("sub", "sup", "del")
_TOKEN: Final = re.compile(
    rf"{MARK}(?P<part>[0-9]+){MARK}"
    r"|\[\[(?P<link>(?:[^\[\]\n]|\[[^\[\]\n]*\]|\n)+?)\]\]"
    r"|\{\{(?P<media>[^{}\n]+)\}\}"
    r"|(?P<note>\(\((?!\())"
    r"|(?P<toggle>\*\*|(?<!:)//|__|'')"
    r"|<(?P<tag>sub|sup|del)>"
    r"|(?P<url>\b(?:https?|ftp)://[^\s<>\"|\[\]{}]+|\bwww\.[\w\-]+\.[^\s<>\"|\[\]{}]+)"
    r"|<(?P<mail>[\w.+\-]{1,64}@[\w\-]+(?:\.[\w\-]+)+)>"
    r"|(?P<break>\\\\(?:\s|\Z))"
    r"|~~(?P<macro>[A-Za-z][A-Za-z0-9_:\-]{1,60})~~"
    r"|(?P<plugin></?(?:WRAP|wrap|note|block|box|color|fs|fc|fw|ff|hidden|tabs?|todo)\b[^<>\n]{0,200}>)",
)
_URL_END: Final = re.compile(r"[.,:;!?'\")]+\Z")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.\-]{1,30}://|mailto:", re.IGNORECASE)
_MAIL: Final = re.compile(r"[\w.+\-]{1,64}@[\w\-]+(?:\.[\w\-]+)+")
_PREFIX: Final = re.compile(r"([A-Za-z0-9.]{1,30})>(.*)", re.DOTALL)
_SIZE: Final = re.compile(r"(\d{1,4})(?:x(\d{1,4}))?")


@dataclass(frozen=True, slots=True)
class FileReference:
    page: str  # "": the page itself
    name: str


class Part(NamedTuple):
    """Code, or text without markup, that was taken out of a text before."""

    kind: Literal["text", "code"]
    language: str
    content: str
    typed: str  # with its tags


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The place of a text: finds pages and files by what is typed."""

    page: Callable[[str], str]  # the target of a link, without its section -> the page's name here
    file: Callable[[str], FileReference | None]
    interwiki: Mapping[str, str] = field(default_factory=dict)  # prefix -> address, with {NAME} or {URL} in it


class Inline:
    """Converts the lines of one text; owns its footnotes and what was lost."""

    def __init__(self, around: Surroundings, parts: list[Part]) -> None:
        """Take the ``parts`` that were taken out of the text."""
        self.notes: list[str] = []
        self.lost: dict[str, None] = {}  # in order
        self._around = around
        self._parts = parts

    def convert(self, text: str, *, in_cell: bool = False, depth: int = 0) -> str:
        """Return Markdown of a text without blocks; parts of the kind "code" stay where they are, unless in a cell."""
        out = self._converted(text, depth, in_cell=in_cell)
        return re.sub(r"(?<!\\)\|", r"\\|", " ".join(out.split("\n"))) if in_cell else out

    def _converted(self, text: str, depth: int, *, in_cell: bool = False) -> str:
        pieces: list[str] = []
        done = at = 0
        endless: set[str] = set()  # marks without an end in the rest of the text
        while (found := _TOKEN.search(text, at)) is not None:
            made = self._token(found, text, depth, endless, in_cell=in_cell)
            if made is None:
                at = found.start() + 1 if found["toggle"] is None else found.end()
                continue
            words, at = made
            self._literal(pieces, text[done : found.start()])
            pieces.append(words)
            done = at
        self._literal(pieces, text[done:])
        following = [*pieces, ""][1:]
        return "".join(
            f"{one[:-2]}!" if one.endswith("\\!") and not then.startswith("[") and not one.endswith("\\\\!") else one
            for one, then in zip(pieces, following, strict=True)
        )

    def _literal(self, pieces: list[str], words: str) -> None:
        """Append text without marks; the first characters of lines have meanings of their own."""
        if not words:
            return
        is_start = not any(pieces) or pieces[-1].endswith("\n")
        lines = words.split("\n")
        said = [
            markdown_writing.text(line, autolink=False, line_start=is_start or number > 0)
            for number, line in enumerate(lines)
        ]
        pieces.append("\n".join(said))

    def _token(
        self, found: re.Match[str], text: str, depth: int, endless: set[str], *, in_cell: bool
    ) -> tuple[str, int] | None:
        """Return the Markdown of a construct and the position of its end, or None if it is text."""
        kind, end = found.lastgroup or "", found.end()
        if kind == "part":
            return self._part(int(found["part"]), found[0], in_cell=in_cell), end
        if kind == "link":
            return self._link(found["link"]), end
        if kind == "media":
            return self._media(found["media"], ""), end
        if kind == "url":
            url = _URL_END.sub("", found["url"])
            address = url if "://" in url else f"http://{url}"
            return (f"<{address}>" if safe_url(address) else url), found.start() + len(url)
        if kind == "mail":
            return f"<{found['mail']}>", end
        if kind == "break":
            return "<br>" if in_cell else "<br>" + ("\n" if found[0].endswith("\n") else ""), end
        if kind == "macro":
            return self._macro(found["macro"]), end
        if kind == "plugin":
            self.lost["tags of plugins: their text is left"] = None
            return "", end
        return self._paired(found, text, depth, endless)

    def _part(self, number: int, typed: str, *, in_cell: bool) -> str:
        if number >= len(self._parts):
            return ""
        part = self._parts[number]
        if part.kind == "text":
            return markdown_writing.text(" ".join(part.content.split()), autolink=False)
        if in_cell:
            self.lost["blocks of code in tables: they are one line"] = None
            return markdown_writing.code_span(" ".join(part.content.split())) if part.content.strip() else ""
        return typed

    def _paired(self, found: re.Match[str], text: str, depth: int, endless: set[str]) -> tuple[str, int] | None:
        tag = found["tag"]
        mark = found["toggle"] or (f"</{tag}>" if tag else "))")
        if mark in endless or depth >= _DEPTH_MAX:
            return None
        close = re.compile(r"(?<!:)//" if mark == "//" else re.escape(mark)).search(text, found.end())
        if close is None:
            endless.add(mark)
            return None
        inner = text[found.end() : close.start()]
        if not inner.strip():
            return None
        if mark == "))":
            self.notes.append(" ".join(self._converted(inner, depth + 1).split()))
            return f"[^{len(self.notes)}]", close.end()
        if mark == "''":
            return self._monospaced(inner), close.end()
        return self._emphasis(tag or _TOGGLES[mark], self._converted(inner, depth + 1)), close.end()

    def _monospaced(self, inner: str) -> str:
        bare = re.sub(rf"{MARK}([0-9]+){MARK}", lambda one: self._content(int(one[1])), inner)
        plain = re.sub(r"\*\*|(?<!:)//|__", "", bare)
        if plain != bare and bare == inner:
            self.lost["emphasis within monospaced text"] = None
            bare = plain
        return markdown_writing.code_span(bare.strip()) if bare.strip() else ""

    def _content(self, number: int) -> str:
        return self._parts[number].content if number < len(self._parts) else ""

    def _emphasis(self, mark: str, inner: str) -> str:
        words = inner.strip()
        if not words:
            return inner
        begin, end = (f"<{mark}>", f"</{mark}>") if mark.isalpha() else (mark, mark)
        blank = len(inner) - len(inner.lstrip())
        return f"{inner[:blank]}{begin}{words}{end}{inner[blank + len(words) :]}"

    def _macro(self, name: str) -> str:
        if name.upper() == "NOTOC":
            return "{{notoc}}"
        if name.upper() != "NOCACHE":
            self.lost[f"the macro ~~{name.partition(':')[0]}~~"] = None
        return ""

    # --- links --------------------------------------------------------------------------------------

    def _link(self, body: str) -> str:
        typed, _, label = " ".join(body.split("\n")).partition("|")
        target, label = typed.strip(), label.strip()
        if label.startswith("{{") and label.endswith("}}"):
            return self._media(label[2:-2], target)
        if target.startswith("\\\\"):
            self.lost["links to shares of Windows: they are text"] = None
            return f"{self._words(label)} {markdown_writing.code_span(target)}".strip()
        url = self._address(target)
        if url is not None:
            prefixed = _PREFIX.fullmatch(target)
            words = prefixed[2].strip() if prefixed and not _SCHEME.match(target) else target.removeprefix("mailto:")
            return self._outside(url, label or words or target)
        link = self._page(target, label)
        return self._words(label or target) if link is None else link

    def _words(self, text: str) -> str:
        return markdown_writing.text(text, autolink=False)

    def _outside(self, url: str, label: str) -> str:
        safe = safe_url(url)
        if safe is None:
            return self._words(label)
        is_mail = safe.startswith("mailto:")
        return markdown_writing.outside(Outside(safe, label, "mail" if is_mail else "external"))

    def _address(self, target: str) -> str | None:
        """Return the address of a link that leaves the wiki, or None for a link to a page."""
        if _SCHEME.match(target):
            return target
        if _MAIL.fullmatch(target):
            return f"mailto:{target}"
        found = _PREFIX.fullmatch(target)
        if found is None:
            return f"http://{target}" if target.startswith("www.") else None
        base = self._around.interwiki.get(found[1].lower())
        if base is None or not _SCHEME.match(base):
            self.lost[f"links of the unknown prefix {found[1]}>"] = None
            return ""
        name = quote(found[2].strip(), safe="/:#?&=;@!$*(),~-._")
        whole = base.replace("{NAME}", name).replace("{URL}", quote(found[2].strip(), safe=""))
        return whole if whole != base else base + name

    def _page(self, target: str, label: str) -> str | None:
        path, _, section = target.partition("#")
        place = place_id(section.replace("_", " ")) if section.strip() else ""
        path = path.partition("?")[0].strip()
        if not path:
            return f"[{self._words(label or section)}](#{place})" if place else None
        name = self._around.page(path)
        if not name:
            return None
        words = label or re.split(r"[:/;]", path.rstrip(":/"))[-1] or name
        return markdown_writing.page_link(PageLink(name, words, place=place), bare=False).replace("&#47;", "/")

    # --- pictures and files --------------------------------------------------------------------------

    def _media(self, body: str, link: str) -> str:
        if ">" in body.partition("|")[0]:
            self.lost["calls of plugins, {{name>...}}: they are shown as code"] = None
            return markdown_writing.code_span(f"{{{{{body}}}}}")
        typed, _, title = body.partition("|")
        source, _, query = typed.strip().partition("?")
        title = " ".join(title.split())
        options = set(re.split(r"[&?]", query.lower())) if query else set()
        is_picture = source.lower().endswith(_PICTURES)
        if _SCHEME.match(source):
            return self._foreign(source, query, title, is_picture=is_picture and "linkonly" not in options)
        found = self._around.file(source)
        name = re.split(r"[:/]", source)[-1]
        if found is None:
            self.lost["pictures and files that are missing"] = None
            return markdown_writing.text(title or name, autolink=False)
        if not is_picture or "linkonly" in options:
            return self._file_link(found, title or name)
        return self._picture(found, typed, options, title, link)

    def _foreign(self, url: str, query: str, title: str, *, is_picture: bool) -> str:
        size = next((one for one in query.split("&") if _SIZE.fullmatch(one)), "")
        address = f"{url}?{query}" if query and query != size and not size else url
        safe = safe_url(address)
        if safe is None or not is_picture:
            return self._outside(address, title or address)
        sides = _SIZE.fullmatch(size)
        alt = title.replace('"', "'").replace("<", "").replace(">", "")
        width = f' width="{sides[1]}"' if sides and int(sides[1]) else ""
        return f'<img src="{safe}" alt="{alt}"{width}>' if width else f"![{self._words(title)}]({safe})"

    def _file_link(self, found: FileReference, label: str) -> str:
        page = re.sub(r"[\[\]|#&]", lambda sign: f"&#{ord(sign[0])};", found.page)
        words = re.sub(r"[\[\]|&]", lambda sign: f"&#{ord(sign[0])};", label)
        if not found.page:
            return f"[{self._words(label)}]({quote(found.name)})"
        return f"[[file:{page}/{found.name}|{words}]]"

    def _picture(self, found: FileReference, typed: str, options: set[str], title: str, link: str) -> str:
        sides = next((size for one in options if (size := _SIZE.fullmatch(one))), None)
        side = next((one for one in ("left", "right", "center") if one in options), "") or _side(typed)
        is_plain = not side and not link and not found.page and not (sides and sides[2])
        if is_plain:
            width = f"|{sides[1]}" if sides and int(sides[1]) else ""
            return f"![{self._words(title)}{width}]({quote(found.name)})"
        given = [("src", found.name), ("page", found.page), ("alt", title), ("class", side)]
        given += [("width", sides[1]), ("height", sides[2] or "")] if sides else []
        given.append(("link", self._link_of_picture(link)))
        written = [(key, re.sub(r'["{}|]', lambda sign: f"&#{ord(sign[0])};", value)) for key, value in given]
        return markdown_writing.action(ActionCall("image", tuple(one for one in written if one[1] and one[1] != "0")))

    def _link_of_picture(self, target: str) -> str:
        if not target:
            return ""
        url = self._address(target)
        return (safe_url(url) or "") if url is not None else self._around.page(target.partition("#")[0].strip())


def _side(typed: str) -> str:
    """Return the side that blanks around a picture mean."""
    before, after = typed[:1] == " ", typed[-1:] == " "
    return "center" if before and after else "right" if before else "left" if after else ""
