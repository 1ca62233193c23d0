"""A MediaWiki dump as parts of pages in our markup, in constant memory.

One part holds the revisions of one page, or as many of them as ``PART_REVISIONS`` and ``PART_CHARS``
allow; within a part they are put in the order of their times.  Counts what was converted and what
could not be.  Knows nothing of the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from wikka_port.dump import DumpReader, DumpSite, PageEnd, PageStart, Revision
from wikka_port.import_plan import ImportedRevision, PagePart, attribution
from wikka_port.look_alikes import look_alike
from wikka_port.markup.bounds import over_bounds
from wikka_port.markup.mediawiki import Dialect, convert, convert_source
from wikka_port.markup.mediawiki_titles import CATEGORY
from wikka_port.names import InvalidName, normalise
from wikka_port.page_languages import known

PART_REVISIONS: Final = 64
PART_CHARS: Final = 4_000_000
WIKITEXT: Final = "wikitext"
_FILES: Final = "/Special:FilePath/"  # every MediaWiki leads from there to the file, also to one of a shared site
_MEMBERS: Final = "{{category}}"


@dataclass(slots=True)
class Counts:
    """What was read and converted; owned by the reading thread."""

    pages: int = 0
    revisions: int = 0
    redirects: int = 0
    links: int = 0
    passed_over: int = 0  # pages of other namespaces
    refused: list[str] = field(default_factory=list)  # titles that cannot be names here
    cut: list[str] = field(default_factory=list)  # pages over a bound: kept whole, shown and indexed up to it
    look_alikes: list[str] = field(default_factory=list)  # names that nobody could give a page here: kept
    converted: Counter[str] = field(default_factory=Counter)
    unconverted: Counter[str] = field(default_factory=Counter)


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
    ) -> None:
        """``pictures``: address of the folder where the site's files are; "": links lead to the site itself."""
        self.counts = Counts()
        self._reader = reader
        self._wanted = frozenset(namespaces)
        self._limit = limit
        self._licence = licence
        self._pictures = pictures
        self._site = DumpSite("", "", "", True, {})
        self._dialect = Dialect.of({})

    def __iter__(self) -> Iterator[PagePart]:
        open_page: _OpenPage | None = None
        for event in self._reader:
            if isinstance(event, DumpSite):
                self._site = event
                self._dialect = self._dialect_of(event)
            elif isinstance(event, PageStart):
                if self._limit is not None and self.counts.pages >= self._limit:
                    return
                open_page = self._begin(event)
            elif open_page is None:
                continue
            elif isinstance(event, Revision):
                if open_page.is_full:
                    yield open_page.take(is_last=False)
                open_page.add(self._converted(open_page, event))
            elif isinstance(event, PageEnd):
                yield self._end(open_page)
                open_page = None

    def _dialect_of(self, site: DumpSite) -> Dialect:
        there = site.base.rpartition("/")[0] + _FILES if site.base.startswith(("http://", "https://")) else ""
        return Dialect.of(
            site.namespaces,
            capitalised=site.capitalised,
            pictures=self._pictures.rstrip("/") + "/" if self._pictures else there,
            shows_pictures=bool(self._pictures),
        )

    def _begin(self, page: PageStart) -> _OpenPage | None:
        if self._wanted and not self._wanted & {str(page.namespace), self._namespace_name(page.namespace)}:
            self.counts.passed_over += 1
            return None
        try:
            name = normalise(page.title)
        except InvalidName as invalid:
            self.counts.refused.append(f"{page.title}: {invalid}")
            return None
        self.counts.pages += 1
        like = look_alike(name)
        if like is not None:
            self.counts.look_alikes.append(f"{name!a}: {like}")
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
        if revision.model == WIKITEXT:
            hint = page.start.redirect_target
            result = convert(text, namespaces=self._dialect, title=page.start.title, redirect_hint=hint)
        else:
            result = convert_source(text, model=revision.model)
        is_category = page.start.namespace == CATEGORY and result.redirect is None
        body = f"{result.text}\n\n{_MEMBERS}".lstrip("\n") if is_category else result.text
        counts.converted.update(result.converted)
        counts.unconverted.update(result.unconverted)
        return ImportedRevision(
            time_ms=max(revision.timestamp_ms, 0),
            author=revision.contributor or "(hidden)",
            note=revision.comment,
            body=body,
            links=len({*result.links, *result.categories}),
            is_redirect=result.redirect is not None,
        )

    def _end(self, page: _OpenPage) -> PagePart:
        part = page.take(is_last=True)
        if part.revisions:
            over = over_bounds(part.revisions[-1].body, autolink=False)
            if over is not None:
                self.counts.cut.append(f"{part.name}: {over}")
            self.counts.links += part.revisions[-1].links
            self.counts.redirects += part.revisions[-1].is_redirect
        return part


class _OpenPage:
    """The page being read: what of it was not yet given on."""

    def __init__(self, name: str, start: PageStart, site: DumpSite, licence: str | None) -> None:
        self.name = name
        self.start = start
        self._site = site
        self._licence = licence
        self._first = 1
        self._chars = 0
        self._revisions: list[ImportedRevision] = []

    @property
    def is_full(self) -> bool:
        return len(self._revisions) >= PART_REVISIONS or self._chars >= PART_CHARS

    def add(self, revision: ImportedRevision) -> None:
        self._revisions.append(revision)
        self._chars += len(revision.body)

    def take(self, *, is_last: bool) -> PagePart:
        revisions = tuple(sorted(self._revisions, key=lambda revision: revision.time_ms))
        newest_ms = revisions[-1].time_ms if revisions else 0
        line = attribution(self._site.name, self._site.base, self.start.title, newest_ms, self._licence)
        part = PagePart(
            self.name, self.start.ordinal, self._first, revisions, line, is_last, known(self._site.language)
        )
        self._first += len(revisions)
        self._revisions, self._chars = [], 0
        return part
