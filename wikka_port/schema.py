"""Tables, families and row keys of the wiki (pure), each with the access path it serves.

    table      row                                          families   serves
    pages      md5; ``~acl`` (``rights.rules``) and         meta body user    show a page; does it exist
               ``~languages`` (``page_languages``)          note acl file
                                                            comment
    revisions  md5, inverted number (10), ":", token (16)   meta body source   history newest first; one revision
    backlinks  md5                                          from to    pages that link here; links indexed of a page
    names      folded name, 00, name                        meta       alphabetical lists, prefixes, title search
    changes    salt, inverted ms (13), md5, inverted number meta       recent changes newest first
    wanted     md5 of a page that may be missing            from       wanted pages (``triggers`` W1 to W3)
    terms      stem, 00, first digit of md5                 p          pages with a word (``search.postings``)
    docs       md5                                          d          indexed words of a page
    imports    sha1 of a dump's origin                      meta       progress of a stopped import

``md5`` is the lower-case hexadecimal MD5 of the normalised name (``names.page_key``).  ``pages`` and
``revisions`` are the sources.  The tables of DERIVED follow from them (``triggers``)
and can be recomputed from them (``consistency``).  The derived tables have DELETE_MARKERS, because a late retry
must not bring back deleted cells.

Cells of a page row, all stamped with the time of the revision, or of the move that brought them (``moving``):
    meta:versioncount  "N:token", the number and token of the newest revision: this cell decides (see ``pages``).
                       "N:token:HISTORY" if the revisions do not lie under the page's own key, because the page was
                       renamed, or a page before it had its name.  A fourth part is the id of a move that has marked
                       the page.  "0:ID" if the page was deleted or moved away
    meta:head          the same value, written together with the cells below: the revision that they belong to
    meta:name meta:owner meta:created meta:autolink meta:attribution meta:time meta:previous meta:signed
    body:latest user:latest note:latest
    meta:stamp         time of the move that brought the row or ended it; a save is later
    meta:was           "HEAD NAME" of a page that has ended: the next page of the name is numbered after it
    meta:hidden        numbers of hidden revisions, separated by commas (``moving.mover``)
    meta:notify        put with an edit of a person, whose watchers are notified (``notices.notice_rows``)
and cells with times of their own that belong to no revision: acl:read, acl:write and others (``rights.rules``), and
    file:NAME, the newest version of a file (``files.file_rows``), comment:head (``comments.comment_rows``)
Cells of a revision row: meta:name meta:time meta:author meta:note meta:previous meta:autolink
    meta:attribution meta:owner meta:created meta:signed body:text
and, if it was imported, source:text (the original text) and source:origin (``import_plan.Origin``), by which a
    later import recognises it.  No cell of a page's row follows from these two
Cells of a row of changes: meta:name meta:head meta:time meta:author meta:note meta:signed

``meta:format`` of a page row and of a revision row: "markdown" or "wikka" (``markup.formats``); absent: Wikka markup.
``meta:minor`` of these rows and of ``changes``: "yes" for a minor edit, else "no" or absent.  Once a page has one of
these two cells, all its later revisions have it, so that a new revision's value always replaces the page's.  The same
holds for ``meta:language`` (``page_languages``).
``meta:grown`` of the same three: by how many characters the text is longer than the one before ("120", "-8"); absent in
rows of earlier versions of the wiki.

``meta:signed`` is the kind of the author's name: "account" (the name of an account), "key" (the same, of an edit
that a program made with a key of the account), "visitor" (a name made from the network), "wiki"; if it is absent or
empty, anybody may have signed with that name.

The token of a revision is made from its content and its predecessor's token, so a save that is sent twice writes one
row.  ``meta:previous`` is the predecessor's token.  So revisions form a chain; rows that are not on the chain were
staged and never committed.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

from wikka_port.names import InvalidName, page_key

PAGES: Final = b"pages"
REVISIONS: Final = b"revisions"
BACKLINKS: Final = b"backlinks"
NAMES: Final = b"names"
CHANGES: Final = b"changes"
WANTED: Final = b"wanted"
TERMS: Final = b"terms"
DOCS: Final = b"docs"
IMPORTS: Final = b"imports"

# A delivery later than this after its change could bring back cells that a later change deleted.
MARKERS_MS: Final = 30 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class TableSpec:
    name: bytes
    families: Mapping[str, Mapping[str, Any]]
    attributes: Mapping[str, str]
    family_attributes: Mapping[str, str] = field(default_factory=dict)  # of each family; not for a plain HBase


_ONE: Final[Mapping[str, Any]] = {"max_versions": 1}
_DERIVED: Final[Mapping[str, str]] = {"DELETE_MARKERS": str(MARKERS_MS)}
_DENSE: Final[Mapping[str, str]] = {"COMPRESSION": "ZSTD"}  # makes the index of words a quarter smaller
TABLES: Final = (
    TableSpec(PAGES, dict.fromkeys(("meta", "body", "user", "note", "acl", "file", "comment"), _ONE), {}),
    TableSpec(REVISIONS, {"meta": _ONE, "body": _ONE, "source": _ONE}, {}),
    TableSpec(BACKLINKS, {"from": _ONE, "to": _ONE}, _DERIVED),
    TableSpec(NAMES, {"meta": _ONE}, _DERIVED),
    TableSpec(CHANGES, {"meta": _ONE}, _DERIVED),
    TableSpec(WANTED, {"from": _ONE}, _DERIVED),
    TableSpec(TERMS, {"p": _ONE}, _DERIVED, _DENSE),
    TableSpec(DOCS, {"d": _ONE}, _DERIVED, _DENSE),
    TableSpec(IMPORTS, {"meta": _ONE}, {}),
)
DERIVED: Final = (BACKLINKS, NAMES, CHANGES, WANTED, TERMS, DOCS)

# Columns of pages and revisions.
VERSIONCOUNT: Final = b"meta:versioncount"
HEAD: Final = b"meta:head"
NAME: Final = b"meta:name"
OWNER: Final = b"meta:owner"
CREATED: Final = b"meta:created"
STAMP: Final = b"meta:stamp"
WAS: Final = b"meta:was"
HIDDEN: Final = b"meta:hidden"
AUTOLINK: Final = b"meta:autolink"
ATTRIBUTION: Final = b"meta:attribution"
TIME: Final = b"meta:time"
PREVIOUS: Final = b"meta:previous"
SIGNED: Final = b"meta:signed"
FORMAT: Final = b"meta:format"
LANGUAGE: Final = b"meta:language"
MINOR: Final = b"meta:minor"
GROWN: Final = b"meta:grown"
NOTIFY: Final = b"meta:notify"
BODY: Final = b"body:latest"
USER: Final = b"user:latest"
NOTE: Final = b"note:latest"
REVISION_AUTHOR: Final = b"meta:author"
REVISION_NOTE: Final = b"meta:note"
REVISION_BODY: Final = b"body:text"
SOURCE: Final = b"source:text"
ORIGIN: Final = b"source:origin"
CONTENT_FAMILIES: Final = (b"meta", b"body")  # families of a revision without its source

FROM: Final = b"from:"
TO: Final = b"to:"
TO_FAMILY: Final = b"to"
WANTED_FAMILY: Final = b"from"
GONE: Final = b"from:gone"  # in ``wanted``: the page was there and has ended; no key of a page is that short

OF_ACCOUNTS: Final = ("account", "key")  # kinds of SIGNED whose names are those of accounts
_NUMBER_MAX: Final = 10**10 - 1
TIME_MAX_MS: Final = 10**13 - 1  # the year 2286
TOKEN_CHARS: Final = 16
_TOKEN: Final = re.compile(f"[0-9a-f]{{{TOKEN_CHARS}}}")
_CHANGE_PLACE: Final = re.compile("[0-9]{13}(?:[0-9a-f]{32}[0-9]{10})?")
CHANGE_SALTS: Final = (b"0", b"1", b"2", b"3")  # the newest entries are spread over so many places
KEY_BYTES: Final = 32


# --- which revision ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Head:
    """A revision of a page by number and token; with the number 0 there is no revision."""

    number: int
    token: bytes
    history: bytes = b""  # the key under which the revisions lie; b"": the page's
    mark: bytes = b""  # id of the move that has marked the page; no other save writes it meanwhile

    def pack(self) -> bytes:
        if not self.history and not self.mark:
            return b"%d:%s" % (self.number, self.token)
        mark = b":" + self.mark if self.mark else b""
        return b"%d:%s:%s%s" % (self.number, self.token, self.history, mark)

    def place(self, key: bytes) -> bytes:
        """Return the key under which the revisions of the page ``key`` lie."""
        return self.history or key

    def unmarked(self) -> Head:
        return replace(self, mark=b"") if self.mark else self


NO_HEAD: Final = Head(0, b"")


def parse_head(value: bytes | None) -> Head:
    """Parse a head; return NO_HEAD if the cell is absent or empty.  Raises ValueError if it is no head."""
    if not value:
        return NO_HEAD
    number, *rest = value.split(b":")
    if not 1 <= len(rest) <= 3 or not number.isdigit() or len(number) > 10:
        raise ValueError(f"{value[:40]!r} is no revision of a page")
    return Head(int(number), *rest)


def new_history(key: bytes, move: bytes) -> bytes:
    """Return the key of a new page's history, if the page before it left the name ``key`` by the move ``move``."""
    return hashlib.md5(key + b":" + move, usedforsecurity=False).hexdigest().encode()


def revision_token(
    name: str,
    number: int,
    time_ms: int,
    author: str,
    note: str,
    body: str,
    previous: bytes = b"",
    markup: str = "",
    language: str = "",
) -> bytes:
    """Return the token of a revision, which differs for all drafts of revision ``number`` that differ in any argument.

    ``previous`` is the predecessor's token, empty for the first revision.  ``markup`` and ``language`` are empty if the
    revision has no such cell.
    """
    digest = hashlib.sha1(usedforsecurity=False)
    parts: tuple[str, ...] = (name, str(number), str(time_ms), author, note, body)
    if previous or markup or language:
        parts = (*parts, previous.decode())
    if markup or language:
        parts = (*parts, markup)
    for part in (*parts, language) if language else parts:
        data = part.encode()
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:TOKEN_CHARS].encode()


def is_token(value: str) -> bool:
    return _TOKEN.fullmatch(value) is not None


# --- revisions ---------------------------------------------------------------------------------


def _inverted_number(number: int) -> bytes:
    return b"%010d" % (_NUMBER_MAX - number)


def revision_row(key: bytes, head: Head) -> bytes:
    """Return the row of the revision ``head`` of the page ``key``."""
    return head.place(key) + _inverted_number(head.number) + b":" + head.token


def revisions_from(key: bytes, number: int) -> bytes:
    """Return the row from which a scan reads revision ``number`` of a page and then the older ones."""
    return key + _inverted_number(number)


def revisions_end(key: bytes) -> bytes:
    return key + b";"  # after every digit


def parse_revision_row(row: bytes) -> tuple[bytes, Head]:
    """Return the history's key and the revision of a row.  Raises ValueError if ``row`` is no row of a revision."""
    key, inverted, token = row[:KEY_BYTES], row[KEY_BYTES : KEY_BYTES + 10], row[KEY_BYTES + 11 :]
    if len(inverted) != 10 or not inverted.isdigit() or row[KEY_BYTES + 10 : KEY_BYTES + 11] != b":":
        raise ValueError(f"{row!r} is no row of a revision")
    return key, Head(_NUMBER_MAX - int(inverted), token)


# --- names -------------------------------------------------------------------------------------


def folded(text: str) -> str:
    """Return the form of a text by which names are ordered and searched: without case and accents."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFD", text.casefold())
    bare = "".join(char for char in parts if not "\u0300" <= char <= "\u036f")
    return unicodedata.normalize("NFC", bare)


def name_row(name: str) -> bytes:
    """Return the row of a name: rows are sorted by the folded name, and names of equal folded form are neighbours."""
    return folded(name).encode() + b"\x00" + name.encode()


def name_prefix(prefix: str) -> bytes:
    return folded(prefix).encode()


def name_of_row(row: bytes) -> str:
    return row.partition(b"\x00")[2].decode(errors="replace")


def page_key_of_name_row(row: bytes) -> bytes | None:
    """Return the key of the page that a row of ``names`` lists, or None if ``row`` is no row of a name."""
    try:
        name = name_of_row(row)
        return page_key(name) if row == name_row(name) else None
    except InvalidName:
        return None


# --- changes -----------------------------------------------------------------------------------


def change_salt(key: bytes) -> bytes:
    return CHANGE_SALTS[int(key[:2], 16) % len(CHANGE_SALTS)]


def change_row(key: bytes, time_ms: int, number: int) -> bytes:
    """Return the row of a change.  Under each salt the newest is first; the page's key determines the salt."""
    return change_salt(key) + b"%013d" % (TIME_MAX_MS - time_ms) + key + _inverted_number(number)


def change_place(time_ms: int) -> bytes:
    """Return the place in ``changes`` before which, under each salt, all changes later than ``time_ms`` lie."""
    return b"%013d" % (TIME_MAX_MS - max(0, min(time_ms, TIME_MAX_MS)))


def parse_change_place(text: str) -> bytes:
    """Return the place of a change without its salt, or one of ``change_place``.  Raises ValueError."""
    if _CHANGE_PLACE.fullmatch(text) is None:
        raise ValueError(f"{text[:80]!r} is no place in the list of changes")
    return text.encode()


def page_key_of_change_row(row: bytes) -> bytes | None:
    """Return the page's key in a row of ``changes``, or None if ``row`` is no row of a change."""
    return row[14 : 14 + KEY_BYTES] if len(row) == 14 + KEY_BYTES + 10 else None


# --- links -------------------------------------------------------------------------------------


def import_row(origin: str) -> bytes:
    return hashlib.sha1(origin.encode(), usedforsecurity=False).hexdigest().encode()


# --- records whose fields are cells --------------------------------------------------------------


_WRITTEN: Final[Mapping[Any, Callable[[Any], bytes]]] = {
    str: lambda text: text.encode("utf-8", "replace"),
    str | None: lambda text: (text or "").encode("utf-8", "replace"),
    bytes: bytes,
    int: lambda number: b"%d" % number,
    bool: lambda flag: b"yes" if flag else b"no",
    Head: Head.pack,
}
_READ: Final[Mapping[Any, Callable[[bytes], Any]]] = {
    str: lambda cell: cell.decode(errors="replace"),
    str | None: lambda cell: cell.decode(errors="replace"),
    bytes: bytes,
    int: int,
    bool: lambda cell: cell == b"yes",
    Head: parse_head,
}


@cache
def _columns(record: Any) -> tuple[tuple[str, Any, bytes, bool], ...]:
    """Return name, type and column of each field annotated with a column, and whether it has a default."""
    hints = get_type_hints(record, include_extras=True)
    annotated = ((one, get_args(hints[one.name])) for one in fields(record) if get_origin(hints[one.name]) is Annotated)
    return tuple((one.name, kind, column, one.default is not MISSING) for one, (kind, column) in annotated)


def cells_of(record: Any) -> dict[bytes, bytes]:
    """Return the cells of a record whose fields are annotated with their columns."""
    return {column: _WRITTEN[kind](getattr(record, name)) for name, kind, column, _ in _columns(record.__class__)}


def fields_in(record: type, cells: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return the fields by name; a field without a cell is left to its default, or is empty.

    Raises ValueError if a field is a number and its cell is not a number.
    """
    return {
        name: _READ[kind](cells.get(column, b""))
        for name, kind, column, has_default in _columns(record)
        if column in cells or not has_default
    }
