"""(pure) Addresses of WikkaWiki, and their places here: links from elsewhere go on working after a move.

    /wikka.php?wakka=HomePage                 /HomePage
    /wiki/wikka.php?wakka=HomePage/history    /HomePage/history      a folder before it does not count
    /wikka.php?wakka=HomePage&time=...        /HomePage?time=...
    /wikka.php?wakka=HomePage/diff&a=7&b=9    /HomePage/revisions    the numbers are ids of the old database
    /wikka.php?wakka=HomePage/files.xml&action=download&file=a.png     /HomePage/files.xml?action=download&file=a.png
    /HomePage/recentchanges.xml               /-/recentchanges.xml   unless a page here has that name
    /HomePage/referrers                       /HomePage              the same, for handlers that are not here

Knows nothing of which pages exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wikka_port.names import InvalidName, normalise
from wikka_port.urls import PAGE_HANDLERS, page_path, site_path

SCRIPT: Final = "/wikka.php"
_PAGE: Final = "wakka"
_OF_THE_SITE: Final = frozenset({"recentchanges.xml"})
_RENAMED: Final = {"diff": "revisions"}
_KEPT: Final = ("time", "raw", "show_comments")  # parameters with the same meaning here
_OF_FILES: Final = ("action", "file")  # of ``files.xml``, which leads on to the file
_GONE: Final = frozenset({
    "addcomment", "comments.xml", "delcomment", "delete_referrer", "files.xml", "maintenance.xml", "mindmap.mm",
    "processcomment", "recentchanges.xml.mm", "recentchanges_simple.xml.mm", "referrers", "referrers_sites", "reveal",
    "review_blacklist",
})  # fmt: skip


def place_of_script(path: str, query: Mapping[str, str], root_page: str) -> str | None:
    """Return the place of an address of WikkaWiki's script, or None if ``path`` is none.  Raises InvalidName."""
    if not path.endswith(SCRIPT) or _PAGE not in query:
        return None
    name, _, handler = query[_PAGE].strip("/").partition("/")
    kept = _OF_FILES if handler == "files.xml" else _KEPT
    return _place(name or root_page, handler, {key: query[key] for key in kept if key in query})


def place_of_name(name: str) -> str | None:
    """Return the place that ``name``, which is no page, had as an address of WikkaWiki; None if it had none."""
    page, slash, handler = name.rpartition("/")
    if not slash or handler not in _OF_THE_SITE | _GONE:
        return None
    try:
        return _place(page, handler, {})
    except InvalidName:
        return None


def _place(page: str, handler: str, query: Mapping[str, str]) -> str:
    if handler in _OF_THE_SITE:
        return site_path(handler)
    handler = _RENAMED.get(handler, handler)
    return page_path(normalise(page), handler if handler in PAGE_HANDLERS else "show", **query)
