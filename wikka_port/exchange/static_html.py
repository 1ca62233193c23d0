"""(pure) HTML of the wiki, made fit for a folder: addresses of the wiki become relative paths, or go.

    <a href="/A~2FB#part">words</a>       <a href="../pages/A/B.html#part">words</a>
    <a href="/HomePage/edit">Edit</a>     <span>Edit</span>               there is no such thing in a folder
    <img src="/A/files/x.png?v=3" ...>    <img src="../files/A/x.png">    without ``srcset``: smaller ones stay there
    <form ...>...</form>                  nothing

Links to other sites stay: a reader who follows one leaves the folder, and no page loads anything from there.

Invariants:
    I1. Each ``href`` and ``src`` that is left is an address of another site (``href`` alone), a part of the same page,
        or what ``Places`` returned.
    I2. No form, script, style or frame is left, and no attribute that loads or sends anything.

Knows nothing of files and pages: ``Places`` does.
"""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser
from typing import Final, Protocol
from urllib.parse import quote

_DROPPED: Final = frozenset({"form", "script", "style", "iframe", "object", "noscript", "template", "svg", "math"})
_LOADING: Final = frozenset({
    "href", "src", "srcset", "sizes", "poster", "data", "action", "formaction", "background", "ping", "style",
    "xlink:href",
})  # fmt: skip
_SCHEMES: Final = ("http://", "https://", "mailto:", "ftp://", "news:", "tel:", "irc://", "ircs://", "xmpp:", "magnet:")
_PLAIN_IN_PATH: Final = "/!$'()*,@~"


class Places(Protocol):
    """Paths of pages, pictures and files in a static site, by their addresses in the wiki."""

    def link(self, address: str) -> str | None:
        """Return the path of what an address of the wiki leads to, with its fragment, or None: it is not there."""

    def picture(self, address: str) -> str | None:
        """Return the path of a picture, or None: it is not there."""


def as_address(path: str) -> str:
    """Return a path of the folder as a relative address."""
    return quote(path, safe=_PLAIN_IN_PATH)


def in_folder(html: str, places: Places) -> str:
    """Return ``html``, which the wiki rendered, with the addresses of ``places``.  O(characters)."""
    reader = _Rewriter(places)
    reader.feed(html)
    reader.close()
    return "".join(reader.written)


class _Rewriter(HTMLParser):
    """Copies what it reads, but for the tags that have addresses."""

    def __init__(self, places: Places) -> None:
        super().__init__(convert_charrefs=False)
        self.written: list[str] = []
        self._places = places
        self._anchors: list[str] = []  # the end tags of the open ``a``
        self._dropped: list[str] = []  # the open elements that are left out with their content

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in _DROPPED:
            self._dropped.append(tag)
        if self._dropped:
            return
        if tag == "a":
            self._open_anchor(attributes)
        elif tag == "img":
            self._write_picture(attributes)
        elif any(name in _LOADING or name.startswith("on") for name, _ in attributes):
            self.written.append(_tag(tag, [one for one in attributes if not _loads(one[0])]))
        else:
            self.written.append(self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in _DROPPED:
            self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag: str) -> None:
        if self._dropped:
            if tag == self._dropped[-1]:
                self._dropped.pop()
        elif tag == "a":
            self._append(self._anchors.pop() if self._anchors else "")
        else:
            self.written.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._append(data)

    def handle_entityref(self, name: str) -> None:
        self._append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._append(f"&#{name};")

    def _append(self, html: str) -> None:
        if not self._dropped:
            self.written.append(html)

    def _open_anchor(self, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        address = given.get("href")
        target = None if address is None else self._target(address)
        kept = [one for one in attributes if not _loads(one[0])]
        if target is None and address is not None:
            kept = [one for one in kept if one[0] in ("id", "title")]
            self.written.append(_tag("span", kept))
            self._anchors.append("</span>")
            return
        self.written.append(_tag("a", [("href", target), *kept] if target is not None else kept))
        self._anchors.append("</a>")

    def _target(self, address: str) -> str | None:
        if address.startswith("#") or address.lower().startswith(_SCHEMES):
            return address
        return self._places.link(address) if address.startswith("/") and not address.startswith("//") else None

    def _write_picture(self, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        address = given.get("src") or ""
        is_ours = address.startswith("/") and not address.startswith("//")
        path = self._places.picture(address) if is_ours else None
        if path is None:
            self.written.append(escape(given.get("alt") or ""))
        else:
            kept = [one for one in attributes if not _loads(one[0])]
            self.written.append(_tag("img", [("src", path), *kept]))


def _loads(name: str) -> bool:
    return name in _LOADING or name.startswith("on")


def _tag(tag: str, attributes: list[tuple[str, str | None]]) -> str:
    parts = [name if value is None else f'{name}="{escape(value)}"' for name, value in attributes]
    return f"<{' '.join([tag, *parts])}>"
