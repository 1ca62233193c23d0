"""From an address in a trace to a path on the wiki under test, and to the name of its page (pure).

A trace has the host and the layout of the recorded wiki; the target has its own.  The host is dropped, prefixes are
exchanged as the user says (``/wiki/=/``).  A map of the target makes addresses of its own from the names of pages;
without one, paths stay as they are.  The edit address of a page is made from a template in any case, because ``save``
lines of real traces point at index.php.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from wikibench.errors import PlanError
from wikibench.limits import PATHS_KEPT

from .mapping import SAFE_IN_NAME, Map

# Characters that may stay in a trace's address, which is escaped already.
_SAFE_IN_ADDRESS: Final = "/:()!*',;@-._~$%?&=+[]"
_SCRIPT: Final = "index.php"


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of the target's addresses."""

    rewrites: tuple[tuple[str, str], ...] = ()  # (prefix, replacement), the first that fits is used
    edit: str = ""  # in place of the map's
    map: Map = field(default_factory=Map)

    def path(self, url: str) -> str:
        """Return the path and query on the target for an address of the trace."""
        path = self._rewritten(address_path(url))
        return _mapped(self.map, path) if self.map.has_own_addresses else path

    def name(self, url: str) -> str:
        """Return the name of the page of an address of the trace, as a link would spell it."""
        if self.map.has_own_addresses:
            return self.map.title_of(self._rewritten(address_path(url)))
        return page_name(self.page(url))

    def page(self, url: str) -> str:
        """Return the path of the page that a ``save`` line changes, without a query; ``/Name`` if the map has views."""
        if self.map.has_own_addresses:
            return "/" + self.map.escaped(self.name(url))
        path, _, query = address_path(url).partition("?")
        if path.endswith(_SCRIPT):
            title = dict(parse_qsl(query)).get("title", "")
            if title:
                path = "/wiki/" + name_path(title)
        return self._rewritten(path.removesuffix("/edit"))

    def edit_path(self, page: str) -> str:
        """Return the path and query of the edit form of a page, which is of ``page``."""
        form, title = self.edit or self.map.wiki.edit, self.map.canonical(unquote(page).lstrip("/"))
        path = self.map.view_path(title) if self.map.has_own_addresses else page
        return form.replace("{title}", self.map.escaped(title)).replace("{page}", path)

    def _rewritten(self, path: str) -> str:
        for prefix, replacement in self.rewrites:
            if path.startswith(prefix):
                return replacement + path[len(prefix) :]
        return path


@lru_cache(maxsize=PATHS_KEPT)
def _mapped(wiki: Map, path: str) -> str:
    return wiki.view_path(wiki.title_of(path))


def parse_rewrite(text: str) -> tuple[str, str]:
    """Return ``/wiki/=/`` as (prefix, replacement)."""
    prefix, equals, replacement = text.partition("=")
    if not equals or not prefix.startswith("/") or not replacement.startswith("/"):
        raise PlanError(f"--rewrite {text!r} is not of the form /old/=/new/")
    return prefix, replacement


@lru_cache(maxsize=PATHS_KEPT)
def address_path(url: str) -> str:
    """Return path and query of an address, safe to send; the address may lack the host or the leading slash."""
    if "://" in url:
        parts = urlsplit(url)
        url = parts.path + (f"?{parts.query}" if parts.query else "")
    url = url.partition("#")[0]
    if not url.startswith("/"):
        url = "/" + url
    return quote(url, safe=_SAFE_IN_ADDRESS, errors="surrogateescape")


def host_of(url: str) -> str | None:
    """Return the host of an address; None if the trace gives only a path."""
    return urlsplit(url).hostname if "://" in url else None


def name_path(name: str) -> str:
    """Return the escaped path (without a leading slash) of a page; blanks are written as ``_``."""
    return quote(name.replace(" ", "_"), safe=SAFE_IN_NAME)


def page_name(path: str) -> str:
    """Return the name of the page at a path of the target, as a link would spell it."""
    return unquote(path.partition("?")[0]).lstrip("/").replace("_", " ")
