"""Records of the pages in a store: one scan of ``pages``, then one of ``deleted``; of each page revisions and files.

A scan takes ROWS_PER_CALL rows of ``pages`` in a call, without their texts.  A page's chain of revisions is read
newest first without texts, to find its rows; then the rows are read in the order of time, EXPORTED_ROWS in a call.
Memory: one call's rows, and the keys of one page's revisions (some 100 bytes each).

A page whose revisions go while they are read (somebody purges it, or an import merges into it) ends the export with
``ExportError``: an export with a hole would look whole.

Without ``may_read`` the records are the operator's: all pages, deleted ones too, with rights and hidden revisions.
With it they are what one visitor may read: no rights but the owner, no hidden revisions, and of the comments those
that every reader of them sees.  An answer to another comment then stands below the next one above that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from wikka_port import history, schema
from wikka_port.comments.comment_rows import COMMENT_FAMILY, VISIBLE, Comment, comments_in
from wikka_port.exchange.records import (
    CommentRecord,
    ExportError,
    FileRecord,
    PageRecord,
    RecordedFile,
    RevisionRecord,
    SiteRecord,
)
from wikka_port.files.committing import chain_of_versions
from wikka_port.files.file_rows import FILE_FAMILY, FileVersion, files_in
from wikka_port.files.refusals import MissingContent
from wikka_port.history import fresh_cells
from wikka_port.limits import EXPORTED_ROWS
from wikka_port.moving.journal import DELETED, GONE_BY, GONE_REASON, GONE_TIME, deleted_rows_at
from wikka_port.names import page_key
from wikka_port.page_rows import (
    Cells,
    autolink_of,
    head_of,
    hidden_in,
    is_stale,
    is_there,
    number_in,
    revision_of,
    text_in,
)
from wikka_port.pages import Wiki, rights_in
from wikka_port.rights.rules import FAMILY, PageRights

MayRead = Callable[[str, PageRights], bool]
_COLUMNS = (b"meta", FAMILY, FILE_FAMILY, COMMENT_FAMILY)
_OF_DELETED = (*_COLUMNS, b"gone")


class StorePages:
    """A ``records.RecordSource`` of all pages of a wiki.  Raises StoreUnavailable and ExportError."""

    def __init__(
        self,
        wiki: Wiki,
        may_read: MayRead | None = None,
        progress: Callable[[int], None] = lambda pages: None,
        may_read_comments: MayRead = lambda page, rights: False,
    ) -> None:
        """Call ``progress`` with the number of pages that were yielded.

        ``may_read_comments`` decides on the comments of a page that ``may_read`` admits.
        """
        self._may_read_comments = may_read_comments
        self.missing: list[str] = []  # files whose content is not in the store
        self._wiki = wiki
        self._may_read = may_read
        self._progress = progress

    def site(self) -> SiteRecord | None:
        if self._may_read is not None:
            return None
        found: dict[str, dict[str, str]] = {}
        for (privilege, prefix), access in self._wiki.rights.rules().lists.items():
            found.setdefault(prefix, {})[str(privilege)] = access.text
        return SiteRecord(found)

    def pages(self) -> Iterator[StorePage]:
        self._wiki.mover.finish_all()
        found = self._wiki.rows.scan(schema.PAGES, columns=_COLUMNS)
        number = 0
        for key, row in found:
            page = self._page(key, row)
            if page is not None:
                yield page
                number += 1
                self._progress(number)
        for page in self._deleted_pages() if self._may_read is None else ():
            yield page
            number += 1
            self._progress(number)

    def deleted_count(self) -> int:
        """Return the number of deleted pages.  O(them)."""
        return sum(1 for _ in self._deleted_rows((schema.VERSIONCOUNT,)))

    def _deleted_pages(self) -> Iterator[StorePage]:
        for key, row in self._deleted_rows(_OF_DELETED):
            yield StorePage(self._wiki, key, row, self.missing, is_whole=True)

    def _deleted_rows(self, columns: tuple[bytes, ...]) -> Iterator[tuple[bytes, Cells]]:
        if self._wiki.store.run(lambda c: DELETED in c.tables()):  # not in an older folder before it is prepared
            yield from ((key, row) for key, row in self._wiki.rows.scan(DELETED, columns=columns) if is_there(row))

    def deleted_page(self, record: PageRecord) -> StorePage | None:
        """Return the deleted page of the record's name and time, or None."""
        for key, row in deleted_rows_at(self._wiki.rows, record.name, record.deleted_ms, _OF_DELETED):
            return StorePage(self._wiki, key, row, self.missing, is_whole=True)
        return None

    def page(self, name: str) -> StorePage | None:
        """Return one page, or None if there is none, or none that may be read."""
        key = page_key(name)
        return self._page(key, self._wiki.rows.row(schema.PAGES, key, _COLUMNS))

    def _page(self, key: bytes, row: Cells) -> StorePage | None:
        if len(key) != schema.KEY_BYTES or not is_there(row):
            return None  # a row of the whole site, or a page that has ended
        if is_stale(row):
            stale = row
            row = self._wiki.store.run(lambda c: fresh_cells(c, key, stale))
        rights = rights_in(row)
        name = text_in(row, schema.NAME)
        if self._may_read is None:
            return StorePage(self._wiki, key, row, self.missing, is_whole=True)
        if not self._may_read(name, rights):
            return None
        has_comments = self._may_read_comments(name, rights)
        return StorePage(self._wiki, key, row, self.missing, is_whole=False, has_comments=has_comments)


class StorePage:
    """A ``records.RecordedPage``."""

    def __init__(
        self, wiki: Wiki, key: bytes, row: Cells, missing: list[str], *, is_whole: bool, has_comments: bool = True
    ) -> None:
        """Take ``is_whole``: with rights, hidden revisions and comments that readers do not see."""
        rights = rights_in(row)
        lists = {str(one): text for one, text in rights.lists.items()} if is_whole else {}
        gone = (number_in(row, GONE_TIME), text_in(row, GONE_BY), text_in(row, GONE_REASON))
        self.record = PageRecord(text_in(row, schema.NAME), rights.owner, lists, *gone)
        self._wiki = wiki
        self._key = key
        self._row = row
        self._missing = missing
        self._is_whole = is_whole
        self._has_comments = has_comments

    def revisions(self) -> Iterator[RevisionRecord]:
        hidden = hidden_in(self._row)
        heads = self._heads()
        if not self._is_whole:
            heads = [head for head in heads if head.number not in hidden]
        left = iter(heads)
        while step := list(islice(left, EXPORTED_ROWS)):
            keys = [schema.revision_row(self._key, head) for head in step]
            found = self._wiki.rows.rows(schema.REVISIONS, keys)
            for head, key in zip(step, keys, strict=True):
                cells = found.get(key)
                if cells is None:
                    raise ExportError(f"{self.record.name} was changed while it was read: export again")
                yield self._revision(head, cells, head.number in hidden)

    def _heads(self) -> list[schema.Head]:
        newest = head_of(self._row)
        key = self._key
        found = self._wiki.store.run(
            lambda c: [head for head, _ in history.chain(c, key, newest, newest.number, bodies=False)]
        )
        return found[::-1]

    def _revision(self, head: schema.Head, cells: Cells, is_hidden: bool) -> RevisionRecord:
        one = revision_of(head, cells)
        source = cells.get(schema.SOURCE)
        return RevisionRecord(
            number=one.number,
            time_ms=one.time_ms,
            author=one.author,
            body=one.body or "",
            note=one.note,
            signed=one.signed,
            minor=one.minor,
            markup=one.markup,
            language=one.language,
            autolink=autolink_of(cells),
            attribution=text_in(cells, schema.ATTRIBUTION),
            was=one.name if one.name != self.record.name else "",
            source=None if source is None else source.decode(errors="replace"),
            origin=text_in(cells, schema.ORIGIN),
            hidden=is_hidden,
        )

    def files(self) -> Iterator[RecordedFile]:
        seen: set[str] = set()
        for version in self._versions():
            content = None
            if version.sha256 and version.sha256 not in seen:
                seen.add(version.sha256)
                content = self._content(version)
            yield RecordedFile(file_record(version), content)

    def file_records(self) -> Iterator[FileRecord]:
        """Yield the records of ``files``; no content is read."""
        return map(file_record, self._versions())

    def comments(self) -> Iterator[CommentRecord]:
        head = comments_in(self._row)
        if self._has_comments and head.number:
            every = map(comment_record, self._wiki.comments.every(self._history, head))
            yield from every if self._is_whole else visible_comments(every)

    @property
    def _history(self) -> bytes:
        return head_of(self._row).place(self._key)

    def _versions(self) -> Iterator[FileVersion]:
        """Yield the versions of all files, of each the oldest first."""
        for name, current in sorted(files_in(self._row).items()):
            found = list(chain_of_versions(self._wiki.rows, self._history, name, current.token))[::-1]
            if not found or found[0].previous:
                raise ExportError(f"{self.record.name} was changed while it was read: export again")
            yield from found

    def _content(self, version: FileVersion) -> Iterator[bytes] | None:
        try:
            if self._wiki.files.contents.has_chunks(version.sha256, version.size_bytes):
                return self._wiki.files.content(version)
        except MissingContent:
            pass  # as a content of which a later chunk is lost: the export has the version without it
        self._missing.append(f"{self.record.name}: {version.name}")
        return None


def file_record(version: FileVersion) -> FileRecord:
    return FileRecord(
        name=version.name,
        number=version.number,
        time_ms=version.time_ms,
        author=version.author,
        signed=version.signed,
        note=version.note,
        alt=version.alt,
        media_type=version.media_type,
        size_bytes=version.size_bytes,
        sha256=version.sha256,
        metadata=version.metadata,
    )


def visible_comments(every: Iterable[CommentRecord]) -> Iterator[CommentRecord]:
    """Yield the comments that all readers see; an answer to another one stands below the next shown one above it."""
    shown: dict[int, int] = {}  # for each comment the one below which its answers stand; 0: none
    for one in every:
        above = shown.get(one.parent, 0)
        is_visible = one.state == VISIBLE
        shown[one.number] = one.number if is_visible else above
        if is_visible:
            yield replace(one, parent=above, removed_by="")


def comment_record(one: Comment) -> CommentRecord:
    """Return the record of a comment, without the browser that sent it."""
    return CommentRecord(
        number=one.number,
        time_ms=one.time_ms,
        author=one.author,
        text=one.text,
        signed=one.signed,
        markup=one.markup,
        parent=one.parent,
        state=one.state,
        edited_ms=one.edited_ms,
        removed_by=one.removed_by,
        origin=one.origin,
    )
