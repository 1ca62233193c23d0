"""Addresses of other wikis that MediaWiki's links name by a prefix (pure): ``[[w:Page]]``, ``[[:fr:Page]]``.

A site has a table of its prefixes, which no dump has.  The prefixes here mean the same everywhere: those of
Wikimedia's projects, and the few others that MediaWiki is delivered with.  A language leads to the same
project in that language, where the site is one of Wikimedia's.

Knows nothing of how links are written.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

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
LANGUAGE: Final = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,10}){0,2}|simple")
_HOST: Final = re.compile(
    rf"https?://({LANGUAGE.pattern})(?:\.m)?\.({'|'.join(sorted(set(_PROJECTS.values())))})\.org(?:[/:]|\Z)"
)
_SAFE: Final = "/:@!$()*,;.-_~"


def project_of(base: str) -> tuple[str, str]:
    """Language and project of the site whose first page is ``base``; "", "": it is none of a project's."""
    found = _HOST.match(base)
    return (found[1], found[2]) if found else ("", "")


def address(prefix: str, title: str, section: str, base: str) -> str:
    """The address of ``title`` at the site called ``prefix``, for readers of the site of ``base``; "": unknown."""
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
    return (
        site + quote(title.replace(" ", "_"), safe=_SAFE) + (f"#{quote(section.replace(' ', '_'))}" if section else "")
    )
