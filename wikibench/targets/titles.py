"""Names of pages, for ``wikibench synth`` and links of edits.

They come from a file with one name a line (UTF-8), or from the wiki, as its map says: a list of the same form as
text/plain, such as ``GET /api/titles``, or the answers of MediaWiki's api.php.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import quote

from wikibench.addresses.mapping import Map
from wikibench.errors import TargetError, TraceFileError
from wikibench.limits import TITLES_BYTES

from .target import Target
from .target_check import fetch_page

Headers = Iterable[tuple[str, str]]
_REMEDY: Final = "; write the page names into a file, one a line, and give it with --titles"


def titles_of_file(path: Path) -> list[str]:
    """Return the names in ``path`` in file order, without empty lines and repeats."""
    try:
        return _distinct(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise TraceFileError(str(path), f"page names are UTF-8, one a line ({error})") from error


def titles_of_wiki(target: Target, wiki: Map) -> list[str]:
    """Return the names of all pages of the wiki; raises TargetError if it does not have them."""
    url = target.url(wiki.wiki.titles)
    if not wiki.wiki.titles:
        raise TargetError(target.url(""), f"a wiki of the map {wiki.name} does not list its pages{_REMEDY}")
    read = {"lines": _lines, "mediawiki": _mediawiki}[wiki.wiki.titles_as]
    titles = list(dict.fromkeys(wiki.canonical(title) for title in read(url, target.headers(()))))
    if not titles:
        raise TargetError(url, "the wiki has no pages yet")
    return titles


def _lines(url: str, headers: Headers) -> list[str]:
    return _distinct(_list_of(url, "text/plain", TITLES_BYTES, headers).decode("utf-8", errors="replace"))


def _mediawiki(url: str, headers: Headers) -> list[str]:
    """Read ``list=allpages`` of api.php to its end: each answer says where the next one goes on."""
    titles: list[str] = []
    onward, left = "", TITLES_BYTES
    while True:
        data = _list_of(url + onward, "application/json", left, headers)
        left -= len(data)
        try:
            found = json.loads(data)
            titles += [str(page["title"]) for page in found["query"]["allpages"]]
            more = found.get("continue", {}).get("apcontinue")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TargetError(url, f"the answer is no list of pages of MediaWiki's api.php{_REMEDY}") from error
        if more is None:
            return titles
        onward = f"&apcontinue={quote(str(more), safe='')}"


def _list_of(url: str, kind: str, most: int, headers: Headers) -> bytes:
    page = fetch_page(url, most=most + 1, headers=headers)
    if page.status != 200:
        raise TargetError(url, f"this wiki does not list its pages here (status {page.status}){_REMEDY}")
    if page.kind != kind:
        raise TargetError(url, f"the answer is {page.kind}, not a {kind} list of page names{_REMEDY}")
    if len(page.data) > most:
        raise TargetError(url, f"the list of pages is over {TITLES_BYTES} bytes{_REMEDY}")
    return page.data


def _distinct(text: str) -> list[str]:
    lines = (line.strip("\r") for line in text.split("\n"))  # not splitlines: names may have U+2028 and its like
    return list(dict.fromkeys(line for line in lines if line.strip()))
