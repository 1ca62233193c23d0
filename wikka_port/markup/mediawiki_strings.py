"""(pure) Texts as MediaWiki's functions make them: parts, places, replacements, parts of titles, encodings.

    {{#len: text}}                            its characters
    {{#pos: text | wanted | from}}            where it is the first time, from 0; nothing if it is not there
    {{#rpos: text | wanted}}                  the last time; -1 if it is not there
    {{#sub: text | from | count}}             a part; negative numbers count from the end
    {{#count: text | wanted}}                 how often it is there
    {{#replace: text | from | to | limit}}    with another text in its places
    {{#explode: text | sign | place | limit}} one of the parts between the signs
    {{#urldecode: a%20b}}                     without the escapes of addresses
    {{#rel2abs: ../b | A/c}}                  the title that a path leads to

A place or a count is read as PHP reads a number: the digits at the beginning, or 0.  An empty text that is wanted is a
blank.  A text has STRING_CHARS_MAX characters at most, as in MediaWiki, but for ``#len``.

Knows nothing of wikitext.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, quote_plus, unquote_plus

from wikka_port.markup.mediawiki_values import ExpressionError, number_of

STRING_CHARS_MAX: Final = 1_000
PADDED_CHARS_MAX: Final = 500  # as in MediaWiki
TITLE_PARTS_MAX: Final = 25  # the last one has the rest
_WHOLE: Final = re.compile(r"\s*([+-]?(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})(?:[eE][+-]?[0-9]{1,2})?)")
_WHOLE_MAX: Final = 10**9
_DOTS: Final = re.compile(r"/(?:\./)+")
_SLASHES: Final = re.compile(r"/{2,}")


def whole_of(text: str) -> int:
    """Return the whole number at the beginning of a text, or 0; not beyond _WHOLE_MAX."""
    found = _WHOLE.match(text)
    return int(min(max(float(found[1]), -_WHOLE_MAX), _WHOLE_MAX)) if found else 0


def _checked(*texts: str) -> None:
    """Raise ExpressionError if a text is too long."""
    if any(len(text) >= STRING_CHARS_MAX for text in texts):
        raise ExpressionError("the text is too long")


def place_of(text: str, wanted: str, begin: str) -> str:
    """Return where a text is in another one, the first time; "" if it is not there.  Raises ExpressionError."""
    _checked(text, wanted)
    start = min(whole_of(begin), len(text))
    if start < -len(text):
        raise ExpressionError("the place is before the text")
    found = text.find(wanted or " ", start)
    return str(found) if found >= 0 else ""


def last_place_of(text: str, wanted: str) -> str:
    """Return where a text is in another one, the last time; "-1" if it is not there.  Raises ExpressionError."""
    _checked(text, wanted)
    return str(text.rfind(wanted or " "))


def part_of(text: str, begin: str, count: str) -> str:
    """Return ``count`` characters from ``begin``, all further ones if it is 0.  Raises ExpressionError."""
    _checked(text)
    rest, wanted = text[whole_of(begin) :], whole_of(count)
    return rest[:wanted] if wanted else rest


def count_of(text: str, wanted: str) -> str:
    """Return how often a text is in another one.  Raises ExpressionError."""
    _checked(text, wanted)
    return str(text.count(wanted or " "))


def replaced(text: str, old: str, new: str, limit: str | None) -> str:
    """Return a text with another one in the places of ``old``.  Raises ExpressionError if it becomes too long."""
    _checked(text, old, new)
    old = old or " "
    most = whole_of(limit) if limit is not None else -1
    if len(new) > len(old):  # so that no huge text is made and thrown away
        bound = (STRING_CHARS_MAX - len(text)) // (len(new) - len(old)) + 1
        most = bound if most < 0 else min(most, bound)
    made = text.replace(old, new, most if most >= 0 else -1)
    _checked(made)
    return made


def exploded(text: str, sign: str, place: str | None, limit: str | None) -> str:
    """Return the part of a text at ``place``, which is negative from the end; "" if there is none."""
    _checked(text, sign)
    most = whole_of(limit) if limit is not None else 0
    parts = text.split(sign or " ", -1 if most in (0, -1) else max(most - 1, 0))
    if place is not None and not re.fullmatch(r"-?[0-9]{1,9}", place):
        return ""
    at = int(place) if place is not None else 0
    return parts[at] if -len(parts) <= at < len(parts) else ""


def decoded(text: str) -> str:
    """Return a text without the escapes of addresses.  Raises ExpressionError."""
    _checked(text)
    return unquote_plus(text)


def encoded(text: str, how: str) -> str:
    """Return a text as a part of an address: of its query, or of its path ("PATH"), or of a wiki's path ("WIKI")."""
    if how == "WIKI":
        return quote(text.replace(" ", "_"), safe=";@$!*(),/~:")
    return quote(text, safe="") if how == "PATH" else quote_plus(text)


def path_of(path: str, base: str) -> str:
    """Return the title that a path leads to; one that begins with a slash or dots is relative to ``base``.

    Raises ExpressionError for a path above the root.
    """
    path = path.rstrip(" /")
    if path in ("", "."):
        return base
    if not path.startswith(("/", "./", "../")) and path != "..":
        base = ""
    parts: list[str] = []
    for part in _SLASHES.sub("/", _DOTS.sub("/", f"/{base}/{path}/")).strip("/").split("/"):
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            raise ExpressionError("the path leads above the root")
    return "/".join(parts)


def padded(text: str, length: str, sign: str, *, before: bool) -> str:
    """Return a text filled up to a length, which is PADDED_CHARS_MAX at most."""
    wanted = number_of(length)
    missing = int(min(wanted, PADDED_CHARS_MAX)) - len(text) if wanted is not None else 0
    if missing <= 0 or not sign:
        return text
    filling = (sign * (missing // len(sign) + 1))[:missing]
    return filling + text if before else text + filling


def title_part(title: str, count: str, first: str) -> str:
    """Return some of the parts of a title between slashes: ``count`` of them, from the ``first``, which is 1.

    A negative count leaves so many out at the end, and a negative first counts from there.
    """
    parts: Sequence[str] = title.split("/", TITLE_PARTS_MAX - 1)
    begin, wanted = whole_of(first), whole_of(count)
    parts = parts[begin - 1 if begin > 0 else begin :]
    return "/".join(parts[:wanted] if wanted else parts)
