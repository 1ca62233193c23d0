"""(pure) Embedded HTML: the text that people write between pairs of double quotes, made safe.

The sanitiser is nh3 (the ammonia library, a real HTML parser).  It allows only the elements listed here:
text-level elements, lists, tables, images.  It allows no style, form, frame, media or script; links
get ``rel="nofollow noopener"``.  The id of a link is an anchor of the page, like those of headings:
``[[#id]]`` links to it, and no script or style of the wiki uses it.  Classes get the prefix
``user-``, so that a page cannot imitate the wiki's own controls.  Each piece is closed separately:
an element cannot begin in one piece and end in another (except ``wikka_html._HALVES``).

HTML's parsing rules reopen unclosed formatting elements (b, font, ...) in every block that follows.
Without a bound, 100 KB of ``<p><b title=1><p><b title=2>..`` becomes 600 MB.  The rules reopen at most three
equal elements, so attributes of formatting elements are dropped before parsing; a piece in which that is
impossible, or with over MAX_TAGS tags, is shown as text.
"""

from __future__ import annotations

import re
from typing import Final

import nh3

from wikka_port.markup.compiler import PlaceIds
from wikka_port.markup.fragments import escape
from wikka_port.markup.targets import SCHEMES, place_id, safe_picture, safe_url

_INLINE: Final = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "br", "cite", "code", "data", "dfn", "del", "em", "i", "img", "ins", "kbd",
    "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "u", "var", "wbr",
})  # fmt: skip
_BLOCK: Final = frozenset({
    "blockquote", "caption", "col", "colgroup", "dd", "details", "div", "dl", "dt", "figcaption", "figure",
    "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "summary",
    "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip
_ATTRIBUTES: Final = {
    "*": {"class", "title", "lang", "dir"},
    "a": {"href", "id"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start", "type"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "col": {"span"},
    "colgroup": {"span"},
    "data": {"value"},
}
_CLASS: Final = re.compile(r"[A-Za-z][A-Za-z0-9_\-]{0,39}")
_PLACE: Final = "\x02"  # marks an id until ``placed``; no text of a page has this character
_ID: Final = re.compile('id="\x02([^"\x02]*)"')
MAX_TAGS: Final = 2_000  # of one piece; nesting costs the square of this, 25 ms at most
_FORMATTING: Final = "(b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)"
_FORMATTING_WITH_ATTRIBUTES: Final = re.compile(rf"<{_FORMATTING}[\s/][^<>]*+>", re.IGNORECASE)
_LEFT_OVER: Final = re.compile(rf"<{_FORMATTING}[\s/]", re.IGNORECASE)
_BLOCK_TAG: Final = re.compile("<(?:" + "|".join(sorted(_BLOCK)) + r")\b")


def user_classes(typed: str) -> str:
    """Return the class names of a page's author with the prefix ``user-``, or "" if none is valid."""
    return " ".join("user-" + name for name in typed.split()[:20] if _CLASS.fullmatch(name))


def _filter(_tag: str, attribute: str, value: str) -> str | None:
    if attribute == "class":
        return user_classes(value) or None
    if attribute == "id":
        return _PLACE + place_id(value)
    if attribute == "href":
        return safe_url(value)
    if attribute == "src":
        return safe_picture(value)
    if attribute in ("colspan", "rowspan", "span", "start", "width", "height"):
        return value if value.isascii() and value.isdigit() and len(value) <= 4 else None
    return value


def _cleaner(tags: frozenset[str]) -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=set(tags),
        clean_content_tags={"script", "style", "template", "noscript", "iframe", "object", "svg", "math"} - tags,
        attributes={tag: names for tag, names in _ATTRIBUTES.items() if tag == "*" or tag in tags},
        attribute_filter=_filter,
        url_schemes=set(SCHEMES),
        link_rel="nofollow noopener",
    )


_ANYWHERE: Final = _cleaner(_INLINE | _BLOCK)
_IN_LINE: Final = _cleaner(_INLINE)


def has_places(html: str) -> bool:
    """Return whether ``html``, a result of ``clean``, has ids, so that ``placed`` must make them unique."""
    return _PLACE in html


def placed(html: str, places: PlaceIds) -> str:
    """Return ``html`` of ``clean`` with its ids made unique in the page."""
    return _ID.sub(lambda found: f'id="{places.unique(found[1])}"', html) if _PLACE in html else html


def clean(source: str, *, inline: bool = False) -> tuple[str, bool]:
    """Return ``source`` as safe HTML, and whether it has block elements; with ``inline`` they are removed."""
    if "<" not in source and "&" not in source:
        return escape(source), False  # by far the most frequent use: text without its markup
    source = _FORMATTING_WITH_ATTRIBUTES.sub(r"<\1>", source)
    if source.count("<") > MAX_TAGS or _LEFT_OVER.search(source):
        return escape(source), False
    safe = (_IN_LINE if inline else _ANYWHERE).clean(source)
    return safe, not inline and _BLOCK_TAG.search(safe) is not None
