"""A MediaWiki dump as parts of pages in our markup, in constant memory.

A part has the revisions of one page, or as many of them as ``PART_REVISIONS`` and ``PART_CHARS`` allow.  The
revisions of a page may have any order in the dump; they are sorted by time before the page's first part is yielded
(``revision_spool``).  A page of more than SPOOLED_CHARS is yielded in several runs, each sorted; the store then merges
the runs.
The reader counts the converted pages and those that could not be converted, and compares sizes and checksums.

Knows nothing of the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha1
from typing import Final

from wikka_port.confusable_names import find_confusable
from wikka_port.dump import WIKITEXT, DumpReader, DumpSite, PageEnd, PageStart, Revision
from wikka_port.dump_templates import Templates
from wikka_port.import_plan import (
    ImportedRevision,
    Origin,
    PagePart,
    attribution,
    known_licence,
)
from wikka_port.limits import NAMED_MISMATCHES, SPOOLED_CHARS, SPOOLED_REVISIONS
from wikka_port.markup.bounds import over_bounds
from wikka_port.markup.mediawiki import Converted, Dialect, convert, convert_source
from wikka_port.markup.mediawiki_expansion import TEMPLATE
from wikka_port.markup.mediawiki_includes import include_call, template_page
from wikka_port.markup.mediawiki_titles import CATEGORY, files_address, main_page_title
from wikka_port.names import InvalidName, normalise
from wikka_port.next_revision import BODY_BYTES_MAX
from wikka_port.page_languages import known
from wikka_port.revision_spool import RevisionSpool

PART_REVISIONS: Final = 64
PART_CHARS: Final = 4_000_000
_MEMBERS: Final = "{{category}}"
_SHA1_DIGITS: Final = 31  # in base 36


@dataclass(slots=True)
class Counts:
    """The result of reading and converting; owned by the reading thread."""

    pages: int = 0
    revisions: int = 0
    redirects: int = 0
    links: int = 0
    passed_over: int = 0  # pages of other namespaces
    refused: list[str] = field(default_factory=list)  # titles that are no valid page names
    cut: list[str] = field(default_factory=list)  # pages over a bound; they are stored whole
    confusable_names: list[str] = field(default_factory=list)  # names refused for new pages; an import keeps them
    mismatches: int = 0  # texts whose size or checksum is not what the dump says
    mismatched: list[str] = field(default_factory=list)  # the first of them, by name
    converted: Counter[str] = field(default_factory=Counter)
    unconverted: Counter[str] = field(default_factory=Counter)
    main_page: str = ""  # title of the main page, as a dump gives it

    def note_main_page(self, title: str) -> None:
        self.main_page = title

    def count(self, *, pages: int = 0, revisions: int = 0) -> None:
        self.pages += pages
        self.revisions += revisions


class PartReader:
    """Iterates over the parts; ``counts`` grows meanwhile."""

    def __init__(
        self,
        reader: DumpReader,
        *,
        namespaces: Collection[str] = (),
        limit: int | None = None,
        licence: str | None = None,
        pictures: str = "",
        templates: Templates | None = None,
        includes: bool = False,
    ) -> None:
        """Take pictures from the folder at the address ``pictures``; with "" they become links to the dump's site.

        Without ``templates``, those of the dump are collected as they come.  With ``includes`` pages of templates have
        the wiki's own form if they are simple, and calls of them may be includes; not if their namespace is not wanted.
        """
        self._includes = includes
        self._templates = templates or Templates(includes=includes)
        self._collects = templates is None
        self.counts = Counts()
        self._reader = reader
        self._wanted = frozenset(namespaces)
        self._limit = limit
        self._licence = licence
        self._pictures = pictures
        self._site = DumpSite("", "", "", True, {})
        self._dialect = self._expanding = Dialect.of({})

    @property
    def consumed(self) -> int:
        """The bytes of the dump's file that were read."""
        return self._reader.bytes_consumed

    def __iter__(self) -> Iterator[PagePart]:
        with RevisionSpool(PART_REVISIONS, PART_CHARS) as spool:
            yield from self._parts(spool)

    def _parts(self, spool: RevisionSpool) -> Iterator[PagePart]:
        open_page: _OpenPage | None = None
        for event in self._reader:
            if isinstance(event, DumpSite):
                self._site = event
                self._expanding = self._dialect_of(event)
                self._dialect = self._including(self._expanding)
                self.counts.note_main_page(self._dialect.title(main_page_title(event.base)))
            elif isinstance(event, PageStart):
                if self._collects:
                    self._templates.begin(event)
                if self._limit is not None and self.counts.pages >= self._limit:
                    return
                open_page = self._begin(event)
            elif open_page is None:
                continue
            elif isinstance(event, Revision):
                if spool.chars >= SPOOLED_CHARS or len(spool) >= SPOOLED_REVISIONS:
                    yield from self._run(open_page, spool)
                    yield open_page.take(is_last=False)
                spool.add(event)
                self._templates.read(event)
            elif isinstance(event, PageEnd):
                yield from self._run(open_page, spool)
                yield self._end(open_page)
                self._templates.end(self._dialect)
                open_page = None

    def _run(self, page: _OpenPage, spool: RevisionSpool) -> Iterator[PagePart]:
        """Yield the parts of the revisions in ``spool``, except the last part, which stays open in ``page``."""
        for revision in spool.in_order():
            if page.is_full:
                yield page.take(is_last=False)
            page.add(self._converted(page, revision))

    def _dialect_of(self, site: DumpSite) -> Dialect:
        there = files_address(site.base)
        return Dialect.of(
            site.namespaces,
            capitalised=site.capitalised,
            pictures=self._pictures.rstrip("/") + "/" if self._pictures else there,
            shows_pictures=bool(self._pictures),
            base=site.base,
            aliases=site.aliases,
            cases=site.cases,
            templates=self._templates.bodies,
            site=site.name,
            language=site.language,
            exists=self._templates.titles.has,
        )

    def _including(self, dialect: Dialect) -> Dialect:
        """Return the dialect with includes, if the pages of templates come along."""
        if not self._includes or not self._is_wanted(TEMPLATE):
            self._includes = False
            return dialect
        return replace(dialect, include_call=partial(include_call, self._templates.own, dialect))

    def _is_wanted(self, namespace: int) -> bool:
        return not self._wanted or bool(self._wanted & {str(namespace), self._namespace_name(namespace)})

    def _begin(self, page: PageStart) -> _OpenPage | None:
        if not self._is_wanted(page.namespace):
            self.counts.passed_over += 1
            return None
        try:
            name = normalise(page.title)
        except InvalidName as invalid:
            self.counts.refused.append(f"{page.title}: {invalid}")
            return None
        self.counts.pages += 1
        like = find_confusable(name)
        if like is not None:
            self.counts.confusable_names.append(f"{name!a}: {like}")
        return _OpenPage(name, page, self._site, self._licence)

    def _namespace_name(self, number: int) -> str:
        return next((name for name, n in self._site.namespaces.items() if n == number), "")

    def _converted(self, page: _OpenPage, revision: Revision) -> ImportedRevision:
        counts = self.counts
        counts.revisions += 1
        text = revision.text
        if text is None:
            counts.unconverted["text hidden by the site"] += 1
            text = ""
        data = text.encode(errors="replace")
        digest = sha1(data, usedforsecurity=False).hexdigest()
        if revision.text is not None:
            self._compare(page, revision, len(data), digest)
        if revision.slots:
            counts.unconverted["text of a further slot"] += revision.slots
        if revision.model == WIKITEXT:
            result = self._of_wikitext(page.start, text, max(revision.timestamp_ms, 1))
            if len(result.text) > BODY_BYTES_MAX // 4 and len(result.text.encode()) > BODY_BYTES_MAX:
                counts.unconverted["text that grows over the bound: shown as its source"] += 1
                result = convert_source(text, model=revision.model)
        else:
            result = convert_source(text, model=revision.model)
        is_category = page.start.namespace == CATEGORY and result.redirect is None
        body = f"{result.text}\n\n{_MEMBERS}".lstrip("\n") if is_category else result.text
        counts.converted.update(result.converted)
        counts.unconverted.update(result.unconverted)
        time_ms = max(revision.timestamp_ms, 1)
        return ImportedRevision(
            time_ms=time_ms,
            author=revision.contributor or "(hidden)",
            note=revision.comment,
            body=body,
            links=len({*result.links, *result.categories}),
            is_redirect=result.redirect is not None,
            minor=revision.minor,
            source=text,
            attribution=page.attribution(time_ms),
            origin=Origin(time_ms, revision.revision_id or 0, digest),
        )

    def _of_wikitext(self, page: PageStart, text: str, time_ms: int) -> Converted:
        if self._includes and page.namespace == TEMPLATE and not page.redirect_target:
            own = template_page(text, self._expanding, page.title)
            if own is not None:
                return own
        return convert(
            text, namespaces=self._dialect, title=page.title, redirect_hint=page.redirect_target, time_ms=time_ms
        )

    def _compare(self, page: _OpenPage, revision: Revision, size: int, digest: str) -> None:
        """Compare a text's size and checksum with the dump's, and count a mismatch.  The text is imported anyway."""
        said = []
        if revision.size_bytes is not None and revision.size_bytes != size:
            said.append(f"{size:,} bytes instead of {revision.size_bytes:,}")
        if revision.sha1 is not None and _from_base_36(revision.sha1) != int(digest, 16):
            said.append("another SHA-1 than the dump says")
        if said:
            self.counts.mismatches += 1
            if len(self.counts.mismatched) < NAMED_MISMATCHES:
                at = f"{datetime.fromtimestamp(revision.timestamp_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
                which = f"revision {revision.revision_id}" if revision.revision_id is not None else "the revision"
                self.counts.mismatched.append(f"{page.start.title}: {which} of {at} has {' and '.join(said)}")

    def _end(self, page: _OpenPage) -> PagePart:
        part = page.take(is_last=True)
        if part.revisions:
            over = over_bounds(part.revisions[-1].body, autolink=False)
            if over is not None:
                self.counts.cut.append(f"{part.name}: {over}")
            self.counts.links += part.revisions[-1].links
            self.counts.redirects += part.revisions[-1].is_redirect
        return part


def _from_base_36(text: str) -> int | None:
    """Return the number that MediaWiki writes in base 36 as a checksum, or None if ``text`` is no such number."""
    try:
        return int(text, 36) if len(text) <= _SHA1_DIGITS else None
    except ValueError:
        return None


class _OpenPage:
    """The page being read, with its revisions that are in no yielded part yet."""

    def __init__(self, name: str, start: PageStart, site: DumpSite, licence: str | None) -> None:
        self.name = name
        self.start = start
        self._site = site
        self._licence = licence
        self._lines: dict[str, str] = {}  # of attribution, by licence
        self._first = 1
        self._chars = 0
        self._revisions: list[ImportedRevision] = []

    @property
    def is_full(self) -> bool:
        return len(self._revisions) >= PART_REVISIONS or self._chars >= PART_CHARS

    def add(self, revision: ImportedRevision) -> None:
        self._revisions.append(revision)
        self._chars += len(revision.body) + len(revision.source or "")

    def attribution(self, time_ms: int) -> str:
        licence = self._licence or known_licence(self._site.base, time_ms)
        if licence not in self._lines:
            site = self._site
            self._lines[licence] = attribution(site.name, site.base, self.start.title, time_ms, licence)
        return self._lines[licence]

    def take(self, *, is_last: bool) -> PagePart:
        revisions = tuple(self._revisions)
        line = revisions[-1].attribution or "" if revisions else ""
        part = PagePart(
            self.name, self.start.ordinal, self._first, revisions, line, is_last, known(self._site.language)
        )
        self._first += len(revisions)
        self._revisions, self._chars = [], 0
        return part
