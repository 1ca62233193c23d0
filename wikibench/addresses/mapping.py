"""Maps: how a kind of wiki spells the addresses of its pages, its edit form, its sign-in and its access log (pure).

    [wiki]   view, edit    addresses with {title}, escaped; or {path} and {page}, which are those of the trace
             escape        how a name is spelt (``ESCAPES``);  root: the page that a rule reads no name of, such as of /
             titles        the address of a list of all pages;  titles_as: how the list is written (``TITLES_AS``)
    [form]   text          the name of the text area;  save: of the button, empty for the first that saves
             saved         statuses that say that an edit is saved
             conflict      statuses, and conflict_text in a page, that say that somebody else was faster
             locked_text   in a page without a form: somebody else is editing
             review        a path: a redirect to it says that the edit waits for a review, and is not saved
    [login]  page          the address of the form;  name, password: its fields;  users: a file, name,password a line
    [[log]]  match         a regular expression on path and query, with (?P<title>...);  kind, method
                           of several rules the first that matches decides

A page has one canonical name, whatever its address: decoded, ``_`` as a blank, without a query, spelt as ``escape``
says.  A canonical name is its own canonical name.

Knows nothing of files and of HTTP.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar, cast
from urllib.parse import quote, unquote, unquote_plus

from wikibench.errors import MapError

Kind = Literal["view", "save", "static", "other"]
KINDS: Final[tuple[Kind, ...]] = ("view", "save", "static", "other")
TITLES_AS: Final = ("lines", "mediawiki")  # one a line, or the answers of MediaWiki's api.php

# What may stand unescaped in a path that a name is made into.  "?", "#" and "%" must not; in a query, neither must "&",
# "=" and "+".
SAFE_IN_NAME: Final = "/:()!*',;@-._~$"
_BLANKS: Final = re.compile(r"[ _]+")
_NOT_OF_DOKUWIKI: Final = re.compile(r"[^\w:.-]+|_+")
_SEPARATORS_OF_DOKUWIKI: Final = re.compile(r"[_.-]*:[_.:-]*")


def _mediawiki(name: str) -> str:
    name = _BLANKS.sub(" ", name).strip()
    return name[:1].upper() + name[1:]


def _dokuwiki(name: str) -> str:
    name = _NOT_OF_DOKUWIKI.sub("_", name.lower().replace(";", ":"))
    return _SEPARATORS_OF_DOKUWIKI.sub(":", name).strip("_.-:").replace("_", " ")


ESCAPES: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": lambda name: name.replace("_", " "),  # as it is, blanks as _
    "percent": lambda name: name,  # as it is, blanks as %20
    "mediawiki": _mediawiki,  # the first letter is a capital
    "dokuwiki": _dokuwiki,  # small letters, digits and : . - _
}


@dataclass(frozen=True, slots=True)
class WikiRules:
    view: str = "{path}"
    edit: str = "{page}/edit"
    escape: str = "plain"
    root: str = ""  # the page at an address without a name; empty if such an address is none of a page
    titles: str = "/api/titles"  # empty if the wiki has no list
    titles_as: str = "lines"


@dataclass(frozen=True, slots=True)
class FormRules:
    text: str = "body"
    save: str = ""
    saved: tuple[int, ...] = (301, 302, 303, 307, 308)
    conflict: tuple[int, ...] = (409,)
    conflict_text: str = ""
    locked_text: str = ""
    review: str = "/-/held"  # a path, of this project's wiki unless a map says otherwise


@dataclass(frozen=True, slots=True)
class LoginRules:
    page: str = ""
    name: str = ""
    password: str = ""
    users: str = ""  # empty if --users gives it


@lru_cache(maxsize=1_024)
def _compiled(match: str) -> re.Pattern[str]:
    return re.compile(match)


Rules = TypeVar("Rules", WikiRules, FormRules, LoginRules)


@dataclass(frozen=True, slots=True)
class LogRule:
    match: str
    kind: Kind
    methods: frozenset[str]  # empty: any

    def title_in(self, path: str) -> str | None:
        """Return the decoded title of a path that matches, empty if the rule has none; None if it does not match."""
        pattern = _compiled(self.match)
        found = pattern.search(path)
        if found is None:
            return None
        if "title" not in pattern.groupindex:
            return ""
        is_in_query = 0 <= path.find("?") < found.start("title")
        return (unquote_plus if is_in_query else unquote)(found["title"] or "")


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """A map.  Without arguments it is ``plain``: the addresses of the trace as they are."""

    name: str = "plain"
    wiki: WikiRules = field(default_factory=WikiRules)
    form: FormRules = field(default_factory=FormRules)
    login: LoginRules | None = None
    log: tuple[LogRule, ...] = ()

    @property
    def has_own_addresses(self) -> bool:
        """Whether views go to addresses made from titles, and not to those of the trace."""
        return "{title}" in self.wiki.view

    def kind_of(self, method: str, path: str) -> tuple[Kind, str]:
        """Return kind and canonical title of a request of a log; ``other`` if no rule of the map speaks of it.

        ``path`` has the query.  The title is empty for ``static`` and ``other``.
        """
        for rule in self.log:
            if not rule.methods or method in rule.methods:
                title = rule.title_in(path)
                if title is not None:
                    return (rule.kind, self.canonical(title)) if rule.kind in ("view", "save") else (rule.kind, "")
        return "other", ""

    def title_of(self, path: str) -> str:
        """Return the canonical title of the page at ``path``, an address of such a wiki or ``/Name`` of any."""
        for rule in self.log:
            title = rule.title_in(path) if rule.kind in ("view", "save") else None
            if title:
                return self.canonical(title)
        return self.canonical(unquote(path.partition("?")[0]).lstrip("/"))

    def canonical(self, title: str) -> str:
        """Return the one name of a page, with blanks; a mark of order or case that the wiki ignores is gone.

        An empty title is that of the root page.
        """
        spell = ESCAPES[self.wiki.escape]
        return (spell(title) or spell(self.wiki.root)).strip()

    def escaped(self, title: str) -> str:
        """Return the canonical form of a title as an address has it, in a path or a query."""
        name = self.canonical(title)
        return quote(name if self.wiki.escape == "percent" else name.replace(" ", "_"), safe=SAFE_IN_NAME)

    def view_path(self, title: str) -> str:
        return self.wiki.view.replace("{title}", self.escaped(title))


def parse_map(name: str, text: str) -> Map:
    """Return the map of a TOML text; raises MapError with ``name`` and what to write instead."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MapError(name, f"it is no TOML: {error}") from error
    _require_known(name, "a map", given, ("wiki", "form", "login", "log"))
    wiki = _section(name, "wiki", given.get("wiki", {}), WikiRules)
    _check_wiki(name, wiki)
    login = _section(name, "login", given["login"], LoginRules) if "login" in given else None
    if login is not None and not (login.page.startswith("/") and login.name and login.password):
        raise MapError(name, 'login needs page = "/...", name and password: the address and the fields of its form')
    rules = given.get("log", [])
    if not isinstance(rules, list):
        raise MapError(name, "log is a list of rules: log = [ { match = '^/wiki/(?P<title>[^?]+)', kind = \"view\" } ]")
    form = _section(name, "form", given.get("form", {}), FormRules)
    return Map(name, wiki, form, login, tuple(_log_rule(name, rule) for rule in rules))


def _check_wiki(name: str, wiki: WikiRules) -> None:
    for key, path, marks in (("view", wiki.view, ("{title}", "{path}")), ("edit", wiki.edit, ("{title}", "{page}"))):
        if not any(mark in path for mark in marks):
            raise MapError(name, f"wiki.{key} needs {' or '.join(marks)}, where the page stands: {path!r}")
        if not path.startswith(("/", "{path}", "{page}")):
            raise MapError(name, f"wiki.{key} is a path of the target, which begins with /: {path!r}")
    if wiki.escape not in ESCAPES:
        raise MapError(name, f"wiki.escape is one of {', '.join(ESCAPES)}, not {wiki.escape!r}")
    if wiki.titles_as not in TITLES_AS:
        raise MapError(name, f"wiki.titles_as is one of {', '.join(TITLES_AS)}, not {wiki.titles_as!r}")


def _require_known(name: str, where: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise MapError(name, f"{where} has {', '.join(known)}, but no {unknown[0]!r}")


def _section(name: str, section: str, given: Any, kind: type[Rules]) -> Rules:
    if not isinstance(given, dict):
        raise MapError(name, f"{section} is a table: {section} = {{ ... }}")
    _require_known(name, section, given, tuple(one.name for one in fields(kind)))
    values = {key: _value(name, f"{section}.{key}", value, getattr(kind(), key)) for key, value in given.items()}
    return kind(**values)


def _value(name: str, key: str, value: Any, default: object) -> Any:
    if isinstance(default, str):
        if not isinstance(value, str):
            raise MapError(name, f"{key} is a text in quotes")
        return value
    if not isinstance(value, list) or not all(isinstance(one, int) and 100 <= one < 600 for one in value):
        raise MapError(name, f"{key} is a list of statuses, as [302, 303]")
    return tuple(value)


def _log_rule(name: str, given: Any) -> LogRule:
    if not isinstance(given, dict) or "match" not in given or "kind" not in given:
        raise MapError(
            name, "each rule of log has match and kind: { match = '^/wiki/(?P<title>[^?]+)', kind = \"view\" }"
        )
    _require_known(name, "a rule of log", given, ("match", "kind", "method"))
    kind = given["kind"]
    if kind not in KINDS:
        raise MapError(name, f"log.kind is one of {', '.join(KINDS)}, not {kind!r}")
    try:
        match = _compiled(str(given["match"]))
    except re.error as error:
        raise MapError(name, f"log.match {given['match']!r} is no regular expression: {error}") from error
    if kind in ("view", "save") and "title" not in match.groupindex:
        raise MapError(name, f"log.match {given['match']!r} needs (?P<title>...), the part that is the page's name")
    usual = {"view": "GET HEAD", "save": "POST"}.get(kind, "")
    return LogRule(match.pattern, cast("Kind", kind), frozenset(str(given.get("method", usual)).split()))
