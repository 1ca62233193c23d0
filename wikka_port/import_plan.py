"""The plan of an import for one page (pure): which revisions are new, and when nothing may be touched.

Revision k of a page in a dump, counted by time, becomes revision k of the page in this wiki.
Stored times rise strictly: a revision that is not later than its predecessor is moved to 1 ms after it, so
that the same dump always gives the same times.

    stored: none                        all revisions are new
    stored: the first n, at their times the others are new (an import continues, or a later dump is imported)
    stored: all, and maybe more         nothing to do
    stored: something else              the page was also written in this wiki, or a different dump has brought
                                        revisions between these: ``history_merge`` inserts the new ones

Knows nothing of the store and of dumps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from wikka_port.markup.formats import WIKKA
from wikka_port.markup.mediawiki_titles import page_address, split_address

Order = tuple[int, int]  # time and id of a revision at the site of the dump; id 0: unknown


@dataclass(frozen=True, slots=True)
class ImportedRevision:
    time_ms: int
    author: str
    note: str
    body: str
    links: int
    is_redirect: bool
    minor: bool = False
    source: str | None = None  # the original text; None: not known
    attribution: str | None = None  # None: the page's attribution holds
    owner: str | None = None  # None: the page keeps its owner
    signed: str = ""  # the kind of the author's name (``schema``)
    markup: str = WIKKA  # the format of the text (``markup.formats``)
    kept: KeptFields | None = None  # from an export of a wiki like this one; None: as the part says
    origin: Origin | None = None  # distinguishes it from all other revisions of its page; None if it has no source

    @property
    def hidden(self) -> bool:
        """Whether readers never see the revision (``history_merge``)."""
        return self.kept is not None and self.kept.hidden

    @property
    def order(self) -> Order:
        """The place in a history: by the time at the site of the dump, as stored revisions have theirs."""
        return self.origin.order if self.origin is not None else (self.time_ms, 0)


@dataclass(frozen=True, slots=True)
class KeptFields:
    """Fields of a revision that only an export of a wiki like this one has for each revision."""

    language: str  # (``page_languages``)
    autolink: bool
    hidden: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of an imported revision, equal in every dump with it; MediaWiki compares revisions in this way."""

    time_ms: int  # at the site of the dump; the stored time may be some ms later, since times rise
    revision_id: int  # at the site of the dump; 0: the dump does not give it
    sha1: str  # of the original text, hexadecimal

    def pack(self) -> bytes:
        return f"{self.time_ms} {self.revision_id} {self.sha1}".encode()

    @classmethod
    def parse(cls, value: bytes | None) -> Origin | None:
        """Return the origin that ``pack`` wrote, or None if ``value`` is none."""
        found = _ORIGIN.fullmatch(value or b"")
        return cls(int(found[1]), int(found[2]), found[3].decode()) if found is not None else None

    def is_of(self, other: Origin) -> bool:
        """Return whether both are the same revision.  Ids do not count: each site gives a revision its own id."""
        return self.time_ms == other.time_ms and self.sha1 == other.sha1

    @property
    def order(self) -> Order:
        return self.time_ms, self.revision_id


def comes_before(one: Order, other: Order) -> bool:
    """Return whether ``one`` is not later than ``other``.  At equal times ids decide, if both have one."""
    return one <= other if one[1] and other[1] else one[0] <= other[0]


_ORIGIN: Final = re.compile(rb"([0-9]{1,15}) ([0-9]{1,19}) ([0-9a-f]{40})")


@dataclass(frozen=True, slots=True)
class PagePart:
    """Consecutive revisions of a page; most pages are one part."""

    name: str
    ordinal: int  # of the page in the dump
    first: int  # number of the part's first revision
    revisions: tuple[ImportedRevision, ...]
    attribution: str
    is_last: bool  # no more of this page follows
    language: str = ""  # of the page (``page_languages``)
    autolink: bool = False  # whether CamelCase is linked

    @property
    def last(self) -> int:
        return self.first + len(self.revisions) - 1


MOVED_MS: Final = 1_000  # a time is moved by less than this if only revisions of the same second come before


@dataclass(frozen=True, slots=True)
class PagePlan:
    new: tuple[tuple[int, ImportedRevision], ...]  # number and revision, in order
    kept: bool  # the page has stored revisions that are not the dump's


def rising(revisions: Sequence[ImportedRevision], after_ms: int) -> list[int]:
    """Return the times under which ``revisions`` are stored; ``after_ms`` is the stored time of their predecessor."""
    times: list[int] = []
    last = after_ms
    for revision in revisions:
        last = max(revision.time_ms, last + 1)
        times.append(last)
    return times


def plan(part: PagePart, newest: int, stored: Mapping[int, int]) -> PagePlan:
    """Return which revisions of the part are new.

    ``newest`` is the number of the newest stored revision (0 without a page).  ``stored`` has the times of the stored
    revisions by number, from the predecessor of the part's first revision to its last.
    """
    times = rising(part.revisions, stored.get(part.first - 1, -1))
    if newest and any(at - revision.time_ms >= MOVED_MS for revision, at in zip(part.revisions, times, strict=True)):
        return PagePlan((), kept=True)  # later revisions are stored
    numbered = list(zip(range(part.first, part.last + 1), part.revisions, times, strict=True))
    if newest < part.first - 1:
        return PagePlan((), kept=True)  # the predecessor of the part is not stored
    if any(stored.get(number) != at for number, _, at in numbered if number <= newest):
        return PagePlan((), kept=True)
    return PagePlan(tuple((number, revision) for number, revision, _ in numbered if number > newest), kept=False)


_WIKIMEDIA = (".wikipedia.org", ".wiktionary.org", ".wikisource.org", ".wikibooks.org", ".wikivoyage.org")
_CC_4_SINCE_MS = 1_686_096_000_000  # 7 June 2023: Wikimedia's texts went from CC BY-SA 3.0 to 4.0


def attribution(site: str, base: str, title: str, time_ms: int, licence: str | None) -> str:
    """Return the line in which an imported page shows its origin, authors and licence."""
    address = page_address(base, quote(title.replace(" ", "_"), safe="/:@!$*(),;~-._"))
    text = f"From {site or 'another wiki'}, {address or title}, by its contributors there"
    licence = licence or known_licence(base, time_ms)
    return f"{text}; {licence}." if licence else f"{text}; under the licence of that site."


def known_licence(base: str, time_ms: int) -> str:
    """Return the licence of Wikimedia's texts at that time, or "" if the site is not Wikimedia's."""
    host = split_address(base).netloc
    if not host.endswith(_WIKIMEDIA):
        return ""
    return "CC BY-SA 3.0 and GFDL" if time_ms < _CC_4_SINCE_MS else "CC BY-SA 4.0"
