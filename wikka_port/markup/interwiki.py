"""(pure) Other wikis and their prefixes: ``WikiPedia:Page`` links to Page of Wikipedia.

Every wiki knows twenty prefixes.  A wiki's own prefixes come from a file (``interwiki_file``), which each process reads
once at its start.  The prefixes decide which texts are links to pages, so all processes must know the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

# Prefix in lower case (prefixes are compared without case) -> the address before the name of the page.
SITES: Final[dict[str, str]] = {
    "wikipedia": "https://en.wikipedia.org/wiki/",
    "wp": "https://en.wikipedia.org/wiki/",
    "wiktionary": "https://en.wiktionary.org/wiki/",
    "wikibooks": "https://en.wikibooks.org/wiki/",
    "wikiquote": "https://en.wikiquote.org/wiki/",
    "wikisource": "https://en.wikisource.org/wiki/",
    "wikivoyage": "https://en.wikivoyage.org/wiki/",
    "wikidata": "https://www.wikidata.org/wiki/",
    "wikispecies": "https://species.wikimedia.org/wiki/",
    "commons": "https://commons.wikimedia.org/wiki/",
    "metawiki": "https://meta.wikimedia.org/wiki/",
    "mediawiki": "https://www.mediawiki.org/wiki/",
    "c2": "https://wiki.c2.com/?",
    "wikka": "http://wikkawiki.org/",
    "archwiki": "https://wiki.archlinux.org/title/",
    "debian": "https://wiki.debian.org/",
    "python": "https://docs.python.org/3/search.html?q=",
    "pypi": "https://pypi.org/project/",
    "rfc": "https://www.rfc-editor.org/rfc/rfc",
    "doi": "https://doi.org/",
}


def use(own: Mapping[str, str]) -> None:
    """Add a wiki's own prefixes, or replace known ones; call it before the process parses any text."""
    SITES.update({prefix.lower(): base for prefix, base in own.items()})


def address(prefix: str, page: str) -> str | None:
    """Return the URL of ``page`` at the site of ``prefix``, or None if there is no such site."""
    base = SITES.get(prefix.lower())
    if base is None or not page:
        return None
    return base + quote(page.strip().replace(" ", "_"), safe="/:@!$()*,;.-_~#")
