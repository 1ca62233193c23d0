"""(pure) The rows of pages and revisions: cells to values and back.

Knows nothing of the store; ``pages`` reads and writes with it, ``consistency`` compares with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Required, TypedDict

from wikka_port import schema
from wikka_port.comments.comment_rows import COMMENTS_HEAD, COMMENTS_NAMED, NO_COMMENTS, CommentsHead, comments_in
from wikka_port.files.file_rows import FILE, CurrentFile, files_in
from wikka_port.markup.formats import WIKKA, is_format
from wikka_port.notices.notice_rows import pack_notify
from wikka_port.page_languages import ENGLISH, known
from wikka_port.rights.rules import NO_RIGHTS, PageRights, page_rights
from wikka_port.schema import Head, parse_head

Cells = Mapping[bytes, bytes]

_YES: Final = b"yes"
_NONE: Final[frozenset[int]] = frozenset()
_OF_THE_ROW: Final = (schema.STAMP, schema.WAS, schema.HIDDEN, schema.NOTIFY, COMMENTS_HEAD, COMMENTS_NAMED)
_NO: Final = b"no"


@dataclass(frozen=True, slots=True)
class Revision:
    """A stored revision; ``body`` is None if texts were not requested."""

    name: str
    number: int
    time_ms: int
    author: str
    note: str
    body: str | None
    signed: str = ""  # what the author's name rests on (``schema``)
    markup: str = WIKKA  # the format of ``body``
    minor: bool = False
    token: str = ""  # of this revision (``schema``)
    language: str = ""  # of ``body``; "": not chosen (``page_languages``)
    grown: int | None = None  # characters more than before; None: unknown (``schema``)


@dataclass(frozen=True, slots=True)
class Page(Revision):
    """The newest revision of a page, and the page's own fields."""

    body: str
    owner: str = ""
    autolink: bool = True  # whether CamelCase is linked
    attribution: str = ""  # shown below imported pages, "" otherwise
    rights: PageRights = NO_RIGHTS
    hidden: frozenset[int] = frozenset()  # numbers of revisions that are not shown
    files: Mapping[str, CurrentFile] = field(default_factory=dict)  # by name; removed ones, too (``is_there``)
    comments: CommentsHead = NO_COMMENTS  # only for visitors who may read comments (``rights.guarded_comments``)
    history: bytes = b""  # under which revisions, files and comments lie; b"": the key of the name

    @property
    def version(self) -> int:
        """A number of this text, unique among all texts of the name, even if a rename gave it to a different page."""
        return self.number * (schema.TIME_MAX_MS + 1) + self.time_ms


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page with the row that was read, from which a save may begin."""

    page: Page | None
    row: Cells
    head: Head


class Writing(TypedDict, total=False):
    """Fields of a save beside the text.  None keeps the page's value; a new page links CamelCase and has no owner."""

    author: Required[str]
    note: str
    autolink: bool | None
    attribution: str | None
    owner: str | None
    signed: str  # the kind of the name ``author`` (``schema``)
    markup: str | None  # the format of the text
    minor: bool
    language: str | None
    source: str | None  # the original text of an import
    origin: bytes  # of an import


@dataclass(frozen=True, slots=True)
class Original:
    """The original text of an import, and the place that it comes from; None and b"" mean no cell."""

    text: str | None
    origin: bytes = b""


NO_ORIGINAL: Final = Original(None)


@dataclass(frozen=True, slots=True)
class RevisionDraft:
    """A revision to be saved: all values of its row and of the page's row."""

    name: str
    head: Head
    previous: bytes  # token of the revision before, b"" for the first
    time_ms: int
    author: str
    note: str
    body: str
    owner: str
    created_ms: int
    autolink: bool
    attribution: str
    signed: str = ""
    markup: str = ""  # "": no cell, for pages that always were in Wikka markup
    minor: bool | None = None  # None: no cell
    language: str = ""  # "": no cell
    original: Original = NO_ORIGINAL
    grown: int = 0  # characters more than before


def _shared(draft: RevisionDraft) -> dict[bytes, bytes]:
    return {
        schema.NAME: draft.name.encode(),
        schema.TIME: b"%d" % draft.time_ms,
        schema.PREVIOUS: draft.previous,
        schema.OWNER: draft.owner.encode(),
        schema.CREATED: b"%d" % draft.created_ms,
        schema.AUTOLINK: _YES if draft.autolink else _NO,
        schema.ATTRIBUTION: draft.attribution.encode(),
        schema.SIGNED: draft.signed.encode(),
        **({schema.FORMAT: draft.markup.encode()} if draft.markup else {}),
        **({schema.LANGUAGE: draft.language.encode()} if draft.language else {}),
        **({schema.MINOR: _YES if draft.minor else _NO} if draft.minor is not None else {}),
        schema.GROWN: b"%d" % draft.grown,
    }


def revision_cells(draft: RevisionDraft) -> dict[bytes, bytes]:
    original = draft.original
    return {
        **_shared(draft),
        schema.REVISION_AUTHOR: draft.author.encode(),
        schema.REVISION_NOTE: draft.note.encode(),
        schema.REVISION_BODY: draft.body.encode(),
        **({schema.SOURCE: original.text.encode(errors="replace")} if original.text is not None else {}),
        **({schema.ORIGIN: original.origin} if original.origin else {}),
    }


def page_cells(draft: RevisionDraft) -> dict[bytes, bytes]:
    """Return all cells of a page's row except ``meta:versioncount``."""
    return {
        **_shared(draft),
        schema.HEAD: draft.head.pack(),
        schema.USER: draft.author.encode(),
        schema.NOTE: draft.note.encode(),
        schema.BODY: draft.body.encode(),
    }


def notify_cell(draft: RevisionDraft, by: str, mentions: Collection[str]) -> dict[bytes, bytes]:
    """Return the cell that has the watchers of the page notified of an edit of the account ``by``."""
    return {
        schema.NOTIFY: pack_notify(
            by,
            name=draft.name,
            head=draft.head,
            time_ms=draft.time_ms,
            is_new=not draft.previous,
            minor=bool(draft.minor),
            mentions=mentions,
        )
    }


def page_cells_of_revision(head: Head, cells: Cells) -> dict[bytes, bytes]:
    """Return the page's cells that follow from the cells of its newest revision; for repairs and stale rows."""
    moved = {
        schema.REVISION_AUTHOR: schema.USER,
        schema.REVISION_NOTE: schema.NOTE,
        schema.REVISION_BODY: schema.BODY,
    }
    beside = (schema.SOURCE, schema.ORIGIN)
    of_revision = {moved.get(column, column): value for column, value in cells.items() if column not in beside}
    return {schema.HEAD: head.unmarked().pack(), **of_revision}


def revision_cells_of_page(cells: Cells) -> dict[bytes, bytes]:
    """Return the newest revision's cells from the page's, the reverse of ``page_cells_of_revision``."""
    moved = {
        schema.USER: schema.REVISION_AUTHOR,
        schema.NOTE: schema.REVISION_NOTE,
        schema.BODY: schema.REVISION_BODY,
    }
    left_out = (schema.HEAD, schema.VERSIONCOUNT)
    return {
        moved.get(column, column): value for column, value in without_rights(cells).items() if column not in left_out
    }


def without_rights(cells: Cells) -> Cells:
    """Return the cells of a page's row that follow from its newest revision."""
    return {
        column: value
        for column, value in cells.items()
        if not column.startswith((b"acl:", FILE)) and column not in _OF_THE_ROW
    }


def page_of(head: Head, cells: Cells) -> Page:
    rights = page_rights(cells, cells.get(schema.OWNER, b""))
    return Page(
        **_revision_fields(head, cells, schema.USER, schema.NOTE),
        body=text_in(cells, schema.BODY),
        owner=rights.owner,
        autolink=autolink_of(cells),
        attribution=text_in(cells, schema.ATTRIBUTION),
        rights=rights,
        hidden=hidden_in(cells) if schema.HIDDEN in cells else _NONE,
        files=files_in(cells),
        comments=comments_in(cells) if COMMENTS_HEAD in cells else NO_COMMENTS,
        history=head.history,
    )


def _revision_fields(head: Head, cells: Cells, author: bytes, note: bytes) -> dict[str, Any]:
    return {
        "name": text_in(cells, schema.NAME),
        "number": head.number,
        "time_ms": time_of(cells),
        "author": text_in(cells, author),
        "note": text_in(cells, note),
        "signed": text_in(cells, schema.SIGNED),
        "markup": markup_of(cells),
        "minor": is_minor(cells),
        "token": head.token.decode(errors="replace"),
        "language": language_of(cells),
        "grown": grown_in(cells),
    }


def stored_page_of(row: Cells) -> StoredPage:
    head = head_of(row)
    return StoredPage(page_of(head, row) if head.number else None, row, head)


def revision_of(head: Head, cells: Cells) -> Revision:
    body = cells.get(schema.REVISION_BODY)
    return Revision(
        **_revision_fields(head, cells, schema.REVISION_AUTHOR, schema.REVISION_NOTE),
        body=None if body is None else body.decode(errors="replace"),
    )


def is_revision(one: Revision, number: int, token: str) -> bool:
    """Return whether ``one`` is the revision of that number, and of that token if ``token`` is not empty.

    A number alone is not enough: after a rename a different page of this name may have revisions of the same numbers.
    """
    return one.number == number and token in ("", one.token)


def page_as_of(page: Page, old: Revision) -> Page | None:
    """Return the page with the fields of the revision ``old``, or None if its text was not read."""
    if old.body is None:
        return None
    of_revision = {one.name: getattr(old, one.name) for one in fields(Revision)}
    return replace(page, **{**of_revision, "name": page.name})


def head_of(cells: Cells) -> Head:
    """Return the head of the newest revision in a page's row, or NO_HEAD if the row is empty."""
    return parse_head(cells.get(schema.VERSIONCOUNT))


def is_stale(cells: Cells) -> bool:
    """Return whether a page's cells are older than its newest revision, after a crash between two steps of a save."""
    stored, newest = cells.get(schema.HEAD), cells.get(schema.VERSIONCOUNT)
    return stored != newest and (not stored or not newest or head_of(cells).unmarked().pack() != stored)


def is_there(cells: Cells) -> bool:
    """Return whether the row is a page; the cell ``meta:versioncount`` suffices to tell."""
    newest = cells.get(schema.VERSIONCOUNT)
    return newest is not None and newest[:2] != b"0:"


def stamp_of(cells: Cells) -> int:
    """Return the highest timestamp of the cells in a page's row that revisions and moves wrote."""
    return max(time_of(cells), number_in(cells, schema.STAMP))


def number_before(cells: Cells) -> int:
    """Return the last revision number of a page that has ended, from its row."""
    return parse_head(cells.get(schema.WAS, b"").partition(b" ")[0]).number


def hidden_in(cells: Cells) -> frozenset[int]:
    """Return the numbers of the page's hidden revisions."""
    return frozenset(int(part) for part in cells.get(schema.HIDDEN, b"").split(b",") if part.isdigit())


def time_of(cells: Cells) -> int:
    return number_in(cells, schema.TIME)


def number_in(cells: Cells, column: bytes) -> int:
    value = cells.get(column, b"")
    return int(value) if value.isdigit() else 0


def autolink_of(cells: Cells) -> bool:
    return cells.get(schema.AUTOLINK) != _NO


def markup_of(cells: Cells) -> str:
    """Return the format of a text; an unknown format counts as Wikka markup."""
    value = text_in(cells, schema.FORMAT)
    return value if is_format(value) else WIKKA


def language_of(cells: Cells) -> str:
    """Return the language of a text, or "" if it has none or an unknown one."""
    return known(text_in(cells, schema.LANGUAGE)) if schema.LANGUAGE in cells else ""


def reverted_language(page: Page, old: Revision) -> str:
    """Return the language that ``page`` gets when it is reverted to ``old``, or "" if it needs none."""
    return old.language or (ENGLISH if page.language else "")


def is_minor(cells: Cells) -> bool:
    return cells.get(schema.MINOR) == _YES


def grown_in(cells: Cells) -> int | None:
    """Return by how many characters a text is longer than the one before, or None if its row does not say it."""
    value = cells.get(schema.GROWN, b"")
    return int(value) if value.removeprefix(b"-").isdigit() else None


def text_in(cells: Cells, column: bytes) -> str:
    return cells.get(column, b"").decode(errors="replace")


# --- rows of changes -----------------------------------------------------------------------------


def change_entry(
    key: bytes, head: Head, cells: Cells, author_column: bytes, note_column: bytes
) -> tuple[bytes, dict[bytes, bytes]]:
    """Return the row of ``changes`` for a revision, and its cells, from the cells of the revision or of its page."""
    optional = {column: cells[column] for column in (schema.SIGNED, schema.GROWN) if cells.get(column)}
    return schema.change_row(key, time_of(cells), head.number), {
        schema.NAME: cells.get(schema.NAME, b""),
        schema.HEAD: head.pack(),
        schema.TIME: b"%d" % time_of(cells),
        schema.REVISION_AUTHOR: cells.get(author_column, b""),
        schema.REVISION_NOTE: cells.get(note_column, b""),
        **optional,
        **({schema.MINOR: b"yes"} if is_minor(cells) else {}),
    }


def entry_of_revision(key: bytes, name: bytes, head: Head, cells: Cells) -> tuple[bytes, dict[bytes, bytes]]:
    """Return row and cells of the entry, as ``change_entry`` does, from a revision's cells and its page's ``name``."""
    named = {**cells, schema.NAME: name or cells.get(schema.NAME, b"")}
    return change_entry(key, head, named, schema.REVISION_AUTHOR, schema.REVISION_NOTE)


ENTRY_COLUMNS: Final = (
    schema.NAME,
    schema.HEAD,
    schema.TIME,
    schema.REVISION_AUTHOR,
    schema.REVISION_NOTE,
    *(schema.SIGNED, schema.MINOR, schema.GROWN),
)
