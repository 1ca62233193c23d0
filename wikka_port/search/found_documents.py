"""The documents that a search found, read from their own rows: pages, comments, files.

The index may lag behind a deletion, a rename or a removal: a document that is no more is left out.

Cost: a call for each kind that is among the keys; for comments two more, for the names of their pages; for files one
more, for their authors and times, and two for each text file whose text is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from columnar.client import Connection
from wikka_port import schema
from wikka_port.comments.comment_rows import (
    CELLS_FAMILY,
    COMMENTS,
    STAGED_FAMILY,
    Comment,
    committed_cells,
    parse_comment_row,
)
from wikka_port.comments.recent_comments import pages_of_histories
from wikka_port.files.file_rows import FILE_FAMILY, FILES, CurrentFile, FileVersion, files_in, row_of_version
from wikka_port.page_languages import ENGLISH
from wikka_port.page_rows import Cells, autolink_of, head_of, is_there, language_of, markup_of, text_in, time_of
from wikka_port.schema import KEY_BYTES, fields_in
from wikka_port.search.beside_pages import (
    KINDS,
    Kind,
    comment_in,
    file_text,
    key_of_file,
    kind_of,
    page_of_file,
    row_of_comment,
    text_of_comment,
)
from wikka_port.search.page_text import page_text, title_text
from wikka_port.store import rows_in_steps

# From names of pages to those of them that a visitor may read.
Readable = Callable[[Collection[str]], Collection[str]]
_HEADS: Final = (schema.VERSIONCOUNT, schema.NAME, schema.TIME, schema.USER, schema.LANGUAGE)
_TEXTS: Final = (schema.BODY, schema.AUTOLINK, schema.FORMAT)


def _everything(names: Collection[str]) -> Collection[str]:
    return names


@dataclass(frozen=True, slots=True)
class Rights:
    """The documents that a visitor may read: ``pages`` of pages and their files, ``comments`` of comments."""

    pages: Readable | None = None  # None: all
    comments: Readable = _everything


@dataclass(frozen=True, slots=True)
class Document:
    key: bytes
    page: str  # the name of the page, or of the page that has the comment or the file
    author: str
    time_ms: int
    cells: Cells  # of a page
    comment: Comment | None = None
    file: tuple[str, CurrentFile] | None = None  # with its name
    text: str = ""  # of a comment or a file, if texts were wanted

    @property
    def kind(self) -> Kind:
        return kind_of(self.key)

    @property
    def language(self) -> str:
        """The language by whose rules its words were indexed."""
        return language_of(self.cells) or ENGLISH

    @property
    def body(self) -> str:
        """The text as it was typed."""
        return text_in(self.cells, schema.BODY) if self.kind == "page" else self.text

    def parts(self) -> tuple[str, ...]:
        """Return its title, its headings and its text, without markup, as they were indexed."""
        if self.comment is not None:
            return (self.text,)
        if self.file is not None:
            return (title_text(self.file[0]), self.file[1].alt, self.text)
        plain = page_text(self.body, autolink=autolink_of(self.cells), markup=markup_of(self.cells))
        return (title_text(self.page), *plain)


def read_documents(connection: Connection, keys: Sequence[bytes], rights: Rights, *, texts: bool) -> list[Document]:
    """Return those of the documents, in the order of ``keys``, that are there and that may be read."""
    by_kind = {kind: [key for key in keys if kind_of(key) == kind] for kind in KINDS}
    found = {one.key: one for one in _pages(connection, by_kind["page"], texts)}
    found |= {one.key: one for one in _files(connection, by_kind["file"], texts)}
    names = {one.page for one in found.values()}
    may_read = set(names if rights.pages is None else rights.pages(names))
    found = {key: one for key, one in found.items() if one.page in may_read}
    comments = list(_comments(connection, by_kind["comment"]))
    if comments:
        may_read = set(rights.comments({one.page for one in comments}))
        found |= {one.key: one for one in comments if one.page in may_read}
    return [found[key] for key in keys if key in found]


def _pages(connection: Connection, keys: Sequence[bytes], texts: bool) -> list[Document]:
    columns = (*_HEADS, *_TEXTS) if texts else _HEADS
    rows = rows_in_steps(connection.table(schema.PAGES), keys, *columns)
    return [
        Document(key, text_in(cells, schema.NAME), text_in(cells, schema.USER), time_of(cells), cells)
        for key, cells in rows
        if is_there(cells)
    ]


def _comments(connection: Connection, keys: Sequence[bytes]) -> list[Document]:
    wanted = {row_of_comment(key): key for key in keys}
    rows = dict(rows_in_steps(connection.table(COMMENTS), wanted, CELLS_FAMILY, STAGED_FAMILY))
    pages = pages_of_histories(connection, {row[:KEY_BYTES] for row in rows}) if rows else {}
    found = []
    for row, cells in rows.items():
        page = pages.get(row[:KEY_BYTES])
        if page is None:
            continue
        comment = comment_in(row, committed_cells(parse_comment_row(row)[1], cells, page.head))
        if comment is not None:
            time_ms = max(comment.time_ms, comment.edited_ms)
            text = text_of_comment(comment)
            found.append(Document(wanted[row], page.name, comment.author, time_ms, {}, comment, text=text))
    return found


def _files(connection: Connection, keys: Sequence[bytes], texts: bool) -> list[Document]:
    wanted, columns = set(keys), (FILE_FAMILY, schema.VERSIONCOUNT, schema.NAME)
    owners = dict.fromkeys(map(page_of_file, keys))
    found: dict[bytes, tuple[bytes, str, str, CurrentFile]] = {}  # by row of the version
    for row, cells in rows_in_steps(connection.table(schema.PAGES), owners, *columns):
        for name, current in files_in(cells).items() if is_there(cells) else ():
            key = key_of_file(row, name)
            if key in wanted and current.is_there:
                version = row_of_version(head_of(cells).place(row), name, current.number, current.token)
                found[version] = (key, text_in(cells, schema.NAME), name, current)
    versions = dict(rows_in_steps(connection.table(FILES), found, b"v"))
    made = []
    for row, (key, page, name, current) in found.items():
        one = FileVersion(**fields_in(FileVersion, versions[row])) if row in versions else None
        author, time_ms = (one.author, one.time_ms) if one is not None else ("", 0)
        text = file_text(connection, current) if texts else ""
        made.append(Document(key, page, author, time_ms, {}, file=(name, current), text=text))
    return made
