"""(pure) Addresses of WikkaWiki, and their places here: links from elsewhere go on working after a move.

    /wikka.php?wakka=HomePage                 /HomePage
    /wiki/wikka.php?wakka=HomePage/history    /HomePage/history      a folder before it does not count
    /wikka.php?wakka=HomePage&time=...        /HomePage?time=...
    /wikka.php?wakka=HomePage/diff&a=7&b=9    /HomePage/revisions    the numbers are ids of the old database
    /wikka.php?wakka=HomePage/files.xml&action=download&file=a.png     /HomePage/files.xml?action=download&file=a.png
    /HomePage/recentchanges.xml               /-/recentchanges.xml   unless a page here has that name
    /HomePage/referrers                       /HomePage              the same, for handlers that are not here

A time there has no zone: it is of the old wiki's, which an import keeps (``site_settings``).

Knows nothing of which pages exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

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


def moment_ms(text: str, old_zone: str) -> int | None:
    """Parse milliseconds, or an ISO date and time; return milliseconds or None.

    A time without a zone is of ``old_zone`` ("" for UTC), as an import reads it (``wikkawiki.source_pages``): of an
    hour that came twice, the first is meant.
    """
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return int(text)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    # a time of whole seconds means the end of that second
    end = 999 if moment.microsecond == 0 else 0
    zone = ZoneInfo(old_zone) if old_zone else UTC
    try:
        return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp() * 1000) + end
    except OverflowError:  # the zone moves it out of the calendar
        return None
