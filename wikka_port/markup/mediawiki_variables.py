"""(pure) MediaWiki's variables and functions whose value follows from the title of a page and the address of its site.

    {{PAGENAME}} {{TALKPAGENAME}} {{NAMESPACE}} {{SITENAME}} ...  names; with "E" at the end as part of an address
    {{SERVER}} {{SERVERNAME}} {{SCRIPTPATH}} {{CONTENTLANGUAGE}}  of the site from which the dump is
    {{CURRENTYEAR}} {{LOCALDAYNAME}} {{REVISIONMONTH}} ...        of the time of the revision (``mediawiki_times``)
    {{fullurl:Page|query}} {{localurl:Page}}                      addresses
    {{urlencode:text|PATH}} {{anchorencode:text}}                 parts of addresses
    {{ns:2}} {{nse:User}}                                         the name of a namespace
    {{User:Page}} {{:Page}} {{/Page}}                             pages that are no templates, to be included

The names have those of the site's language beside them (``mediawiki_names``).  A value is wikitext, not a mark, so
that it can stand in the target of a link and in an address.

Knows nothing of the positions of calls; ``mediawiki_scan`` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from wikka_port.markup.mediawiki_links import forced_link
from wikka_port.markup.mediawiki_names import names_of
from wikka_port.markup.mediawiki_pieces import MARK, Draft, Piece, unescape
from wikka_port.markup.mediawiki_strings import encoded
from wikka_port.markup.mediawiki_times import variable_of
from wikka_port.markup.mediawiki_titles import SITE_SAFE, Dialect, page_address, project_of, spaced

_OF_ADDRESS: Final = frozenset(("fullurl", "fullurle", "canonicalurl", "canonicalurle", "localurl", "localurle"))
_OF_SITE: Final = frozenset(("server", "servername", "scriptpath"))
# Characters of a title that could be markup beside others, and those that no title has.
_MARKUP: Final = re.compile(r"'(?=')|(?<=')'|\A'|'\Z|\A[*;#: ]|[&=\[\]{}|<>\n]|_(?=_)|(?<=_)_")
_SERVER: Final = re.compile(r"(?:https?:)?//[^/?#\s]+")
_EMPHASIS: Final = re.compile("''+")
_NO_PAGES: Final = (10, -1, -2)  # templates, special pages, media


def value_of(draft: Draft, title: str, given: Mapping[str, str]) -> str | None:
    """Return the wikitext in the place of a call, or None if it is none of these.

    ``given`` has the values by their names, as typed.
    """
    name, colon, argument = title.partition(":")
    names = names_of(draft.dialect.language)
    if not colon:
        return None if given else _variable(draft, names.variable(title))
    argument = argument.strip()
    if any(mark[0] in draft.unknown for text in (argument, *given.values()) for mark in MARK.finditer(text)):
        return None
    argument, key = draft.plain(argument), names.function(name)
    if key in _OF_ADDRESS and argument:
        address = _full(draft.dialect, argument, _query(draft, given))
        return _path(address) if key.startswith("local") and address else address or None
    if key == "urlencode" and argument:
        return encoded(argument, draft.plain(given.get("1", "")).strip())
    if key == "anchorencode" and argument:
        return spaced(_EMPHASIS.sub("", argument)).replace(" ", "_")
    if key in ("ns", "nse") and not given:
        space = _namespace(draft.dialect, argument)
        return quote(space.replace(" ", "_"), safe=SITE_SAFE) if space and key == "nse" else space
    return None


def needs_site(dialect: Dialect, title: str) -> bool:
    """Return whether the value of a call is an address, for which a site has to be known."""
    name, colon, _ = title.partition(":")
    names = names_of(dialect.language)
    return names.function(name) in _OF_ADDRESS if colon else names.variable(name).lower() in _OF_SITE


def _query(draft: Draft, given: Mapping[str, str]) -> str:
    parts = (value if key.isdigit() else f"{key}={value}" for key, value in given.items())
    return quote(unescape("&".join(draft.plain(part).strip() for part in parts)), safe="/:@!$()*,;.-_~&=%+")


def _full(dialect: Dialect, page: str, query: str) -> str:
    """Return the address of a page at the dump's site; "" if it is unknown."""
    written = quote(dialect.title(spaced(page.removeprefix(":"))).replace(" ", "_"), safe=SITE_SAFE)
    address = page_address(dialect.base, written)
    if not address or not query:
        return address
    if "?" in address:
        return f"{address}&{query}"
    if project_of(dialect.base)[1]:
        return f"{_server(dialect)}/w/index.php?title={written}&{query}"
    return f"{address}?{query}"


def _path(address: str) -> str:
    parts = urlsplit(address)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _server(dialect: Dialect) -> str:
    """Return scheme and host of the site, or "" if its address is unknown."""
    found = _SERVER.match(dialect.base)
    return found[0] if found else ""


def _namespace(dialect: Dialect, argument: str) -> str | None:
    number = int(argument) if re.fullmatch(r"-?[0-9]{1,5}", argument) else dialect.numbers.get(spaced(argument).lower())
    return dialect.names.get(number) if number is not None else None


# -- names --------------------------------------------------------------------------------------


def _variable(draft: Draft, name: str) -> str | None:
    dialect = draft.dialect
    server = _server(dialect)
    if name.lower() in _OF_SITE:
        path = "/w" if project_of(dialect.base)[1] else None
        found = {"server": server, "servername": server.rpartition("/")[2], "scriptpath": path}
        return found[name.lower()] or None
    is_written = name not in _NAMES and name[-1:] == "E"
    make = _NAMES.get(name[:-1] if is_written else name)
    value = make(dialect, draft.title) if make is not None else None
    if value is None:
        now = draft.expansion.now
        return None if now is None else variable_of(name, now, dialect.language)
    draft.converted["name of the page"] += 1
    if is_written:
        return quote(value.replace(" ", "_"), safe=SITE_SAFE)
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", value)


def _parts(dialect: Dialect, title: str) -> tuple[int, str]:
    """Return the number of a title's namespace, and the rest of the title."""
    number = dialect.namespace(title)
    return number, title.partition(":")[2].strip() if number else title


def _page(dialect: Dialect, title: str) -> str:
    return _parts(dialect, title)[1]


def _base(dialect: Dialect, title: str) -> str:
    page = _page(dialect, title)
    return page.rpartition("/")[0] or page if dialect.has_subpages(title) else page


def _root(dialect: Dialect, title: str) -> str:
    page = _page(dialect, title)
    return page.partition("/")[0] or page if dialect.has_subpages(title) else page


def _sub(dialect: Dialect, title: str) -> str:
    page = _page(dialect, title)
    return page.rpartition("/")[2] or page if dialect.has_subpages(title) else page


def _space(dialect: Dialect, title: str) -> str:
    return dialect.names.get(_parts(dialect, title)[0], "")


def _talk_space(dialect: Dialect, title: str) -> str | None:
    number = _parts(dialect, title)[0]
    return dialect.names.get(number | 1) if number >= 0 else None


def _subject_space(dialect: Dialect, title: str) -> str | None:
    number = _parts(dialect, title)[0]
    return dialect.names.get(number & ~1, "") if number >= 0 else None


def _talk_page(dialect: Dialect, title: str) -> str | None:
    space = _talk_space(dialect, title)
    return f"{space}:{_page(dialect, title)}" if space else None


def _subject_page(dialect: Dialect, title: str) -> str | None:
    space, page = _subject_space(dialect, title), _page(dialect, title)
    return f"{space}:{page}" if space else page


_NAMES: Final[Mapping[str, Callable[[Dialect, str], str | None]]] = {
    "PAGENAME": _page,
    "FULLPAGENAME": lambda _dialect, title: title,
    "BASEPAGENAME": _base,
    "ROOTPAGENAME": _root,
    "SUBPAGENAME": _sub,
    "TALKPAGENAME": _talk_page,
    **dict.fromkeys(("SUBJECTPAGENAME", "ARTICLEPAGENAME"), _subject_page),
    "NAMESPACE": _space,
    "TALKSPACE": _talk_space,
    **dict.fromkeys(("SUBJECTSPACE", "ARTICLESPACE"), _subject_space),
    "NAMESPACENUMBER": lambda dialect, title: str(_parts(dialect, title)[0]),
    "SITENAME": lambda dialect, _title: dialect.site or None,
    **dict.fromkeys(
        ("CONTENTLANGUAGE", "CONTENTLANG", "PAGELANGUAGE"), lambda dialect, _title: dialect.language or None
    ),
}


# -- pages --------------------------------------------------------------------------------------


def page_of(draft: Draft, title: str, given: Mapping[str, str]) -> Piece | None:
    """Return what includes the page that a call names, or None if it names a template, or nothing.

    Alone in its line it is an include, elsewhere a link: an include cannot stand in a line.  A call with values is
    none, since only a template would read them.
    """
    dialect = draft.dialect
    name = title.strip()
    if name.startswith("/"):
        if not dialect.has_subpages(draft.title):
            return None
        name = draft.title + name.rstrip("/")
    elif not name.startswith(":") and not dialect.namespace(name):
        return None
    target = dialect.target(f":{name.removeprefix(':')}")
    if given or target is None or target.kind != "page" or not target.title or target.title == draft.title:
        return None
    if dialect.namespace(target.title) in _NO_PAGES:
        return None
    page = re.sub(r"""["'{}&]""", lambda found: f"&#{ord(found[0])};", target.title)
    shown = forced_link(draft, target.title, target.title)
    return Piece(shown, target.title, target.title, block=f'{{{{include page="{page}"}}}}')
