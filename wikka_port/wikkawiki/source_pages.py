"""The pages of a WikkaWiki with all their revisions, as parts for ``importer``, in constant memory.

WikkaWiki on MySQL holds two tags equal that differ in case or accents alone: a save under one of them makes the newest
revision of the other.  So the revisions of such tags are one page, named like the newest, unless each tag has a newest
revision of its own.  The revisions of a page are ordered by time and id.

A page's ordinal is its place among the folded names, which is the same whenever the same source is read.

Texts stay as they are, since the markup is WikkaWiki's, but for links whose words stand behind a blank
(``stored_text.with_bars``): such a text is kept beside the revision as it was.

Times are in the time zone of the old wiki's database server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from hashlib import sha1
from itertools import groupby
from typing import Final

from wikka_port.confusable_names import find_confusable
from wikka_port.import_pages import PART_CHARS, PART_REVISIONS, Counts
from wikka_port.import_plan import ImportedRevision, Origin, PagePart
from wikka_port.markup.bounds import over_bounds
from wikka_port.names import InvalidName, normalise
from wikka_port.schema import folded
from wikka_port.wikkawiki.source_database import Source, quoted
from wikka_port.wikkawiki.stored_text import links_with_words, unescaped, with_bars

NO_AUTHOR: Final = "(unknown)"
_TIME: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?)?")
_REVISION: Final = ("id", "time", "body", "owner", "user", "note", "latest")
_NAMED: Final = 5  # links of a page


@dataclass(slots=True)
class TagReport:
    """Findings in the list of tags; each is a line for a person."""

    refused: list[str] = field(default_factory=list)  # tags that are no names here, with their revisions
    merged: list[str] = field(default_factory=list)  # tags that are one page
    alike: list[str] = field(default_factory=list)  # pages that differ in case or accents alone
    unpublished: list[str] = field(default_factory=list)  # pages without a newest revision, which showed nothing
    renamed: list[str] = field(default_factory=list)  # tags that are written in another way here


@dataclass(frozen=True, slots=True)
class _Tag:
    tag: str
    newest_id: int
    published: int  # revisions that are marked as the newest
    revisions: int
    folded: str


def folded_tag(tag: object) -> str:
    """Return the form in which MySQL holds tags equal, nearly: without case and accents."""
    return folded(str(tag or "").replace("_", " ").strip())


def local_time_ms(text: str, zone: tzinfo) -> int | None:
    """Return a time of the database in milliseconds, or None if it is none ("0000-00-00 00:00:00")."""
    found = _TIME.fullmatch(text)
    try:
        moment = datetime(*map(int, found.groups("0")), tzinfo=zone) if found else None  # type: ignore[arg-type,misc]
        time_ms = int(moment.timestamp() * 1000) if moment else 0
    except (ValueError, OverflowError):
        return None
    return time_ms if time_ms > 0 else None


class SourcePages:
    """A ``importer.PartSource``.  ``counts`` grows while it is iterated over; ``tags`` is complete before."""

    def __init__(
        self,
        source: Source,
        zone: tzinfo,
        *,
        skip_pages: int,
        accounts: Collection[str],
    ) -> None:
        """Take the ``zone`` of times, and the names of ``accounts`` whose signatures are theirs."""
        self.tags = TagReport()
        self.counts = Counts(refused=self.tags.refused)
        self.consumed = 0  # revisions
        self.without_time: list[str] = []  # revisions whose time is none
        self._source = source
        self._zone = zone
        self._skip = skip_pages
        self._accounts = accounts

    @classmethod
    def ordered(
        cls,
        source: Source,
        zone: tzinfo = UTC,
        *,
        skip_pages: int = 0,
        accounts: Collection[str] = (),
    ) -> SourcePages:
        """Find the order of all revisions, and skip the first ``skip_pages`` pages."""
        made = cls(source, zone, skip_pages=skip_pages, accounts=accounts)
        made._order()
        return made

    # --- the order ---------------------------------------------------------------------------------

    def _order(self) -> None:
        """Fill a temporary table with the place of each revision.  O(revisions), on disk."""
        database, pages = self._source.database, quoted(self._source.tables["pages"])
        database.create_function("folded_tag", 1, folded_tag, deterministic=True)
        database.execute("DROP TABLE IF EXISTS temp.page_order")
        database.execute("DROP TABLE IF EXISTS temp.revision_order")
        database.execute("CREATE TEMP TABLE page_order (tag TEXT PRIMARY KEY, ordinal INTEGER, name TEXT)")
        found = database.execute(
            f"SELECT tag, max(id), sum(latest = 'Y'), count(*), folded_tag(tag) FROM {pages} GROUP BY tag ORDER BY 5, 1"
        )
        tags = (_Tag(str(tag), int(newest), int(y or 0), n, key) for tag, newest, y, n, key in found)
        ordinal = 0
        for _, group in groupby(tags, lambda tag: tag.folded):
            for name, of_page in self._pages_of(list(group)):
                database.executemany(
                    "INSERT INTO page_order VALUES (?, ?, ?)", [(tag.tag, ordinal, name) for tag in of_page]
                )
                ordinal += 1
        database.execute(
            "CREATE TEMP TABLE revision_order (ordinal INTEGER, time TEXT, id INTEGER, place INTEGER, name TEXT,"
            " PRIMARY KEY (ordinal, time, id, place)) WITHOUT ROWID"
        )
        database.execute(
            f"INSERT INTO revision_order SELECT o.ordinal, coalesce(p.time, ''), p.id, p.rowid, o.name"
            f" FROM {pages} p JOIN page_order o ON p.tag = o.tag"
        )

    def _pages_of(self, tags: list[_Tag]) -> Iterator[tuple[str, list[_Tag]]]:
        """Yield the pages of tags that differ in case and accents alone: the name of each, and its tags."""
        report = self.tags
        published = [tag for tag in tags if tag.published] or [max(tags, key=lambda tag: tag.newest_id)]
        if not published[0].published:
            report.unpublished.append(f"{tags[0].tag}: no revision is marked as the newest; the last one is shown here")
        others = [tag for tag in tags if tag not in published]
        if others:
            named = ", ".join(tag.tag for tag in others)
            report.merged.append(f"{named}: revisions of the page {published[0].tag}, which differs in case alone")
        if len(published) > 1:
            report.alike.append(", ".join(tag.tag for tag in published) + ": pages that differ in case alone")
        taken: set[str] = set()
        for number, tag in enumerate(published):
            of_page = [tag, *others] if number == 0 else [tag]
            try:
                name = normalise(unescaped(tag.tag) if self._source.escapes_html else tag.tag)
                if name in taken:
                    raise InvalidName(name, f"another page is called {name!r}")
            except InvalidName as invalid:
                lost = sum(one.revisions for one in of_page)
                report.refused.append(f"{tag.tag!a}: {invalid} ({lost:,} revisions)")
                continue
            taken.add(name)
            if name != tag.tag:
                report.renamed.append(f"{tag.tag}: {name}")
            yield name, of_page

    def newest(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the newest text of each page."""
        pages = quoted(self._source.tables["pages"])
        found = self._source.database.execute(
            "SELECT name, body FROM (SELECT o.ordinal, o.name, (SELECT p.body FROM revision_order n"
            f" JOIN {pages} p ON p.rowid = n.place WHERE n.ordinal = o.ordinal"
            " ORDER BY n.time DESC, n.id DESC, n.place DESC LIMIT 1) AS body"
            " FROM (SELECT DISTINCT ordinal, name FROM page_order) o) ORDER BY ordinal"
        )
        for name, body in found:
            yield name, "" if body is None else self._with_bars(str(body))

    def owners(self) -> Iterator[tuple[str, str, str]]:
        """Yield each tag with its page's name here and the owner that its newest revision has."""
        pages = quoted(self._source.tables["pages"])
        reads: Callable[[str], str] = unescaped if self._source.escapes_html else str
        found = self._source.database.execute(
            f"SELECT t.tag, t.name, (SELECT p.owner FROM revision_order o JOIN {pages} p ON p.rowid = o.place"
            " WHERE o.ordinal = t.ordinal ORDER BY o.time DESC, o.id DESC, o.place DESC LIMIT 1)"
            " FROM page_order t ORDER BY t.ordinal, t.tag"
        )
        for tag, name, owner in found:
            yield tag, name, reads("" if owner is None else str(owner))

    # --- the parts ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[PagePart]:
        for (ordinal, name), rows in groupby(self._rows(self._skip), lambda row: (row[0], row[1])):
            self.counts.count(pages=1)
            like = find_confusable(name)
            if like is not None:
                self.counts.confusable_names.append(f"{name!a}: {like}")
            yield from self._parts_of(ordinal, name, rows)

    def histories(self) -> Iterator[tuple[str, Iterator[ImportedRevision]]]:
        """Yield all pages, also those that are skipped: the name of each, and its revisions, the newest first."""
        for (_, name), rows in groupby(self._rows(0, "DESC"), lambda row: (row[0], row[1])):
            yield name, (self.revision(values) for _, _, values in rows)

    def _rows(self, begin: int, direction: str = "ASC") -> Iterator[tuple[int, str, tuple[str, ...]]]:
        """Yield ordinal, name and the columns _REVISION of each revision, page by page from ``begin`` on."""
        pages = quoted(self._source.tables["pages"])
        wanted = ", ".join(f"p.{quoted(one)}" for one in _REVISION)
        found = self._source.database.execute(
            f"SELECT o.ordinal, o.name, {wanted} FROM revision_order o JOIN {pages} p ON p.rowid = o.place"
            f" WHERE o.ordinal >= ? ORDER BY o.ordinal, o.time {direction}, o.id {direction}, o.place {direction}",
            (begin,),
        )
        for ordinal, name, *values in found:
            yield ordinal, name, tuple("" if value is None else str(value) for value in values)

    def _parts_of(
        self, ordinal: int, name: str, rows: Iterator[tuple[int, str, tuple[str, ...]]]
    ) -> Iterator[PagePart]:
        revisions: list[ImportedRevision] = []
        chars, first, latest = 0, 1, ""
        for _, _, values in rows:
            if len(revisions) >= PART_REVISIONS or chars >= PART_CHARS:
                yield PagePart(name, ordinal, first, tuple(revisions), "", False, autolink=True)
                first, revisions, chars = first + len(revisions), [], 0
            revision = self.revision(values)
            self.consumed += 1
            self.counts.count(revisions=1)
            if revision.time_ms == 1:
                self.without_time.append(f"{name}: revision {values[0]} has the time {values[1]!r}")
            revisions.append(revision)
            chars += len(revision.body)
            latest = values[6]
        if latest != "Y":
            self.tags.unpublished.append(f"{name}: its last revision by time is not the one that was shown")
        over = over_bounds(revisions[-1].body, autolink=True)
        if over is not None:
            self.counts.cut.append(f"{name}: {over}")
        yield PagePart(name, ordinal, first, tuple(revisions), "", True, autolink=True)

    def unclear_links(self) -> list[str]:
        """Return lines on pages with links whose meaning depends on a version that is unknown.  O(newest texts).

        ``[[HomePage home]]`` leads to HomePage until 1.3.6, and to a page "HomePage home" later and here: unclear is
        such a link if the first page is there and the second is not.
        """
        return list(self._unclear_links()) if self._source.word_links is None else []

    def _unclear_links(self) -> Iterator[str]:
        for name, body in self.newest():
            links = dict.fromkeys(
                f"[[{page} {words}]]"
                for page, words in links_with_words(body)
                if self._is_tag(page) and not self._is_tag(f"{page} {words}")
            )
            if links:
                more = f" and {len(links) - _NAMED:,} more" if len(links) > _NAMED else ""
                yield f"{name}: {', '.join(list(links)[:_NAMED])}{more}"

    def _is_tag(self, name: str) -> bool:
        found = self._source.database.execute(
            "SELECT 1 FROM page_order WHERE tag IN (?, ?)", (name, name.replace(" ", "_"))
        )
        return found.fetchone() is not None

    def _with_bars(self, body: str) -> str:
        return with_bars(body, of_pages=self._source.word_links or "none")

    def revision(self, values: tuple[str, ...]) -> ImportedRevision:
        """Make a revision of the columns _REVISION."""
        number, time, body, owner, user, note, _ = values
        time_ms = local_time_ms(time, self._zone) or 1
        reads: Callable[[str], str] = unescaped if self._source.escapes_html else str
        author = reads(user) or NO_AUTHOR
        shown = self._with_bars(body)
        return ImportedRevision(
            time_ms=time_ms,
            author=author,
            note=reads(note),
            body=shown,
            source=body if shown != body else None,
            links=0,
            is_redirect=False,
            owner=reads(owner),
            signed="account" if author in self._accounts else "",
            origin=Origin(
                time_ms, int(number or 0), sha1(body.encode(errors="replace"), usedforsecurity=False).hexdigest()
            ),
        )
