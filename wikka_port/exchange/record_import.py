"""Records into a wiki, and the comparison of both sides: the way back of every form.

    1. the site's lists, where this wiki has none for the same prefix; where it has others, a page that the source's
       close gets these as its own (``ClosedSource``)
    2. rights of pages, before their revisions, unless somebody changed them here
    3. revisions, through ``importer``: what is here is left alone, and what was written here stays
    4. rights of pages that everybody may read from now on, and of those that had none of their own
    5. files with their versions, then comments; and deleted pages, whole (``deleted_import``)
    6. comparison, which hides revisions that are hidden in the source and were visible here

Each step leaves alone what it did before, so an import that was killed is continued by calling it again.  A source
without rights (what one visitor may read) changes none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from wikka_port.exchange.comment_import import CommentImport, CommentReport
from wikka_port.exchange.deleted_import import DeletedImport, DeletedReport
from wikka_port.exchange.file_import import FileImport, FileReport
from wikka_port.exchange.page_source import StorePage, StorePages
from wikka_port.exchange.record_parts import RecordParts
from wikka_port.exchange.records import (
    KINDS,
    CommentRecord,
    Digests,
    ExportError,
    FileRecord,
    PageRecord,
    ReadSource,
    RecordedFile,
    RecordedPage,
    RevisionRecord,
    SiteRecord,
    comment_digest,
    deletion_digest,
    file_digest,
    living_pages,
    revision_digest,
)
from wikka_port.importer import Importer, ImportSummary
from wikka_port.limits import NAMED_MISMATCHES
from wikka_port.moving.refusals import BadRevision
from wikka_port.pages import Wiki
from wikka_port.rights.acl import BadList
from wikka_port.rights.rules import NO_RULES, Privilege, Rules, closed_lists
from wikka_port.rights.stored import RightsChanged
from wikka_port.wikkawiki.rights_move import Lists, RightsMove, RightsReport

_SPREAD_S: Final = 1.0  # until every process knows the new rights (``rights.stored``)


@dataclass(slots=True)
class Comparison:
    """Both sides after an import; records that were written here are in neither."""

    source: Digests = field(default_factory=Digests)
    store: Digests = field(default_factory=Digests)
    differing: int = 0  # records
    named: list[str] = field(default_factory=list)  # the first of them
    left_out: list[str] = field(default_factory=list)  # pages that were deleted here

    def differs(self, line: str) -> None:
        self.differing += 1
        if len(self.named) < NAMED_MISMATCHES:
            self.named.append(line)

    def leaves_out(self, names: list[str]) -> None:
        self.left_out += names

    @property
    def is_equal(self) -> bool:
        return not self.differing and all(self.source.digest(one) == self.store.digest(one) for one in KINDS)


@dataclass(frozen=True, slots=True)
class RecordsImported:
    """The outcome; each entry of a list is a line for a person."""

    summary: ImportSummary
    rights: RightsReport
    site: list[str]
    files: FileReport
    comments: CommentReport
    deleted: DeletedReport
    compared: Comparison


class RecordImport:
    """Brings one source into one wiki."""

    def __init__(self, wiki: Wiki, source: ReadSource, pause: Callable[[float], None] = time.sleep) -> None:
        self._wiki = wiki
        self._source = source
        self._pause = pause

    def run(self, *, origin: str, restart: bool, progress: Callable[[int, int], None]) -> RecordsImported:
        """Import everything.  Raises ExportError (the import may be continued) and StoreUnavailable."""
        known = self._wiki.rights.present_rules().cells
        site = self._move_site()
        has_rights = site is not None
        self._source = self._closed(self._source)
        report = RightsReport()
        move = RightsMove(self._wiki.rights, report)
        if has_rights:
            move.prepare(self._rights())
            if report.added or report.written or self._wiki.rights.present_rules().cells != known:
                self._pause(_SPREAD_S)
        importer = Importer.from_parts(
            self._wiki,
            lambda done: RecordParts(self._source, done),
            origin=origin,
            restart=restart,
            progress=progress,
        )
        summary = importer.run()
        if has_rights:
            move.finish(self._rights())
        files, comments = FileImport(self._wiki.files), CommentImport(self._wiki.comments)
        deleted = DeletedImport(self._wiki, files.report, comments.report)
        for page in self._source.pages():
            if page.record.is_deleted:
                deleted.bring_in(page)
            elif page.record.name not in summary.stored.deleted:
                files.bring_in(page)
                comments.bring_in(page)
        changed_here = {line.rpartition(":")[0] for line in report.changed}
        left_out = summary.stored.deleted | deleted.report.restored
        compared = RecordComparison(self._wiki, left_out, changed_here, has_rights=has_rights)
        reports = (report, site or [], files.report, comments.report, deleted.report)
        return RecordsImported(summary, *reports, compared.compare_pages(self._source))

    def _rights(self) -> Iterator[tuple[str, str, Lists]]:
        for page in living_pages(self._source):
            record = page.record
            yield record.name, record.owner, {Privilege(one): text for one, text in record.lists.items()}

    def _closed(self, source: ReadSource) -> ReadSource:
        """Return the source with the own lists that its pages need here."""
        site, here = source.site(), self._wiki.rights.present_rules()
        theirs = NO_RULES
        for prefix, lists in ({} if site is None else site.lists).items():
            theirs = theirs.with_lists(prefix, {Privilege(one): text for one, text in lists.items()})
        return ClosedSource(source, theirs, here)

    def _move_site(self) -> list[str] | None:
        """Set the lists of prefixes that have none here.  Returns lines for a person, or None without rights.

        Raises ExportError if one cannot be set: pages that it hides would come open.
        """
        site = self._source.site()
        if site is None:
            return None
        said = []
        for prefix, lists in site.lists.items():
            rules = self._wiki.rights.rules()
            there = {str(one): found.text for (one, of), found in rules.lists.items() if of == prefix}
            called = f"names that begin with {prefix!r}" if prefix else "all pages"
            if there == lists:
                continue
            if there:
                said.append(
                    f"the lists for {called} are others here: they stay, and pages that theirs close keep theirs"
                )
                continue
            given = {Privilege(one): text for one, text in lists.items()}
            try:
                self._wiki.rights.change_rules(prefix, given, rules, imported=True)
            except BadList as problem:
                remedy = "Remove lists of prefixes here (“wikka acl”), or add theirs to a shorter one, and import again"
                raise ExportError(
                    f"the lists for {called} cannot be set, so no page is brought in: {problem} {remedy}"
                ) from None
            except RightsChanged:
                raise ExportError("somebody has just changed the lists of this wiki: import again") from None
            said.append(f"the lists for {called} were set")
        return said


class ClosedSource:
    """A source each of whose pages is as closed as its site's lists have it, where this wiki's lists are others."""

    def __init__(self, source: ReadSource, theirs: Rules, receiving: Rules) -> None:
        self._source = source
        self._theirs = theirs
        self._receiving = receiving

    @property
    def consumed(self) -> int:
        return self._source.consumed

    @property
    def remarks(self) -> list[str]:
        return self._source.remarks

    def site(self) -> SiteRecord | None:
        return self._source.site()

    def pages(self) -> Iterator[RecordedPage]:
        for page in self._source.pages():
            own = {Privilege(one): text for one, text in page.record.lists.items()}
            lists = closed_lists(page.record.name, own, self._theirs, self._receiving)
            yield ClosedPage(page, replace(page.record, lists={str(one): text for one, text in lists.items()}))


@dataclass(frozen=True, slots=True)
class ClosedPage:
    """A page of a ClosedSource."""

    page: RecordedPage
    record: PageRecord

    def revisions(self) -> Iterator[RevisionRecord]:
        return self.page.revisions()

    def files(self) -> Iterator[RecordedFile]:
        return self.page.files()

    def comments(self) -> Iterator[CommentRecord]:
        return self.page.comments()


class RecordComparison:
    """Reads both sides again.  O(both sides); revisions come in step by their times."""

    def __init__(self, wiki: Wiki, left_out: set[str], rights_changed: set[str], *, has_rights: bool) -> None:
        """Take the pages that were deleted or brought back here (by ``identity``), and those of changed rights."""
        self.compared = Comparison()
        self._wiki = wiki
        self._store = StorePages(wiki)
        self._left_out = left_out
        self._rights_changed = rights_changed
        self._has_rights = has_rights

    def compare_pages(self, source: ReadSource) -> Comparison:
        for page in source.pages():
            record = page.record
            name = record.name
            there = self._store.deleted_page(record) if record.is_deleted else self._store.page(name)
            if record.identity in self._left_out:
                self.compared.leaves_out([] if record.is_deleted else [name])
            elif there is None:
                self.compared.differs(f"{name}: is not here" + (" as a deleted page" if record.is_deleted else ""))
                self._count_source(page)
            else:
                self._compare_page(page, there)
        return self.compared

    def _count_source(self, page: RecordedPage) -> None:
        self.compared.source.add_page(page.record)
        identity = page.record.identity
        for place, one in enumerate(page.revisions(), 1):
            self.compared.source.add_revision(identity, place, one)
        for file in page.files():
            self.compared.source.add_file(identity, file.record)
        for comment, parent_ms in _with_parents(page.comments()):
            self.compared.source.add_comment(identity, comment, parent_ms)

    def _compare_page(self, page: RecordedPage, there: StorePage) -> None:
        record = page.record
        if record.is_deleted or (self._has_rights and record.name not in self._rights_changed):
            self.compared.source.add_page(record)
            self.compared.store.add_page(there.record)
            if deletion_digest(record) != deletion_digest(there.record):
                what = "its deletion or its rights differ" if record.is_deleted else "its rights differ"
                self.compared.differs(f"{record.name}: {what}")
        self._compare_revisions(page, there)
        here: dict[str, list[FileRecord]] = {}
        for one in there.file_records():
            here.setdefault(one.name, []).append(one)
        for file in page.files():
            self._compare_file(record, file.record, here.get(file.record.name, []))
        self._compare_comments(page, there)

    def _compare_revisions(self, page: RecordedPage, there: StorePage) -> None:
        record, stored = page.record, there.revisions()
        name = record.identity
        present = next(stored, None)
        for place, one in enumerate(page.revisions(), 1):
            self.compared.source.add_revision(name, place, one)
            while present is not None and present.time_ms < one.time_ms:
                present = next(stored, None)
            if present is None or present.time_ms != one.time_ms:
                self.compared.differs(f"{record.name}: the revision {one.number} is not here")
                continue
            if one.hidden and not present.hidden and not record.is_deleted:
                present = self._hidden(name, present)
            self.compared.store.add_revision(name, place, present)
            if revision_digest(name, place, one) != revision_digest(name, place, present):
                self.compared.differs(f"{record.name}: the revision {one.number} differs from {present.number} here")

    def _hidden(self, name: str, present: RevisionRecord) -> RevisionRecord:
        """Hide a revision that was here before it was hidden in the source."""
        try:
            self._wiki.mover.hide(name, present.number, hidden=True)
        except BadRevision:
            return present  # the newest: the comparison names it
        return replace(present, hidden=True)

    def _compare_comments(self, page: RecordedPage, there: StorePage) -> None:
        name = page.record.identity
        here = {one.key: (one, parent_ms) for one, parent_ms in _with_parents(there.comments())}
        for one, parent_ms in _with_parents(page.comments()):
            self.compared.source.add_comment(name, one, parent_ms)
            found = here.get(one.key)
            if found is not None:
                self.compared.store.add_comment(name, *found)
            if found is None or comment_digest(name, *found) != comment_digest(name, one, parent_ms):
                self.compared.differs(f"{page.record.name}: the comment {one.number} differs or is not here")

    def _compare_file(self, of: PageRecord, one: FileRecord, here: list[FileRecord]) -> None:
        page = of.identity
        self.compared.source.add_file(page, one)
        found = next((there for there in here if there.number == one.number), None)
        if found is not None:
            self.compared.store.add_file(page, found)
        if found is None or file_digest(page, found) != file_digest(page, one):
            self.compared.differs(f"{of.name}: the file {one.name}, version {one.number}, differs or is not here")


def _with_parents(comments: Iterator[CommentRecord]) -> Iterator[tuple[CommentRecord, int]]:
    """Yield each comment with the time of the one that it answers, or 0."""
    times: dict[int, int] = {}
    for one in comments:
        times[one.number] = one.time_ms
        yield one, times.get(one.parent, 0)
