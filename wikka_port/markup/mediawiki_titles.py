"""(pure) Titles of a MediaWiki site: namespaces, case, and the meaning of a link's target.

Knows nothing of the syntax of links, and nothing of the wiki's rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import SplitResult, quote, unquote, urlsplit

from wikka_port.markup.mediawiki_words import words_of

# Projects that have a site for each language.
_PROJECTS: Final = {
    **dict.fromkeys(("w", "wikipedia"), "wikipedia"),
    **dict.fromkeys(("wikt", "wiktionary"), "wiktionary"),
    **dict.fromkeys(("s", "wikisource"), "wikisource"),
    **dict.fromkeys(("q", "wikiquote"), "wikiquote"),
    **dict.fromkeys(("b", "wikibooks"), "wikibooks"),
    **dict.fromkeys(("n", "wikinews"), "wikinews"),
    **dict.fromkeys(("v", "wikiversity"), "wikiversity"),
    **dict.fromkeys(("voy", "wikivoyage"), "wikivoyage"),
}
_SITES: Final = {
    **dict.fromkeys(("c", "commons"), "https://commons.wikimedia.org/wiki/"),
    **dict.fromkeys(("m", "meta"), "https://meta.wikimedia.org/wiki/"),
    **dict.fromkeys(("mw", "mediawikiwiki"), "https://www.mediawiki.org/wiki/"),
    **dict.fromkeys(("d", "wikidata"), "https://www.wikidata.org/wiki/"),
    **dict.fromkeys(("species", "wikispecies"), "https://species.wikimedia.org/wiki/"),
    "incubator": "https://incubator.wikimedia.org/wiki/",
    "outreach": "https://outreach.wikimedia.org/wiki/",
    "strategy": "https://strategy.wikimedia.org/wiki/",
    "wikimania": "https://wikimania.wikimedia.org/wiki/",
    "testwiki": "https://test.wikipedia.org/wiki/",
    **dict.fromkeys(("nost", "nostalgia"), "https://nostalgia.wikipedia.org/wiki/"),
    **dict.fromkeys(("translatewiki", "betawiki"), "https://translatewiki.net/wiki/"),
    "foundation": "https://foundation.wikimedia.org/wiki/",
    "phab": "https://phabricator.wikimedia.org/",
    "bugzilla": "https://bugzilla.wikimedia.org/show_bug.cgi?id=",
    "doi": "https://doi.org/",
    "iarchive": "https://archive.org/details/",
    "google": "https://www.google.com/search?q=",
    "imdbname": "https://www.imdb.com/name/nm",
    "imdbtitle": "https://www.imdb.com/title/tt",
    "rfc": "https://www.rfc-editor.org/rfc/rfc",
}
PREFIXES: Final = frozenset((*_PROJECTS, *_SITES))
LANGUAGE: Final = re.compile(r"[a-z]{2,3}(?:-[a-z]{1,10}){0,2}|simple|tokipona")
_HOST: Final = re.compile(
    rf"https?://({LANGUAGE.pattern})(?:\.m)?\.({'|'.join(sorted(set(_PROJECTS.values())))})\.org(?:[/:]|\Z)"
)
# The host of an address whose site is unknown: a link to it becomes its words.
NO_SITE: Final = "//site.invalid"
SITE_SAFE: Final = "/:@!$()*,;.-_~"


def project_of(base: str) -> tuple[str, str]:
    """Return language and project of the site whose main page is ``base``, or "" and "" if no project has it."""
    found = _HOST.match(base)
    return (found[1], found[2]) if found else ("", "")


def address(prefix: str, title: str, section: str, base: str) -> str:
    """Return the address that ``prefix:title`` has in texts of the site of ``base``, or "" if it is unknown."""
    language, project = project_of(base)
    site = _SITES.get(prefix, "")
    if prefix in _PROJECTS:
        project = _PROJECTS[prefix]
        other, colon, rest = title.partition(":")
        if colon and LANGUAGE.fullmatch(other.strip()):
            language, title = other.strip(), rest.strip()
    elif not site:
        language = prefix
    if not site and project:
        site = f"https://{language or 'en'}.{project}.org/wiki/"
    if not site:
        return ""
    place = f"#{quote(section.replace(' ', '_'))}" if section else ""
    return site + quote(title.replace(" ", "_"), safe=SITE_SAFE) + place


_ARTICLE_FOLDERS: Final = ("/index.php/", "/wiki/")
_TITLE_IN_QUERY: Final = re.compile(r"([?&]title=)[^&#]*")


def page_address(base: str, written: str) -> str:
    """Return the address of a page at the site whose main page is ``base``, or "" if ``base`` is no address.

    ``written`` is the page's title, quoted.

    A site without short addresses names its pages in the query: ``index.php?title=Main_Page``.
    """
    if not base:
        return ""
    query = _TITLE_IN_QUERY.search(base)
    if query is not None:
        return f"{base[: query.end(1)]}{written}{base[query.end() :]}"
    parts = split_address(base)
    folder = next((parts.path.partition(mark)[0] + mark for mark in _ARTICLE_FOLDERS if mark in parts.path), "")
    folder = folder or parts.path.rpartition("/")[0] + "/"  # the main page's name may contain slashes, rarely
    scheme = f"{parts.scheme}:" if parts.scheme else ""
    site = f"{scheme}//{parts.netloc}" if parts.netloc else ""
    return f"{site}{folder}{written}"


def main_page_title(base: str) -> str:
    """Return the title of the site's main page, which its address ``base`` ends with, or "" if it has none."""
    query = _TITLE_IN_QUERY.search(base)
    if query is not None:
        written = query[0].partition("=")[2]
    else:
        path = split_address(base).path
        folder = next((mark for mark in _ARTICLE_FOLDERS if mark in path), "/")
        written = path.partition(folder)[2] if folder != "/" else path.rpartition("/")[2]
    return unquote(written).replace("_", " ").strip()


def files_address(base: str) -> str:
    """Return the address to which the name of a file is appended, or "" if it is unknown.

    Every MediaWiki redirects from there to the file, also to a file of a shared site.
    """
    if not base.startswith(("http://", "https://")):
        return ""
    query = _TITLE_IN_QUERY.search(base)
    return page_address(base if query is None else base[: query.end()], "Special:FilePath/")


def split_address(base: str) -> SplitResult:
    try:
        return urlsplit(base)
    except ValueError:  # brackets that are no address of IPv6
        return urlsplit("")


FILE: Final = 6
CATEGORY: Final = 14
SPECIAL: Final = -1
MEDIA: Final = -2

# Every site knows these beside its own; the numbers are part of MediaWiki's interface.
CANONICAL: Final[Mapping[str, int]] = {
    "Media": -2,
    "Special": -1,
    "Talk": 1,
    "User": 2,
    "User talk": 3,
    "Project": 4,
    "Project talk": 5,
    "File": 6,
    "Image": 6,
    "File talk": 7,
    "Image talk": 7,
    "MediaWiki": 8,
    "MediaWiki talk": 9,
    "Template": 10,
    "Template talk": 11,
    "Help": 12,
    "Help talk": 13,
    "Category": 14,
    "Category talk": 15,
}
_WITH_SUBPAGES: Final = frozenset({2, 4, 8, 10, 12})  # and all pages of talk; $wgNamespacesWithSubpages
_FORBIDDEN: Final = re.compile(r"[\[\]{}|<>\n\x02\x03\ufffd]")
_SPACES: Final = re.compile(r"[ _\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
TITLE_CHARS_MAX: Final = 255  # MediaWiki: bytes; more than enough here


@dataclass(frozen=True, slots=True)
class Target:
    """The target of ``[[...]]``."""

    kind: Literal["page", "file", "category", "media", "special", "language", "interwiki", "here"]
    title: str  # the page's full name; with "language" and "interwiki" the title at the other site
    prefix: str = ""  # the other wiki
    section: str = ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The properties of a site on which the meaning of its texts depends.  Make one Dialect for each dump."""

    numbers: Mapping[str, int]  # lower-case name or alias -> namespace
    names: Mapping[int, str]  # namespace -> its name in the titles of the dump
    capitalised: bool
    cases: Mapping[int, bool]  # ``capitalised`` of namespaces of their own case
    pictures: str = ""  # address to which the name of a file is appended; "": unknown
    shows_pictures: bool = False  # whether pictures are shown; else they become links
    base: str = ""  # address of the site's main page
    templates: Mapping[str, str] = field(default_factory=dict)  # title -> text of simple ones (``mediawiki_expansion``)
    site: str = ""  # its name
    language: str = ""  # its code; "": unknown
    # The action that includes a template, by its title, the values of a call and what these make of it; "": none does.
    include_call: Callable[[str, Mapping[str, str], str], str] | None = None
    exists: Callable[[str], bool | None] = lambda _title: None  # whether the dump has a page; None: unknown

    @classmethod
    def of(
        cls,
        namespaces: Mapping[str, int],
        *,
        capitalised: bool = True,
        pictures: str = "",
        shows_pictures: bool = False,
        base: str = "",
        aliases: Mapping[str, int] = MappingProxyType({}),
        cases: Mapping[int, bool] = MappingProxyType({}),
        templates: Mapping[str, str] = MappingProxyType({}),
        site: str = "",
        language: str = "",
        exists: Callable[[str], bool | None] = lambda _title: None,
    ) -> Dialect:
        """Make the dialect of a site; ``aliases`` are further names of namespaces, beside those of its language.

        ``templates`` are read at each conversion, so they may still grow.
        """
        numbers = {name.lower(): number for name, number in CANONICAL.items()}
        numbers.update(words_of(language).namespaces)
        numbers.update({spaced(name).lower(): number for name, number in aliases.items() if name})
        numbers.update({spaced(name).lower(): number for name, number in namespaces.items() if name})
        names = {number: name for name, number in CANONICAL.items() if name not in ("Image", "Image talk")}
        names.update({number: name for name, number in namespaces.items()})
        return cls(
            numbers,
            names,
            capitalised,
            cases,
            pictures,
            shows_pictures,
            base,
            templates,
            site,
            language,
            exists=exists,
        )

    def is_plain_prefix(self, prefix: str) -> bool:
        """Return whether ``prefix:`` is a namespace of this wiki and no other wiki's name."""
        return prefix.lower() in self.numbers and prefix.lower() not in PREFIXES | {"mediawiki", "wikka"}

    def has_subpages(self, title: str) -> bool:
        """Return whether a page of that title may have subpages, in MediaWiki's default configuration."""
        number = self.namespace(title)
        return number % 2 == 1 or number in _WITH_SUBPAGES

    def is_talk(self, title: str) -> bool:
        number = self.namespace(title)
        return number > 0 and number % 2 == 1

    def namespace(self, title: str) -> int:
        """Return the number of a title's namespace; 0 for pages without a prefix."""
        prefix, colon, _rest = title.partition(":")
        return self.numbers.get(prefix.strip().lower(), 0) if colon else 0

    def title(self, text: str) -> str:
        """Return the title as the dump writes it: blanks, capital letter, the namespace by its own name."""
        prefix, colon, rest = text.partition(":")
        number = self.numbers.get(prefix.strip().lower()) if colon else None
        if number is None:
            return self._capital(text, 0)
        rest = self._capital(rest.strip(), number)
        return f"{self.names[number]}:{rest}" if rest else ""

    def _capital(self, text: str, namespace: int) -> str:
        # One letter to one: "ß" stays, as in MediaWiki.
        first = text[:1].upper()
        return first + text[1:] if self.cases.get(namespace, self.capitalised) and len(first) == 1 else text

    def target(self, text: str) -> Target | None:
        """Read the part of a link before its first bar; None if it can be no link.

        ``text`` has its entities decoded.
        """
        if len(text) > 4 * TITLE_CHARS_MAX or _FORBIDDEN.search(text):
            return None
        if "%" in text:
            decoded = unquote(text)
            text = text if _FORBIDDEN.search(decoded) or not decoded.isprintable() else decoded
        whole, _, section = text.partition("#")
        name = spaced(whole)
        section = spaced(section)
        if not name:
            return Target("here", "", section=section) if section else None
        shown = name.startswith(":")
        name = name.removeprefix(":").strip()
        return self._classify(name, section, shown=shown) if name else None

    def _classify(self, name: str, section: str, *, shown: bool) -> Target | None:
        prefix, colon, rest = name.partition(":")
        rest = rest.strip().removeprefix(":").strip()
        number = self.numbers.get(prefix.strip().lower()) if colon else None
        if colon and number is None:
            key = prefix.strip().lower()
            if key in PREFIXES:
                return Target("interwiki", rest, key, section)
            if LANGUAGE.fullmatch(key) and key == prefix.strip():
                return Target("interwiki" if shown else "language", rest, key, section)
        title = self.title(name)
        if not title or len(title) > TITLE_CHARS_MAX:
            return None
        if number == SPECIAL:
            return Target("special", title, section=section)
        if number == MEDIA:
            return Target("media", title, section=section)
        if number == FILE and not shown:
            return Target("file", rest)
        if number == CATEGORY and not shown:
            return Target("category", title)
        return Target("page", title, section=section)


def spaced(text: str) -> str:
    return _SPACES.sub(" ", text).strip()
