"""Deleted pages of records into a wiki: they are deleted there, too, at their time, by the same user, with the reason.

    1. revisions are staged under a history of their own, which follows from the page and its deletion
    2. the row of ``deleted`` is put: text, rights, hidden revisions, time, author and reason in one step
    3. files, then comments, to that row

There is nothing to be seen before step 2, and nothing but a deleted page after it.  Each step finds what it did before,
so an import that was killed is continued by calling it again.  A page that is among the deleted ones here, by name and
time, is left alone, and so is one that was brought back here: it is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from typing import Final

from wikka_port import schema
from wikka_port.accounts.rows import Cells
from wikka_port.exchange.comment_import import CommentImport, CommentReport
from wikka_port.exchange.file_import import FileImport, FileReport
from wikka_port.exchange.record_parts import imported
from wikka_port.exchange.records import ExportError, PageRecord, RecordedPage, RevisionRecord
from wikka_port.files.committing import Place
from wikka_port.files.stored_files import StoredFiles
from wikka_port.limits import MERGED_CHARS, MERGED_ROWS
from wikka_port.moving.journal import DELETED, GONE_BY, GONE_REASON, GONE_TIME, deleted_row, deleted_rows_at
from wikka_port.moving.mover import Mover
from wikka_port.names import page_key
from wikka_port.next_revision import PageTooBig, draft_after
from wikka_port.page_rows import RevisionDraft, is_there, number_in, page_cells
from wikka_port.pages import Wiki, clock_ms
from wikka_port.rights.rules import Privilege
from wikka_port.schema import Head
from wikka_port.wikkawiki.rights_move import token_of

_ID_CHARS: Final = 16  # as of a move


@dataclass(slots=True)
class DeletedReport:
    stored: int = 0  # pages
    already: int = 0
    restored: set[str] = field(default_factory=set)  # by ``PageRecord.identity``
    refused: list[str] = field(default_factory=list)  # lines for a person

    def count(self, *, stored: int = 0, already: int = 0) -> None:
        self.stored += stored
        self.already += already


class DeletedImport:
    """Brings in one deleted page after another.  Raises StoreUnavailable and ExportError."""

    def __init__(self, wiki: Wiki, files: FileReport, comments: CommentReport) -> None:
        """Take the reports to which files and comments of these pages are added."""
        self.report = DeletedReport()
        self._wiki = wiki
        self._files = files
        self._comments = comments

    def bring_in(self, page: RecordedPage) -> None:
        record = page.record
        row = next((key for key, _ in deleted_rows_at(self._wiki.rows, record.name, record.deleted_ms, _HEAD)), None)
        if row is None:
            row = self._store(page)
        else:
            self.report.count(already=1)
        if row is not None:
            rows = _DeletedRow(self._wiki.mover, record.name, row)
            config, made = self._wiki.files.config, self._wiki.make_pictures_of
            files = StoredFiles(self._wiki.rows, rows, config, clock_ms, on_committed=made)
            FileImport(files, self._files).bring_in(page)
            CommentImport(self._wiki.comments.of_deleted(rows), self._comments).bring_in(page)

    def _store(self, page: RecordedPage) -> bytes | None:
        """Run steps 1 and 2; return the row, or None if the page is not taken."""
        record, found = page.record, page.revisions()
        first = next(found, None)
        if first is None:
            raise ExportError(f"{record.name}, which was deleted, has no revision")
        if self._is_restored(record, first):
            self.report.restored.add(record.identity)
            return None
        made = sha256(f"{record.identity}\0{record.deleted_by}".encode("utf-8", "replace")).hexdigest()[:_ID_CHARS]
        row = deleted_row(record.name, record.deleted_ms, made.encode())
        try:
            cells, hidden = self._staged(record, chain((first,), found), made.encode())
        except PageTooBig as big:
            self.report.refused.append(f"{record.name}: {big}")
            return None
        at_ms = max(clock_ms(), record.deleted_ms, number_in(cells, schema.TIME) + 1)
        gone = {GONE_BY: record.deleted_by, GONE_REASON: record.reason, GONE_TIME: str(record.deleted_ms)}
        cells |= {column: value.encode("utf-8", "replace") for column, value in gone.items()}
        cells |= self._rights_of(record) | {schema.STAMP: b"%d" % at_ms}
        if hidden:
            cells[schema.HIDDEN] = b",".join(b"%d" % number for number in hidden)
        self._wiki.rows.put(DELETED, row, cells, timestamp=at_ms)
        self.report.count(stored=1)
        return row

    def _is_restored(self, record: PageRecord, first: RevisionRecord) -> bool:
        """Return whether the page of that name came back from its deletion, and has the same first revision."""
        live = self._wiki.mover.page_row(record.name)
        is_same = is_there(live) and number_in(live, schema.CREATED) == first.time_ms
        return is_same and number_in(live, schema.STAMP) > record.deleted_ms

    def _rights_of(self, record: PageRecord) -> dict[bytes, bytes]:
        lists = {Privilege(one): text for one, text in record.lists.items()}
        if not lists:
            return {}
        self._wiki.rights.announce_lists(token_of("", {}))
        return self._wiki.rights.imported_cells(record.owner, lists, token_of(record.owner, lists))

    def _staged(
        self, record: PageRecord, revisions: Iterator[RevisionRecord], made: bytes
    ) -> tuple[dict[bytes, bytes], list[int]]:
        """Stage all revisions; return the cells that the newest one gives a page, and the numbers of hidden ones."""
        history, hidden = schema.new_history(page_key(record.name), made), list[int]()
        cells: dict[bytes, bytes] = {}
        waiting: list[RevisionDraft] = []
        for number, one in enumerate(revisions, 1):
            draft = _draft(record, one, cells, Head(number, b"", history))
            cells = {**page_cells(draft), schema.VERSIONCOUNT: draft.head.pack()}
            waiting.append(draft)
            if one.hidden:
                hidden.append(number)
            if len(waiting) >= MERGED_ROWS or sum(len(each.body) for each in waiting) >= MERGED_CHARS:
                self._wiki.stage(waiting)
                waiting = []
        self._wiki.stage(waiting)
        return cells, hidden


_HEAD: Final = (schema.VERSIONCOUNT,)


class _DeletedRow:
    """The row of one deleted page, as files and comments need it (``files.committing.PageRows``)."""

    def __init__(self, mover: Mover, name: str, row: bytes) -> None:
        self._mover = mover
        self._name = name
        self._row = row

    def page_row(self, name: str) -> Cells:
        return self._mover.free(self.place_of(name)) if name == self._name else {}

    def place_of(self, _name: str) -> Place:
        return DELETED, self._row

    def renamed_to(self, _move_id: bytes) -> str:
        return ""


def _draft(record: PageRecord, one: RevisionRecord, before: Cells, begin: Head) -> RevisionDraft:
    """Make the draft of a revision after the page's cells ``before``.  Raises PageTooBig."""
    revision = imported(one, record.owner)
    return draft_after(
        before,
        name=record.name,
        body=one.body,
        author=one.author,
        note=one.note,
        time_ms=one.time_ms,
        autolink=one.autolink,
        attribution=one.attribution,
        owner=record.owner,
        signed=one.signed,
        language=one.language,
        markup=one.markup,
        minor=one.minor,
        source=one.source,
        origin=revision.origin.pack() if revision.origin is not None else b"",
        begin=begin,
    )
