"""(pure) Feeds as Atom and as RSS 2.0: entries in, bytes out.

Knows nothing of pages and of the origin of entries; all texts come unescaped and are escaped here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final
from xml.etree import ElementTree

_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAMESPACE: Final = "http://www.w3.org/2005/Atom"


@dataclass(frozen=True, slots=True)
class Entry:
    title: str
    url: str  # absolute; with the revision it is the entry's identity
    updated_ms: int
    author: str
    summary: str


def iso_time(time_ms: int) -> str:
    """Format as ``2026-01-31T12:00:00Z``; a time outside the years 1970 to 9999 becomes the nearest one within."""
    seconds = min(max(time_ms // 1000, 0), 253_402_300_799)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def atom(title: str, feed_url: str, home_url: str, entries: Sequence[Entry]) -> bytes:
    """Return an Atom feed.  Its time is that of the newest entry, so that the same entries give the same bytes."""
    feed = ElementTree.Element("feed", xmlns=_NAMESPACE)
    _text(feed, "title", title)
    _text(feed, "id", feed_url)
    ElementTree.SubElement(feed, "link", rel="self", href=_clean(feed_url), type="application/atom+xml")
    ElementTree.SubElement(feed, "link", rel="alternate", href=_clean(home_url), type="text/html")
    _text(feed, "updated", iso_time(max((entry.updated_ms for entry in entries), default=0)))
    for entry in entries:
        element = ElementTree.SubElement(feed, "entry")
        _text(element, "title", entry.title)
        _text(element, "id", entry.url)
        ElementTree.SubElement(element, "link", rel="alternate", href=_clean(entry.url), type="text/html")
        _text(element, "updated", iso_time(entry.updated_ms))
        _text(ElementTree.SubElement(element, "author"), "name", entry.author)
        _text(element, "summary", entry.summary)
    body: bytes = ElementTree.tostring(feed, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + body


def rss(title: str, feed_url: str, home_url: str, entries: Sequence[Entry]) -> bytes:
    """Return the same feed as RSS 2.0."""
    feed = ElementTree.Element("rss", version="2.0")
    channel = ElementTree.SubElement(feed, "channel")
    _text(channel, "title", title)
    _text(channel, "link", home_url)
    _text(channel, "description", title)
    _text(channel, "lastBuildDate", _mail_time(max((entry.updated_ms for entry in entries), default=0)))
    for entry in entries:
        item = ElementTree.SubElement(channel, "item")
        _text(item, "title", entry.title)
        _text(item, "link", entry.url)
        ElementTree.SubElement(item, "guid", isPermaLink="true").text = _clean(entry.url)
        _text(item, "pubDate", _mail_time(entry.updated_ms))
        _text(item, "description", f"{entry.author}: {entry.summary}")
    body: bytes = ElementTree.tostring(feed, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + body


def _mail_time(time_ms: int) -> str:
    moment = datetime.fromisoformat(iso_time(time_ms))
    return format_datetime(moment, usegmt=True)


def _text(parent: ElementTree.Element, tag: str, text: str) -> None:
    ElementTree.SubElement(parent, tag).text = _clean(text)


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
