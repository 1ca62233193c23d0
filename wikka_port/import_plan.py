"""The plan of an import for one page (pure): which revisions are new, and when nothing may be touched.

Revision k of a page in a dump, counted in the order of their times, is revision k of the page here.
The times rise strictly: one that does not come after its predecessor is moved to 1 ms after it, so
that the same dump always gives the same times.

    stored: none                        all revisions are new
    stored: the first n, at their times the others are new (an import continues, or a later dump)
    stored: all, and maybe more         nothing to do
    stored: something else              the page was written here too, or another dump has brought revisions that lie
                                        among these: ``history_merge`` puts them in their places

Knows nothing of the store and of dumps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

Order = tuple[int, int]  # time and id of a revision at the other site; id 0: it is not known


@dataclass(frozen=True, slots=True)
class ImportedRevision:
    time_ms: int
    author: str
    note: str
    body: str
    links: int
    is_redirect: bool
    minor: bool = False
    source: str | None = None  # the text as it came; None: there was none
    attribution: str | None = None  # None: that of its page
    origin: Origin | None = None  # what distinguishes it from all others of its page; None if it has no source

    @property
    def order(self) -> Order:
        return self.time_ms, self.origin.revision_id if self.origin is not None else 0


@dataclass(frozen=True, slots=True)
class Origin:
    """Whence an imported revision came: it is the same in every dump that has it, as MediaWiki compares revisions."""

    time_ms: int  # there; here it may be some ms later, since times rise
    revision_id: int  # there; 0: the dump does not say it
    sha1: str  # of the text as it came, hexadecimal

    def pack(self) -> bytes:
        return f"{self.time_ms} {self.revision_id} {self.sha1}".encode()

    @classmethod
    def parse(cls, value: bytes | None) -> Origin | None:
        """None for what is no such value."""
        found = _ORIGIN.fullmatch(value or b"")
        return cls(int(found[1]), int(found[2]), found[3].decode()) if found is not None else None

    def is_of(self, other: Origin) -> bool:
        """Whether it is the same revision: another site, or an import there, gives it another id."""
        return self.time_ms == other.time_ms and self.sha1 == other.sha1

    @property
    def order(self) -> Order:
        return self.time_ms, self.revision_id


def comes_before(one: Order, other: Order) -> bool:
    """Whether ``other`` is not the earlier one.  Ids order revisions of one moment, where both have one."""
    return one <= other if one[1] and other[1] else one[0] <= other[0]


_ORIGIN: Final = re.compile(rb"([0-9]{1,15}) ([0-9]{1,19}) ([0-9a-f]{40})")


@dataclass(frozen=True, slots=True)
class PagePart:
    """Some revisions of a page, one after another; most pages are one part."""

    name: str
    ordinal: int  # of the page in the dump
    first: int  # number of the first revision here
    revisions: tuple[ImportedRevision, ...]
    attribution: str
    is_last: bool  # no more of this page follows
    language: str = ""  # of the page (``page_languages``)

    @property
    def last(self) -> int:
        return self.first + len(self.revisions) - 1


MOVED_MS: Final = 1_000  # a time rises by less, after others of the same second


@dataclass(frozen=True, slots=True)
class PagePlan:
    new: tuple[tuple[int, ImportedRevision], ...]  # number and revision, in order
    kept: bool  # the page was written here


def rising(revisions: Sequence[ImportedRevision], after_ms: int) -> list[int]:
    """Return the times under which ``revisions`` are stored; ``after_ms``: that of the one before them."""
    times: list[int] = []
    last = after_ms
    for revision in revisions:
        last = max(revision.time_ms, last + 1)
        times.append(last)
    return times


def plan(part: PagePart, newest: int, stored: Mapping[int, int]) -> PagePlan:
    """``newest`` is the number of the newest revision stored (0: no page), ``stored`` their times by number.

    ``stored`` must reach from one before the part's first revision up to its last, as far as there are any.
    """
    times = rising(part.revisions, stored.get(part.first - 1, -1))
    if newest and any(at - revision.time_ms >= MOVED_MS for revision, at in zip(part.revisions, times, strict=True)):
        return PagePlan((), kept=True)  # later ones are there
    numbered = list(zip(range(part.first, part.last + 1), part.revisions, times, strict=True))
    if newest < part.first - 1:
        return PagePlan((), kept=True)  # what the part continues from is not there
    if any(stored.get(number) != at for number, _, at in numbered if number <= newest):
        return PagePlan((), kept=True)
    return PagePlan(tuple((number, revision) for number, revision, _ in numbered if number > newest), kept=False)


_WIKIMEDIA = (".wikipedia.org", ".wiktionary.org", ".wikisource.org", ".wikibooks.org", ".wikivoyage.org")
_CC_4_SINCE_MS = 1_686_096_000_000  # 7 June 2023: Wikimedia's texts went from CC BY-SA 3.0 to 4.0


def attribution(site: str, base: str, title: str, time_ms: int, licence: str | None) -> str:
    """Return the line that an imported page shows: whence it is, by whom, under what licence."""
    address = page_address(base, quote(title.replace(" ", "_"), safe="/:@!$*(),;~-._"))
    text = f"From {site or 'another wiki'}, {address or title}, by its contributors there"
    licence = licence or known_licence(base, time_ms)
    return f"{text}; {licence}." if licence else f"{text}; under the licence of that site."


_ARTICLE_FOLDERS: Final = ("/index.php/", "/wiki/")
_TITLE_IN_QUERY: Final = re.compile(r"([?&]title=)[^&#]*")


def page_address(base: str, written: str) -> str:
    """The address of a page at the site whose first page is ``base``; ``written``: its title, quoted.  "": no base.

    A site without short addresses names its pages in the query: ``index.php?title=Main_Page``.
    """
    if not base:
        return ""
    query = _TITLE_IN_QUERY.search(base)
    if query is not None:
        return f"{base[: query.end(1)]}{written}{base[query.end() :]}"
    parts = _split(base)
    folder = next((parts.path.partition(mark)[0] + mark for mark in _ARTICLE_FOLDERS if mark in parts.path), "")
    folder = folder or parts.path.rpartition("/")[0] + "/"  # the name of the first page may have strokes: it is rare
    scheme = f"{parts.scheme}:" if parts.scheme else ""
    site = f"{scheme}//{parts.netloc}" if parts.netloc else ""
    return f"{site}{folder}{written}"


def files_address(base: str) -> str:
    """Return the address that the name of a file is put after; "": unknown.

    Every MediaWiki leads from there to the file, also to one of a shared site.
    """
    if not base.startswith(("http://", "https://")):
        return ""
    query = _TITLE_IN_QUERY.search(base)
    return page_address(base if query is None else base[: query.end()], "Special:FilePath/")


def _split(base: str) -> SplitResult:
    try:
        return urlsplit(base)
    except ValueError:  # brackets that are no address of IPv6
        return urlsplit("")


def known_licence(base: str, time_ms: int) -> str:
    """Return the licence that Wikimedia's texts had then; "": the site is another one."""
    host = _split(base).netloc
    if not host.endswith(_WIKIMEDIA):
        return ""
    return "CC BY-SA 3.0 and GFDL" if time_ms < _CC_4_SINCE_MS else "CC BY-SA 4.0"
