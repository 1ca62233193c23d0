"""(pure) Addresses: from a path to its page and handler, and from a page and handler to their path.

    /                          the root page
    /Name                      the page, shown
    /Name/edit                 the handler ``edit`` of the page; only the words of PAGE_HANDLERS are handlers
    /Name/files/Plan.pdf       a file of the page, as it is; no file has a slash in its name
    /-/recentchanges           a handler of the whole wiki: a word of SITE_HANDLERS after ``/-/``
    /-/static/<hash>/<file>    style and script, with the hash of the file's content
    /api/                      the description of the API for people; /api/v1/... its operations (``api``)
    /api/titles  /health  /robots.txt  /favicon.ico

A name is one segment (``names.url_path``), so "A/edit" is ``/A~2Fedit`` and no name can be taken for a
handler.  Typed paths are read leniently: ``/A/B`` is the page "A/B", for "B" is no handler; the wiki then
redirects to the canonical path.  In the path of a page whose name is a reserved word, the first letter is
written as a tilde escape: "health" is ``/~68ealth``.

Knows nothing of HTTP, nor of which pages exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import quote, urlencode

from wikka_port.names import from_url, url_path

PAGE_HANDLERS: Final = frozenset({
    "show", "edit", "revisions", "revisions.xml", "history", "diff", "raw", "backlinks", "revert",
    "acls", "claim", "clone", "delete", "hide", "rename", "undelete", "draft", "grabcode", "html", "print", "showcode",
    "suggestion", "file", "files", "files.xml", "comments", "comments.xml", "watch",
    "tree", "summary",
})  # fmt: skip
SITE_HANDLERS: Final = frozenset({
    "inbox", "inbox.xml", "watches", "unsubscribe",
    "recentchanges", "recentchanges.xml", "pageindex", "wantedpages", "orphanedpages", "search", "suggest", "newpage",
    "administration", "deleted", "massdelete", "massrevert", "moves", "login", "logout", "register", "reset", "confirm",
    "pages", "settings", "sessions", "account", "preview", "actions",
    "upload", "keys", "recentcomments", "comments.xml", "theme", "held", "blocks", "antispam",
    "users", "groups", "rights", "audit", "jobs", "sizes", "site", "colour.css",
})  # fmt: skip
RESERVED: Final = frozenset({"health", "robots.txt", "favicon.ico"})
SITE_PREFIX: Final = "/-/"
STATIC_PREFIX: Final = "/-/static/"
API: Final = "/api/"
API_PREFIX: Final = "/api/v1/"
API_CONTENT: Final = "/api/v1/file/content"  # of a file
_UPLOAD_PATH: Final = "/-/upload"  # of an upload in parts
_PLAIN_IN_FILES: Final = "!$'()*,@"
_FILES: Final = "/files"  # between a page's name and that of its file


@dataclass(frozen=True, slots=True)
class Route:
    kind: Literal["page", "site", "file", "static", "titles", "api", "reserved"]
    name: str  # of the page; of the file for "static"
    handler: str
    file: str = ""  # the name of a page's file, for the kind "file"


def route(path: str, root_page: str) -> Route:
    """Return the meaning of ``path`` (decoded, as WSGI passes it).  Raises InvalidName."""
    if path.startswith(STATIC_PREFIX):
        return Route("static", path.rpartition("/")[2], "static")
    if path.startswith(SITE_PREFIX) and path[len(SITE_PREFIX) :] in SITE_HANDLERS:
        return Route("site", "", path[len(SITE_PREFIX) :])
    if path == "/api/titles":
        return Route("titles", "", "titles")
    if path == API or path.startswith(API_PREFIX):
        return Route("api", "", "api")
    if path[1:] in RESERVED:
        return Route("reserved", "", path[1:])
    place = path.strip("/")
    if not place:
        return Route("page", root_page, "show")
    name, slash, last = place.rpartition("/")
    if slash and last in PAGE_HANDLERS:
        return Route("page", from_url(name), last)
    if name.endswith(_FILES) and not path.endswith("/"):
        return Route("file", from_url(name.removesuffix(_FILES)), "download", last)
    return Route("page", from_url(place), "show")


def takes_upload(method: str, path: str) -> bool:
    """Return whether such a request is an upload, whose body has no bound but the site's bound of a file."""
    if path == API_CONTENT:
        return method == "PUT"
    if path.startswith(SITE_PREFIX):
        return method == "PATCH" and path == _UPLOAD_PATH
    return method == "POST" and path.rstrip("/").endswith(_FILES)


def page_path(name: str, handler: str = "show", **query: str | int) -> str:
    """Return the canonical path of a page's handler.  Raises InvalidName."""
    segment = url_path(name)
    if segment in RESERVED:
        segment = f"~{ord(segment[0]):02X}{segment[1:]}"
    path = f"/{segment}" if handler == "show" else f"/{segment}/{handler}"
    return with_query(path, query)


def file_path(name: str, file: str, **query: str | int) -> str:
    """Return the canonical path of a page's file; ``file`` has no slash (``file_names``).  Raises InvalidName.

    ``v`` is a version's number and ``w`` the width of a smaller picture.
    """
    return with_query(f"{page_path(name)}{_FILES}/{quote(file, safe=_PLAIN_IN_FILES)}", query)


page_url: Final = lru_cache(maxsize=8192)(page_path)  # the same few thousand links are on most pages


def site_path(handler: str, **query: str | int) -> str:
    return with_query(SITE_PREFIX + handler, query)


def with_query(path: str, query: Mapping[str, str | int]) -> str:
    """Return ``path`` with the parameters that have a value."""
    given = {key: value for key, value in query.items() if value != ""}
    return f"{path}?{urlencode(given)}" if given else path
