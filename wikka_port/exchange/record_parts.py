"""Records of pages as the parts that ``importer.Importer`` stores, in constant memory.

A page's revisions become parts in the order of time, first the visible ones and then the hidden ones.  So a page never
shows a hidden revision as its newest: the hidden ones are inserted by a merge, which hides them in the step that
commits (``history_merge``).  Hidden revisions of more than HIDDEN_RUN_CHARS wait in a temporary file.  Deleted pages
have no parts (``deleted_import``).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator

from wikka_port.confusable_names import find_confusable
from wikka_port.exchange.json_lines import line_of, record_fields
from wikka_port.exchange.records import PageRecord, ReadSource, RecordedPage, RevisionRecord, living_pages
from wikka_port.import_pages import PART_CHARS, PART_REVISIONS, Counts
from wikka_port.import_plan import ImportedRevision, KeptFields, Origin, PagePart
from wikka_port.limits import HIDDEN_RUN_CHARS


class RecordParts:
    """An ``importer.PartSource``.  ``counts`` grows while it is iterated over."""

    def __init__(self, source: ReadSource, skip_pages: int = 0) -> None:
        self.counts = Counts()
        self._source = source
        self._skip = skip_pages

    @property
    def consumed(self) -> int:
        return self._source.consumed

    def __iter__(self) -> Iterator[PagePart]:
        for ordinal, page in enumerate(living_pages(self._source)):
            if ordinal < self._skip:
                continue
            self.counts.count(pages=1)
            like = find_confusable(page.record.name)
            if like is not None:
                self.counts.confusable_names.append(f"{page.record.name!a}: {like}")
            yield from self._parts_of(ordinal, page)

    def _parts_of(self, ordinal: int, page: RecordedPage) -> Iterator[PagePart]:
        part = _OpenPart(page.record, ordinal)
        with tempfile.SpooledTemporaryFile(max_size=HIDDEN_RUN_CHARS) as hidden:
            for one in page.revisions():
                self.counts.count(revisions=1)
                if one.hidden:
                    hidden.write(line_of("revision", record_fields(one)))
                    continue
                if part.is_full:
                    yield part.take_revisions(is_last=False)
                part.add(one)
            yield part.take_revisions(is_last=hidden.tell() == 0)
            if hidden.tell() == 0:
                return
            hidden.seek(0)
            for line in hidden:
                values = json.loads(line)
                values.pop("kind")
                if part.is_full:
                    yield part.take_revisions(is_last=False)
                part.add(RevisionRecord(**values))
            yield part.take_revisions(is_last=True)


class _OpenPart:
    """The revisions of a page that are in no yielded part yet."""

    def __init__(self, page: PageRecord, ordinal: int) -> None:
        self._page = page
        self._ordinal = ordinal
        self._first = 1
        self._chars = 0
        self._revisions: list[ImportedRevision] = []

    @property
    def is_full(self) -> bool:
        return len(self._revisions) >= PART_REVISIONS or self._chars >= PART_CHARS

    def add(self, one: RevisionRecord) -> None:
        self._revisions.append(imported(one, self._page.owner))
        self._chars += len(one.body) + len(one.source or "")

    def take_revisions(self, *, is_last: bool) -> PagePart:
        taken = tuple(self._revisions)
        part = PagePart(self._page.name, self._ordinal, self._first, taken, "", is_last, autolink=True)
        self._first += len(taken)
        self._revisions, self._chars = [], 0
        return part


def imported(one: RevisionRecord, owner: str) -> ImportedRevision:
    return ImportedRevision(
        time_ms=one.time_ms,
        author=one.author,
        note=one.note,
        body=one.body,
        links=0,
        is_redirect=False,
        minor=one.minor,
        source=one.source,
        attribution=one.attribution,
        owner=owner,
        signed=one.signed,
        markup=one.markup,
        kept=KeptFields(one.language, one.autolink, one.hidden),
        origin=Origin.parse(one.origin.encode()),
    )
