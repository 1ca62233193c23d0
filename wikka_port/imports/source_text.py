"""(pure) The text of a file that somebody else wrote: its characters, and what its front matter says of it.

A file is UTF-8 or has the mark of UTF-16; else it is read as Windows-1252 and reported.  Ends of lines become LF, and
control characters go, as in a text that is typed here.

    ---
    updated: 2024-05-01T12:00:00Z       the time of the last change, by the first of _DATES that has one
    author: Ada                         the author, if it is one person
    lang: de                            the language of the page
    ---

A time without a zone is UTC.  A time to come is no time of a change: blogs date their drafts so.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from wikka_port.limits import FRONT_CHARS_MAX
from wikka_port.markup.markdown_extensions import attributes_in

_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_UNWANTED: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_DATES: Final = (
    *("updated", "modified", "lastmod", "last_modified", "last-modified", "last modified", "date_modified"),
    *("date modified", "updated_at", "updated at", "last edited time", "date", "published", "created", "created_at"),
)
_AUTHORS: Final = ("author", "last edited by", "created by")
_AUTHOR_CHARS: Final = 75


def decoded(data: bytes) -> tuple[str, bool]:
    """Return the text of a file, and whether it was in the character set that it should have."""
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return _clean(data[len(mark) :].decode(charset, "replace")), True
    try:
        return _clean(data.decode()), True
    except UnicodeDecodeError:
        return _clean(data.decode("cp1252", "replace")), False


def _clean(text: str) -> str:
    return _UNWANTED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def front_matter(text: str) -> Mapping[str, str]:
    """Return the attributes at the beginning of a text, with their names in lower case."""
    if not text.startswith("---\n"):
        return {}
    end = text.find("\n---", 3, FRONT_CHARS_MAX)
    return {key.lower(): value for key, value in attributes_in(text[4:end])} if end > 0 else {}


def author_in(attributes: Mapping[str, str]) -> str:
    """Return the author of a text, or "" if it names none, or several."""
    found = next((attributes[key] for key in _AUTHORS if attributes.get(key)), "")
    return found if len(found) <= _AUTHOR_CHARS and "," not in found else ""


def time_in(attributes: Mapping[str, str], now_ms: int) -> int | None:
    """Return the time of the last change in milliseconds; None if there is none, or it is still to come."""
    for key in _DATES:
        time_ms = _time_of(attributes.get(key, ""))
        if time_ms is not None and 0 < time_ms <= now_ms:
            return time_ms
    return None


def _time_of(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
