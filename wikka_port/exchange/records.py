"""(pure) A page, a revision and a file as every form of an export carries them; and the digests that compare two sides.

A source of records yields pages, and then deleted ones.  A page yields its revisions, the oldest first, then its files,
of each file the versions, the oldest first, and then its comments by number, each behind the one that it answers.  A
file's content comes with the first version that has it; later versions of the page with the same content, and removals,
come without.

A digest is the sum of the SHA-256 of all records of a kind, modulo 2^256, so the order of pages does not count.  A
revision's digest contains its place in the history and not its number: a page that had been deleted and made anew
begins with a higher number, and an import numbers from 1.  A page counts by its ``identity``.  The language "" is
English's as long as no other was chosen.

Knows nothing of the store and of forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Protocol

from wikka_port.comments.comment_rows import VISIBLE
from wikka_port.markup.formats import WIKKA
from wikka_port.page_languages import ENGLISH
from wikka_port.schema import folded

KINDS: Final = ("revisions", "rights", "files", "comments", "deleted")
_RARE: Final = ("comments", "deleted")  # only some forms have them, so none are not named
LISTS: Final = ("read", "write", "comment_read", "comment_post")
_MODULUS: Final = 1 << 256
_ABSENT: Final = "\0"  # no list, source or origin has this text


class ExportError(Exception):
    """The export cannot be made or read; ``str()`` says why, for the operator."""


@dataclass(frozen=True, slots=True)
class PageRecord:
    """A page; a deleted one says when, by whom and why.  Several deleted pages may have one name."""

    name: str
    owner: str = ""
    lists: Mapping[str, str] = field(default_factory=dict)  # the page's own, by LISTS
    deleted_ms: int = 0  # 0: it is not deleted
    deleted_by: str = ""
    reason: str = ""  # of the deletion

    @property
    def is_deleted(self) -> bool:
        return self.deleted_ms > 0

    @property
    def identity(self) -> str:
        """The page's name, or for a deleted one its name and time: unique within a source."""
        return f"{self.name}\0{self.deleted_ms}" if self.deleted_ms else self.name


@dataclass(frozen=True, slots=True)
class SiteRecord:
    """The lists for all pages and for prefixes of names."""

    lists: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by folded prefix, then by LISTS


@dataclass(frozen=True, slots=True)
class RevisionRecord:
    number: int
    time_ms: int
    author: str
    body: str
    note: str = ""
    signed: str = ""  # the kind of the author's name (``schema``)
    minor: bool = False
    markup: str = WIKKA
    language: str = ""
    autolink: bool = True
    attribution: str = ""
    was: str = ""  # the page's name at the time, if it was another
    source: str | None = None  # the original text of an import
    origin: str = ""  # of an import (``import_plan.Origin``)
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A version of a file; without a digest it says that the file was removed."""

    name: str
    number: int
    time_ms: int
    author: str
    signed: str = ""
    note: str = ""
    alt: str = ""
    media_type: str = ""
    size_bytes: int = 0
    sha256: str = ""
    metadata: str = ""  # of a picture: "removed", "kept" or ""


@dataclass(frozen=True, slots=True)
class CommentRecord:
    number: int
    time_ms: int
    author: str
    text: str = ""
    signed: str = ""
    markup: str = WIKKA
    parent: int = 0  # number of the comment that it answers; 0: none
    state: str = VISIBLE
    edited_ms: int = 0
    removed_by: str = ""  # "author" or "owner"
    origin: str = ""  # of an import

    @property
    def key(self) -> tuple[int, str, str]:
        """The fields by which both sides recognise the comment; its number may be another."""
        return self.time_ms, self.author, self.origin


@dataclass(frozen=True, slots=True)
class RecordedFile:
    record: FileRecord
    content: Iterator[bytes] | None  # None: a removal, or the content came with an earlier version of the page


class RecordedPage(Protocol):
    """A page of a source; revisions are read before files, files before comments, and all before the next page."""

    @property
    def record(self) -> PageRecord: ...

    def revisions(self) -> Iterator[RevisionRecord]: ...

    def files(self) -> Iterator[RecordedFile]: ...

    def comments(self) -> Iterator[CommentRecord]:
        """Yield the comments; a form without them yields none."""
        ...


class RecordSource(Protocol):
    """Pages, as often as ``pages`` is called."""

    def site(self) -> SiteRecord | None:
        """Return the site's lists, or None if the source carries no rights: neither the site's nor of pages."""
        ...

    def pages(self) -> Iterator[RecordedPage]: ...


def living_pages(source: RecordSource) -> Iterator[RecordedPage]:
    """Yield the pages of a source that are not deleted."""
    return (page for page in source.pages() if not page.record.is_deleted)


class ReadSource(RecordSource, Protocol):
    """A source that is read from a file or a folder."""

    @property
    def consumed(self) -> int:
        """How much of it was read, for a progress bar."""
        ...

    @property
    def remarks(self) -> list[str]:
        """Lines for a person on what was read and has no record."""
        ...


# --- digests -----------------------------------------------------------------------------------


def revision_digest(page: str, place: int, one: RevisionRecord) -> int:
    """Return the digest of the revision at ``place``, counted from 1, of the page of that identity."""
    return _digest(
        *("revision", page, place, one.time_ms, one.author, one.signed, one.note, one.minor, one.markup),
        *(one.language or ENGLISH, one.autolink, one.attribution, one.body, one.origin or _ABSENT, one.hidden),
        _ABSENT if one.source is None else one.source,
    )


def rights_digest(page: PageRecord) -> int:
    return _digest("rights", page.name, folded(page.owner), *(page.lists.get(one, _ABSENT) for one in LISTS))


def deletion_digest(page: PageRecord) -> int:
    return _digest("deleted", page.identity, page.deleted_by, page.reason, str(rights_digest(page)))


def file_digest(page: str, one: FileRecord) -> int:
    return _digest(
        *("file", page, one.name, one.number, one.time_ms, one.author, one.signed, one.note, one.alt),
        *(one.media_type, one.size_bytes, one.sha256, one.metadata),
    )


def comment_digest(page: str, one: CommentRecord, parent_ms: int) -> int:
    """Return the digest of a comment; ``parent_ms`` is the time of the comment that it answers."""
    return _digest(
        *("comment", page, one.time_ms, one.author, one.signed, one.text, one.markup, parent_ms, one.state),
        *(one.edited_ms, one.removed_by, one.origin),
    )


def _digest(*parts: str | int) -> int:
    made = sha256()
    for part in parts:
        data = str(part).encode("utf-8", "replace")
        made.update(b"%d:%s" % (len(data), data))
    return int.from_bytes(made.digest(), "big")


class Digests:
    """Counts and digests of all records of one side, by kind."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        """Go on from the ``values`` of others, or begin."""
        given = values or {"pages": 0, "counts": {}, "digests": {}}
        self.pages = int(given["pages"])
        self.counts = {kind: int(given["counts"].get(kind, 0)) for kind in KINDS}
        self._sums = {kind: int(given["digests"].get(kind, "0"), 16) for kind in KINDS}

    def values(self) -> dict[str, Any]:
        """Return what other digests go on from: JSON."""
        return {
            "pages": self.pages,
            "counts": dict(self.counts),
            "digests": {kind: self.digest(kind) for kind in KINDS},
        }

    def add_page(self, page: PageRecord) -> None:
        self.pages += 1
        if page.is_deleted:
            self._add("deleted", deletion_digest(page))
        else:
            self._add("rights", rights_digest(page))

    def add_revision(self, page: str, place: int, one: RevisionRecord) -> None:
        self._add("revisions", revision_digest(page, place, one))

    def add_file(self, page: str, one: FileRecord) -> None:
        self._add("files", file_digest(page, one))

    def add_comment(self, page: str, one: CommentRecord, parent_ms: int) -> None:
        self._add("comments", comment_digest(page, one, parent_ms))

    def _add(self, kind: str, digest: int) -> None:
        self.counts[kind] += 1
        self._sums[kind] = (self._sums[kind] + digest) % _MODULUS

    def digest(self, kind: str) -> str:
        return f"{self._sums[kind]:064x}"

    def as_lines(self) -> list[str]:
        """Return a line for each kind: count and digest; kinds of _RARE only if there are any."""
        kinds = [kind for kind in KINDS if kind not in _RARE or self.counts[kind]]
        return [f"{kind}: {self.counts[kind]:,}, {self.digest(kind)}" for kind in kinds]


class DigestingSource:
    """Passes a source's pages on, and adds all that is read of them to ``digests``."""

    def __init__(self, source: RecordSource, digests: Digests | None = None) -> None:
        """Go on from ``digests``, or begin."""
        self.digests = digests or Digests()
        self._source = source

    def site(self) -> SiteRecord | None:
        return self._source.site()

    def pages(self) -> Iterator[RecordedPage]:
        for page in self._source.pages():
            self.digests.add_page(page.record)
            yield _DigestingPage(page, self.digests)


class _DigestingPage:
    def __init__(self, page: RecordedPage, digests: Digests) -> None:
        self.record = page.record
        self._page = page
        self._digests = digests

    def revisions(self) -> Iterator[RevisionRecord]:
        for place, one in enumerate(self._page.revisions(), 1):
            self._digests.add_revision(self.record.identity, place, one)
            yield one

    def files(self) -> Iterator[RecordedFile]:
        for one in self._page.files():
            self._digests.add_file(self.record.identity, one.record)
            yield one

    def comments(self) -> Iterator[CommentRecord]:
        times: dict[int, int] = {}
        for one in self._page.comments():
            times[one.number] = one.time_ms
            self._digests.add_comment(self.record.identity, one, times.get(one.parent, 0))
            yield one
