"""The move of a folder into the wiki: accounts and rights, pages, their files, the main page; then the comparison.

A killed move is continued by calling it again: pages continue behind the last one that is stored (``importer``), and
files that are on their pages are left alone.  A second move takes what is newer.  A text without a history is newer if
it differs from the newest one that an import has brought, whatever the times of the files are.

The main page of the folder becomes the wiki's root page, if that is new: missing, or the wiki's own first text, or
brought by an import of Markdown.  The first text is newer than the folder's; so a revision of the wiki itself, with the
folder's text, is put above it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha1
from typing import Final, Protocol

from columnar.client import Connection
from wikka_port import history, schema
from wikka_port.accounts.factory import Accounts
from wikka_port.import_pages import Counts
from wikka_port.import_plan import ImportedRevision, Origin, PagePart
from wikka_port.importer import Importer, ImportSummary
from wikka_port.imports.file_move import FileMove, FileReport, MovedFile
from wikka_port.imports.source_folder import SourceFolder
from wikka_port.markup.formats import MARKDOWN
from wikka_port.moving.mover import By
from wikka_port.names import page_key
from wikka_port.page_rows import head_of, markup_of, text_in
from wikka_port.pages import Conflict, Wiki
from wikka_port.texts import _w
from wikka_port.wikkawiki.comparison import Compared, record_digest

_OWNER: Final = "import"  # of uploads under way
_OF_THE_WIKI: Final = "wiki"  # the kind of name that signs first pages


class PageSource(Protocol):
    """The pages of a folder: an ``importer.PartSource`` that can be read again for the comparison."""

    counts: Counts
    consumed: int
    changed_links: int  # pages with links that were changed

    def __iter__(self) -> Iterator[PagePart]: ...

    def histories(self) -> Iterator[tuple[str, Iterator[ImportedRevision]]]:
        """Yield all pages, also those that are skipped: the name of each, and its revisions, the oldest first."""
        ...

    def is_timed(self, name: str) -> bool:
        """Return whether the times of a page's revisions are those of a history; else it has one revision."""
        ...


class People(Protocol):
    """The rights and accounts of a folder."""

    def before_pages(self, wiki: Wiki, accounts: Accounts) -> None: ...

    def after_pages(self, wiki: Wiki) -> None: ...

    def compared(self, wiki: Wiki, accounts: Accounts) -> list[Compared]: ...


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder as it was read."""

    pages: Callable[[int], PageSource]  # skips so many
    media: SourceFolder
    moved_files: Callable[[], Iterable[MovedFile]]
    refused: list[str]  # files, for the report
    people: People | None = None


@dataclass(frozen=True, slots=True)
class FolderMove:
    """The outcome of a move."""

    pages: PageSource
    summary: ImportSummary
    files: FileReport
    unchanged: int  # pages whose text is here already
    compared: list[Compared]

    @property
    def is_equal(self) -> bool:
        return all(one.is_equal for one in self.compared)


class FolderMover:
    """Moves one folder into one wiki."""

    def __init__(self, wiki: Wiki, accounts: Accounts, source: FolderSource, by: By) -> None:
        """Take the author ``by`` of files."""
        self._wiki = wiki
        self._accounts = accounts
        self._source = source
        self._by = by

    def run(self, *, origin: str, restart: bool, main_page: str, progress: Callable[[int, int], None]) -> FolderMove:
        """Move everything; ``progress`` gets pages and files.  Raises StoreUnavailable."""
        only_new: list[_OnlyNew] = []

        def parts(done: int) -> _OnlyNew:
            only_new.append(_OnlyNew(self._wiki, self._source.pages(done)))
            return only_new[-1]

        people = self._source.people
        if people is not None:
            people.before_pages(self._wiki, self._accounts)
        importer = Importer.from_parts(
            self._wiki, parts, origin=origin, restart=restart, progress=lambda pages, _: progress(pages, 0)
        )
        summary = importer.run()
        if people is not None:
            people.after_pages(self._wiki)
        pages = only_new[-1].pages
        report = FileReport(refused=self._source.refused)
        files = FileMove(self._wiki.files, self._source.media, self._source.moved_files, self._by, report, owner=_OWNER)
        files.run(lambda number: progress(pages.consumed, number))
        if main_page:
            self._put_main_page(main_page)
        compared = [compare_pages(self._wiki, pages, summary.stored.deleted), files.compare()]
        compared += people.compared(self._wiki, self._accounts) if people is not None else []
        return FolderMove(pages, summary, report, only_new[-1].unchanged, compared)

    def _put_main_page(self, name: str) -> None:
        """Put the imported text above the wiki's own first text."""
        page = self._wiki.page(name)
        found = self._wiki.store.run(lambda c: _newest_imported(c, page_key(name)))
        if page is None or found is None or page.signed != _OF_THE_WIKI:
            return
        body = found.body
        if page.body == body:
            return
        try:
            note = _w("the main page of the import")
            self._wiki.save(
                name, body, author=page.author, note=note, base=page.number, signed=_OF_THE_WIKI, markup=MARKDOWN,
                autolink=False,
            )  # fmt: skip
        except Conflict:
            return  # somebody has just written it


def root_is_free(wiki: Wiki, name: str) -> bool:
    """Return whether the root page may become the main page of a folder.  Raises StoreUnavailable."""
    page = wiki.page(name)
    if page is None or page.signed == _OF_THE_WIKI:
        return True
    found = wiki.store.run(lambda c: _newest_imported(c, page_key(name)))
    return found is not None and found.markup == MARKDOWN


class _OnlyNew:
    """A ``importer.PartSource``: pages without a history whose text is here already have no revisions."""

    def __init__(self, wiki: Wiki, pages: PageSource) -> None:
        self.pages = pages
        self.counts = pages.counts
        self.unchanged = 0
        self._wiki = wiki

    @property
    def consumed(self) -> int:
        return self.pages.consumed

    def __iter__(self) -> Iterator[PagePart]:
        for part in self.pages:
            if part.revisions and not self.pages.is_timed(part.name) and self._is_there(part):
                self.unchanged += 1
                yield replace(part, revisions=())
            else:
                yield part

    def _is_there(self, part: PagePart) -> bool:
        key, origin = page_key(part.name), part.revisions[-1].origin
        found = self._wiki.store.run(lambda c: _newest_imported(c, key))
        return found is not None and origin is not None and found.origin.sha1 == origin.sha1


# --- what imports have brought --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Imported:
    origin: Origin
    author: str
    note: str
    markup: str
    body: str
    original: str  # the text before its links were changed

    def record(self, name: str, time_ms: int) -> bytes:
        return record_digest(name, time_ms, self.author, self.note, self.original)


def _imported(connection: Connection, key: bytes, newest_first: int | None = None) -> Iterator[_Imported]:
    """Yield the imported revisions of a page, the newest first."""
    row = connection.table(schema.PAGES).row(key, columns=[schema.VERSIONCOUNT])
    newest = head_of(row)
    if not newest.number:
        return
    further = (schema.ORIGIN, schema.SOURCE)
    for _, cells in history.chain(
        connection, key, newest, newest.number, bodies=True, expected=newest_first or 500, further=further
    ):
        origin = Origin.parse(cells.get(schema.ORIGIN))
        if origin is not None:
            body = text_in(cells, schema.REVISION_BODY)
            original = text_in(cells, schema.SOURCE) if schema.SOURCE in cells else body
            author, note = text_in(cells, schema.REVISION_AUTHOR), text_in(cells, schema.REVISION_NOTE)
            yield _Imported(origin, author, note, markup_of(cells), body, original)


def _newest_imported(connection: Connection, key: bytes) -> _Imported | None:
    return next(_imported(connection, key, newest_first=2), None)


def compare_pages(wiki: Wiki, pages: PageSource, deleted: Collection[str]) -> Compared:
    """Compare the revisions of the source with those that imports have brought.  O(both sides).

    A revision counts with its page's name, its author, note and text, and in a history with its time.  Earlier texts of
    a file without a history, which came with earlier imports, are left out.
    """
    compared = Compared("revisions")
    for name, revisions in pages.histories():
        there: list[tuple[tuple[int, str], bytes]] = []
        is_timed = pages.is_timed(name)
        for one in revisions:
            original = one.body if one.source is None else one.source
            digest = sha1(original.encode(errors="replace"), usedforsecurity=False).hexdigest()
            time_ms = one.time_ms if is_timed else 0
            there.append(((time_ms, digest), record_digest(name, time_ms, one.author, one.note, original)))
        if name in deleted:
            compared.leave_out(len(there))
            continue
        wanted = {key for key, _ in there}
        stored = wiki.store.run(partial(_records, name=name, wanted=wanted, is_timed=is_timed))
        compared.add(name, [record for _, record in there], [stored[key] for key, _ in there if key in stored])
    return compared


def _records(
    connection: Connection, name: str, wanted: Collection[tuple[int, str]], *, is_timed: bool
) -> dict[tuple[int, str], bytes]:
    """Return the records of stored revisions by time and digest."""
    found: dict[tuple[int, str], bytes] = {}
    for one in _imported(connection, page_key(name)):
        key = (one.origin.time_ms if is_timed else 0, one.origin.sha1)
        if key in wanted and key not in found:
            found[key] = one.record(name, key[0])
    return found
